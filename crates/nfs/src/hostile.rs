//! Everything that reads from the wire, fed with what no good server sends: arbitrary bytes, and good replies with bytes changed, cut
//! off, repeated, and all that fuzzers found worth keeping. Nothing may panic, and no stream takes more memory than its bound.

use crate::fuzz::decoders::{CALLBACKS, Decoder, HEADS, LAYOUTS, V3, V4};
use crate::fuzz::{TARGETS, kept};
use crate::rpc::record::Records;
use crate::rpc::reply;
use crate::xdr::Reader;
use units::{Rng, Seed};

fn decoders() -> impl Iterator<Item = &'static Decoder> {
    [HEADS, V3, V4, LAYOUTS, CALLBACKS].into_iter().flatten()
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
    for decoder in decoders() {
        assert!((decoder.read)(&mut Reader::new(&bytes(decoder.good))), "{}", decoder.name);
    }
}

#[test]
fn nothing_that_arrives_makes_a_decoder_panic() {
    for (index, decoder) in decoders().enumerate() {
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

/// What fuzzers kept of earlier hours: `cargo x fuzz` goes on from there.
#[test]
fn what_fuzzers_kept_is_survived() {
    for target in TARGETS {
        let seeds = (target.seeds)();
        assert!(!seeds.is_empty(), "{}", target.name);
        for message in seeds.iter().chain(&kept(target.name)) {
            let result = std::panic::catch_unwind(|| (target.run)(message));
            assert!(result.is_ok(), "{}: {message:02x?}", target.name);
        }
    }
}
