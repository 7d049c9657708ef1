//! A mixed workload predicted from its measured parts, against what it then does: the arithmetic of the verdict for a user's mix.
//!
//! Parts: gets that the cache holds, cold reads, commits, by 1, 2, 4 and 8 sessions, with the CPU time of one. The prediction is the closed
//! network of docs/method.md, 8.2: a CPU, reads and a log that serve at the measured rates. Three mixes to which nothing was fitted are
//! then played; their miss ratio is what the database counted, as a user's would be.
//!
//! `cargo x bench mix --rounds 3 --seconds 4`
#![forbid(unsafe_code)]

mod common;

use common::flags::Flags;
use common::goals::{Aim, Goals, median};
use engine::{AlterSystem, Column, ColumnKind, Instance, Session, Shutdown, Table, TableDef, Value};
use host::journal::Journal;
use host::workspace::Workspace;
use io::{Api, IoMode};
use lab::compare::configuration::Configuration;
use lab::database::random_read::{self, Rows};
use lab::database::{Database, Sizes, sessions};
use stats::mix::{Station, network_throughput};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use units::{Bytes, Nanos, Rng, Seed, clock};

const BLOCK: Bytes = Bytes::kib(8);
const SETTLE: Nanos = Nanos::millis(300);
const SESSIONS: u32 = 8;
/// Sessions by which cold reads and commits are measured.
const DEPTHS: [u32; 4] = [1, 2, 4, SESSIONS];
/// A prediction may miss by this share.
const ERROR_MAX: f64 = 0.10;
static NEVER: AtomicBool = AtomicBool::new(false);

/// What a transaction does: gets, of which a share goes anywhere in the table and the rest to a part that the cache holds; commits.
struct Mix {
    name: &'static str,
    gets: u32,
    anywhere: f64,
    commits: u32,
}

const fn mix(name: &'static str, gets: u32, anywhere: f64, commits: u32) -> Mix {
    Mix { name, gets, anywhere, commits }
}

const HOT: Mix = mix("gets that the cache holds", 50, 0.0, 0);
const COLD: Mix = mix("cold reads", 1, 1.0, 0);
const COMMIT: Mix = mix("commits", 0, 0.0, 1);
const MIXES: [Mix; 3] = [
    mix("10 gets, half of them anywhere, 1 commit", 10, 0.5, 1),
    mix("40 gets, a tenth anywhere, 1 commit", 40, 0.1, 1),
    mix("100 gets, 2 of a hundred anywhere, 2 commits", 100, 0.02, 2),
];

/// What was done, per transaction.
#[derive(Clone, Copy)]
struct Done {
    sessions: u32,
    per_second: f64,
    cpu_seconds: f64,
    misses: f64,
}

/// What the parts cost: CPU time of each, seconds, and the rates of the two stations against how many are there.
struct Parts {
    cpu_hit: f64,
    cpu_miss: f64,
    cpu_commit: f64,
    reads: Vec<(f64, f64)>,
    log: Vec<(f64, f64)>,
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    let measured = flags.measured();
    let rounds = flags.number("rounds", if measured { 3.0 } else { 1.0 }) as usize;
    let seconds = flags.number("seconds", if measured { 4.0 } else { 0.1 });
    let bench = Bench::new(seconds, if measured { 1 } else { 16 });
    let mut errors = vec![Vec::new(); MIXES.len()];
    for round in 0..rounds {
        let parts = bench.parts(round as u64);
        for m in [
            mix("D 100 hot, commit", 100, 0.0, 1),
            mix("D 400 hot, commit", 400, 0.0, 1),
            mix("D 1 cold, commit", 1, 1.0, 1),
            mix("D 4 cold, commit", 4, 1.0, 1),
            mix("D 1 hot 10 commits", 1, 0.0, 10),
            mix("D 0.1 cold commit", 1, 0.1, 1),
        ] {
            bench.play(SESSIONS, &m, Seed(7));
        }
        bench.play(SESSIONS, &COMMIT, Seed(8));
        for (mix, errors) in MIXES.iter().zip(&mut errors) {
            let done = bench.play(SESSIONS, mix, Seed(round as u64));
            let predicted = parts.predict(mix, done.misses);
            println!(
                "  {:<46} measured {:>8.0}/s, predicted {predicted:>8.0}/s, {:.2} misses",
                mix.name, done.per_second, done.misses
            );
            errors.push((predicted / done.per_second.max(1e-9) - 1.0).abs());
        }
    }
    bench.end();
    let mut goals = Goals::default();
    for (mix, errors) in MIXES.iter().zip(&errors) {
        goals.rounds(&format!("error of the prediction: {}", mix.name), errors, Aim::AtMost(ERROR_MAX));
    }
    let all: Vec<f64> = errors.iter().map(|errors| median(errors)).collect();
    goals.rounds("error of the prediction: the middle one of the three", &all, Aim::Told);
    goals.conclude(measured)
}

struct Bench {
    folder: PathBuf,
    journal: Journal,
    database: Database,
    instance: Instance,
    rows: Rows,
    /// Rows of the part that the cache holds.
    hot: u64,
    seconds: f64,
}

impl Bench {
    fn new(seconds: f64, scale: u64) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("mix-bench-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut journal = Journal::open_in(&folder.join("state"), "bench").expect("a journal");
        let workspace = Arc::new(Workspace::create(&folder, &mut journal).expect("a workspace"));
        let cache = Bytes::mib(32);
        let sizes = Sizes {
            block: BLOCK,
            cache,
            data: Bytes((768 << 20) / scale),
            undo: Bytes::mib(64),
            redo: Bytes::mib(128 / scale.min(4)),
            redo_groups: 3,
        };
        let database = Database::create(workspace, &sizes, &[], Seed(1)).expect("a database");
        let api = if Api::IoUring.available().is_ok() { Api::IoUring } else { Api::Libaio };
        let configuration = Configuration { mode: IoMode::Setall, api };
        let instance = database.open(&configuration).expect("open the database");
        let mut session = instance.session("mix").expect("a session");
        let blocks = (512 << 20) / scale / BLOCK.0;
        random_read::prepare(&mut session, blocks, BLOCK, Seed(9), &NEVER).expect("a table");
        session.alter_system(&AlterSystem::Checkpoint).expect("checkpoint");
        let rows = random_read::open(&mut session).expect("its rows");
        drop(session);
        let hot = (cache.0 / 4 / BLOCK.0).min(rows.count() / 2);
        Self { folder, journal, database, instance, rows, hot, seconds }
    }

    fn end(self) {
        self.instance.shutdown(Shutdown::Immediate).expect("shut down");
        drop(self.database);
        self.journal.undo_all().expect("remove the workspace");
        std::fs::remove_dir_all(&self.folder).expect("remove the folder");
    }

    /// Every part, by as many sessions as it takes to know its curve.
    fn parts(&self, round: u64) -> Parts {
        let seed = Seed(1_000 + round);
        let hot = self.play(SESSIONS, &HOT, seed);
        let cpu_hit = hot.cpu_seconds / f64::from(HOT.gets);
        let cold = DEPTHS.map(|n| self.play(n, &COLD, seed));
        let commits = DEPTHS.map(|n| self.play(n, &COMMIT, seed));
        let cpu_miss = |done: &Done| {
            let misses = done.misses.max(1e-9);
            (done.cpu_seconds - (1.0 - misses).max(0.0) * cpu_hit) / misses
        };
        let all = cold[DEPTHS.len() - 1];
        Parts {
            cpu_hit,
            cpu_miss: cpu_miss(&all),
            cpu_commit: commits[DEPTHS.len() - 1].cpu_seconds,
            reads: cold.iter().map(|done| present(done, done.misses)).collect(),
            log: commits.iter().map(|done| present(done, 1.0)).collect(),
        }
    }

    /// Plays `mix` by `sessions` sessions until its window is over.
    fn play(&self, sessions_count: u32, mix: &Mix, seed: Seed) -> Done {
        let mut admin = self.instance.session("mix").expect("a session");
        let all = sessions(&self.instance, "mix", sessions_count).expect("sessions");
        let players: Vec<(Session, Arc<Table>)> = all
            .into_iter()
            .enumerate()
            .map(|(n, session)| (session, admin.create_table(&definition(n)).expect("a table")))
            .collect();
        let (stop, count) = (AtomicBool::new(false), AtomicU64::new(0));
        let done = std::thread::scope(|scope| {
            for (n, (mut session, table)) in players.into_iter().enumerate() {
                let mut rng = Rng::new(seed.part(n as u64));
                let (stop, count) = (&stop, &count);
                let (rows, hot) = (self.rows.clone(), self.hot);
                scope.spawn(move || {
                    let mut next = 0;
                    while !stop.load(Ordering::Relaxed) {
                        transaction(&mut session, (&rows, hot), &table, mix, &mut rng, &mut next);
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            clock::sleep_until(clock::now() + SETTLE);
            let moment = lab::database::interval::Moment::of(&self.instance, &[], &Default::default());
            let st0 = self.instance.sysstat();
            let before = self.seen(&count);
            clock::sleep_until(clock::now() + Nanos::secs(self.seconds));
            let after = self.seen(&count);
            let told2: Vec<(String, u64)> = self
                .instance
                .sysstat()
                .into_iter()
                .zip(st0)
                .filter(|(a, b)| a.value != b.value)
                .map(|(a, b)| (a.name.to_string(), a.value - b.value))
                .collect();
            let told = moment.until_now(&self.instance, &[], &Default::default()).db_time();
            stop.store(true, Ordering::Relaxed);
            let transactions = (after.count - before.count).max(1) as f64;
            let waits: Vec<String> = told
                .waits
                .iter()
                .take(5)
                .map(|(e, share)| {
                    format!(
                        "{} {:.1}us",
                        e.name(),
                        share * told.active * (after.at - before.at).as_secs() * 1e6 / transactions
                    )
                })
                .collect();
            let stats: Vec<String> = told2
                .iter()
                .map(|(n, v)| format!("{n} {:.0}", *v as f64 / (after.at - before.at).as_secs()))
                .collect();
            println!("      {}", stats.join(", "));
            println!(
                "    [{} x{sessions_count}] {:.0}/s cpu {:.1}us other {:.1}us of {:.1}us: {}",
                mix.name,
                transactions / (after.at - before.at).as_secs(),
                (after.cpu_seconds - before.cpu_seconds) * 1e6 / transactions,
                told.cpu * told.active * (after.at - before.at).as_secs() * 1e6 / transactions,
                told.active * (after.at - before.at).as_secs() * 1e6 / transactions,
                waits.join(", ")
            );
            Done {
                sessions: sessions_count,
                per_second: transactions / (after.at - before.at).as_secs(),
                cpu_seconds: (after.cpu_seconds - before.cpu_seconds) / transactions,
                misses: (after.reads - before.reads) as f64 / transactions,
            }
        });
        for n in 0..sessions_count as usize {
            admin.drop_table(&definition(n).name).expect("drop");
        }
        done
    }

    fn seen(&self, count: &AtomicU64) -> Seen {
        let reads = self.instance.sysstat().into_iter().find(|row| row.name == "physical reads");
        Seen {
            at: clock::now(),
            count: count.load(Ordering::Relaxed),
            reads: reads.map_or(0, |row| row.value),
            cpu_seconds: cpu_seconds(),
        }
    }
}

/// One transaction of `mix`; the first `hot` rows are the part that the cache holds.
fn transaction(
    session: &mut Session,
    (rows, hot): (&Rows, u64),
    table: &Arc<Table>,
    mix: &Mix,
    rng: &mut Rng,
    next: &mut i64,
) {
    for _ in 0..mix.gets {
        let span = if rng.unit() < mix.anywhere { rows.count() } else { hot };
        rows.read(session, rng.below(span)).expect("the row");
    }
    for _ in 0..mix.commits {
        let row = vec![Value::Integer(*next), Value::Text("what a transaction leaves".into())];
        session.insert(table, &row).expect("insert");
        session.commit().expect("commit");
        *next += 1;
    }
}

/// Counters at an instant.
struct Seen {
    at: Nanos,
    count: u64,
    reads: u64,
    cpu_seconds: f64,
}

fn definition(n: usize) -> TableDef {
    let columns = vec![Column::new("ID", ColumnKind::Integer), Column::new("TEXT", ColumnKind::Text)];
    TableDef::new(&format!("MIX_{n}"), columns)
}

/// CPU time of this process so far: fields 14 and 15 of /proc/self/stat, hundredths of a second.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("/proc");
    let behind_name = stat.rsplit_once(')').expect("a name in brackets").1;
    let ticks = |field: usize| -> f64 {
        behind_name.split_whitespace().nth(field - 3).and_then(|t| t.parse().ok()).unwrap_or(0.0)
    };
    (ticks(14) + ticks(15)) / 100.0
}

/// How many were at a station on average, and its completions per second, `visits` for each transaction: what of a session's time is no CPU
/// time was spent there.
fn present(done: &Done, visits: f64) -> (f64, f64) {
    let cycle = f64::from(done.sessions) / done.per_second;
    let there = (cycle - done.cpu_seconds).max(1e-6);
    (there * done.per_second, done.per_second * visits)
}

/// Completions per second with n = 0, 1 … `SESSIONS` present: straight between the points on log scales, in proportion below the first,
/// constant beyond the last.
fn rates(points: &[(f64, f64)]) -> Vec<f64> {
    let mut points = points.to_vec();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let at = |n: f64| -> f64 {
        let above = points.partition_point(|p| p.0 < n);
        match (above.checked_sub(1).map(|i| points[i]), points.get(above)) {
            (Some(a), Some(b)) => {
                let share = (n / a.0).ln() / (b.0 / a.0).ln();
                a.1 * (b.1 / a.1).powf(share)
            }
            (None, Some(first)) => first.1 * n / first.0,
            (Some(last), None) => last.1,
            (None, None) => 0.0,
        }
    };
    (0..=SESSIONS).map(|n| if n == 0 { 0.0 } else { at(f64::from(n)) }).collect()
}

impl Parts {
    /// Transactions per second of all sessions, when one misses `misses` times.
    fn predict(&self, mix: &Mix, misses: f64) -> f64 {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        let hits = (f64::from(mix.gets) - misses).max(0.0);
        let cpu = hits * self.cpu_hit + misses * self.cpu_miss + f64::from(mix.commits) * self.cpu_commit;
        let stations = [
            Station::servers(1.0, cores, cpu),
            Station { visits: misses, rate: rates(&self.reads) },
            Station { visits: f64::from(mix.commits), rate: rates(&self.log) },
        ];
        network_throughput(&stations, 0.0, SESSIONS as usize)
    }
}
