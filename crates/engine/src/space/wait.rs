//! Mutexes whose waits are seen: as `enq: …` with the parameters that Oracle has for them.

use crate::Context;
use parking_lot::{Mutex, MutexGuard};
use waits::Event;

/// Lock mode of DML on a table.
pub const ROW_EXCLUSIVE: u64 = 3;
/// Lock mode of whoever must be alone.
pub const EXCLUSIVE: u64 = 6;

/// `name|mode` of an enqueue, as Oracle packs it: the letters in the upper half, the mode below.
pub const fn enqueue(name: [u8; 2], mode: u64) -> u64 {
    ((name[0] as u64) << 24) | ((name[1] as u64) << 16) | mode
}

/// Locks; when that does not go at once the session is seen waiting.
pub fn lock_or_wait<'a, T>(
    mutex: &'a Mutex<T>,
    context: &Context,
    event: Event,
    parameters: [u64; 3],
) -> MutexGuard<'a, T> {
    if let Some(guard) = mutex.try_lock() {
        return guard;
    }
    let [p1, p2, p3] = parameters;
    let _wait = context.slot.enter(event, p1, p2, p3);
    mutex.lock()
}
