//! What must be known beside a trace: rules of its own, T1 and T2 (docs/results.md).

use super::class::Class;
use super::collect::Collected;
use crate::evidence::run_row;
use record::CheckRow;

/// A larger share of calls on files that nobody could look at, and the table leaves out too much.
const UNSEEN_MAX: f64 = 0.1;

/// T1: everything was seen; T2: files are known.
pub(super) fn checks(collected: &Collected) -> Vec<CheckRow> {
    let (lost, read) = (collected.lost.events, collected.lost.read);
    let analysis = &collected.analysis;
    let unseen = |place: usize| analysis.files.places[place].class == Some(Class::ShortLived);
    let count = |all: bool| -> u64 {
        let own = analysis.figures.iter().filter(|((_, place, _), _)| all || unseen(*place));
        own.map(|(_, figures)| figures.requests).sum()
    };
    let share = count(false) as f64 / count(true).max(1) as f64;
    vec![
        run_row(
            "T1",
            "no event was lost",
            lost == 0,
            lost as f64,
            "none".into(),
            format!(
                "{lost} of {} events were lost before they were read: the figures are too small",
                read + lost
            ),
        ),
        run_row(
            "T2",
            "files could be looked at",
            share <= UNSEEN_MAX,
            share,
            format!("at most {:.0} % of the requests", UNSEEN_MAX * 100.0),
            format!(
                "{:.0} % of the requests were on descriptors that were closed before anybody could look what they showed",
                share * 100.0
            ),
        ),
    ]
}
