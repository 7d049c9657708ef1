//! From a budget to a plan: how long each phase lasts and how many blocks there will be.
//!
//! The plan follows from the budget, never the other way round (docs/method.md, "Time budgets"), and from what a pilot
//! says that a visit costs ([`Price`]). It is stored, with its hash, before the first visit.

use super::visit::Workload;
use units::{Bytes, Nanos};

/// Seconds that bulk phases (growth-write and its scans, with what they prepare) shall take at scale 1.
const BULK: f64 = 1.2;
/// What a visit costs beside, before anybody measured it: settling, opening files and queues, dropping caches, the record.
const SWITCH: f64 = 0.9;
/// Scale 1 visits are short; more time first buys more blocks (the unit of evidence), then longer visits.
const SCALE_MIN: f64 = 0.5;
/// Visits shorter than this are accepted for the sake of 8 blocks: seven degrees of freedom instead of three halve the
/// interval that eight configurations, corrected for each other, leave.
const SCALE_EIGHT_BLOCKS: f64 = 0.6;
const SCALE_MAX: f64 = 4.0;
/// Planned numbers of blocks, as the looks of docs/method.md, 5.2.
const BLOCKS: [u32; 6] = [24, 16, 12, 8, 6, 4];
/// Fewest blocks of a comparison; where file systems are made anew, also the fewest instances of each.
pub const BLOCKS_MIN: u32 = 4;
/// Least that growth writes in a visit.
const GROWTH_MIN: Bytes = Bytes::mib(8);
/// Windows are whole multiples of this. The kernel lets the requests of a capped device through in portions, one each 100 ms, and
/// they begin with a visit: a window of 3.5 portions would hold four of them, of every capped device and of no other one.
pub(super) const PORTION: Nanos = Nanos::millis(100);

/// How long each phase of a visit is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phases {
    /// One session reads single blocks, cold.
    pub read_cold_one: Nanos,
    /// All sessions read single blocks, cold.
    pub read_cold: Nanos,
    /// All sessions read single blocks of a small, hot region.
    pub read_cached: Nanos,
    /// One session commits.
    pub commit_one: Nanos,
    /// All sessions commit.
    pub commit: Nanos,
    /// Reads, changes, commits and dirty-page writes together.
    pub mixed: Nanos,
    /// Many writers on one file; batches of one.
    pub writers: Nanos,
    /// Before each of them, not measured.
    pub settle: Nanos,
}

/// Seconds that a workload is measured at scale 1; bulk work takes what it takes.
const fn base(workload: Workload) -> f64 {
    match workload {
        Workload::ReadColdOne | Workload::CommitOne => 0.35,
        Workload::ReadCold | Workload::ReadMoved | Workload::Commit | Workload::Mixed => 0.7,
        Workload::ReadCached => 0.3,
        Workload::Writers
        | Workload::WritersExtend
        | Workload::BatchRead
        | Workload::BatchOverwrite
        | Workload::BatchExtend => 0.6,
        Workload::GrowthWrite
        | Workload::GrowthScanCold
        | Workload::GrowthScanWarm
        | Workload::ScanDirectPath
        | Workload::ScanScattered
        | Workload::ScanCached
        | Workload::FlashPassOne
        | Workload::FlashPassTwo
        | Workload::FlashPassThree => 0.0,
    }
}

impl Phases {
    /// Lengths at `scale`.
    pub fn scaled(scale: f64) -> Self {
        let portions = |seconds: f64| (seconds / PORTION.as_secs() - 1e-6).ceil() as u64;
        let span = |workload| Nanos(PORTION.0 * portions(base(workload) * scale));
        Self {
            read_cold_one: span(Workload::ReadColdOne),
            read_cold: span(Workload::ReadCold),
            read_cached: span(Workload::ReadCached),
            commit_one: span(Workload::CommitOne),
            commit: span(Workload::Commit),
            mixed: span(Workload::Mixed),
            writers: span(Workload::Writers),
            settle: Nanos::millis(60),
        }
    }

    /// Windows of one length, for [`Phases::at_least`].
    pub fn all(window: Nanos) -> Self {
        let mut phases = Self::scaled(0.0);
        Workload::ALL.into_iter().for_each(|workload| phases.set(workload, window));
        phases
    }

    /// Gives `workload` another window; a fixed amount of work has none.
    pub fn set(&mut self, workload: Workload, window: Nanos) {
        if let Some(known) = self.window(workload) {
            *known = window;
        }
    }

    /// Each window at least as long as that of `least`.
    #[must_use]
    pub fn at_least(mut self, least: &Self) -> Self {
        for workload in Workload::ALL {
            if let Some((window, least)) = self.of(workload).zip(least.of(workload)) {
                self.set(workload, window.max(least));
            }
        }
        self
    }

    fn window(&mut self, workload: Workload) -> Option<&mut Nanos> {
        match workload {
            Workload::ReadColdOne => Some(&mut self.read_cold_one),
            Workload::ReadCold | Workload::ReadMoved => Some(&mut self.read_cold),
            Workload::ReadCached => Some(&mut self.read_cached),
            Workload::CommitOne => Some(&mut self.commit_one),
            Workload::Commit => Some(&mut self.commit),
            Workload::Mixed => Some(&mut self.mixed),
            Workload::Writers
            | Workload::WritersExtend
            | Workload::BatchRead
            | Workload::BatchOverwrite
            | Workload::BatchExtend => Some(&mut self.writers),
            _ => None,
        }
    }

    /// How long `workload` is measured; none for a fixed amount of work.
    pub fn of(&self, workload: Workload) -> Option<Nanos> {
        let mut copy = *self;
        copy.window(workload).copied()
    }

    /// Cold reads for `longest` at most, in whole portions where one fits.
    pub fn limit_cold_reads(&mut self, longest: Nanos) {
        let whole = Nanos(longest.0 / PORTION.0 * PORTION.0);
        let most = if whole.0 > 0 { whole } else { longest.max(Nanos::millis(50)) };
        self.read_cold = self.read_cold.min(most);
        self.read_cold_one = self.read_cold_one.min(self.read_cold);
    }

    /// Measured seconds of a visit with `workloads`.
    pub fn seconds(&self, workloads: &[Workload]) -> f64 {
        workloads.iter().filter_map(|w| self.of(*w)).map(Nanos::as_secs).sum()
    }
}

/// What one block costs, beside the time that is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// Visits of a block.
    pub visits: u32,
    /// Seconds of a block that no plan makes shorter: making and removing stages and databases, settling, switching.
    pub fixed: f64,
    /// Seconds of a block for each byte that growth writes and scans; zero without growth.
    pub bulk: f64,
    /// Windows that are not made shorter: in less, the slowest configuration does too little.
    pub least: Phases,
}

impl Price {
    /// Before anybody measured: `visits` in the files that stand there, growing at 100 MB/s; any window will do.
    pub fn assumed(visits: u32, workloads: &[Workload], fresh_seconds: f64) -> Self {
        let grows = workloads.contains(&Workload::GrowthWrite);
        Self {
            visits,
            fixed: f64::from(visits) * (SWITCH + fresh_seconds),
            bulk: if grows { f64::from(visits) / 50e6 } else { 0.0 },
            least: Phases::all(Nanos(0)),
        }
    }
}

/// A comparison's plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Randomised blocks; each visits every configuration.
    pub blocks: u32,
    /// Phase lengths.
    pub phases: Phases,
    /// What growth writes and scans in each visit.
    pub growth: Bytes,
    /// Forecast for all blocks, seconds.
    pub seconds: f64,
}

impl Plan {
    /// The plan for `seconds` of measuring `workloads` when a block costs `price`. `growth_max` bounds what growth may
    /// write per visit.
    ///
    /// More blocks are preferred to longer visits until there are 8; then both grow. Below half the length visits would
    /// say nothing: the plan then takes longer than asked, and `seconds` says so.
    pub fn for_budget(seconds: f64, workloads: &[Workload], price: &Price, growth_max: Bytes) -> Self {
        let visits = f64::from(price.visits);
        let growth_max = growth_max.max(GROWTH_MIN);
        let growth = |scale: f64| {
            let wanted = if price.bulk > 0.0 { BULK * scale * visits / price.bulk } else { 0.0 };
            Bytes(((wanted as u64) >> 20 << 20).clamp(GROWTH_MIN.0, growth_max.0))
        };
        let per_block = |scale: f64| {
            let timed = Phases::scaled(scale).at_least(&price.least).seconds(workloads);
            price.fixed + visits * timed + price.bulk * growth(scale).0 as f64
        };
        // A visit of few workloads gives each of them more time: about as much as the main job's visit takes in all.
        let stretch = (FULL_VISIT / Phases::scaled(1.0).seconds(workloads).max(0.1)).clamp(1.0, STRETCH_MAX);
        let fits = |blocks: u32, scale: f64| f64::from(blocks) * per_block(scale) <= seconds;
        let wanted = |blocks: u32| if blocks > 8 { 2.0 } else { SCALE_EIGHT_BLOCKS };
        let blocks = BLOCKS.into_iter().find(|&b| fits(b, wanted(b) * stretch)).unwrap_or(BLOCKS_MIN);
        let (mut low, mut high) = (SCALE_MIN, SCALE_MAX * stretch);
        if fits(blocks, high) {
            low = high;
        }
        // What a block costs grows with the scale, though not evenly: growth has a least and a most.
        while high - low > 0.002 * high {
            let middle = f64::midpoint(low, high);
            if fits(blocks, middle) { low = middle } else { high = middle }
        }
        Self {
            blocks,
            phases: Phases::scaled(low).at_least(&price.least),
            growth: growth(low),
            seconds: f64::from(blocks) * per_block(low),
        }
    }

    /// The plan of a pilot: as short as can be, and no window shorter than in `least`.
    pub fn pilot(least: &Phases) -> Self {
        let phases = Phases::scaled(SCALE_MIN).at_least(least);
        Self { blocks: 0, phases, growth: GROWTH_MIN, seconds: 0.0 }
    }
}

/// Measured seconds of a visit of the main job at scale 1.
const FULL_VISIT: f64 = 3.1;
/// No single workload is measured longer than this many times its usual length.
const STRETCH_MAX: f64 = 3.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::TargetKind;
    use crate::compare::case::Case;

    fn plan(minutes: f64, case: Case, visits: u32, fresh: f64) -> Plan {
        let workloads = case.workloads(TargetKind::Engine);
        let price = Price::assumed(visits, &workloads, fresh);
        Plan::for_budget(minutes * 60.0, &workloads, &price, Bytes::mib(512))
    }

    #[test]
    fn more_time_buys_blocks_first_and_the_budget_is_kept() {
        let mut last = 0;
        for minutes in [3.0, 4.0, 6.0, 10.0, 30.0, 60.0] {
            let plan = plan(minutes, Case::IoModes, 8, 0.0);
            assert!(plan.blocks >= last && plan.blocks >= BLOCKS_MIN);
            assert!(plan.seconds <= minutes * 60.0 * 1.001, "{minutes} min: {} s", plan.seconds);
            last = plan.blocks;
        }
        assert_eq!(plan(2.5, Case::IoModes, 8, 0.0).blocks, 4);
        assert_eq!(plan(4.5, Case::IoModes, 8, 0.0).blocks, 8);
        assert!(plan(0.5, Case::IoModes, 8, 0.0).seconds > 30.0, "too short a budget is not silently kept");
    }

    #[test]
    fn windows_that_a_slow_configuration_needs_are_kept_and_paid_for() {
        let workloads = Case::Placement.workloads(TargetKind::Engine);
        let mut least = Phases::all(Nanos::secs(2.0));
        least.set(Workload::Mixed, Nanos::secs(20.0));
        let price = Price { least, ..Price::assumed(7, &workloads, 6.0) };
        let plan = Plan::for_budget(60.0, &workloads, &price, Bytes::mib(16));
        assert_eq!(plan.phases.of(Workload::Mixed), Some(Nanos::secs(20.0)));
        assert_eq!(plan.phases.of(Workload::Commit), Some(Nanos::secs(2.0)));
        assert!(plan.seconds > f64::from(BLOCKS_MIN) * 7.0 * (6.0 + 22.0), "{plan:?}");
        // A longer budget lengthens those that are not bound by it, too.
        let longer = Plan::for_budget(7200.0, &workloads, &price, Bytes::mib(16));
        assert!(longer.blocks > plan.blocks && longer.phases.commit > plan.phases.commit, "{longer:?}");
    }

    #[test]
    fn what_is_made_anew_is_paid_for() {
        let anew = plan(10.0, Case::Filesystem, 7, 8.0);
        assert!(anew.seconds > 500.0 && anew.seconds <= 600.0, "{anew:?}");
        assert!(anew.blocks >= BLOCKS_MIN && anew.blocks < plan(10.0, Case::Filesystem, 7, 0.0).blocks);
        // Few workloads get more of the visit.
        assert!(
            plan(5.0, Case::Commit, 6, 0.0).phases.commit > plan(5.0, Case::IoModes, 6, 0.0).phases.commit
        );
    }
}
