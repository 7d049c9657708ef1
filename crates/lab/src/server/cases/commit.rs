//! Case `commit` on a server: each session inserts rows of about 1,000 bytes into a table of its own and commits each.
//!
//! A row is one statement, which commits by itself: one way to the server and back. How much of that is the commit, the client cannot
//! see. Where [`run_timed`] is asked for it, each session inserts every sixteenth row in a transaction of three statements; what the
//! insert takes there and what it takes with its commit differ by the commit, and nothing else: both go to the server and back once.

use super::play;
use crate::LabError;
use crate::database::commit::{CLASSES, ROW_BYTES, TEXT_BYTES, TEXTS};
use crate::database::drive::{Performance, Played, Player, Terms};
use crate::database::inconsistent;
use crate::server::connection::StatementId;
use crate::server::site::Site;
use crate::server::{Connection, Kind, Parameter};
use std::sync::{Arc, Mutex, PoisonError};
use units::{Nanos, Rng, clock};

/// One row of so many is inserted and committed by statements of their own.
const APART_EVERY: i64 = 16;

/// Statements that were timed, and their time together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timed {
    /// How many.
    pub count: u64,
    /// How long together.
    pub time: Nanos,
}

impl Timed {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.time += other.time;
    }

    /// Nanoseconds of one; none where there was none.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.time.0 as f64 / self.count as f64)
    }
}

/// What statements take the client, from sending to the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommitTimes {
    /// An insert that commits by itself.
    pub whole: Timed,
    /// An insert inside a transaction.
    pub insert: Timed,
    /// The commit after it, the way to the server and back included.
    pub commit: Timed,
}

impl CommitTimes {
    /// Nanoseconds that a commit takes the client, without the way to the server; none where too little was timed.
    pub fn commit_ns(&self) -> Option<f64> {
        Some((self.whole.mean_ns()? - self.insert.mean_ns()?).max(0.0))
    }
}

/// Timed from `since` on; each session adds its own at its end.
#[derive(Clone)]
struct Stopwatch {
    since: Nanos,
    all: Arc<Mutex<CommitTimes>>,
}

struct Inserter {
    session: Box<dyn Connection>,
    insert: StatementId,
    next: i64,
    letters: String,
    stopwatch: Option<Stopwatch>,
    times: CommitTimes,
}

impl Inserter {
    /// The insert and its commit, by themselves.
    fn apart(
        session: &mut dyn Connection,
        insert: StatementId,
        row: &[Parameter<'_>],
    ) -> Result<(Timed, Timed), LabError> {
        let once = |began: Nanos, ended: Nanos| Timed { count: 1, time: ended - began };
        session.execute("begin")?;
        let began = clock::now();
        session.call(insert, row)?;
        let inserted = clock::now();
        session.execute("commit")?;
        Ok((once(began, inserted), once(inserted, clock::now())))
    }
}

impl Drop for Inserter {
    fn drop(&mut self) {
        if let Some(stopwatch) = &self.stopwatch {
            let mut all = stopwatch.all.lock().unwrap_or_else(PoisonError::into_inner);
            all.whole.add(self.times.whole);
            all.insert.add(self.times.insert);
            all.commit.add(self.times.commit);
        }
    }
}

impl Player for Inserter {
    fn play(&mut self, rng: &mut Rng) -> Result<Played, LabError> {
        let shift = rng.below((self.letters.len() - TEXT_BYTES) as u64) as usize;
        let text = Parameter::Text(&self.letters[shift..shift + TEXT_BYTES]);
        let mut row = [text; 1 + TEXTS];
        row[0] = Parameter::Integer(self.next);
        let began = clock::now();
        let timed = self.stopwatch.as_ref().is_some_and(|stopwatch| began >= stopwatch.since);
        if timed && self.next % APART_EVERY == 0 {
            let (insert, commit) = Self::apart(&mut *self.session, self.insert, &row)?;
            self.times.insert.add(insert);
            self.times.commit.add(commit);
        } else {
            self.session.call(self.insert, &row)?;
            if timed {
                self.times.whole.add(Timed { count: 1, time: clock::now() - began });
            }
        }
        self.next += 1;
        Ok(Played { class: 0, bytes: ROW_BYTES })
    }
}

fn insert(kind: Kind, table: &str) -> String {
    let places: Vec<String> = (1..=1 + TEXTS).map(|n| kind.place(n)).collect();
    format!("insert into {table} values ({})", places.join(", "))
}

/// Creates the tables, plays, checks that every acknowledged row is there, drops the tables.
///
/// # Errors
/// What the server says; rows that are missing or too many.
pub fn run(server: &dyn Site, count: u32, terms: Terms<'_>) -> Result<Performance, LabError> {
    perform(server, count, terms, None)
}

/// The same, and what its statements took within the window.
///
/// # Errors
/// As [`run`].
pub fn run_timed(
    server: &dyn Site,
    count: u32,
    terms: Terms<'_>,
) -> Result<(Performance, CommitTimes), LabError> {
    let all = Arc::new(Mutex::new(CommitTimes::default()));
    let performance = perform(server, count, terms, Some(&all))?;
    let times = *all.lock().unwrap_or_else(PoisonError::into_inner);
    Ok((performance, times))
}

fn perform(
    server: &dyn Site,
    count: u32,
    terms: Terms<'_>,
    all: Option<&Arc<Mutex<CommitTimes>>>,
) -> Result<Performance, LabError> {
    let mut admin = server.connect("commit")?;
    let letters: String = {
        let mut rng = Rng::new(terms.seed);
        (0..4096).map(|_| char::from(b'A' + rng.below(26) as u8)).collect()
    };
    let columns: Vec<String> = (1..=TEXTS).map(|n| format!("text{n} varchar(100)")).collect();
    let mut players: Vec<Inserter> = Vec::new();
    for index in 0..count {
        admin.execute(&format!("create table commit_{index} (id bigint, {})", columns.join(", ")))?;
        let mut session = server.connect(&format!("commit {index}"))?;
        let insert = session.prepare(&insert(server.kind(), &format!("commit_{index}")))?;
        let stopwatch = all.map(|all| Stopwatch { since: Nanos(u64::MAX), all: all.clone() });
        let (letters, times) = (letters.clone(), CommitTimes::default());
        players.push(Inserter { session, insert, next: 1, letters, stopwatch, times });
    }
    // Everything is there: the window opens this much later.
    let since = clock::now() + terms.settle;
    players.iter_mut().filter_map(|p| p.stopwatch.as_mut()).for_each(|stopwatch| stopwatch.since = since);
    let players: Vec<Box<dyn Player>> =
        players.into_iter().map(|player| Box::new(player) as Box<dyn Player>).collect();
    let performance = play(server, players, CLASSES.len(), terms)?;
    let mut counted = 0;
    for index in 0..count {
        counted += admin.number(&format!("select count(*) from commit_{index}"))? as u64;
        admin.execute(&format!("drop table commit_{index}"))?;
    }
    if counted != performance.played[0] {
        return Err(inconsistent(
            "commit",
            format!("{} commits were acknowledged and {counted} rows are there", performance.played[0]),
        ));
    }
    Ok(performance)
}
