//! What is on the screen at each size, as text; and what keys change.
#![forbid(unsafe_code)]

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use units::Nanos;
use waits::{Grade, WaitClass};
use watch::board::Board;
use watch::draw::{Plan, Scene, Subject, Theme, Times, draw};
use watch::history::{Active, Bounds, Device, History, Look, Work};
use watch::view::{Asked, Key, List, Step, View};

const MINUTE: u64 = 60;

/// Ten minutes: four clients commit, two read, one works; for two minutes nobody is looked at.
fn history() -> History {
    let mut history = History::new(Bounds::default());
    let session = |session: u32, class, event: &str, statement: &str| Active {
        class,
        event: event.into(),
        grade: (!event.is_empty()).then_some(Grade::Approximate),
        native: (!event.is_empty()).then(|| "IO:Native".to_owned()),
        foreground: true,
        session,
        program: "pgbench".into(),
        statement: Some(statement.into()),
        file: event.contains("read").then(|| "/data/base/5/16397".to_owned()),
    };
    for t in (1..=10 * MINUTE).filter(|t| !(3 * MINUTE..5 * MINUTE).contains(t)) {
        let update = "UPDATE pgbench_accounts SET abalance = abalance + ? WHERE aid = ?";
        let mut active = vec![session(7, None, "", "SELECT abalance FROM pgbench_accounts WHERE aid = ?")];
        active.extend((0..4).map(|n| session(10 + n, Some(WaitClass::Commit), "log file sync", "END")));
        if t % 120 < 60 {
            active.extend(
                (0..2).map(|n| session(20 + n, Some(WaitClass::UserIo), "db file sequential read", update)),
            );
        }
        active.push(Active {
            class: Some(WaitClass::SystemIo),
            event: "db file parallel write".into(),
            program: "checkpointer".into(),
            session: 3,
            ..Active::default()
        });
        let work = Work {
            reads: 20.0,
            writes: 800.0 + 3.0 * (t % 60) as f32,
            megabytes: 12.5,
            read_seconds: 0.01,
            write_seconds: 0.9,
            in_flight_seconds: 0.9,
        };
        let devices = vec![Device { name: "vda".into(), work }];
        history.add(&Look { t: secs(t), weight: secs(1), cost: Nanos::millis(3), active, devices });
    }
    history
}

fn secs(t: u64) -> Nanos {
    Nanos::millis(t * 1000)
}

fn subject() -> Subject {
    Subject {
        title: "PostgreSQL 15.20  postgres://dba@localhost:5432/sales".into(),
        state: "live".into(),
        trouble: false,
        cpus: Some(4.0),
        no_devices: String::new(),
        times: Times::Utc(43_200),
        doubts: vec!["Of other users' sessions PostgreSQL tells dba nothing.".into()],
    }
}

fn picture(history: &History, view: &View, (width, height): (u16, u16), theme: Theme) -> Buffer {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    let board = Board::of(history, view, Plan::columns(area), secs(10 * MINUTE));
    let subject = subject();
    draw(&Scene { subject: &subject, history, view, board: &board, theme }, &mut buffer);
    buffer
}

fn text(buffer: &Buffer) -> String {
    let row = |y| {
        let cells = (0..buffer.area.width).map(|x| buffer[(x, y)].symbol().to_owned());
        cells.collect::<String>().trim_end().to_owned()
    };
    (0..buffer.area.height).map(row).collect::<Vec<_>>().join("\n")
}

fn pressed(history: &History, keys: &[Key]) -> (View, Board) {
    let mut view = View::default();
    let board = |view: &View| Board::of(history, view, 51, secs(10 * MINUTE));
    for key in keys {
        let shown = board(&view);
        assert_eq!(view.press(*key, &shown), Asked::Nothing, "{key:?}");
    }
    let shown = board(&view);
    (view, shown)
}

#[test]
fn a_small_terminal_shows_everything() {
    let history = history();
    insta::assert_snapshot!("small", text(&picture(&history, &View::default(), (80, 24), Theme::Colour)));
    insta::assert_snapshot!(
        "small_plain",
        text(&picture(&history, &View::default(), (80, 24), Theme::Plain))
    );
}

#[test]
fn a_large_terminal_shows_more() {
    let history = history();
    let (view, _) = pressed(&history, &[Key::Letter('-'), Key::Letter('b')]);
    insta::assert_snapshot!("large_plain", text(&picture(&history, &view, (200, 60), Theme::Plain)));
}

#[test]
fn keys_are_explained() {
    let history = history();
    let (view, _) = pressed(&history, &[Key::Letter('?')]);
    insta::assert_snapshot!("help", text(&picture(&history, &view, (80, 24), Theme::Plain)));
}

#[test]
fn a_server_that_is_gone_and_an_empty_start() {
    let mut gone = history();
    gone.note(secs(10 * MINUTE), "the server does not answer; trying again".into());
    let shown = text(&picture(&gone, &View::default(), (80, 24), Theme::Plain));
    assert!(shown.ends_with("12:10:00 the server does not answer; trying again"), "{shown}");
    let empty = History::new(Bounds::default());
    insta::assert_snapshot!("empty", text(&picture(&empty, &View::default(), (80, 24), Theme::Plain)));
}

/// No size makes it fail, and nothing is drawn in colour where there are none.
#[test]
fn every_size_can_be_drawn() {
    let history = history();
    for keys in [&[][..], &[Key::Letter('?')], &[Key::Tab, Key::Tab, Key::Tab, Key::Enter]] {
        let (view, _) = pressed(&history, keys);
        for width in [0, 1, 20, 59, 60, 61, 80, 99, 120, 160, 201] {
            for height in (0..26).chain((27..70).step_by(4)) {
                let buffer = picture(&history, &view, (width, height), Theme::Plain);
                let plain = |x, y| buffer[(x, y)].fg == ratatui_core::style::Color::Reset;
                assert!((0..width).all(|x| (0..height).all(|y| plain(x, y))), "{width} × {height}");
            }
        }
    }
}

#[test]
fn the_brush_decides_what_the_lists_are_about() {
    let history = history();
    let (_, board) = pressed(&history, &[]);
    assert_eq!(board.brush, (secs(9 * MINUTE), secs(10 * MINUTE)));
    let sync = &board.list(List::Events).rows[0];
    assert_eq!((sync.name.as_str(), sync.beside.as_str()), ("log file sync ≈", "IO:Native"));
    assert!((sync.mean - 4.0).abs() < 0.01, "{sync:?}");
    assert!((board.mean - 5.0).abs() < 0.05 && (board.on_cpu - 1.0).abs() < 0.01, "{}", board.mean);
    // A minute earlier two more read.
    let back = vec![Key::Left { shift: false }; 11];
    let (view, board) = pressed(&history, &back);
    assert!((board.mean - 6.8).abs() < 0.3, "{}", board.mean);
    assert!(view.end().is_some(), "the picture stands while one looks back");
    let (view, _) = pressed(&history, &[back, vec![Key::End]].concat());
    assert_eq!((view.end(), view.brush(secs(600))), (None, (secs(540), secs(600))));
    let (_, board) = pressed(&history, &[Key::Right { shift: false }]);
    assert_eq!(board.brush.1, secs(600), "not into the future");
    let (_, longer) = pressed(&history, &[Key::Left { shift: false }, Key::Left { shift: true }]);
    assert!(longer.brush.1 - longer.brush.0 < secs(60));
}

#[test]
fn drilling_narrows_chart_and_lists() {
    let history = history();
    let into = [Key::BackTab, Key::Enter];
    let (view, board) = pressed(&history, &into);
    assert_eq!(view.drill(), [Step::Class(Some(WaitClass::Commit))]);
    assert_eq!(board.bands[0].name, "log file sync");
    assert_eq!(board.list(List::Sessions).rows.len(), 4);
    let (view, board) = pressed(&history, &[&into[..], &[Key::Enter, Key::Down, Key::Enter]].concat());
    assert_eq!(board.path, ["Commit", "log file sync", "11 pgbench"]);
    assert_eq!(view.marked().0, List::Statements);
    assert!((board.mean - 1.0).abs() < 0.01);
    let (view, _) = pressed(&history, &[&into[..], &[Key::Back]].concat());
    assert!(view.drill().is_empty());
}

#[test]
fn holes_stay_holes_and_background_is_a_choice() {
    let history = history();
    let (_, board) = pressed(&history, &[Key::Letter('-')]);
    let hole = |t: u64| {
        board.columns[((secs(t).0 - board.from.0.min(secs(t).0)) / board.column.0) as usize].is_none()
    };
    assert!(board.from == Nanos(0) || hole(240), "nobody looked then");
    let (_, with) = pressed(&history, &[Key::Letter('b')]);
    assert!((with.mean - 6.0).abs() < 0.05, "{}", with.mean);
    assert!(with.list(List::Sessions).rows.iter().any(|row| row.name == "3 checkpointer"));
}

#[test]
fn time_can_be_turned_back_as_far_as_there_is_any() {
    let history = history();
    for keys in [[Key::PageUp; 6], [Key::Home; 6]] {
        let (view, board) = pressed(&history, &keys);
        assert_eq!(view.end(), Some(secs(5 * MINUTE)));
        assert!(board.from <= Nanos(board.column.0), "{:?}", board.from);
    }
    let (view, _) = pressed(&history, &[Key::Letter(' ')]);
    assert!(view.end().is_some());
    let (view, _) = pressed(&history, &[Key::Letter(' '), Key::Letter(' ')]);
    assert_eq!(view.end(), None);
}
