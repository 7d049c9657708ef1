//! What the flash cache costs: a hit is a read of the device and 3 µs at most, and a miss 5 % at most where nothing hits; keeping
//! references for `advise flash` costs a miss 1 % at most.
//!
//! Hits and plain reads of the same file take turns, one by one. Misses: every block of a table once, in random order, above an empty
//! flash cache that takes what is evicted, and on a database without one; they take turns every few blocks, so that what else happens
//! on the machine meets both. Data and flash cache on one device, unless `--flash` names another (memory such as `/dev/shm` will do), is
//! the hard case: the writes of the flash cache hold up the reads of the data file.
//!
//! `cargo x bench flash --mib 256 --rounds 5 --mode setall --directory /data --flash /ssd`
#![forbid(unsafe_code)]

#[path = "../../lab/benches/common/flags.rs"]
mod flags;

use engine::{
    Background, Column, ColumnKind, Context, Environment, Instance, InstanceConfig, PageId, Shutdown,
    TableDef, Value,
};
use flags::Flags;
use io::sim::Disk;
use io::{Access, Buffer, RealStorage, Storage};
use stats::mrc::{Reference, Sampler};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use units::{Nanos, Rng, Seed, clock};
use waits::SessionKind;

const BLOCK: usize = 8192;
const HIT_OVER_READ_NS_MAX: f64 = 3_000.0;
const MISS_RATIO_MAX: f64 = 1.05;
const REFERENCES_SHARE_MAX: f64 = 0.01;
/// Misses in a row on one side.
const TURN: usize = 32;
/// As `redoubt run --references` keeps.
const REFERENCES_MAX: usize = 1 << 20;

struct Plan {
    measured: bool,
    mib: u64,
    rounds: u64,
    mode: String,
    directory: PathBuf,
    flash: PathBuf,
}

fn plan() -> Plan {
    let flags = Flags::parse();
    let measured = flags.measured();
    let directory = flags.text("directory").unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into());
    let directory = Path::new(&directory).join("bench-flash");
    Plan {
        measured,
        mib: flags.number("mib", if measured { 256 } else { 4 }),
        rounds: flags.number("rounds", if measured { 5 } else { 1 }),
        mode: flags.text("mode").unwrap_or_else(|| if measured { "setall" } else { "none" }.into()),
        flash: flags.text("flash").map_or_else(|| directory.clone(), PathBuf::from),
        directory,
    }
}

/// A database with one table that is sixteen times its buffer cache.
struct Database {
    instance: Instance,
    context: Context,
    pages: Vec<PageId>,
}

impl Database {
    fn make(plan: &Plan, name: &str, flash: Option<&Path>) -> Self {
        let environment = Environment {
            storage: Arc::new(RealStorage),
            clock: io::clock(),
            background: Background::Threads,
            seed: Seed(1),
        };
        let cache = (plan.mib << 20) / 16;
        let mut config = InstanceConfig::new(plan.directory.join(name))
            .with("db_cache_size", &cache.max(1 << 19).to_string())
            .with("filesystemio_options", &plan.mode);
        if let Some(path) = flash {
            let bytes = (plan.mib << 20) * 5 / 4;
            config = config.with("db_flash_cache_file", &path.display().to_string());
            config = config.with("db_flash_cache_size", &bytes.to_string());
        }
        config.data_bytes = (plan.mib + 16) << 20;
        let instance = Instance::create(environment, config).unwrap();
        let pages = fill(&instance, plan.mib << 20);
        let context = instance.core.context(SessionKind::Foreground, "bench").unwrap();
        Self { instance, context, pages }
    }

    /// Time of a read through the cache.
    fn read(&self, id: PageId) -> f64 {
        let core = &*self.instance.core;
        let since = clock::now();
        drop(core.cache.read(core, &self.context, id).unwrap());
        (clock::now() - since).0 as f64
    }

    fn empty(&self) {
        let core = &*self.instance.core;
        core.cache.flush(core, &self.context).unwrap();
        if let Some(flash) = core.cache.flash() {
            flash.flush();
        }
    }

    /// Its blocks, each once.
    fn shuffled(&self, seed: u64) -> Vec<PageId> {
        let mut pages = self.pages.clone();
        Rng::new(Seed(seed)).shuffle(&mut pages);
        pages
    }

    /// Reads some; nanoseconds for each.
    fn read_all(&self, pages: &[PageId]) -> f64 {
        let since = clock::now();
        for id in pages {
            self.read(*id);
        }
        (clock::now() - since).0 as f64 / pages.len() as f64
    }

    /// Nanoseconds for each block, when every block is read once.
    fn pass(&self, seed: u64) -> f64 {
        self.read_all(&self.shuffled(seed))
    }
}

fn fill(instance: &Instance, bytes: u64) -> Vec<PageId> {
    let mut session = instance.session("fill").unwrap();
    let columns = vec![Column::new("id", ColumnKind::Integer), Column::new("text", ColumnKind::Text)];
    let table = session.create_table(&TableDef::new("t", columns)).unwrap();
    let rows = (bytes / 2_000) as i64;
    let row = |n: i64| vec![Value::Integer(n), Value::Text("x".repeat(1_900))];
    for from in (0..rows).step_by(1_000) {
        let some: Vec<_> = (from..rows.min(from + 1_000)).map(row).collect();
        session.insert_many(&table, &mut some.into_iter()).unwrap();
        session.commit().unwrap();
    }
    let mut scan = session.scan(&table).unwrap();
    let mut pages = Vec::new();
    while let Some((at, _)) = scan.next(&mut session).unwrap() {
        pages.push(at.page);
    }
    pages.dedup();
    pages
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A hit beside a plain read of the same file.
fn hits(plan: &Plan, database: &Database, path: &Path) -> bool {
    let (core, mut rng) = (&database.instance.core, Rng::new(Seed(9)));
    let flash = core.cache.flash().unwrap();
    for seed in 0..if plan.measured { 12 } else { 2 } {
        database.pass(100 + seed);
        clock::sleep(Nanos::millis(200));
    }
    let share = flash.states().0 as f64 / database.pages.len() as f64;
    let access = Access { read: true, write: false, direct: plan.mode != "none", dsync: false };
    let file = RealStorage.open(path, access).unwrap();
    // As many as the buffer cache has: one buffer would stay in the processor's caches, and the memory of a frame does not.
    let mut buffers = Buffer::many(core.cache.frame_count(), BLOCK).unwrap();
    let (mut through, mut plain) = (Vec::new(), Vec::new());
    while through.len() < if plan.measured { 20_000 } else { 100 } {
        let id = database.pages[rng.below(database.pages.len() as u64) as usize];
        if core.cache.is_cached(id) {
            continue;
        }
        through.push(database.read(id));
        let offset = (file.bytes() / 2 / BLOCK as u64 + rng.below(256)) * BLOCK as u64;
        let at = plain.len() % buffers.len();
        let since = clock::now();
        assert!(file.read_at(&mut buffers[at], offset).is_full());
        plain.push((clock::now() - since).0 as f64);
    }
    let (hit, read) = (median(&mut through), median(&mut plain));
    let met = hit - read <= HIT_OVER_READ_NS_MAX;
    println!("blocks of the table in the flash cache       {:>10.1} %", share * 100.0);
    println!("a hit, median                                {hit:>10.0} ns");
    println!("a plain read of the device, median           {read:>10.0} ns");
    println!(
        "difference                                   {:>10.0} ns{}",
        hit - read,
        verdict(plan, met, "<= 3000 ns")
    );
    met
}

fn misses(plan: &Plan, with: &Database, without: &Database) -> bool {
    let both = [without, with];
    let mut ratios = Vec::new();
    for round in 0..plan.rounds {
        both.iter().for_each(|database| database.empty());
        let pages = both.map(|database| database.shuffled(round));
        let mut times = [Vec::new(), Vec::new()];
        for (turn, from) in (0..pages[0].len().min(pages[1].len())).step_by(TURN).enumerate() {
            for side in [turn % 2, 1 - turn % 2] {
                let some = &pages[side][from..];
                times[side].push(both[side].read_all(&some[..some.len().min(TURN)]));
            }
        }
        let mut turns: Vec<f64> =
            times[1].iter().zip(&times[0]).map(|(with, without)| with / without).collect();
        let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
        println!(
            "a miss without, with flash cache, mean       {:>10.0} ns {:>10.0} ns; ratio of a turn, median {:.3}",
            mean(&times[0]),
            mean(&times[1]),
            median(&mut turns)
        );
        ratios.push(mean(&times[1]) / mean(&times[0]));
    }
    let ratio = median(&mut ratios);
    let met = ratio <= MISS_RATIO_MAX;
    println!("ratio, median                                {ratio:>10.3}{}", verdict(plan, met, "<= 1.05"));
    met
}

/// Misses with and without references, in turns; and what a reference alone costs, which noise does not hide.
fn references(plan: &Plan, database: &Database) -> bool {
    let log = database.instance.core.cache.references();
    let (mut ratios, mut alone) = (Vec::new(), Vec::new());
    for round in 0..plan.rounds {
        let mut times = [0.0; 2];
        for turn in [round % 2, 1 - round % 2] {
            database.empty();
            if turn == 1 {
                log.start(round, REFERENCES_MAX);
            }
            times[turn as usize] = database.pass(50 + round);
            log.stop();
        }
        println!("a miss without, with references kept         {:>10.0} ns {:>10.0} ns", times[0], times[1]);
        ratios.push(times[1] / times[0]);
        alone.push(times[0]);
    }
    let count = if plan.measured { 4_000_000 } else { 10_000 };
    let (mut sampler, mut rng) = (Sampler::new(1, REFERENCES_MAX), Rng::new(Seed(2)));
    let since = clock::now();
    for _ in 0..count {
        let block = rng.below(1 << 22);
        sampler.note(Reference { block, event: stats::mrc::Event::Read });
    }
    let each = (clock::now() - since).0 as f64 / f64::from(count);
    assert!(!sampler.finish().is_empty());
    // A miss is a read, and the eviction that makes room for it.
    let share = 2.0 * each / median(&mut alone);
    println!("ratio, median                                {:>10.3}", median(&mut ratios));
    println!("a reference alone                            {each:>10.0} ns");
    let met = share <= REFERENCES_SHARE_MAX;
    println!(
        "two references of a miss                     {:>10.2} %{}",
        share * 100.0,
        verdict(plan, met, "<= 1 %")
    );
    met
}

fn verdict(plan: &Plan, met: bool, goal: &str) -> String {
    match (plan.measured, met) {
        (false, _) => String::new(),
        (true, true) => format!("  goal {goal}: met"),
        (true, false) => format!("  goal {goal}: MISSED"),
    }
}

fn main() -> ExitCode {
    let plan = plan();
    let _ = std::fs::remove_dir_all(&plan.directory);
    let path = plan.flash.join("flash.dat");
    let with = Database::make(&plan, "with", Some(&path));
    let without = Database::make(&plan, "without", None);
    let met = [misses(&plan, &with, &without), hits(&plan, &with, &path), references(&plan, &without)];
    for database in [with, without] {
        database.instance.shutdown(Shutdown::Abort).unwrap();
    }
    let _ = std::fs::remove_file(&path);
    let _ = std::fs::remove_dir_all(&plan.directory);
    if plan.measured && met.contains(&false) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
