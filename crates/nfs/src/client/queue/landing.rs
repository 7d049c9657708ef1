//! Payloads of long reads are received into the buffers of their slots, as soon as what stands before them has arrived: a copy less.
//!
//! ```text
//! reply begins -> its call is a read in flight here, and was done -> what arrived of the payload is copied, the rest received there
//! ```
//! Whatever is not understood then comes the other way, as a whole message, and is judged there. A slot with a payload landing stays in flight until the
//! message has ended, or the connection is gone, and what was landing with it.

use super::{Phase, Slot};
use crate::client::connection::Connection;
use crate::client::target::Version;
use crate::rpc::reply::{self, Message};
use crate::rpc::xid::Xids;
use crate::transfer::{ReadResult, padding};
use crate::v3;
use crate::v4::compound::Results;
use crate::xdr::Reader;
use io::Action;
use std::ops::Range;

/// Diverts the payload of a message that has begun to arrive at `connection`, where it is one; `from`: the channel that this is, as slots know it.
pub(super) fn begin(
    connection: &mut Connection,
    version: Version,
    from: Option<usize>,
    xids: &Xids,
    slots: &mut [Slot],
) {
    let Some((begun, whole)) = connection.records.beginning() else { return };
    let asked = |xid| {
        let index = xids.slot(xid)?;
        let slot = &slots[index as usize];
        let reads = matches!(slot.request.action, Action::Read | Action::ReadVectored { .. });
        (slot.phase == Phase::Flying && slot.at == from && reads).then_some((index, slot.asked))
    };
    let Some((index, payload)) = payload(version, begun, whole, asked) else { return };
    let slot = &mut slots[index as usize];
    slot.landed = true;
    connection.land(payload, index, slot.done as usize, &mut slot.buffer);
}

/// The buffer of a slot that has a payload landing.
pub(super) fn buffer<'s>(slots: &'s mut [Slot]) -> impl FnOnce(u32) -> &'s mut [u8] {
    |index| {
        let slot = &mut slots[index as usize];
        assert!(slot.phase == Phase::Flying && slot.landed, "slot {index} is in flight");
        &mut slot.buffer
    }
}

/// Where the payload lies in a message of `whole` bytes that has `begun` to arrive, and whose it is; none where that is not the good reply to a read, or
/// nothing of the payload is missing. `asked`: slot and length of the read in flight that has this number.
pub(crate) fn payload(
    version: Version,
    begun: &[u8],
    whole: usize,
    asked: impl FnOnce(u32) -> Option<(u32, u32)>,
) -> Option<(u32, Range<usize>)> {
    let Ok(Message::Reply { xid, result: Ok(mut reader) }) = reply::decode(begun) else { return None };
    let (index, asked) = asked(xid)?;
    let read = read(version, &mut reader, asked)?;
    let start = begun.len() - read.behind.rest().len();
    let end = start + read.bytes as usize;
    (begun.len() < end && end + padding(read.bytes) <= whole).then_some((index, start..end))
}

fn read<'m>(version: Version, reader: &mut Reader<'m>, asked: u32) -> Option<ReadResult<'m>> {
    if version == Version::V3 {
        return v3::transfer::read_read(reader, asked).ok();
    }
    let mut results = Results::new(*reader).ok()?;
    if version.has_sessions() {
        results.sequenced().ok()?;
    }
    results.read(asked).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::record::{self, Records};
    use crate::v4::compound::Op;
    use crate::xdr::Writer;
    use units::{Rng, Seed};

    const ASKED: u32 = 400_000;
    const LAST: u32 = 1 << 31;

    /// What is wrong with a reply.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Lie {
        Nothing,
        /// It says that there is more than was asked for.
        Asked,
        /// It says that there is more than the message has.
        Length,
        /// What pads the payload misses.
        Padding,
        /// It refuses.
        Status,
        /// Nobody has that number.
        Stranger,
        /// It is no reply.
        Call,
    }
    const LIES: [Lie; 7] =
        [Lie::Nothing, Lie::Asked, Lie::Length, Lie::Padding, Lie::Status, Lie::Stranger, Lie::Call];

    fn reply(version: Version, xid: u32, data: &[u8], lie: Lie, rng: &mut Rng) -> Vec<u8> {
        let mut w = Writer::new();
        let at = record::open(&mut w);
        let xid = if lie == Lie::Stranger { 1 << 20 | xid } else { xid };
        [xid, u32::from(lie != Lie::Call), 0, 0, 0, 0].into_iter().for_each(|word| w.u32(word));
        let length = match lie {
            Lie::Asked => ASKED + 1 + rng.below(9) as u32,
            Lie::Length => (data.len() as u32 + 4 + rng.below(4000) as u32).min(ASKED),
            _ => data.len() as u32,
        };
        let status = if lie == Lie::Status { 5 } else { 0 };
        w.u32(status);
        if version == Version::V3 {
            // No attributes.
            [0, length].into_iter().for_each(|word| w.u32(word));
        } else {
            w.opaque(&b"a tag"[..rng.below(6) as usize]);
            w.u32(3);
            if version.has_sessions() {
                [Op::Sequence as u32, 0, 1, 2, 3, 4, 1, 0, 3, 3, 0].into_iter().for_each(|word| w.u32(word));
            }
            [Op::PutFh as u32, 0, Op::Read as u32, status].into_iter().for_each(|word| w.u32(word));
        }
        w.bool(rng.below(2) == 0);
        w.u32(length);
        w.raw(data);
        if lie != Lie::Padding {
            w.raw(&[0xaa; 3][..padding(data.len() as u32)]);
            // Of results that nobody asked for.
            w.raw(&vec![0xbb; 4 * rng.below(2) as usize * rng.below(700) as usize]);
        }
        record::seal(&mut w, at, 0);
        w.bytes().to_vec()
    }

    /// The same record in two fragments.
    fn in_two(record: &[u8], rng: &mut Rng) -> Vec<u8> {
        let message = &record[4..];
        let first = rng.below(message.len() as u64) as usize;
        let mut both = (first as u32).to_be_bytes().to_vec();
        both.extend_from_slice(&message[..first]);
        both.extend_from_slice(&((message.len() - first) as u32 | LAST).to_be_bytes());
        both.extend_from_slice(&message[first..]);
        both
    }

    /// What a message gave the read whose number it has.
    type Given = (u32, Option<Vec<u8>>);

    /// Receives `stream` in random pieces: the results in their order, and how many payloads landed.
    fn receive(version: Version, stream: &[u8], lands: bool, rng: &mut Rng) -> (Vec<Given>, usize) {
        let mut records = Records::new(1 << 20);
        let (mut buffer, mut landing, mut landed) = (vec![0xee; ASKED as usize], None, 0);
        let (mut rest, mut given) = (stream, Vec::new());
        let pieces_max = 1 << rng.below(20);
        while !rest.is_empty() {
            let mut take = (rng.below(pieces_max) as usize + 1).min(rest.len());
            let missing = records.missing().min(take);
            if let Some(at) = &mut landing {
                buffer[*at..*at + missing].copy_from_slice(&rest[..missing]);
                *at += missing;
            }
            let room = records.room();
            take = take.min(missing + room.len());
            room[..take - missing].copy_from_slice(&rest[missing..take]);
            records.received(take);
            rest = &rest[take..];
            while let Some(message) = records.message().expect("a good stream") {
                let landed = landing.take().is_some();
                let Ok(Message::Reply { xid, result: Ok(mut reader) }) = reply::decode(message) else {
                    continue;
                };
                let read = read(version, &mut reader, ASKED);
                let data = read.and_then(|read| {
                    if landed {
                        Some(buffer[..read.bytes as usize].to_vec())
                    } else {
                        Some(read.data().ok()?.to_vec())
                    }
                });
                given.push((xid, data));
            }
            let Some((begun, whole)) = records.beginning().filter(|_| lands) else { continue };
            let ours = |xid| (xid < 1 << 20).then_some((xid, ASKED));
            if let Some((_, range)) = payload(version, begun, whole, ours) {
                let here = records.divert(range);
                buffer.fill(0xee);
                buffer[..here.len()].copy_from_slice(here);
                (landing, landed) = (Some(here.len()), landed + 1);
            }
        }
        assert!(landing.is_none() && records.missing() == 0);
        (given, landed)
    }

    #[test]
    fn landed_payloads_are_those_that_are_copied_however_the_stream_was_cut() {
        let mut landed_in_all = 0;
        for seed in 0..80 {
            println!("seed {seed}");
            let mut rng = Rng::new(Seed(seed));
            let version = [Version::V3, Version::V40, Version::V41][rng.below(3) as usize];
            let mut stream = Vec::new();
            for xid in 0..rng.below(12) as u32 + 1 {
                let bytes =
                    if rng.below(3) == 0 { rng.below(9_000) } else { rng.below(u64::from(ASKED) + 1) };
                let data: Vec<u8> =
                    (0..bytes.div_ceil(8)).flat_map(|_| rng.next_u64().to_be_bytes()).collect();
                let data = &data[..bytes as usize];
                let lie = if rng.below(2) == 0 { Lie::Nothing } else { LIES[rng.below(7) as usize] };
                let record = reply(version, xid, data, lie, &mut rng);
                stream.extend(if rng.below(5) == 0 { in_two(&record, &mut rng) } else { record });
            }
            let (copied, none) = receive(version, &stream, false, &mut rng);
            let (given, landed) = receive(version, &stream, true, &mut rng);
            assert_eq!(none, 0);
            assert!(copied == given, "{version}: {:?}", given.iter().map(|(xid, _)| xid).collect::<Vec<_>>());
            landed_in_all += landed;
        }
        assert!(landed_in_all > 100, "{landed_in_all} payloads landed");
    }

    #[test]
    fn only_good_replies_to_reads_in_flight_land() {
        let mut rng = Rng::new(Seed(3));
        for version in [Version::V3, Version::V40, Version::V41] {
            for lie in LIES {
                // Padded, so that the padding can miss.
                let data = vec![7; 300_001];
                let record = reply(version, 9, &data, lie, &mut rng);
                let message = &record[4..];
                let ours = |xid| (xid == 9).then_some((5, ASKED));
                for begun in (0..message.len()).step_by(29) {
                    if let Some((index, range)) = payload(version, &message[..begun], message.len(), ours) {
                        assert_eq!((lie, index), (Lie::Nothing, 5));
                        assert!(range.start <= begun && begun < range.end);
                        assert_eq!(message[range], data);
                    }
                }
                let early = payload(version, &message[..1000], message.len(), ours);
                assert_eq!(early.is_some(), lie == Lie::Nothing, "{version} {lie:?}");
            }
        }
    }
}
