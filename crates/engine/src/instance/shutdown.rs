//! Stopping.

use super::Instance;
use super::process::Role;
use crate::files::control::State;
use crate::files::read_back::{self, ReadBack};
use crate::flash::Stamp;
use crate::{Context, Result};
use waits::SessionKind;

/// How to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// Roll back what is open, write everything, mark the database clean.
    Immediate,
    /// Stop at once; the next open recovers.
    Abort,
}

impl Instance {
    /// Stops. Sessions that are still there get [`crate::EngineError::ShuttingDown`] from every call.
    ///
    /// # Errors
    /// [`crate::EngineError::Crashed`] when it had stopped itself before or does so now, what storage says: then it is
    /// stopped too, and the next open recovers.
    pub fn shutdown(self, how: Shutdown) -> Result<()> {
        let core = &self.core;
        if how == Shutdown::Abort {
            core.alert.line("shutdown abort");
            return Ok(());
        }
        core.health.check()?;
        core.alert.line("shutdown immediate");
        core.gate.close(&|| core.wake_all());
        let context = core.context(SessionKind::Foreground, "shutdown")?;
        self.close(&context)?;
        self.stop_processes();
        core.alert.line("closed");
        Ok(())
    }

    /// [`Shutdown::Immediate`]; then, with `_verify_writes`, every block that was written since the instance was opened is read from the device
    /// and held against what was written last. Nothing without the parameter. `go_on` hears the blocks done and to be done, and may stop
    /// the reading.
    ///
    /// # Errors
    /// Those of [`Instance::shutdown`]; a file that cannot be opened any more.
    pub fn shutdown_and_read_back(self, go_on: &mut dyn FnMut(u64, u64) -> bool) -> Result<ReadBack> {
        let storage = self.core.environment.storage.clone();
        let (files, block_bytes) = (read_back::noted(&self.core.files), self.core.files.block_bytes());
        self.shutdown(Shutdown::Immediate)?;
        read_back::read_back(&*storage, &files, block_bytes, go_on)
    }

    /// 1. the gate is closed: nobody changes anything any more.
    /// 2. the system monitor stops: it is the last that makes redo of its own accord.
    /// 3. what sessions left unfinished is rolled back, and what is known about room in segments is written down.
    /// 4. everything is written. The checkpointer stops after it, so that nobody moves the checkpoint behind our back.
    /// 5. the flash cache's index is saved: nothing can become older than its home from here on.
    /// 6. the control file says `clean`, with the checkpoint at the end of redo: the next open has nothing to read.
    ///    Before 4 this would lose what only memory had.
    fn close(&self, context: &Context) -> Result<()> {
        let core = &self.core;
        core.processes.stop(Role::SystemMonitor);
        core.transactions.recover(core, context)?;
        core.space.write_hints(core, context)?;
        core.cache.checkpoint(core, context)?;
        core.processes.stop(Role::Checkpointer);
        core.redo.wait_durable(core, context, core.redo.tail_lsn())?;
        let end = core.redo.restart_lsn();
        if let Some(flash) = core.cache.flash() {
            let content = core.control.content();
            let stamp = Stamp { database_id: content.database_id, opens: content.opens, checkpoint: end };
            flash.save(core.as_ref(), stamp);
        }
        core.control.update(context, |content| {
            content.checkpoint = end;
            content.state = State::Clean;
            Ok(())
        })
    }

    /// Ends all threads, the log writer last: others wait for it.
    fn stop_processes(&self) {
        for role in self.core.processes.roles().into_iter().rev() {
            self.core.processes.stop(role);
        }
    }
}

/// [`Shutdown::Abort`], also for an open that failed half-way: the threads hold the core, so somebody must end them.
impl Drop for Instance {
    fn drop(&mut self) {
        let core = &self.core;
        if !core.processes.roles().is_empty() {
            core.health.abort();
            core.gate.close(&|| core.wake_all());
            self.stop_processes();
        }
        core.lock.lock().take();
    }
}
