//! Active sessions of a server, seen from outside: one connection, ten looks per second, each row under the one wait vocabulary.
//!
//! A server tells what each session waits for now, and nothing of how long: a row stands for the time since the look before, as in
//! the embedded database's own history. What its words are taken for, and how well that fits, is kept beside
//! ([`NativeWaitRow`]), so that the picture can say which part of it is exact, approximate or inferred.

use super::sampled::Sampled;
use super::site::Site;
use super::{Connection, Kind, ServerError, mariadb, postgres};
use crate::LabError;
use record::{AshRow, AshTickRow, NativeWaitRow, Writer};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use units::{Nanos, clock};
use waits::{Event, Grade, SessionKind, WaitClass};

/// How often sessions are looked at: as often as those of the embedded database.
const SAMPLE_EVERY: Nanos = Nanos::millis(100);

/// What the sampler's own session is called.
const PROGRAM: &str = "sampler";

/// A session that is at work, as the server shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its number there.
    pub session: u32,
    /// Whose it is.
    pub kind: SessionKind,
    /// The name of a client, or of a process of the server.
    pub program: String,
    /// What it waits for, in the server's words; none: nothing that the server tells, so on CPU (`CPU*`).
    pub wait: Option<String>,
    /// The event that says the same, and how well.
    pub event: Option<(Event, Grade)>,
    /// Its commit goes on, whatever it waits for there; only MariaDB tells.
    pub in_commit: bool,
    /// The beginning of its statement.
    pub statement: Option<String>,
    /// The statement without its values ([`shape`]).
    pub shape: Option<String>,
    /// The file that it waits for, where the server tells.
    pub file: Option<String>,
    /// Who blocks it.
    pub blocker: Option<u32>,
}

impl Seen {
    /// The class of what it waits for; none: on CPU.
    pub fn class(&self, server: Kind) -> Option<WaitClass> {
        let wait = self.wait.as_ref()?;
        Some(match (&self.event, server) {
            (Some((event, _)), _) => event.class(),
            (None, Kind::Postgres) => WaitClass::of_postgres(self.kind, wait),
            (None, Kind::Mariadb) => WaitClass::Other,
        })
    }
}

/// The first two words of a statement, without its values: what it does.
pub(super) fn statement(sql: &str) -> Option<String> {
    let head = sql.split(['(', '\n']).next().unwrap_or_default();
    let words: Vec<&str> = head.split_whitespace().take(2).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// Longest [`shape`], characters.
const SHAPE_MAX: usize = 200;

/// A statement without its values, comments and line ends: the same for all that differ in values alone.
pub(super) fn shape(sql: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = sql.trim();
    while let Some(c) = rest.chars().next() {
        let in_word = out.chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$');
        let before = out.trim_end().chars().next_back().unwrap_or(' ');
        let signed = rest.chars().nth(1).is_some_and(|c| c.is_ascii_digit()) && "(,=<>+-*/".contains(before);
        let (taken, text) = if "+-".contains(c) && signed {
            (1, "")
        } else if c == '\'' {
            (quoted(rest), "?")
        } else if rest.starts_with("--") || rest.starts_with("/*") {
            let end = if rest.starts_with("--") { "\n" } else { "*/" };
            (rest.find(end).map_or(rest.len(), |at| at + end.len()), " ")
        } else if c.is_ascii_digit() && !in_word {
            let number = |c: char| !(c.is_ascii_alphanumeric() || c == '.');
            (rest.find(number).unwrap_or(rest.len()), "?")
        } else if c.is_whitespace() {
            (c.len_utf8(), " ")
        } else {
            (c.len_utf8(), &rest[..c.len_utf8()])
        };
        if !(text == " " && out.ends_with(' ')) {
            out.push_str(text);
        }
        // A list of values, however long, is one.
        if text == "?" {
            let list = ["?, ?", "?,?", "?, …, ?", "?,…, ?"].iter().find(|list| out.ends_with(**list));
            if let Some(list) = list {
                out.truncate(out.len() - list.len());
                out.push_str("?, …");
            } else if out.ends_with("…, ?") || out.ends_with("…,?") {
                out.truncate(out.rfind('…').unwrap_or(0));
                out.push('…');
            }
        }
        if out.len() > 4 * SHAPE_MAX {
            break;
        }
        rest = &rest[taken..];
    }
    let out = out.trim_end_matches([' ', ';']).trim_start();
    let end = out.char_indices().nth(SHAPE_MAX).map_or(out.len(), |(at, _)| at);
    (!out.is_empty()).then(|| out[..end].to_owned())
}

/// Length of a text in quotes, with them; `''` and `\\'` belong to it.
fn quoted(text: &str) -> usize {
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => {
                characters.next();
            }
            '\'' if characters.peek().is_some_and(|(_, next)| *next == '\'') => {
                characters.next();
            }
            '\'' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Looks at a server while it works.
pub struct Sampler {
    kind: Kind,
    shelf: Arc<Mutex<Shelf>>,
    stop: mpsc::Sender<()>,
    thread: Option<JoinHandle<()>>,
}

/// Time of users' sessions, summed over samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeenTime {
    /// Looks.
    pub ticks: usize,
    /// In any call.
    pub active: Nanos,
    /// In `log file sync`.
    pub committing: Nanos,
    /// In other waits of a commit.
    pub committing_elsewhere: Nanos,
}

#[derive(Default)]
struct Shelf {
    ticks: Vec<AshTickRow>,
    rows: Vec<AshRow>,
    /// Users' sessions in a commit that waited for something else than redo: when, and the time that each look stands for.
    elsewhere: Vec<(Nanos, Nanos)>,
    native: BTreeMap<(String, bool), NativeWaitRow>,
}

impl Sampler {
    /// Begins to look, with a connection of its own.
    ///
    /// # Errors
    /// The server refuses the connection.
    pub fn start(server: &dyn Site) -> Result<Self, LabError> {
        let kind = server.kind();
        let connector = server.connector();
        let mut connection = Some(server.connect(PROGRAM)?);
        let shelf = Arc::new(Mutex::new(Shelf::default()));
        let (stop, stopped) = mpsc::channel();
        let filled = shelf.clone();
        let look = move || {
            let (mut last, mut due) = (clock::now(), clock::now() + SAMPLE_EVERY);
            loop {
                let now = clock::now();
                let pause = if due > now { due - now } else { Nanos(0) };
                if !matches!(stopped.recv_timeout(pause.duration()), Err(RecvTimeoutError::Timeout)) {
                    return;
                }
                let began = clock::now();
                // While it is stopped and started again nobody works; a server that is gone is told by those who did.
                connection = connection.or_else(|| connector.connect(PROGRAM).ok());
                let seen = match connection.as_mut().map(|open| look(kind, &mut **open)) {
                    Some(Ok(seen)) => seen,
                    failed => {
                        // Whoever may not look is told so once, by those who began; a connection is kept.
                        let refused = matches!(failed, Some(Err(ServerError::Refused { .. })));
                        connection = connection.filter(|_| refused);
                        due = clock::now() + SAMPLE_EVERY;
                        continue;
                    }
                };
                let ended = clock::now();
                let mut shelf = filled.lock().unwrap_or_else(PoisonError::into_inner);
                shelf.add(kind, &seen, Look { planned: due, began, ended, weight: began - last });
                last = began;
                due = (due + SAMPLE_EVERY).max(ended);
            }
        };
        let thread = std::thread::Builder::new().name("sampler".into()).spawn(look).ok();
        Ok(Self { kind, shelf, stop, thread })
    }

    /// Writes what was seen since the last call, as rows of `visit`.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn store(&mut self, visit: i64, writer: &mut Writer) -> Result<(), LabError> {
        let shelf = std::mem::take(&mut *self.shelf.lock().unwrap_or_else(PoisonError::into_inner));
        writer.of_visit(visit, &shelf.ticks)?;
        writer.of_visit(visit, &shelf.rows)?;
        writer.of_visit(visit, &shelf.native.into_values().collect::<Vec<_>>())?;
        Ok(())
    }

    /// What users' sessions were seen to do between two moments, as far as it was not yet stored.
    pub fn seen(&self, between: &Range<Nanos>) -> SeenTime {
        let shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        let within = |t_ns: u64| between.contains(&Nanos(t_ns));
        let ticks = shelf.ticks.iter().filter(|tick| within(tick.t_ns)).count();
        let mut seen = SeenTime { ticks, ..SeenTime::default() };
        for row in shelf.rows.iter().filter(|row| row.foreground && within(row.t_ns)) {
            seen.active += Nanos(row.weight_ns);
            if row.event.as_deref() == Some(Event::LogFileSync.name()) {
                seen.committing += Nanos(row.weight_ns);
            }
        }
        let elsewhere = shelf.elsewhere.iter().filter(|(t, _)| between.contains(t));
        seen.committing_elsewhere = elsewhere.fold(Nanos(0), |sum, (_, weight)| sum + *weight);
        seen
    }

    /// What all sessions were seen to do between two moments; whatever was seen until now is forgotten, stored or not.
    pub fn take(&mut self, between: &Range<Nanos>) -> Sampled {
        let shelf = std::mem::take(&mut *self.shelf.lock().unwrap_or_else(PoisonError::into_inner));
        let within = |t_ns: u64| between.contains(&Nanos(t_ns));
        let looks = shelf.ticks.iter().filter(|tick| within(tick.t_ns)).count();
        Sampled::of(looks, shelf.rows.iter().filter(|row| within(row.t_ns)))
    }

    /// Whose sessions they are.
    pub fn kind(&self) -> Kind {
        self.kind
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        let _ = self.stop.send(());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Everybody who works or waits now; whoever is idle is left out.
///
/// # Errors
/// What the server says.
pub fn look(kind: Kind, connection: &mut dyn Connection) -> Result<Vec<Seen>, ServerError> {
    let seen = match kind {
        Kind::Postgres => postgres::sessions::look(connection)?,
        Kind::Mariadb => mariadb::sessions::look(connection)?,
    };
    Ok(seen.into_iter().filter(|seen| seen.class(kind) != Some(WaitClass::Idle)).collect())
}

/// When a look was.
struct Look {
    planned: Nanos,
    began: Nanos,
    ended: Nanos,
    weight: Nanos,
}

impl Shelf {
    fn add(&mut self, kind: Kind, seen: &[Seen], look: Look) {
        self.ticks.push(AshTickRow {
            t_ns: look.began.0,
            planned_ns: look.planned.0,
            cost_ns: (look.ended - look.began).0,
            active: seen.len() as u32,
        });
        for seen in seen {
            let class = seen.class(kind);
            let event = seen.event.map(|(event, _)| event.name().to_owned()).or_else(|| seen.wait.clone());
            self.rows.push(AshRow {
                t_ns: look.began.0,
                weight_ns: look.weight.0,
                session: seen.session,
                foreground: seen.kind == SessionKind::Foreground,
                program: seen.program.clone(),
                event,
                wait_class: class.map_or("CPU", WaitClass::name).to_owned(),
                p1: 0,
                p2: 0,
                p3: 0,
                file_no: 0,
                block_no: 0,
                statement: seen.statement.clone(),
                blocking_session: seen.blocker,
            });
            self.add_native(seen, class, look.weight);
            let syncs = seen.event.is_some_and(|(event, _)| event == Event::LogFileSync);
            if seen.in_commit && !syncs && seen.kind == SessionKind::Foreground {
                self.elsewhere.push((look.began, look.weight));
            }
        }
    }

    fn add_native(&mut self, seen: &Seen, class: Option<WaitClass>, weight: Nanos) {
        let (wait, foreground) =
            (seen.wait.clone().unwrap_or_default(), seen.kind == SessionKind::Foreground);
        let row = self.native.entry((wait.clone(), foreground)).or_insert_with(|| {
            let grade = match (&seen.wait, seen.event) {
                // What no wait accounts for: mostly a processor, or waits that the server does not tell.
                (None, _) => Grade::Approximate,
                (Some(_), Some((_, grade))) => grade,
                (Some(_), None) => Grade::None,
            };
            NativeWaitRow {
                foreground,
                wait,
                event: seen.event.map(|(event, _)| event.name().to_owned()),
                wait_class: class.map_or("CPU", WaitClass::name).to_owned(),
                grade: grade.name().to_owned(),
                samples: 0,
                time_ns: 0,
            }
        });
        row.samples += 1;
        row.time_ns += weight.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(wait: Option<&str>, kind: SessionKind) -> Seen {
        Seen {
            session: 1,
            kind,
            program: "test".into(),
            wait: wait.map(str::to_owned),
            event: wait.and_then(|wait| Event::from_postgres(kind, wait)),
            in_commit: false,
            statement: None,
            shape: None,
            file: None,
            blocker: None,
        }
    }

    #[test]
    fn shapes_have_no_values() {
        for (sql, expected) in [
            ("select * from t1 where a = 17 and b = 'it''s'", "select * from t1 where a = ? and b = ?"),
            ("insert into t values (1, 2, 3, 4),(5,6)", "insert into t values (?, …),(?, …)"),
            (
                "/* app */ update t  set x = x + -3.5e7 -- why\n where id = $1;",
                "update t set x = x + ? where id = $1",
            ),
            ("select 'unended", "select ?"),
            ("select 'a\\'b', 0x1f", "select ?, …"),
        ] {
            assert_eq!(shape(sql).as_deref(), Some(expected), "{sql}");
        }
        assert_eq!(shape("  "), None);
        assert_eq!(shape(&"x".repeat(5000)).map(|text| text.len()), Some(SHAPE_MAX));
    }

    #[test]
    fn rows_carry_the_event_and_its_grade() {
        let mut shelf = Shelf::default();
        let all = [
            seen(Some("LWLock:WALWrite"), SessionKind::Foreground),
            seen(Some("IO:WALSync"), SessionKind::Foreground),
            seen(Some("IO:WALSync"), SessionKind::Foreground),
            seen(None, SessionKind::Foreground),
        ];
        let weight = Nanos::millis(100);
        shelf.add(Kind::Postgres, &all, Look { planned: Nanos(5), began: Nanos(6), ended: Nanos(9), weight });
        assert_eq!((shelf.ticks[0].active, shelf.ticks[0].cost_ns), (4, 3));
        let events: Vec<_> = shelf.rows.iter().map(|row| row.event.as_deref().unwrap_or("CPU")).collect();
        assert_eq!(events, ["log file sync", "log file sync", "log file sync", "CPU"]);
        let native: Vec<_> =
            shelf.native.values().map(|n| (n.wait.as_str(), n.samples, n.grade.as_str())).collect();
        assert_eq!(
            native,
            [("", 1, "approximate"), ("IO:WALSync", 2, "approximate"), ("LWLock:WALWrite", 1, "approximate")]
        );
    }

    #[test]
    fn statements_are_told_without_their_values() {
        for (sql, words) in [
            ("insert into commit_3 values ($1, $2)", Some("insert into")),
            ("call new_order($1, $2)", Some("call new_order")),
            ("", None),
        ] {
            assert_eq!(statement(sql).as_deref(), words);
        }
    }
}
