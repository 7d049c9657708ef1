//! What all targets share: they are found by name, and a message that takes more memory than its target allows ends the program.
//! The targets themselves are in the crates whose decoders they feed.
#![forbid(unsafe_code)]

use cap::Cap;
use nfs::fuzz::Target;
use std::alloc::System;

#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, usize::MAX);

/// All of them.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    nfs::fuzz::TARGETS.iter().chain(nfslab::fuzz::TARGETS)
}

/// The one called `name`.
///
/// # Panics
/// When there is none: a bug.
pub fn target(name: &str) -> &'static Target {
    targets().find(|target| target.name == name).unwrap_or_else(|| panic!("there is no target {name}"))
}

/// Feeds `message` to `target`. Memory beyond what the target allows for it cannot be had, and the program aborts.
pub fn feed(target: &Target, message: &[u8]) {
    let limit = MEMORY.allocated() + (target.memory)(message.len());
    MEMORY.set_limit(limit).expect("above what is allocated");
    (target.run)(message);
    MEMORY.set_limit(usize::MAX).expect("no limit");
}
