//! The browser in place of the terminal: one page and its events, behind the door of [`crate::loopback`].

use super::Source;
use crate::loopback::{self, Asked, Door, GUARDS};
use crate::stop;
use ::watch::board::Boards;
use ::watch::draw::Subject;
use ::watch::history::History;
use ::watch::view::View;
use ::watch::web;
use anyhow::Result;
use std::io::{self, Write};
use std::net::TcpStream;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use units::{Nanos, clock};

/// How often new looks are asked for.
const TAKE_EVERY: Nanos = Nanos::millis(100);
/// A page hears of us at least so often; so one that has gone is noticed, too.
const SEND_EVERY: Nanos = Nanos::millis(1_000);

/// What the pages see.
struct Shared {
    seen: Mutex<Seen>,
    changed: Condvar,
}

struct Seen {
    history: History,
    subject: Subject,
    now: Nanos,
    /// Grows with each change.
    version: u64,
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves `source` until Ctrl-C.
///
/// # Errors
/// No port, or no random word to be had.
pub fn run(mut source: impl Source, history: History, view: &View) -> Result<ExitCode> {
    let stop = stop::on_signal()?;
    let door = Door::open()?;
    let subject = source.subject().clone();
    let seen = Mutex::new(Seen { history, subject, now: source.now(), version: 0 });
    let shared = Arc::new(Shared { seen, changed: Condvar::new() });
    let Door { port, token, .. } = &door;
    anstream::println!(
        "Watching {}\nOpen http://127.0.0.1:{port}/{token}/?window={}\nOnly from this machine; from another one: ssh -L {port}:127.0.0.1:{port} HOST. \
         Ctrl-C ends it.",
        source.subject().title,
        view.window_number()
    );
    while !stop.load(Ordering::Relaxed) {
        let ours = shared.clone();
        door.answer(move |stream, asked| answer(stream, &asked, &ours));
        let mut seen = shared.seen();
        if source.take(&mut seen.history, Nanos(0)) {
            seen.version += 1;
            seen.subject = source.subject().clone();
            shared.changed.notify_all();
        }
        seen.now = source.now();
        drop(seen);
        clock::sleep(TAKE_EVERY);
    }
    Ok(ExitCode::SUCCESS)
}

fn answer(stream: &mut TcpStream, asked: &Asked, shared: &Shared) -> io::Result<()> {
    match asked.path.as_str() {
        "/" => loopback::page(stream, web::PAGE),
        "/events" => events(stream, shared, &web::view(&asked.query)),
        _ => loopback::refuse(stream, loopback::NOT_HERE),
    }
}

/// Boards of `view`, one after each change, until the page goes away; it comes back by itself.
fn events(stream: &mut TcpStream, shared: &Shared, view: &View) -> io::Result<()> {
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{GUARDS}\r\nretry: 1000\n\n")?;
    let mut boards = Boards::default();
    loop {
        let (json, version) = {
            let seen = shared.seen();
            let board = boards.board(&seen.history, view, web::COLUMNS, seen.now);
            (web::board(&board, &seen.subject, &seen.history, view), seen.version)
        };
        write!(stream, "data: {json}\n\n")?;
        stream.flush()?;
        let unchanged = |seen: &mut Seen| seen.version == version;
        let wait = shared.changed.wait_timeout_while(shared.seen(), SEND_EVERY.duration(), unchanged);
        drop(wait);
    }
}
