//! What `--verify` found: every block that was written, read from the device and held against what was written there last.
//!
//! Who writes keeps the notes and does the reading (`engine::files::read_back`); here it goes into the record: an event
//! `read_back` for each time, an event `wrong_block` for each block that is told, check D5 over all of them at the end. Wrong data ends the run.

mod stamped;

pub use stamped::Generations;

use crate::LabError;
use crate::bench::Bench;
use engine::Instance;
use engine::files::read_back::{ReadBack, WrongBlock};
use engine::parameter::Parameter;
use record::json::json;
use stats::check::{self, Check};
use std::path::PathBuf;
use units::{Bytes, Nanos, clock};

/// A block that is not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Its file.
    pub file: PathBuf,
    /// Its number in the file, from 0.
    pub block: u64,
    /// `lost`, `torn` …
    pub kind: String,
    /// What should be there.
    pub expected: String,
    /// What is.
    pub found: String,
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { file, block, kind, expected, found } = self;
        write!(f, "{} block {block}: {kind}: expected {expected}, found {found}", file.display())
    }
}

impl From<WrongBlock> for Wrong {
    fn from(block: WrongBlock) -> Self {
        Self {
            file: block.path,
            block: block.id.block.into(),
            kind: block.wrong.to_string(),
            expected: block.expected,
            found: block.found,
        }
    }
}

/// What one or more readings saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Blocks that were compared.
    pub blocks: u64,
    /// Bytes that were read for that.
    pub bytes: u64,
    /// Blocks that were wrong.
    pub wrong: u64,
    /// The first of them.
    pub told: Vec<Wrong>,
    /// Files that could be read through the page cache alone.
    pub cached: Vec<PathBuf>,
    /// One was stopped before its end.
    pub stopped: bool,
    /// How long it took.
    pub elapsed: Nanos,
}

impl Verification {
    /// Of the embedded database.
    pub fn of(seen: ReadBack, elapsed: Nanos) -> Self {
        let ReadBack { blocks, bytes, wrong, told, cached, stopped } = seen;
        Self {
            blocks,
            bytes,
            wrong,
            told: told.into_iter().map(Into::into).collect(),
            cached,
            stopped,
            elapsed,
        }
    }

    /// Takes another reading in.
    pub fn add(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.bytes += other.bytes;
        self.wrong += other.wrong;
        self.told.extend(other.told);
        self.cached.extend(other.cached);
        self.cached.sort_unstable();
        self.cached.dedup();
        self.stopped |= other.stopped;
        self.elapsed += other.elapsed;
    }

    /// D5.
    pub(crate) fn check(&self) -> Check {
        let first = self.told.first().map(ToString::to_string);
        check::read_back(self.blocks, self.wrong, first.as_deref(), self.cached.len(), self.stopped)
    }
}

/// Shuts the database down in order; when it keeps notes of what it writes, all of that is read back. `go_on` hears the blocks done and to
/// be done, and may stop it.
///
/// # Errors
/// What the engine says.
pub fn shut_down(
    instance: Instance,
    go_on: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Option<Verification>, LabError> {
    let verifies = instance.parameters.boolean(Parameter::VerifyWrites);
    let mut began = None;
    let seen = instance.shutdown_and_read_back(&mut |done, all| {
        began.get_or_insert_with(clock::now);
        go_on(done, all)
    })?;
    let elapsed = began.map_or(Nanos(0), |began| clock::now() - began);
    Ok(verifies.then(|| Verification::of(seen, elapsed)))
}

/// What `--verify` costs, for those who wait: said before anything is measured. `most`: bytes of the files that are written.
pub(crate) fn price(most: Bytes, when: &str) -> String {
    format!(
        "--verify: {when}, what was written is read back past all caches: at most {most}, at the speed of a scan where much was written, and one \
         read for each stretch where little was; 12 bytes of memory for each block."
    )
}

/// Takes a reading back into the record; `about` says of what.
///
/// # Errors
/// [`LabError::WrongData`]; [`LabError::Cancelled`] when it was stopped; when the record cannot be written.
pub fn store(bench: &mut Bench, about: &str, seen: Option<Verification>) -> Result<(), LabError> {
    let Some(seen) = seen else { return Ok(()) };
    bench.writer.event(
        "read_back",
        &json!({ "about": about, "blocks": seen.blocks, "bytes": seen.bytes, "wrong": seen.wrong,
                 "cached": seen.cached, "stopped": seen.stopped, "seconds": seen.elapsed.as_secs() }),
    )?;
    for wrong in &seen.told {
        bench.writer.event(
            "wrong_block",
            &json!({ "about": about, "file": wrong.file, "block": wrong.block, "kind": wrong.kind,
                     "expected": wrong.expected, "found": wrong.found }),
        )?;
    }
    let verdict = match seen.told.first() {
        Some(first) => {
            let (wrong, blocks) = (seen.wrong, seen.blocks);
            Err(LabError::WrongData { wrong, blocks, first: first.to_string() })
        }
        None if seen.stopped => Err(LabError::Cancelled),
        None => Ok(()),
    };
    bench.verification.get_or_insert_default().add(seen);
    verdict
}
