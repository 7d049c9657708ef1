//! What the cache needs of the instance around it. In the engine that is [`Core`]; a test has something smaller.

use super::BufferCache;
use crate::context::{Background, Environment};
use crate::files::{DataFile, FileSet};
use crate::instance::Core;
use crate::instance::process::Role;
use crate::page::Lsn;
use crate::parameter::Parameter;
use crate::{Context, EngineError, Result};
use io::Outcome;
use std::sync::Arc;

/// The surroundings of a cache.
pub trait Site: Send + Sync {
    /// Storage, clock, and who does the background work.
    fn environment(&self) -> &Environment;

    /// The cache itself.
    fn cache(&self) -> &BufferCache;

    /// Open data and temp files.
    fn files(&self) -> &FileSet;

    /// `db_file_multiblock_read_count`: blocks of one request of a scan.
    fn multiblock_read_count(&self) -> u32;

    /// `_direct_read_depth`: requests in flight of one direct path read.
    fn direct_read_depth(&self) -> u32;

    /// `fast_start_redo_target`: bytes of redo between the checkpoint and the end of the redo that are aimed at.
    fn checkpoint_target_bytes(&self) -> u64;

    /// The end of the redo appended so far.
    fn redo_tail(&self) -> Lsn;

    /// Waits until the redo up to `lsn` is on disk. Never waits for a database writer.
    ///
    /// # Errors
    /// [`EngineError::Crashed`].
    fn redo_flush(&self, context: &Context, lsn: Lsn) -> Result<()>;

    /// The checkpoint has to get here soon, because somebody waits for a log group. None when nothing presses.
    fn checkpoint_wanted(&self) -> Option<Lsn>;

    /// All redo before `lsn` is in the data files: notes durably that recovery begins there, then sets log groups free.
    ///
    /// # Errors
    /// What the control file met.
    fn checkpoint_reached(&self, context: &Context, lsn: Lsn) -> Result<()>;

    /// Wakes the database writers. Nothing without threads.
    fn post_writers(&self);

    /// Wakes the flash cache's writer. Nothing without threads.
    fn post_flash_writer(&self);

    /// Wakes the checkpointer; false when there is none that could be woken: no threads, or not at work yet.
    fn post_checkpointer(&self) -> bool;

    /// Without threads: a step of each database writer, and of the flash cache's, on this thread. Whether one did something.
    ///
    /// # Errors
    /// [`EngineError::Crashed`].
    fn step_writers(&self) -> Result<bool>;

    /// A line for the alert log.
    fn alert(&self, line: &str);

    /// Stops the instance to protect the data; every later [`Site::alive`] says so.
    fn crash(&self, why: &str);

    /// # Errors
    /// [`EngineError::Crashed`], once the instance did.
    fn alive(&self) -> Result<()>;
}

impl Site for Core {
    fn environment(&self) -> &Environment {
        &self.environment
    }
    fn cache(&self) -> &BufferCache {
        &self.cache
    }
    fn files(&self) -> &FileSet {
        &self.files
    }
    fn multiblock_read_count(&self) -> u32 {
        self.parameters.number(Parameter::MultiblockReadCount) as u32
    }
    fn direct_read_depth(&self) -> u32 {
        self.parameters.number(Parameter::DirectReadDepth) as u32
    }
    fn checkpoint_target_bytes(&self) -> u64 {
        match self.parameters.number(Parameter::RedoTarget) {
            0 => self.redo.capacity_bytes() / 2,
            bytes => bytes,
        }
    }
    fn redo_tail(&self) -> Lsn {
        self.redo.tail_lsn()
    }
    fn redo_flush(&self, context: &Context, lsn: Lsn) -> Result<()> {
        if self.redo.durable_lsn() >= lsn {
            return Ok(());
        }
        self.redo.wait_durable(self, context, lsn)
    }
    fn checkpoint_wanted(&self) -> Option<Lsn> {
        self.redo.checkpoint_wanted()
    }
    fn checkpoint_reached(&self, context: &Context, lsn: Lsn) -> Result<()> {
        let lsn = self.redo.restart_point(lsn);
        self.control.update(context, |content| {
            content.checkpoint = lsn;
            Ok(())
        })?;
        if self.parameters.boolean(Parameter::CheckpointsToAlert) {
            self.alert.line(&format!("checkpoint at redo position {}", lsn.0));
        }
        // Not before: a crash in between would begin recovery in a group that was written over.
        self.redo.note_checkpoint(lsn);
        Ok(())
    }
    fn post_writers(&self) {
        self.processes.post_database_writers();
    }
    fn post_flash_writer(&self) {
        self.processes.post(Role::FlashWriter);
    }
    fn post_checkpointer(&self) -> bool {
        let at_work = !inline(self) && self.processes.roles().contains(&Role::Checkpointer);
        self.processes.post(Role::Checkpointer);
        at_work
    }
    fn step_writers(&self) -> Result<bool> {
        let mut moved = false;
        for number in 0..self.cache.writer_count() {
            moved |= self.processes.step(self, Role::DatabaseWriter(number as u8))?;
        }
        Ok(self.processes.step(self, Role::FlashWriter)? || moved)
    }
    fn alert(&self, line: &str) {
        self.alert.line(line);
    }
    fn crash(&self, why: &str) {
        self.health.crash(why);
    }
    fn alive(&self) -> Result<()> {
        self.health.check()
    }
}

/// So that a shared instance can be handed over as it is.
impl<S: Site> Site for Arc<S> {
    fn environment(&self) -> &Environment {
        (**self).environment()
    }
    fn cache(&self) -> &BufferCache {
        (**self).cache()
    }
    fn files(&self) -> &FileSet {
        (**self).files()
    }
    fn multiblock_read_count(&self) -> u32 {
        (**self).multiblock_read_count()
    }
    fn direct_read_depth(&self) -> u32 {
        (**self).direct_read_depth()
    }
    fn checkpoint_target_bytes(&self) -> u64 {
        (**self).checkpoint_target_bytes()
    }
    fn redo_tail(&self) -> Lsn {
        (**self).redo_tail()
    }
    fn redo_flush(&self, context: &Context, lsn: Lsn) -> Result<()> {
        (**self).redo_flush(context, lsn)
    }
    fn checkpoint_wanted(&self) -> Option<Lsn> {
        (**self).checkpoint_wanted()
    }
    fn checkpoint_reached(&self, context: &Context, lsn: Lsn) -> Result<()> {
        (**self).checkpoint_reached(context, lsn)
    }
    fn post_writers(&self) {
        (**self).post_writers();
    }
    fn post_flash_writer(&self) {
        (**self).post_flash_writer();
    }
    fn post_checkpointer(&self) -> bool {
        (**self).post_checkpointer()
    }
    fn step_writers(&self) -> Result<bool> {
        (**self).step_writers()
    }
    fn alert(&self, line: &str) {
        (**self).alert(line);
    }
    fn crash(&self, why: &str) {
        (**self).crash(why);
    }
    fn alive(&self) -> Result<()> {
        (**self).alive()
    }
}

/// Whether whoever waits does the background work himself.
pub(crate) fn inline(site: &dyn Site) -> bool {
    site.environment().background == Background::Inline
}

/// Turns how a transfer of a file ended into a result, and counts it when it failed.
pub(super) fn check(
    file: &DataFile,
    call: &'static str,
    offset: u64,
    bytes: usize,
    outcome: Outcome,
) -> Result<()> {
    outcome.check(&file.path, call, offset, bytes as u32).map_err(|error| {
        file.statistics.note_error();
        EngineError::from(error)
    })
}
