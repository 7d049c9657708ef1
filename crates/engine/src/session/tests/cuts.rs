//! The power is cut, or a call fails, at every call of DDL: after the restart each statement has happened or has not, and no space is
//! lost.

use super::machine::{MIB, all, create, index, int, people, storage, text, try_open};
use crate::files::admin::FileSpec;
use crate::files::control::TablespaceKind;
use crate::instance::process::Role;
use crate::testing::flush_each_change;
use crate::{AlterSystem, Instance, Result, Row, Session, Table, TableDef};
use io::sim::{Call, Fault, SimStorage, Trouble};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use units::Seed;

/// Tables with their indexes and rows.
type State = BTreeMap<String, (Vec<String>, Vec<Row>)>;

fn state(session: &mut Session) -> State {
    let tables = session.tables();
    let of = |table: &Arc<Table>| {
        let indexes = table.indexes.iter().map(|index| index.name.clone()).collect();
        (table.name.clone(), (indexes, all(session, &table.name)))
    };
    tables.iter().map(of).collect()
}

/// Runs each statement while the storage is copied at each of its calls; then cuts the power of each copy, and opens it.
fn check(prepare: impl Fn(&mut Session), statements: &[Statement]) {
    let storage = storage(11);
    let instance = create(&storage);
    let mut session = instance.session("test").unwrap();
    prepare(&mut session);
    let mut before = state(&mut session);
    for (n, statement) in statements.iter().enumerate() {
        let copies: Arc<Mutex<Vec<SimStorage>>> = Arc::default();
        let taken = copies.clone();
        storage.on_call(Some(Arc::new(move |storage, _| taken.lock().unwrap().push(storage.fork()))));
        flush_each_change(true);
        statement(&mut session).unwrap();
        flush_each_change(false);
        storage.on_call(None);
        copies.lock().unwrap().push(storage.fork());
        let after = state(&mut session);
        let copies = std::mem::take(&mut *copies.lock().unwrap());
        let last = copies.len() - 1;
        assert!(last > 3, "statement {n} made {last} calls");
        for (call, copy) in copies.into_iter().enumerate() {
            copy.crash(Seed(call as u64));
            let instance: Instance =
                try_open(&copy).unwrap_or_else(|error| panic!("statement {n}, call {call}: {error}"));
            let mut session = instance.session("check").unwrap();
            let found = state(&mut session);
            assert!(
                found == after || (found == before && call < last),
                "statement {n}, call {call}: {found:?}"
            );
            let problems = session.check_space().unwrap();
            assert_eq!(problems, Vec::<String>::new(), "statement {n}, call {call}");
        }
        before = after;
    }
}

fn fill(session: &mut Session, name: &str, rows: i64) -> Result<()> {
    let table = session.table(name)?;
    let mut rows = (0..rows).map(|n| vec![int(n), text(&format!("name {n}")), int(n % 10)]);
    session.insert_many(&table, &mut rows)?;
    session.commit()
}

fn copy(session: &mut Session, from: &str, to: &str) -> Result<()> {
    let (from, to) = (session.table(from)?, session.table(to)?);
    let mut scan = session.scan(&from)?;
    session.insert_select(&to, &mut scan)?;
    drop(scan);
    session.commit()
}

type Statement = fn(&mut Session) -> Result<()>;

const STATEMENTS: [Statement; 9] = [
    |session| session.create_table(&people("t")).map(|_| ()),
    |session| fill(session, "t", 60),
    |session| session.create_table(&people("u")).map(|_| ()),
    |session| copy(session, "t", "u"),
    |session| session.create_index(&index("t_id", "t", &["id"], true)).map(|_| ()),
    |session| session.create_index(&index("t_both", "t", &["size", "name"], false)).map(|_| ()),
    |session| session.drop_index("t_id"),
    |session| session.truncate_table("t"),
    |session| session.drop_table("t"),
];

#[test]
fn each_statement_happens_or_does_not() {
    check(|_| {}, &STATEMENTS);
}

/// A session that lives through the failure sees what is there; so does the next instance.
#[test]
fn a_failed_call_harms_nothing() {
    let prepared = storage(12);
    let mut states = Vec::new();
    {
        let instance = create(&prepared);
        let mut session = instance.session("test").unwrap();
        instance.core.cache.checkpoint(&instance.core, session.context()).unwrap();
        let copy = prepared.fork();
        let instance_of_copy = {
            copy.crash(Seed(0));
            try_open(&copy).unwrap()
        };
        let mut session_of_copy = instance_of_copy.session("test").unwrap();
        states.push(state(&mut session_of_copy));
        for statement in STATEMENTS {
            statement(&mut session_of_copy).unwrap();
            states.push(state(&mut session_of_copy));
        }
        drop(session_of_copy);
        session.rollback().unwrap();
    }
    prepared.crash(Seed(0));
    for (trouble, step) in [(Trouble::Errno(5), 1), (Trouble::Errno(28), 3), (Trouble::Short(512), 3)] {
        for nth in (1..).step_by(step) {
            let storage = prepared.fork();
            let fault = Fault { on: Call::Any, nth, for_ever: false, trouble };
            if run_with(&storage, fault, &states) == 0 {
                assert!(nth > 50, "{nth} calls");
                break;
            }
        }
    }
}

/// How often the fault struck.
fn run_with(storage: &SimStorage, fault: Fault, states: &[State]) -> u64 {
    let instance = try_open(storage).unwrap();
    let mut session = instance.session("test").unwrap();
    storage.inject(fault);
    let mut done = 0;
    flush_each_change(true);
    for statement in STATEMENTS {
        if statement(&mut session).is_err() {
            break;
        }
        done += 1;
    }
    flush_each_change(false);
    let fired = storage.fired();
    storage.heal();
    let may_be = [&states[done], &states[(done + 1).min(STATEMENTS.len())]];
    if instance.crashed().is_none() {
        let found = state(&mut session);
        assert!(may_be.contains(&&found), "{fault:?} after {done}: {found:?}");
    }
    drop((session, instance));
    storage.crash(Seed(fault.nth));
    let instance = try_open(storage).unwrap_or_else(|error| panic!("{fault:?} after {done}: {error}"));
    let mut session = instance.session("check").unwrap();
    let found = state(&mut session);
    assert!(may_be.contains(&&found), "{fault:?} after {done}, opened again: {found:?}");
    assert_eq!(session.check_space().unwrap(), Vec::<String>::new(), "{fault:?} after {done}");
    fired
}

/// A table of more extents than one change gives back.
fn scattered(session: &mut Session) {
    let file =
        FileSpec { path: "/db/small.dbf".into(), bytes: 3 * MIB / 2, next_bytes: 0, max_bytes: u64::MAX };
    session.create_tablespace("small", TablespaceKind::Permanent, &[file]).unwrap();
    let def = |name: &str| TableDef { tablespace: Some("small".into()), ..people(name) };
    let mut count = 0;
    while session.create_table(&def(&format!("t{count}"))).is_ok() {
        count += 1;
    }
    (0..count).step_by(2).for_each(|n| session.drop_table(&format!("t{n}")).unwrap());
    let big = session.create_table(&def("big")).unwrap();
    let row = [int(1), text(&"x".repeat(600)), int(1)];
    while session.insert(&big, &row).is_ok() {}
    session.commit().unwrap();
    (0..count).skip(1).step_by(2).for_each(|n| session.drop_table(&format!("t{n}")).unwrap());
    assert!(session.segment_size(&big.segment).unwrap().extents > 36);
}

#[test]
fn a_table_in_many_pieces_goes_whole() {
    check(scattered, &[|session| session.drop_table("big")]);
    check(scattered, &[|session| session.truncate_table("big")]);
}

/// A commit that does not wait may be lost. Then the table is still there, with all its rows: also those that only redo and the
/// cache had.
#[test]
fn a_drop_that_does_not_wait_is_lost_as_a_whole_or_not_at_all() {
    let statements: [Statement; 2] =
        [|session| session.truncate_table("t"), |session| session.drop_table("t")];
    for statement in statements {
        let storage = storage(13);
        let instance = create(&storage);
        let mut session = instance.session("test").unwrap();
        let mut admin = instance.session("admin").unwrap();
        let mut set = |name: &str, value: &str| {
            let set = AlterSystem::Set { name: name.into(), value: value.into(), scope: None };
            admin.alter_system(&set).unwrap();
        };
        set("commit_logging", "batch");
        STATEMENTS[0](&mut session).unwrap();
        let other = session.create_table(&people("u")).unwrap();
        session.alter_system(&AlterSystem::Checkpoint).unwrap();
        STATEMENTS[1](&mut session).unwrap();
        // The checkpointer notes only what is worth noting.
        let mut rows = (0..1000).map(|n| vec![int(n), text(&"x".repeat(600)), int(n)]);
        session.insert_many(&other, &mut rows).unwrap();
        session.commit().unwrap();
        let before = state(&mut session);
        // Everything is written but the rows' own blocks, so nothing else keeps the checkpoint where it is.
        let (core, own) = (instance.core.clone(), session.table("t").unwrap().segment.object);
        let dirty: BTreeSet<u32> =
            core.cache.headers().filter(|h| h.dirty && h.object != own).map(|h| h.object).collect();
        for object in dirty {
            core.cache.write_dirty(&*core, session.context(), Some(object)).unwrap();
        }
        set("commit_wait", "nowait");
        statement(&mut session).unwrap();
        // Nothing that is still dirty is older than the statement: the checkpoint moves up to it.
        instance.core.processes.step(&instance.core, Role::Checkpointer).unwrap();
        let after = state(&mut session);
        storage.crash(Seed(0));
        drop((session, admin, core, instance));
        let instance = try_open(&storage).unwrap();
        let mut session = instance.session("check").unwrap();
        let found = state(&mut session);
        assert!(found == before || found == after, "{found:?}");
        assert_eq!(session.check_space().unwrap(), Vec::<String>::new());
    }
}
