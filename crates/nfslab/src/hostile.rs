//! Calls as no good client sends them: arbitrary bytes, and good calls with bytes changed, cut off, repeated, of every program, procedure and operation. Nothing may
//! panic, each call gets one whole answer, and data stays within its bound.

use crate::cluster::{DataServer, Layouts};
use crate::fuzz::{Stand, TARGETS};
use crate::interconnect;
use crate::wire::{Grant, Part, Place};
use nfs::rpc::Procedure;
use nfs::v4::compound::{Compound, Op};
use nfs::v4::session::SessionId;
use nfs::v4::{COMPOUND, Minor};
use nfs::xdr::Writer;
use std::panic::{AssertUnwindSafe, catch_unwind};
use units::{Rng, Seed};

const ROUNDS: u32 = 400;

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

/// A handle of the root, of the file in it, of nothing; or no handle.
fn handle(rng: &mut Rng, w: &mut Writer) {
    match rng.below(8) {
        0 => w.opaque(&[7; 16]),
        1 => w.opaque(&[]),
        6 => {
            let part = Some(Part { stripe: word(rng), count: word(rng) });
            Place { id: 3, grant: Grant { number: rng.below(2), part } }.encode(w);
        }
        n => Place { id: 1 + n % 4, grant: Grant::of(u64::from(n == 7)) }.encode(w),
    }
}

/// Arguments of an operation or a procedure: handles, names and words in any order.
fn arguments(rng: &mut Rng, w: &mut Writer) {
    for _ in 0..rng.below(14) {
        match rng.below(5) {
            0 => handle(rng, w),
            1 => w.opaque([&b"a"[..], b"f", b"..", b"", b"x/y", &[0xff]][rng.below(6) as usize]),
            _ => w.u32(word(rng)),
        }
    }
}

/// A little wrong.
fn spoil(rng: &mut Rng, message: &mut Vec<u8>, from: usize) {
    for _ in 0..rng.below(3) {
        if message.len() > from {
            let at = from + rng.below((message.len() - from) as u64) as usize;
            message[at] ^= 1 << rng.below(8);
        }
    }
    if rng.below(4) == 0 {
        message.truncate(from + rng.below((message.len() - from) as u64 + 1) as usize);
    }
}

/// Operations in a row; in 4.1 behind a SEQUENCE that is right.
fn compound(rng: &mut Rng, session: Option<(SessionId, u32)>) -> Vec<u8> {
    let mut w = Writer::new();
    let mut compound = Compound::new(&mut w, if session.is_some() { Minor::V1 } else { Minor::V0 });
    if let Some((id, sequence)) = session {
        compound.sequence(id, nfs::transfer::SlotCall { slot: 0, sequence }, 0, true);
    }
    // The number of operations is written in front; what is appended by hand is counted by hand.
    compound.put_root();
    compound.lookup("a");
    let mut count = 2 + u32::from(session.is_some());
    let kept = w.len();
    for _ in 0..1 + rng.below(3) {
        let op = if rng.below(8) == 0 { word(rng) } else { 3 + rng.below(57) as u32 };
        w.u32(op);
        match op {
            22 => handle(rng, &mut w),
            15 | 28 => w.opaque(b"f"),
            _ => arguments(rng, &mut w),
        }
        count += 1;
    }
    w.set_u32(8, count);
    let mut message = w.bytes().to_vec();
    spoil(rng, &mut message, kept);
    message
}

fn survives(what: &str, seed: Seed, message: &[u8], call: impl FnOnce() -> Vec<u8>) {
    let result = catch_unwind(AssertUnwindSafe(call));
    assert!(result.is_ok(), "{what}, {seed:?}: {message:02x?}");
}

#[test]
fn no_call_makes_a_node_panic() {
    let stand = Stand::new(Layouts::Files);
    let program = |program, version, number| Procedure { program, version, number };
    let all = (0..24)
        .map(|number| program(100_003, 3, number))
        .chain((0..6).map(|number| program(100_005, 3, number)))
        .chain((0..4).map(|number| program(interconnect::PROGRAM, 1, number)))
        .chain([program(100_003, 4, 0), COMPOUND, program(100_003, 9, 1), program(5, 1, 1)]);
    for (index, procedure) in all.enumerate() {
        let seed = Seed(900 + index as u64);
        let mut rng = Rng::new(seed);
        for _ in 0..ROUNDS {
            let mut w = Writer::new();
            if rng.below(2) == 0 {
                handle(&mut rng, &mut w);
            }
            arguments(&mut rng, &mut w);
            let mut message = w.bytes().to_vec();
            spoil(&mut rng, &mut message, 0);
            survives(&format!("{procedure:?}"), seed, &message, || stand.call(procedure, &message));
        }
    }
}

#[test]
fn no_compound_makes_a_node_panic() {
    for (index, layouts) in
        [Layouts::Files, Layouts::Flexible(DataServer::V3), Layouts::None].into_iter().enumerate()
    {
        let stand = Stand::new(layouts);
        let seed = Seed(700 + index as u64);
        let mut rng = Rng::new(seed);
        for number in 0..30 {
            let session = stand.session(number);
            let mut sequence = 0;
            for _ in 0..ROUNDS {
                let in_session = (rng.below(4) > 0).then(|| {
                    sequence += 1;
                    (session, sequence)
                });
                let message = compound(&mut rng, in_session);
                survives("a compound", seed, &message, || stand.call(COMPOUND, &message));
            }
        }
    }
}

/// That the operations above are reached: without spoiling, a layout is given.
#[test]
fn good_compounds_are_understood() {
    let stand = Stand::new(Layouts::Files);
    let session = stand.session(1);
    let mut w = Writer::new();
    let mut compound = Compound::new(&mut w, Minor::V1);
    compound.sequence(session, nfs::transfer::SlotCall { slot: 0, sequence: 1 }, 0, true);
    compound.put_root();
    compound.lookup("a");
    compound.get_handle();
    let found = stand.results(&w, |all| {
        all.sequenced()?;
        all.done(Op::PutRootFh)?;
        all.done(Op::Lookup)?;
        all.handle()
    });
    found.expect("a handle");
}

/// What fuzzers kept of earlier hours: `cargo x fuzz` goes on from there.
#[test]
fn what_fuzzers_kept_is_survived() {
    for target in TARGETS {
        let seeds = (target.seeds)();
        assert!(!seeds.is_empty(), "{}", target.name);
        for message in seeds.iter().chain(&nfs::fuzz::kept(target.name)) {
            let result = catch_unwind(|| (target.run)(message));
            assert!(result.is_ok(), "{}: {message:02x?}", target.name);
        }
    }
}
