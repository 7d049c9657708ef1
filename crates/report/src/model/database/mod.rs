//! What the embedded database saw of a run: one configuration, one visit, every workload with all its evidence.
//!
//! [`spent`] says where DB time went, exactly; [`activity`] who was active when, from samples; [`work`] puts a workload
//! together; [`memory`] buffers and redo over time; [`rounds`] growth; [`checks`] whether samples, waits and the time model
//! agree; [`said`] the sentences. Comparisons use [`spent`] too, for each configuration and workload.

pub mod activity;
pub mod buckets;
pub mod checks;
pub mod class;
pub mod memory;
pub mod native;
pub mod rate;
pub mod rounds;
pub mod said;
pub mod spent;
pub mod work;

use super::doubts::Doubts;
use super::evidence::Evidence;
use super::timeline::TimeLine;
use activity::{Activity, Bands};
use memory::Redo;
use rounds::Rounds;
use work::Work;

/// A run of one configuration.
#[derive(Clone, Debug)]
pub struct Database {
    /// The configuration, where the record names one.
    pub configuration: Option<String>,
    /// Its levels: factor and level.
    pub levels: Vec<(String, String)>,
    /// What was done, in the order of the record.
    pub works: Vec<Work>,
    /// Index of the one that the first sentence is about.
    pub lead: usize,
    /// Whether the workloads took turns in one stretch of time, so that only the sum of their times is known.
    pub together: bool,
    /// Transactions a second that were offered at fixed instants; none where each began when the last was over.
    pub offered: Option<f64>,
    /// The axis of everything over time.
    pub axis: Axis,
    /// Active sessions over time.
    pub activity: Option<Activity>,
    /// What a real server called its waits.
    pub native: Vec<native::NativeWait>,
    /// Buffers by state over time.
    pub buffers: Option<Bands<String>>,
    /// The redo log over time.
    pub redo: Option<Redo>,
    /// What was done, and what device, CPU and kernel counted, over time.
    pub time_line: Option<TimeLine>,
    /// Growth, round by round.
    pub rounds: Option<Rounds>,
    /// CPUs that the run was allowed to use.
    pub cpus: Option<f64>,
}

/// From the beginning of what was done to its end, nanoseconds of the run's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Begin.
    pub from_ns: u64,
    /// End.
    pub to_ns: u64,
}

impl Axis {
    /// Of the phases; what happens before the first and behind the last (making the database, dropping it) is no part of
    /// what was asked.
    fn of(evidence: &Evidence) -> Option<Self> {
        let from_ns = evidence.phases.iter().map(|(_, p)| p.start_ns).min()?;
        let to_ns = evidence.phases.iter().map(|(_, p)| p.end_ns).max()?;
        (to_ns > from_ns).then_some(Self { from_ns, to_ns })
    }

    /// Seconds from its begin.
    pub fn at(&self, t_ns: u64) -> f64 {
        t_ns.clamp(self.from_ns, self.to_ns).saturating_sub(self.from_ns) as f64 / 1e9
    }

    /// Its length, seconds.
    pub fn seconds(&self) -> f64 {
        (self.to_ns - self.from_ns) as f64 / 1e9
    }

    /// Whether an instant lies on it.
    pub fn holds(&self, t_ns: u64) -> bool {
        (self.from_ns..=self.to_ns).contains(&t_ns)
    }
}

/// Several workloads over the same time, and one of them holds what the database counted of all.
fn together(evidence: &Evidence, works: &[Work]) -> bool {
    let span = |work: &Work| {
        let of_work = evidence.phases.iter().filter(|(id, _)| work.phases.contains(id));
        of_work.fold((u64::MAX, 0), |sum, (_, p)| (sum.0.min(p.start_ns), sum.1.max(p.end_ns)))
    };
    let mut told = works.iter().filter(|work| work.spent.is_some());
    match (told.next(), told.next()) {
        (Some(one), None) => {
            let (from, to) = span(one);
            works.iter().any(|other| other.name != one.name && span(other).0 < to && span(other).1 > from)
        }
        _ => false,
    }
}

impl Database {
    /// From a record of kind `run`; none for other kinds, and where nothing was measured.
    pub fn read(evidence: &Evidence, doubts: &Doubts) -> Option<Self> {
        if evidence.experiment.kind != "run" {
            return None;
        }
        let mut works = Work::read_all(evidence, doubts);
        let rounds = Rounds::read(evidence);
        if let (Some(all), Some(work)) = (&rounds, works.iter_mut().find(|w| w.metric == "MB/s")) {
            work.rate = work.rate.clone().over(&all.insert_rates(), "round");
        }
        for work in &mut works {
            work.rate = work.rate.clone().over(&rounds::passes(evidence, &work.name), "pass");
        }
        let axis = Axis::of(evidence)?;
        if works.is_empty() {
            return None;
        }
        let configuration = evidence.configurations.first().map(|(_, c)| c);
        let cpus = evidence.fact("cpu", "allowed").or_else(|| evidence.fact("cpu", "online"));
        Some(Self {
            configuration: configuration.map(|c| c.name.clone()),
            levels: configuration
                .map(|c| c.levels.iter().map(|(f, l, _)| (f.clone(), l.clone())).collect())
                .unwrap_or_default(),
            together: together(evidence, &works),
            offered: evidence.plan["rate"].as_f64(),
            lead: works.iter().position(|w| w.headline).unwrap_or(0),
            works,
            axis,
            activity: Activity::read(evidence, axis),
            native: native::read(evidence),
            buffers: memory::buffers(evidence, axis),
            redo: Redo::read(evidence, axis),
            time_line: TimeLine::within(evidence, axis),
            rounds,
            cpus: cpus.and_then(|text| text.trim().parse().ok()),
        })
    }

    /// What stands over the times of a workload, of which `told` are shown; nothing where that is clear.
    pub fn title_of_time<'w>(&self, work: &'w Work, told: usize) -> Option<&'w str> {
        match (self.together, told) {
            (true, _) => Some("all of them together"),
            (false, 1) => None,
            (false, _) => Some(&work.title),
        }
    }

    /// The workload of the first sentence.
    pub fn leading(&self) -> &Work {
        &self.works[self.lead]
    }
}
