//! What replies mean for the requests that they answer.

use super::Slot;
use crate::client::file::FileState;
use crate::client::target::Version;
use crate::transfer::{ReadResult, Stability, Verifier};
use crate::v4::compound::Results;
use crate::v4::recovery::{Remedy, remedy};
use crate::xdr::{Malformed, Reader};
use crate::{Fault, Status, v3};
use io::{Action, Outcome};

const EIO: i32 = 5;

/// What a reply means for its slot.
pub(super) enum Verdict {
    /// The request ended.
    End(Outcome),
    /// Its next part can be asked for.
    More,
    /// Something else has to be done first.
    Needs(Remedy),
}

/// What the results of `slot`'s call mean; and whether the server began it, as sessions count.
pub(super) fn judge(
    version: Version,
    slot: &mut Slot,
    file: &FileState,
    mut reader: Reader<'_>,
) -> (Result<Verdict, Fault>, bool) {
    if version == Version::V3 {
        return (judge_v3(slot, file, &mut reader), true);
    }
    let mut results = match Results::new(reader) {
        Ok(results) => results,
        Err(malformed) => return (Err(malformed.into()), true),
    };
    if version.has_sessions() {
        match results.sequenced() {
            Ok(sequenced) => slot.flags = sequenced.flags,
            // One that was done and is not kept has its number.
            Err(fault) => return (Err(fault), fault.status() == Some(Status::RETRY_UNCACHED_REP)),
        }
    }
    (judge_v4(slot, file, &mut results), true)
}

fn judge_v3(slot: &mut Slot, file: &FileState, r: &mut Reader<'_>) -> Result<Verdict, Fault> {
    use v3::transfer::{read_commit, read_read, read_write};
    Ok(match slot.request.action {
        Action::Read | Action::ReadVectored { .. } => got(slot, read_read(r, slot.asked)?)?,
        Action::Write | Action::WriteDsync => wrote(slot, file, &read_write(r, slot.asked)?),
        Action::Sync => committed(slot, file, read_commit(r)?),
    })
}

fn judge_v4(slot: &mut Slot, file: &FileState, results: &mut Results<'_>) -> Result<Verdict, Fault> {
    Ok(match slot.request.action {
        Action::Read | Action::ReadVectored { .. } => got(slot, results.read(slot.asked)?)?,
        Action::Write | Action::WriteDsync => wrote(slot, file, &results.written(slot.asked)?),
        Action::Sync => committed(slot, file, results.committed()?),
    })
}

/// The one copy of a payload, where it was not received into the slot's buffer: from the message.
fn got(slot: &mut Slot, read: ReadResult<'_>) -> Result<Verdict, Malformed> {
    if !slot.landed {
        let from = slot.done as usize;
        slot.buffer[from..from + read.bytes as usize].copy_from_slice(read.data()?);
    }
    slot.done += read.bytes;
    Ok(if slot.done == slot.request.bytes {
        Verdict::End(Outcome::Full)
    } else if read.end_of_file || read.bytes == 0 {
        Verdict::End(Outcome::Short(slot.done))
    } else {
        Verdict::More
    })
}

fn wrote(slot: &mut Slot, file: &FileState, result: &crate::transfer::WriteResult) -> Verdict {
    let durable = slot.request.action == Action::Write || result.stability >= Stability::Data;
    if !durable || (result.bytes == 0 && slot.asked > 0) {
        return Verdict::End(Outcome::Errno(EIO));
    }
    let (from, to) = (slot.done as usize, (slot.done + result.bytes) as usize);
    file.uncommitted.wrote(
        &slot.target,
        result,
        slot.request.offset + u64::from(slot.done),
        &slot.buffer[from..to],
        slot.era,
    );
    slot.done += result.bytes;
    if slot.done == slot.request.bytes { Verdict::End(Outcome::Full) } else { Verdict::More }
}

/// What a restart of the server took away is known then, and written again before the sync ends.
fn committed(slot: &mut Slot, file: &FileState, verifier: Verifier) -> Verdict {
    file.uncommitted.committed(&slot.target, Some(verifier), slot.covers);
    if slot.next_commit() { Verdict::More } else { Verdict::End(Outcome::Full) }
}

pub(super) fn refusal(fault: Fault) -> Verdict {
    match fault.status().map(|status| (status, remedy(status))) {
        None => Verdict::End(Outcome::Errno(EIO)),
        Some((status, Remedy::None)) => Verdict::End(Outcome::Errno(status.errno())),
        Some((_, remedy)) => Verdict::Needs(remedy),
    }
}
