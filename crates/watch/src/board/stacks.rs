//! Stacked activity over time: by class, or by event within one.

use super::{Axis, Entry, Filter, Top};
use crate::class::{self, COUNT, Class};
use crate::history::Span;
use crate::view::Step;

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

impl Filter<'_> {
    /// Bands of the chart and their heights.
    pub(super) fn stacks(&self, axis: &Axis, lists: &([Top; 5], f32)) -> (Vec<Band>, Vec<Option<Vec<f32>>>) {
        let by_event = self.steps.iter().any(|step| matches!(step, Step::Class(_) | Step::Event(_)));
        if by_event {
            return self.event_stacks(axis, &lists.0[1]);
        }
        let spans = self.history.between(axis.from, axis.end());
        let sums = summed(axis, spans, COUNT, |span, heights| {
            if self.steps.is_empty() {
                for (class, height) in heights.iter_mut().enumerate() {
                    *height = span.class(class, self.background);
                }
            } else {
                self.rows(span).for_each(|(row, event)| heights[class::index(event.class)] += row.seconds);
            }
        });
        let occurs = |class: &usize| sums.iter().flatten().any(|column| column[*class] > 0.0);
        let kept: Vec<usize> = (0..COUNT).filter(occurs).collect();
        let listed = |class: Class| lists.0[0].rows.iter().find(|row| row.step == Step::Class(class));
        let band = |class: &usize| {
            let class = class::ALL[*class];
            let mean = listed(class).map_or(0.0, |row| row.mean);
            Band {
                name: class::name(class).to_owned(),
                paint: Paint::Class(class),
                mean,
                step: Some(Step::Class(class)),
            }
        };
        let bands = kept.iter().map(band).collect();
        let narrowed = |column: Vec<f32>| kept.iter().map(|class| column[*class]).collect();
        (bands, sums.into_iter().map(|column| column.map(narrowed)).collect())
    }

    fn event_stacks(&self, axis: &Axis, events: &Top) -> (Vec<Band>, Vec<Option<Vec<f32>>>) {
        let spans = self.history.between(axis.from, axis.end());
        let id = |row: &Entry| match row.step {
            Step::Event(id) => Some(id),
            _ => None,
        };
        let known: Vec<u16> = events.rows.iter().filter_map(id).take(BANDS_MAX).collect();
        let sums = summed(axis, spans, known.len() + 1, |span, heights| {
            for (row, _) in self.rows(span) {
                let at = known.iter().position(|id| *id == row.event).unwrap_or(known.len());
                heights[at] += row.seconds;
            }
        });
        let mean =
            |id: u16| events.rows.iter().find(|row| row.step == Step::Event(id)).map_or(0.0, |r| r.mean);
        let mut bands: Vec<Band> = known
            .iter()
            .enumerate()
            .map(|(at, id)| Band {
                name: self.history.event(*id).name.clone(),
                paint: Paint::Event(at),
                mean: mean(*id),
                step: Some(Step::Event(*id)),
            })
            .collect();
        // The brush has its seven; what lies outside it may have more.
        if sums.iter().flatten().any(|column| column[known.len()] > 0.0) {
            let rest = events.rows.iter().skip(known.len()).map(|row| row.mean).sum();
            let paint = Paint::Event(BANDS_MAX);
            bands.push(Band { name: "other events".into(), paint, mean: rest, step: None });
        }
        (bands, sums)
    }
}

/// Mean heights of each column; none where nothing was seen.
fn summed(
    axis: &Axis,
    spans: &[Span],
    bands: usize,
    fill: impl Fn(&Span, &mut [f32]),
) -> Vec<Option<Vec<f32>>> {
    let mut sums = vec![vec![0.0f32; bands]; axis.columns];
    let mut seen = vec![0.0f32; axis.columns];
    let mut heights = vec![0.0f32; bands];
    for span in spans {
        heights.fill(0.0);
        fill(span, &mut heights);
        for (at, share) in axis.shares(span) {
            seen[at] += span.seen * share;
            sums[at].iter_mut().zip(&heights).for_each(|(sum, height)| *sum += height * share);
        }
    }
    let least = axis.column.as_secs() as f32 * SEEN_MIN;
    let mean = |(sums, seen): (Vec<f32>, f32)| {
        (seen > least).then(|| sums.into_iter().map(|sum| sum / seen).collect())
    };
    sums.into_iter().zip(seen).map(mean).collect()
}
