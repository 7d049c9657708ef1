//! What each call promises, one story each.

use crate::machine::{all, create, index, int, open, people, storage, text};
use engine::{AlterSystem, EngineError, Row, RowId, Session, Shutdown, Value};
use io::sim::{Call, Fault, Trouble};
use std::ops::Bound;

fn ids(session: &mut Session, table: &str) -> Vec<i64> {
    let id = |row: &Vec<Value>| match row[0] {
        Value::Integer(n) => n,
        _ => panic!("{row:?}"),
    };
    let mut ids: Vec<i64> = all(session, table).iter().map(id).collect();
    ids.sort_unstable();
    ids
}

fn rows_of(session: &mut Session, table: &str) -> Vec<(RowId, Row)> {
    let table = session.table(table).unwrap();
    let mut scan = session.scan(&table).unwrap();
    std::iter::from_fn(|| scan.next(session).unwrap()).collect()
}

#[test]
fn rows_come_back_and_outlive_a_restart() {
    let storage = storage(1);
    let instance = create(&storage);
    let mut session = instance.session("test").unwrap();
    let table = session.create_table(&people("t")).unwrap();
    let row = session.insert(&table, &[int(1), text("one"), Value::Null]).unwrap();
    assert!(session.in_transaction());
    assert_eq!(session.get(&table, row).unwrap(), Some(vec![int(1), text("one"), Value::Null]));
    let mut other = instance.session("other").unwrap();
    assert_eq!(other.get(&table, row).unwrap(), None, "not committed");
    assert_eq!((other.count(&table).unwrap(), session.count(&table).unwrap()), (0, 1));
    session.commit().unwrap();
    assert_eq!(other.count(&table).unwrap(), 1);
    session.update(&table, row, &[int(1), text("uno"), int(5)]).unwrap();
    session.rollback().unwrap();
    session.insert(&table, &[int(2), text("two"), int(2)]).unwrap();
    session.commit().unwrap();
    drop((session, other));
    instance.shutdown(Shutdown::Immediate).unwrap();

    let instance = open(&storage);
    let mut session = instance.session("test").unwrap();
    let expected = [vec![int(1), text("one"), Value::Null], vec![int(2), text("two"), int(2)]];
    assert_eq!(all(&mut session, "T"), expected);
}

#[test]
fn an_index_finds_what_is_there_and_nothing_else() {
    let storage = storage(2);
    let instance = create(&storage);
    let mut session = instance.session("test").unwrap();
    let table = session.create_table(&people("t")).unwrap();
    let mut rows = (0..500).map(|n| vec![int(n), text(&format!("name {}", n % 7)), int(n % 50)]);
    assert_eq!(session.insert_many(&table, &mut rows).unwrap(), 500);
    session.commit().unwrap();
    let by_id = session.create_index(&index("t_id", "t", &["id"], true)).unwrap();
    let by_both = session.create_index(&index("t_both", "t", &["size", "name"], false)).unwrap();

    let found = session.lookup(&by_id, &[int(77)]).unwrap();
    assert_eq!(found[0].1, [int(77), text("name 0"), int(27)]);
    assert_eq!(session.lookup(&by_both, &[int(27)]).unwrap().len(), 10, "by the first column");
    assert_eq!(session.lookup(&by_both, &[int(27), text("name 0")]).unwrap().len(), 2);
    // A row moves away from its key, another is deleted, a third comes.
    let table = session.table("t").unwrap();
    session.update(&table, found[0].0, &[int(1077), text("name 0"), int(27)]).unwrap();
    let gone = session.lookup(&by_id, &[int(78)]).unwrap()[0].0;
    session.delete(&table, gone).unwrap();
    session.insert(&table, &[int(78), text("new"), int(27)]).unwrap();
    assert!(session.lookup(&by_id, &[int(77)]).unwrap().is_empty());
    assert_eq!(session.lookup(&by_id, &[int(1077)]).unwrap().len(), 1);
    assert_eq!(session.lookup(&by_id, &[int(78)]).unwrap()[0].1[1], text("new"));

    let mut cursor =
        session.range(&by_id, Bound::Excluded(&[int(74)]), Bound::Included(&[int(79)]), true).unwrap();
    let mut seen = Vec::new();
    while let Some((_, row)) = cursor.next(&mut session).unwrap() {
        seen.push(row[0].clone());
    }
    assert_eq!(seen, [int(79), int(78), int(76), int(75)]);
}

#[test]
fn a_unique_index_refuses_and_the_statement_is_undone() {
    let storage = storage(3);
    let instance = create(&storage);
    let mut session = instance.session("test").unwrap();
    let table = session.create_table(&people("t")).unwrap();
    session.create_index(&index("t_id", "t", &["id"], true)).unwrap();
    session.insert(&table, &[int(5), text("five"), int(5)]).unwrap();
    let mut rows = (1..10).map(|n| vec![int(n), text("many"), int(n)]);
    let refused = session.insert_many(&table, &mut rows);
    assert!(matches!(refused, Err(EngineError::DuplicateKey { .. })), "{refused:?}");
    assert_eq!(ids(&mut session, "t"), [5], "none of the nine");
    session.commit().unwrap();

    let mut other = instance.session("other").unwrap();
    session.insert(&table, &[int(6), text("six"), int(6)]).unwrap();
    let locked = other.insert(&table, &[int(6), text("mine"), int(6)]);
    assert!(matches!(locked, Err(EngineError::RowLocked { .. })), "it must wait for the other: {locked:?}");
    session.rollback().unwrap();
    other.insert(&table, &[int(6), text("mine"), int(6)]).unwrap();
    other.commit().unwrap();
    // A key that was given up may be taken, by the same row, by another, and after a delete.
    let row = other.lookup(&other.index("t_id").unwrap(), &[int(6)]).unwrap()[0].0;
    other.update(&table, row, &[int(7), text("moved"), int(6)]).unwrap();
    other.insert(&table, &[int(6), text("again"), int(6)]).unwrap();
    let back = other.update(&table, row, &[int(6), text("back"), int(6)]);
    assert!(matches!(back, Err(EngineError::DuplicateKey { .. })), "{back:?}");
    other.delete(&table, row).unwrap();
    other.insert(&table, &[int(7), text("seven"), int(7)]).unwrap();
    other.commit().unwrap();
    assert_eq!(ids(&mut session, "t"), [5, 6, 7]);
}

#[test]
fn null_equals_no_other_key() {
    let storage = storage(4);
    let instance = create(&storage);
    let mut session = instance.session("test").unwrap();
    let table = session.create_table(&people("t")).unwrap();
    for n in 0..3 {
        session.insert(&table, &[int(n), Value::Null, int(1)]).unwrap();
    }
    let index = session.create_index(&index("t_name", "t", &["name", "size"], true)).unwrap();
    session.insert(&table, &[int(3), Value::Null, int(1)]).unwrap();
    assert_eq!(session.lookup(&index, &[Value::Null, int(1)]).unwrap().len(), 4);
    let refused = session.insert(&table, &[Value::Null, text("x"), int(1)]);
    assert!(refused.unwrap_err().to_string().contains("t.id must not be NULL"));
}

#[test]
fn savepoints_and_statements_go_back_to_where_they_were_set() {
    let storage = storage(5);
    let instance = create(&storage);
    let mut session = instance.session("test").unwrap();
    let table = session.create_table(&people("t")).unwrap();
    let insert = |session: &mut Session, n: i64| {
        session.insert(&table, &[int(n), text("x"), int(n)]).unwrap();
    };
    let before = session.savepoint();
    insert(&mut session, 1);
    let middle = session.savepoint();
    insert(&mut session, 2);
    session.rollback_to(middle).unwrap();
    assert_eq!(ids(&mut session, "t"), [1]);
    insert(&mut session, 3);
    session.begin_statement().unwrap();
    insert(&mut session, 4);
    assert_eq!(ids(&mut session, "t"), [1, 3], "a statement does not meet its own rows");
    session.rollback_statement().unwrap();
    assert!(!session.in_statement());
    assert_eq!(ids(&mut session, "t"), [1, 3]);
    session.rollback_to(before).unwrap();
    assert!(ids(&mut session, "t").is_empty());
    insert(&mut session, 5);
    session.commit().unwrap();
    assert!(matches!(session.rollback_to(middle), Err(EngineError::Invalid(_))));
    assert_eq!(ids(&mut session, "t"), [5]);
}

#[test]
fn a_statement_starts_again_when_its_row_was_changed_since() {
    let storage = storage(6);
    let instance = create(&storage);
    let (mut a, mut b) = (instance.session("a").unwrap(), instance.session("b").unwrap());
    let table = a.create_table(&people("t")).unwrap();
    let row = a.insert(&table, &[int(1), text("x"), int(0)]).unwrap();
    a.commit().unwrap();
    a.begin_statement().unwrap();
    a.insert(&table, &[int(2), text("part of the statement"), int(0)]).unwrap();
    b.update(&table, row, &[int(1), text("x"), int(10)]).unwrap();
    let locked = a.update(&table, row, &[int(1), text("x"), int(1)]);
    assert!(matches!(locked, Err(EngineError::RowLocked { .. })), "{locked:?}");
    b.commit().unwrap();
    assert_eq!(a.get(&table, row).unwrap().unwrap()[2], int(0), "as the statement sees it");
    let restart = a.update(&table, row, &[int(1), text("x"), int(1)]);
    assert!(matches!(restart, Err(EngineError::StatementRestart)), "{restart:?}");
    assert_eq!(ids(&mut a, "t"), [1], "the statement was undone");
    a.begin_statement().unwrap();
    assert_eq!(a.get(&table, row).unwrap().unwrap()[2], int(10));
    a.update(&table, row, &[int(1), text("x"), int(11)]).unwrap();
    a.update(&table, row, &[int(1), text("x"), int(12)]).unwrap();
    a.end_statement();
    a.commit().unwrap();
    // Without a statement a call takes the newest version there is.
    b.update(&table, row, &[int(1), text("x"), int(13)]).unwrap();
    b.commit().unwrap();
    assert_eq!(a.get_for_update(&table, row).unwrap().unwrap()[2], int(13));
    assert!(matches!(b.delete(&table, row), Err(EngineError::RowLocked { .. })));
}

#[test]
fn a_table_doubles_itself() {
    let storage = storage(8);
    let instance = create(&storage);
    let mut session = instance.session("test").unwrap();
    let table = session.create_table(&people("t")).unwrap();
    let mut rows = (0..50).map(|n| vec![int(n), text(&"x".repeat(100)), int(n)]);
    session.insert_many(&table, &mut rows).unwrap();
    for round in 0..6 {
        // In the same transaction, and in a new one.
        if round % 2 == 0 {
            session.commit().unwrap();
        }
        let mut scan = session.scan(&table).unwrap();
        assert_eq!(session.insert_select(&table, &mut scan).unwrap(), 50 << round);
        assert_eq!(session.count(&table).unwrap(), 100 << round);
    }
    session.rollback().unwrap();
    assert_eq!(session.count(&table).unwrap(), 800, "the last two rounds are gone");
}

#[test]
fn ddl_waits_for_nobody_in_a_simulation() {
    let storage = storage(9);
    let instance = create(&storage);
    let (mut a, mut b) = (instance.session("a").unwrap(), instance.session("b").unwrap());
    let table = a.create_table(&people("t")).unwrap();
    assert!(matches!(b.create_table(&people("T")), Err(EngineError::Exists { .. })));
    a.insert(&table, &[int(1), text("x"), int(0)]).unwrap();
    for refused in [
        b.drop_table("t"),
        b.truncate_table("t"),
        b.create_index(&index("i", "t", &["id"], false)).map(|_| ()),
    ] {
        assert!(
            matches!(refused, Err(EngineError::RowLocked { blocker }) if blocker == a.sid()),
            "{refused:?}"
        );
    }
    a.commit().unwrap();
    let mut scan = a.scan(&table).unwrap();
    assert!(matches!(b.drop_table("t"), Err(EngineError::RowLocked { .. })), "somebody reads it");
    assert!(matches!(a.drop_table("t"), Err(EngineError::Invalid(_))), "this session reads it");
    b.create_index(&index("i", "t", &["id"], false)).unwrap();
    assert!(scan.next(&mut a).unwrap().is_some());
    drop(scan);
    b.truncate_table("t").unwrap();
    assert_eq!(a.count(&table).unwrap(), 0, "with the old description");
    a.insert(&table, &[int(2), text("y"), int(0)]).unwrap();
    assert_eq!(
        a.lookup(&a.index("i").unwrap(), &[int(2)]).unwrap().len(),
        1,
        "with an index that it does not know"
    );
    a.commit().unwrap();
    b.drop_table("t").unwrap();
    assert!(matches!(a.insert(&table, &[int(3), text("z"), int(0)]), Err(EngineError::NoSuch { .. })));
    assert!(matches!(a.count(&table), Err(EngineError::NoSuch { .. })));
    assert!(matches!(a.table("t"), Err(EngineError::NoSuch { .. })));
}

/// A rollback that cannot read its undo leaves its rows locked, until the disk reads again: then whoever wants one of them takes
/// them back first, and nothing of the transaction is left.
#[test]
fn rows_of_a_rollback_that_failed_do_not_stay_locked() {
    let storage = storage(21);
    let instance = create(&storage);
    let (mut a, mut b) = (instance.session("a").unwrap(), instance.session("b").unwrap());
    let t = a.create_table(&people("t")).unwrap();
    a.insert_many(&t, &mut (0..50).map(|n| vec![int(n), text("before"), int(n)])).unwrap();
    a.commit().unwrap();
    let rows = rows_of(&mut a, "t");
    for (at, row) in &rows {
        a.update(&t, *at, &[row[0].clone(), text("given up"), row[2].clone()]).unwrap();
    }
    a.alter_system(&AlterSystem::FlushBufferCache).unwrap();
    storage.inject(Fault { on: Call::Read, nth: 1, for_ever: true, trouble: Trouble::Errno(5) });
    assert!(matches!(a.rollback(), Err(EngineError::Io(_))));
    assert!(!a.in_transaction());
    storage.heal();
    assert_eq!(rows_of(&mut b, "t"), rows, "nobody sees it");
    let (at, row) = &rows[7];
    let changed = [row[0].clone(), text("after"), row[2].clone()];
    b.update(&t, *at, &changed).unwrap();
    // Who goes on is still in the way.
    assert!(matches!(a.delete(&t, *at), Err(EngineError::RowLocked { blocker }) if blocker == b.sid()));
    b.commit().unwrap();
    a.delete(&t, rows[8].0).unwrap();
    a.commit().unwrap();
    assert_eq!(a.count(&t).unwrap(), 49);
}
