//! Random reads of single blocks through the cache, against requests by `io` alone at the device's knee.
//!
//! Both sides first try a few depths; the best of each plays again, in turns, and only that is reported.

use super::evidence::why;
use super::{BLOCK, Bench, CACHE, NEVER, SETTLE, configuration, ratios, terms};
use crate::common::goals::{Aim, Goals};
use engine::{AlterSystem, Instance, Shutdown};
use io::Access;
use lab::database::drive::Terms;
use lab::database::random_read::{self, Rows, Shape};
use lab::load::{LoadSpec, Pattern};
use std::path::Path;
use units::{Nanos, Seed};

/// The table, in caches: so few of its blocks are found in the cache that reading is what takes the time.
const CACHES: u64 = 8;
/// Requests in flight that io alone tries.
const DEPTHS: [u32; 4] = [16, 32, 64, 128];
/// Sessions that ours try; each asks for its rows in batches, whose blocks it keeps in flight together.
const READERS: [u32; 4] = [2, 3, 4, 6];
/// Rows of a batch: at its end a session's last reads are waited for with fewer and fewer in flight, so it is long.
const BATCH: u32 = 512;

impl Bench {
    pub fn reads(&self, goals: &mut Goals) {
        let instance = self.open();
        let mut session = instance.session("read").expect("a session");
        let blocks = CACHES * CACHE.0 / self.scale / BLOCK.0;
        random_read::prepare(&mut session, blocks, BLOCK, Seed(9), &NEVER).expect("a table");
        session.alter_system(&AlterSystem::Checkpoint).expect("checkpoint");
        let rows = random_read::open(&mut session).expect("its rows");
        session.alter_system(&AlterSystem::FlushBufferCache).expect("flush");
        println!("\nrandom reads of single blocks, {} rounds of {} s a side", self.rounds, self.seconds);
        let data = instance.datafile().into_iter().find(|f| f.name.ends_with("users01.dbf")).expect("USERS");
        let ours = |sessions: u32, seconds: f64| read(&instance, &rows, sessions, seconds);
        let raw = |depth: u32, seconds: f64| raw(&data.name, blocks * BLOCK.0, depth, seconds);
        let brief = self.seconds.min(1.0);
        let sessions = best(&READERS, |sessions| ours(sessions, brief));
        let depth = best(&DEPTHS, |depth| raw(depth, brief));
        println!("  the best: {sessions} sessions with batches of {BATCH}; io alone with {depth} in flight");
        let (through, alone) = (|| ours(sessions, self.seconds), || raw(depth, self.seconds));
        let rates = self.alternate(&[("ours, reads/s", &through), ("io alone, reads/s", &alone)]);
        goals.rounds(
            "random reads: ours / io alone at its knee",
            &ratios(&rates[0], &rates[1]),
            Aim::AtLeast(0.9),
        );
        session.drop_table(random_read::TABLE).expect("drop");
        drop(session);
        instance.shutdown(Shutdown::Immediate).expect("shut down");
    }
}

fn best(candidates: &[u32], rate: impl Fn(u32) -> f64) -> u32 {
    let rates = candidates.iter().map(|candidate| (rate(*candidate), *candidate));
    rates.max_by(|a, b| a.0.total_cmp(&b.0)).expect("there are candidates").1
}

/// Physical reads per second: what the cache answered is none of the device's rate.
fn read(instance: &Instance, rows: &Rows, sessions: u32, seconds: f64) -> f64 {
    let shape = Shape { sessions, batch: BATCH, span: 0..rows.count() };
    let terms = Terms { measure: Nanos::secs(seconds), ..terms(Seed(10)) };
    let done = random_read::run(instance, rows, &shape, terms).expect("reads");
    let rate = done.interval.files().unwrap_or_default().reads as f64 / done.trial.seconds();
    why(&format!("ours, {sessions} sessions, {rate:.0} reads/s"), &done.interval);
    rate
}

fn raw(path: &Path, bytes: u64, in_flight: u32, seconds: f64) -> f64 {
    let spec = LoadSpec {
        api: configuration().api,
        access: Access { read: true, write: false, direct: true, dsync: false },
        paths: vec![path.to_owned()],
        threads: 2,
        in_flight,
        pattern: Pattern::RandomRead,
        block_bytes: BLOCK.0 as u32,
        span: 0..bytes,
        batch_min: 0,
        verify_every: 0,
        notes: None,
        file_id: 1,
        seed: Seed(11),
        interval: Nanos::millis(250),
        pin_cores: false,
        settle: SETTLE,
        measure: Nanos::secs(seconds),
        lock_writes: false,
    };
    let measured = lab::load::run(&spec, &NEVER).expect("raw reads");
    let rate = measured.ops as f64 / (measured.ended - measured.started).as_secs();
    println!("    io alone, {in_flight} in flight: {rate:.0} reads/s");
    rate
}
