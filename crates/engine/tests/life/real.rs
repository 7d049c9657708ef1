//! The same life on a real directory, with real threads.

use crate::accounts;
use crate::machine::{create_table, ids, row, small};
use engine::{Background, EngineError, Environment, Instance, InstanceConfig, Shutdown};
use io::{IoError, RealStorage};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tempfile::TempDir;
use units::{Clock, Seed};

fn environment() -> Environment {
    Environment {
        storage: Arc::new(RealStorage),
        clock: Clock::Real,
        background: Background::Threads,
        seed: Seed(7),
    }
}

/// On a disk, not in memory.
fn folder() -> TempDir {
    tempfile::Builder::new().prefix("redoubt-engine-").tempdir_in("/var/tmp").unwrap()
}

fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok());
    names.map(|name| name.trim().to_owned()).collect()
}

#[test]
fn in_every_mode_it_commits_aborts_and_recovers() {
    for mode in ["none", "asynch", "directio", "setall", "concurrent"] {
        let folder = folder();
        let config = small(folder.path()).with("filesystemio_options", mode);
        let instance = Instance::create(environment(), config.clone()).unwrap();
        let mut session = instance.session("test").unwrap();
        create_table(&mut session, "t");
        let table = session.table("t").unwrap();
        for id in 0..200 {
            session.insert(&table, &row(id, "hello")).unwrap();
            session.commit().unwrap();
        }
        session.insert(&table, &row(1000, "not committed")).unwrap();
        let refused = Instance::open(environment(), config.clone()).err().unwrap();
        assert!(
            matches!(&refused, EngineError::Io(error) if matches!(**error, IoError::Locked { .. })),
            "{refused}"
        );
        instance.shutdown(Shutdown::Abort).unwrap();
        drop(session);

        let instance = Instance::open(environment(), InstanceConfig::new(folder.path())).unwrap();
        let mut session = instance.session("test").unwrap();
        assert_eq!(ids(&mut session, "t"), (0..200).collect::<Vec<_>>(), "{mode}");
        instance.shutdown(Shutdown::Immediate).unwrap();
    }
}

/// Sessions move money at the same time, the instance is aborted under them, and every acknowledged transfer is there.
#[test]
fn many_sessions_and_an_abort() {
    let folder = folder();
    let instance = Instance::create(environment(), small(folder.path())).unwrap();
    accounts::prepare(&instance);
    let seen = threads();
    for name in ["lgwr", "dbw0", "ckpt", "smon"] {
        assert!(seen.iter().any(|other| other == name), "{name} in {seen:?}");
    }
    const SESSIONS: i64 = 4;
    let last: Vec<AtomicI64> = (0..SESSIONS).map(|_| AtomicI64::new(-1)).collect();
    let base = |n: usize| 100_000 * (n as i64 + 1);
    std::thread::scope(|scope| {
        for (n, last) in last.iter().enumerate() {
            let mut session = instance.session("transfers").unwrap();
            scope.spawn(move || {
                let mut next = base(n);
                loop {
                    let seed = Seed(next as u64);
                    let noted = |number| last.store(number, Ordering::SeqCst);
                    match accounts::run(&mut session, next..next + 50_000, seed, &noted) {
                        Err(EngineError::Deadlock { .. }) => {
                            session.rollback().unwrap();
                            next = last.load(Ordering::SeqCst).max(next) + 1;
                        }
                        Err(EngineError::ShuttingDown | EngineError::Crashed(_)) => break,
                        other => panic!("{other:?}"),
                    }
                }
            });
        }
        let enough = || last.iter().all(|last| last.load(Ordering::SeqCst) % 100_000 > 100);
        while !enough() {
            std::thread::yield_now();
        }
        instance.shutdown(Shutdown::Abort).unwrap();
    });
    let instance = Instance::open(environment(), InstanceConfig::new(folder.path())).unwrap();
    let journal = accounts::check(&instance);
    for (n, last) in last.iter().enumerate() {
        let last = last.load(Ordering::SeqCst);
        let own: Vec<_> = journal.iter().filter(|number| **number / 100_000 == n as i64 + 1).collect();
        assert!(own.contains(&&last), "session {n}: {last} was acknowledged");
        assert!(own.len() > 50);
    }
    instance.shutdown(Shutdown::Immediate).unwrap();
}
