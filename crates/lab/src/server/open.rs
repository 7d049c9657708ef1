//! A server that runs, in the verbs that cases need.

use super::cases::{self, commit, order_entry, random_read, scan};
use super::sampler::Sampler;
use super::{Connection, Kind, Server, proof};
use crate::LabError;
use crate::database::drive::{Performance, Terms};
use crate::database::evidence::Observer;
use crate::database::inconsistent;
use crate::database::interval::Moment;
use crate::database::open::OpenDatabase;
use crate::database::order_entry::{Scale, Think};
use crate::database::random_read::Shape;
use crate::database::scan::{Rows, Scanned, Way};
use crate::stage::Proof;
use crate::verify::Verification;
use host::counters::Watch;
use std::ops::DerefMut;
use std::sync::atomic::AtomicBool;
use units::{Nanos, Seed, clock};

/// Longest that MariaDB may take to write its changed pages.
const CHECKPOINT_MAX: Nanos = Nanos::millis(60_000);

/// A server that runs, with one session of ours; `S`: how it is held.
pub struct OpenServer<S> {
    server: S,
    session: Option<Box<dyn Connection>>,
    /// Rows of the table of [`random_read`]; none where it was not made.
    rows: Option<u64>,
    orders: Scale,
    flags: String,
}

impl<S: DerefMut<Target = Server>> OpenServer<S> {
    /// With a session. `rows`: of the table of [`random_read`]; `orders`: what order entry works on.
    ///
    /// # Errors
    /// What the server says.
    pub fn new(server: S, rows: Option<u64>, orders: Scale) -> Result<Self, LabError> {
        let session = Some(server.connect("cases")?);
        Ok(Self { server, session, rows, orders, flags: String::new() })
    }

    fn session(&mut self) -> Result<&mut dyn Connection, LabError> {
        Ok(self.with_server()?.1)
    }

    /// The server and the session, which is opened when there is none.
    fn with_server(&mut self) -> Result<(&Server, &mut dyn Connection), LabError> {
        let session = match self.session.take() {
            Some(session) => session,
            None => self.server.connect("cases")?,
        };
        Ok((&*self.server, &mut **self.session.insert(session)))
    }

    /// What an error of the server's means, with its last words.
    fn told<T>(&self, result: Result<T, LabError>) -> Result<T, LabError> {
        result.map_err(|error| match error {
            LabError::Server(error) => self.server.explain(error).into(),
            other => other,
        })
    }

    fn performed(&mut self, result: Result<Performance, LabError>) -> Result<Performance, LabError> {
        let performance = self.told(result)?;
        self.flags.clone_from(&performance.trial.flags);
        Ok(performance)
    }

    fn execute(&mut self, sql: &str) -> Result<(), LabError> {
        let done = self.session()?.execute(sql).map_err(LabError::from);
        self.told(done)
    }

    fn number(&mut self, sql: &str) -> Result<u64, LabError> {
        let done = self.session()?.number(sql).map_err(LabError::from);
        self.told(done).map(|n| n as u64)
    }
}

impl<S: DerefMut<Target = Server>> OpenDatabase for OpenServer<S> {
    fn read(&mut self, shape: &Shape, terms: Terms<'_>) -> Result<Performance, LabError> {
        let rows = self.rows()?;
        let done = random_read::run(&*self.server, rows, shape, terms);
        self.performed(done)
    }

    fn commit(&mut self, sessions: u32, terms: Terms<'_>) -> Result<Performance, LabError> {
        let done = commit::run(&*self.server, sessions, terms);
        self.performed(done)
    }

    fn order_entry(
        &mut self,
        sessions: u32,
        think: Think,
        audited: bool,
        terms: Terms<'_>,
    ) -> Result<Performance, LabError> {
        let done = order_entry::run(&*self.server, self.orders, sessions, think, audited, terms);
        self.performed(done)
    }

    fn rows(&self) -> Result<u64, LabError> {
        self.rows.ok_or_else(|| inconsistent("random-read", "the table was not made".into()))
    }

    fn touch(&mut self, count: u64) -> Result<(), LabError> {
        let kind = self.server.kind();
        let done = random_read::touch(kind, self.session()?, count);
        self.told(done)
    }

    fn create_source(&mut self, table: &str, rows: u64, _: Seed, _: &AtomicBool) -> Result<(), LabError> {
        let kind = self.server.kind();
        let done = cases::create_source(kind, self.session()?, table, rows).map_err(LabError::from);
        self.told(done)
    }

    fn double(&mut self, table: &str) -> Result<(), LabError> {
        // Outside a transaction a statement commits by itself.
        self.execute(&format!("insert into {table} select * from {table}"))
    }

    fn count(&mut self, table: &str) -> Result<u64, LabError> {
        self.number(&format!("select count(*) from {table}"))
    }

    fn table_bytes(&mut self, table: &str) -> Result<u64, LabError> {
        let (server, session) = self.with_server()?;
        Ok(cases::table_bytes(server, session, table)?)
    }

    fn drop_table(&mut self, table: &str) -> Result<(), LabError> {
        self.execute(&format!("drop table if exists {table}"))
    }

    fn scan(&mut self, way: Way, rows: Rows, cancel: &AtomicBool) -> Result<Scanned, LabError> {
        let (server, session) = self.with_server()?;
        let done = scan::scan(server, session, way, rows, cancel);
        self.told(done)
    }

    fn empty_caches(&mut self, cancel: &AtomicBool) -> Result<(), LabError> {
        self.session = None;
        self.server.empty_caches(cancel)?;
        self.session()?;
        Ok(())
    }

    /// MariaDB has no such command: it writes all changed pages when none may stay.
    fn checkpoint(&mut self) -> Result<(), LabError> {
        if self.server.kind() == Kind::Postgres {
            return self.execute("checkpoint");
        }
        let limit = self.number("select @@innodb_max_dirty_pages_pct")?;
        self.execute("set global innodb_max_dirty_pages_pct = 0")?;
        let until = clock::now() + CHECKPOINT_MAX;
        let dirty = "select variable_value from information_schema.global_status where variable_name = 'INNODB_BUFFER_POOL_PAGES_DIRTY'";
        while self.number(dirty)? > 0 && clock::now() < until {
            clock::sleep(Nanos::millis(10));
        }
        self.execute(&format!("set global innodb_max_dirty_pages_pct = {limit}"))
    }

    fn cache(&self) -> (u64, u64) {
        let block = cases::page_bytes(&*self.server);
        (self.server.settings().cache.0 / block, block)
    }

    fn moment(&mut self, watch: &Watch) -> Moment {
        let kind = self.server.kind();
        match self.session() {
            Ok(session) => Moment::of_server(kind, session, watch),
            Err(_) => Moment::uncounted(watch),
        }
    }

    fn observe(&self) -> Option<Observer> {
        None
    }

    fn sample(&self) -> Result<Option<Sampler>, LabError> {
        Sampler::start(&*self.server).map(Some)
    }

    fn flags(&mut self) -> Result<String, LabError> {
        match std::mem::take(&mut self.flags) {
            // Of a workload that one session ran; it has its files open still.
            flags if flags.is_empty() => proof::open_flags(&self.server),
            flags => Ok(flags),
        }
    }

    fn proof(&mut self) -> Result<Vec<Proof>, LabError> {
        let (server, session) = self.with_server()?;
        proof::settings(server, session)
    }

    fn shut_down(mut self: Box<Self>, _: &AtomicBool) -> Result<Option<Verification>, LabError> {
        self.session = None;
        self.server.stop().map(|()| None)
    }

    fn abandon(mut self: Box<Self>) {
        self.session = None;
        self.server.kill();
    }
}
