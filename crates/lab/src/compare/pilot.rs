//! Short trials that are not evidence: what does a visit cost, and how much does the baseline differ from itself?
//!
//! Every configuration is visited once, so that what cannot be brought about is found before the plan is stored. From
//! what that took follow the plan, its forecast, and the difference that it will be able to see.

use super::plan::{Plan, Price};
use super::stay::Stay;
use super::visit::Workload;
use super::{Comparison, ground, stop_if_cancelled};
use crate::LabError;
use crate::bench::Bench;
use crate::control::Control;
use crate::stage::Stage;
use record::json::{Value, json};
use units::{Nanos, Seed, clock};

/// Trials of each workload whose noise is asked for.
const NOISE_TRIALS: u64 = 4;
/// Share of the data file's blocks that one phase of cold reads may use up, judged by the fastest pilot.
const UNREAD_SHARE_MAX: f64 = 0.6;

/// What the pilot learnt.
#[derive(Default)]
struct Learnt {
    /// Seconds of all visits, one for each configuration.
    visits_seconds: f64,
    /// Seconds of these in which something was measured, or grew.
    measured_seconds: f64,
    grown_seconds: f64,
    /// Fastest cold reads, blocks per second.
    read_cold: f64,
    /// Logarithms of the baseline's rates, by workload.
    noise: Vec<(Workload, Vec<f64>)>,
}

impl Comparison<'_> {
    pub(super) fn pilot(&mut self, bench: &mut Bench, control: &mut Control<'_>) -> Result<(), LabError> {
        let mut learnt = Learnt::default();
        for index in 0..self.design.candidates.len() {
            let what =
                format!("pilot {} of {}: {}", index + 1, self.design.candidates.len(), self.name(index));
            bench.step(control, &what);
            let began = clock::now();
            let mut beside = Nanos(0);
            let (visited, noise) = self.under(index, bench, control, |stay, mut stage, bench, control| {
                self.prove(index, stage.as_deref())?;
                let visited = self.pilot_visit(index, stay, stage.as_deref_mut(), bench, control)?;
                let from = clock::now();
                let noise =
                    if index == 0 { self.pilot_noise(stay, stage, bench, control)? } else { Vec::new() };
                beside = clock::now() - from;
                Ok((visited, noise))
            })?;
            learnt.visits_seconds += (clock::now() - began - beside).as_secs();
            learnt.measured_seconds += self.plan.phases.seconds(&self.design.workloads);
            learnt.grown_seconds += visited.grown_seconds;
            learnt.read_cold = learnt.read_cold.max(visited.read_cold);
            if index == 0 {
                learnt.noise = noise;
            }
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
            let began = clock::now();
            ground::prepare(workload, seed, stay, stage.as_deref_mut(), self.setup(index), bench)?;
            let trial = stay.run(workload, seed)?;
            stop_if_cancelled(control)?;
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
    ) -> Result<Vec<(Workload, Vec<f64>)>, LabError> {
        const WORKLOADS_MAX: usize = 2;
        let asked = [
            Workload::ReadCold,
            Workload::Commit,
            Workload::Mixed,
            Workload::GrowthWrite,
            Workload::ScanDirectPath,
            Workload::Writers,
        ];
        let asked = asked.into_iter().filter(|w| self.design.workloads.contains(w)).take(WORKLOADS_MAX);
        let mut noise: Vec<(Workload, Vec<f64>)> = asked.map(|w| (w, Vec::new())).collect();
        for round in 0..NOISE_TRIALS {
            for (workload, logs) in &mut noise {
                let seed = pilot_seed(0).part(round);
                ground::prepare(*workload, seed, stay, stage.as_deref_mut(), self.setup(0), bench)?;
                let trial = stay.run(*workload, seed)?;
                logs.push(workload.rate(&trial).max(1e-9).ln());
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
        };
        let pilot = self.plan.phases;
        let left = self.minutes * 60.0 - bench.elapsed_seconds() - ENDING_SECONDS;
        self.plan = Plan::for_budget(left, &self.design.workloads, &price, self.contents().growth_max());
        if learnt.read_cold > 0.0 {
            // Cold reads must not run out of unread blocks: what is read again comes from the page cache.
            let blocks = self.size.0 / self.design.block_max().0;
            let longest =
                Nanos::secs(UNREAD_SHARE_MAX * blocks as f64 / learnt.read_cold) - self.plan.phases.settle;
            let phases = &mut self.plan.phases;
            phases.read_cold = phases.read_cold.min(longest.max(Nanos::millis(50)));
            phases.read_cold_one = phases.read_cold_one.min(phases.read_cold);
        }
        bench.set_forecast(bench.elapsed_seconds() + self.plan.seconds + ENDING_SECONDS);
        let visible: Vec<(Workload, f64)> = learnt
            .noise
            .iter()
            .map(|(workload, logs)| {
                // A ratio carries the noise of both sides; visits of another length carry more or less of it; and a
                // verdict is corrected for all the configurations that are held against the baseline.
                let lengths = pilot.of(*workload).zip(self.plan.phases.of(*workload));
                let shorter = lengths.map_or(1.0, |(pilot, planned)| pilot.as_secs() / planned.as_secs());
                let others = (configurations - 1) as f64;
                let sd = sd(logs) * std::f64::consts::SQRT_2 * shorter.max(1.0).sqrt();
                (*workload, stats::interval::mde(sd, self.plan.blocks as usize, 1.0 - 0.05 / others, 0.8))
            })
            .collect();
        self.store_plan(bench, control, &visible)
    }

    fn store_plan(
        &self,
        bench: &mut Bench,
        control: &mut Control<'_>,
        visible: &[(Workload, f64)],
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
            "durability": "every data and redo write is durable before it counts (O_DSYNC)",
            "measure_seconds": measured,
            "mix": { "read_share": self.options.read_share, "hit_ratio": self.options.hit_ratio, "sessions": sessions },
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
        if !visible.is_empty() {
            let words: Vec<_> = visible
                .iter()
                .map(|(workload, mde)| {
                    format!("{:.0} % in {}", (mde * 100.0).max(1.0), workload.about().title)
                })
                .collect();
            control.progress.say(&format!(
                "It will be able to see differences of about {} (80 % power, from a pilot); smaller ones come out as unknown. \
                 More --minutes see smaller ones.",
                words.join(" and ")
            ));
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
    grown_seconds: f64,
    read_cold: f64,
}

/// Chance of the pilot's visit to configuration `index`.
fn pilot_seed(index: usize) -> Seed {
    Seed(0x9117).part(index as u64)
}

/// Standard deviation with n − 1.
fn sd(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64).sqrt()
}
