//! What is full, damaged or in the way: the session is told what to do, what was committed stays, and nothing is wrong.

use crate::machine::{DIRECTORY, KIB, create, create_table, ids, open, row, small, storage};
use engine::space::IndexDef;
use engine::{EngineError, Instance, Session, Shutdown, Value};
use std::path::Path;

const TEXT_BYTES: usize = 1000;

/// Inserts and commits rows from `first` on until one does not fit; its number and the error.
fn fill(session: &mut Session, name: &str, first: i64) -> (i64, EngineError) {
    let table = session.table(name).unwrap();
    let text = "x".repeat(TEXT_BYTES);
    for id in first..100_000 {
        if let Err(error) = session.insert(&table, &row(id, &text)) {
            return (id, error);
        }
        session.commit().unwrap();
    }
    panic!("it never was full");
}

/// The disk is full: the file cannot grow. After somebody made room, it goes on where it was.
#[test]
fn a_full_disk_is_told_and_survived() {
    let storage = storage();
    let instance = create(&storage);
    let mut session = instance.session("test").unwrap();
    create_table(&mut session, "t");
    let index = IndexDef {
        name: "t_id".into(),
        table: "t".into(),
        columns: vec!["id".into()],
        unique: true,
        tablespace: None,
    };
    session.create_index(&index).unwrap();
    storage.set_capacity(Some(0));
    let (first_refused, error) = fill(&mut session, "t", 0);
    assert!(first_refused > 50, "{first_refused}");
    let text = error.to_string();
    assert!(matches!(error, EngineError::TablespaceFull { .. }), "{text}");
    for words in ["tablespace USERS", "found no space", "ADD DATAFILE"] {
        assert!(text.contains(words), "{text}");
    }
    assert_eq!(instance.crashed(), None);
    assert_eq!(ids(&mut session, "t"), (0..first_refused).collect::<Vec<_>>());
    // The transaction of the refused row goes on, and what is there can be changed.
    let table = session.table("t").unwrap();
    let index = session.index("t_id").unwrap();
    let (address, _) = session.lookup(&index, &[Value::Integer(7)]).unwrap().remove(0);
    session.delete(&table, address).unwrap();
    session.commit().unwrap();
    storage.set_capacity(None);
    let text = "x".repeat(TEXT_BYTES);
    for id in first_refused..first_refused + 300 {
        session.insert(&table, &row(id, &text)).unwrap();
    }
    session.commit().unwrap();
    instance.shutdown(Shutdown::Abort).unwrap();
    let instance = open(&storage);
    let mut session = instance.session("test").unwrap();
    let expected: Vec<_> = (0..first_refused + 300).filter(|id| *id != 7).collect();
    assert_eq!(ids(&mut session, "t"), expected);
}

/// One transaction needs more undo than there is: it is told, and can be rolled back.
#[test]
fn no_space_for_undo_is_told_and_survived() {
    let storage = storage();
    let instance = create(&storage);
    let mut session = instance.session("test").unwrap();
    create_table(&mut session, "t");
    let table = session.table("t").unwrap();
    let text = "x".repeat(TEXT_BYTES);
    let mut addresses = Vec::new();
    for id in 0..300 {
        addresses.push(session.insert(&table, &row(id, &text)).unwrap());
    }
    session.commit().unwrap();
    storage.set_capacity(Some(0));
    let error = 'full: {
        for round in 0..1000 {
            for address in &addresses {
                let other = "y".repeat(TEXT_BYTES - round % 2);
                if let Err(error) = session.update(&table, *address, &row(-1, &other)) {
                    break 'full error;
                }
            }
        }
        panic!("it never was full");
    };
    let text = error.to_string();
    assert!(text.contains("tablespace UNDO") && text.contains("found no space"), "{text}");
    session.rollback().unwrap();
    assert_eq!(ids(&mut session, "t"), (0..300).collect::<Vec<_>>());
    // What was rolled back is free again.
    session.update(&table, addresses[0], &row(1000, "small")).unwrap();
    session.commit().unwrap();
    assert_eq!(instance.crashed(), None);
    instance.shutdown(Shutdown::Immediate).unwrap();
    let instance = open(&storage);
    let mut session = instance.session("test").unwrap();
    assert_eq!(ids(&mut session, "t"), (1..300).chain([1000]).collect::<Vec<_>>());
}

/// One block of one table is damaged on disk: who reads it is told which, all others go on.
#[test]
fn a_damaged_block_is_named_and_nothing_else_suffers() {
    let storage = storage();
    let instance = create(&storage);
    let mut session = instance.session("test").unwrap();
    for name in ["a", "b"] {
        create_table(&mut session, name);
        let table = session.table(name).unwrap();
        for id in 0..100 {
            session.insert(&table, &row(id, &"x".repeat(TEXT_BYTES))).unwrap();
        }
        session.commit().unwrap();
    }
    let table = session.table("a").unwrap();
    let mut scan = session.scan(&table).unwrap();
    let (damaged, _) = scan.next(&mut session).unwrap().unwrap();
    drop((scan, session));
    instance.shutdown(Shutdown::Immediate).unwrap();
    let users = Path::new("/db/users01.dbf");
    storage.damage(users, u64::from(damaged.page.block) * 4096 + 2000, b"a scratch");

    let instance = open(&storage);
    let mut session = instance.session("test").unwrap();
    let table = session.table("a").unwrap();
    for _ in 0..2 {
        let error = session.get(&table, damaged).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, EngineError::CorruptBlock { id, .. } if id == damaged.page), "{text}");
        assert!(text.contains("users01.dbf block") && text.contains("restore the file"), "{text}");
    }
    let mut scan = session.scan(&table).unwrap();
    let result = loop {
        match scan.next(&mut session) {
            Ok(Some(_)) => {}
            other => break other,
        }
    };
    assert!(matches!(result, Err(EngineError::CorruptBlock { .. })), "a scan leaves nothing out silently");
    assert_eq!(ids(&mut session, "b"), (0..100).collect::<Vec<_>>());
    assert_eq!(instance.crashed(), None);
    drop(scan);
    session.drop_table("a").unwrap();
    instance.shutdown(Shutdown::Immediate).unwrap();
    open(&storage);
}

/// A data file is gone, cut off, or another database's: the database is not opened, and says which and why.
#[test]
fn a_wrong_file_is_named() {
    use io::Storage;
    let storage = storage();
    create(&storage).shutdown(Shutdown::Immediate).unwrap();
    let users = Path::new("/db/users01.dbf");
    let other = storage.fork();
    io::Storage::remove(&other, users).unwrap();
    let refusal =
        |storage: &io::sim::SimStorage| crate::machine::try_open(storage).err().unwrap().to_string();
    assert!(refusal(&other).contains("users01.dbf: no such file"), "{}", refusal(&other));
    let content = storage.read(users).unwrap();
    other.replace(users, &content[..64 * KIB as usize]).unwrap();
    assert!(refusal(&other).contains("was cut off or replaced"), "{}", refusal(&other));
    other.replace(users, &storage.read(Path::new("/db/undo01.dbf")).unwrap()).unwrap();
    assert!(refusal(&other).contains("expected file 4 block 0, found file 2"), "{}", refusal(&other));
    // A file of the same name and number from elsewhere.
    let elsewhere = crate::machine::storage();
    let environment = engine::Environment { seed: units::Seed(8), ..crate::machine::environment(&elsewhere) };
    Instance::create(environment, small(DIRECTORY)).unwrap().shutdown(Shutdown::Immediate).unwrap();
    other.replace(users, &elsewhere.read(users).unwrap()).unwrap();
    assert!(refusal(&other).contains("belongs to another database"), "{}", refusal(&other));
    other.replace(users, &content).unwrap();
    open(&other);
}
