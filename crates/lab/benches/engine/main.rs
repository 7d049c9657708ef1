//! The embedded database against the raw ceiling, fio, PostgreSQL and MariaDB: commits, scans, growth, reads, order entry, waits.
//!
//! Equal durability on all sides: our commits are O_DSYNC writes, PostgreSQL's `fdatasync`, MariaDB's a flush at each commit; same
//! directory, same cache, in turns. Below each rate of ours stands where its time went. One file per part; the peers are private
//! servers (`postgres`, `mariadb`). `--only commit|scan|growth|read|order-entry|waits`.
//!
//! `cargo x bench engine --rounds 5 --seconds 4`
#![forbid(unsafe_code)]

mod commits;
#[path = "../common/mod.rs"]
mod common;
mod evidence;
mod growth;
mod mariadb;
mod order_entry;
mod postgres;
mod reads;
mod scans;
mod server;
mod waiting;

use common::flags::Flags;
use common::goals::{Goals, median};
use engine::Instance;
use host::counters::Watch;
use host::journal::Journal;
use host::workspace::Workspace;
use io::{Api, IoMode};
use lab::compare::configuration::Configuration;
use lab::database::drive::{Pace, Terms};
use lab::database::{Database, Sizes};
use lab::workload::Window;
use mariadb::Mariadb;
use postgres::Postgres;
use std::cell::{OnceCell, RefCell};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use units::{Bytes, Nanos, Seed};

const BLOCK: Bytes = Bytes::kib(8);
/// Of each database.
const CACHE: Bytes = Bytes::mib(128);
const REDO_GROUPS: u32 = 3;
/// All redo groups of ours together.
const REDO_TOTAL: Bytes = Bytes::mib(256 * REDO_GROUPS as u64);
const SETTLE: Nanos = Nanos::millis(300);
const SESSIONS: u32 = 10;
static NEVER: AtomicBool = AtomicBool::new(false);

/// How sessions play, for a second.
fn terms(seed: Seed) -> Terms<'static> {
    const NOTHING: &Watch = &Watch { disks: Vec::new(), flushes: Vec::new() };
    Terms {
        settle: SETTLE,
        measure: Nanos::millis(1_000),
        slice: Nanos::millis(250),
        pace: Pace::Closed,
        seed,
        cancel: &NEVER,
        watch: NOTHING,
    }
}

type Part = (&'static str, fn(&Bench, &mut Goals));
const PARTS: [Part; 6] = [
    ("commit", Bench::commits),
    ("scan", Bench::scans),
    ("growth", Bench::growth),
    ("read", Bench::reads),
    ("waits", Bench::waiting),
    ("order-entry", Bench::order_entry),
];

fn main() -> ExitCode {
    let flags = Flags::parse();
    let measured = flags.measured();
    let rounds = flags.number("rounds", if measured { 5.0 } else { 1.0 }) as usize;
    let seconds = flags.number("seconds", if measured { 4.0 } else { 0.2 });
    let only = flags.text("only");
    let bench = Bench::new(rounds, seconds, measured);
    let mut goals = Goals::default();
    for (name, part) in PARTS {
        if only.as_deref().is_none_or(|only| only == name) {
            part(&bench, &mut goals);
        }
    }
    bench.end();
    goals.conclude(measured)
}

struct Bench {
    folder: PathBuf,
    journal: RefCell<Journal>,
    workspace: Arc<Workspace>,
    database: Database,
    /// Whether the peers are measured too; a rehearsal does without.
    peers: bool,
    postgres: OnceCell<Postgres>,
    mariadb: OnceCell<Mariadb>,
    rounds: usize,
    seconds: f64,
    /// Sizes are divided by this.
    scale: u64,
}

fn configuration() -> Configuration {
    let api = if Api::IoUring.available().is_ok() { Api::IoUring } else { Api::Libaio };
    Configuration { mode: IoMode::Setall, api }
}

fn ratios(ours: &[f64], theirs: &[f64]) -> Vec<f64> {
    ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs.max(1e-9)).collect()
}

impl Bench {
    fn new(rounds: usize, seconds: f64, measured: bool) -> Self {
        let scale = if measured { 1 } else { 32 };
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("engine-bench-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut journal = Journal::open_in(&folder.join("state"), "bench").expect("a journal");
        let workspace = Arc::new(Workspace::create(&folder, &mut journal).expect("a workspace"));
        let sizes = Sizes {
            block: BLOCK,
            cache: CACHE,
            data: Bytes((1280 << 20) / scale),
            undo: Bytes::mib(64 / scale.min(8)),
            redo: Bytes(REDO_TOTAL.0 / u64::from(REDO_GROUPS) / scale.min(16)),
            redo_groups: REDO_GROUPS,
            flash: Bytes(0),
        };
        let database = Database::create(workspace.clone(), &sizes, &[], Seed(1)).expect("a database");
        let (postgres, mariadb) = (OnceCell::new(), OnceCell::new());
        let journal = RefCell::new(journal);
        Self {
            folder,
            journal,
            workspace,
            database,
            peers: measured,
            postgres,
            mariadb,
            rounds,
            seconds,
            scale,
        }
    }

    fn open(&self) -> Instance {
        self.database.open(&configuration()).expect("open the database")
    }

    /// Started when it is first needed.
    fn postgres(&self) -> &Postgres {
        self.postgres.get_or_init(|| Postgres::start(self.workspace.path(), &mut self.journal.borrow_mut()))
    }

    /// Started when it is first needed.
    fn mariadb(&self) -> &Mariadb {
        self.mariadb.get_or_init(|| Mariadb::start(self.workspace.path(), &mut self.journal.borrow_mut()))
    }

    fn end(self) {
        drop((self.postgres, self.mariadb));
        drop(self.database);
        self.journal.into_inner().undo_all().expect("remove the workspace");
        std::fs::remove_dir_all(&self.folder).expect("remove the folder");
    }

    fn window(&self) -> Window {
        Window::after(SETTLE, Nanos::secs(self.seconds), Nanos::millis(250))
    }

    fn terms(&self, seed: Seed) -> Terms<'static> {
        Terms { measure: Nanos::secs(self.seconds), ..terms(seed) }
    }

    /// Each side once per round, in turns whose order reverses; rates in the order of the sides.
    fn alternate(&self, sides: &[(&str, &dyn Fn() -> f64)]) -> Vec<Vec<f64>> {
        let mut rates = vec![Vec::new(); sides.len()];
        for round in 0..self.rounds {
            for step in 0..sides.len() {
                let side = if round % 2 == 0 { step } else { sides.len() - 1 - step };
                rates[side].push(sides[side].1());
            }
        }
        for ((name, _), rates) in sides.iter().zip(&rates) {
            println!("  {name:<52} {:>12.0}  (median)", median(rates));
        }
        rates
    }
}
