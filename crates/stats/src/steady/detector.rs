//! The live detector: push one interval at a time, stop when it says so.
//!
//! ```text
//! Detecting -> Measuring   [decide: steady or plausible, mechanism at rest]
//! Measuring -> Accepted    [validate: still so, and the window was not restarted]
//! Measuring -> Detecting   [validate: otherwise]
//! any       -> GaveUp      [push: the longest time has passed]
//! ```

use super::mechanism::{Hold, Mechanism, hold};
use super::period;
use super::window::{self, Found, Look, Window};
use super::{Assessment, Class};

/// How the detector works (section 10); times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Length of an interval.
    pub interval_seconds: f64,
    /// Margin: 0.03 is 3 %.
    pub delta: f64,
    /// Shortest window.
    pub window_min_seconds: f64,
    /// Between two looks.
    pub step_seconds: f64,
    /// The drift over this long must fit into the margin.
    pub projection_seconds: f64,
    /// Measured further once it looks steady.
    pub measure_seconds: f64,
    /// Without proof, but with nothing against it, accepted only from this length on.
    pub plausible_seconds: f64,
    /// Given up after this.
    pub time_max_seconds: f64,
    /// Base length of a batch.
    pub batch_seconds: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            interval_seconds: 1.0,
            delta: 0.03,
            window_min_seconds: 60.0,
            step_seconds: 10.0,
            projection_seconds: super::PROJECTION_SECONDS,
            measure_seconds: 60.0,
            plausible_seconds: 150.0,
            time_max_seconds: 900.0,
            batch_seconds: 5.0,
        }
    }
}

/// Where the detector is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum State {
    /// Not steady yet.
    Detecting {
        /// Throughput looks steady; this is why it is not believed.
        held_by: Option<Hold>,
    },
    /// Looks steady; measuring on.
    Measuring,
    /// Steady: the figure is that of the whole validated window.
    Accepted(Assessment),
    /// Never became steady.
    GaveUp(Assessment),
}

/// Decides, one interval at a time, when a measurement may end.
///
/// The whole series is kept and each look recomputes its window: at most 900 values, a look every ten. The alternative, running
/// sums, cannot restart behind a change point that is found late.
#[derive(Clone, Debug)]
pub struct Detector {
    settings: Settings,
    log: Vec<f64>,
    mechanism: Vec<Mechanism>,
    start: usize,
    jumps: Vec<f64>,
    was_held: bool,
    /// The rhythm at the last DETECT; the window is validated with the same batches that it was detected with.
    period: Option<usize>,
    next: usize,
    state: State,
}

impl Detector {
    /// Nothing seen yet.
    pub fn new(settings: Settings) -> Self {
        let mut detector = Self {
            settings,
            log: Vec::new(),
            mechanism: Vec::new(),
            start: 0,
            jumps: Vec::new(),
            was_held: false,
            period: None,
            next: 0,
            state: State::Detecting { held_by: None },
        };
        detector.next = detector.intervals(settings.window_min_seconds);
        detector
    }

    /// Where it is.
    pub fn state(&self) -> State {
        self.state
    }

    /// One more interval: operations per second, and what the counters said. Without effect once it has ended.
    pub fn push(&mut self, rate: f64, mechanism: Mechanism) -> State {
        if matches!(self.state, State::Accepted(_) | State::GaveUp(_)) {
            return self.state;
        }
        self.log.push(rate.max(1e-9).ln());
        self.mechanism.push(mechanism);
        let out_of_time = self.log.len() >= self.intervals(self.settings.time_max_seconds);
        if self.log.len() >= self.next || out_of_time {
            self.state = match self.state {
                State::Measuring => self.validate(),
                _ => self.decide(),
            };
        }
        if out_of_time && !matches!(self.state, State::Accepted(_)) {
            self.state = State::GaveUp(self.failure());
        }
        self.state
    }

    fn intervals(&self, seconds: f64) -> usize {
        (seconds / self.settings.interval_seconds).round() as usize
    }

    fn rhythm(&self) -> Option<usize> {
        const HISTORY_SECONDS: f64 = 400.0;
        const PERIOD_MAX_SECONDS: f64 = 120.0;
        let recent = self.log.len().saturating_sub(self.intervals(HISTORY_SECONDS));
        period::dominant(&self.log[recent..], self.intervals(PERIOD_MAX_SECONDS))
    }

    fn window(&self) -> Window<'_> {
        const BATCH_DOUBLE_MAX_SECONDS: f64 = 20.0;
        Window {
            log: &self.log,
            batch: self.intervals(self.settings.batch_seconds).max(1),
            period: self.period,
            projection: self.intervals(self.settings.projection_seconds),
            delta: self.settings.delta.ln_1p(),
            batch_double_max: self.intervals(BATCH_DOUBLE_MAX_SECONDS),
        }
    }

    /// DETECT: a look at the window since the last change point.
    fn decide(&mut self) -> State {
        self.next = self.log.len() + self.intervals(self.settings.step_seconds);
        let mut held_by = None;
        if self.log.len() - self.start >= self.intervals(self.settings.window_min_seconds) {
            self.period = self.rhythm();
            let found = self.window().look(self.start);
            let acceptable = self.acceptable(&found);
            self.restart(found);
            if acceptable {
                held_by = hold(&self.mechanism[self.start..]);
                self.was_held |= held_by.is_some();
                if held_by.is_none() {
                    self.next = self.log.len() + self.intervals(self.settings.measure_seconds);
                    return State::Measuring;
                }
            }
        }
        State::Detecting { held_by }
    }

    /// RE-VALIDATE: the whole window, detection and measurement, must still be one steady piece.
    fn validate(&mut self) -> State {
        self.next = self.log.len() + self.intervals(self.settings.step_seconds);
        let found = self.window().look(self.start);
        let steady = matches!(found.look, Look::Steady | Look::Plausible) && found.start == self.start;
        let held_by = hold(&self.mechanism[self.start..]);
        if steady && held_by.is_none() {
            return State::Accepted(self.assessment(&found));
        }
        self.was_held |= steady;
        self.restart(found);
        State::Detecting { held_by }
    }

    fn acceptable(&self, found: &Found) -> bool {
        let length = self.log.len() - found.start;
        let long = |seconds| length >= self.intervals(seconds);
        match found.look {
            Look::Steady => long(self.settings.window_min_seconds),
            Look::Plausible => long(self.settings.plausible_seconds),
            Look::Short | Look::Moving => false,
        }
    }

    fn restart(&mut self, found: Found) {
        self.start = found.start;
        self.jumps.extend(found.jumps);
    }

    fn assessment(&self, found: &Found) -> Assessment {
        let class = match (self.was_held, self.period) {
            (true, _) => Class::TwoStage,
            (false, Some(_)) => Class::Periodic,
            (false, None) => window::history(&self.jumps),
        };
        Assessment {
            class,
            proven: found.look == Look::Steady,
            drift_percent_per_minute: found
                .fit
                .map_or(0.0, |fit| fit.percent_per_minute(self.settings.interval_seconds)),
            window_start: found.start,
            mean: found.fit.map_or(0.0, |fit| fit.mean.exp()),
            period: self.period,
        }
    }

    /// Why it never became steady: the last minutes say whether it drifts.
    fn failure(&self) -> Assessment {
        let window = self.window();
        let found = window.look(self.start);
        let drifts = found.fit.is_some_and(|fit| fit.drifts(window.delta));
        let class = if drifts { Class::Drift } else { Class::NotSteady };
        Assessment { class, proven: false, ..self.assessment(&found) }
    }
}
