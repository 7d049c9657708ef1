//! What the drill lets through.

use crate::class;
use crate::history::{Event, History, Row, Span};
use crate::view::{Step, View};

/// The rows that a view is about.
pub struct Filter<'a> {
    pub history: &'a History,
    /// For each event its class's place; none: it is left out.
    classes: Vec<Option<usize>>,
    /// Steps that an event does not decide.
    steps: Vec<Step>,
}

impl<'a> Filter<'a> {
    pub fn of(history: &'a History, view: &View) -> Self {
        let lets = |(id, event): (usize, &Event)| {
            (view.background() || event.foreground)
                && view.drill().iter().all(|step| match *step {
                    Step::Class(class) => event.class == class,
                    Step::Event(wanted) => usize::from(wanted) == id,
                    Step::Session(..) | Step::Statement(_) | Step::File(_) => true,
                })
        };
        let events = history.events().iter().enumerate();
        let classes = events.map(|event| lets(event).then(|| class::index(event.1.class))).collect();
        let of_rows = |step: &&Step| !matches!(step, Step::Class(_) | Step::Event(_));
        Self { history, classes, steps: view.drill().iter().filter(of_rows).copied().collect() }
    }

    /// Rows of `span` that it lets through, with their classes.
    pub fn rows<'s>(&'s self, span: &'s Span) -> impl Iterator<Item = (&'s Row, usize)> {
        span.rows.iter().filter_map(|row| {
            let class = self.classes[usize::from(row.event)]?;
            self.lets(row).then_some((row, class))
        })
    }

    fn lets(&self, row: &Row) -> bool {
        self.steps.iter().all(|step| match *step {
            Step::Session(number, program) => row.session == number && row.program == program,
            Step::Statement(id) => row.statement == id,
            Step::File(id) => row.file == id,
            Step::Class(_) | Step::Event(_) => true,
        })
    }
}
