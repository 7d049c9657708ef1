//! Why a run could not go on.

use crate::load::LoadError;
use crate::server::ServerError;
use std::path::PathBuf;
use thiserror::Error;

/// An error of the laboratory. Each message says what was seen, the likely cause and what to type.
#[derive(Debug, Error)]
pub enum LabError {
    /// The user asked to stop; what was finished is in the record.
    #[error("stopped on request; what was finished is in the record")]
    Cancelled,
    /// The target cannot be used as asked.
    #[error("{0}")]
    Target(String),
    /// Storage refused.
    #[error(transparent)]
    Io(io::IoError),
    /// The system refused.
    #[error(transparent)]
    Host(#[from] host::HostError),
    /// The record could not be written.
    #[error(transparent)]
    Record(#[from] record::RecordError),
    /// The embedded database refused or failed.
    #[error(transparent)]
    Engine(#[from] engine::EngineError),
    /// The flash cache is not what was asked for: its figures would be those of another configuration.
    #[error(
        "the flash cache is not in force: {0}. Look at dmesg and smartctl -a of its device, or leave place.flash out"
    )]
    Flash(String),
    /// A database server cannot be had, or does not do what it is asked.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The load generator could not run.
    #[error(transparent)]
    Load(LoadError),
    /// Something of ours could not be removed at the end.
    #[error("not removed: {0}. Type: redoubt cleanup")]
    Left(String),
    /// A run that had begun could not go on.
    #[error("{error}{}", .left.as_ref().map(|what| format!("\nNot undone: {what}. Type: redoubt cleanup")).unwrap_or_default())]
    Failed {
        /// Why.
        error: Box<LabError>,
        /// Holds what was measured until then.
        record: PathBuf,
        /// What could not be undone or removed.
        left: Option<String>,
    },
    /// Storage has not what was written to it.
    #[error(
        "{wrong} of {blocks} blocks that were written are not on the device as they were written. The first: {first}. Do not keep a database \
         there; look at dmesg, and type: redoubt doctor"
    )]
    WrongData {
        /// How many.
        wrong: u64,
        /// Of how many that were read back.
        blocks: u64,
        /// File, block, expected and found of the first.
        first: String,
    },
    /// A workload thread met an error that spoils its trial.
    #[error("{workload}: {reason}")]
    Workload {
        /// Which workload.
        workload: &'static str,
        /// What the thread saw.
        reason: String,
    },
}

impl LabError {
    /// Whether a device or file system does not answer: whoever touches it waits, and cannot be ended.
    pub(crate) fn is_stuck(&self) -> bool {
        matches!(self, Self::Server(ServerError::Stuck { .. }))
    }
}

impl From<io::IoError> for LabError {
    fn from(error: io::IoError) -> Self {
        match error {
            io::IoError::Stopped { .. } => Self::Cancelled,
            other => Self::Io(other),
        }
    }
}

impl From<LoadError> for LabError {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Cancelled => Self::Cancelled,
            other => Self::Load(other),
        }
    }
}
