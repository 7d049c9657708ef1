//! The instance ends without warning: what was acknowledged is there, what was not committed is not, again and again.

use crate::accounts;
use crate::machine::{alert, create, create_table, create_with, ids, open, row, storage, try_open};
use engine::{EngineError, Shutdown};
use io::sim::{Call, Fault, SimStorage, Trouble};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use units::Seed;

#[test]
fn abort_loses_what_was_not_committed_and_nothing_else() {
    let storage = storage();
    let instance = create(&storage);
    let mut session = instance.session("test").unwrap();
    create_table(&mut session, "t");
    let table = session.table("t").unwrap();
    session.insert(&table, &row(1, "committed")).unwrap();
    session.commit().unwrap();
    session.insert(&table, &row(2, "not committed")).unwrap();
    instance.shutdown(Shutdown::Abort).unwrap();
    assert!(session.commit().is_err());

    for _ in 0..3 {
        let instance = open(&storage);
        let mut session = instance.session("test").unwrap();
        assert_eq!(ids(&mut session, "t"), [1]);
        instance.shutdown(Shutdown::Abort).unwrap();
    }
    assert!(alert(&storage).contains("opening after a crash"));
}

/// A fork for each `every`th call of `transfers` transfers, with the transfers acknowledged by then.
fn forks(storage: &SimStorage, transfers: i64, every: u64) -> Vec<(u64, SimStorage, i64)> {
    let instance = open(storage);
    let last = Arc::new(AtomicI64::new(-1));
    let forks = Arc::new(Mutex::new(Vec::new()));
    let (known, keep) = (last.clone(), forks.clone());
    storage.on_call(Some(Arc::new(move |storage, info| {
        if info.number.is_multiple_of(every) {
            keep.lock().unwrap().push((info.number, storage.fork(), known.load(Ordering::SeqCst)));
        }
    })));
    let mut session = instance.session("transfers").unwrap();
    accounts::run(&mut session, 0..transfers, Seed(3), &|n| last.store(n, Ordering::SeqCst)).unwrap();
    storage.on_call(None);
    drop(session);
    drop(instance);
    std::mem::take(&mut *forks.lock().unwrap())
}

/// The numbers that are to be there: all up to the last acknowledged one that were not rolled back; the next one may be.
fn check(number: u64, journal: &[i64], acknowledged: i64) {
    let committed = |upto: i64| (0..=upto).filter(|n| n % 5 != 4).collect::<Vec<_>>();
    let without = committed(acknowledged);
    let next = (acknowledged + 1..).find(|n| n % 5 != 4).expect("endless");
    let with = committed(next);
    assert!(
        journal == without || journal == with,
        "call {number}: acknowledged up to {acknowledged}, in the journal {journal:?}"
    );
}

/// The ways in which blocks are written, and what mends them when the power goes in the middle.
const WAYS: [(&str, &str); 4] =
    [("none", "redo"), ("none", "doublewrite"), ("setall", "redo"), ("setall", "doublewrite")];

fn prepared(way: (&str, &str)) -> SimStorage {
    let storage = storage();
    let parameters = [("filesystemio_options", way.0), ("torn_page_protection", way.1)];
    let instance = create_with(&storage, &parameters);
    accounts::prepare(&instance);
    instance.shutdown(Shutdown::Immediate).unwrap();
    storage
}

#[test]
fn the_power_may_go_at_any_call() {
    for way in WAYS {
        let forks = forks(&prepared(way), 200, 7);
        assert!(forks.len() > 50, "{way:?}: {}", forks.len());
        for (number, fork, acknowledged) in forks {
            fork.crash(Seed(number));
            let instance = open(&fork);
            check(number, &accounts::check(&instance), acknowledged);
            // What recovery left is a database like any other.
            let mut session = instance.session("again").unwrap();
            accounts::run(&mut session, 10_000..10_020, Seed(number), &|_| ()).unwrap();
            drop(session);
            assert_eq!(instance.crashed(), None);
            instance.shutdown(Shutdown::Immediate).unwrap();
            let again = accounts::check(&open(&fork));
            assert_eq!(again.iter().filter(|n| **n >= 10_000).count(), 16, "{way:?} call {number}");
        }
    }
}

/// The power goes again while recovery runs, at call after call.
#[test]
fn the_power_may_go_during_recovery() {
    let forks = forks(&prepared(("setall", "redo")), 300, 97);
    for (number, fork, acknowledged) in forks.into_iter().rev().step_by(3).take(3) {
        fork.crash(Seed(number));
        let again = Arc::new(Mutex::new(Vec::new()));
        let keep = again.clone();
        let observed = fork.fork();
        observed.on_call(Some(Arc::new(move |storage, info| {
            if info.number.is_multiple_of(5) {
                keep.lock().unwrap().push((info.number, storage.fork()));
            }
        })));
        check(number, &accounts::check(&open(&observed)), acknowledged);
        observed.on_call(None);
        let again = std::mem::take(&mut *again.lock().unwrap());
        assert!(again.len() > 10, "{}", again.len());
        for (second, fork) in again {
            fork.crash(Seed(second));
            check(second, &accounts::check(&open(&fork)), acknowledged);
        }
    }
}

/// The process is killed in the middle of a write, the database is opened and used, and only then the power goes. What was being
/// written at the kill could be read afterwards and was not durable: nothing that was built on it may miss it now.
#[test]
fn the_power_may_go_soon_after_a_kill() {
    for way in WAYS {
        let forks = forks(&prepared(way), 150, 13);
        for (number, fork, acknowledged) in forks {
            fork.kill(Seed(number));
            let instance = open(&fork);
            check(number, &accounts::check(&instance), acknowledged);
            let mut session = instance.session("again").unwrap();
            accounts::run(&mut session, 10_000..10_010, Seed(number), &|_| ()).unwrap();
            session.alter_system(&engine::AlterSystem::Checkpoint).unwrap();
            fork.crash(Seed(number + 1));
            drop((session, instance));
            let journal = accounts::check(&open(&fork));
            let (old, new): (Vec<_>, Vec<_>) = journal.into_iter().partition(|n| *n < 10_000);
            check(number, &old, acknowledged);
            assert_eq!(new.len(), 8, "{way:?} call {number}");
        }
    }
}

/// Each kind of call fails once, at many places: the session is told or the instance stops itself, and after a restart
/// the law holds.
#[test]
fn a_failing_call_costs_no_commit() {
    let mut stopped = 0;
    let kinds = [(Call::Write, 5), (Call::Read, 5), (Call::Write, 28), (Call::Name, 5)];
    for (way, (on, errno)) in [("none", "redo"), ("setall", "doublewrite")]
        .into_iter()
        .flat_map(|way| kinds.map(|kind| (way, kind)))
    {
        let prepared = prepared(way);
        let mut nth = 1;
        loop {
            let storage = prepared.fork();
            storage.crash(Seed(nth));
            let Ok(instance) = try_open(&storage) else { panic!("it opened before") };
            let last = Arc::new(AtomicI64::new(-1));
            storage.inject(Fault { on, nth, for_ever: false, trouble: Trouble::Errno(errno) });
            let known = last.clone();
            let mut session = instance.session("transfers").unwrap();
            let result =
                accounts::run(&mut session, 0..100, Seed(3), &move |n| known.store(n, Ordering::SeqCst));
            let fired = storage.fired() > 0;
            stopped += u64::from(instance.crashed().is_some());
            if let Err(EngineError::Crashed(_)) = result {
                assert!(instance.crashed().is_some());
            }
            drop((session, instance));
            storage.heal();
            let fork = storage.fork();
            fork.crash(Seed(nth + 1));
            let acknowledged = last.load(Ordering::SeqCst);
            let journal = accounts::check(&open(&fork));
            check(nth, &journal, acknowledged);
            if !fired {
                assert!(result.is_ok());
                break;
            }
            nth += 1 + nth / 6;
        }
    }
    assert!(stopped > 0, "a failed log write stops the instance");
}
