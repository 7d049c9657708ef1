//! What was done in the brush, kept up as it moves.
//!
//! A brush that follows the present gains a look and loses one, and so does what is summed here; only a jump is summed anew.

use super::filter::Filter;
use super::tally::{Sum, Tally};
use crate::history::{Span, TextId};
use std::ops::Range;
use units::Nanos;

/// Sums of a stretch of time.
#[derive(Debug, Default)]
pub struct Brush {
    from: Nanos,
    to: Nanos,
    /// Spans that are in the sums.
    spans: Range<usize>,
    /// Time that was seen, nanoseconds.
    pub seen: i64,
    /// All that the filter lets through.
    pub whole: Sum,
    pub events: Tally<u16>,
    pub sessions: Tally<(u32, TextId)>,
    pub statements: Tally<TextId>,
    pub files: Tally<TextId>,
}

impl Brush {
    /// Makes these the sums of `from..to`.
    pub fn move_to(&mut self, filter: &Filter<'_>, (from, to): (Nanos, Nanos)) {
        let spans = filter.history.range(from, to);
        let common = spans.start.max(self.spans.start)..spans.end.min(self.spans.end);
        if common.len() < self.spans.len() / 2 {
            *self = Self::default();
        }
        for at in spans.start.min(self.spans.start)..spans.end.max(self.spans.end) {
            let span = &filter.history.spans()[at];
            let was = if self.spans.contains(&at) { span.share(self.from, self.to) } else { 0.0 };
            let is = if spans.contains(&at) { span.share(from, to) } else { 0.0 };
            if was != is {
                self.add(filter, span, is, 1);
                self.add(filter, span, was, -1);
            }
        }
        (self.from, self.to, self.spans) = (from, to, spans);
    }

    /// Adds the share `share` of `span`; with `sign` -1 takes away exactly what was added.
    fn add(&mut self, filter: &Filter<'_>, span: &Span, share: f32, sign: i64) {
        if share <= 0.0 {
            return;
        }
        let nanos = |seconds: f32| sign * (f64::from(seconds) * f64::from(share) * 1e9).round() as i64;
        self.seen += nanos(span.seen);
        for (row, class) in filter.rows(span) {
            let nanos = nanos(row.seconds);
            self.whole.total += nanos;
            self.whole.classes[class] += nanos;
            self.events.add(row.event, class, nanos);
            self.sessions.add((row.session, row.program), class, nanos);
            if row.statement != 0 {
                self.statements.add(row.statement, class, nanos);
            }
            if row.file != 0 {
                self.files.add(row.file, class, nanos);
            }
        }
    }
}
