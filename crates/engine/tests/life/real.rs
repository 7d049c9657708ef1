//! The same life on a real directory, with real threads.

use crate::accounts;
use crate::machine::{KIB, create_table, ids, row, small};
use engine::{Background, EngineError, Environment, Instance, InstanceConfig, Placement, Shutdown};
use io::{IoError, RealStorage};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tempfile::TempDir;
use units::{Clock, Nanos, Seed, clock};

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

/// Sessions move money at the same time, the instance is stopped under them, and every acknowledged transfer is there.
#[test]
fn many_sessions_and_an_abort() {
    stop_under_load(Shutdown::Abort);
}

/// As above; sessions that wait for each other's rows are sent away, what they had begun is rolled back, and the next open has
/// nothing to recover.
#[test]
fn many_sessions_and_a_shutdown() {
    stop_under_load(Shutdown::Immediate);
}

fn stop_under_load(how: Shutdown) {
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
        instance.shutdown(how).unwrap();
    });
    let instance = Instance::open(environment(), InstanceConfig::new(folder.path())).unwrap();
    let alert = std::fs::read_to_string(instance.alert_log()).unwrap();
    assert_eq!(alert.contains("opening after a crash"), how == Shutdown::Abort, "{alert}");
    let journal = accounts::check(&instance);
    for (n, last) in last.iter().enumerate() {
        let last = last.load(Ordering::SeqCst);
        let own: Vec<_> = journal.iter().filter(|number| **number / 100_000 == n as i64 + 1).collect();
        assert!(own.contains(&&last), "session {n}: {last} was acknowledged");
        assert!(own.len() > 50);
    }
    instance.shutdown(Shutdown::Immediate).unwrap();
}

/// A block device over a file, gone at the end.
struct LoopDevice(PathBuf);

impl LoopDevice {
    fn new(backing: &Path, bytes: u64) -> Self {
        std::fs::write(backing, vec![0; bytes as usize]).unwrap();
        let output = Command::new("losetup").args(["--find", "--show"]).arg(backing).output().unwrap();
        assert!(output.status.success(), "this test needs root and a loop device: {output:?}");
        Self(String::from_utf8(output.stdout).unwrap().trim().into())
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.0).status();
    }
}

/// The data file is a block device: it is taken when it is blank, used to its end, and blank again when the creation fails.
#[test]
fn on_a_block_device() {
    let folder = folder();
    let device = LoopDevice::new(&folder.path().join("backing"), 1024 * KIB);
    let mut config = small(folder.path().join("db")).with("filesystemio_options", "setall");
    config.placement.data = Some(device.0.clone());
    let impossible = InstanceConfig {
        placement: Placement { redo: vec![device.0.clone()], ..config.placement.clone() },
        ..config.clone()
    };
    let refused = Instance::create(environment(), impossible).err().unwrap().to_string();
    assert!(refused.contains("would hold two files"), "{refused}");
    let too_large = InstanceConfig { data_bytes: 2048 * KIB, ..config.clone() };
    let refused = Instance::create(environment(), too_large).err().unwrap().to_string();
    assert!(refused.contains("no space"), "{refused}");
    let unlucky = InstanceConfig { redo_bytes: 1, ..config.clone() };
    let refused = Instance::create(environment(), unlucky).err().unwrap().to_string();
    assert!(refused.contains("log group 1"), "{refused}");

    let instance = Instance::create(environment(), config.clone()).unwrap();
    let mut session = instance.session("test").unwrap();
    create_table(&mut session, "t");
    let table = session.table("t").unwrap();
    let text = "x".repeat(1000);
    let mut count = 0;
    let full = loop {
        match session.insert(&table, &row(count, &text)) {
            Ok(_) => count += 1,
            Err(error) => break error.to_string(),
        }
    };
    assert!(count > 500 && full.contains("tablespace USERS"), "{count} {full}");
    session.commit().unwrap();
    instance.shutdown(Shutdown::Abort).unwrap();
    drop(session);
    let instance = Instance::open(environment(), InstanceConfig::new(folder.path().join("db"))).unwrap();
    let mut session = instance.session("test").unwrap();
    assert_eq!(ids(&mut session, "t").len() as i64, count);
    drop((session, instance));
    config.directory = folder.path().join("other");
    let refused = Instance::create(environment(), config).err().unwrap().to_string();
    assert!(refused.contains("holds data at byte"), "{refused}");
    Instance::open(environment(), InstanceConfig::new(folder.path().join("db"))).unwrap();
}

/// `kill -9`, again and again on the same database: each acknowledged transfer is there, and no money is made or lost.
#[test]
fn killed_again_and_again() {
    const SESSIONS: i64 = 3;
    for (mode, protection) in [("none", "redo"), ("setall", "redo"), ("setall", "doublewrite")] {
        let folder = folder();
        let config = small(folder.path()).with("filesystemio_options", mode);
        let config = config.with("torn_page_protection", protection);
        let instance = Instance::create(environment(), config).unwrap();
        accounts::prepare(&instance);
        instance.shutdown(Shutdown::Immediate).unwrap();
        let mut told = Vec::new();
        for round in 0..4 {
            let first = (round + 1) * 10_000_000;
            let mut child = Command::new(env!("CARGO_BIN_EXE_transfers"))
                .arg(folder.path())
                .args([first.to_string(), SESSIONS.to_string()])
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut output = child.stdout.take().unwrap();
            // So many transfers, of 9 bytes each, and a little more.
            let mut text = vec![0; 9 * 40 * (round as usize + 1)];
            output.read_exact(&mut text).unwrap();
            clock::sleep(Nanos::millis(7 * round as u64));
            child.kill().unwrap();
            output.read_to_end(&mut text).unwrap();
            child.wait().unwrap();
            let text = String::from_utf8(text).unwrap();
            told.extend(text.lines().map(|line| line.parse::<i64>().unwrap()));

            let instance = Instance::open(environment(), InstanceConfig::new(folder.path())).unwrap();
            let journal = accounts::check(&instance);
            let missing: Vec<_> = told.iter().filter(|n| journal.binary_search(n).is_err()).collect();
            assert!(missing.is_empty(), "{mode} {protection}, round {round}: {missing:?}");
            // One transfer of each session may have been committed and not told.
            assert!(journal.len() as i64 - told.len() as i64 <= (round + 1) * SESSIONS);
            drop(instance);
        }
        assert!(told.len() >= 400, "{}", told.len());
    }
}
