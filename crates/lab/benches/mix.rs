//! A mixed workload predicted from its measured parts, against what it then does: the arithmetic of the verdict for a user's mix.
//!
//! Parts: gets that the cache holds, cold reads, commits, by 1, 2, 4 and 8 sessions; then two parts in turn by the same sessions, because
//! reads, log and processors slow each other down. The prediction is mean value analysis with these interactions (docs/method.md, 8.2, last
//! level); beside it stands that of the network of stations that know nothing of each other. Three mixes to which nothing was fitted are then
//! played; their miss ratio is what the database counted, as a user's would be.
//!
//! Wants a quiet machine: it says how much of the processors others used meanwhile.
//!
//! `cargo x bench mix --rounds 3 --passes 6 --seconds 0.5`
#![forbid(unsafe_code)]

mod common;

use common::child::cpu_of_self;
use common::flags::Flags;
use common::goals::{Aim, Goals, median};
use engine::{AlterSystem, Column, ColumnKind, Instance, Session, Shutdown, Table, TableDef, Value};
use host::counters::Watch;
use host::journal::Journal;
use host::workspace::Workspace;
use io::{Api, IoMode};
use lab::compare::configuration::Configuration;
use lab::database::interval::Moment;
use lab::database::random_read::{self, Rows};
use lab::database::{Database, Sizes, sessions};
use stats::mix::{Residence, Station, interacting_throughput, network_throughput};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use units::{Bytes, Nanos, Rng, Seed, clock};
use waits::Event;

const BLOCK: Bytes = Bytes::kib(8);
const SETTLE: Nanos = Nanos::millis(300);
const SESSIONS: u32 = 8;
/// Sessions by which cold reads and commits are measured.
const DEPTHS: [u32; 4] = [1, 2, 4, SESSIONS];
/// A prediction may miss by this share.
const ERROR_MAX: f64 = 0.10;
/// Fewer reads per second are no part that was asked for.
const READS_MIN: f64 = 100.0;
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

static HOT: Mix = mix("gets that the cache holds", 50, 0.0, 0);
static COLD: Mix = mix("cold reads", 1, 1.0, 0);
static COMMIT: Mix = mix("commits", 0, 0.0, 1);
static MIXES: [Mix; 3] = [
    mix("10 gets, half of them anywhere, 1 commit", 10, 0.5, 1),
    mix("40 gets, a tenth anywhere, 1 commit", 40, 0.1, 1),
    mix("100 gets, 2 of a hundred anywhere, 2 commits", 100, 0.02, 2),
];

/// Two parts at once, by the same sessions in turn: how a session that comes back from the device or the log finds the processors busy depends
/// on how much of them it used itself before, so sessions of their own for each part would not do.
static PAIRS: [Mix; 7] = [
    mix("reads and commits, 1:1", 1, 1.0, 1),
    mix("reads and commits, 4:1", 4, 1.0, 1),
    mix("hits and commits, 20:1", 20, 0.0, 1),
    mix("hits and commits, 100:1", 100, 0.0, 1),
    mix("hits and reads, 7:1", 8, 0.125, 0),
    mix("hits and reads, 31:1", 32, 0.03125, 0),
    mix("hits and reads, 127:1", 128, 0.0078125, 0),
];
/// So many sessions, and what they do.
type Play = (u32, &'static Mix);

/// Each part by as many sessions as it takes to know its curve, parts in pairs, and at last the mixes.
fn plays() -> Vec<Play> {
    let alone = [&HOT, &COLD, &COMMIT].into_iter().flat_map(|part| DEPTHS.map(|n| (n, part)));
    alone.chain(PAIRS.iter().chain(&MIXES).map(|mix| (SESSIONS, mix))).collect()
}

/// Stations: on a processor or wanting one, reading, in the log.
const CPU: usize = 0;
const READ: usize = 1;
const LOG: usize = 2;

/// What was done, per second, and where sessions were.
#[derive(Clone, Copy, Debug)]
struct Done {
    transactions: f64,
    gets: f64,
    misses: f64,
    commits: f64,
    /// Sessions at each station, mean over time.
    present: [f64; 3],
    /// Processor time of this process per second.
    cpu_seconds: f64,
    /// Share of the processors that others used.
    others: f64,
    /// Share of the processors that a hypervisor gave to somebody else.
    stolen: f64,
}

impl Done {
    /// The mean over windows of the same length.
    fn mean(windows: &[Self]) -> Self {
        let mean = |field: &dyn Fn(&Self) -> f64| {
            windows.iter().map(field).sum::<f64>() / windows.len().max(1) as f64
        };
        Self {
            transactions: mean(&|d| d.transactions),
            gets: mean(&|d| d.gets),
            misses: mean(&|d| d.misses),
            commits: mean(&|d| d.commits),
            present: [0, 1, 2].map(|station| mean(&|d| d.present[station])),
            cpu_seconds: mean(&|d| d.cpu_seconds),
            others: mean(&|d| d.others),
            stolen: mean(&|d| d.stolen),
        }
    }

    fn hits(&self) -> f64 {
        (self.gets - self.misses).max(0.0)
    }
}

/// What the parts cost.
struct Parts {
    /// Uncontended time on a processor of a hit, a miss and a commit, outside of their waits; seconds.
    on_cpu: [f64; 3],
    /// Stretch of that time, time of a read, time of a commit in the log.
    residences: [Residence; 3],
    /// For the network: processor time of all threads for each of the three, and the rates of reads and log against how many are there.
    used: [f64; 3],
    reads: Vec<(f64, f64)>,
    log: Vec<(f64, f64)>,
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    let measured = flags.measured();
    let rounds = flags.number("rounds", if measured { 3.0 } else { 1.0 }) as usize;
    let seconds = flags.number("seconds", if measured { 0.5 } else { 0.05 });
    let passes = flags.number("passes", if measured { 6.0 } else { 1.0 }) as usize;
    let bench = Bench { show: flags.has("show"), ..Bench::new(seconds, if measured { 1 } else { 16 }) };
    let mut errors = vec![[Vec::new(), Vec::new()]; MIXES.len()];
    let mut others: Vec<f64> = Vec::new();
    let plays = plays();
    for round in 0..rounds {
        let done = bench.measure(&plays, passes, Seed(1_000 + round as u64));
        let (measured, played) = done.split_at(plays.len() - MIXES.len());
        let parts = Parts::of(measured);
        for ((mix, done), errors) in MIXES.iter().zip(played).zip(&mut errors) {
            let misses = done.misses / done.transactions.max(1e-9);
            let predicted = [parts.interacting(mix, misses), parts.network(mix, misses)];
            println!(
                "  {:<46} played {:>7.0}/s, predicted {:>7.0}/s, by stations alone {:>7.0}/s; {misses:.2} misses; others used {:.0} %, {:.0} % stolen",
                mix.name,
                done.transactions,
                predicted[0],
                predicted[1],
                done.others * 100.0,
                done.stolen * 100.0
            );
            others.push(done.others + done.stolen);
            for (errors, predicted) in errors.iter_mut().zip(predicted) {
                errors.push((predicted / done.transactions.max(1e-9) - 1.0).abs());
            }
        }
    }
    bench.end();
    let mut goals = Goals::default();
    for (mix, [interacting, _]) in MIXES.iter().zip(&errors) {
        goals.rounds(&format!("error of the prediction: {}", mix.name), interacting, Aim::AtMost(ERROR_MAX));
    }
    let alone: Vec<f64> = errors.iter().map(|[_, network]| median(network)).collect();
    goals.rounds("the same by stations that know nothing of each other", &alone, Aim::Told);
    goals.rounds("share of the processors that others used or a hypervisor stole", &others, Aim::Told);
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
    show: bool,
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
            flash: Bytes(0),
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
        Self { folder, journal, database, instance, rows, hot, seconds, show: false }
    }

    fn end(self) {
        self.instance.shutdown(Shutdown::Immediate).expect("shut down");
        drop(self.database);
        self.journal.undo_all().expect("remove the workspace");
        std::fs::remove_dir_all(&self.folder).expect("remove the folder");
    }

    /// All `plays`, each in as many short windows as there are passes, in random order within each: what the machine does meanwhile is in
    /// all of them.
    fn measure(&self, plays: &[Play], passes: usize, seed: Seed) -> Vec<Done> {
        let mut windows = vec![Vec::with_capacity(passes); plays.len()];
        let mut rng = Rng::new(seed);
        for pass in 0..passes {
            let mut order: Vec<usize> = (0..plays.len()).collect();
            rng.shuffle(&mut order);
            for index in order {
                windows[index].push(self.play(&plays[index], seed.part((pass * plays.len() + index) as u64)));
            }
        }
        let done: Vec<Done> = windows.iter().map(|windows| Done::mean(windows)).collect();
        if self.show {
            for ((sessions, mix), done) in plays.iter().zip(&done) {
                println!("    {sessions} × {:<46} {done:.6?}", mix.name);
            }
        }
        done
    }

    /// Plays for one window.
    fn play(&self, (count, mix): &Play, seed: Seed) -> Done {
        let mut admin = self.instance.session("mix").expect("a session");
        let all = sessions(&self.instance, "mix", *count).expect("sessions");
        let mut table = |n| admin.create_table(&definition(n)).expect("a table");
        let players: Vec<(Session, Arc<Table>)> =
            all.into_iter().enumerate().map(|(n, session)| (session, table(n))).collect();
        let (stop, transactions) = (AtomicBool::new(false), AtomicU64::new(0));
        let done = std::thread::scope(|scope| {
            for (n, (mut session, table)) in players.into_iter().enumerate() {
                let mut rng = Rng::new(seed.part(n as u64));
                let (stop, transactions) = (&stop, &transactions);
                let (rows, hot) = (self.rows.clone(), self.hot);
                scope.spawn(move || {
                    let mut next = 0;
                    while !stop.load(Ordering::Relaxed) {
                        transaction(&mut session, (&rows, hot), &table, mix, &mut rng, &mut next);
                        transactions.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            clock::sleep_until(clock::now() + SETTLE);
            let before = Seen::now(&self.instance, &transactions);
            clock::sleep_until(clock::now() + Nanos::secs(self.seconds));
            let done = before.until_now(&self.instance, &transactions, *count);
            stop.store(true, Ordering::Relaxed);
            done
        });
        for n in 0..*count as usize {
            admin.drop_table(&definition(n).name).expect("drop");
        }
        done
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
    transactions: u64,
    statistics: [u64; 3],
    cpu_seconds: f64,
    moment: Moment,
}

impl Seen {
    fn now(instance: &Instance, transactions: &AtomicU64) -> Self {
        let rows = instance.sysstat();
        let value = |name: &str| rows.iter().find(|row| row.name == name).map_or(0, |row| row.value);
        Self {
            at: clock::now(),
            transactions: transactions.load(Ordering::Relaxed),
            statistics: ["consistent gets", "physical reads", "user commits"].map(value),
            cpu_seconds: cpu_of_self(),
            moment: Moment::of(instance, &[], &Watch::default()),
        }
    }

    fn until_now(self, instance: &Instance, transactions: &AtomicU64, sessions: u32) -> Done {
        let after = Self::now(instance, transactions);
        let seconds = (after.at - self.at).as_secs().max(1e-9);
        let interval = self.moment.until_now(instance, &[], &Watch::default());
        let told = interval.db_time();
        let at = |event: Event| -> f64 {
            told.waits.iter().filter(|(e, _)| *e == event).map(|(_, share)| share * told.active).sum()
        };
        let (reading, logging) =
            (at(Event::DbFileSequentialRead) + at(Event::ReadByOtherSession), at(Event::LogFileSync));
        let [gets, misses, commits] =
            [0, 1, 2].map(|i| (after.statistics[i] - self.statistics[i]) as f64 / seconds);
        Done {
            transactions: (after.transactions - self.transactions).max(1) as f64 / seconds,
            gets,
            misses,
            commits,
            present: [(f64::from(sessions) - reading - logging).max(0.0), reading, logging],
            cpu_seconds: (after.cpu_seconds - self.cpu_seconds) / seconds,
            others: interval.machine().others_cpu_share.unwrap_or(0.0),
            stolen: interval.machine().steal_share.unwrap_or(0.0),
        }
    }
}

fn definition(n: usize) -> TableDef {
    let columns = vec![Column::new("ID", ColumnKind::Integer), Column::new("TEXT", ColumnKind::Text)];
    TableDef::new(&format!("MIX_{n}"), columns)
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
    /// From what was done in [`plays`], without the mixes.
    fn of(all: &[Done]) -> Self {
        let [hot, cold, commits] = [0, 1, 2].map(|part| &all[part * DEPTHS.len()..(part + 1) * DEPTHS.len()]);
        let each = |done: &Done, part: f64| done.present[CPU] / part.max(1e-9);
        let on_cpu = [
            each(&hot[0], hot[0].gets),
            each(&cold[0], cold[0].misses),
            each(&commits[0], commits[0].commits),
        ];
        let time_at = |station: usize, ops: &dyn Fn(&Done) -> f64| {
            let points = all.iter().filter(|done| ops(done) > 1e-9 && done.present[station] > 1e-9);
            let points: Vec<_> =
                points.map(|done| (done.present.to_vec(), done.present[station] / ops(done))).collect();
            Residence::fit(&points).unwrap_or(Residence { base: 1.0, slopes: vec![0.0; 3] })
        };
        let [hit, miss, commit] = on_cpu;
        let residences = [
            time_at(CPU, &|done| done.hits() * hit + done.misses * miss + done.commits * commit),
            time_at(READ, &|done| if done.misses > READS_MIN { done.misses } else { 0.0 }),
            time_at(LOG, &|done| done.commits),
        ];
        let last = DEPTHS.len() - 1;
        let used = |done: &Done, part: f64| done.cpu_seconds / part.max(1e-9);
        let curve = |all: &[Done], station: usize, ops: fn(&Done) -> f64| -> Vec<(f64, f64)> {
            all.iter().map(|done| (done.present[station].max(1e-6), ops(done))).collect()
        };
        Self {
            on_cpu,
            residences,
            used: [
                used(&hot[last], hot[last].gets),
                used(&cold[last], cold[last].misses),
                used(&commits[last], commits[last].commits),
            ],
            reads: curve(cold, READ, |done| done.misses),
            log: curve(commits, LOG, |done| done.commits),
        }
    }

    /// Transactions per second of all sessions, when one misses `misses` times, and the stations slow each other down as they did in pairs.
    fn interacting(&self, mix: &Mix, misses: f64) -> f64 {
        let [hit, miss, commit] = self.on_cpu;
        let commits = f64::from(mix.commits);
        let cpu = mix.hits(misses) * hit + misses * miss + commits * commit;
        interacting_throughput(&[cpu, misses, commits], &self.residences, SESSIONS)
    }

    /// The same by stations that know nothing of each other.
    fn network(&self, mix: &Mix, misses: f64) -> f64 {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        let [hit, miss, commit] = self.used;
        let commits = f64::from(mix.commits);
        let cpu = mix.hits(misses) * hit + misses * miss + commits * commit;
        let stations = [
            Station::servers(1.0, cores, cpu),
            Station { visits: misses, rate: rates(&self.reads) },
            Station { visits: commits, rate: rates(&self.log) },
        ];
        network_throughput(&stations, 0.0, SESSIONS as usize)
    }
}

impl Mix {
    fn hits(&self, misses: f64) -> f64 {
        (f64::from(self.gets) - misses).max(0.0)
    }
}
