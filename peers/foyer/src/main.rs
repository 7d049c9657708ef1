//! Our flash cache beside the hybrid cache of the crate foyer, on the same traces, sizes and disks: hits, and CPU for each.
//!
//! Both have the same memory and the same bytes of flash above data files of the same size; what neither holds is read from there, past the page
//! cache. The flash lies in memory unless `--flash` names a fast device. One thread asks for one block after the other. Hits are the share of
//! references that did not reach the data file, in the second half of a trace; each trace begins with empty caches. CPU is that of the whole
//! process, the kernel's work included, while blocks are asked for that lie in flash and hardly any in memory. Rounds take turns.
//!
//! `cargo x bench foyer --mib 64 --rounds 5 --directory /data --flash /ssd --only hits`
#![forbid(unsafe_code)]

mod ours;
mod theirs;
mod trace;

#[path = "../../../crates/lab/benches/common/flags.rs"]
mod flags;
#[path = "../../../crates/lab/benches/common/goals.rs"]
mod goals;

use flags::Flags;
use goals::{Aim, Goals, median};
use ours::Ours;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use theirs::{POLICIES, Theirs};
use trace::TRACES;

const BLOCK: usize = 8192;
const CPU_PER_HIT_MAX: f64 = 0.5;

/// Sizes of everything, bytes.
#[derive(Clone, Copy)]
struct Sizes {
    data: u64,
    memory: u64,
    flash: u64,
}

/// Where everything lies.
#[derive(Clone, Copy)]
struct Places<'a> {
    data: &'a Path,
    flash: &'a Path,
}

/// A cache of two levels above a file of blocks.
trait Levels {
    /// Nothing is in memory or flash.
    fn empty(&mut self);
    /// A block is asked for.
    fn get(&mut self, block: u64);
    /// Blocks that came from the data file so far.
    fn fetched(&self) -> u64;
    /// What waits to be written to flash is there.
    fn settle(&mut self);
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    let measured = flags.measured();
    let mib: u64 = flags.number("mib", if measured { 64 } else { 16 });
    let rounds: usize = flags.number("rounds", if measured { 5 } else { 1 });
    let folder = flags.text("directory").map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = folder.join(format!("redoubt-beside-foyer-{}", std::process::id()));
    let flash = flags.text("flash").map_or_else(|| PathBuf::from("/dev/shm"), PathBuf::from);
    let flash = flash.join(format!("redoubt-beside-foyer-flash-{}", std::process::id()));
    let places = Places { data: &folder, flash: &flash };
    for folder in [&folder, &flash] {
        std::fs::create_dir_all(folder).expect("a folder");
    }
    let mut goals = Goals::default();
    let only = flags.text("only");
    let wanted = |part: &str| only.as_deref().is_none_or(|only| only == part);
    if wanted("hits") {
        hits(places, mib << 20, measured, &mut goals);
    }
    if wanted("cpu") {
        cpu(places, mib << 20, rounds, measured, &mut goals);
    }
    for folder in [&folder, &flash] {
        std::fs::remove_dir_all(folder).expect("remove the folder");
    }
    goals.conclude(measured)
}

fn hits(places: Places<'_>, data: u64, measured: bool, goals: &mut Goals) {
    let sizes = Sizes { data, memory: data / 16, flash: data / 4 };
    let count = sizes.data / BLOCK as u64 * if measured { 16 } else { 4 };
    println!(
        "hits in memory or flash: data {}, memory {}, flash {} MiB",
        data >> 20,
        sizes.memory >> 20,
        sizes.flash >> 20
    );
    let mut ours = Ours::make(places, sizes, "scan_resistant");
    let blocks = ours.blocks();
    for trace in TRACES {
        let references = trace.references(blocks, count);
        let share = |levels: &mut dyn Levels| {
            levels.empty();
            let (first, second) = references.split_at(references.len() / 2);
            first.iter().for_each(|block| levels.get(*block));
            let before = levels.fetched();
            second.iter().for_each(|block| levels.get(*block));
            1.0 - (levels.fetched() - before) as f64 / second.len() as f64
        };
        let mine = share(&mut ours);
        println!("  {:<24} ours {:>6.2} %", trace.name(), mine * 100.0);
        let mut best = (0.0, "");
        for policy in POLICIES {
            let mut theirs = Theirs::make(places, sizes, policy);
            let other = share(&mut theirs);
            println!("  {:<24} foyer, {policy:<7} {:>6.2} %", "", other * 100.0);
            if other > best.0 {
                best = (other, policy);
            }
        }
        let beside =
            format!("{:.2} % of references; foyer {:.2} % ({})", mine * 100.0, best.0 * 100.0, best.1);
        goals.value(
            &format!("hits, {}, ratio to foyer's best", trace.name()),
            mine / best.0,
            &beside,
            Aim::AtLeast(1.0),
        );
    }
}

/// Everything fits into flash, a hundredth into memory.
fn cpu(places: Places<'_>, data: u64, rounds: usize, measured: bool, goals: &mut Goals) {
    let sizes = Sizes { data, memory: (data / 100).max(1 << 20), flash: data * 4 };
    let mut ours = Ours::make(places, sizes, "scan_resistant");
    let blocks = ours.blocks();
    let mut theirs = Theirs::make(places, sizes, "lru");
    let mut both: [&mut dyn Levels; 2] = [&mut ours, &mut theirs];
    // Twice through all of it fills the flash; both leave some out while their writers are behind, so a few times more.
    for levels in &mut both {
        for pass in 0..40 {
            let before = levels.fetched();
            (0..blocks).for_each(|block| levels.get((block * 7919 + pass) % blocks));
            levels.settle();
            if levels.fetched() - before < blocks / 100 {
                break;
            }
        }
    }
    let count = if measured { 40_000 } else { 500 };
    let (mut ratios, mut each) = (Vec::new(), [Vec::new(), Vec::new()]);
    for round in 0..rounds {
        for turn in [round % 2, 1 - round % 2] {
            let references = trace::Trace::Uniform.references(blocks, count);
            let levels = &mut *both[turn];
            let fetched = levels.fetched();
            let before = cpu_seconds();
            references.iter().for_each(|block| levels.get(*block));
            let used = cpu_seconds() - before;
            let hits = count - (levels.fetched() - fetched);
            let name = ["ours", "foyer"][turn];
            assert!(
                hits * 100 >= count * 95,
                "{name}: {hits} of {count} were hits: this is no measurement of hits"
            );
            each[turn].push(used / hits as f64 * 1e6);
        }
        ratios.push(each[0][round] / each[1][round]);
    }
    println!("CPU for each hit: ours {:.1} µs, foyer {:.1} µs", median(&each[0]), median(&each[1]));
    goals.rounds("CPU for each hit, ratio to foyer's", &ratios, Aim::AtMost(CPU_PER_HIT_MAX));
}

/// Of this process and the kernel on its behalf: sums of what its threads ran, in nanoseconds of their schedules.
fn cpu_seconds() -> f64 {
    let ran = |task: std::io::Result<std::fs::DirEntry>| -> Option<f64> {
        let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse().ok()
    };
    let tasks = std::fs::read_dir("/proc/self/task").expect("/proc is mounted");
    tasks.filter_map(ran).sum::<f64>() / 1e9
}
