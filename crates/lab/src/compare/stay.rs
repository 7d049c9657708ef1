//! What is compared on, plain files or a database, and one stay there under a configuration.

use super::database::{DatabaseStay, Filled, Kind};
use super::plan::Phases;
use super::visit::{Files, Visit, Workload};
use crate::LabError;
use crate::bench::Bench;
use crate::database::evidence::Observer;
use crate::factor::Setup;
use crate::stage::Proof;
use crate::verify::Verification;
use crate::workload::Trial;
use host::counters::{Snapshot, Watch};
use record::Writer;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use units::{Bytes, Seed};

/// What stands still while configurations change.
pub enum Subject {
    /// Plain files: the I/O of a database without one.
    Files(Files),
    /// A database.
    Database(Box<Filled>),
}

/// What holds for every stay.
#[derive(Clone, Copy)]
pub struct Terms<'v> {
    /// How long each phase is measured.
    pub phases: Phases,
    /// What growth writes.
    pub growth: Bytes,
    /// Concurrent sessions.
    pub sessions: u32,
    /// Database block, bytes.
    pub block_bytes: u32,
    /// Log block, bytes.
    pub log_block_bytes: u32,
    /// Whether any configuration has a flash cache: then all begin as a database that has been open for a while, with caches that are full. One whose buffer
    /// cache fills during its window has nothing to evict, writes no dirty block, and would look faster than it is.
    pub filled_caches: bool,
    /// Raised by Ctrl-C.
    pub cancel: &'v AtomicBool,
}

impl Subject {
    /// The file that most requests go to, and its size.
    pub fn data(&self) -> (&Path, u64) {
        match self {
            Self::Files(files) => (&files.data, files.data_bytes),
            Self::Database(filled) => filled.data(),
        }
    }

    /// Puts what `setup` says of the database in force.
    ///
    /// # Errors
    /// What the database says.
    pub fn enter<'v>(&'v self, setup: &Setup, terms: Terms<'v>) -> Result<Stay<'v>, LabError> {
        Ok(match self {
            Self::Files(files) => Stay::Files(Visit {
                configuration: setup.configuration(),
                files,
                phases: terms.phases,
                growth: terms.growth,
                sessions: terms.sessions,
                writing: setup.writing(),
                block_bytes: terms.block_bytes,
                log_block_bytes: terms.log_block_bytes,
                seed: Seed(0),
                cancel: terms.cancel,
            }),
            Self::Database(filled) => Stay::Database(Box::new(filled.enter(setup, terms)?)),
        })
    }

    /// Removes what must go before the stage that it stands on is struck: a server works there until it is ended.
    ///
    /// # Errors
    /// What could not be undone; it stays in the journal.
    pub fn remove(self, bench: &mut Bench) -> Result<(), LabError> {
        match self {
            Self::Database(filled) => match filled.database {
                Kind::Served(served) => served.remove(bench),
                Kind::Embedded(_) => Ok(()),
            },
            Self::Files(_) => Ok(()),
        }
    }
}

/// A stay under one configuration.
pub enum Stay<'v> {
    /// On plain files.
    Files(Visit<'v>),
    /// In a database.
    Database(Box<DatabaseStay<'v>>),
}

impl Stay<'_> {
    /// Brings about what the workload begins with; not measured.
    ///
    /// # Errors
    /// What cannot be brought about.
    pub fn prepare(&mut self, workload: Workload, seed: Seed) -> Result<(), LabError> {
        match self {
            Self::Files(visit) => {
                visit.seed = seed;
                visit.prepare(workload)
            }
            Self::Database(stay) => stay.prepare(workload, seed),
        }
    }

    /// Runs one workload, after [`Stay::prepare`] with the same seed.
    ///
    /// # Errors
    /// What spoiled the trial.
    pub fn run(&mut self, workload: Workload, seed: Seed) -> Result<Trial, LabError> {
        match self {
            Self::Files(visit) => visit.run(workload),
            Self::Database(stay) => stay.run(workload, seed),
        }
    }

    /// Looks at the database's buffers from now on, where it shows them.
    pub fn observe(&self) -> Option<Observer> {
        match self {
            Self::Files(_) => None,
            Self::Database(stay) => stay.observe(),
        }
    }

    /// How long its workloads are measured.
    pub fn phases(&mut self) -> &mut Phases {
        match self {
            Self::Files(visit) => &mut visit.phases,
            Self::Database(stay) => stay.phases(),
        }
    }

    /// Names the devices that are read at the edges of each window.
    pub fn watch(&mut self, watch: Watch) {
        match self {
            Self::Files(_) => {}
            Self::Database(stay) => stay.watch(watch),
        }
    }

    /// The machine's counters at both edges of the last window, where the target looked there itself.
    pub fn machine(&self) -> Option<(&Snapshot, &Snapshot)> {
        match self {
            Self::Files(_) => None,
            Self::Database(stay) => stay.machine(),
        }
    }

    /// What the target itself says is in force.
    ///
    /// # Errors
    /// It is not what was asked for.
    pub fn proof(&mut self) -> Result<Vec<Proof>, LabError> {
        match self {
            Self::Files(_) => Ok(Vec::new()),
            Self::Database(stay) => stay.proof(),
        }
    }

    /// Writes what the target itself saw of the last run.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn store(&self, phase: i64, writer: &mut Writer) -> Result<(), LabError> {
        match self {
            Self::Files(_) => Ok(()),
            Self::Database(stay) => stay.store(phase, writer),
        }
    }

    /// Ends it; the database is shut down in order, and what it wrote is read back where that was asked for.
    ///
    /// # Errors
    /// What the database says.
    pub fn leave(self) -> Result<Option<Verification>, LabError> {
        match self {
            Self::Files(visit) => visit.read_back(),
            Self::Database(stay) => stay.leave(),
        }
    }

    /// Ends it after an error: nothing is waited for.
    pub fn abandon(self) {
        if let Self::Database(stay) = self {
            stay.abandon();
        }
    }
}
