//! A database that is open, ours or a server, in the verbs that cases need: what is done to it is written once, over these.

use super::drive::{Performance, Terms};
use super::evidence::Observer;
use super::interval::Moment;
use super::order_entry::Think;
use super::random_read::Shape;
use super::scan::{Rows, Scanned, Way};
use crate::LabError;
use crate::server::sampler::Sampler;
use crate::stage::Proof;
use crate::verify::Verification;
use host::counters::Watch;
use std::sync::atomic::AtomicBool;
use units::Seed;

/// Each verb ends with what the database says, in the words of [`LabError`].
pub trait OpenDatabase {
    /// Sessions read single rows of the table of [`super::random_read`].
    ///
    /// # Errors
    /// What the database says; rows that are not what they should be.
    fn read(&mut self, shape: &Shape, terms: Terms<'_>) -> Result<Performance, LabError>;

    /// Sessions insert rows, each commits every one of its own.
    ///
    /// # Errors
    /// What the database says; rows that are missing.
    fn commit(&mut self, sessions: u32, terms: Terms<'_>) -> Result<Performance, LabError>;

    /// Clerks enter orders; `audited`: the data is checked at the end.
    ///
    /// # Errors
    /// What the database says; data that is not consistent.
    fn order_entry(
        &mut self,
        sessions: u32,
        think: Think,
        audited: bool,
        terms: Terms<'_>,
    ) -> Result<Performance, LabError>;

    /// Rows of the table of [`super::random_read`].
    ///
    /// # Errors
    /// It was not made.
    fn rows(&self) -> Result<u64, LabError>;

    /// Reads the first `count` of them once.
    ///
    /// # Errors
    /// What the database says.
    fn touch(&mut self, count: u64) -> Result<(), LabError>;

    /// Makes `table` with `rows` rows of [`super::source`].
    ///
    /// # Errors
    /// What the database says; [`LabError::Cancelled`].
    fn create_source(
        &mut self,
        table: &str,
        rows: u64,
        seed: Seed,
        cancel: &AtomicBool,
    ) -> Result<(), LabError>;

    /// `INSERT INTO t SELECT * FROM t; COMMIT;`
    ///
    /// # Errors
    /// What the database says.
    fn double(&mut self, table: &str) -> Result<(), LabError>;

    /// `SELECT COUNT(*)`.
    ///
    /// # Errors
    /// What the database says.
    fn count(&mut self, table: &str) -> Result<u64, LabError>;

    /// Bytes of its segment.
    ///
    /// # Errors
    /// What the database says.
    fn table_bytes(&mut self, table: &str) -> Result<u64, LabError>;

    /// Nothing where it is not there.
    ///
    /// # Errors
    /// What the database says.
    fn drop_table(&mut self, table: &str) -> Result<(), LabError>;

    /// One scan of the table of case `scan`, whose caches are as they are.
    ///
    /// # Errors
    /// What the database says; rows that are missing.
    fn scan(&mut self, way: Way, rows: Rows, cancel: &AtomicBool) -> Result<Scanned, LabError>;

    /// Nothing of the data is in the database's cache or the page cache afterwards.
    ///
    /// # Errors
    /// What the database says.
    fn empty_caches(&mut self, cancel: &AtomicBool) -> Result<(), LabError>;

    /// Changed pages are on disk afterwards.
    ///
    /// # Errors
    /// What the database says.
    fn checkpoint(&mut self) -> Result<(), LabError>;

    /// Blocks that its cache holds, and bytes of each.
    fn cache(&self) -> (u64, u64);

    /// Everything that is counted, now.
    fn moment(&mut self, watch: &Watch) -> Moment;

    /// Looks at its buffers from now on, where it shows them.
    fn observe(&self) -> Option<Observer>;

    /// Looks at its sessions from now on, where it does not count itself what they wait for.
    ///
    /// # Errors
    /// It refuses the connection.
    fn sample(&self) -> Result<Option<Sampler>, LabError>;

    /// Open flags of its files during the last workload, as the kernel shows them.
    ///
    /// # Errors
    /// They are not what the mode means; what else was asked for is not in force any more.
    fn flags(&mut self) -> Result<String, LabError>;

    /// What it says of its own settings, where it is a server.
    ///
    /// # Errors
    /// They are not what it was told.
    fn proof(&mut self) -> Result<Vec<Proof>, LabError>;

    /// Shuts it down in order; what it wrote is read back where that was asked for, until `cancel` is raised.
    ///
    /// # Errors
    /// What the database says.
    fn shut_down(self: Box<Self>, cancel: &AtomicBool) -> Result<Option<Verification>, LabError>;

    /// Ends it after an error; what is not written yet is left to recovery, or goes with the database.
    fn abandon(self: Box<Self>);
}
