//! What the tests of this crate share: a simulated machine, a companion for calls.

use crate::context::{Background, Context, Environment};
use crate::instance::Core;
use crate::page::Lsn;
use crate::statistics::Statistics;
use io::sim::{Promises, SimStorage};
use std::cell::Cell;
use std::path::Path;
use units::{Clock, Seed};
use waits::{Registry, SessionKind};

/// A storage with an empty directory `/db`.
pub(crate) fn storage() -> SimStorage {
    let storage = SimStorage::new(Promises::default(), Seed(1));
    io::Storage::create_directory(&storage, Path::new("/db")).unwrap();
    storage
}

/// A simulated machine over `storage`.
pub(crate) fn environment(storage: &SimStorage) -> Environment {
    Environment {
        storage: storage.handle(),
        clock: Clock::steps(),
        background: Background::Inline,
        seed: Seed(7),
    }
}

/// A companion that belongs to no instance.
pub(crate) fn context() -> Context {
    let slot = Registry::new(Clock::steps(), 4).register(SessionKind::Foreground, "test");
    Context { session: slot.sid(), slot, counters: Statistics::new().counters() }
}

thread_local! {
    static FLUSH_EACH_CHANGE: Cell<bool> = const { Cell::new(false) };
}

/// From now on each change of this thread is durable when it is finished, so that the power can be cut between any two of them; otherwise
/// only commits reach the disk one by one.
pub(crate) fn flush_each_change(on: bool) {
    FLUSH_EACH_CHANGE.set(on);
}

/// A change has been finished. What its flush meets, whoever waits for the log next meets too.
pub(crate) fn changed(core: &Core, context: &Context, end: Lsn) {
    if FLUSH_EACH_CHANGE.get() {
        let _ = core.redo.wait_durable(core, context, end);
    }
}
