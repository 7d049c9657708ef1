//! A board is the same whatever was made before it, and the same as the plain sums.

use super::*;
use crate::class::{self, COUNT};
use crate::history::{Active, Bounds, Device, Look, Row, Work};
use crate::view::{Key, WINDOWS};
use std::collections::BTreeMap;
use units::{Rng, Seed};

#[test]
fn the_top_is_a_round_figure() {
    for (value, top) in [(1.0, 1.0), (1.1, 1.2), (2.2, 3.0), (7.0, 8.0), (9.0, 10.0), (31.0, 40.0)] {
        assert!((nice(value) - top).abs() < 1e-3, "{value}: {}", nice(value));
    }
}

fn look(t: Nanos, weight: Nanos, rng: &mut Rng) -> Look {
    let active = |_| {
        let session = rng.below(30) as u32;
        let event = rng.below(14);
        Active {
            class: class::ALL[event as usize % COUNT],
            event: format!("event {event}"),
            foreground: !event.is_multiple_of(5),
            session,
            program: format!("client {}", session % 3),
            statement: event.is_multiple_of(2).then(|| format!("select {}", rng.below(90))),
            file: event.is_multiple_of(3).then(|| format!("/data/{}", rng.below(5))),
            ..Active::default()
        }
    };
    let work = Work { reads: t.as_secs() as f32 % 7.0, writes: 2.0, megabytes: 0.5, ..Work::default() };
    let devices =
        (0..3).filter(|n| !t.0.is_multiple_of(n + 2)).map(|n| Device { name: format!("vd{n}"), work });
    let devices = devices.collect();
    let count = t.0 / 1_000_000_000 % 9;
    Look { t, weight, cost: Nanos(0), active: (0..count).map(active).collect(), devices }
}

fn key(rng: &mut Rng) -> Key {
    let shift = rng.below(2) == 0;
    let letters = [' ', 'b', '+', '+', '-', '-', 'a'];
    match rng.below(14) {
        0 => Key::Left { shift },
        1 => Key::Right { shift },
        2 => Key::PageUp,
        3 => Key::PageDown,
        4 => Key::Home,
        5 => Key::End,
        6 => Key::Enter,
        7 | 8 => Key::Back,
        9 => Key::Tab,
        10 => Key::Down,
        _ => Key::Letter(letters[rng.below(letters.len() as u64) as usize]),
    }
}

/// Hours of looks and keys: with holes, slow looks that overlap, and older times merged again and again.
#[test]
fn boards_one_after_the_other_are_boards_made_anew() {
    for seed in 1..=2 {
        let mut rng = Rng::new(Seed(seed));
        let mut history = History::new(Bounds { rows: 4_000, spans: 900, merged_rows: 12 });
        let (mut view, mut boards) = (View::default(), Boards::default());
        let mut t = Nanos(0);
        let mut thinned = 0;
        for step in 0..2_000 {
            let gap = [0.1, 1.0, 1.0, 1.0, 2.3, 40.0][rng.below(6) as usize];
            t += Nanos::secs(gap);
            let weight = Nanos::secs(gap.min(2.0) + if step % 50 == 0 { 0.7 } else { 0.0 });
            if rng.below(10) > 0 {
                history.add(&look(t, weight, &mut rng));
            }
            let columns = [51, 150, 7][step / 700];
            let board = boards.board(&history, &view, columns, t);
            if step % 5 == 0 || history.thinned() > thinned {
                let anew = Board::of(&history, &view, columns, t);
                assert_eq!(board, anew, "seed {seed}, step {step}: {view:?}");
                thinned = history.thinned();
            }
            if step % 23 == 0 {
                Plain { history: &history, view: &view }.check(&board);
            }
            if rng.below(4) == 0 {
                view.press(key(&mut rng), &board);
            }
        }
        assert!(thinned > 2, "older times were merged");
    }
}

/// The sums of a view, each taken over everything.
struct Plain<'a> {
    history: &'a History,
    view: &'a View,
}

impl Plain<'_> {
    fn lets(&self, row: &Row) -> bool {
        let event = self.history.event(row.event);
        let step = |step: &Step| match *step {
            Step::Class(class) => event.class == class,
            Step::Event(id) => row.event == id,
            Step::Session(number, program) => (row.session, row.program) == (number, program),
            Step::Statement(id) => row.statement == id,
            Step::File(id) => row.file == id,
        };
        (self.view.background() || event.foreground) && self.view.drill().iter().all(step)
    }

    /// Seconds by what `key` makes of a row, and seconds that were seen.
    fn sums<K: Ord>(
        &self,
        from: Nanos,
        to: Nanos,
        key: impl Fn(&Row) -> Option<K>,
    ) -> (BTreeMap<K, f64>, f64) {
        let (mut sums, mut seen) = (BTreeMap::new(), 0.0);
        for span in self.history.spans() {
            let inside = span.to.min(to).0.saturating_sub(span.from.max(from).0);
            let share = inside as f64 / (span.to.0 - span.from.0) as f64;
            seen += f64::from(span.seen) * share;
            for row in span.rows.iter().filter(|row| inside > 0 && self.lets(row)) {
                if let Some(key) = key(row) {
                    *sums.entry(key).or_default() += f64::from(row.seconds) * share;
                }
            }
        }
        (sums, seen)
    }

    fn check(&self, board: &Board) {
        let near = |a: f64, b: f64| (a - b).abs() < 1e-4 * (1.0 + a.abs());
        let (from, to) = board.brush;
        let step = |list: List, row: &Row| match list {
            List::Classes => Some(Step::Class(self.history.event(row.event).class)),
            List::Events => Some(Step::Event(row.event)),
            List::Sessions => Some(Step::Session(row.session, row.program)),
            List::Statements => (row.statement != 0).then_some(Step::Statement(row.statement)),
            List::Files => (row.file != 0).then_some(Step::File(row.file)),
        };
        for (top, list) in board.lists.iter().zip(List::ALL) {
            let (mut expected, seen) =
                self.sums(from, to, |row| step(list, row).map(|step| format!("{step:?}")));
            expected.retain(|_, seconds| *seconds > 1e-9);
            assert_eq!(top.rows.len(), expected.len().min(60), "{:?}", self.view);
            let least = top.rows.iter().map(|row| row.mean).fold(f32::INFINITY, f32::min);
            for row in &top.rows {
                let seconds = expected.remove(&format!("{:?}", row.step)).expect("it was there, and once");
                assert!(near(f64::from(row.mean), seconds / seen), "{row:?}: {seconds} of {seen}");
                assert!(near(f64::from(row.classes.iter().sum::<f32>()), f64::from(row.mean)), "{row:?}");
            }
            assert!(expected.values().all(|seconds| seconds / seen < f64::from(least) + 1e-4), "{top:?}");
        }
        let (whole, seen) = self.sums(from, to, |_| Some(()));
        let mean = whole.get(&()).map_or(0.0, |seconds| seconds / seen);
        assert!(near(f64::from(board.mean), mean), "{} {mean}", board.mean);
        for (at, column) in board.columns.iter().enumerate() {
            let from = board.from + Nanos(board.column.0 * at as u64);
            let (sums, seen) = self.sums(from, from + board.column, |row| {
                let event = self.history.event(row.event);
                let own = |step| board.bands.iter().position(|band| band.step == Some(step));
                Some(
                    own(Step::Event(row.event))
                        .or(own(Step::Class(event.class)))
                        .unwrap_or(board.bands.len() - 1),
                )
            });
            let Some(heights) = column else {
                assert!(seen < board.column.as_secs() * 0.0101, "{seen} s were seen in column {at}");
                continue;
            };
            for (band, height) in heights.iter().enumerate() {
                let expected = sums.get(&band).map_or(0.0, |seconds| seconds / seen);
                assert!(near(f64::from(*height), expected), "column {at}, {:?}: {height}", board.bands[band]);
            }
        }
        self.check_devices(board);
    }

    fn check_devices(&self, board: &Board) {
        for device in &board.devices {
            let rates = |from: Nanos, to: Nanos| {
                let (mut reads, mut seen) = (0.0, 0.0);
                for span in self.history.between(from, to) {
                    let of = |(number, _): &&(u16, Work)| {
                        self.history.devices()[usize::from(*number)] == device.name
                    };
                    let Some((_, work)) = span.devices.iter().find(of) else { continue };
                    reads += work.reads * span.share(from, to);
                    seen += span.seen * span.share(from, to);
                }
                (seen > 0.0).then(|| reads / seen)
            };
            let near = |a: Option<f32>, b: Option<f32>| match (a, b) {
                (Some(a), Some(b)) => (a - b).abs() < 1e-3 * (1.0 + a),
                (a, b) => a == b,
            };
            for (at, column) in board.columns.iter().zip(&device.columns).map(|(_, rates)| rates).enumerate()
            {
                let from = board.from + Nanos(board.column.0 * at as u64);
                let expected = rates(from, from + board.column);
                assert!(near(column.map(|rates| rates.reads), expected), "{} {at}", device.name);
            }
            let expected = rates(board.brush.0, board.brush.1).unwrap_or_default();
            assert!(near(Some(device.brush.reads), Some(expected)), "{}", device.name);
        }
    }
}

/// A length of the window that nothing divides evenly, and one column alone.
#[test]
fn any_number_of_columns_can_be_had() {
    let mut history = History::new(Bounds::default());
    let mut rng = Rng::new(Seed(9));
    (1..200).for_each(|t| history.add(&look(Nanos::millis(t * 1_000), Nanos::millis(1_000), &mut rng)));
    let mut boards = Boards::default();
    for window in 0..WINDOWS.len() {
        for columns in [0, 1, 2, 161, 997] {
            let view = View::asked(Some(window), None, None, Vec::new(), true);
            let board = boards.board(&history, &view, columns, Nanos::millis(199_000));
            assert_eq!(board.columns.len(), columns.max(1));
            let enough = board.column < Nanos::secs(19_900.0);
            assert_eq!(board.columns.iter().any(Option::is_some), enough, "a hundredth must have been seen");
        }
    }
}
