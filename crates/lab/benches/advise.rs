//! What `advise flash` predicts against what a flash cache does: hit ratio and speed-up, three workloads, several sizes.
//!
//! A slow disk is made of a loop device whose reads are capped; the flash cache lies in `--fast`, in memory unless it is given. On the disk below the
//! loop device it would share that disk with redo and dirty blocks, which no prediction knows. Each workload is played without a flash cache while its references are
//! kept, and from them and from both places, measured as the command measures them, each size is predicted. Then it is played with a real flash
//! cache of each size, on a database made anew. All do as much before the window as in it, and the prediction counts the second half of the
//! references, so both sides count the same part of the same work: order entry becomes another workload as its tables grow. Needs root.
//!
//! `cargo x bench advise --seconds 20 --iops 3000 --policy scan_resistant --fast /ssd`
#![forbid(unsafe_code)]

#[path = "common/flags.rs"]
mod flags;
#[path = "common/goals.rs"]
mod goals;

use engine::{AlterSystem, Instance, Session, Shutdown};
use flags::Flags;
use goals::{Aim, Goals};
use host::change::{Limits, Throttle, loop_device, make_file_system, mount, throttle};
use host::counters::Watch;
use host::workspace::Workspace;
use io::{Api, IoMode};
use lab::LabError;
use lab::advise::{Observed, Place, points};
use lab::bench::{Bench, Purpose};
use lab::compare::configuration::Configuration;
use lab::control::{Control, Silent};
use lab::database::drive::{self, Pace, Performance, Player, Terms};
use lab::database::order_entry::{self, Scale, Think};
use lab::database::random_read::{self, Rows, Shape};
use lab::database::{Database, Sizes};
use stats::mrc::References;
use stats::mrc::miniature::Policy;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use units::{Bytes, Nanos, Rng, Seed};

const BLOCK: Bytes = Bytes::kib(8);
const SESSIONS: u32 = 8;
const HIT_ERROR_MAX: f64 = 0.03;
const SPEED_ERROR_MAX: f64 = 0.15;
/// What explains a hit ratio.
const COUNTED: [&str; 8] = [
    "inserts",
    "eviction: aged out",
    "eviction: invalidated",
    "insert skip: DBWR overloaded",
    "insert skip: exists",
    "insert skip: modification",
    "insert skip: not current",
    "insert skip: not useful",
];
static NEVER: AtomicBool = AtomicBool::new(false);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// Every row as often as any other.
    Uniform,
    /// Few rows often, many rarely, and one session that reads all of them in turn, again and again.
    Skewed,
    OrderEntry,
}

/// How it went.
struct Played {
    /// Operations before the window.
    warm: u64,
    performance: Performance,
    references: References,
}

struct World {
    seconds: f64,
    /// Bytes of data, roughly.
    data: Bytes,
    cache: Bytes,
    policy: Policy,
    group: Throttle,
    slow: PathBuf,
    fast: PathBuf,
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    let measured = flags.measured();
    let name = format!("advise-bench-{}", std::process::id());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&name);
    let fast = Path::new(flags.text("fast").as_deref().unwrap_or("/dev/shm")).join(&name);
    let slow = folder.join("slow");
    for path in [&slow, &fast] {
        std::fs::create_dir_all(path).expect("a folder");
    }
    let purpose = Purpose {
        kind: "advise",
        case: None,
        command: "cargo x bench advise".into(),
        seed: Seed(1),
        budget_seconds: 600.0,
        record_path: Some(folder.join("bench.redoubt")),
        workspace_in: Some(folder.clone()),
        is_server_ours: false,
    };
    let mut bench = Bench::open(&folder, purpose).expect("a bench");
    let iops: u64 = flags.number("iops", 3_000);
    let group = slow_disk(&folder, &slow, iops, &mut bench);
    let world = World {
        seconds: flags.number("seconds", if measured { 20.0 } else { 0.5 }),
        data: Bytes::mib(if measured { 64 } else { 8 }),
        cache: Bytes::mib(if measured { 4 } else { 1 }),
        policy: flags.text("policy").map_or(Policy::default(), |text| text.parse().expect("a policy")),
        group,
        slow,
        fast,
    };
    println!(
        "data {}, buffer cache {}, {SESSIONS} sessions, reads of the slow disk capped at {iops}/s, policy {}, {} s before and in each \
         window",
        world.data,
        world.cache,
        world.policy.name(),
        world.seconds
    );
    let mut goals = Goals::default();
    let only = flags.text("only");
    for work in [Work::Uniform, Work::Skewed, Work::OrderEntry] {
        if only.as_deref().is_none_or(|only| format!("{work:?}").eq_ignore_ascii_case(only)) {
            world.compare(work, measured, &mut bench, &mut goals);
        }
    }
    assert_eq!(bench.finish(Ok(())).expect("a record").left, None, "everything undone");
    for path in [&world.fast, &folder] {
        std::fs::remove_dir_all(path).expect("remove the folder");
    }
    goals.conclude(measured)
}

/// A loop device with ext4, mounted; its reads are capped for whoever enters the group.
fn slow_disk(folder: &Path, mount_point: &Path, iops: u64, bench: &mut Bench) -> Throttle {
    let backing = folder.join("backing");
    std::fs::File::create(&backing).expect("create").set_len(Bytes::gib(2).0).expect("size");
    let journal = bench.journal();
    let device = loop_device(journal, &backing, true, None).expect("a loop device; needs root");
    make_file_system(journal, &device.path, "ext4", &[]).expect("a file system");
    mount(journal, &device.path, mount_point, "ext4", "").expect("mounted");
    let limits = Limits { read_iops: Some(iops), ..Limits::default() };
    throttle(journal, &device.device(), limits).expect("a throttle")
}

fn configuration() -> Configuration {
    let api = if Api::IoUring.available().is_ok() { Api::IoUring } else { Api::Libaio };
    Configuration { mode: IoMode::Setall, api }
}

impl World {
    fn compare(&self, work: Work, measured: bool, bench: &mut Bench, goals: &mut Goals) {
        let played = self.on_new_database(work, None, None, bench);
        let (alone, references) = (&played.performance, &played.references);
        let seconds = alone.trial.seconds();
        let observed = Observed::of_interval(&alone.interval, SESSIONS, seconds).expect("reads");
        self.group.enter_self().expect("enter the group");
        let mut silent = Silent;
        let mut control = Control { cancel: &NEVER, progress: &mut silent };
        let mut place = |path: &Path, name: &str| {
            let place = Place::Directory(path.to_owned());
            place.measure(name, BLOCK, SESSIONS, bench, &mut control).expect("a place that is measured")
        };
        let (slow, fast) = (place(&self.slow, "slow"), place(&self.fast, "fast"));
        self.group.leave_self().expect("leave the group");
        let around = observed.around(&slow, &fast);
        let all = if measured { [8, 16, 24, 32, 48].as_slice() } else { [2].as_slice() };
        let all: Vec<Bytes> = all.iter().map(|mib| Bytes::mib(*mib)).collect();
        let predicted = points(references, self.policy, BLOCK, &all, Some(&around));
        println!(
            "\n{work:?}: {:.0} operations/s without, {} reads, {} references kept, rate {:.2}, reads of {}; fast {:.0} µs, cpu {:.0} µs, \
             other {:.0} µs a read",
            alone.trial.rate(),
            references.reads,
            references.len(),
            references.rate,
            Bytes((references.blocks() * BLOCK.0 as f64) as u64),
            around.fast.latency(1) * 1e6,
            observed.cpu_seconds * 1e6,
            observed.other_seconds * 1e6,
        );
        println!("  {}", waits(alone));
        println!("  flash cache   hits: predicted          measured       speed-up: predicted      measured");
        for point in predicted {
            let said = point.speed_up.expect("both devices are known");
            let Played { performance: with, references, .. } =
                self.on_new_database(work, Some(point.bytes), Some(&played), bench);
            // What is predicted from this very run tells whether the model is wrong, or the workload another.
            let own = points(&references, self.policy, BLOCK, &[point.bytes], None);
            let hits = hit_ratio(&with);
            let speed_up = with.trial.rate() / alone.trial.rate();
            println!(
                "  {:>8}     {:5.1} % [{:4.1}–{:4.1}]     {:5.1} %           {:5.2} × [{:.2}–{:.2}]     {speed_up:5.2} ×",
                point.bytes.to_string(),
                point.hits.value * 100.0,
                point.hits.low * 100.0,
                point.hits.high * 100.0,
                hits * 100.0,
                said.value,
                said.low,
                said.high,
            );
            let own = own.first().map_or(0.0, |point| point.hits.value * 100.0);
            println!(
                "                  by its own references {own:.1} %; {}; per 100 reads: {}",
                waits(&with),
                counted(&with)
            );
            let what = format!("{work:?}, {}", point.bytes);
            let (hit_error, speed_error) = (point.hits.value - hits, said.value / speed_up - 1.0);
            let beside = |error: f64| format!("({:+.3})", error);
            goals.value(
                &format!("{what}: hit ratio, error"),
                hit_error.abs(),
                &beside(hit_error),
                Aim::AtMost(HIT_ERROR_MAX),
            );
            goals.value(
                &format!("{what}: speed-up, relative error"),
                speed_error.abs(),
                &beside(speed_error),
                Aim::AtMost(SPEED_ERROR_MAX),
            );
        }
    }

    /// Plays on a database that holds the same each time, with a flash cache of so many bytes or without.
    fn on_new_database(
        &self,
        work: Work,
        flash: Option<Bytes>,
        like: Option<&Played>,
        bench: &mut Bench,
    ) -> Played {
        let workspace = Arc::new(Workspace::create(&self.slow, bench.journal()).expect("a workspace"));
        let sizes = Sizes {
            block: BLOCK,
            cache: self.cache,
            data: Bytes(self.data.0 * 2),
            undo: Bytes::mib(64),
            redo: Bytes::mib(64),
            redo_groups: 3,
            flash: Bytes(0),
        };
        let database = Database::create(workspace.clone(), &sizes, &[], Seed(1)).expect("a database");
        let instance = database.open(&configuration()).expect("open");
        self.fill(work, &mut instance.session("fill").expect("a session"));
        instance.shutdown(Shutdown::Immediate).expect("shut down");
        let file = self.fast.join("flash.dat");
        let parameters = flash.map_or_else(Vec::new, |bytes| {
            vec![
                ("db_flash_cache_file".to_owned(), file.display().to_string()),
                ("db_flash_cache_size".to_owned(), bytes.0.to_string()),
                ("db_flash_cache_policy".to_owned(), self.policy.name().to_owned()),
            ]
        });
        let instance = database.open_with(&configuration(), &parameters).expect("open");
        let played = self.play(work, &instance, like);
        instance.shutdown(Shutdown::Immediate).expect("shut down");
        drop(database);
        bench.remove(&workspace).expect("remove the database");
        // It was made for this database, and another would refuse it.
        let _ = std::fs::remove_file(&file);
        played
    }

    fn fill(&self, work: Work, session: &mut Session) {
        let rows = self.data.0 / BLOCK.0;
        match work {
            Work::OrderEntry => {
                let scale = Scale::small(((self.data.0 >> 20) / 10).max(1) as i64);
                order_entry::prepare(session, scale, Seed(5), &NEVER).expect("a schema");
            }
            _ => random_read::prepare(session, rows, BLOCK, Seed(5), &NEVER).expect("a table"),
        }
        session.alter_system(&AlterSystem::Checkpoint).expect("checkpoint");
    }

    /// Fills caches, then measures. `like`: as many operations each time as there; otherwise for as long as the flags say.
    fn play(&self, work: Work, instance: &Instance, like: Option<&Played>) -> Played {
        let mut session = instance.session("prepare").expect("a session");
        let rows = (work != Work::OrderEntry).then(|| random_read::open(&mut session).expect("its rows"));
        session.alter_system(&AlterSystem::FlushBufferCache).expect("flush");
        session.alter_system(&AlterSystem::FlushFlashCache).expect("flush");
        drop(session);
        self.group.enter_self().expect("enter the group");
        instance.core.cache.references().start(3, 1 << 20);
        let part = |seconds: f64, seed: u64| self.part(work, instance, rows.as_ref(), seconds, Seed(seed));
        let (warm, performance) = match like {
            None => (part(self.seconds, 1).trial.ops, part(self.seconds, 0)),
            Some(alone) => {
                let (mut warm, mut rate) = (0, 0.0);
                for seed in 1.. {
                    let trial = part(self.seconds / 20.0, seed).trial;
                    (warm, rate) = (warm + trial.ops, trial.rate());
                    if warm >= alone.warm {
                        break;
                    }
                }
                (warm, part((alone.performance.trial.ops as f64 / rate).min(self.seconds), 0))
            }
        };
        let references = instance.core.cache.references().stop();
        self.group.leave_self().expect("leave the group");
        Played { warm, performance, references: references.expect("they were asked for") }
    }

    fn part(
        &self,
        work: Work,
        instance: &Instance,
        rows: Option<&Rows>,
        seconds: f64,
        seed: Seed,
    ) -> Performance {
        const NOTHING: &Watch = &Watch { disks: Vec::new(), flushes: Vec::new() };
        let terms = Terms {
            settle: Nanos(0),
            measure: Nanos::secs(seconds),
            slice: Nanos::millis(50),
            pace: Pace::Closed,
            seed,
            cancel: &NEVER,
            watch: NOTHING,
        };
        let performance = match (work, rows) {
            (Work::Uniform, Some(rows)) => {
                let shape = Shape { sessions: SESSIONS, batch: 1, span: 0..rows.count() };
                random_read::run(instance, rows, &shape, terms)
            }
            (Work::Skewed, Some(rows)) => drive::play(instance, skewed(instance, rows), 1, terms),
            _ => order_entry::run(instance, SESSIONS, Think::None, false, terms),
        };
        performance.expect("it is played")
    }
}

fn hit_ratio(played: &Performance) -> f64 {
    let hits = played.interval.grown("physical read flash cache hits");
    hits / (hits + played.interval.grown("physical reads cache")).max(1.0)
}

/// What a flash cache did, per 100 reads.
fn counted(played: &Performance) -> String {
    let grown = |name: &str| played.interval.grown(name);
    let reads = grown("physical read flash cache hits") + grown("physical reads cache");
    let of =
        |name: &&str| format!("{name} {:.1}", grown(&format!("flash cache {name}")) * 100.0 / reads.max(1.0));
    COUNTED.iter().map(of).collect::<Vec<_>>().join(", ")
}

/// Where sessions spent their time.
fn waits(played: &Performance) -> String {
    let time = played.interval.db_time();
    let great = time.waits.iter().filter(|(_, share)| *share >= 0.01);
    let words = great.map(|(event, share)| format!("{} {:.0} %", event.name(), share * 100.0));
    format!(
        "{:.2} of {SESSIONS} sessions active: CPU {:.0} %, {}",
        time.active,
        time.cpu * 100.0,
        words.collect::<Vec<_>>().join(", ")
    )
}

struct Reader {
    session: Session,
    rows: Rows,
    /// The next row of the one that reads them in turn.
    scan: Option<u64>,
}

fn skewed(instance: &Instance, rows: &Rows) -> Vec<Box<dyn Player>> {
    let reader = |n: u32| {
        let session = instance.session(&format!("skewed {n}")).expect("a session");
        Box::new(Reader { session, rows: rows.clone(), scan: (n == 0).then_some(0) }) as Box<dyn Player>
    };
    (0..SESSIONS).map(reader).collect()
}

impl Player for Reader {
    fn play(&mut self, rng: &mut Rng) -> Result<drive::Played, LabError> {
        let count = self.rows.count();
        let id = match &mut self.scan {
            Some(next) => {
                *next = (*next + 1) % count;
                *next
            }
            // Rank r is read about as often as 1 / r; ranks are mixed over the table.
            None => ((count as f64).powf(rng.unit()) as u64).min(count - 1) * 7_919 % count,
        };
        self.rows.read(&mut self.session, id)?;
        Ok(drive::Played { class: 0, bytes: BLOCK.0 })
    }
}
