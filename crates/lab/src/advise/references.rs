//! Block references: out of the record of a run, out of a trace, into a record.

use super::trace;
use super::workload::Observed;
use crate::LabError;
use record::{Reader, ReferenceRow};
use stats::mrc::References;
use std::path::{Path, PathBuf};
use units::{Bytes, Seed};

/// What is asked about.
pub struct Input {
    /// `run order-entry`, or the file of a trace.
    pub source: String,
    /// Where the run was.
    pub directory: Option<PathBuf>,
    /// Database block.
    pub block: Bytes,
    /// Buffer cache above; 0 where none is known.
    pub cache: Bytes,
    /// What a flash cache would see.
    pub references: References,
    /// What sessions do around each read.
    pub observed: Observed,
}

/// For the record.
pub fn row(source: String, block: Bytes, cache: Bytes, references: &References) -> ReferenceRow {
    ReferenceRow {
        source,
        block_bytes: block.0,
        cache_bytes: cache.0,
        seed: references.seed,
        rate: references.rate,
        reads: references.reads,
        kept: references.len() as u64,
        encoded: references.encode(),
    }
}

impl Input {
    /// # Errors
    /// A record without references, or of a run that had a flash cache; what [`Observed::of_run`] misses.
    pub fn of_run(reader: &Reader) -> Result<Self, LabError> {
        let experiment = reader.experiment()?;
        let Some(row) = reader.references()?.pop() else {
            let case =
                experiment.case.as_deref().filter(|_| experiment.kind == "run").unwrap_or("order-entry");
            return Err(LabError::Target(format!(
                "{} has no block references: they are kept only when they are asked for. Type: redoubt run {case} --references",
                reader.path().display()
            )));
        };
        let references =
            References::decode(row.seed, row.rate, row.reads, &row.encoded).ok_or_else(|| {
                LabError::Target(format!(
                    "{}: its block references cannot be read; was the file changed?",
                    reader.path().display()
                ))
            })?;
        must_have_reads(&references, &row.source)?;
        Ok(Self {
            observed: Observed::of_run(reader)?,
            directory: Some(experiment.target.into()),
            source: row.source,
            block: Bytes(row.block_bytes),
            cache: Bytes(row.cache_bytes),
            references,
        })
    }

    /// # Errors
    /// A file that cannot be read; a line that is none, with its number.
    pub fn of_trace(
        path: &Path,
        block: Bytes,
        cache: Bytes,
        sessions: u32,
        seed: Seed,
    ) -> Result<Self, LabError> {
        let references = trace::read(path, block, cache, seed)?;
        let source = path.display().to_string();
        must_have_reads(&references, &source)?;
        let observed = Observed::of_trace(sessions);
        Ok(Self { source, directory: None, block, cache, references, observed })
    }
}

/// Fewer reads than this say nothing.
const READS_MIN: u64 = 1_000;

fn must_have_reads(references: &References, source: &str) -> Result<(), LabError> {
    let kept = references.reads_kept();
    if kept >= READS_MIN {
        return Ok(());
    }
    Err(LabError::Target(format!(
        "{source}: {kept} reads of blocks are too few to say anything ({READS_MIN} at least): the buffer cache held nearly everything, and a \
         flash cache would not help. Else run longer, or with more data (--scale)."
    )))
}
