//! The number of requests in flight at which storage does most, found by racing and not by sweeping (section 6).
//!
//! ```text
//! bracket  ->  race  ->  confirm  ->  knee
//! 1 2 4 8 …    the promising     fresh data only,   smallest n with 97 %
//! stops at     ones, in random   the one figure     of it, by pairs
//! a collapse   rounds            that is reported
//! ```
//! A sweep to the end costs three times as much and misses: its error is the grid and the end point, not the length of
//! the samples. Within 3 % of the true maximum (7 simulated devices, typical noise): this 99 %, a 330 s sweep over
//! powers of two 86 %, "80 workers" 57 %. One noisy comparison never discards a region for good, as it would in golden
//! section; real curves are not unimodal either (an NFS server with two humps is among the devices).
//!
//! Start at [`maximum`]. [`within_latency`] answers Oracle's question, the most within a latency limit.

mod bracket;
mod curve;
mod knee;
mod latency;
mod measure;
mod plan;
mod race;

pub use curve::curve;
pub use knee::knee;
pub use latency::{LatencyBound, within_latency};
pub use plan::Plan;

use crate::sample;
use measure::Probe;
use std::fmt;
use units::Seed;

/// What the target saw while it kept `n` requests in flight.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// Operations per second, one value per interval, without the settling time.
    pub rates: Vec<f64>,
    /// Mean latency in nanoseconds over all operations of these intervals; 0 when not measured (then Little's law gives it).
    pub latency_mean_ns: f64,
    /// Seconds spent, settling included.
    pub seconds: f64,
    /// Operations that failed.
    pub errors: u64,
}

/// Something that can keep `n` requests in flight: a device, or a simulated one.
pub trait Target {
    /// What can go wrong while measuring; ends the search.
    type Error;

    /// Keeps `n` requests in flight for `settle_seconds` unmeasured and `seconds` measured.
    ///
    /// # Errors
    /// Whatever prevents it.
    fn read(&mut self, n: u32, settle_seconds: f64, seconds: f64) -> Result<Reading, Self::Error>;

    /// Seconds spent on this target so far, settling included.
    fn elapsed_seconds(&self) -> f64;
}

/// Which part of the search a point belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The ramp in powers of two.
    Bracket,
    /// Rounds among the promising.
    Race,
    /// Fresh data at the winner: the figure that is reported.
    Confirm,
    /// Pairs for the knee.
    Knee,
    /// Beyond the maximum, to show what happens there.
    Beyond,
    /// Bisection towards a latency limit.
    Latency,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Bracket => "bracket",
            Self::Race => "race",
            Self::Confirm => "confirm",
            Self::Knee => "knee",
            Self::Beyond => "beyond",
            Self::Latency => "latency",
        })
    }
}

/// One measured point of the curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Requests in flight.
    pub n: u32,
    /// Operations per second: median of the intervals in the race and the knee, mean otherwise.
    pub rate: f64,
    /// Mean latency, nanoseconds.
    pub latency_ns: f64,
    /// Standard deviation of the intervals on the log scale.
    pub sd: f64,
    /// Seconds spent, settling included.
    pub seconds: f64,
    /// Part of the search.
    pub stage: Stage,
    /// Round within the stage, from 0.
    pub round: u32,
}

/// Throughput falls to less than half of the maximum when more requests are sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Collapse {
    /// Requests in flight where it was seen.
    pub n: u32,
    /// Operations per second there.
    pub rate: f64,
    /// The same as a share of the maximum.
    pub share_of_max: f64,
}

/// The answer of [`maximum`].
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The smallest number in flight that gives the maximum.
    pub n_best: u32,
    /// Operations per second there, from fresh data only.
    pub rate_confirmed: f64,
    /// Mean latency there, nanoseconds, from the same data.
    pub latency_ns: f64,
    /// The knee: smallest number in flight with 97 % of the maximum; the operating point to recommend. `None` when the plan
    /// does not ask for it.
    pub n_knee: Option<u32>,
    /// Maximum / rate of one request at a time: how many parallel servers the storage acts like.
    pub n_saturation: f64,
    /// Where rate²/n is greatest: the most throughput per latency (Kleinrock's power).
    pub n_power: u32,
    /// What happens to those who send too many.
    pub collapse: Option<Collapse>,
    /// Everything measured, in order.
    pub points: Vec<Point>,
    /// Why the level cannot be trusted, only the shape: the environment moved during the search.
    pub environment_unstable: Option<String>,
    /// There was no race, or no time for the integers next to its winner, or the ramp ended while throughput still grew: there may
    /// be a better point.
    pub lower_bound_only: bool,
    /// Seconds spent.
    pub seconds: f64,
    /// Rates of the intervals behind `rate_confirmed`, for its interval.
    pub confirm_rates: Vec<f64>,
}

/// Finds the number of requests in flight with the most operations per second, and where more becomes less.
///
/// `on_point` sees each point as it is measured. The same seed gives the same order of measurements.
///
/// # Errors
/// Those of the target; what was measured before has gone to `on_point`.
pub fn maximum<T: Target>(
    target: &mut T,
    plan: &Plan,
    seed: Seed,
    on_point: &mut dyn FnMut(&Point),
) -> Result<Found, T::Error> {
    let mut probe = Probe::new(target, plan, seed, on_point);
    let ramp = bracket::bracket(&mut probe)?;
    let raced =
        if plan.rounds_max > 0 { race::search(&mut probe, &ramp)? } else { race::Outcome::of_ramp(&ramp) };
    let mut confirmed = confirm(&mut probe, &raced)?;
    let mut unstable = confirmed.unstable(&raced, plan);
    if unstable.is_some() && plan.rounds_max > 0 {
        confirmed = confirm(&mut probe, &raced)?;
        unstable = confirmed.unstable(&raced, plan);
    }
    let n_knee = match plan.knee {
        true => Some(knee::walk(&mut probe, raced.n_best, &ramp, &raced.seen)?),
        false => None,
    };
    let collapse = bracket::beyond(&mut probe, &ramp, confirmed.rate)?;
    let rate_of_one = probe.points.iter().find(|p| p.n == 1).map_or(f64::NAN, |p| p.rate);
    Ok(Found {
        n_best: raced.n_best,
        rate_confirmed: confirmed.rate,
        latency_ns: confirmed.latency_ns,
        n_knee,
        n_saturation: confirmed.rate / rate_of_one,
        n_power: curve::power(&probe.points),
        collapse,
        environment_unstable: unstable,
        lower_bound_only: plan.rounds_max == 0 || raced.cut_short || ramp.still_rising,
        seconds: probe.spent(),
        confirm_rates: confirmed.rates,
        points: probe.points,
    })
}

/// Fresh data at the winner. No winner's curse: nothing that chose the point is in its figure.
struct Confirmed {
    rate: f64,
    latency_ns: f64,
    rates: Vec<f64>,
}

fn confirm<T: Target>(probe: &mut Probe<'_, T>, raced: &race::Outcome) -> Result<Confirmed, T::Error> {
    // Slow devices need longer for the same counting error: four times the operations of a ramp point, at most 40 s.
    let seconds = probe.plan.confirm_seconds.max((4.0 * probe.plan.ops_min / raced.rate.max(1.0)).min(40.0));
    let (point, reading) = probe.measure(raced.n_best, seconds, Stage::Confirm, 0)?;
    Ok(Confirmed { rate: point.rate, latency_ns: point.latency_ns, rates: reading.rates })
}

impl Confirmed {
    /// The guard of section 6.2: a CPU hog that arrived after the ramp turned 57,000/s into 18,000/s, and only this saw it.
    fn unstable(&self, raced: &race::Outcome, plan: &Plan) -> Option<String> {
        // The race goes by medians, so that a stall does not decide it; like must be compared with like.
        let moved = (typical(&self.rates) / raced.rate).ln().abs().exp_m1();
        if moved > plan.unstable_shift {
            return Some(format!(
                "the confirmation gave {:.0}/s where the search had seen {:.0}/s ({:.0} % apart): other load came or went; the \
                 shape of the curve holds, its level does not",
                self.rate,
                raced.rate,
                100.0 * moved
            ));
        }
        (raced.spread > plan.unstable_spread).then(|| {
            format!(
                "the same point differed by {:.0} % from round to round: the shape of the curve holds, its level does not",
                100.0 * raced.spread
            )
        })
    }
}

/// Rate of a reading's intervals as one number that a single stall does not move.
fn typical(rates: &[f64]) -> f64 {
    sample::median(rates)
}
