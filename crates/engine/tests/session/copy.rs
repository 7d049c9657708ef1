//! `INSERT … SELECT`: rows go from page to page as they are stored, or by way of their values where columns or indexes want it.

use crate::machine::{MIB, all, create, environment, index, int, open, people, storage, text};
use engine::files::admin::FileSpec;
use engine::files::control::TablespaceKind;
use engine::{Column, ColumnKind, EngineError, Instance, InstanceConfig, Row, Session, TableDef, Value};
use io::sim::SimStorage;
use std::ops::Bound;
use std::path::Path;
use units::Seed;

/// A database with blocks of this size.
fn create_with(storage: &SimStorage, block: &str) -> Instance {
    let mut config = InstanceConfig::new("/db")
        .with("db_block_size", block)
        .with("db_cache_size", "2m")
        .with("log_buffer", "1m");
    (config.data_bytes, config.undo_bytes, config.temp_bytes) = (4 * MIB, 2 * MIB, MIB);
    (config.redo_bytes, config.redo_groups) = (8 * MIB, 2);
    Instance::create(environment(storage, 7), config).unwrap()
}

fn copy(session: &mut Session, from: &str, to: &str) -> engine::Result<u64> {
    let (from, to) = (session.table(from)?, session.table(to)?);
    let mut scan = session.scan(&from)?;
    session.insert_select(&to, &mut scan)
}

/// Every kind of value, rows from a few bytes to most of a page, some of them deleted, some grown out of their page.
fn mixed(session: &mut Session, name: &str, block_bytes: usize) {
    let column = |name: &str, kind| Column::new(name, kind);
    let columns = vec![
        column("id", ColumnKind::Integer),
        column("a", ColumnKind::Any),
        column("b", ColumnKind::Text),
        column("c", ColumnKind::Blob),
    ];
    let table = session.create_table(&TableDef::new(name, columns)).unwrap();
    let any = |n: i64| match n % 4 {
        0 => Value::Null,
        1 => int(n << (n % 60)),
        2 => Value::Real(n as f64 / 3.0),
        _ => text("any"),
    };
    let length = |n: i64| [0, 5, 40, block_bytes / 3, block_bytes * 3 / 4][n as usize % 5];
    let mut rows = (0..200).map(|n| {
        vec![int(n), any(n), text(&"ü".repeat(length(n) / 4)), Value::Blob(vec![n as u8; length(n) / 3])]
    });
    session.insert_many(&table, &mut rows).unwrap();
    session.commit().unwrap();
    let mut scan = session.scan(&table).unwrap();
    while let Some((at, mut row)) = scan.next(session).unwrap() {
        match row[0] {
            Value::Integer(n) if n % 7 == 0 => session.delete(&table, at).unwrap(),
            Value::Integer(n) if n % 3 == 0 => {
                row[3] = Value::Blob(vec![1; block_bytes / 2]);
                session.update(&table, at, &row).unwrap();
            }
            _ => {}
        }
    }
    drop(scan);
    session.commit().unwrap();
}

/// What is copied is what is read, block by block and version by version; a rollback takes it all away, a power cut nothing
/// that was committed.
#[test]
fn a_copy_has_the_rows_that_its_statement_sees() {
    for (seed, block, block_bytes) in [(31, "2k", 2048), (32, "32k", 32768)] {
        let storage = storage(seed);
        let instance = create_with(&storage, block);
        let (mut a, mut b) = (instance.session("a").unwrap(), instance.session("b").unwrap());
        mixed(&mut a, "t", block_bytes);
        let expected = all(&mut a, "t");
        a.create_table(&TableDef::new("u", a.table("t").unwrap().columns.clone())).unwrap();
        let (t, u) = (a.table("t").unwrap(), a.table("u").unwrap());
        // Changed since the statement began, and not committed: neither is seen, so both are made from undo.
        let mut scan = a.scan(&t).unwrap();
        let mut others = b.scan(&t).unwrap();
        for n in 0..expected.len() {
            let (at, mut row) = others.next(&mut b).unwrap().unwrap();
            row[2] = text("changed");
            match n % 3 {
                0 => b.update(&t, at, &row).unwrap(),
                1 => b.delete(&t, at).unwrap(),
                _ => {}
            }
            if n == expected.len() / 2 {
                b.commit().unwrap();
            }
        }
        drop(others);
        // The first row is taken by hand; what is left of the scan is copied.
        let (_, first) = scan.next(&mut a).unwrap().unwrap();
        a.insert(&u, &first).unwrap();
        assert_eq!(a.insert_select(&u, &mut scan).unwrap(), expected.len() as u64 - 1);
        drop(scan);
        assert_eq!(all(&mut a, "u"), expected, "{block}");
        assert_eq!(all(&mut b, "u"), Vec::<Row>::new(), "nobody else sees it");
        a.rollback().unwrap();
        assert_eq!(a.count(&u).unwrap(), 0);
        b.rollback().unwrap();
        let expected = all(&mut b, "t");
        copy(&mut a, "t", "u").unwrap();
        a.commit().unwrap();
        drop((a, b, instance));
        storage.crash(Seed(seed));
        let instance = open(&storage);
        let mut session = instance.session("after").unwrap();
        assert_eq!(all(&mut session, "u"), expected, "{block}, after the power cut");
        assert_eq!(session.check_space().unwrap(), Vec::<String>::new());
    }
}

/// Columns by name and in another order are copied as they are stored; other kinds of columns are converted as on any insert.
#[test]
fn columns_are_chosen_and_converted() {
    let storage = storage(33);
    let instance = create(&storage);
    let mut session = instance.session("test").unwrap();
    let t = session.create_table(&people("t")).unwrap();
    let mut rows = (0..300).map(|n| vec![int(n), text(&format!("name {n}")), int(n % 7)]);
    session.insert_many(&t, &mut rows).unwrap();
    let def = |name: &str, kinds: [ColumnKind; 2]| {
        let columns = ["x", "y"].into_iter().zip(kinds).map(|(name, kind)| Column::new(name, kind));
        TableDef::new(name, columns.collect())
    };
    let alike = session.create_table(&def("alike", [ColumnKind::Any, ColumnKind::Integer])).unwrap();
    let real = session.create_table(&def("real", [ColumnKind::Text, ColumnKind::Real])).unwrap();
    for (target, id) in [(&alike, (|n| int(n)) as fn(i64) -> Value), (&real, |n| Value::Real(n as f64))] {
        let mut scan = session.scan_columns(&t, &[1, 0]).unwrap();
        assert_eq!(session.insert_select(target, &mut scan).unwrap(), 300);
        drop(scan);
        let mut expected: Vec<Row> = (0..300).map(|n| vec![text(&format!("name {n}")), id(n)]).collect();
        expected.sort_by_key(|row| format!("{row:?}"));
        assert_eq!(all(&mut session, &target.name), expected);
    }
    // NULL where there must be none, and another number of columns: refused as a whole.
    session.insert(&real, &[text("last"), Value::Null]).unwrap();
    for columns in [&[1, 0, 1][..], &[1]] {
        let mut scan = session.scan_columns(&real, columns).unwrap();
        let refused = session.insert_select(&t, &mut scan);
        assert!(matches!(refused, Err(EngineError::Invalid(_))), "{refused:?}");
    }
    assert_eq!(session.count(&t).unwrap(), 300);
}

/// The table has no room for all of it: the statement is undone, what the transaction did before stays. So with a unique key that is
/// there already.
#[test]
fn a_copy_that_fails_is_undone_and_nothing_else() {
    let storage = storage(34);
    let instance = create(&storage);
    let mut session = instance.session("test").unwrap();
    let t = session.create_table(&people("t")).unwrap();
    let mut rows = (0..4000).map(|n| vec![int(n), text(&"x".repeat(n as usize % 300)), int(n % 10)]);
    session.insert_many(&t, &mut rows).unwrap();
    let file = FileSpec {
        path: Path::new("/db/small.dbf").into(),
        bytes: MIB / 2,
        next_bytes: 0,
        max_bytes: u64::MAX,
    };
    session.create_tablespace("small", TablespaceKind::Permanent, &[file]).unwrap();
    session.create_table(&TableDef { tablespace: Some("small".into()), ..people("u") }).unwrap();
    session.create_table(&people("v")).unwrap();
    session.create_index(&index("v_id", "v", &["id"], true)).unwrap();
    for (name, id) in [("u", 10), ("v", 3990)] {
        let table = session.table(name).unwrap();
        let before = vec![int(id), text("before"), int(0)];
        session.insert(&table, &before).unwrap();
        let savepoint = session.savepoint();
        let refused = copy(&mut session, "t", name);
        assert!(
            matches!(refused, Err(EngineError::TablespaceFull { .. } | EngineError::DuplicateKey { .. })),
            "{refused:?}"
        );
        assert_eq!(all(&mut session, name), std::slice::from_ref(&before));
        let mut scan = session.scan(&t).unwrap();
        let mut some = std::iter::from_fn(|| scan.next(&mut session).unwrap()).map(|(_, row)| row).take(20);
        let some: Vec<Row> = some.by_ref().collect();
        drop(scan);
        session.insert_many(&table, &mut some.into_iter()).unwrap();
        session.rollback_to(savepoint).unwrap();
        session.commit().unwrap();
        assert_eq!(all(&mut session, name), [before]);
    }
    let entries = session.index("v_id").unwrap();
    let mut cursor = session.range(&entries, Bound::Unbounded, Bound::Unbounded, false).unwrap();
    assert_eq!(cursor.next(&mut session).unwrap().unwrap().1[0], int(3990));
    assert!(cursor.next(&mut session).unwrap().is_none(), "no entry of a row that is not there");
}
