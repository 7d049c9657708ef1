//! Short trials that are not evidence: what does a visit cost, and how much does the baseline differ from itself?
//!
//! Every configuration is visited once, so that what cannot be brought about is found before the plan is stored. From
//! what that took follow the plan, its forecast, and the difference that it will be able to see.

use super::design::Candidate;
use super::noise::{Noise, Prospect};
use super::plan::{PORTION, Phases, Plan, Price};
use super::stay::Stay;
use super::visit::Workload;
use super::{Comparison, ground, stop_if_cancelled};
use crate::LabError;
use crate::bench::Bench;
use crate::control::Control;
use crate::server::durability;
use crate::stage::Stage;
use record::json::{Value, json};
use units::{Nanos, Seed, clock};

/// Trials of each workload whose noise is asked for.
const NOISE_TRIALS: u64 = 4;
/// Share of the data file's blocks that one phase of cold reads may use up, judged by the fastest pilot.
const UNREAD_SHARE_MAX: f64 = 0.6;

/// A window in which less was completed is too short to know a rate from: the pilot tries again with a longer one …
const PILOT_OPS_MIN: u64 = 12;
/// … so many times as long …
const LONGER: u64 = 4;
/// … up to this.
const PILOT_WINDOW_MAX: Nanos = Nanos::millis(8_000);
/// Operations that the slowest configuration shall complete in a window of the plan, so that every visit yields a value …
const OPS_MIN: f64 = 25.0;
/// … for which no window is made longer than this.
const WINDOW_MAX: Nanos = Nanos::millis(20_000);

/// What the pilot learnt.
#[derive(Default)]
struct Learnt {
    /// Seconds of all visits, one for each configuration, without windows that were tried in vain.
    visits_seconds: f64,
    /// Seconds of these in which something was measured, or grew.
    measured_seconds: f64,
    grown_seconds: f64,
    /// Fastest cold reads, blocks per second.
    read_cold: f64,
    /// Rate of the slowest configuration, by workload.
    slowest: Vec<(Workload, f64)>,
    /// Trials of the baseline, by workload, with their windows.
    noise: Vec<(Workload, Option<Nanos>, Noise)>,
}

impl Learnt {
    fn rate(&mut self, workload: Workload, rate: f64) {
        match self.slowest.iter_mut().find(|(known, _)| *known == workload) {
            Some((_, slowest)) => *slowest = slowest.min(rate),
            None => self.slowest.push((workload, rate)),
        }
    }

    /// Windows in which the slowest configuration completes enough, none shorter than in `least`.
    fn windows(&self, least: Phases) -> Phases {
        let mut windows = Phases::all(Nanos(0));
        for (workload, rate) in self.slowest.iter().filter(|(workload, _)| !workload.bulk()) {
            let portions = (OPS_MIN / rate.max(1e-3) / PORTION.as_secs()).ceil();
            windows.set(*workload, Nanos(PORTION.0 * portions as u64).min(WINDOW_MAX));
        }
        windows.at_least(&least)
    }
}

impl Comparison<'_> {
    pub(super) fn pilot(&mut self, bench: &mut Bench, control: &mut Control<'_>) -> Result<(), LabError> {
        let mut learnt = Learnt::default();
        let (mut index, all) = (0, self.design.candidates.len());
        while index < self.design.candidates.len() {
            let standing = self.design.candidates.len();
            let what = format!("pilot {} of {all}: {}", index + 1 + all - standing, self.name(index));
            bench.step(control, &what);
            let began = clock::now();
            // What no later visit does.
            let mut beside = Nanos(0);
            let met = self.under(index, bench, control, |stay, mut stage, bench, control| {
                self.prove(index, stage.as_deref())?;
                stay.proof()?;
                if self.design.fresh() {
                    beside = stage.as_deref().map_or(Nanos(0), Stage::lasting);
                }
                let visited = self.pilot_visit(index, stay, stage.as_deref_mut(), bench, control)?;
                let from = clock::now();
                let noise =
                    if index == 0 { self.pilot_noise(stay, stage, bench, control)? } else { Vec::new() };
                beside += clock::now() - from;
                Ok((visited, noise))
            });
            let Some((visited, noise)) = self.survive(index, standing, met, bench, control)? else {
                self.design.candidates.remove(index);
                continue;
            };
            learnt.visits_seconds += (clock::now() - began - beside).as_secs() - visited.vain_seconds;
            learnt.measured_seconds += visited.measured_seconds;
            visited.rates.iter().for_each(|(workload, rate)| learnt.rate(*workload, *rate));
            learnt.grown_seconds += visited.grown_seconds;
            learnt.read_cold = learnt.read_cold.max(visited.read_cold);
            if index == 0 {
                learnt.noise = noise;
            }
            index += 1;
        }
        self.decide(&learnt, bench, control)
    }

    /// All workloads once.
    fn pilot_visit(
        &self,
        index: usize,
        stay: &mut Stay<'_>,
        mut stage: Option<&mut Stage>,
        bench: &mut Bench,
        control: &Control<'_>,
    ) -> Result<Visited, LabError> {
        let mut visited = Visited::default();
        let seed = pilot_seed(index);
        for &workload in &self.design.workloads {
            let mut began = clock::now();
            let trial = loop {
                ground::prepare(workload, seed, stay, stage.as_deref_mut(), self.setup(index), bench)?;
                let (trial, _) = self.run_watched(stay, workload, seed)?;
                stop_if_cancelled(control)?;
                let Some(window) = stay.phases().of(workload) else { break trial };
                if trial.ops >= PILOT_OPS_MIN || window >= PILOT_WINDOW_MAX {
                    visited.measured_seconds += window.as_secs();
                    // Nothing at all: less than one in the longest window.
                    visited.rates.push((workload, trial.rate().max(0.5 / window.as_secs())));
                    break trial;
                }
                stay.phases().set(workload, Nanos(window.0 * LONGER).min(PILOT_WINDOW_MAX));
                visited.vain_seconds += (clock::now() - began).as_secs();
                began = clock::now();
            };
            match workload {
                Workload::GrowthWrite | Workload::GrowthScanCold | Workload::GrowthScanWarm => {
                    visited.grown_seconds += (clock::now() - began).as_secs();
                }
                Workload::ReadCold => visited.read_cold = trial.rate(),
                _ => {}
            }
        }
        Ok(visited)
    }

    /// The baseline's headline workloads a few times more.
    fn pilot_noise(
        &self,
        stay: &mut Stay<'_>,
        mut stage: Option<&mut Stage>,
        bench: &mut Bench,
        control: &Control<'_>,
    ) -> Result<Vec<(Workload, Option<Nanos>, Noise)>, LabError> {
        const WORKLOADS_MAX: usize = 2;
        let asked = [
            Workload::ReadCold,
            Workload::Commit,
            Workload::Mixed,
            Workload::GrowthWrite,
            Workload::ScanDirectPath,
            Workload::ScanScattered,
            Workload::Writers,
            Workload::BatchOverwrite,
        ];
        let asked = asked.into_iter().filter(|w| self.design.workloads.contains(w)).take(WORKLOADS_MAX);
        // In windows in which the first visit completed something.
        let phases = *stay.phases();
        let mut noise: Vec<_> = asked.map(|w| (w, phases.of(w), Noise::default())).collect();
        for round in 0..NOISE_TRIALS {
            for (workload, _, trials) in &mut noise {
                let seed = pilot_seed(0).part(round);
                ground::prepare(*workload, seed, stay, stage.as_deref_mut(), self.setup(0), bench)?;
                let trial = stay.run(*workload, seed)?;
                trials.add(workload.rate(&trial), &trial);
                stop_if_cancelled(control)?;
            }
        }
        Ok(noise)
    }

    /// From what was learnt to the plan, stored and told.
    fn decide(
        &mut self,
        learnt: &Learnt,
        bench: &mut Bench,
        control: &mut Control<'_>,
    ) -> Result<(), LabError> {
        let configurations = self.design.candidates.len();
        let visits = stats::order::block(configurations, 0, bench.seed).len();
        let twice = visits as f64 / configurations as f64;
        let fixed = learnt.visits_seconds - learnt.measured_seconds - learnt.grown_seconds;
        let price = Price {
            visits: visits as u32,
            fixed: twice * fixed.max(0.0),
            bulk: twice * learnt.grown_seconds / self.plan.growth.0 as f64,
            least: learnt.windows(self.design.least()),
        };
        let left = self.minutes * 60.0 - bench.elapsed_seconds() - ENDING_SECONDS;
        self.plan = Plan::for_budget(left, &self.design.workloads, &price, self.contents().growth_max());
        if learnt.read_cold > 0.0 {
            // Cold reads must not run out of unread blocks: what is read again comes from the page cache.
            let blocks = self.size.0 / self.design.block_max().0;
            let longest = Nanos::secs(UNREAD_SHARE_MAX * blocks as f64 / learnt.read_cold);
            self.plan.phases.limit_cold_reads(longest - self.plan.phases.settle);
        }
        self.forecast = bench.elapsed_seconds() + self.plan.seconds + ENDING_SECONDS;
        bench.set_forecast(self.forecast);
        let visible: Vec<(Workload, Option<f64>)> = learnt
            .noise
            .iter()
            .map(|(workload, window, trials)| {
                let prospect = Prospect {
                    blocks: self.plan.blocks,
                    others: configurations - 1,
                    fresh: self.design.fresh(),
                    windows: window.zip(self.plan.phases.of(*workload)),
                };
                (*workload, trials.detectable(&prospect))
            })
            .collect();
        self.store_plan(bench, control, &visible)
    }

    /// What a commit promises; of several targets, what each does.
    fn durability(&self) -> String {
        let mut all: Vec<String> = Vec::new();
        for Candidate { setup, .. } in &self.design.candidates {
            let own: Vec<_> =
                setup.parameters.iter().map(|(name, value)| ((*name).into(), value.clone())).collect();
            let said = match setup.target.server() {
                Some(kind) => format!("{kind}: {}", durability::promise(kind, &own)),
                None => "every data and redo write is durable before it counts (O_DSYNC)".into(),
            };
            if !all.contains(&said) {
                all.push(said);
            }
        }
        all.join("; ")
    }

    fn store_plan(
        &self,
        bench: &mut Bench,
        control: &mut Control<'_>,
        visible: &[(Workload, Option<f64>)],
    ) -> Result<(), LabError> {
        let (p, design) = (&self.plan, &self.design);
        let names: Vec<_> = design.candidates.iter().map(|c| c.name.as_str()).collect();
        let sessions = design.sessions().unwrap_or(self.options.sessions);
        let measured: Value = design
            .workloads
            .iter()
            .filter_map(|w| Some((w.about().name.to_owned(), json!(p.phases.of(*w)?.as_secs()))))
            .collect::<record::json::Map<String, Value>>()
            .into();
        let detectable: Value = visible
            .iter()
            .map(|(workload, mde)| (workload.about().name.to_owned(), json!(mde)))
            .collect::<record::json::Map<String, Value>>()
            .into();
        bench.writer.plan(&json!({
            "case": design.case.name(), "question": design.case.question(), "factors": design.factors(),
            "stage": if design.fresh() { "made anew for each visit" } else { "one for the whole run" },
            "target": self.options.case.target(self.options.target).to_string(), "configurations": names, "baseline": names[0], "blocks": p.blocks,
            "seed": bench.seed.0, "order": "random permutation, then its mirror in the next block", "delta": crate::DELTA,
            "looks": [p.blocks], "level_per_look": 0.05,
            "drop_rules": "none; blocks beyond the fourth are given up when the run takes a fifth longer than planned",
            "sessions": sessions, "block_bytes": self.setup(0).block.0, "data_bytes": self.size.0,
            "growth_bytes": p.growth.0, "redo_bytes": self.contents().sizes(self.setup(0)).redo.0, "log_block_bytes": self.log_block_bytes,
            "durability": self.durability(),
            "measure_seconds": measured,
            "mix": self.options.mix.plan(sessions),
            "slow": design.case.slow_and_fast().then(|| self.options.slow.to_string()),
            "fast": design.case.slow_and_fast().then(|| self.options.fast.to_string()),
            "detectable_difference": detectable,
            "forecast_seconds": p.seconds,
        }))?;
        control.progress.say(&format!(
            "Plan: {} configurations × {} randomised blocks, {}, {} of data, {} blocks{}; about {}.",
            names.len(),
            p.blocks,
            design
                .sessions()
                .map_or_else(|| "several numbers of sessions".into(), |n| format!("{n} sessions")),
            self.size,
            design.block_max(),
            if design.fresh() { ", everything made anew for each visit" } else { "" },
            Nanos::secs(p.seconds),
        ));
        if let Some(words) = told(visible) {
            control.progress.say(&words);
        }
        let asked = self.minutes * 60.0;
        if bench.elapsed_seconds() + p.seconds > 1.2 * asked {
            control.progress.say(&format!(
                "That is longer than the {} asked for: {} blocks are the least that says anything. Fewer configurations \
                 take less.",
                Nanos::secs(asked),
                p.blocks
            ));
        }
        Ok(())
    }
}

/// What ending a run takes.
const ENDING_SECONDS: f64 = 2.0;

/// What one visit of the pilot showed.
#[derive(Default)]
struct Visited {
    measured_seconds: f64,
    /// In windows that turned out too short.
    vain_seconds: f64,
    grown_seconds: f64,
    read_cold: f64,
    rates: Vec<(Workload, f64)>,
}

/// Chance of the pilot's visit to configuration `index`.
fn pilot_seed(index: usize) -> Seed {
    Seed(0x9117).part(index as u64)
}

/// What the comparison will be able to see, in a sentence or two.
fn told(visible: &[(Workload, Option<f64>)]) -> Option<String> {
    let title = |workload: &Workload| workload.about().title;
    let seen: Vec<String> = visible
        .iter()
        .filter_map(|(workload, figure)| Some((workload, (*figure)?)))
        .map(|(workload, figure)| format!("{:.0} % in {}", (figure * 100.0).max(1.0), title(workload)))
        .collect();
    let open: Vec<&str> =
        visible.iter().filter(|(_, figure)| figure.is_none()).map(|(workload, _)| title(workload)).collect();
    let seen = (!seen.is_empty()).then(|| {
        format!(
            "It will be able to see differences of about {} (80 % power, from a pilot); smaller ones come out as unknown. More \
             --minutes see smaller ones.",
            seen.join(" and ")
        )
    });
    let open = (!open.is_empty()).then(|| {
        format!(
            "How small a difference it will see in {} the pilot was too short, or the machine too busy, to say.",
            open.join(" and ")
        )
    });
    let sentences: Vec<String> = seen.into_iter().chain(open).collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pilot_that_cannot_say_says_so() {
        let words = told(&[(Workload::ReadCold, Some(0.374)), (Workload::Commit, None)]).expect("words");
        assert!(words.contains("about 37 % in single-block reads, cold (80"), "{words}");
        assert!(
            words.ends_with("in redo commits the pilot was too short, or the machine too busy, to say."),
            "{words}"
        );
        assert_eq!(told(&[]), None);
    }

    #[test]
    fn the_slowest_configuration_decides_how_long_is_measured() {
        let mut learnt = Learnt::default();
        for rate in [900.0, 8.0, 300.0] {
            learnt.rate(Workload::Mixed, rate);
            learnt.rate(Workload::Commit, 100.0 * rate);
        }
        let least = Phases::all(Nanos::millis(2_000));
        let windows = learnt.windows(least);
        assert_eq!(
            windows.of(Workload::Mixed),
            Some(Nanos::millis(3_200)),
            "25 operations at 8 a second, whole portions"
        );
        assert_eq!(windows.of(Workload::Commit), Some(Nanos::secs(2.0)), "no less than what is asked");
        learnt.rate(Workload::Mixed, 0.01);
        assert_eq!(learnt.windows(least).of(Workload::Mixed), Some(WINDOW_MAX), "not for hours");
    }
}
