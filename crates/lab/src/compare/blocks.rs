//! The measuring: randomised blocks, in each of which every configuration is visited.

use super::case::Case;
use super::conclude::{VARIATION_METRIC, store, store_variation};
use super::devices::Devices;
use super::proof::Proof as Evidence;
use super::stay::Stay;
use super::{Comparison, ground, plan, stop_if_cancelled};
use crate::LabError;
use crate::bench::Bench;
use crate::control::Control;
use crate::evidence::Observed;
use crate::stage::{Proof, Stage};
use record::json::json;
use record::{ConfigurationRow, VisitRow};
use units::{Seed, clock};

/// How much longer than planned a run may take before it gives up blocks.
const OVERRUN_MAX: f64 = 1.2;

/// Rows of the record that visits refer to.
pub(super) struct Rows {
    pub(super) configurations: Vec<i64>,
    pub(super) workloads: Vec<i64>,
    /// In the order of the workloads: the row of its variation over time, where that is asked for.
    variations: Vec<Option<i64>>,
}

impl Comparison<'_> {
    pub(super) fn measure(&self, bench: &mut Bench, control: &mut Control<'_>) -> Result<(), LabError> {
        let rows = self.rows(bench)?;
        let setups = &self.design.candidates;
        let mut evidence = Evidence::new(setups.iter().map(|c| &c.setup));
        let measured = self.blocks(&rows, &mut evidence, bench, control);
        // Also after Ctrl-C: what was finished is shown, so it is doubted too.
        self.conclude(&rows, &evidence, bench)?;
        measured
    }

    fn rows(&self, bench: &mut Bench) -> Result<Rows, LabError> {
        let mut configurations = Vec::new();
        for (index, candidate) in self.design.candidates.iter().enumerate() {
            let levels = candidate.setup.levels(&self.design.varied);
            configurations.push(
                bench.writer.configuration(&ConfigurationRow {
                    name: candidate.name.clone(),
                    is_baseline: index == 0,
                    levels: levels
                        .into_iter()
                        .map(|(factor, level)| (factor.to_string(), level, factor.cost().to_string()))
                        .collect(),
                })?,
            );
        }
        let (mut workloads, mut variations) = (Vec::new(), Vec::new());
        let sessions = self.design.sessions().unwrap_or(self.options.sessions);
        for workload in &self.design.workloads {
            let about = workload.about();
            workloads.push(bench.writer.workload(
                about.name,
                &json!({ "title": about.title, "question": about.question, "metric": about.metric,
                         "higher_is_better": true, "sessions": workload.sessions(sessions), "headline": about.headline }),
            )?);
            variations.push(match self.design.case == Case::Async && !workload.bulk() {
                true => Some(bench.writer.workload(
                    &format!("{}-variation", about.name),
                    &json!({ "title": format!("{}: variation over time", about.title),
                             "question": "How steady is the rate: standard deviation over tenths of the window?",
                             "metric": VARIATION_METRIC, "higher_is_better": false,
                             "sessions": workload.sessions(sessions), "headline": true }),
                )?),
                false => None,
            });
        }
        Ok(Rows { configurations, workloads, variations })
    }

    /// As many blocks as planned; when each takes longer than foreseen, fewer, but never fewer than say something. The
    /// clock decides, which knows no result.
    fn blocks(
        &self,
        rows: &Rows,
        evidence: &mut Evidence,
        bench: &mut Bench,
        control: &mut Control<'_>,
    ) -> Result<(), LabError> {
        let began = bench.elapsed_seconds();
        let mut fallen = vec![false; self.design.candidates.len()];
        for ordinal in 0..self.plan.blocks {
            let spent = bench.elapsed_seconds() - began;
            let next = spent * f64::from(ordinal + 1) / f64::from(ordinal.max(1));
            if ordinal >= plan::BLOCKS_MIN && next > self.plan.seconds * OVERRUN_MAX {
                control.progress.say(&format!(
                    "Blocks took longer than planned; after {ordinal} of {} the time is used up.",
                    self.plan.blocks
                ));
                bench
                    .writer
                    .event("time_used_up", &json!({ "blocks": ordinal, "planned": self.plan.blocks }))?;
                break;
            }
            bench.look_at_disks()?;
            self.block(ordinal, rows, &mut fallen, evidence, bench, control)?;
        }
        Ok(())
    }

    /// One block: every configuration that has not `fallen`, in the order that chance decided.
    fn block(
        &self,
        ordinal: u32,
        rows: &Rows,
        fallen: &mut [bool],
        evidence: &mut Evidence,
        bench: &mut Bench,
        control: &mut Control<'_>,
    ) -> Result<(), LabError> {
        let order = stats::order::block(self.design.candidates.len(), ordinal as usize, bench.seed.part(2));
        let block = bench.writer.block(ordinal, &order, bench.seed.0)?;
        for (position, &index) in order.iter().enumerate() {
            if fallen[index] {
                continue;
            }
            let visit_id = bench.writer.visit(&VisitRow {
                block_id: Some(block),
                position: position as u32,
                configuration_id: Some(rows.configurations[index]),
                started_utc: clock::utc(),
                start_ns: clock::now().0,
            })?;
            let visit = Visit {
                ordinal,
                index,
                id: visit_id,
                seed: bench.seed.part(10_000 + u64::from(ordinal) * 100 + position as u64),
            };
            bench.step(control, &self.telling(&visit, "bringing it about"));
            let result = self.under(index, bench, control, |stay, stage, bench, control| {
                self.visit(&visit, rows, stay, stage, evidence, bench, control)
            });
            match &result {
                Ok(()) => bench.end_visit(visit_id, "measured", None)?,
                Err(LabError::Cancelled) => {
                    bench.end_visit(visit_id, "dropped", Some("stopped on request"))?;
                }
                Err(error) => bench.end_visit(visit_id, "failed", Some(&error.to_string()))?,
            }
            let standing = fallen.iter().filter(|fallen| !**fallen).count();
            fallen[index] = self.survive(index, standing, result, bench, control)?.is_none();
        }
        Ok(())
    }

    /// All workloads once, under a configuration that is in force: the kernel is asked before each, and what it answered
    /// first is in the record.
    #[expect(clippy::too_many_arguments, reason = "the whole context of one visit, used once")]
    fn visit(
        &self,
        visit: &Visit,
        rows: &Rows,
        stay: &mut Stay<'_>,
        mut stage: Option<&mut Stage>,
        evidence: &mut Evidence,
        bench: &mut Bench,
        control: &mut Control<'_>,
    ) -> Result<(), LabError> {
        let mut proofs = self.prove(visit.index, stage.as_deref())?;
        proofs.extend(stay.proof()?);
        for proof in proofs {
            bench.writer.event(
                "proof",
                &json!({ "visit": visit.id, "configuration": self.name(visit.index), "what": proof.what, "value": proof.value }),
            )?;
        }
        let devices = Devices::of(stage.as_deref(), self.setup(visit.index), visit.id, bench)?;
        stay.watch(devices.watch());
        let mut observer = if self.design.case == Case::Flash { stay.observe() } else { None };
        let ids = rows.workloads.iter().zip(&rows.variations);
        for (&workload, (&workload_id, &variation_id)) in self.design.workloads.iter().zip(ids) {
            bench.step(control, &self.telling(visit, workload.about().title));
            let seed = visit.seed.part(workload as u64);
            ground::prepare(workload, seed, stay, stage.as_deref_mut(), self.setup(visit.index), bench)?;
            self.prove(visit.index, stage.as_deref())?;
            let (before, below) = (bench.snapshot(), devices.snapshot());
            let (trial, meanwhile) = self.run_watched(stay, workload, seed)?;
            let after = devices.snapshot();
            let depth = Devices::depth(&below, &after);
            let below = (&below, &after);
            stop_if_cancelled(control)?;
            let observed = Observed { delta: bench.since(&before), trial };
            let phase = store(bench, visit.id, workload_id, workload, self.setup(visit.index), &observed)?;
            stay.store(phase, &mut bench.writer)?;
            let processors = self.options.nodes.processors();
            meanwhile.store(phase, observed.trial.requests, processors, &mut bench.writer)?;
            devices.store(phase, stay, below, bench)?;
            if let Some(id) = variation_id {
                store_variation(bench, visit.id, id, workload, self.setup(visit.index), &observed.trial)?;
            }
            evidence.add(visit.index, workload, observed, depth, &meanwhile);
        }
        if let Some(observer) = &mut observer {
            observer.store(visit.id, &mut bench.writer)?;
        }
        Ok(())
    }

    /// Asks the kernel whether the stage is as configuration `index` says.
    ///
    /// # Errors
    /// What is not in force; the trial does not take place.
    pub(super) fn prove(&self, index: usize, stage: Option<&Stage>) -> Result<Vec<Proof>, LabError> {
        stage.map_or_else(|| Ok(Vec::new()), |stage| stage.proof(self.setup(index)))
    }

    fn telling(&self, visit: &Visit, what: &str) -> String {
        format!("block {} of {}: {}, {what}", visit.ordinal + 1, self.plan.blocks, self.name(visit.index))
    }
}

/// Which visit it is.
struct Visit {
    ordinal: u32,
    index: usize,
    id: i64,
    seed: Seed,
}
