//! A database is made: whole, or not at all.

use crate::machine::{
    DIRECTORY, alert, create, create_table, environment, ids, open, row, small, storage, try_open,
};
use engine::{EngineError, Instance, InstanceConfig, Placement, Shutdown};
use io::sim::{Call, Fault, SimStorage, Trouble};
use io::{IoError, Storage};
use std::path::Path;
use std::sync::{Arc, Mutex};
use units::Seed;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

fn exists(storage: &SimStorage) -> bool {
    Instance::exists(storage, Path::new(DIRECTORY))
}

#[test]
fn is_made_used_closed_and_opened_again() {
    let storage = storage();
    assert!(!exists(&storage));
    let instance = create(&storage);
    assert!(exists(&storage));
    let mut session = instance.session("test").unwrap();
    create_table(&mut session, "t");
    let table = session.table("t").unwrap();
    for id in 0..50 {
        session.insert(&table, &row(id, "hello")).unwrap();
    }
    session.commit().unwrap();
    session.insert(&table, &row(1000, "never committed")).unwrap();
    instance.shutdown(Shutdown::Immediate).unwrap();
    assert!(matches!(session.commit(), Err(EngineError::ShuttingDown)));

    let instance = open(&storage);
    assert!(!alert(&storage).contains("after a crash"));
    let mut session = instance.session("test").unwrap();
    assert_eq!(ids(&mut session, "t"), (0..50).collect::<Vec<_>>());
    let rows = instance.tablespace();
    let names: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.contents)).collect();
    assert_eq!(
        names,
        [("SYSTEM", "PERMANENT"), ("UNDO", "UNDO"), ("TEMP", "TEMPORARY"), ("USERS", "PERMANENT")]
    );
}

#[test]
fn is_made_once_and_opened_by_one() {
    let storage = storage();
    let instance = create(&storage);
    let error = Instance::create(environment(&storage), small(DIRECTORY)).err().unwrap();
    assert!(matches!(&error, EngineError::Io(error) if matches!(**error, IoError::Locked { .. })), "{error}");
    assert!(try_open(&storage).is_err());
    instance.shutdown(Shutdown::Immediate).unwrap();
    let error = Instance::create(environment(&storage), small(DIRECTORY)).err().unwrap();
    assert!(matches!(error, EngineError::Exists { kind: "database", .. }), "{error}");
    open(&storage);
    open(&storage);
}

#[test]
fn refuses_what_makes_no_sense_before_it_touches_anything() {
    for (config, words) in [
        (small(DIRECTORY).with("db_block_size", "5000"), "a power of two"),
        (small(DIRECTORY).with("db_cash_size", "1m"), "did you mean db_cache_size?"),
        (InstanceConfig { redo_groups: 1, ..small(DIRECTORY) }, "at least 2"),
    ] {
        let storage = storage();
        let error = Instance::create(environment(&storage), config).err().unwrap().to_string();
        assert!(error.contains(words), "{error}");
        assert_eq!(storage.calls(), 0);
    }
    let storage = storage();
    let error = try_open(&storage).err().unwrap().to_string();
    assert!(error.contains("no such file"), "{error}");
    assert!(!storage.exists(Path::new(DIRECTORY)), "looking for a database makes nothing");
}

#[test]
fn puts_each_class_of_files_in_its_place() {
    let storage = storage();
    let mut config = small(DIRECTORY);
    let place = |name: &str| Some(Path::new("/fast").join(name));
    config.placement = Placement {
        data: place("data"),
        undo: place("undo"),
        temp: place("temp"),
        redo: ["redo", "redo2"].iter().filter_map(|name| place(name)).collect(),
        control: place("control"),
    };
    Instance::create(environment(&storage), config).unwrap().shutdown(Shutdown::Immediate).unwrap();
    let names = |directory: &str| {
        let paths = storage.list(Path::new(directory)).unwrap();
        let names = paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
        names.collect::<Vec<_>>().join(" ")
    };
    for (directory, expected) in [
        (DIRECTORY, "alert.log control01.ctl system01.dbf"),
        ("/fast/data", "users01.dbf"),
        ("/fast/undo", "undo01.dbf"),
        ("/fast/temp", "temp01.dbf"),
        ("/fast/redo", "redo01.log redo03.log"),
        ("/fast/redo2", "redo02.log"),
        ("/fast/control", "control02.ctl"),
    ] {
        assert_eq!(names(directory), expected, "{directory}");
    }
    // To open it, its directory is enough.
    let instance = open(&storage);
    assert!(instance.datafile().iter().any(|file| file.name == Path::new("/fast/data/users01.dbf")));
}

#[test]
fn takes_nobodys_file() {
    let storage = storage();
    storage.create_directory(Path::new(DIRECTORY)).unwrap();
    let letter = Path::new("/db/users01.dbf");
    storage.replace(letter, b"a letter to grandmother").unwrap();
    let error = Instance::create(environment(&storage), small(DIRECTORY)).err().unwrap();
    assert!(matches!(&error, EngineError::Exists { kind: "file", .. }), "{error}");
    assert_eq!(storage.list(Path::new(DIRECTORY)).unwrap(), [letter]);
    assert_eq!(storage.read(letter).unwrap(), b"a letter to grandmother");
}

/// The n-th call fails, for n = 1, 2, 3 … until none does: each time the error is told, nothing is left behind, and a second
/// attempt succeeds.
#[test]
fn that_fails_leaves_nothing_behind() {
    for errno in [EIO, ENOSPC] {
        let mut nth = 1;
        loop {
            let storage = storage();
            let trouble = Trouble::Errno(errno);
            storage.inject(Fault { on: Call::Any, nth, for_ever: false, trouble });
            let result = Instance::create(environment(&storage), small(DIRECTORY));
            if storage.fired() == 0 {
                result.unwrap();
                break;
            }
            storage.heal();
            match result {
                // A control file copy that failed is left out; reading again may help.
                Ok(instance) => drop(instance),
                Err(_) => {
                    let left = storage.list(Path::new(DIRECTORY)).unwrap_or_default();
                    assert!(left.is_empty(), "errno {errno}, call {nth}: {left:?}");
                    create(&storage).shutdown(Shutdown::Immediate).unwrap();
                }
            }
            // Every early call, and a sample of the many later ones.
            nth += 1 + nth / 40;
        }
    }
}

/// The power goes at a call, for many calls: afterwards there is a database that opens, or none and it can be made.
#[test]
fn that_the_power_ends_can_be_repeated() {
    let storage = storage();
    let forks = Arc::new(Mutex::new(Vec::new()));
    let keep = forks.clone();
    storage.on_call(Some(Arc::new(move |storage, info| {
        keep.lock().unwrap().push((info.number, storage.fork()));
    })));
    drop(create(&storage));
    storage.on_call(None);
    let (mut none, mut complete) = (0, 0);
    for (number, fork) in std::mem::take(&mut *forks.lock().unwrap()) {
        fork.crash(Seed(number));
        if exists(&fork) {
            complete += 1;
            open(&fork).shutdown(Shutdown::Immediate).unwrap();
        } else {
            none += 1;
            assert!(try_open(&fork).is_err());
            create(&fork).shutdown(Shutdown::Immediate).unwrap();
        }
    }
    assert!(none > 40 && complete > 0, "{none} {complete}");
}
