//! Stacked activity over time: by class, or by event within one.

use super::columns::Column;
use super::{Entry, Top};
use crate::class::{self, COUNT, Class};
use crate::history::History;
use crate::view::Step;
use units::Nanos;

/// Events of a drilled chart that are told apart.
const BANDS_MAX: usize = 7;
/// A column of which less than this share was seen stays empty.
const SEEN_MIN: f32 = 0.01;

/// One colour of the chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// Its name.
    pub name: String,
    /// Its class, for colours; the number among the events where those are drawn.
    pub paint: Paint,
    /// Mean active sessions in the brush.
    pub mean: f32,
    /// Where a click on it leads; none for the events that share a band.
    pub step: Option<Step>,
}

/// What a band is painted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// As its class.
    Class(Class),
    /// As the n-th of the events.
    Event(usize),
}

/// Bands of the chart, and for each column their heights; none where nothing was seen.
pub type Stacks = (Vec<Band>, Vec<Option<Vec<f32>>>);

/// Stacks of `columns`, `length` each. `lists`: those of the brush.
pub fn stacks(
    history: &History,
    steps: &[Step],
    columns: &[&Column],
    length: Nanos,
    lists: &[Top],
) -> Stacks {
    let by_event = steps.iter().any(|step| matches!(step, Step::Class(_) | Step::Event(_)));
    if by_event {
        event_stacks(history, columns, length, &lists[1])
    } else {
        class_stacks(history, columns, length, &lists[0])
    }
}

fn class_stacks(history: &History, columns: &[&Column], length: Nanos, classes: &Top) -> Stacks {
    let of_event: Vec<usize> = history.events().iter().map(|event| class::index(event.class)).collect();
    let heights = heights(columns, length, COUNT, |event| of_event[usize::from(event)]);
    let occurs = |class: &usize| heights.iter().flatten().any(|column| column[*class] > 0.0);
    let kept: Vec<usize> = (0..COUNT).filter(occurs).collect();
    let band = |class: &usize| {
        let class = class::ALL[*class];
        let step = Step::Class(class);
        let mean = mean_of(classes, step);
        Band { name: class::name(class).to_owned(), paint: Paint::Class(class), mean, step: Some(step) }
    };
    let bands = kept.iter().map(band).collect();
    let narrowed = |column: Vec<f32>| kept.iter().map(|class| column[*class]).collect();
    (bands, heights.into_iter().map(|column| column.map(narrowed)).collect())
}

fn event_stacks(history: &History, columns: &[&Column], length: Nanos, events: &Top) -> Stacks {
    let id = |row: &Entry| match row.step {
        Step::Event(id) => Some(id),
        _ => None,
    };
    let known: Vec<u16> = events.rows.iter().filter_map(id).take(BANDS_MAX).collect();
    let band_of = |event| known.iter().position(|id| *id == event).unwrap_or(known.len());
    let heights = heights(columns, length, known.len() + 1, band_of);
    let band = |(at, id): (usize, &u16)| {
        let step = Step::Event(*id);
        let name = history.event(*id).name.clone();
        Band { name, paint: Paint::Event(at), mean: mean_of(events, step), step: Some(step) }
    };
    let mut bands: Vec<Band> = known.iter().enumerate().map(band).collect();
    // The brush has its seven; what lies outside it may have more.
    if heights.iter().flatten().any(|column| column[known.len()] > 0.0) {
        let rest = events.rows.iter().skip(known.len()).map(|row| row.mean).sum();
        let paint = Paint::Event(BANDS_MAX);
        bands.push(Band { name: "other events".into(), paint, mean: rest, step: None });
    }
    (bands, heights)
}

fn mean_of(top: &Top, step: Step) -> f32 {
    top.rows.iter().find(|row| row.step == step).map_or(0.0, |row| row.mean)
}

/// Mean heights of `bands` bands in each column; none where nothing was seen.
fn heights(
    columns: &[&Column],
    length: Nanos,
    bands: usize,
    band_of: impl Fn(u16) -> usize,
) -> Vec<Option<Vec<f32>>> {
    let least = length.as_secs() as f32 * SEEN_MIN;
    let heights = |column: &&Column| {
        let mut heights = vec![0.0; bands];
        for (event, seconds) in &column.events {
            heights[band_of(*event)] += seconds / column.seen;
        }
        (column.seen > least).then_some(heights)
    };
    columns.iter().map(heights).collect()
}
