//! What follows from history and view, in numbers: stacks over time, top lists of the brush, devices on the same axis.

mod devices;
mod lists;
mod stacks;

pub use devices::{DeviceBoard, Rates};
pub use lists::{Entry, Top};
pub use stacks::{Band, Paint};

use crate::history::{Event, History, Row, Span};
use crate::view::{List, Step, View};
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

impl Board {
    /// Of what `view` shows in `columns` columns, when the present is `now`.
    pub fn of(history: &History, view: &View, columns: usize, now: Nanos) -> Self {
        let columns = columns.max(1);
        let (first, last) = history.extent().unwrap_or((now, now));
        let last = last.max(now);
        let column = Nanos((view.window().0 / columns as u64).max(1));
        let end = view.end().unwrap_or(now);
        // On whole columns, so that the picture moves and does not shimmer.
        let to = Nanos(end.0.div_ceil(column.0) * column.0);
        let from = Nanos(to.0.saturating_sub(column.0 * columns as u64));
        let brush = view.brush(now);
        let filter = Filter { history, steps: view.drill(), background: view.background() };
        let lists = filter.lists(brush);
        let axis = Axis { from, column, columns };
        let (bands, stacks) = filter.stacks(&axis, &lists);
        let on_cpu = lists.0[0].rows.iter().map(|row| row.classes[0]).sum();
        Self {
            from,
            to,
            first,
            last,
            column,
            brush,
            bands,
            columns: stacks,
            mean: lists.1,
            on_cpu,
            lists: lists.0,
            devices: devices::devices(history, &axis, brush),
            path: view.drill().iter().map(|step| lists::words(history, *step)).collect(),
        }
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

/// Columns of equal length.
struct Axis {
    from: Nanos,
    column: Nanos,
    columns: usize,
}

impl Axis {
    fn end(&self) -> Nanos {
        Nanos(self.from.0 + self.column.0 * self.columns as u64)
    }

    /// Columns that `span` lies in, each with the share of the span that does.
    fn shares(&self, span: &Span) -> impl Iterator<Item = (usize, f32)> {
        let length = span.to.0.saturating_sub(span.from.0).max(1) as f64;
        let number = |t: u64| (t.saturating_sub(self.from.0) / self.column.0) as usize;
        let last = number(span.to.0.saturating_sub(1)).min(self.columns.saturating_sub(1));
        let (from, to) = (span.from.0, span.to.0);
        let (begin, column) = (self.from.0, self.column.0);
        (number(from)..=last).map(move |at| {
            let left = begin + column * at as u64;
            let overlap = (left + column).min(to).saturating_sub(left.max(from));
            (at, (overlap as f64 / length) as f32)
        })
    }
}

/// The rows that the drill lets through.
struct Filter<'a> {
    history: &'a History,
    steps: &'a [Step],
    background: bool,
}

impl Filter<'_> {
    fn lets(&self, row: &Row, event: &Event) -> bool {
        (self.background || event.foreground)
            && self.steps.iter().all(|step| match *step {
                Step::Class(class) => event.class == class,
                Step::Event(id) => row.event == id,
                Step::Session(number, program) => row.session == number && row.program == program,
                Step::Statement(id) => row.statement == id,
                Step::File(id) => row.file == id,
            })
    }

    fn rows<'s>(&'s self, span: &'s Span) -> impl Iterator<Item = (&'s Row, &'s Event)> {
        let all = span.rows.iter().map(|row| (row, self.history.event(row.event)));
        all.filter(|(row, event)| self.lets(row, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_top_is_a_round_figure() {
        for (value, top) in [(1.0, 1.0), (1.1, 1.2), (2.2, 3.0), (7.0, 8.0), (9.0, 10.0), (31.0, 40.0)] {
            assert!((nice(value) - top).abs() < 1e-3, "{value}: {}", nice(value));
        }
    }
}
