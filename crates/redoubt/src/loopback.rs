//! Pages on loopback, behind a random word: the door that `watch --web` and `serve` share.
//!
//! A handful of requests by one person need no framework: a thread for each connection, `httparse` for the head of a request. Whoever
//! does not know the word gets nothing, nor does a page of somebody else's that was led here by its name (`Host`).

use anyhow::{Context, Result};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use units::{Nanos, clock};

/// Longest that a browser may take to ask, or to take an answer.
const PATIENCE: Nanos = Nanos::millis(10_000);
/// Longest head of a request, bytes.
const HEAD_MAX: usize = 8 << 10;
/// Most connections at a time.
const CONNECTIONS_MAX: usize = 32;

/// Nothing of a page comes from elsewhere, and its address with the word goes nowhere.
pub const GUARDS: &str = "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\
     Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; connect-src 'self'; \
     frame-ancestors 'none'\r\nConnection: close\r\n";

/// What is asked for: the path behind the word, and the query.
#[derive(Debug, PartialEq, Eq)]
pub struct Asked {
    /// `/`, `/events` ….
    pub path: String,
    /// Behind the `?`.
    pub query: String,
}

/// A refusal: status and words.
pub type Refused = (&'static str, &'static str);

/// A port of this machine.
pub struct Door {
    listener: TcpListener,
    /// The port.
    pub port: u16,
    /// The word in every path.
    pub token: Arc<str>,
    connections: Arc<AtomicUsize>,
}

impl Door {
    /// Opens one.
    ///
    /// # Errors
    /// No port, or no random word to be had.
    pub fn open() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .context("no port on 127.0.0.1 is free for the page")?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port, token: token()?.into(), connections: Arc::default() })
    }

    /// Answers whoever has come, each by a thread; `answer` says what to do with a request.
    pub fn answer(&self, answer: impl Fn(&mut TcpStream, Asked) -> io::Result<()> + Clone + Send + 'static) {
        while let Ok((stream, _)) = self.listener.accept() {
            if self.connections.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
                self.connections.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let (token, port, place) = (self.token.clone(), self.port, Place(self.connections.clone()));
            let answer = answer.clone();
            let one = move || {
                // A browser that went away is no error.
                let _ = receive(stream, &token, port, &answer);
                drop(place);
            };
            // Without a thread the connection is closed.
            let _ = std::thread::Builder::new().name("page".into()).spawn(one);
        }
    }
}

/// One of the connections; free again when this is dropped, also by a panic.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// 128 random bits.
fn token() -> Result<String> {
    let mut bytes = [0u8; 16];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.context("/dev/urandom gives no random bytes")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// `head`: the request up to its empty line.
fn asked(head: &[u8], token: &str, port: u16) -> Result<Asked, Refused> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    if !request.parse(head).is_ok_and(|status| status.is_complete()) {
        return Err(("400 Bad Request", "this is no request\n"));
    }
    let host = request.headers.iter().find(|h| h.name.eq_ignore_ascii_case("host")).map(|h| h.value);
    let ours = ["127.0.0.1", "localhost"].map(|name| format!("{name}:{port}"));
    if !host.is_some_and(|host| ours.iter().any(|name| name.as_bytes() == host)) {
        return Err(("403 Forbidden", "open this page as http://127.0.0.1\n"));
    }
    if request.method != Some("GET") {
        return Err(("405 Method Not Allowed", "there is nothing to change here\n"));
    }
    let target = request.path.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let path = path.strip_prefix('/').and_then(|path| path.strip_prefix(token));
    let path = path.filter(|path| path.starts_with('/')).ok_or(NOT_HERE)?;
    Ok(Asked { path: path.to_owned(), query: query.to_owned() })
}

/// What is not there, for who knows the word and who does not.
pub const NOT_HERE: Refused =
    ("404 Not Found", "not here; the address with its random word is where redoubt was typed\n");

fn receive(
    mut stream: TcpStream,
    token: &str,
    port: u16,
    answer: &impl Fn(&mut TcpStream, Asked) -> io::Result<()>,
) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(PATIENCE.duration()))?;
    let mut head = Vec::new();
    let mut part = [0u8; 1024];
    // For the whole head: whoever sends a byte now and then holds no place.
    let until = clock::now() + PATIENCE;
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = until - clock::now();
        if left == Nanos(0) {
            return Ok(());
        }
        stream.set_read_timeout(Some(left.duration()))?;
        let count = stream.read(&mut part)?;
        if count == 0 || head.len() + count > HEAD_MAX {
            return Ok(());
        }
        head.extend_from_slice(&part[..count]);
    }
    match asked(&head, token, port) {
        Ok(asked) => answer(&mut stream, asked),
        Err(refused) => refuse(&mut stream, refused),
    }
}

/// A whole page.
///
/// # Errors
/// The browser went away.
pub fn page(stream: &mut TcpStream, html: &str) -> io::Result<()> {
    whole(stream, "200 OK", "text/html; charset=utf-8", html)
}

/// A refusal in words.
///
/// # Errors
/// The browser went away.
pub fn refuse(stream: &mut TcpStream, (status, words): (&str, &str)) -> io::Result<()> {
    whole(stream, status, "text/plain; charset=utf-8", words)
}

fn whole(stream: &mut TcpStream, status: &str, kind: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{GUARDS}\r\n{body}"
    )?;
    stream.flush()
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
        check("GET /abc/", "127.0.0.1:80", "Ok(Asked { path: \"/\", query: \"\" }");
        check("GET /abc/events?end=5", "localhost:80", "Ok(Asked { path: \"/events\", query: \"end=5\" }");
        check("GET /", "127.0.0.1:80", "Err((\"404");
        check("GET /abcd/", "127.0.0.1:80", "Err((\"404");
        check("GET /abc/", "evil.example:80", "Err((\"403");
        check("POST /abc/", "127.0.0.1:80", "Err((\"405");
        assert_eq!(asked(b"\x16\x03\x01", "abc", 80), Err(("400 Bad Request", "this is no request\n")));
    }

    /// A thread that panics, and one that ends well, give their places back.
    #[test]
    fn places_are_given_back() {
        let door = Door::open().expect("a port");
        let ask = |path: &str| {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, door.port)).expect("a connection");
            write!(stream, "GET /{}{path} HTTP/1.1\r\nHost: localhost:{}\r\n\r\n", door.token, door.port)
                .expect("a request");
            door.answer(|stream, asked| match asked.path.as_str() {
                "/" => page(stream, "here"),
                path => panic!("{path} was to panic"),
            });
            let mut said = String::new();
            let _ = stream.read_to_string(&mut said);
            said
        };
        for _ in 0..2 * CONNECTIONS_MAX {
            assert_eq!(ask("/panic"), "");
        }
        let until = clock::now() + PATIENCE;
        while door.connections.load(Ordering::Relaxed) > 0 {
            assert!(clock::now() < until, "places are still taken");
            clock::sleep(Nanos::millis(1));
        }
        let said = ask("/");
        assert!(said.starts_with("HTTP/1.1 200 OK") && said.ends_with("here"), "{said}");
    }

    #[test]
    fn words_differ() {
        let (one, two) = (token().expect("a word"), token().expect("a word"));
        assert!(one != two && one.len() == 32);
    }
}
