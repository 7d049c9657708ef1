//! What a session gets done per second: commits alone and together, rows in bulk, scans, look-ups; on a real directory.
//!
//! Beside the commits stands what a lone durable write costs there, and beside the scans the rate in MB/s of blocks; without
//! those a number says little about another machine.
//!
//! `cargo x bench session --rows 200000 --seconds 3 --directory /data`
#![forbid(unsafe_code)]

#[path = "../../lab/benches/common/flags.rs"]
mod flags;

use engine::{
    AlterSystem, Background, Column, ColumnKind, Environment, IndexDef, Instance, InstanceConfig, Session,
    Shutdown, Table, TableDef, Value,
};
use flags::Flags;
use io::{Access, RealStorage, Storage};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use units::{Clock, Nanos, Rng, Seed, clock};

const ROW_BYTES: usize = 1000;
const SESSIONS: usize = 10;

struct Plan {
    rows: i64,
    seconds: f64,
    directory: PathBuf,
}

fn plan() -> Plan {
    let flags = Flags::parse();
    let measured = flags.measured();
    let directory = flags.text("directory").unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into());
    Plan {
        rows: flags.number("rows", if measured { 200_000.0 } else { 500.0 }) as i64,
        seconds: flags.number("seconds", if measured { 3.0 } else { 0.05 }),
        directory: Path::new(&directory).join("bench-session"),
    }
}

/// Runs `work` and says how often it was done in a second.
fn rate(name: &str, unit: &str, count: impl FnOnce() -> u64) -> f64 {
    let since = clock::now();
    let done = count();
    let rate = done as f64 / (clock::now() - since).as_secs();
    println!("{name:<44} {rate:>12.0} {unit}");
    rate
}

fn row(n: i64) -> Vec<Value> {
    vec![Value::Integer(n), Value::Text("x".repeat(ROW_BYTES)), Value::Integer(n % 100)]
}

fn create_table(session: &mut Session, name: &str) -> Arc<Table> {
    let columns = vec![
        Column::new("id", ColumnKind::Integer),
        Column::new("text", ColumnKind::Text),
        Column::new("n", ColumnKind::Integer),
    ];
    session.create_table(&TableDef::new(name, columns)).unwrap()
}

/// 4 KiB, O_DSYNC, one after the other: what a commit that shares nothing costs at least.
fn lone_writes(plan: &Plan) {
    let path = plan.directory.join("lone");
    let access = Access { read: true, write: true, direct: false, dsync: true };
    let file = RealStorage.create(&path, 1 << 24, access).unwrap();
    let block = vec![7; 4096];
    rate("durable writes of 4 KiB", "/s", || {
        let end = clock::now() + Nanos::secs(plan.seconds);
        let mut count = 0;
        while clock::now() < end {
            assert!(file.write_at(&block, count % 4096 * 4096).is_full());
            count += 1;
        }
        count
    });
    RealStorage.remove(&path).unwrap();
}

/// Each session has a table of its own and commits each row.
fn commits(plan: &Plan, instance: &Instance, sessions: usize) {
    let tables: Vec<_> = (0..sessions)
        .map(|n| {
            let mut session = instance.session("commit").unwrap();
            let table = create_table(&mut session, &format!("commit{n}"));
            (session, table)
        })
        .collect();
    let (stop, count) = (AtomicBool::new(false), AtomicU64::new(0));
    rate(&format!("rows inserted and committed, {sessions} sessions"), "/s", || {
        std::thread::scope(|scope| {
            for (mut session, table) in tables {
                let (stop, count) = (&stop, &count);
                scope.spawn(move || {
                    let mut done = 0;
                    while !stop.load(Ordering::Relaxed) {
                        session.insert(&table, &row(done)).unwrap();
                        session.commit().unwrap();
                        done += 1;
                    }
                    count.fetch_add(done as u64, Ordering::Relaxed);
                    session.drop_table(&table.name).unwrap();
                });
            }
            clock::sleep(Nanos::secs(plan.seconds));
            stop.store(true, Ordering::Relaxed);
        });
        count.load(Ordering::Relaxed)
    });
}

fn bulk(plan: &Plan, session: &mut Session) -> Arc<Table> {
    let table = create_table(session, "big");
    rate("rows of an insert of many", "/s", || {
        let done = session.insert_many(&table, &mut (0..plan.rows).map(row)).unwrap();
        session.commit().unwrap();
        done
    });
    rate("rows of insert … select", "/s", || {
        let mut scan = session.scan(&table).unwrap();
        let done = session.insert_select(&table, &mut scan).unwrap();
        session.commit().unwrap();
        done
    });
    table
}

fn scans(session: &mut Session, table: &Table) {
    let blocks = u64::from(session.segment_size(&table.segment).unwrap().high_water);
    for (name, setting) in [("through the cache", "never"), ("past the cache", "always")] {
        let set = AlterSystem::Set { name: "_serial_direct_read".into(), value: setting.into(), scope: None };
        session.alter_system(&set).unwrap();
        for pass in ["first", "second"] {
            let seen =
                rate(&format!("rows counted {name}, {pass} pass"), "/s", || session.count(table).unwrap());
            let rows = session.count(table).unwrap();
            println!("{:<44} {:>12.0} MB/s", "", seen / rows as f64 * blocks as f64 * 8192.0 / 1e6);
        }
    }
    rate("rows scanned, two columns", "/s", || {
        let mut scan = session.scan_columns(table, &[0, 2]).unwrap();
        let mut rows = 0;
        while scan.next(session).unwrap().is_some() {
            rows += 1;
        }
        rows
    });
}

fn look_ups(plan: &Plan, session: &mut Session) {
    rate("rows indexed", "/s", || {
        let def = IndexDef {
            name: "big_id".into(),
            table: "big".into(),
            columns: vec!["id".into()],
            unique: false,
            tablespace: None,
        };
        session.create_index(&def).unwrap();
        plan.rows as u64 * 2
    });
    let index = session.index("big_id").unwrap();
    let mut rng = Rng::new(Seed(1));
    rate("look-ups of one key", "/s", || {
        let end = clock::now() + Nanos::secs(plan.seconds);
        let mut count = 0;
        while clock::now() < end {
            let key = rng.below((plan.rows as u64 / 100).max(1)) as i64;
            assert_eq!(session.lookup(&index, &[Value::Integer(key)]).unwrap().len(), 2);
            count += 1;
        }
        count
    });
    let table = session.table("big").unwrap();
    rate("rows updated by address, no commit", "/s", || {
        let end = clock::now() + Nanos::secs(plan.seconds);
        let mut count = 0;
        while clock::now() < end {
            let key = rng.below((plan.rows as u64 / 100).max(1)) as i64;
            let (at, mut row) = session.lookup(&index, &[Value::Integer(key)]).unwrap().pop().unwrap();
            row[2] = Value::Integer(count as i64);
            session.update(&table, at, &row).unwrap();
            count += 1;
        }
        count
    });
    session.commit().unwrap();
}

fn main() {
    let plan = plan();
    let _ = std::fs::remove_dir_all(&plan.directory);
    std::fs::create_dir_all(&plan.directory).unwrap();
    let environment = Environment {
        storage: Arc::new(RealStorage),
        clock: Clock::Real,
        background: Background::Threads,
        seed: Seed(1),
    };
    let mut config = InstanceConfig::new(plan.directory.join("db")).with("db_cache_size", "128m");
    config.redo_bytes = 128 << 20;
    let instance = Instance::create(environment, config).unwrap();
    lone_writes(&plan);
    commits(&plan, &instance, 1);
    commits(&plan, &instance, SESSIONS);
    {
        let mut session = instance.session("bulk").unwrap();
        let table = bulk(&plan, &mut session);
        scans(&mut session, &table);
        look_ups(&plan, &mut session);
    }
    instance.shutdown(Shutdown::Immediate).unwrap();
    std::fs::remove_dir_all(&plan.directory).unwrap();
}
