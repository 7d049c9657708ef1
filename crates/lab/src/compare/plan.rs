//! From a budget to a plan: how long each phase lasts and how many blocks there will be.
//!
//! The plan follows from the budget, never the other way round (docs/method.md, "Time budgets"). It is stored, with its
//! hash, before the first visit.

use units::{Bytes, Nanos};

/// Lengths of the timed phases of a visit, seconds, at scale 1. Their sum with the bulk phases is about 5 s.
const READ_COLD_ONE: f64 = 0.35;
const READ_COLD: f64 = 0.7;
const READ_CACHED: f64 = 0.3;
const COMMIT_ONE: f64 = 0.35;
const COMMIT: f64 = 0.7;
const MIXED: f64 = 0.7;
const WRITERS: f64 = 0.6;
/// What the bulk phases (growth-write and two scans) cost, at scale 1.
const BULK: f64 = 1.2;
/// What a visit costs beside: settling, opening files and queues, dropping caches, the record.
const SWITCH: f64 = 0.9;
/// Scale 1 visits are short; more time first buys more blocks (the unit of evidence), then longer visits.
const SCALE_MIN: f64 = 0.5;
/// Visits shorter than this are accepted for the sake of 8 blocks: seven degrees of freedom instead of three halve the
/// interval that eight configurations, corrected for each other, leave.
const SCALE_EIGHT_BLOCKS: f64 = 0.6;
const SCALE_MAX: f64 = 4.0;
/// Planned numbers of blocks, as the looks of docs/method.md, 5.2.
const BLOCKS: [u32; 6] = [24, 16, 12, 8, 6, 4];

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
    /// Many writers on one file.
    pub writers: Nanos,
    /// Before each of them, not measured.
    pub settle: Nanos,
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

/// Seconds of one visit at `scale`.
fn visit_seconds(scale: f64) -> f64 {
    let timed = READ_COLD_ONE + READ_COLD + READ_CACHED + COMMIT_ONE + COMMIT + MIXED + WRITERS;
    (timed + BULK) * scale + SWITCH
}

impl Plan {
    /// The plan for `seconds` of measuring when a block has `visits` visits and bulk writes run at about
    /// `write_bytes_per_second` in the slowest of them. `growth_max` bounds what growth may write per visit.
    ///
    /// More blocks are preferred to longer visits until there are 8; then both grow. Below [`SCALE_MIN`] visits would say
    /// nothing: the plan then takes longer than asked, and `seconds` says so.
    pub fn for_budget(seconds: f64, visits: u32, write_bytes_per_second: f64, growth_max: Bytes) -> Self {
        let per_block = |scale: f64| visit_seconds(scale) * f64::from(visits);
        let fits = |blocks: u32, scale: f64| f64::from(blocks) * per_block(scale) <= seconds;
        let wanted = |blocks: u32| if blocks > 8 { 2.0 } else { SCALE_EIGHT_BLOCKS };
        let blocks = BLOCKS.into_iter().find(|&b| fits(b, wanted(b))).unwrap_or(4);
        let fixed = f64::from(blocks * visits) * SWITCH;
        let scale = (seconds - fixed) / (f64::from(blocks) * per_block(1.0) - fixed);
        let scale = scale.clamp(SCALE_MIN, SCALE_MAX);
        let span = |base: f64| Nanos::secs(base * scale);
        let growth = write_bytes_per_second * 0.6 * scale;
        let growth = Bytes::mib(((growth / f64::from(1 << 20)) as u64).clamp(8, (growth_max.0 >> 20).max(8)));
        Self {
            blocks,
            phases: Phases {
                read_cold_one: span(READ_COLD_ONE),
                read_cold: span(READ_COLD),
                read_cached: span(READ_CACHED),
                commit_one: span(COMMIT_ONE),
                commit: span(COMMIT),
                mixed: span(MIXED),
                writers: span(WRITERS),
                settle: Nanos::millis(60),
            },
            growth,
            seconds: f64::from(blocks) * per_block(scale),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_time_buys_blocks_first_and_the_budget_is_kept() {
        let plan = |minutes: f64| Plan::for_budget(minutes * 60.0, 8, 500e6, Bytes::mib(512));
        let mut last = 0;
        for minutes in [3.0, 4.0, 6.0, 10.0, 30.0, 60.0] {
            let plan = plan(minutes);
            assert!(plan.blocks >= last && plan.blocks >= 4);
            assert!(plan.seconds <= minutes * 60.0 * 1.001, "{minutes} min: {} s", plan.seconds);
            last = plan.blocks;
        }
        assert_eq!(plan(2.5).blocks, 4);
        assert_eq!(plan(4.5).blocks, 8);
        assert!(plan(0.5).seconds > 30.0, "too short a budget is not silently kept");
    }
}
