//! Everything that reads from the wire, fed with what no good server sends: arbitrary bytes, and good replies with bytes changed, cut
//! off, repeated. Nothing may panic, and no stream takes more memory than its bound.

use crate::rpc::record::Records;
use crate::rpc::reply::{self, Message};
use crate::xdr::Reader;
use crate::{mount, portmap, v3};
use units::{Rng, Seed};

/// Reads one kind of message.
struct Decoder {
    name: &'static str,
    /// A good one, in words.
    good: &'static [u32],
    /// Whether it was understood.
    read: fn(&mut Reader<'_>) -> bool,
}

const DECODERS: &[Decoder] = &[
    Decoder { name: "reply", good: &[9, 1, 0, 0, 0, 0], read: is_message },
    Decoder { name: "denial", good: &[9, 1, 1, 1, 5], read: is_message },
    Decoder { name: "call", good: &[9, 0, 2, 0x4000_0000, 1, 0, 1, 4, 5, 0, 0], read: is_message },
    Decoder { name: "portmap", good: &[2049], read: |r| portmap::read_get_port(r).is_ok() },
    Decoder {
        name: "mnt",
        good: &[0, 5, 0x0102_0304, 0x0500_0000, 2, 390_003, 1],
        read: |r| mount::read_mnt(r).is_ok(),
    },
    Decoder { name: "mnt refused", good: &[13], read: |r| mount::read_mnt(r).is_err() },
    Decoder {
        name: "GETATTR of v3",
        good: &[0, 1, 0o644, 1, 0, 0, 0, 8192, 0, 8192, 0, 0, 0, 1, 0, 7, 1, 0, 1, 0, 1, 0],
        read: |r| v3::read_getattr(r).is_ok_and(|a| a.size == 8192 && a.file_id == 7),
    },
    Decoder { name: "LOOKUP of v3", good: &[0, 4, 0x0102_0304, 0, 0], read: |r| v3::read_lookup(r).is_ok() },
    Decoder { name: "no name", good: &[2, 0], read: |r| v3::read_lookup(r).is_err() },
    Decoder {
        name: "ACCESS of v3",
        good: &[0, 0, 0x0d],
        read: |r| v3::read_access(r).is_ok_and(|a| a.read && a.write),
    },
    Decoder { name: "CREATE of v3", good: &[0, 1, 4, 9, 0, 0, 0], read: |r| v3::read_create(r).is_ok() },
    Decoder { name: "SETATTR of v3", good: &[0, 0, 0], read: |r| v3::read_setattr(r).is_ok() },
    Decoder { name: "REMOVE of v3", good: &[0, 0, 0], read: |r| v3::read_remove(r).is_ok() },
    Decoder {
        name: "FSSTAT of v3",
        good: &[0, 0, 0, 100, 0, 60, 0, 50, 0, 9, 0, 9, 0, 9, 0],
        read: |r| v3::read_fsstat(r).is_ok_and(|s| s.total == 100 && s.available == 50),
    },
    Decoder {
        name: "FSINFO of v3",
        good: &[0, 0, 1 << 20, 1 << 20, 1, 1 << 19, 1 << 19, 1, 8192, 1, 0, 0, 1, 27],
        read: |r| v3::read_fsinfo(r).is_ok_and(|l| l.read_max == 1 << 20 && l.write_max == 1 << 19),
    },
    Decoder {
        name: "PATHCONF of v3",
        good: &[0, 0, 32_000, 255, 1, 0, 0, 1],
        read: |r| v3::read_pathconf(r).is_ok_and(|f| f.name_max == 255 && f.no_truncation),
    },
    Decoder {
        name: "READ of v3",
        good: &[0, 0, 5, 1, 5, 0x6865_6c6c, 0x6f00_0000],
        read: |r| v3::transfer::read_read(r, 8192).is_ok_and(|read| read.data.len() <= 8192),
    },
    Decoder {
        name: "WRITE of v3",
        good: &[0, 1, 0, 1, 2, 2, 3, 3, 0, 5, 2, 8, 9],
        read: |r| v3::transfer::read_write(r, 8192).is_ok_and(|written| written.bytes <= 8192),
    },
    Decoder { name: "COMMIT of v3", good: &[0, 0, 0, 8, 9], read: |r| v3::transfer::read_commit(r).is_ok() },
];

fn is_message(r: &mut Reader<'_>) -> bool {
    match reply::decode(r.rest()) {
        Ok(Message::Call { arguments, .. } | Message::Reply { result: Ok(arguments), .. }) => {
            assert!(arguments.rest().len() < r.rest().len());
            true
        }
        Ok(_) => true,
        Err(_) => false,
    }
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// A word as hostile as they get, or a small one that leads deeper.
fn word(rng: &mut Rng) -> u32 {
    match rng.below(6) {
        0 => rng.next_u64() as u32,
        1 => u32::MAX - rng.below(4) as u32,
        2 => 1 << rng.below(32),
        3 => rng.below(80) as u32,
        _ => rng.below(4) as u32,
    }
}

fn hostile(rng: &mut Rng, words: u64) -> Vec<u8> {
    let mut message: Vec<u8> = (0..rng.below(words)).flat_map(|_| word(rng).to_be_bytes()).collect();
    message.truncate(message.len().saturating_sub(rng.below(4) as usize));
    message
}

/// A good message, a little wrong.
fn mutated(rng: &mut Rng, good: &[u32]) -> Vec<u8> {
    let mut words = good.to_vec();
    for _ in 0..=rng.below(3) {
        let at = rng.below(words.len() as u64) as usize;
        match rng.below(4) {
            0 => words[at] ^= 1 << rng.below(32),
            1 => words[at] = word(rng),
            2 => words.insert(at, word(rng)),
            _ => words.extend_from_within(at..),
        }
    }
    let mut message = bytes(&words);
    if rng.below(2) == 0 {
        message.truncate(rng.below(message.len() as u64 + 1) as usize);
    }
    message
}

#[test]
fn good_messages_are_understood() {
    for decoder in DECODERS {
        assert!((decoder.read)(&mut Reader::new(&bytes(decoder.good))), "{}", decoder.name);
    }
}

#[test]
fn nothing_that_arrives_makes_a_decoder_panic() {
    for (index, decoder) in DECODERS.iter().enumerate() {
        let seed = Seed(40 + index as u64);
        let mut rng = Rng::new(seed);
        for round in 0..4_000 {
            let message =
                if round % 2 == 0 { hostile(&mut rng, 150) } else { mutated(&mut rng, decoder.good) };
            let result = std::panic::catch_unwind(|| (decoder.read)(&mut Reader::new(&message)));
            assert!(result.is_ok(), "{}, round {round} of {seed:?}: {message:02x?}", decoder.name);
        }
    }
}

#[test]
fn an_arbitrary_stream_stays_within_its_memory() {
    let mut rng = Rng::new(Seed(7));
    for _ in 0..300 {
        let mut records = Records::new(64 << 10);
        for _ in 0..rng.below(200) {
            let piece = hostile(&mut rng, 1_200);
            let room = records.room();
            assert!((1..=2 * ((64 << 10) + 4)).contains(&room.len()));
            let length = piece.len().min(room.len());
            room[..length].copy_from_slice(&piece[..length]);
            records.received(length);
            while let Ok(Some(message)) = records.message() {
                drop(reply::decode(message));
            }
            if records.message().is_err() {
                records.clear();
            }
        }
    }
}
