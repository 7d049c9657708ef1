//! Space: found again after deletes, given back whole, asked for in vain, added.

use crate::machine::{MIB, create, index, int, open, people, storage, text};
use engine::files::admin::FileSpec;
use engine::files::control::TablespaceKind;
use engine::instance::process::Role;
use engine::space::SegmentSize;
use engine::{AlterSystem, EngineError, IndexDef, Instance, Row, Session, Shutdown, TableDef};
use io::Storage;
use std::path::Path;

fn rows(count: i64) -> impl Iterator<Item = Row> {
    (0..count).map(|n| vec![int(n), text(&"x".repeat(90)), int(n % 10)])
}

fn fill(session: &mut Session, name: &str, count: i64) -> engine::Result<u64> {
    let table = session.table(name)?;
    let done = session.insert_many(&table, &mut rows(count))?;
    session.commit()?;
    Ok(done)
}

fn size(session: &mut Session, name: &str) -> SegmentSize {
    let table = session.table(name).unwrap();
    session.segment_size(&table.segment).unwrap()
}

fn spec(name: &str, bytes: u64, next_bytes: u64) -> FileSpec {
    FileSpec { path: Path::new("/db").join(name), bytes, next_bytes, max_bytes: u64::MAX }
}

fn purge(instance: &Instance) {
    while instance.core.processes.step(&instance.core, Role::SystemMonitor).unwrap() {}
}

fn in_tablespace(name: &str, tablespace: &str) -> TableDef {
    TableDef { tablespace: Some(tablespace.into()), ..people(name) }
}

fn no_problems(session: &mut Session) {
    assert_eq!(session.check_space().unwrap(), Vec::<String>::new());
}

#[test]
fn room_that_deletes_left_is_found_again_also_after_a_restart() {
    let storage = storage(21);
    let mut instance = create(&storage);
    let mut session = instance.session("test").unwrap();
    session.create_table(&people("t")).unwrap();
    fill(&mut session, "t", 2000).unwrap();
    let full = size(&mut session, "t");
    for round in 0..4 {
        let table = session.table("t").unwrap();
        let mut scan = session.scan(&table).unwrap();
        while let Some((at, _)) = scan.next(&mut session).unwrap() {
            session.delete(&table, at).unwrap();
        }
        drop(scan);
        session.commit().unwrap();
        purge(&instance);
        if round % 2 == 1 {
            drop(session);
            instance.shutdown(Shutdown::Immediate).unwrap();
            instance = open(&storage);
            session = instance.session("test").unwrap();
        }
        fill(&mut session, "t", 2000).unwrap();
        let now = size(&mut session, "t");
        assert!(
            now.high_water <= full.high_water + full.high_water / 8,
            "round {round}: {full:?}, then {now:?}"
        );
    }
    no_problems(&mut session);
}

#[test]
fn a_segment_of_many_scattered_extents_has_lists_of_them() {
    let storage = storage(22);
    let instance = create(&storage);
    let mut session = instance.session("test").unwrap();
    session.create_tablespace("small", TablespaceKind::Permanent, &[spec("small.dbf", 6 * MIB, 0)]).unwrap();
    let mut count = 0;
    loop {
        match session.create_table(&in_tablespace(&format!("t{count}"), "small")) {
            Ok(_) => count += 1,
            Err(EngineError::TablespaceFull { tablespace, .. }) => break assert_eq!(tablespace, "SMALL"),
            Err(error) => panic!("{error}"),
        }
    }
    assert!(count > 370, "{count} tables of 16 KiB in 6 MiB");
    for n in (0..count).step_by(2) {
        session.drop_table(&format!("t{n}")).unwrap();
    }
    session.create_table(&in_tablespace("big", "small")).unwrap();
    let mut held = 0;
    // Statements that find no room leave nothing behind, so smaller ones go on.
    for batch in [500, 50, 5] {
        loop {
            match fill(&mut session, "big", batch) {
                Ok(more) => held += more,
                Err(EngineError::TablespaceFull { object, .. }) => break assert_eq!(object, "big"),
                Err(error) => panic!("{error}"),
            }
        }
        no_problems(&mut session);
    }
    let big = session.table("big").unwrap();
    assert_eq!(session.count(&big).unwrap(), held);
    let before = size(&mut session, "big");
    assert!(before.extents > 164 + 20, "more than the header of a 2 KiB block lists: {before:?}");
    drop(session);
    instance.shutdown(Shutdown::Abort).unwrap();

    let instance = open(&storage);
    let mut session = instance.session("test").unwrap();
    let big = session.table("big").unwrap();
    assert_eq!((size(&mut session, "big"), session.count(&big).unwrap()), (before, held));
    session.add_datafile("small", &spec("more.dbf", MIB, 0)).unwrap();
    fill(&mut session, "big", 500).unwrap();
    no_problems(&mut session);
    session.truncate_table("big").unwrap();
    no_problems(&mut session);
    session.drop_tablespace("small", true).unwrap();
    assert!(!storage.exists(Path::new("/db/small.dbf")) && !storage.exists(Path::new("/db/more.dbf")));
    assert!(session.tables().is_empty());
    no_problems(&mut session);
}

#[test]
fn a_full_disk_refuses_statements_and_harms_nothing() {
    let storage = storage(23);
    let instance = create(&storage);
    let mut session = instance.session("test").unwrap();
    session.create_table(&people("t")).unwrap();
    session.create_index(&index("t_id", "t", &["id"], false)).unwrap();
    fill(&mut session, "t", 100).unwrap();
    storage.set_capacity(Some(0));
    let mut held = 100;
    let error = loop {
        match fill(&mut session, "t", 300) {
            Ok(more) => held += more,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, EngineError::TablespaceFull { .. }), "{error}");
    let table = session.table("t").unwrap();
    assert_eq!(session.count(&table).unwrap(), held);
    let refused = loop {
        match session.create_table(&people("u")) {
            Ok(_) => session.drop_table("u").unwrap(),
            Err(error) => break error,
        }
        if fill(&mut session, "t", 5).is_ok() {
            held += 5;
        } else if session.create_table(&people("u")).is_ok() {
            break EngineError::Invalid("there is room for a table".into());
        }
    };
    no_problems(&mut session);
    storage.set_capacity(None);
    fill(&mut session, "t", 300).unwrap_or_else(|error| panic!("{error} after {refused}"));
    assert_eq!(session.count(&table).unwrap(), held + 300);
    no_problems(&mut session);
}

#[test]
fn tablespaces_come_and_go() {
    let storage = storage(24);
    let instance = create(&storage);
    let mut session = instance.session("test").unwrap();
    session.create_tablespace("fast", TablespaceKind::Permanent, &[spec("fast.dbf", MIB, MIB)]).unwrap();
    let again = session.create_tablespace("FAST", TablespaceKind::Permanent, &[spec("x.dbf", MIB, 0)]);
    assert!(matches!(again, Err(EngineError::Exists { .. })), "{again:?}");
    session.create_table(&people("t")).unwrap();
    let def = IndexDef { tablespace: Some("fast".into()), ..index("t_id", "t", &["id"], true) };
    session.create_index(&def).unwrap();
    fill(&mut session, "t", 500).unwrap();
    let row = session.segments().unwrap().into_iter().find(|row| row.name == "t_id").unwrap();
    assert_eq!((row.kind, row.tablespace.as_str()), ("INDEX", "FAST"));
    assert!(row.bytes >= 16 << 10 && row.size.high_water <= row.size.blocks);
    let refused = session.drop_tablespace("fast", false);
    assert!(matches!(refused, Err(EngineError::Invalid(_))), "{refused:?}");
    session.drop_tablespace("fast", true).unwrap();
    assert!(session.table("t").unwrap().indexes.is_empty());
    fill(&mut session, "t", 500).unwrap();
    for name in ["SYSTEM", "TEMP", "UNDO"] {
        let refused = session.drop_tablespace(name, true);
        assert!(matches!(refused, Err(EngineError::Invalid(_))), "{name}: {refused:?}");
    }
    session.create_tablespace("temp2", TablespaceKind::Temporary, &[spec("temp2.dbf", MIB, MIB)]).unwrap();
    session.drop_tablespace("temp", false).unwrap();
    session.create_index(&index("t_id", "t", &["id", "size"], false)).unwrap();
    no_problems(&mut session);
}

#[test]
fn undo_moves_to_another_tablespace() {
    let storage = storage(25);
    let instance = create(&storage);
    let (mut a, mut b) = (instance.session("a").unwrap(), instance.session("b").unwrap());
    let table = a.create_table(&people("t")).unwrap();
    fill(&mut a, "t", 100).unwrap();
    a.insert(&table, &[int(1000), text("began in the old one"), int(0)]).unwrap();
    b.create_undo_tablespace("undo2", &[spec("undo2.dbf", MIB, MIB)]).unwrap();
    let set = AlterSystem::Set { name: "undo_tablespace".into(), value: "undo2".into(), scope: None };
    b.alter_system(&set).unwrap();
    b.insert(&table, &[int(1001), text("began in the new one"), int(0)]).unwrap();
    b.commit().unwrap();
    let refused = b.drop_tablespace("undo", false);
    assert!(matches!(refused, Err(EngineError::Invalid(_))), "a transaction goes on there: {refused:?}");
    a.rollback().unwrap();
    purge(&instance);
    b.drop_tablespace("undo", false).unwrap();
    assert_eq!(a.count(&table).unwrap(), 101);
    no_problems(&mut a);
    fill(&mut a, "t", 100).unwrap();
    drop((a, b));
    instance.shutdown(Shutdown::Abort).unwrap();
    let instance = open(&storage);
    let mut session = instance.session("test").unwrap();
    assert_eq!(session.count(&session.table("t").unwrap().clone()).unwrap(), 201);
    no_problems(&mut session);
}
