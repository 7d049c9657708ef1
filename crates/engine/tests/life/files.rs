//! Files and parameters of a database in use: tablespaces come, grow and go; parameters stay.

use crate::machine::{KIB, alert, create, create_table, ids, open, row, storage};
use engine::files::admin::{FileSpec, Growth};
use engine::files::control::TablespaceKind;
use engine::parameter::{Parameter, Scope};
use engine::{AlterSystem, Applied, Instance, Shutdown};
use io::Storage;
use std::path::Path;
use std::sync::{Arc, Mutex};
use units::Seed;
use waits::SessionKind;

fn spec(name: &str, bytes: u64, next_bytes: u64, max_bytes: u64) -> FileSpec {
    FileSpec { path: Path::new("/db").join(name), bytes, next_bytes, max_bytes }
}

fn names(instance: &Instance) -> Vec<String> {
    instance.tablespace().into_iter().map(|row| row.name).collect()
}

#[test]
fn a_tablespace_comes_and_goes() {
    let storage = storage();
    let instance = create(&storage);
    let core = &instance.core;
    let context = core.context(SessionKind::Foreground, "test").unwrap();
    let permanent = TablespaceKind::Permanent;
    let files = [spec("a1.dbf", 256 * KIB, 0, 0), spec("a2.dbf", 256 * KIB, 0, 0)];
    core.create_tablespace(&context, "archive", permanent, &files).unwrap();
    core.add_file(&context, "Archive", &spec("a3.dbf", 200 * KIB, 0, 0)).unwrap();
    let refusals = [
        core.create_tablespace(&context, "ARCHIVE", permanent, &[spec("b.dbf", 1, 0, 0)]).unwrap_err(),
        core.create_tablespace(&context, "b", permanent, &[]).unwrap_err(),
        core.create_tablespace(&context, "b", permanent, &files[..1]).unwrap_err(),
        core.add_file(&context, "nowhere", &spec("b.dbf", 1, 0, 0)).unwrap_err(),
        core.drop_tablespace(&context, "system").unwrap_err(),
    ];
    let words = ["exists already", "needs a file", "a1.dbf exists already", "there are SYSTEM", "catalog"];
    for (refusal, words) in refusals.iter().zip(words) {
        assert!(refusal.to_string().contains(words), "{refusal}");
    }
    assert_eq!(names(&instance), ["SYSTEM", "UNDO", "TEMP", "USERS", "ARCHIVE"]);
    assert_eq!(instance.datafile().iter().filter(|file| file.tablespace == 4).count(), 3);
    instance.shutdown(Shutdown::Abort).unwrap();

    let instance = open(&storage);
    assert_eq!(names(&instance).len(), 5);
    let context = instance.core.context(SessionKind::Foreground, "test").unwrap();
    instance.core.drop_tablespace(&context, "archive").unwrap();
    assert_eq!(names(&instance).len(), 4);
    assert!(!storage.exists(Path::new("/db/a1.dbf")) && !storage.exists(Path::new("/db/a3.dbf")));
    instance.shutdown(Shutdown::Immediate).unwrap();
    assert_eq!(names(&open(&storage)).len(), 4);
}

/// A tablespace is made and another dropped while the power may go at any call: each is there with all its files, or gone
/// with all of them.
#[test]
fn half_a_tablespace_is_never_left() {
    let storage = storage();
    let instance = create(&storage);
    let forks = Arc::new(Mutex::new(Vec::new()));
    let keep = forks.clone();
    {
        let core = &instance.core;
        let context = core.context(SessionKind::Foreground, "test").unwrap();
        let permanent = TablespaceKind::Permanent;
        core.create_tablespace(&context, "old", permanent, &[spec("old.dbf", 256 * KIB, 0, 0)]).unwrap();
        storage.on_call(Some(Arc::new(move |storage, info| {
            keep.lock().unwrap().push((info.number, storage.fork()));
        })));
        let files = [spec("new1.dbf", 256 * KIB, 0, 0), spec("new2.dbf", 256 * KIB, 0, 0)];
        core.create_tablespace(&context, "new", permanent, &files).unwrap();
        core.drop_tablespace(&context, "old").unwrap();
        storage.on_call(None);
    }
    drop(instance);
    let mut seen = std::collections::BTreeSet::new();
    for (number, fork) in std::mem::take(&mut *forks.lock().unwrap()) {
        fork.crash(Seed(number));
        let instance = open(&fork);
        let names = names(&instance);
        for (name, files) in [("NEW", ["new1.dbf", "new2.dbf"].as_slice()), ("OLD", &["old.dbf"])] {
            let there = names.iter().any(|other| other == name);
            for file in files {
                assert_eq!(fork.exists(&Path::new("/db").join(file)), there, "call {number}: {name} {file}");
            }
        }
        seen.insert(names.len());
        if names.len() == 4 {
            let context = instance.core.context(SessionKind::Foreground, "test").unwrap();
            let again = [spec("new1.dbf", 256 * KIB, 0, 0)];
            instance.core.create_tablespace(&context, "new", TablespaceKind::Permanent, &again).unwrap();
        }
        instance.shutdown(Shutdown::Immediate).unwrap();
    }
    assert!(seen.contains(&5) && seen.contains(&6), "{seen:?}");
}

#[test]
fn a_file_grows_to_its_limit_and_no_further_than_the_disk() {
    let storage = storage();
    let instance = create(&storage);
    let core = &instance.core;
    let context = core.context(SessionKind::Foreground, "test").unwrap();
    let files = [spec("a.dbf", 256 * KIB, 128 * KIB, 640 * KIB)];
    core.create_tablespace(&context, "a", TablespaceKind::Permanent, &files).unwrap();
    let number = instance.datafile().last().unwrap().number;
    let grow = |blocks| core.grow_file(&context, number, blocks).unwrap();
    assert_eq!(grow(10), Growth::Grown(64), "large enough already");
    assert_eq!(grow(65), Growth::Grown(96), "by its step");
    storage.set_capacity(Some(0));
    assert!(matches!(grow(97), Growth::Stuck(why) if why.contains("no space")));
    storage.set_capacity(None);
    assert_eq!(grow(150), Growth::Grown(150), "more than a step");
    assert_eq!(grow(151), Growth::Grown(160), "its limit");
    assert!(matches!(grow(161), Growth::Stuck(why) if why.contains("limit of 640 KiB")));
    instance.shutdown(Shutdown::Abort).unwrap();
    let instance = open(&storage);
    assert_eq!(instance.datafile().last().unwrap().blocks, 160);
}

/// Twice as many rows as the first file of USERS can hold.
#[test]
fn a_table_outgrows_its_first_file() {
    let storage = storage();
    let instance = create(&storage);
    let mut session = instance.session("test").unwrap();
    create_table(&mut session, "t");
    let table = session.table("t").unwrap();
    let text = "x".repeat(500);
    for id in 0..1000 {
        session.insert(&table, &row(id, &text)).unwrap();
    }
    session.commit().unwrap();
    let bytes = instance.datafile().iter().find(|file| file.name.ends_with("users01.dbf")).unwrap().bytes;
    assert!(bytes > 500 * 1000, "{bytes}");
    instance.shutdown(Shutdown::Abort).unwrap();
    let instance = open(&storage);
    let mut session = instance.session("test").unwrap();
    assert_eq!(ids(&mut session, "t"), (0..1000).collect::<Vec<_>>());
}

/// What was read and written is told per file and per kind of file.
#[test]
fn every_transfer_is_counted() {
    let storage = storage();
    let instance = create(&storage);
    let mut session = instance.session("test").unwrap();
    create_table(&mut session, "t");
    let table = session.table("t").unwrap();
    for id in 0..200 {
        session.insert(&table, &row(id, &"x".repeat(1000))).unwrap();
        session.commit().unwrap();
    }
    instance.shutdown(Shutdown::Immediate).unwrap();

    let instance = open(&storage);
    instance.core.parameters.set(Parameter::CheckpointsToAlert, "true").unwrap();
    let mut session = instance.session("test").unwrap();
    let table = session.table("t").unwrap();
    let mut scan = session.scan(&table).unwrap();
    let mut last = None;
    while let Some((address, _)) = scan.next(&mut session).unwrap() {
        last = Some(address);
    }
    session.update(&table, last.unwrap(), &row(-1, "changed")).unwrap();
    session.commit().unwrap();
    session.alter_system(&AlterSystem::Checkpoint).unwrap();
    let rows = instance.iostat_file();
    let of = |name: &str, number| {
        let row =
            rows.iter().find(|row| row.file_type.name() == name && (row.number == number || number == 0));
        row.unwrap().io
    };
    let users = of("Data File", 4);
    let (read, written) = (users.small_read.bytes + users.large_read.bytes, users.small_write.bytes);
    assert!(read >= 200 * 1000 && written >= 4096, "{users:?}");
    assert!(users.small_read.requests >= users.small_sync_read.requests && users.errors == 0);
    assert!(users.small_read.time.0 + users.large_read.time.0 > 0, "reads take time: {users:?}");
    assert!(of("Log File", 0).small_write.requests > 0);
    assert!(of("Control File", 0).small_write.requests > 0);
    // File by file: the same I/O, and each says where it is.
    let by_file = instance.file_io();
    for kind in ["Log File", "Control File"] {
        let of_kind: Vec<_> = by_file.iter().filter(|row| row.file_type.name() == kind).collect();
        assert!(of_kind.iter().all(|row| row.path.is_some()), "{of_kind:?}");
        let written: u64 = of_kind.iter().map(|row| row.io.small_write.requests).sum();
        assert!(written > 0 && written <= of(kind, 0).small_write.requests, "{kind}: {written}");
    }
    let sysstat = instance.sysstat();
    let value = |name: &str| sysstat.iter().find(|row| row.name == name).unwrap().value;
    assert_eq!(value("user commits"), 1);
    assert!(value("physical reads") * 4096 == value("physical read bytes") && value("physical reads") > 50);
    assert!(value("redo size") > 0 && value("redo writes") > 0 && value("physical writes") > 0);
    assert!(alert(&storage).contains("checkpoint at redo position"));
    let waits = instance.core.waits.totals().foreground;
    assert!(waits.event(waits::Event::LogFileSync).waits >= 1);
    let history = &instance.core.history;
    while !history.step() {}
    assert_eq!(history.recent().len(), 1, "a simulation samples when it is asked to");
}

/// A commit that does not wait is seen at once, and on disk soon.
#[test]
fn commits_need_not_wait() {
    let storage = storage();
    let instance = create(&storage);
    let mut session = instance.session("test").unwrap();
    create_table(&mut session, "t");
    let table = session.table("t").unwrap();
    let core = instance.core.clone();
    let context = core.context(SessionKind::Foreground, "test").unwrap();
    core.set_parameter(&context, "commit_wait", "nowait", None).unwrap();
    let calls = storage.calls();
    for id in 0..20 {
        session.insert(&table, &row(id, "nobody waits")).unwrap();
        session.commit().unwrap();
    }
    assert_eq!(storage.calls(), calls, "nothing was written");
    assert_eq!(ids(&mut session, "t").len(), 20);
    core.redo.wait_durable(&core, &context, core.redo.tail_lsn()).unwrap();
    instance.shutdown(Shutdown::Abort).unwrap();
    let instance = open(&storage);
    assert_eq!(ids(&mut instance.session("test").unwrap(), "t").len(), 20);
}

#[test]
fn parameters_are_kept_as_asked() {
    let storage = storage();
    let instance = create(&storage);
    let core = &instance.core;
    let context = core.context(SessionKind::Foreground, "test").unwrap();
    let set = |name, value, scope| core.set_parameter(&context, name, value, scope);
    assert_eq!(set("commit_wait", "nowait", None).unwrap(), Applied::Now);
    assert_eq!(set("commit_logging", "batch", Some(Scope::Memory)).unwrap(), Applied::Now);
    assert_eq!(set("db_cache_size", "1m", None).unwrap(), Applied::AtNextStart);
    assert_eq!(set("sort_area_size", "1m", Some(Scope::Spfile)).unwrap(), Applied::AtNextStart);
    for (name, value, scope, words) in [
        ("db_cache_size", "2m", Some(Scope::Memory), "SCOPE = SPFILE"),
        ("db_block_size", "8k", None, "when the database is created"),
        ("undo_tablespace", "users", None, "no undo tablespace"),
        ("undo_tablespace", "undo9", None, "CREATE UNDO TABLESPACE"),
        ("comit_wait", "wait", None, "did you mean commit_wait?"),
    ] {
        let error = set(name, value, scope).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    assert_eq!(core.parameters.choice(Parameter::CommitWait), "nowait");
    assert_eq!(core.parameters.number(Parameter::CacheSize), 512 * KIB);
    instance.shutdown(Shutdown::Immediate).unwrap();
    let instance = open(&storage);
    let parameters = &instance.core.parameters;
    assert_eq!(parameters.choice(Parameter::CommitWait), "nowait");
    assert_eq!(parameters.choice(Parameter::CommitLogging), "immediate");
    assert_eq!(parameters.number(Parameter::CacheSize), 1024 * KIB);
    assert_eq!(parameters.number(Parameter::SortAreaSize), 1024 * KIB);
    assert!(alert(&storage).contains("ALTER SYSTEM SET db_cache_size"));
}
