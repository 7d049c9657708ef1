//! How much time a calibration takes, and what it buys.

use stats::search::Plan;
use units::Nanos;

/// The three budgets of `calibrate`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// About 40 s: bracket only, figures are lower bounds.
    Quick,
    /// About 3 minutes: bracket, race, confirm, knee.
    #[default]
    Standard,
    /// The constants of docs/method.md, section 10; about 15 minutes.
    Thorough,
}

/// The budgets in numbers.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Forecast for the whole run on a fast device, seconds.
    pub forecast_seconds: f64,
    /// Search for the maximum of single-block reads.
    pub search: Plan,
    /// Search for the maximum of 1 MiB reads, and of writes.
    pub search_short: Plan,
    /// One cell of the probe that picks API and threads.
    pub probe: Nanos,
    /// Rounds of that probe.
    pub probe_rounds: u32,
    /// One oversubscribed point.
    pub beyond: Nanos,
    /// Confirming rounds: each visits every figure once.
    pub rounds: u32,
    /// One confirming visit of a read or write figure.
    pub visit: Nanos,
    /// One confirming visit of a redo figure.
    pub visit_redo: Nanos,
    /// Each visit lasts until this many operations were seen, or [`Schedule::visit_max`].
    pub ops_min: f64,
    /// Longest confirming visit.
    pub visit_max: Nanos,
}

impl Effort {
    /// Its numbers.
    pub fn schedule(self) -> Schedule {
        match self {
            Self::Quick => Schedule {
                forecast_seconds: 40.0,
                search: Plan {
                    base_seconds: 0.4,
                    settle_seconds: 0.1,
                    cap_seconds: 1.2,
                    confirm_seconds: 0.5,
                    n_max: 256,
                    ..Plan::quick()
                },
                search_short: short(Plan::quick(), 0.25, 32),
                probe: Nanos::millis(250),
                probe_rounds: 1,
                beyond: Nanos::millis(400),
                rounds: 4,
                visit: Nanos::millis(400),
                visit_redo: Nanos::millis(120),
                ops_min: 200.0,
                visit_max: Nanos::millis(1500),
            },
            Self::Standard => Schedule {
                forecast_seconds: 175.0,
                search: Plan { confirm_seconds: 3.0, ..Plan::standard() },
                search_short: short(Plan::quick(), 0.6, 64),
                probe: Nanos::millis(400),
                probe_rounds: 2,
                beyond: Nanos::millis(1200),
                rounds: 5,
                visit: Nanos::millis(1000),
                visit_redo: Nanos::millis(350),
                ops_min: 450.0,
                visit_max: Nanos::millis(3500),
            },
            Self::Thorough => Schedule {
                forecast_seconds: 900.0,
                search: Plan::thorough(),
                search_short: short(Plan::standard(), 1.5, 128),
                probe: Nanos::millis(1000),
                probe_rounds: 3,
                beyond: Nanos::millis(3000),
                rounds: 8,
                visit: Nanos::millis(4000),
                visit_redo: Nanos::millis(1500),
                ops_min: 2000.0,
                visit_max: Nanos::millis(15000),
            },
        }
    }
}

/// A short search: large reads and writes saturate at small numbers in flight.
fn short(plan: Plan, base_seconds: f64, n_max: u32) -> Plan {
    Plan { n_max, base_seconds, settle_seconds: 0.1, cap_seconds: 1.5, confirm_seconds: 0.3, ..plan }
}
