//! What the tests of this crate share: a simulated machine, a companion for calls.

use crate::context::{Background, Context, Environment};
use crate::statistics::Statistics;
use io::sim::{Promises, SimStorage};
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
