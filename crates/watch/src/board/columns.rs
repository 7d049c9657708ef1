//! Sums of each column of time, kept from board to board.
//!
//! Columns lie on multiples of their length, so a window that moves on has most of them in common with the one before. A column is
//! summed up when it comes into the window, and anew as long as looks still fall into it; all others cost nothing.

use super::filter::Filter;
use crate::history::Work;
use std::collections::BTreeMap;
use units::Nanos;

/// Columns of equal length; `from` is a multiple of it.
#[derive(Clone, Copy)]
pub struct Axis {
    pub from: Nanos,
    pub column: Nanos,
    pub columns: usize,
}

/// What was seen in one.
#[derive(Debug, Default)]
pub struct Column {
    /// Time that was seen, seconds.
    pub seen: f32,
    /// Events that the filter lets through, seconds.
    pub events: Vec<(u16, f32)>,
    /// Devices by their number: what they did, and in what time, seconds.
    pub devices: Vec<(u16, Work, f32)>,
}

/// Those of the window.
#[derive(Debug, Default)]
pub struct Columns {
    length: Nanos,
    /// By their number: `from / length`.
    kept: BTreeMap<u64, Column>,
    /// How many spans of the history they know.
    spans: usize,
}

impl Columns {
    /// All of `axis`, oldest first.
    pub fn on(&mut self, filter: &Filter<'_>, axis: &Axis) -> Vec<&Column> {
        if self.length != axis.column {
            *self = Self { length: axis.column, ..Self::default() };
        }
        let number = |t: Nanos| t.0 / axis.column.0;
        let spans = filter.history.spans();
        if let Some(changed) = spans[self.spans..].iter().map(|span| span.from).min() {
            self.kept.split_off(&number(changed));
        }
        self.spans = spans.len();
        let first = number(axis.from);
        self.kept = self.kept.split_off(&first);
        self.kept.split_off(&(first + axis.columns as u64));
        for number in first..first + axis.columns as u64 {
            let from = Nanos(number * axis.column.0);
            let sum = || Column::of(filter, from, from + axis.column);
            self.kept.entry(number).or_insert_with(sum);
        }
        self.kept.values().collect()
    }
}

impl Column {
    fn of(filter: &Filter<'_>, from: Nanos, to: Nanos) -> Self {
        let mut column = Self::default();
        let mut events = vec![0.0f32; filter.history.events().len()];
        for span in filter.history.between(from, to) {
            let share = span.share(from, to);
            column.seen += span.seen * share;
            filter.rows(span).for_each(|(row, _)| events[usize::from(row.event)] += row.seconds * share);
            for (device, work) in &span.devices {
                add_work(&mut column.devices, *device, work, span.seen, share);
            }
        }
        let occurring = (0u16..).zip(events).filter(|(_, seconds)| *seconds > 0.0);
        column.events = occurring.collect();
        column
    }
}

/// Adds what `device` did in the share `share` of `seen` seconds.
pub fn add_work(sums: &mut Vec<(u16, Work, f32)>, device: u16, work: &Work, seen: f32, share: f32) {
    let at = sums.iter().position(|(known, ..)| *known == device).unwrap_or_else(|| {
        sums.push((device, Work::default(), 0.0));
        sums.len() - 1
    });
    let (_, sum, seconds) = &mut sums[at];
    sum.add_share(work, share);
    *seconds += seen * share;
}
