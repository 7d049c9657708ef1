//! The catalogue: what can be waited for, what it means, and what other databases call it.
//!
//! [`Event`] and its table come from `events.txt` by way of `build.rs`. Colours and other matters of a screen are not here.

use crate::SessionKind;
use std::fmt;

/// Groups of events that have one kind of cause. In the order of the usual chart, from the bottom; time on CPU, which is no
/// wait, lies below them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WaitClass {
    /// The processor is shared out.
    Scheduler,
    /// Sessions wait for their own reads and writes of data.
    UserIo,
    /// Background processes wait for the writes that they do for all.
    SystemIo,
    /// Sessions stand in each other's way inside the database.
    Concurrency,
    /// Sessions stand in each other's way because the application says so: row locks, table locks.
    Application,
    /// Until redo is on disk.
    Commit,
    /// Something is too small, too few or too slow: log groups, buffers, extents.
    Configuration,
    /// What a DBA's command takes.
    Administrative,
    /// Between database and client.
    Network,
    /// The rest.
    Other,
    /// Nothing to do. Not drawn, and no part of DB time.
    Idle,
}

impl WaitClass {
    /// All, from the bottom of the chart.
    pub const ALL: [Self; 11] = [
        Self::Scheduler,
        Self::UserIo,
        Self::SystemIo,
        Self::Concurrency,
        Self::Application,
        Self::Commit,
        Self::Configuration,
        Self::Administrative,
        Self::Network,
        Self::Other,
        Self::Idle,
    ];

    /// As `v$event_name.wait_class` spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scheduler => "Scheduler",
            Self::UserIo => "User I/O",
            Self::SystemIo => "System I/O",
            Self::Concurrency => "Concurrency",
            Self::Application => "Application",
            Self::Commit => "Commit",
            Self::Configuration => "Configuration",
            Self::Administrative => "Administrative",
            Self::Network => "Network",
            Self::Other => "Other",
            Self::Idle => "Idle",
        }
    }

    /// The class of a PostgreSQL wait, for charts that show both databases in the same colours; also for waits that no
    /// event maps to. `wait`: `TYPE:NAME` of `pg_stat_activity`.
    pub fn of_postgres(kind: SessionKind, wait: &str) -> Self {
        let (group, name) = wait.split_once(':').unwrap_or((wait, ""));
        let is = |names: &[&str]| names.iter().any(|n| n.eq_ignore_ascii_case(name));
        let log = name.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("wal"));
        match (group, kind) {
            ("IO", SessionKind::Background) => Self::SystemIo,
            ("IO", SessionKind::Foreground) if log => Self::Commit,
            ("IO", SessionKind::Foreground) => Self::UserIo,
            ("LWLock", _) if is(&["WALWrite"]) => Self::Commit,
            ("LWLock", _) if is(&["WALInsert", "WALBufMapping"]) => Self::Configuration,
            ("LWLock" | "BufferPin", _) => Self::Concurrency,
            ("Lock", _) if is(&["extend"]) => Self::Configuration,
            ("Lock", _) => Self::Application,
            ("IPC", _) if is(&["SyncRep"]) => Self::Commit,
            ("IPC", _) if is(&["BufferIo"]) => Self::UserIo,
            ("Client", _) if is(&["ClientWrite"]) => Self::Network,
            ("Client" | "Activity", _) => Self::Idle,
            ("Timeout", _) if is(&["PgSleep", "CheckpointWriteDelay"]) => Self::Idle,
            ("Timeout", _) => Self::Scheduler,
            _ => Self::Other,
        }
    }
}

impl fmt::Display for WaitClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How well another database's wait says the same. Better ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// The same thing.
    Exact,
    /// The same cause, another boundary.
    Approximate,
    /// Concluded from something else, such as a counter.
    Inferred,
    /// It cannot be seen there.
    None,
}

impl Grade {
    /// As `events.txt` spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Approximate => "approximate",
            Self::Inferred => "inferred",
            Self::None => "none",
        }
    }
}

/// What an event is called in another database.
#[derive(Clone, Copy, Debug)]
pub struct Mapping {
    /// How well that fits.
    pub grade: Grade,
    /// For such sessions only.
    pub kind: Option<SessionKind>,
    /// Waits (`IO:WalSync`, `wait/io/file/innodb/innodb_data_file`) or counters (`Innodb_log_waits`); a final `*` stands for
    /// anything.
    pub names: &'static [&'static str],
    /// What a reader should know, or empty.
    pub note: &'static str,
}

impl Mapping {
    /// How well it fits this wait of this session; the smaller, the better. A name written out beats a pattern.
    fn fit(&self, kind: SessionKind, wait: &str) -> Option<(bool, Grade)> {
        if self.kind.is_some_and(|only| only != kind) {
            return None;
        }
        let fits = |name: &&&str| match name.strip_suffix('*') {
            Some(start) => wait.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start)),
            None => name.eq_ignore_ascii_case(wait),
        };
        let best = self.names.iter().filter(fits).map(|name| name.ends_with('*')).min()?;
        Some((best, self.grade))
    }
}

/// An entry of the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct EventInfo {
    /// As `v$event_name.name` spells it.
    pub name: &'static str,
    /// Its class.
    pub class: WaitClass,
    /// One sentence, from the point of view of who waits.
    pub means: &'static str,
    /// Names of p1, p2, p3 (`parameter1` …); empty where they say nothing.
    pub parameters: [&'static str; 3],
    /// In PostgreSQL 15 to 18.
    pub postgres: Mapping,
    /// In MariaDB 10.11 and 11.4.
    pub mariadb: Mapping,
}

include!(concat!(env!("OUT_DIR"), "/events.rs"));

impl Event {
    /// Its entry.
    pub fn info(self) -> &'static EventInfo {
        &INFO[self as usize]
    }

    /// Its name, as `v$event_name.name` spells it.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// Its class.
    pub fn class(self) -> WaitClass {
        self.info().class
    }

    /// Whether a session in it has nothing to do.
    #[inline]
    pub const fn is_idle(self) -> bool {
        idle(self)
    }

    /// `event#`: its place in the catalogue, from 0. May change with the release; [`Event::id`] does not.
    pub const fn number(self) -> usize {
        self as usize
    }

    /// `event_id`: a hash of its name (FNV-1a, 32 bits), for ever the same.
    pub fn id(self) -> u32 {
        let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        self.name().bytes().fold(0x811C_9DC5, step)
    }

    /// The event of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.name() == name)
    }

    /// The event of that number.
    pub fn numbered(number: usize) -> Option<Self> {
        Self::ALL.get(number).copied()
    }

    /// The event that says best what a PostgreSQL session waits for; `wait`: `TYPE:NAME` of `pg_stat_activity`.
    pub fn from_postgres(kind: SessionKind, wait: &str) -> Option<(Self, Grade)> {
        best(|info| info.postgres.fit(kind, wait))
    }

    /// The event that says best what a MariaDB session waits for; `wait`: an instrument of `performance_schema`.
    pub fn from_mariadb(kind: SessionKind, wait: &str) -> Option<(Self, Grade)> {
        best(|info| info.mariadb.fit(kind, wait))
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The best fit; among equals the first of the catalogue.
fn best(fit: impl Fn(&EventInfo) -> Option<(bool, Grade)>) -> Option<(Event, Grade)> {
    let fits = Event::ALL.into_iter().filter_map(|event| fit(event.info()).map(|fit| (fit, event)));
    fits.min_by_key(|(fit, _)| *fit).map(|((_, grade), event)| (event, grade))
}

#[cfg(test)]
mod tests {
    use super::*;
    use SessionKind::{Background, Foreground};

    #[test]
    fn names_lead_back_to_their_events() {
        for (number, event) in Event::ALL.into_iter().enumerate() {
            assert_eq!(Event::named(event.name()), Some(event));
            assert_eq!(Event::numbered(number), Some(event));
            assert_eq!(event.is_idle(), event.class() == WaitClass::Idle, "{event}");
            let same_id = Event::ALL.into_iter().filter(|other| other.id() == event.id()).count();
            assert_eq!(same_id, 1, "{event}");
        }
    }

    #[test]
    fn classes_and_parameters_are_those_that_a_dba_knows() {
        for (event, name, class, parameters) in [
            (Event::LogFileSync, "log file sync", "Commit", ["buffer#", "sync scn", ""]),
            (
                Event::LogFileParallelWrite,
                "log file parallel write",
                "System I/O",
                ["files", "blocks", "requests"],
            ),
            (Event::ReadByOtherSession, "read by other session", "User I/O", ["file#", "block#", "class#"]),
            (Event::BufferBusyWaits, "buffer busy waits", "Concurrency", ["file#", "block#", "class#"]),
            (
                Event::LogFileSwitchCheckpointIncomplete,
                "log file switch (checkpoint incomplete)",
                "Configuration",
                ["", "", ""],
            ),
            (
                Event::DbFileAsyncIoSubmit,
                "db file async I/O submit",
                "System I/O",
                ["requests", "interrupt", "timeout"],
            ),
            (
                Event::EnqTxRowLockContention,
                "enq: TX - row lock contention",
                "Application",
                ["name|mode", "usn<<16 | slot", "sequence"],
            ),
            (
                Event::SqlNetMessageFromClient,
                "SQL*Net message from client",
                "Idle",
                ["driver id", "#bytes", ""],
            ),
        ] {
            assert_eq!(
                (event.name(), event.class().name(), event.info().parameters),
                (name, class, parameters)
            );
        }
    }

    #[test]
    fn every_sentence_is_one() {
        for event in Event::ALL {
            let means = event.info().means;
            assert!(means.ends_with(['.', ')']) && means.len() > 20, "{event}: {means}");
        }
    }

    #[test]
    fn waits_of_other_databases_find_their_event() {
        let postgres = |kind, wait| Event::from_postgres(kind, wait);
        assert_eq!(postgres(Foreground, "IO:WalSync"), Some((Event::LogFileSync, Grade::Approximate)));
        assert_eq!(
            postgres(Background, "IO:WALSync"),
            Some((Event::LogFileParallelWrite, Grade::Approximate))
        );
        assert_eq!(
            postgres(Foreground, "IO:DataFileRead"),
            Some((Event::DbFileSequentialRead, Grade::Exact))
        );
        assert_eq!(postgres(Foreground, "IO:DataFileWrite"), Some((Event::FreeBufferWaits, Grade::Inferred)));
        assert_eq!(
            postgres(Background, "IO:DataFileWrite"),
            Some((Event::DbFileParallelWrite, Grade::Approximate))
        );
        // Exact beats approximate, and a name beats a pattern.
        assert_eq!(postgres(Foreground, "IPC:BufferIO"), Some((Event::ReadByOtherSession, Grade::Exact)));
        assert_eq!(
            postgres(Foreground, "LWLock:BufferContent"),
            Some((Event::BufferBusyWaits, Grade::Exact))
        );
        assert_eq!(
            postgres(Foreground, "LWLock:SerializableXactHash"),
            Some((Event::LatchFree, Grade::Approximate))
        );
        assert_eq!(
            postgres(Background, "Activity:WalWriterMain"),
            Some((Event::RdbmsIpcMessage, Grade::Exact))
        );
        assert_eq!(postgres(Foreground, "Extension:Extension"), None);
        let mariadb = |kind, wait| Event::from_mariadb(kind, wait).map(|(event, _)| event);
        let data_file = "wait/io/file/innodb/innodb_data_file";
        assert_eq!(mariadb(Foreground, data_file), Some(Event::DbFileSequentialRead));
        assert_eq!(mariadb(Foreground, "wait/synch/mutex/sql/LOCK_open"), Some(Event::LatchFree));
        assert_eq!(mariadb(Foreground, "idle"), Some(Event::SqlNetMessageFromClient));
    }

    #[test]
    fn classes_of_foreign_waits_share_the_palette() {
        for (kind, wait, class) in [
            (Foreground, "IO:WalSync", WaitClass::Commit),
            (Background, "IO:WalSync", WaitClass::SystemIo),
            (Foreground, "IO:AioIoCompletion", WaitClass::UserIo),
            (Foreground, "Lock:transactionid", WaitClass::Application),
            (Foreground, "Lock:extend", WaitClass::Configuration),
            (Foreground, "LWLock:LockManager", WaitClass::Concurrency),
            (Background, "Activity:CheckpointerMain", WaitClass::Idle),
            (Foreground, "Timeout:VacuumDelay", WaitClass::Scheduler),
            (Foreground, "Extension:Extension", WaitClass::Other),
        ] {
            assert_eq!(WaitClass::of_postgres(kind, wait), class, "{wait}");
        }
    }

    #[test]
    fn what_is_idle_here_is_idle_there() {
        for event in Event::ALL.into_iter().filter(|e| e.info().postgres.grade == Grade::Exact) {
            let mapping = event.info().postgres;
            for name in mapping.names {
                let there = WaitClass::of_postgres(mapping.kind.unwrap_or(Foreground), name);
                assert_eq!(event.is_idle(), there == WaitClass::Idle, "{event}, {name}");
            }
        }
    }
}
