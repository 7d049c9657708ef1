//! What is kept, and that thinning loses no time.

use super::*;
use crate::class::{self, COUNT};
use units::Rng;

fn look(t: u64, sessions: u32, rng: &mut Rng) -> Look {
    let active = |session| Active {
        class: class::ALL[rng.below(COUNT as u64) as usize],
        event: format!("event {}", session % 7),
        foreground: session % 3 != 0,
        session,
        program: format!("client {session}"),
        statement: Some(format!("select {}", session % 11)),
        ..Active::default()
    };
    let work = Work { reads: 3.0, megabytes: 0.5, ..Work::default() };
    Look {
        t: Nanos::secs(t as f64),
        weight: Nanos::secs(1.0),
        cost: Nanos::millis(2),
        active: (0..sessions).map(active).collect(),
        devices: vec![Device { name: "vda".into(), work }],
    }
}

fn sums(history: &History) -> (f64, f64, f64) {
    let spans = || history.spans().iter();
    let rows = spans().flat_map(|span| span.rows.iter()).map(|row| f64::from(row.seconds)).sum();
    let seen = spans().map(|s| f64::from(s.seen)).sum();
    let reads = spans().flat_map(|s| s.devices.iter()).map(|(_, work)| f64::from(work.reads)).sum();
    (rows, seen, reads)
}

#[test]
fn bounds_hold_and_no_time_is_lost() {
    let bounds = Bounds { rows: 600, spans: 50, merged_rows: 20 };
    let mut history = History::new(bounds);
    let mut rng = Rng::new(units::Seed(7));
    for t in 1..=1000 {
        history.add(&look(t, 40, &mut rng));
        assert!(history.rows() <= bounds.rows + 40 && history.spans().len() <= bounds.spans);
    }
    assert_eq!(sums(&history), (40_000.0, 1000.0, 3000.0));
    let spans = history.spans();
    assert!(spans.windows(2).all(|pair| pair[0].to == pair[1].from), "no gap was made");
    assert!(spans[0].seen > 30.0 && spans[spans.len() - 1].seen == 1.0, "older times are coarser");
    assert!(spans[0].rows.iter().any(|row| row.session == OTHERS));
    assert!(spans[spans.len() - 1].rows.iter().all(|row| row.session != OTHERS));
}

/// However long it goes on: a minute long ago is still told from the next one, as long as there is room for minutes.
#[test]
fn the_oldest_hours_keep_their_minutes() {
    let mut history = History::new(Bounds { rows: 30_000, spans: 1_000, merged_rows: 8 });
    let mut rng = Rng::new(units::Seed(7));
    (1..=5_000).for_each(|t| history.add(&look(t, 12, &mut rng)));
    assert!(history.thinned() > 5, "{}", history.thinned());
    let longest = history.spans().iter().map(|span| span.to - span.from).max();
    assert!(longest.is_some_and(|longest| longest <= Nanos::secs(60.0)), "{longest:?}");
    assert_eq!(sums(&history), (60_000.0, 5_000.0, 15_000.0));
}

#[test]
fn times_are_found() {
    let mut history = History::new(Bounds::default());
    let mut rng = Rng::new(units::Seed(7));
    (1..=10).for_each(|t| history.add(&look(t, 1, &mut rng)));
    let between = |from: f64, to: f64| history.between(Nanos::secs(from), Nanos::secs(to)).len();
    assert_eq!(
        (between(0.0, 10.0), between(2.0, 4.0), between(2.5, 2.6), between(11.0, 12.0)),
        (10, 2, 1, 0)
    );
    assert_eq!(history.extent(), Some((Nanos(0), Nanos::secs(10.0))));
    assert_eq!(history.cost(), Nanos::millis(2));
}

#[test]
fn texts_without_end_are_others() {
    let mut texts = Texts::default();
    let ids: Vec<_> = (0..100_000).map(|n| texts.id(&format!("select {n}"))).collect();
    assert_eq!(texts.text(ids[5]), "select 5");
    assert_eq!(texts.text(ids[99_999]), "(others)");
    assert_eq!(texts.id("select 5"), ids[5]);
}
