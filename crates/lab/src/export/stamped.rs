//! A new file of stamped blocks on an export.

use super::storage;
use crate::LabError;
use io::stamp::{Stamp, Stamper};
use io::{Access, Action, Api, Completion, Outcome, Request};
use std::path::Path;
use units::Seed;

/// Bytes of one write, and how many are on their way at once.
const CHUNK_BYTES: u32 = 1 << 20;
const DEPTH: u32 = 8;

/// Makes `path` and writes `bytes` into it, durable when this returns; generation 0. `told` hears the bytes done so far, and says
/// whether to go on.
///
/// # Errors
/// [`LabError::Cancelled`]; what the server says.
pub fn write_stamped(
    path: &Path,
    bytes: u64,
    block_bytes: u32,
    file_id: u64,
    seed: Seed,
    told: &mut dyn FnMut(u64) -> bool,
) -> Result<(), LabError> {
    let storage = storage(path)?;
    let access = Access { read: true, write: true, direct: true, dsync: false };
    let disk = storage.create(path, 0, access)?;
    let chunk = CHUNK_BYTES.next_multiple_of(block_bytes);
    let mut queue = storage.open_queue(Api::Threads, DEPTH, chunk, &[disk])?;
    let stamper = Stamper::new(seed);
    let mut asked: Vec<(u64, u32)> = vec![(0, 0); DEPTH as usize];
    let mut free: Vec<u32> = (0..DEPTH).collect();
    let (mut next, mut written, mut done) = (0, 0, Vec::new());
    while written < bytes {
        while next < bytes
            && let Some(slot) = free.pop()
        {
            let length = u64::from(chunk).min(bytes - next) as u32;
            let blocks = queue.buffer_mut(slot)[..length as usize].chunks_mut(block_bytes as usize);
            for (index, block) in blocks.enumerate() {
                let offset = next + index as u64 * u64::from(block_bytes);
                stamper.fill(block, Stamp { file_id, offset, generation: 0 });
            }
            queue.stage(slot, Request { file: 0, offset: next, bytes: length, action: Action::Write });
            asked[slot as usize] = (next, length);
            next += u64::from(length);
        }
        queue.submit_and_reap(1, &mut done)?;
        for Completion { slot, outcome } in done.drain(..) {
            let (offset, length) = asked[slot as usize];
            outcome.check(path, "write", offset, length)?;
            written += u64::from(length);
            free.push(slot);
        }
        if !told(written) {
            return Err(LabError::Cancelled);
        }
    }
    queue.stage(0, Request { file: 0, offset: 0, bytes: 0, action: Action::Sync });
    queue.submit_and_reap(1, &mut done)?;
    let outcome = done.pop().map_or(Outcome::Errno(5), |completion| completion.outcome);
    Ok(outcome.check(path, "commit", 0, 0)?)
}
