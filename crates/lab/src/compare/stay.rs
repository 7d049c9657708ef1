//! What is compared on, plain files or the embedded database, and one stay there under a configuration.

use super::embedded::{Embedded, EmbeddedStay};
use super::plan::Phases;
use super::visit::{Files, Visit, Workload};
use crate::LabError;
use crate::factor::Setup;
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
    /// The embedded database.
    Engine(Box<Embedded>),
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
    /// Raised by Ctrl-C.
    pub cancel: &'v AtomicBool,
}

impl Subject {
    /// The file that most requests go to, and its size.
    pub fn data(&self) -> (&Path, u64) {
        match self {
            Self::Files(files) => (&files.data, files.data_bytes),
            Self::Engine(engine) => (&engine.data_file, engine.data_bytes),
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
            Self::Engine(engine) => Stay::Engine(Box::new(engine.enter(setup, terms)?)),
        })
    }
}

/// A stay under one configuration.
pub enum Stay<'v> {
    /// On plain files.
    Files(Visit<'v>),
    /// In the database.
    Engine(Box<EmbeddedStay<'v>>),
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
            Self::Engine(stay) => stay.prepare(workload, seed),
        }
    }

    /// Runs one workload, after [`Stay::prepare`] with the same seed.
    ///
    /// # Errors
    /// What spoiled the trial.
    pub fn run(&mut self, workload: Workload, seed: Seed) -> Result<Trial, LabError> {
        match self {
            Self::Files(visit) => visit.run(workload),
            Self::Engine(stay) => stay.run(workload, seed),
        }
    }

    /// How long its workloads are measured.
    pub fn phases(&mut self) -> &mut Phases {
        match self {
            Self::Files(visit) => &mut visit.phases,
            Self::Engine(stay) => stay.phases(),
        }
    }

    /// Names the devices that are read at the edges of each window.
    pub fn watch(&mut self, watch: Watch) {
        match self {
            Self::Files(_) => {}
            Self::Engine(stay) => stay.watch(watch),
        }
    }

    /// The machine's counters at both edges of the last window, where the target looked there itself.
    pub fn machine(&self) -> Option<(&Snapshot, &Snapshot)> {
        match self {
            Self::Files(_) => None,
            Self::Engine(stay) => stay.machine(),
        }
    }

    /// Writes what the target itself saw of the last run.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn store(&self, phase: i64, writer: &mut Writer) -> Result<(), LabError> {
        match self {
            Self::Files(_) => Ok(()),
            Self::Engine(stay) => stay.store(phase, writer),
        }
    }

    /// Ends it; the database is shut down in order.
    ///
    /// # Errors
    /// What the database says.
    pub fn leave(self) -> Result<(), LabError> {
        match self {
            Self::Files(_) => Ok(()),
            Self::Engine(stay) => stay.leave(),
        }
    }

    /// Ends it after an error: nothing is waited for.
    pub fn abandon(self) {
        if let Self::Engine(stay) = self {
            stay.abandon();
        }
    }
}
