//! How long it takes to roll forward: 1 GiB of redo in 20 seconds at most, with a cache smaller than what was changed.
//!
//! Two kinds of redo, each made by small changes of random blocks and left behind by a shutdown abort: with page images
//! (`torn_page_protection = redo`: few blocks are read) and without (`doublewrite`: many small records, every block is read).
//! The time is that of opening the database, undo and catalog included. On a busy machine it is an upper bound. What was made
//! lies partly in the page cache; the reads of `setall` go past it.
//!
//! `cargo x bench recovery --mib 1024 --only redo --directory /data`
#![forbid(unsafe_code)]

#[path = "../../lab/benches/common/flags.rs"]
mod flags;

use engine::change::Change;
use engine::files::control::TablespaceKind;
use engine::page::{self, PageId, PageKind};
use engine::{Background, Environment, Instance, InstanceConfig, Shutdown};
use flags::Flags;
use io::{RealStorage, Storage};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use units::{Clock, Nanos, Rng, Seed, clock};
use waits::{Event, SessionKind, WaitClass};

/// The promise, for each GiB.
const SECONDS_MAX: f64 = 20.0;
const MIB: u64 = 1 << 20;
const BLOCK: u64 = 8192;

fn main() -> ExitCode {
    let flags = Flags::parse();
    let measured = flags.measured();
    let redo_bytes = flags.number("mib", if measured { 1024 } else { 8 }) * MIB;
    let above = flags.text("directory").map_or_else(std::env::temp_dir, PathBuf::from);
    let mut met = true;
    let only = flags.text("only");
    for protection in ["redo", "doublewrite"].into_iter().filter(|p| only.as_deref().is_none_or(|o| o == *p))
    {
        let folder = tempfile::tempdir_in(&above).expect("a folder that can be written");
        met &= measure(folder.path(), protection, redo_bytes, measured);
    }
    if met || !measured { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn measure(folder: &Path, protection: &str, redo_bytes: u64, measured: bool) -> bool {
    let config = config(folder, protection, redo_bytes);
    // The maker's cache holds all that is changed, so nothing is written early and the crash needs all of the redo.
    let maker = config.clone().with("db_cache_size", &(redo_bytes * 3 / 4).max(24 * MIB).to_string());
    let instance = Instance::create(environment(), maker).expect("a database");
    make_redo(&instance, config.data_bytes / BLOCK, redo_bytes);
    instance.shutdown(Shutdown::Abort).expect("an abort");
    let began = clock::now();
    let config = config.with("db_cache_size", &(redo_bytes / 4).max(4 * MIB).to_string());
    let instance = Instance::open(environment(), config).expect("recovery");
    let took = clock::now() - began;
    let alert = RealStorage.read(&folder.join("alert.log")).expect("the alert log");
    let alert = String::from_utf8_lossy(&alert).into_owned();
    let line =
        alert.lines().rfind(|line| line.contains("rolled forward from")).expect("something to recover");
    let (_, words) = line.split_once("rolled forward ").expect("found above");
    let numbers: Vec<u64> = words.split(' ').filter_map(|word| word.parse().ok()).take(2).collect();
    let recovered = numbers[1] - numbers[0];
    let seconds = took.as_secs();
    let allowed = SECONDS_MAX * recovered as f64 / (1 << 30) as f64;
    let met = seconds <= allowed && recovered >= redo_bytes;
    let verdict = match (measured, met) {
        (false, _) => String::new(),
        (true, true) => format!("; goal <= {allowed:.1} s: met"),
        (true, false) => format!("; goal <= {allowed:.1} s for {} MiB: MISSED", redo_bytes / MIB),
    };
    println!(
        "{protection:<12} {} MiB of redo, open took {seconds:.2} s, {:.0} MB/s{verdict}",
        recovered / MIB,
        recovered as f64 / 1e6 / seconds
    );
    println!("             {words}");
    println!("             {}", parts(&instance, took));
    instance.shutdown(Shutdown::Abort).expect("an abort");
    met
}

/// Where the time of the open went: its waits, and the rest.
fn parts(instance: &Instance, took: Nanos) -> String {
    let totals = instance.core.waits.totals();
    let mut waits: Vec<(Event, Nanos)> =
        totals.of(SessionKind::Foreground).seen().map(|(event, all)| (event, all.waited)).collect();
    waits.retain(|(event, _)| event.class() != WaitClass::Idle);
    waits.sort_by_key(|(_, waited)| std::cmp::Reverse(waited.0));
    let waited = Nanos(waits.iter().map(|(_, waited)| waited.0).sum());
    let mut words = format!("decoding, sorting and applying {:.2} s", (took - waited).as_secs());
    for (event, waited) in waits.iter().take(4) {
        words += &format!(", {} {:.2} s", event.name(), waited.as_secs());
    }
    words
}

fn config(folder: &Path, protection: &str, redo_bytes: u64) -> InstanceConfig {
    let mut config = InstanceConfig::new(folder)
        .with("torn_page_protection", protection)
        // No checkpoint before the end.
        .with("fast_start_redo_target", &(4 * redo_bytes).to_string())
        .with("filesystemio_options", "setall");
    config.data_bytes = redo_bytes.max(16 * MIB);
    config.redo_groups = 3;
    config.redo_bytes = (redo_bytes * 3 / 2).max(32 * MIB);
    config
}

fn environment() -> Environment {
    Environment {
        storage: Arc::new(RealStorage),
        clock: Clock::Real,
        background: Background::Threads,
        seed: Seed(1),
    }
}

/// Changes random blocks of the data file's upper half, where no segment is, until there is so much redo.
fn make_redo(instance: &Instance, blocks: u64, redo_bytes: u64) {
    let core = &instance.core;
    let context = core.context(SessionKind::Foreground, "bench").expect("a session");
    let content = core.control.content();
    let permanent =
        |t: u16| content.tablespace(t).is_some_and(|t| t.kind == TablespaceKind::Permanent && t.number > 0);
    let file = content.files.iter().find(|f| permanent(f.tablespace)).expect("a data file").number;
    let (start, from) = (core.redo.tail_lsn().0, blocks / 2);
    let block = |index: u64| PageId { file, block: (from + index) as u32 };
    for index in 0..blocks - from {
        let mut change = Change::begin(core, &context, 1, 0).expect("room");
        change.new_page(block(index), PageKind::Heap, 99).expect("a frame");
        change.finish();
    }
    let mut rng = Rng::new(Seed(5));
    let mut data = [0; 120];
    while core.redo.tail_lsn().0 - start < redo_bytes {
        let mut change = Change::begin(core, &context, 2, 2 * 128).expect("room");
        for index in [rng.below(blocks - from), rng.below(blocks - from)] {
            let page = change.page(block(index)).expect("a page");
            data.fill(rng.next_u64() as u8);
            let at = page::HEADER_BYTES + rng.below(BLOCK - 32 - data.len() as u64) as usize;
            change.write(page, at, &data);
        }
        change.finish();
    }
    core.redo.wait_durable(core, &context, core.redo.tail_lsn()).expect("a durable log");
}
