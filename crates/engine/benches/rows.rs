//! What rows cost a session that waits for nothing: an insert of a 1,000-byte row takes 5 µs at most, its undo, its redo and the
//! session's own bookkeeping included. Beside it, without a goal: many rows at once, a transaction of one row (its commit not
//! waited for), update, look at a row, count and scan of cached rows.
//!
//! All in the cache. Times are CPU time of the session's thread, system calls included.
//!
//! `cargo bench -p engine --bench rows -- --rounds 7 --rows 50000`
#![forbid(unsafe_code)]

#[path = "../../lab/benches/common/flags.rs"]
mod flags;

use engine::space::{Column, ColumnKind, Table, TableDef};
use engine::{Background, Environment, Instance, InstanceConfig, Row, RowId, Session, Shutdown, Value};
use flags::Flags;
use io::RealStorage;
use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use units::{Clock, Rng, Seed};

/// The promise, in nanoseconds.
const INSERT_NS_MAX: f64 = 5_000.0;
const FILLER: usize = 980;

fn main() -> ExitCode {
    let flags = Flags::parse();
    let measured = flags.measured();
    let rounds = flags.number("rounds", if measured { 7 } else { 1 });
    let rows = flags.number("rows", if measured { 50_000 } else { 2_000 });
    let folder = tempfile::tempdir().expect("a folder for the database");
    let instance = open(folder.path(), rows as u64);
    let sides: [Side<'_>; 8] = [
        ("insert, 1,000 bytes", Some(INSERT_NS_MAX), &|bench| bench.insert()),
        ("insert, many at once, each", None, &|bench| bench.insert_many()),
        ("begin, insert, commit (not waited for)", None, &|bench| bench.transactions()),
        ("update of a number, 1,000-byte row", None, &|bench| bench.update()),
        ("look at a row by its address", None, &|bench| bench.get()),
        ("count, each row", None, &|bench| bench.count()),
        ("scan of a number, each row", None, &|bench| bench.scan(&[0])),
        ("scan of all columns, each row", None, &|bench| bench.scan(&[0, 1])),
    ];
    let mut values = vec![Vec::new(); sides.len()];
    for _ in 0..rounds {
        let mut bench = Bench::new(&instance, rows);
        for (values, (_, _, side)) in values.iter_mut().zip(&sides) {
            values.push(side(&mut bench));
        }
    }
    let mut missed = false;
    for ((name, goal, _), values) in sides.iter().zip(&mut values) {
        values.sort_by(f64::total_cmp);
        let median = values[rounds / 2];
        let verdict = match goal {
            Some(goal) if measured && median > *goal => {
                missed = true;
                "  goal <= 5,000 ns: MISSED"
            }
            Some(_) if measured => "  goal <= 5,000 ns: met",
            _ => "",
        };
        println!(
            "{name:<40} {median:>8.1} ns  (min {:.1}, max {:.1}){verdict}",
            values[0],
            values[rounds - 1]
        );
    }
    instance.shutdown(Shutdown::Abort).expect("stopped");
    if missed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Name, goal, and what it takes.
type Side<'a> = (&'a str, Option<f64>, &'a dyn Fn(&mut Bench) -> f64);

fn open(folder: &Path, rows: u64) -> Instance {
    const MIB: u64 = 1 << 20;
    let mut config = InstanceConfig::new(folder)
        .with("db_cache_size", "768m")
        .with("log_buffer", "32m")
        .with("commit_wait", "nowait")
        .with("commit_logging", "batch")
        .with("_serial_direct_read", "never");
    config.data_bytes = (rows * 4096).max(32 * MIB);
    config.undo_bytes = 64 * MIB;
    config.redo_bytes = 256 * MIB;
    let environment = Environment {
        storage: Arc::new(RealStorage),
        clock: Clock::Real,
        background: Background::Threads,
        seed: Seed(1),
    };
    Instance::create(environment, config).expect("a database")
}

/// What this thread has used of its CPU, nanoseconds (`schedstat`; good to a clock tick). Not the time of day: others may be at
/// work on the machine, and background processes are at work here.
fn cpu_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("schedstat");
    text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("nanoseconds")
}

/// A table of its own for each round.
struct Bench {
    session: Session,
    table: Arc<Table>,
    rows: usize,
    row: Row,
    addresses: Vec<RowId>,
}

impl Bench {
    fn new(instance: &Instance, rows: usize) -> Self {
        let mut session = instance.session("bench").expect("a session");
        if session.table("t").is_ok() {
            session.drop_table("t").expect("dropped");
        }
        let columns = vec![Column::new("n", ColumnKind::Integer), Column::new("filler", ColumnKind::Text)];
        let table = session.create_table(&TableDef::new("t", columns)).expect("a table");
        let row = vec![Value::Integer(1_000_000), Value::Text("f".repeat(FILLER))];
        Self { session, table, rows, row, addresses: Vec::new() }
    }

    /// CPU nanoseconds of one of `rows` acts.
    fn nanos_each(&mut self, mut act: impl FnMut(&mut Self, usize)) -> f64 {
        let start = cpu_ns();
        (0..self.rows).for_each(|n| act(self, n));
        let took = cpu_ns() - start;
        self.session.commit().expect("a commit");
        took / self.rows as f64
    }

    fn insert(&mut self) -> f64 {
        self.nanos_each(|bench, _| {
            let at = bench.session.insert(&bench.table, &bench.row).expect("an insert");
            bench.addresses.push(at);
        })
    }

    fn insert_many(&mut self) -> f64 {
        let mut rows = std::iter::repeat_n(self.row.clone(), self.rows);
        let start = cpu_ns();
        let count = self.session.insert_many(&self.table, &mut rows).expect("an insert");
        let took = cpu_ns() - start;
        self.session.commit().expect("a commit");
        took / count as f64
    }

    fn transactions(&mut self) -> f64 {
        self.nanos_each(|bench, _| {
            bench.session.insert(&bench.table, &bench.row).expect("an insert");
            bench.session.commit().expect("a commit");
        })
    }

    fn update(&mut self) -> f64 {
        let mut rng = Rng::new(Seed(1));
        self.nanos_each(|bench, n| {
            let at = bench.addresses[rng.below(bench.addresses.len() as u64) as usize];
            bench.row[0] = Value::Integer(1_000_001 + n as i64);
            bench.session.update(&bench.table, at, &bench.row).expect("an update");
        })
    }

    fn get(&mut self) -> f64 {
        let mut rng = Rng::new(Seed(2));
        self.nanos_each(|bench, _| {
            let at = bench.addresses[rng.below(bench.addresses.len() as u64) as usize];
            black_box(bench.session.get(&bench.table, at).expect("a look").expect("a row"));
        })
    }

    fn count(&mut self) -> f64 {
        let start = cpu_ns();
        let count = self.session.count(&self.table).expect("a count");
        (cpu_ns() - start) / count as f64
    }

    fn scan(&mut self, columns: &[usize]) -> f64 {
        let start = cpu_ns();
        let mut scan = self.session.scan_columns(&self.table, columns).expect("a scan");
        let mut count = 0;
        while let Some(row) = scan.next(&mut self.session).expect("a row") {
            black_box(row);
            count += 1;
        }
        (cpu_ns() - start) / f64::from(count)
    }
}
