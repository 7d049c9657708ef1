//! What the buffer cache costs: a hit takes 150 ns at most, two threads walk more than two million cached pages a second, a
//! direct path read is as fast as fio on the same file (0.95 of it at least), and how fast the database writers are.
//!
//! The hits are random over a cache of 128 MiB, latch and unlatch included; the walk reads one number of each page, in order of
//! address, as a COUNT(*) over settled pages does. fio and we take turns, and the one who begins changes each round.
//!
//! `cargo bench -p engine --bench cache -- --rounds 5 --mib 1024`; add `hits`, `misses`, `scan` or `writers` for a part.
#![forbid(unsafe_code)]

#[path = "../../lab/benches/common/flags.rs"]
mod flags;

use engine::cache::{BufferCache, CacheConfig, DirectRead, Site, TornPageProtection};
use engine::files::FileSet;
use engine::files::control::{FileRecord, FileState, TablespaceKind};
use engine::page::{self, PageKind};
use engine::statistics::Statistics;
use engine::{Background, Context, EngineError, Environment, Lsn, PageId, Result};
use flags::Flags;
use io::{Access, Api, IoMode, RealStorage};
use parking_lot::Mutex;
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use units::{Clock, Rng, Seed};
use waits::{Registry, SessionKind};

const BLOCK: usize = 8192;
const HIT_NS_MAX: f64 = 150.0;
const WALK_MIN: f64 = 2e6;
const FIO_RATIO_MIN: f64 = 0.95;

fn main() -> ExitCode {
    let flags = Flags::parse();
    let measured = flags.measured();
    let parts = ["hits", "misses", "scan", "writers"];
    let some = parts.iter().any(|part| flags.names(part));
    let wanted = |part: &str| !some || flags.names(part);
    let rounds = flags.number("rounds", if measured { 5 } else { 1 });
    let mib = flags.number("mib", if measured { 1024 } else { 8 });
    let folder = tempfile::tempdir().expect("a folder for the file");
    let path = folder.path().join("bench.dbf");
    let blocks = mib * (1 << 20) / BLOCK as u32;
    let mut goals = Goals { measured, missed: false };

    let frames = if measured { 16_384 } else { 512 };
    let off = TornPageProtection::Off;
    let base = CacheConfig {
        torn_page_protection: off,
        mode: IoMode::Setall,
        api: Api::IoUring,
        ..CacheConfig::new(BLOCK, frames)
    };
    let bench = Bench::make(&base, &path, blocks);
    let cached = (frames as u32 / 2).min(blocks - 1);
    bench.fill(blocks);
    if wanted("hits") {
        bench.hits(cached, rounds, &mut goals);
        bench.walk(cached, rounds, &mut goals);
    }
    if wanted("misses") {
        bench.misses(blocks, rounds);
    }
    if wanted("scan") {
        bench.scan(&path, blocks, rounds, &mut goals);
    }
    drop(bench);
    let ways = [
        (IoMode::None, Api::Threads),
        (IoMode::Directio, Api::Threads),
        (IoMode::Setall, Api::Libaio),
        (IoMode::Setall, Api::IoUring),
    ];
    for (mode, api) in ways.into_iter().filter(|_| wanted("writers")) {
        for writes_max in [64, 256] {
            let config = CacheConfig { mode, api, writes_max, ..base.clone() };
            Bench::open(&config, &path, blocks).writers(blocks, rounds);
        }
    }
    if goals.missed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

struct Goals {
    measured: bool,
    missed: bool,
}

impl Goals {
    fn show(&mut self, name: &str, values: &mut [f64], unit: &str, met: impl Fn(f64) -> bool, goal: &str) {
        values.sort_by(f64::total_cmp);
        let (median, low, high) = (values[values.len() / 2], values[0], values[values.len() - 1]);
        let verdict = match (self.measured && !goal.is_empty(), met(median)) {
            (false, _) => String::new(),
            (true, true) => format!("  goal {goal}: met"),
            (true, false) => format!("  goal {goal}: MISSED"),
        };
        self.missed |= verdict.ends_with("MISSED");
        println!("{name:<44} {median:>10.2} {unit}  (min {low:.2}, max {high:.2}){verdict}");
    }
}

/// An instance of nothing but files and a cache.
struct Bench {
    environment: Environment,
    files: FileSet,
    cache: BufferCache,
    registry: Arc<Registry>,
    statistics: Arc<Statistics>,
    tail: AtomicU64,
    crashed: Mutex<Option<String>>,
    writer: Mutex<Context>,
}

impl Bench {
    fn make(config: &CacheConfig, path: &Path, blocks: u32) -> Self {
        let bench = Self::over(config);
        bench
            .files
            .create(&record(path, blocks), TablespaceKind::Permanent, 1)
            .expect("the file can be made");
        bench
    }

    fn open(config: &CacheConfig, path: &Path, blocks: u32) -> Self {
        let bench = Self::over(config);
        bench.files.open(&record(path, blocks), TablespaceKind::Permanent, 1).expect("the file is ours");
        println!("{} {}, {} writes in flight", config.mode, config.api, config.writes_max);
        bench
    }

    fn over(config: &CacheConfig) -> Self {
        let storage = Arc::new(RealStorage);
        let environment = Environment {
            storage: storage.clone(),
            clock: Clock::Real,
            background: Background::Inline,
            seed: Seed(1),
        };
        let registry = Registry::new(Clock::Real, 16);
        let statistics = Statistics::new();
        Self {
            files: FileSet::new(storage.clone(), Access::for_mode(config.mode, true), BLOCK as u32),
            cache: BufferCache::with(&*storage, config).expect("memory for the cache"),
            writer: Mutex::new(context(&registry, &statistics)),
            environment,
            registry,
            statistics,
            tail: AtomicU64::new(1_000),
            crashed: Mutex::default(),
        }
    }

    fn context(&self) -> Context {
        context(&self.registry, &self.statistics)
    }

    fn change(&self, context: &Context, block: u32) {
        let id = PageId { file: 1, block };
        let mut page = self.cache.write_latch(self, context, id).expect("the page can be read");
        if page::page_id(page.bytes()) != id {
            page::format(page.bytes_mut(), id, PageKind::Heap, 1);
        }
        page.mark_dirty(self.redo_tail());
        page.set_lsn(Lsn(self.tail.fetch_add(100, Ordering::Relaxed) + 100));
    }

    fn fill(&self, blocks: u32) {
        let context = self.context();
        for block in 1..blocks {
            self.change(&context, block);
        }
        self.cache.flush(self, &context).expect("everything can be written");
    }

    fn hits(&self, pages: u32, rounds: u32, goals: &mut Goals) {
        let context = self.context();
        let ids: Vec<PageId> = (1..=pages).map(|block| PageId { file: 1, block }).collect();
        ids.iter().for_each(|id| drop(self.cache.read(self, &context, *id).expect("the page can be read")));
        let count = if goals.measured { 2_000_000 } else { 2_000 };
        let (mut shared, mut exclusive) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            let mut rng = Rng::new(Seed(u64::from(round)));
            exclusive.push(nanos_each(count, || {
                let id = ids[rng.below(ids.len() as u64) as usize];
                black_box(self.cache.write_latch(self, &context, id).expect("cached").bytes()[0]);
            }));
            shared.push(nanos_each(count, || {
                let id = ids[rng.below(ids.len() as u64) as usize];
                black_box(self.cache.read(self, &context, id).expect("cached")[0]);
            }));
        }
        let met = |ns| ns <= HIT_NS_MAX;
        goals.show("random hit, shared", &mut shared, "ns", met, "<= 150 ns");
        goals.show("random hit, exclusive", &mut exclusive, "ns", met, "<= 150 ns");
    }

    fn walk(&self, pages: u32, rounds: u32, goals: &mut Goals) {
        let times = if goals.measured { 100 } else { 1 };
        for threads in [1, 2] {
            let mut rates: Vec<f64> = (0..rounds)
                .map(|_| {
                    let begun = units::clock::now();
                    std::thread::scope(|scope| {
                        for _ in 0..threads {
                            scope.spawn(|| self.walk_through(pages, times));
                        }
                    });
                    let seconds = (units::clock::now() - begun).0 as f64 / 1e9;
                    f64::from(pages * times * threads) / seconds
                })
                .collect();
            let name = format!("walk over cached pages, {threads} threads");
            let goal = if threads == 2 { "> 2 M/s" } else { "" };
            goals.show(&name, &mut rates, "pages/s", |rate| rate > WALK_MIN, goal);
        }
    }

    fn walk_through(&self, pages: u32, times: u32) {
        let context = self.context();
        let mut sum = 0;
        for _ in 0..times {
            for block in 1..=pages {
                let page = self.cache.read(self, &context, PageId { file: 1, block }).expect("cached");
                sum += page::get_u64(&page, 24);
            }
        }
        black_box(sum);
    }

    /// Single random reads, and the same pages 32 at a time.
    fn misses(&self, blocks: u32, rounds: u32) {
        let context = self.context();
        let mut goals = Goals { measured: false, missed: false };
        let count = (blocks / 8).min(4_000) as usize;
        let (mut single, mut parallel) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            let mut rng = Rng::new(Seed(u64::from(round)));
            let mut draw = || {
                let mut all: Vec<u32> = (1..blocks).step_by(2).collect();
                rng.shuffle(&mut all);
                all.into_iter().take(count).map(|block| PageId { file: 1, block }).collect::<Vec<_>>()
            };
            self.cache.flush(self, &context).expect("everything can be written");
            single.push(rate(count, || {
                draw().iter().for_each(|id| drop(self.cache.read(self, &context, *id).expect("readable")));
            }));
            self.cache.flush(self, &context).expect("everything can be written");
            parallel.push(rate(count, || {
                for ids in draw().chunks(32) {
                    self.cache.prefetch(self, &context, ids).expect("readable");
                }
            }));
        }
        goals.show("miss, one at a time", &mut single, "pages/s", |_| true, "");
        goals.show("miss, 32 at a time", &mut parallel, "pages/s", |_| true, "");
    }

    fn scan(&self, path: &Path, blocks: u32, rounds: u32, goals: &mut Goals) {
        let context = self.context();
        let bytes = f64::from(blocks - 1) * BLOCK as f64;
        let ours = || {
            let run = (PageId { file: 1, block: 1 }, blocks - 1);
            let begun = units::clock::now();
            let mut scan = DirectRead::open(self, &context, vec![run]).expect("a queue");
            let mut sum = 0;
            let mut each = |_: PageId, page: &[u8]| {
                sum += page::get_u64(page, 24);
                Ok(())
            };
            while scan.next(&context, &mut each).expect("readable") {}
            black_box(sum);
            bytes / (units::clock::now() - begun).0 as f64 * 1e3
        };
        let fio = || if goals.measured { fio(path) } else { 1.0 };
        let mut sides = [Vec::new(), Vec::new()];
        for round in 0..rounds {
            if round % 2 == 0 {
                sides[0].push(ours());
                sides[1].push(fio());
            } else {
                sides[1].push(fio());
                sides[0].push(ours());
            }
        }
        let mut ratios: Vec<f64> = sides[0].iter().zip(&sides[1]).map(|(ours, fio)| ours / fio).collect();
        let [ours, fio] = &mut sides;
        goals.show("direct path read", ours, "MB/s", |_| true, "");
        goals.show("fio, 4 x 1 MiB in flight", fio, "MB/s", |_| true, "");
        goals.show("ours / fio", &mut ratios, "", |ratio| ratio >= FIO_RATIO_MIN, ">= 0.95");
    }

    /// Dirty pages all over the file, written by one database writer.
    fn writers(&self, blocks: u32, rounds: u32) {
        let context = self.context();
        let mut goals = Goals { measured: false, missed: false };
        let count = (blocks / 8).min(4_000);
        let (mut random, mut sequential) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            for (rates, step) in [(&mut random, 8), (&mut sequential, 1)] {
                for n in 0..count {
                    self.change(&context, 1 + n * step % (blocks - 1));
                }
                rates.push(rate(count as usize, || {
                    self.cache.write_dirty(self, &context, None).expect("everything can be written");
                }));
            }
        }
        goals.show("  database writer, scattered pages", &mut random, "pages/s", |_| true, "");
        goals.show("  database writer, neighbours", &mut sequential, "pages/s", |_| true, "");
    }
}

/// MB/s of fio on the same file.
fn fio(path: &Path) -> f64 {
    let output = Command::new("fio")
        .args(["--name=scan", "--rw=read", "--bs=1m", "--direct=1", "--ioengine=io_uring", "--iodepth=4"])
        .args(["--output-format=terse", "--terse-version=3", "--readonly"])
        .arg(format!("--filename={}", path.display()))
        .output()
        .expect("fio runs: apt install fio");
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| line.starts_with("3;")).unwrap_or_else(|| panic!("fio said {text}"));
    // Field 7 is the read bandwidth in KiB/s.
    let kib: f64 = line.split(';').nth(6).and_then(|field| field.parse().ok()).expect("a bandwidth");
    kib * 1024.0 / 1e6
}

fn nanos_each(count: u32, mut act: impl FnMut()) -> f64 {
    let begun = units::clock::now();
    (0..count).for_each(|_| act());
    (units::clock::now() - begun).0 as f64 / f64::from(count)
}

fn rate(count: usize, act: impl FnOnce()) -> f64 {
    let begun = units::clock::now();
    act();
    count as f64 * 1e9 / (units::clock::now() - begun).0 as f64
}

fn context(registry: &Arc<Registry>, statistics: &Arc<Statistics>) -> Context {
    let slot = registry.register(SessionKind::Foreground, "bench");
    Context { session: slot.sid(), slot, counters: statistics.counters() }
}

fn record(path: &Path, blocks: u32) -> FileRecord {
    FileRecord {
        number: 1,
        tablespace: 0,
        temporary: false,
        state: FileState::Online,
        blocks,
        next_blocks: 0,
        max_blocks: blocks,
        created: Lsn(0),
        path: path.to_path_buf(),
    }
}

impl Site for Bench {
    fn environment(&self) -> &Environment {
        &self.environment
    }
    fn cache(&self) -> &BufferCache {
        &self.cache
    }
    fn files(&self) -> &FileSet {
        &self.files
    }
    fn multiblock_read_count(&self) -> u32 {
        128
    }
    fn direct_read_depth(&self) -> u32 {
        4
    }
    fn checkpoint_target_bytes(&self) -> u64 {
        1 << 30
    }
    fn redo_tail(&self) -> Lsn {
        Lsn(self.tail.load(Ordering::Relaxed))
    }
    fn redo_flush(&self, _: &Context, _: Lsn) -> Result<()> {
        Ok(())
    }
    fn checkpoint_wanted(&self) -> Option<Lsn> {
        None
    }
    fn checkpoint_reached(&self, _: &Context, _: Lsn) -> Result<()> {
        Ok(())
    }
    fn post_writers(&self) {}
    fn post_flash_writer(&self) {}
    fn post_checkpointer(&self) -> bool {
        false
    }
    fn step_writers(&self) -> Result<bool> {
        let Some(context) = self.writer.try_lock() else { return Ok(false) };
        Ok(self.cache.writer_step(self, &context, 0)?.0)
    }
    fn alert(&self, line: &str) {
        println!("alert: {line}");
    }
    fn crash(&self, why: &str) {
        self.crashed.lock().get_or_insert_with(|| why.to_owned());
    }
    fn alive(&self) -> Result<()> {
        self.crashed.lock().clone().map_or(Ok(()), |why| Err(EngineError::Crashed(why)))
    }
}
