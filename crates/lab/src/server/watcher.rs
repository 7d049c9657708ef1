//! Watches a server that was there before: one connection that may change nothing, looks at fixed times, devices beside them.
//!
//! The thread outlives the server: when it is gone, that is told once ([`Word::Lost`]), and every interval it is asked for again.

use super::sampler::{self, Seen};
use super::url::Address;
use super::{Connection, Kind, ServerError, mariadb};
use host::counters::{self, DiskCounters, Watch};
use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use units::{Nanos, clock};
use waits::WaitClass;

/// What our session is called there.
const PROGRAM: &str = "redoubt watch";

/// What a server says of itself, once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// `15.20`, `10.11.19-MariaDB` ….
    pub version: String,
    /// Processors of its machine; none when it is another machine.
    pub cpus: Option<u32>,
    /// What cannot be seen there, with what to type.
    pub doubts: Vec<String>,
}

/// One look.
#[derive(Clone, Debug)]
pub struct Glance {
    /// When, on this process's clock.
    pub t: Nanos,
    /// Time since the look before, which it stands for.
    pub weight: Nanos,
    /// What it took to ask.
    pub cost: Nanos,
    /// Who was at work.
    pub seen: Vec<Seen>,
    /// Counters of the devices at this look and the one before; empty when the server is on another machine.
    pub devices: Vec<(String, DiskCounters, DiskCounters)>,
}

/// What a watcher says.
#[derive(Debug)]
pub enum Word {
    /// It looked.
    Looked(Box<Glance>),
    /// The server does not answer any more.
    Lost(ServerError),
    /// It answers again.
    Back(Facts),
}

/// A thread that looks until this is dropped.
pub struct Watcher {
    words: Receiver<Word>,
    _stop: Sender<()>,
}

impl Watcher {
    /// Connects and begins to look, once in `every`.
    ///
    /// # Errors
    /// The server cannot be reached, or does not let us in.
    pub fn start(address: &Address, every: Nanos) -> Result<(Self, Facts), ServerError> {
        let (session, facts) = Session::open(address)?;
        let (tell, words) = mpsc::channel();
        let (stop, stopped) = mpsc::channel();
        let address = address.clone();
        let run = move || Loop { address, every, tell, stopped, session: Some(session) }.run();
        std::thread::Builder::new().name("watcher".into()).spawn(run).map_err(|error| {
            ServerError::Unreachable {
                kind: Kind::Postgres,
                address: "this machine".into(),
                said: error.to_string(),
                advice: "there are too many threads; see ulimit -u".into(),
            }
        })?;
        Ok((Self { words, _stop: stop }, facts))
    }

    /// What was said since the last call; waits up to `longest` for the first.
    pub fn words(&self, longest: Nanos) -> Vec<Word> {
        let first = self.words.recv_timeout(longest.duration()).ok();
        first.into_iter().chain(self.words.try_iter()).collect()
    }
}

struct Session {
    connection: Box<dyn Connection>,
    kind: Kind,
    /// MariaDB's `performance_schema` is on.
    instrumented: bool,
}

impl Session {
    fn open(address: &Address) -> Result<(Self, Facts), ServerError> {
        let mut connection = address.connect_read_only(PROGRAM)?;
        let (kind, c) = (address.kind, &mut *connection);
        // A look that takes longer than that is no look; it must not pile up on a server in trouble.
        c.execute(match kind {
            Kind::Postgres => "set statement_timeout = '10s'",
            Kind::Mariadb => "set session max_statement_time = 10",
        })?;
        let cpus = std::thread::available_parallelism().ok().filter(|_| address.is_local());
        let cpus = cpus.map(|n| n.get() as u32);
        let (version, doubts, instrumented) = match kind {
            Kind::Postgres => (text(c, "show server_version")?, postgres_doubts(c)?, true),
            Kind::Mariadb => {
                let on = text(c, "select @@performance_schema")? == "1";
                (text(c, "select version()")?, mariadb_doubts(c, on), on)
            }
        };
        Ok((Self { connection, kind, instrumented }, Facts { version, cpus, doubts }))
    }

    fn look(&mut self) -> Result<Vec<Seen>, ServerError> {
        if self.instrumented {
            return sampler::look(self.kind, &mut *self.connection);
        }
        let seen = mariadb::sessions::look_listed(&mut *self.connection)?;
        Ok(seen.into_iter().filter(|seen| seen.class(self.kind) != Some(WaitClass::Idle)).collect())
    }
}

fn text(connection: &mut dyn Connection, query: &str) -> Result<String, ServerError> {
    let rows = connection.rows(query)?;
    Ok(rows.into_iter().next().and_then(|row| row.into_iter().next().flatten()).unwrap_or_default())
}

fn postgres_doubts(connection: &mut dyn Connection) -> Result<Vec<String>, ServerError> {
    let sees_all = "select pg_has_role(current_user, 'pg_read_all_stats', 'usage')";
    let mut doubts = Vec::new();
    if text(connection, sees_all)? != "t" {
        let user = text(connection, "select current_user")?;
        doubts.push(format!(
            "Of other users' sessions PostgreSQL tells {user} nothing. As a superuser type: GRANT pg_monitor TO {user}"
        ));
    }
    if text(connection, "show track_activities")? != "on" {
        doubts.push("track_activities is off: statements and states are not told.".into());
    }
    Ok(doubts)
}

fn mariadb_doubts(connection: &mut dyn Connection, instrumented: bool) -> Vec<String> {
    if !instrumented {
        return vec![
            "performance_schema is off: of waits only commits and row locks are told, all else counts as CPU. In my.cnf, [mariadb]: \
             performance_schema=ON, performance-schema-instrument='wait/%=ON', \
             performance-schema-consumer-events-waits-current=ON; then restart."
                .into(),
        ];
    }
    // A user who may not read these tables is told by the first look.
    let number = |c: &mut dyn Connection, query: &str| c.number(query).unwrap_or(1);
    let instruments = number(
        connection,
        "select count(*) from performance_schema.setup_instruments where name like 'wait/io/file/innodb/%' and enabled = 'YES'",
    );
    let consumers = number(
        connection,
        "select count(*) from performance_schema.setup_consumers where name = 'events_waits_current' and enabled = 'YES'",
    );
    if instruments > 0 && consumers > 0 {
        return Vec::new();
    }
    vec![
        "waits are switched off in performance_schema, so most count as CPU. Type there: update performance_schema.setup_instruments \
         set enabled='YES', timed='YES' where name like 'wait/%'; update performance_schema.setup_consumers set enabled='YES' where \
         name = 'events_waits_current'"
            .into(),
    ]
}

struct Loop {
    address: Address,
    every: Nanos,
    tell: Sender<Word>,
    stopped: Receiver<()>,
    session: Option<Session>,
}

impl Loop {
    fn run(mut self) {
        let watch = if self.address.is_local() { counters::all_disks() } else { Watch::default() };
        let (mut last, mut due) = (clock::now(), clock::now() + self.every);
        let mut disks = counters::snapshot(&watch).disks;
        loop {
            let pause = due - clock::now();
            if !matches!(self.stopped.recv_timeout(pause.duration()), Err(RecvTimeoutError::Timeout)) {
                return;
            }
            let t = clock::now();
            let Some(word) = self.word(t, t - last, &watch, &mut disks) else {
                (last, due) = (t, t + self.every);
                continue;
            };
            if self.tell.send(word).is_err() {
                return;
            }
            last = t;
            due = (due + self.every).max(clock::now());
        }
    }

    /// What is to be told now; nothing while the server stays away.
    fn word(
        &mut self,
        t: Nanos,
        weight: Nanos,
        watch: &Watch,
        disks: &mut BTreeMap<String, DiskCounters>,
    ) -> Option<Word> {
        let Some(session) = &mut self.session else {
            let (session, facts) = Session::open(&self.address).ok()?;
            self.session = Some(session);
            *disks = counters::snapshot(watch).disks;
            return Some(Word::Back(facts));
        };
        let seen = match session.look() {
            Ok(seen) => seen,
            Err(error) => {
                self.session = None;
                return Some(Word::Lost(error));
            }
        };
        let cost = clock::now() - t;
        let now = counters::snapshot(watch).disks;
        let before = std::mem::replace(disks, now);
        let both = |(name, new): (&String, &DiskCounters)| Some((name.clone(), *before.get(name)?, *new));
        let devices = disks.iter().filter_map(both).collect();
        Some(Word::Looked(Box::new(Glance { t, weight, cost, seen, devices })))
    }
}
