//! What follows from history and view, in numbers: stacks over time, top lists of the brush, devices on the same axis.

mod brush;
mod columns;
mod devices;
mod filter;
mod lists;
mod stacks;
mod tally;

pub use devices::{DeviceBoard, Rates};
pub use lists::{Entry, Top};
pub use stacks::{Band, Paint};

use crate::history::History;
use crate::view::{List, Step, View};
use brush::Brush;
use columns::{Axis, Columns};
use filter::Filter;
use units::Nanos;

/// The chart reaches up to the CPUs where activity is not below this part of them.
const CPUS_MAX: f32 = 4.0;

/// Everything that is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Board {
    /// The window.
    pub from: Nanos,
    /// Its end.
    pub to: Nanos,
    /// What there is to see: beginning.
    pub first: Nanos,
    /// And end.
    pub last: Nanos,
    /// Length of a column.
    pub column: Nanos,
    /// What the lists are about.
    pub brush: (Nanos, Nanos),
    /// Colours of the chart, from the bottom; those that occur.
    pub bands: Vec<Band>,
    /// For each column active sessions by band; none: nothing was seen.
    pub columns: Vec<Option<Vec<f32>>>,
    /// Mean active sessions in the brush.
    pub mean: f32,
    /// Of these on CPU.
    pub on_cpu: f32,
    /// Lists in the order of [`List::ALL`].
    pub lists: [Top; 5],
    /// Busiest first.
    pub devices: Vec<DeviceBoard>,
    /// The steps in words.
    pub path: Vec<String>,
}

/// Makes boards of one history, one after the other, and keeps the sums that the next one needs again.
///
/// A board of eight hours is made of up to millions of rows; the next one, a second later, differs by one look. So a board costs as much
/// as there are columns and lines, and as many rows as came and went since the one before; all rows only after a step of the drill,
/// another length of the window, or when the history was thinned. The price is memory: what the brush tells apart, some 150 bytes for
/// each session in it. A board is the same whatever was made before it, to the last bit.
#[derive(Debug, Default)]
pub struct Boards {
    /// What the sums are about: the drill, whether with background, and how often the history had been thinned.
    about: (Vec<Step>, bool, u64),
    columns: Columns,
    brush: Brush,
}

impl Boards {
    /// What `view` shows in `columns` columns, when the present is `now`.
    pub fn board(&mut self, history: &History, view: &View, columns: usize, now: Nanos) -> Board {
        let about = (view.drill().to_vec(), view.background(), history.thinned());
        if self.about != about {
            *self = Self { about, ..Self::default() };
        }
        let columns = columns.max(1);
        let (first, last) = history.extent().unwrap_or((now, now));
        let column = Nanos((view.window().0 / columns as u64).max(1));
        let end = view.end().unwrap_or(now);
        // On whole columns, so that the picture moves and does not shimmer.
        let to = Nanos(end.0.div_ceil(column.0) * column.0);
        let from = Nanos(to.0.saturating_sub(column.0 * columns as u64));
        let brush = view.brush(now);
        let filter = Filter::of(history, view);
        self.brush.move_to(&filter, brush);
        let (lists, mean) = lists::lists(history, &self.brush);
        let summed = self.columns.on(&filter, &Axis { from, column, columns });
        let (bands, stacks) = stacks::stacks(history, view.drill(), &summed, column, &lists);
        Board {
            from,
            to,
            first,
            last: last.max(now),
            column,
            brush,
            bands,
            columns: stacks,
            mean,
            on_cpu: lists[0].rows.iter().map(|row| row.classes[0]).sum(),
            devices: devices::devices(history, &summed, brush),
            lists,
            path: view.drill().iter().map(|step| lists::words(history, *step)).collect(),
        }
    }
}

impl Board {
    /// A single one; who needs more of them has [`Boards`].
    pub fn of(history: &History, view: &View, columns: usize, now: Nanos) -> Self {
        Boards::default().board(history, view, columns, now)
    }

    /// One of the lists.
    pub fn list(&self, list: List) -> &Top {
        let at = List::ALL.iter().position(|l| *l == list).unwrap_or(0);
        &self.lists[at]
    }

    /// Highest stack.
    pub fn peak(&self) -> f32 {
        self.columns.iter().flatten().map(|column| column.iter().sum()).fold(0.0, f32::max)
    }

    /// What the top of the chart stands for: a round figure, a little above the stacks and, unless it is far above them, the line of the CPUs.
    pub fn top(&self, cpus: Option<f32>) -> f32 {
        let peak = self.peak();
        let cpus = cpus.filter(|cpus| *cpus < CPUS_MAX * peak).unwrap_or(0.0);
        nice((peak * 1.02).max(cpus * 1.1).max(1.0))
    }

    /// Columns of the brush.
    pub fn brush_columns(&self) -> std::ops::Range<usize> {
        let at = |t: Nanos| t.0.saturating_sub(self.from.0) as f64 / self.column.0 as f64;
        let first = at(self.brush.0).floor() as usize;
        first.min(self.columns.len())..(at(self.brush.1).ceil() as usize).min(self.columns.len())
    }
}

/// The next of 1, 1.2, 1.6, 2, 3, 4, 5, 6, 8 times a power of ten: their halves are short, too.
fn nice(value: f32) -> f32 {
    let power = 10f32.powf(value.log10().floor());
    let steps = [1.0, 1.2, 1.6, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    let part = value / power;
    steps.iter().find(|step| **step >= part * 0.9999).map_or(value, |step| step * power)
}

#[cfg(test)]
mod tests;
