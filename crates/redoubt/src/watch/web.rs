//! The browser in place of the terminal: one page and its events, on loopback, behind a random word.
//!
//! A handful of requests by one person need no framework: a thread for each connection, `httparse` for the head of a request. Whoever
//! does not know the word gets nothing, nor does a page of somebody else's that was led here by its name (`Host`).

use super::Source;
use crate::stop;
use ::watch::board::Board;
use ::watch::draw::Subject;
use ::watch::history::History;
use ::watch::view::View;
use ::watch::web;
use anyhow::{Context, Result};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use units::{Nanos, clock};

/// How often new looks are asked for.
const TAKE_EVERY: Nanos = Nanos::millis(100);
/// A page hears of us at least so often; so one that has gone is noticed, too.
const SEND_EVERY: Nanos = Nanos::millis(1_000);
/// Longest that a browser may take to ask, or to take an answer.
const PATIENCE: Nanos = Nanos::millis(10_000);
/// Longest head of a request, bytes.
const HEAD_MAX: usize = 8 << 10;
/// Most connections at a time.
const CONNECTIONS_MAX: usize = 32;

/// What the pages see.
struct Shared {
    seen: Mutex<Seen>,
    changed: Condvar,
    connections: AtomicUsize,
    /// The word in every path.
    token: String,
    port: u16,
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
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port on 127.0.0.1 is free for the page")?;
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    let subject = source.subject().clone();
    let seen = Mutex::new(Seen { history, subject, now: source.now(), version: 0 });
    let (changed, connections) = (Condvar::new(), AtomicUsize::new(0));
    let shared = Arc::new(Shared { seen, changed, connections, token: token()?, port });
    anstream::println!(
        "Watching {}\nOpen http://127.0.0.1:{port}/{}/?window={}\nOnly from this machine; from another one: ssh -L {port}:127.0.0.1:{port} HOST. \
         Ctrl-C ends it.",
        source.subject().title,
        shared.token,
        view.window_number()
    );
    while !stop.load(Ordering::Relaxed) {
        while let Ok((stream, _)) = listener.accept() {
            answer_beside(stream, &shared);
        }
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

/// 128 random bits.
fn token() -> Result<String> {
    let mut bytes = [0u8; 16];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.context("/dev/urandom gives no random bytes")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn answer_beside(stream: TcpStream, shared: &Arc<Shared>) {
    if shared.connections.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
        shared.connections.fetch_sub(1, Ordering::Relaxed);
        return;
    }
    let ours = shared.clone();
    let answer = move || {
        // A browser that went away is no error.
        let _ = answer(stream, &ours);
        ours.connections.fetch_sub(1, Ordering::Relaxed);
    };
    if std::thread::Builder::new().name("page".into()).spawn(answer).is_err() {
        shared.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Page,
    Events(String),
    /// Refused: status and words.
    No(&'static str, &'static str),
}

/// `head`: the request up to its empty line.
fn asked(head: &[u8], token: &str, port: u16) -> Asked {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    if !request.parse(head).is_ok_and(|status| status.is_complete()) {
        return Asked::No("400 Bad Request", "this is no request\n");
    }
    let host = request.headers.iter().find(|h| h.name.eq_ignore_ascii_case("host")).map(|h| h.value);
    let ours = ["127.0.0.1", "localhost"].map(|name| format!("{name}:{port}"));
    if !host.is_some_and(|host| ours.iter().any(|name| name.as_bytes() == host)) {
        return Asked::No("403 Forbidden", "open this page as http://127.0.0.1\n");
    }
    if request.method != Some("GET") {
        return Asked::No("405 Method Not Allowed", "there is nothing to change here\n");
    }
    let target = request.path.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    match path.strip_prefix('/').and_then(|path| path.strip_prefix(token)) {
        Some("/") => Asked::Page,
        Some("/events") => Asked::Events(query.to_owned()),
        _ => Asked::No(
            "404 Not Found",
            "not here; the address with its random word is where redoubt watch was typed\n",
        ),
    }
}

fn answer(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE.duration()))?;
    stream.set_write_timeout(Some(PATIENCE.duration()))?;
    let mut head = Vec::new();
    let mut part = [0u8; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read(&mut part)?;
        if count == 0 || head.len() + count > HEAD_MAX {
            return Ok(());
        }
        head.extend_from_slice(&part[..count]);
    }
    match asked(&head, &shared.token, shared.port) {
        Asked::Page => whole(&mut stream, "200 OK", "text/html; charset=utf-8", web::PAGE),
        Asked::No(status, words) => whole(&mut stream, status, "text/plain; charset=utf-8", words),
        Asked::Events(query) => events(&mut stream, shared, &web::view(&query)),
    }
}

/// Nothing of the page comes from elsewhere, and its address with the word goes nowhere.
const GUARDS: &str = "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\
     Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; \
     frame-ancestors 'none'\r\nConnection: close\r\n";

fn whole(stream: &mut TcpStream, status: &str, kind: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{GUARDS}\r\n{body}"
    )?;
    stream.flush()
}

/// Boards of `view`, one after each change, until the page goes away; it comes back by itself.
fn events(stream: &mut TcpStream, shared: &Shared, view: &View) -> io::Result<()> {
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{GUARDS}\r\nretry: 1000\n\n")?;
    loop {
        let (json, version) = {
            let seen = shared.seen();
            let board = Board::of(&seen.history, view, web::COLUMNS, seen.now);
            (web::board(&board, &seen.subject, &seen.history, view), seen.version)
        };
        write!(stream, "data: {json}\n\n")?;
        stream.flush()?;
        let unchanged = |seen: &mut Seen| seen.version == version;
        let wait = shared.changed.wait_timeout_while(shared.seen(), SEND_EVERY.duration(), unchanged);
        drop(wait);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_knows_the_word_is_answered() {
        let check = |line: &str, host: &str, expected: &str| {
            let head = format!("{line} HTTP/1.1\r\nHost: {host}\r\n\r\n");
            let said = format!("{:?}", asked(head.as_bytes(), "abc", 80));
            assert!(said.starts_with(expected), "{line} {host}: {said}");
        };
        check("GET /abc/", "127.0.0.1:80", "Page");
        check("GET /abc/?window=3", "localhost:80", "Page");
        check("GET /abc/events?end=5", "127.0.0.1:80", "Events(\"end=5\")");
        check("GET /", "127.0.0.1:80", "No(\"404");
        check("GET /abcd/", "127.0.0.1:80", "No(\"404");
        check("GET /abc/../x", "127.0.0.1:80", "No(\"404");
        check("GET /abc/", "evil.example:80", "No(\"403");
        check("POST /abc/", "127.0.0.1:80", "No(\"405");
        assert_eq!(asked(b"\x16\x03\x01", "abc", 80), Asked::No("400 Bad Request", "this is no request\n"));
    }

    #[test]
    fn words_differ() {
        let (one, two) = (token().expect("a word"), token().expect("a word"));
        assert!(one != two && one.len() == 32);
    }
}
