//! What SQL costs over the engine's own API: rows counted, scanned, selected, inserted and updated, in nanoseconds each.
//!
//! Figures stand beside the same work through the session's own methods, so the difference is what SQLite and the virtual
//! tables add. Blocks are cached and commits do not wait for the disk, so that processor time is what is seen.
//!
//! `cargo x bench sql --rounds 7 --rows 200000`
#![forbid(unsafe_code)]

#[path = "../../lab/benches/common/flags.rs"]
mod flags;

use engine::{Background, Environment, Instance, InstanceConfig, Row, Session, Shutdown, Value};
use flags::Flags;
use io::RealStorage;
use sql::{Connection, Nowhere, Outcome};
use std::process::ExitCode;
use std::sync::Arc;
use units::{Clock, Seed, clock};

const MIB: u64 = 1 << 20;

fn main() -> ExitCode {
    let flags = Flags::parse();
    let measured = flags.measured();
    let rounds = flags.number("rounds", if measured { 7 } else { 1 });
    let rows = flags.number("rows", if measured { 200_000 } else { 500 });

    let folder = tempfile::Builder::new().prefix("redoubt-bench-").tempdir_in("/var/tmp").expect("a folder");
    let environment = Environment {
        storage: Arc::new(RealStorage),
        clock: Clock::Real,
        background: Background::Threads,
        seed: Seed(7),
    };
    let config = InstanceConfig::new(folder.path())
        .with("db_cache_size", if measured { "512m" } else { "16m" })
        .with("_serial_direct_read", "never")
        .with("commit_wait", "nowait");
    let bytes = if measured { 256 * MIB } else { 8 * MIB };
    let config = InstanceConfig { data_bytes: bytes, undo_bytes: bytes, redo_bytes: bytes, ..config };
    let instance = Instance::create(environment, config).expect("an instance");
    let mut bench = Bench::new(&instance, rows);
    let mut values = vec![Vec::new(); WORK.len()];
    for _ in 0..rounds {
        // They take turns within a round, so what the machine does meanwhile befalls all of them.
        for (values, (_, work)) in values.iter_mut().zip(WORK) {
            let began = clock::now();
            let done = work(&mut bench);
            values.push((clock::now() - began).0 as f64 / done as f64);
        }
    }
    for (mut values, (name, _)) in values.into_iter().zip(WORK) {
        values.sort_by(f64::total_cmp);
        let (low, median, high) = (values[0], values[values.len() / 2], values[values.len() - 1]);
        println!("{name:<48} {median:>8.0} ns   ({low:.0} to {high:.0})");
    }
    drop(bench);
    instance.shutdown(Shutdown::Immediate).expect("a clean end");
    ExitCode::SUCCESS
}

/// Does something; how many times.
type Work = fn(&mut Bench) -> u64;

const WORK: [(&str, Work); 16] = [
    ("count(*), a row: session", Bench::count),
    ("count(*), a row: SQL", |b| b.query("select count(*) from t")),
    ("count(*) where, a row: SQL", |b| b.query("select count(*) from t where n >= 0")),
    ("scan of two columns, a row: session", Bench::scan),
    ("sum of two columns, a row: SQL", |b| b.query("select sum(id), sum(n) from t")),
    ("all columns to the caller, a row: SQL", |b| b.query("select * from t")),
    ("by key: session", Bench::lookup),
    ("by key: SQL, prepared", |b| b.prepared("select n, text from t where id = ?", Outcome::Rows(1))),
    ("by key: SQL, as text", Bench::lookup_as_text),
    ("update by key: session", Bench::update),
    ("update by key: SQL, prepared", |b| {
        b.prepared("update t set n = n + 1 where id = ?", Outcome::Changed("updated", 1))
    }),
    ("insert one by one, a row: session", Bench::insert),
    ("insert one by one, a row: SQL, prepared", Bench::insert_prepared),
    ("insert … select, a row: session", Bench::insert_select),
    ("insert … select *, a row: SQL", |b| b.copy("insert into u select * from t")),
    ("insert … select expressions, a row: SQL", |b| b.copy("insert into u select id + 1, n, text from t")),
];

struct Bench {
    db: Connection,
    session: Session,
    rows: u64,
    /// Number of the next row.
    next: i64,
}

impl Bench {
    fn new(instance: &Instance, rows: u64) -> Self {
        let session = |name: &str| instance.session(name).expect("a session");
        let mut db = Connection::new(session("bench sql")).expect("a connection");
        for table in ["t", "u"] {
            let text = format!("create table {table} (id number(18), n number(18), text varchar2(100))");
            db.done(&text).expect("a table");
        }
        db.with_session(|session| {
            let table = session.table("t").expect("t");
            session.insert_many(&table, &mut (0..rows as i64).map(row)).expect("rows");
            session.commit().expect("a commit");
        });
        db.done("create unique index t_pk on t (id)").expect("an index");
        Self { db, session: session("bench session"), rows, next: 0 }
    }

    /// How often something is done that goes to one row.
    fn times(&self) -> u64 {
        (self.rows / 10).max(1)
    }

    /// Keys all over the table.
    fn key(&self, n: u64) -> i64 {
        (n.wrapping_mul(7919) % self.rows) as i64
    }

    fn count(&mut self) -> u64 {
        let table = self.session.table("t").expect("t");
        assert_eq!(self.session.count(&table).expect("a count"), self.rows);
        self.rows
    }

    fn query(&mut self, text: &str) -> u64 {
        self.db.done(text).expect(text);
        self.rows
    }

    fn scan(&mut self) -> u64 {
        let table = self.session.table("t").expect("t");
        let mut scan = self.session.scan_columns(&table, &[0, 1]).expect("a scan");
        let mut sum = 0;
        while let Some((_, row)) = scan.next(&mut self.session).expect("a row") {
            let [Value::Integer(id), Value::Integer(n)] = row[..] else { panic!("{row:?}") };
            sum += id + n;
        }
        assert!(sum > 0);
        self.rows
    }

    fn lookup(&mut self) -> u64 {
        let index = self.session.index("t_pk").expect("t_pk");
        for n in 0..self.times() {
            let key = [Value::Integer(self.key(n))];
            assert_eq!(self.session.lookup(&index, &key).expect("a row").len(), 1);
        }
        self.times()
    }

    fn lookup_as_text(&mut self) -> u64 {
        for n in 0..self.times() {
            let text = format!("select n, text from t where id = {}", self.key(n));
            assert_eq!(self.db.done(&text).expect("a row"), Outcome::Rows(1));
        }
        self.times()
    }

    fn prepared(&mut self, text: &str, expected: Outcome) -> u64 {
        let prepared = self.db.prepare(text).expect(text);
        for n in 0..self.times() {
            let done = self.db.run(&prepared, &[Value::Integer(self.key(n))], &mut Nowhere).expect(text);
            assert_eq!(done, expected, "{text}");
        }
        self.db.commit().expect("a commit");
        self.times()
    }

    fn update(&mut self) -> u64 {
        let table = self.session.table("t").expect("t");
        let index = self.session.index("t_pk").expect("t_pk");
        for n in 0..self.times() {
            let key = [Value::Integer(self.key(n))];
            let (address, mut row) = self.session.lookup(&index, &key).expect("a row").remove(0);
            row[1] = Value::Integer(n as i64);
            self.session.update(&table, address, &row).expect("a change");
        }
        self.session.commit().expect("a commit");
        self.times()
    }

    fn insert(&mut self) -> u64 {
        let table = self.session.table("u").expect("u");
        for _ in 0..self.times() {
            self.session.insert(&table, &row(self.next)).expect("a row");
            self.next += 1;
        }
        self.session.commit().expect("a commit");
        self.times()
    }

    fn insert_prepared(&mut self) -> u64 {
        let insert = self.db.prepare("insert into u values (?, ?, ?)").expect("a statement");
        for _ in 0..self.times() {
            let done = self.db.run(&insert, &row(self.next), &mut Nowhere).expect("a row");
            assert_eq!(done, Outcome::Changed("inserted", 1));
            self.next += 1;
        }
        self.db.commit().expect("a commit");
        self.db.done("truncate table u").expect("an empty table");
        self.times()
    }

    fn insert_select(&mut self) -> u64 {
        let (u, t) = (self.session.table("u").expect("u"), self.session.table("t").expect("t"));
        let mut scan = self.session.scan(&t).expect("a scan");
        assert_eq!(self.session.insert_select(&u, &mut scan).expect("rows"), self.rows);
        drop(scan);
        self.session.commit().expect("a commit");
        self.session.truncate_table("u").expect("an empty table");
        self.rows
    }

    fn copy(&mut self, text: &str) -> u64 {
        assert_eq!(self.db.done(text).expect(text), Outcome::Changed("inserted", self.rows));
        self.db.commit().expect("a commit");
        self.db.done("truncate table u").expect("an empty table");
        self.rows
    }
}

fn row(id: i64) -> Row {
    vec![Value::Integer(id), Value::Integer(id % 97), Value::Text(format!("row {id} {:<70}", "of a table"))]
}
