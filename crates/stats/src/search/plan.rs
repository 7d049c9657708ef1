//! The constants of the search (section 10), and three budgets.

/// How a search is made. Every number is stored with the record.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Most requests in flight that are tried.
    pub n_max: u32,
    /// Step of the ramp.
    pub ratio: f64,
    /// Length of a ramp point, seconds.
    pub base_seconds: f64,
    /// A point lasts until about this many operations have completed …
    pub ops_min: f64,
    /// … but no longer than this, seconds.
    pub cap_seconds: f64,
    /// Unmeasured time after each change of the number in flight, seconds.
    pub settle_seconds: f64,
    /// Length of a race point, seconds.
    pub race_seconds: f64,
    /// Fewest rounds before anything is dropped.
    pub rounds_min: u32,
    /// Most rounds; 0: no race, the best of the ramp is confirmed and labelled a lower bound.
    pub rounds_max: u32,
    /// Ramp points at or above this share of the best are contenders.
    pub keep: f64,
    /// Candidates are no closer together than this ratio.
    pub fine: f64,
    /// About this many candidates at most.
    pub candidates: u32,
    /// A doubling that gains less than this is flat.
    pub plateau: f64,
    /// After two flat doublings the ramp ends below this share of the best.
    pub stop_drop: f64,
    /// The ramp ends at once below this share of the best: a collapse is never pushed further.
    pub collapse: f64,
    /// The race ends when it can be wrong by no more than this.
    pub eps: f64,
    /// The smallest number in flight within this share of the best mean wins.
    pub pick: f64,
    /// Standard errors behind the leader before one is dropped.
    pub z: f64,
    /// Length of the confirmation, seconds.
    pub confirm_seconds: f64,
    /// The race ends here, counted from the start of the search, seconds; confirmation and knee come after it.
    pub time_max_seconds: f64,
    /// Look for the knee?
    pub knee: bool,
    /// Share of the maximum that makes the knee.
    pub knee_level: f64,
    /// The knee is found within this ratio.
    pub knee_ratio: f64,
    /// Fewest and most pairs per step of the knee.
    pub knee_rounds: (u32, u32),
    /// Time for the knee, seconds; then the smallest number known to hold is it.
    pub knee_seconds_max: f64,
    /// Look once well beyond the ramp's end for a collapse that the ramp stopped short of?
    pub beyond: bool,
    /// Confirmation and race further apart than this: the environment is unstable.
    pub unstable_shift: f64,
    /// Spread of the same point from round to round above this: the environment is unstable.
    pub unstable_spread: f64,
    /// A latency limit is found within this ratio of the number in flight.
    pub latency_ratio: f64,
    /// Time limit of a latency search, seconds.
    pub latency_seconds_max: f64,
}

impl Plan {
    /// The constants of the method: 2–4 minutes with the knee, 30 s of confirmation.
    pub fn thorough() -> Self {
        Self {
            n_max: 1024,
            ratio: 2.0,
            base_seconds: 2.0,
            ops_min: 800.0,
            cap_seconds: 3.0,
            settle_seconds: 1.0,
            race_seconds: 1.5,
            rounds_min: 2,
            rounds_max: 8,
            keep: 0.90,
            fine: 2f64.powf(1.0 / 3.0),
            candidates: 5,
            plateau: 0.02,
            stop_drop: 0.85,
            collapse: 0.50,
            eps: 0.025,
            pick: 0.005,
            z: 2.0,
            confirm_seconds: 30.0,
            time_max_seconds: 240.0,
            knee: true,
            knee_level: 0.97,
            knee_ratio: 1.12,
            knee_rounds: (2, 5),
            knee_seconds_max: 90.0,
            beyond: true,
            unstable_shift: 0.05,
            unstable_spread: 0.10,
            latency_ratio: 1.06,
            latency_seconds_max: 180.0,
        }
    }

    /// About 75 s on a fast device: shorter ramp points and settling, a race of at most five rounds, 10 s of confirmation, the
    /// knee in coarser steps. Within 3 % in 98 % of simulated searches; settling for 0.3 s and racing for 1 s a point cost 7 s
    /// less and gave 92 %.
    pub fn standard() -> Self {
        Self {
            base_seconds: 1.0,
            cap_seconds: 2.0,
            settle_seconds: 0.5,
            rounds_max: 5,
            confirm_seconds: 10.0,
            time_max_seconds: 50.0,
            knee_ratio: 1.25,
            knee_rounds: (2, 3),
            knee_seconds_max: 15.0,
            latency_ratio: 1.12,
            latency_seconds_max: 40.0,
            ..Self::thorough()
        }
    }

    /// Ramp and confirmation only, about 25 s: labelled a lower bound, up to 27 % low on a narrow peak.
    pub fn quick() -> Self {
        Self {
            base_seconds: 1.0,
            cap_seconds: 1.5,
            settle_seconds: 0.5,
            rounds_max: 0,
            confirm_seconds: 6.0,
            time_max_seconds: 30.0,
            knee: false,
            latency_ratio: 1.25,
            latency_seconds_max: 15.0,
            ..Self::thorough()
        }
    }
}
