//! Samples against counters: two ways to the same figures, so each shows when the other is wrong.

use super::Tick;
use super::sampler::Start;
use crate::{Doing, Event, EventTotals, SessionKind, Totals};
use units::Nanos;

/// What all rows of an event say.
#[derive(Clone, Copy, Default)]
struct Sum {
    rows: u64,
    time: Nanos,
    /// ASH math, from rows with a known length.
    waits: f64,
}

/// Sums over complete ticks, by kind and event.
pub(super) struct Sums {
    ticks: u64,
    missed: u64,
    unresolved: u64,
    cost: Nanos,
    events: [[Sum; Event::COUNT]; 2],
    /// Rows of foregrounds, on CPU or waiting.
    db_time: Nanos,
    on_cpu: Nanos,
}

impl Default for Sums {
    fn default() -> Self {
        Self {
            ticks: 0,
            missed: 0,
            unresolved: 0,
            cost: Nanos(0),
            events: [[Sum::default(); Event::COUNT]; 2],
            db_time: Nanos(0),
            on_cpu: Nanos(0),
        }
    }
}

impl Sums {
    pub fn add(&mut self, tick: &Tick) {
        self.ticks += 1;
        self.missed += u64::from(tick.missed);
        self.unresolved += u64::from(tick.unresolved);
        self.cost += tick.cost;
        for row in &tick.rows {
            let foreground = row.kind == SessionKind::Foreground;
            if foreground {
                self.db_time += tick.weight;
            }
            match row.doing {
                Doing::OnCpu if foreground => self.on_cpu += tick.weight,
                Doing::OnCpu => {}
                Doing::Waiting(event) => {
                    let sum = &mut self.events[row.kind as usize][event.number()];
                    sum.rows += 1;
                    sum.time += tick.weight;
                    // A wait of no length cannot have been seen going on by a clock of nanoseconds.
                    let waited = row.time_waited.map(|waited| waited.0.max(1) as f64);
                    sum.waits += waited.map_or(0.0, |waited| (tick.weight.0 as f64 / waited).max(1.0));
                }
            }
        }
    }

    pub fn check(&self, started: &Start, now: &Start) -> Check {
        let exact = now.totals.since(&started.totals);
        let events = SessionKind::ALL.into_iter().flat_map(|kind| self.of_kind(kind, exact.of(kind)));
        let time = now.foreground.since(&started.foreground);
        Check {
            ticks: self.ticks,
            missed: self.missed,
            unresolved: self.unresolved,
            cost: self.cost,
            db_time_sampled: self.db_time,
            db_time_exact: time.elapsed,
            cpu_sampled: self.on_cpu,
            cpu_exact: time.cpu(),
            events: events.collect(),
        }
    }

    fn of_kind(&self, kind: SessionKind, exact: &Totals) -> Vec<EventCheck> {
        let check = |event: Event| {
            let (sum, exact): (&Sum, &EventTotals) =
                (&self.events[kind as usize][event.number()], exact.event(event));
            let seen = sum.rows > 0 || exact.waits > 0;
            (seen && !event.is_idle()).then_some(EventCheck {
                kind,
                event,
                rows: sum.rows,
                waits_estimated: sum.waits,
                waits_exact: exact.waits,
                time_sampled: sum.time,
                time_exact: exact.waited,
            })
        };
        Event::ALL.into_iter().filter_map(check).collect()
    }
}

/// Samples and counters of the same time, since the sampler began until its last complete tick, side by side. The counters go
/// on until now, so right after the start they may be ahead by two intervals.
#[derive(Clone, Debug)]
pub struct Check {
    /// Complete ticks.
    pub ticks: u64,
    /// Planned ones that never came.
    pub missed: u64,
    /// Sampled waits whose length got lost; they are missing from the estimates.
    pub unresolved: u64,
    /// What all looks together took.
    pub cost: Nanos,
    /// DB time: rows of foregrounds, times their weight.
    pub db_time_sampled: Nanos,
    /// DB time, counted.
    pub db_time_exact: Nanos,
    /// Of which on CPU, sampled.
    pub cpu_sampled: Nanos,
    /// Of which on CPU, counted.
    pub cpu_exact: Nanos,
    /// By kind and event, idle ones left out; only those that were seen or counted.
    pub events: Vec<EventCheck>,
}

impl Check {
    /// An event's line.
    pub fn event(&self, kind: SessionKind, event: Event) -> Option<&EventCheck> {
        self.events.iter().find(|check| check.kind == kind && check.event == event)
    }
}

/// An event, sampled and counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventCheck {
    /// Of such sessions.
    pub kind: SessionKind,
    /// The event.
    pub event: Event,
    /// How often it was seen: the estimates are as good as this is large (relative error about 1/√rows for waits of one length).
    pub rows: u64,
    /// ASH math: the sum of `max(1, weight / time_waited)` over rows with a known length.
    pub waits_estimated: f64,
    /// Waits that ended, counted.
    pub waits_exact: u64,
    /// Rows times their weight.
    pub time_sampled: Nanos,
    /// Time in waits that ended, counted.
    pub time_exact: Nanos,
}

impl EventCheck {
    /// Estimated over counted waits; near 1 when both are right and enough was seen. `None` when none was counted.
    pub fn waits_ratio(&self) -> Option<f64> {
        (self.waits_exact > 0).then(|| self.waits_estimated / self.waits_exact as f64)
    }

    /// Sampled over counted time; near 1 likewise.
    pub fn time_ratio(&self) -> Option<f64> {
        (self.time_exact > Nanos(0)).then(|| self.time_sampled.0 as f64 / self.time_exact.0 as f64)
    }
}
