//! Sessions in threads, on a real directory: transfers between accounts, look-ups, scans, inserts into one table, DDL meanwhile. Money
//! is neither made nor lost, in any view, and every index agrees with its table. `REDOUBT_SECONDS=60` makes it work longer.

use crate::machine::{index, int, number, people, text};
use engine::{
    Background, Column, ColumnKind, EngineError, Environment, Instance, InstanceConfig, Result, Session,
    Shutdown, TableDef, Value,
};
use io::RealStorage;
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use units::{Clock, Rng, Seed};

const ACCOUNTS: i64 = 200;
const START: i64 = 1000;

fn directory(name: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

fn environment() -> Environment {
    Environment {
        storage: Arc::new(RealStorage),
        clock: Clock::Real,
        background: Background::Threads,
        seed: Seed(3),
    }
}

fn config(directory: PathBuf) -> InstanceConfig {
    let mut config = InstanceConfig::new(directory)
        .with("db_block_size", "4k")
        .with("db_cache_size", "4m")
        .with("db_writer_processes", "2");
    (config.data_bytes, config.undo_bytes, config.temp_bytes) = (8 << 20, 8 << 20, 8 << 20);
    (config.redo_bytes, config.redo_groups) = (8 << 20, 3);
    config
}

fn integer(value: &Value) -> i64 {
    match value {
        Value::Integer(n) => *n,
        other => panic!("{other:?}"),
    }
}

/// What somebody else's work may do to a transaction; it is rolled back and may be tried again.
fn is_conflict(error: &EngineError) -> bool {
    matches!(error, EngineError::Deadlock { .. } | EngineError::StatementRestart | EngineError::NoSuch { .. })
}

fn set_up(session: &mut Session) {
    let columns = ["id", "balance"].map(|name| Column::new(name, ColumnKind::Integer));
    let table = session.create_table(&TableDef::new("accounts", columns.to_vec())).unwrap();
    session.insert_many(&table, &mut (0..ACCOUNTS).map(|id| vec![int(id), int(START)])).unwrap();
    session.commit().unwrap();
    session.create_index(&index("accounts_id", "accounts", &["id"], true)).unwrap();
    session.create_index(&index("accounts_balance", "accounts", &["balance"], false)).unwrap();
    session.create_table(&people("people")).unwrap();
    session.create_index(&index("people_id", "people", &["id"], true)).unwrap();
}

/// Moves money between two accounts, in either order, by statements or under row locks.
fn transfer(session: &mut Session, rng: &mut Rng) -> Result<()> {
    let accounts = session.table("accounts")?;
    let by_id = session.index("accounts_id")?;
    let (from, to) = (rng.below(ACCOUNTS as u64) as i64, rng.below(ACCOUNTS as u64) as i64);
    let amount = rng.below(50) as i64;
    for (id, change) in [(from, -amount), (to, amount)] {
        if rng.below(2) == 0 {
            session.begin_statement()?;
            let (at, row) = session.lookup(&by_id, &[int(id)])?.pop().expect("accounts stay");
            session.update(&accounts, at, &[int(id), int(integer(&row[1]) + change)])?;
            session.end_statement();
        } else {
            let (at, _) = session.lookup(&by_id, &[int(id)])?.pop().expect("accounts stay");
            let row = session.get_for_update(&accounts, at)?.expect("accounts stay");
            session.update(&accounts, at, &[int(id), int(integer(&row[1]) + change)])?;
        }
    }
    if rng.below(10) == 0 { session.rollback() } else { session.commit() }
}

/// The sum of all balances, by scan or in the order of an index.
fn total(session: &mut Session, by_index: bool) -> Result<i64> {
    let table = session.table("accounts")?;
    let mut sum = 0;
    let mut rows = 0;
    if by_index {
        let index = session.index("accounts_balance")?;
        let mut cursor = session.range(&index, Bound::Unbounded, Bound::Unbounded, true)?;
        while let Some((_, row)) = cursor.next(session)? {
            sum += integer(&row[1]);
            rows += 1;
        }
    } else {
        let mut scan = session.scan(&table)?;
        while let Some((_, row)) = scan.next(session)? {
            sum += integer(&row[1]);
            rows += 1;
        }
    }
    assert_eq!(rows, ACCOUNTS);
    Ok(sum)
}

/// Inserts people with numbers that others insert too; each number gets in once.
fn insert_people(session: &mut Session, rng: &mut Rng, inserted: &AtomicU64) -> Result<()> {
    let people = session.table("people")?;
    let mut mine = 0;
    for _ in 0..1 + rng.below(5) {
        let id = rng.below(5000) as i64;
        let row = [int(id), text(&"name ".repeat(rng.below(30) as usize)), int(id % 7)];
        match session.insert(&people, &row) {
            Ok(_) => mine += 1,
            Err(EngineError::DuplicateKey { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    session.commit()?;
    inserted.fetch_add(mine, Ordering::Relaxed);
    Ok(())
}

/// Indexes come and go, and a table of its own.
fn ddl(session: &mut Session, round: u64) -> Result<()> {
    session.create_index(&index("people_size", "people", &["size", "name"], false))?;
    let own = session.create_table(&people("own"))?;
    session.insert_many(&own, &mut (0..500).map(|n| vec![int(n), text("x"), int(n)]))?;
    if round.is_multiple_of(2) {
        session.truncate_table("own")?;
    }
    session.drop_index("people_size")?;
    session.drop_table("own")
}

fn work(instance: &Instance, seconds: u64) -> (u64, u64) {
    let stop = AtomicBool::new(false);
    let (transfers, inserted) = (AtomicU64::new(0), AtomicU64::new(0));
    let session = |name: &str| instance.session(name).unwrap();
    let retry = |session: &mut Session, result: Result<()>| match result {
        Ok(()) => true,
        Err(error) if is_conflict(&error) => {
            session.rollback().unwrap();
            false
        }
        Err(error) => panic!("{error}"),
    };
    std::thread::scope(|scope| {
        for n in 0..6 {
            let (mut session, mut rng) = (session("transfer"), Rng::new(Seed(100 + n)));
            let (stop, transfers, retry) = (&stop, &transfers, &retry);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let result = transfer(&mut session, &mut rng);
                    transfers.fetch_add(retry(&mut session, result).into(), Ordering::Relaxed);
                }
            });
        }
        for n in 0..3 {
            let (mut session, mut rng) = (session("insert"), Rng::new(Seed(200 + n)));
            let (stop, inserted, retry) = (&stop, &inserted, &retry);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let result = insert_people(&mut session, &mut rng, inserted);
                    retry(&mut session, result);
                }
            });
        }
        let (mut reader, stopped) = (session("read"), &stop);
        scope.spawn(move || {
            for round in 0u64.. {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                assert_eq!(total(&mut reader, round % 2 == 0).unwrap(), ACCOUNTS * START);
            }
        });
        let (mut admin, retry) = (session("ddl"), &retry);
        scope.spawn(move || {
            for round in 0u64.. {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                let result = ddl(&mut admin, round);
                retry(&mut admin, result);
            }
        });
        units::clock::sleep(units::Nanos::secs(seconds as f64));
        stop.store(true, Ordering::Relaxed);
    });
    (transfers.into_inner(), inserted.into_inner())
}

fn check(instance: &Instance, inserted: u64) {
    let mut session = instance.session("check").unwrap();
    assert_eq!(total(&mut session, false).unwrap(), ACCOUNTS * START);
    assert_eq!(total(&mut session, true).unwrap(), ACCOUNTS * START);
    let people = session.table("people").unwrap();
    assert_eq!(session.count(&people).unwrap(), inserted);
    let core = session.core().clone();
    for table in session.tables() {
        for index in &table.indexes {
            let structure = engine::btree::check(&core, session.context(), &index.segment).unwrap();
            assert_eq!(structure.problems, Vec::<String>::new(), "{}", index.name);
            let mut cursor = session.range(index, Bound::Unbounded, Bound::Unbounded, false).unwrap();
            let mut entries = 0;
            while cursor.next(&mut session).unwrap().is_some() {
                entries += 1;
            }
            assert_eq!(entries, session.count(&table).unwrap(), "{}", index.name);
        }
    }
    assert_eq!(session.check_space().unwrap(), Vec::<String>::new());
}

fn story(name: &str, seconds: u64) {
    let directory = directory(name);
    let instance = Instance::create(environment(), config(directory.clone())).unwrap();
    set_up(&mut instance.session("set up").unwrap());
    let (transfers, first) = work(&instance, seconds);
    assert!(transfers > 50 && first > 50, "{transfers} transfers, {first} inserts");
    check(&instance, first);
    // As after kill -9: the next open recovers.
    instance.shutdown(Shutdown::Abort).unwrap();
    let instance = Instance::open(environment(), InstanceConfig::new(directory.clone())).unwrap();
    check(&instance, first);
    let (_, second) = work(&instance, 1);
    instance.shutdown(Shutdown::Immediate).unwrap();
    let instance = Instance::open(environment(), InstanceConfig::new(directory.clone())).unwrap();
    check(&instance, first + second);
    drop(instance);
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn money_is_neither_made_nor_lost() {
    story("session-threads", number("REDOUBT_SECONDS", 3));
}
