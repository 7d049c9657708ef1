//! What can go wrong, one variant per thing that a caller may want to tell apart.

use crate::page::PageId;
use io::IoError;
use std::path::PathBuf;

/// An act of the engine that was not done. Unless a variant says otherwise, nothing was changed and the session goes on.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// Storage said no.
    #[error("{0}")]
    Io(std::sync::Arc<IoError>),
    /// A page read from disk is not the page that was written.
    #[error("corrupt block: {path} block {block} (file {file}): expected {expected}, found {found}; restore the file from a backup, or drop the object", file = .id.file, block = .id.block)]
    CorruptBlock {
        /// The page.
        id: PageId,
        /// Its file.
        path: PathBuf,
        /// What should have been there.
        expected: String,
        /// What was there.
        found: String,
    },
    /// Redo, control file or a header is damaged in a way that recovery cannot mend.
    #[error("{path}: {what}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        what: String,
    },
    /// The flash cache cannot be opened; the instance was not started.
    #[error(
        "the flash cache cannot be opened: {0}; nothing was started (without it: db_flash_cache_size = 0)"
    )]
    FlashCache(String),
    /// No space in a tablespace.
    #[error(
        "no space left in tablespace {tablespace} for object {object}: {cause}; add a data file: ALTER TABLESPACE {tablespace} ADD DATAFILE '…' SIZE 100M"
    )]
    TablespaceFull {
        /// Where.
        tablespace: String,
        /// For what.
        object: String,
        /// Why it could not grow: its limit, or the disk's error.
        cause: String,
    },
    /// A key is there already.
    #[error("unique index {index} already has this key")]
    DuplicateKey {
        /// The index.
        index: String,
    },
    /// Two sessions waited for each other; the statement of this one was undone.
    #[error(
        "deadlock: session {blocker} waits for a row of this session, and this one for a row of it; the statement was rolled back, COMMIT or ROLLBACK the transaction"
    )]
    Deadlock {
        /// The other one.
        blocker: u32,
    },
    /// Another session holds the row, and we must not wait (simulation, NOWAIT).
    #[error("the row is locked by session {blocker}")]
    RowLocked {
        /// Who holds it.
        blocker: u32,
    },
    /// What the statement was about to change was changed by a transaction that has committed since it began, or an index was made
    /// meanwhile. The statement was rolled back and has ended; run it again, it will see the change.
    #[error(
        "another transaction has changed the row since the statement began; the statement was rolled back, run it again"
    )]
    StatementRestart,
    /// The address is no row.
    #[error("no row at {0}")]
    NoSuchRow(crate::value::RowId),
    /// A table, index, tablespace, group … that is not there.
    #[error("{kind} {name} does not exist{hint}")]
    NoSuch {
        /// What kind of thing.
        kind: &'static str,
        /// Its name.
        name: String,
        /// Something to type, or empty.
        hint: String,
    },
    /// A name that is taken.
    #[error("{kind} {name} exists already")]
    Exists {
        /// What kind of thing.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// A row that cannot be stored.
    #[error(
        "a row of {bytes} bytes does not fit a block of {block_bytes} bytes (at most {max}); use a larger db_block_size"
    )]
    RowTooLong {
        /// Its size.
        bytes: usize,
        /// The block.
        block_bytes: usize,
        /// What fits.
        max: usize,
    },
    /// What was asked for makes no sense, with what to type instead.
    #[error("{0}")]
    Invalid(String),
    /// The instance stopped itself to protect the data; only a restart helps. Acknowledged commits are safe.
    #[error(
        "the instance was stopped: {0}; nothing acknowledged is lost, open it again after mending the cause"
    )]
    Crashed(String),
    /// The instance is shutting down.
    #[error("the instance is shutting down")]
    ShuttingDown,
}

impl From<IoError> for EngineError {
    fn from(error: IoError) -> Self {
        Self::Io(std::sync::Arc::new(error))
    }
}
