//! A database on an export, over each version: its process is killed at work, and every acknowledged commit is there afterwards.

use crate::machine::{create_table, ids, row, small};
use crate::stand::{Conf, Server, VERSIONS, alone, mount};
use engine::{Background, Environment, Instance, InstanceConfig, Shutdown};
use io::Storage as _;
use nfs::{Mount, Version};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use units::{Clock, Seed};

const PREFIX: &str = "nfs://here/vfs";
/// Says to the process that is killed where to work; without it that test is none.
const CHILD: &str = "REDOUBT_TEST_VERSION";
/// Commits before the kill.
const COMMITS: i64 = 150;

fn environment(mount: Mount) -> Environment {
    Environment {
        storage: Arc::new(nfs::Storage::new(mount, PREFIX)),
        clock: Clock::Real,
        background: Background::Threads,
        seed: Seed(7),
    }
}

fn directory(version: Version) -> PathBuf {
    Path::new(PREFIX).join(format!("db {version}"))
}

#[test]
fn a_killed_database_recovers() {
    alone("database::a_killed_database_recovers", || {
        let _server = Server::start(&Conf::default());
        for version in VERSIONS {
            let acknowledged = work_and_die("database::child", CHILD, &version.to_string());
            assert_recovered(&version.to_string(), &|| mount(version), &directory(version), acknowledged);
        }
    });
}

/// Every one of the `acknowledged` commits is in the database in `directory`, and nothing that was taken back.
pub fn assert_recovered(what: &str, mount: &dyn Fn() -> Mount, directory: &Path, acknowledged: i64) {
    let instance = Instance::open(environment(mount()), InstanceConfig::new(directory));
    let instance = instance.unwrap_or_else(|error| panic!("{what}: {error}"));
    let refused = Instance::open(environment(mount()), InstanceConfig::new(directory));
    let refused = refused.err().expect("it is open").to_string();
    assert!(refused.contains("is locked by process"), "{what}: {refused}");
    let mut session = instance.session("test").expect("a session");
    let found = ids(&mut session, "t");
    let whole = (0..found.len() as i64).collect::<Vec<_>>();
    assert!(found == whole && found.len() as i64 >= acknowledged, "{what}: {acknowledged}, {found:?}");
    drop(session);
    instance.shutdown(Shutdown::Immediate).expect("an orderly end");
    let storage = nfs::Storage::new(mount(), PREFIX);
    let alert = storage.read(&directory.join("alert.log")).expect("the alert log");
    let alert = String::from_utf8_lossy(&alert);
    assert!(alert.contains("opening after a crash"), "{what}: {alert}");
}

/// Runs test `name` of this program as a process of its own, which finds `value` in its environment, and kills it at work. Result: how many commits were
/// acknowledged.
pub fn work_and_die(name: &str, variable: &str, value: &str) -> i64 {
    let mut child = Command::new(std::env::current_exe().expect("this very program"))
        .args(["--exact", name, "--nocapture"])
        .env(variable, value)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    let mut last = -1;
    for line in BufReader::new(child.stdout.take().expect("a pipe")).lines() {
        let line = line.expect("text");
        if let Some(id) = line.strip_prefix("committed ") {
            last = id.parse().expect("a number");
        }
        if last == COMMITS {
            child.kill().expect("it runs");
        }
    }
    let status = child.wait().expect("it ran");
    assert!(status.code().is_none() && last >= COMMITS, "{value}: {status} after commit {last}");
    last + 1
}

/// Makes a database, and inserts rows until it is killed; every tenth is inserted and never committed first.
pub fn work(mount: Mount, directory: PathBuf) {
    let instance = Instance::create(environment(mount), small(directory)).expect("a database");
    let mut session = instance.session("test").expect("a session");
    create_table(&mut session, "t");
    let table = session.table("t").expect("it was made");
    for id in 0.. {
        if id % 10 == 0 {
            session.insert(&table, &row(-1, "taken back")).expect("a row");
            session.rollback().expect("a rollback");
        }
        session.insert(&table, &row(id, "hello")).expect("a row");
        session.commit().expect("a commit");
        let mut out = std::io::stdout().lock();
        out.write_all(format!("\ncommitted {id}\n").as_bytes()).and_then(|()| out.flush()).expect("a pipe");
    }
}

/// The process that is killed.
#[test]
fn child() {
    let Ok(version) = std::env::var(CHILD) else { return };
    let version = version.parse().expect("a version");
    work(mount(version), directory(version));
}
