//! Transactions told one by one.

use super::world::{Rows, World, check_session, config, row, scan, table};
use crate::files::admin::FileSpec;
use crate::session::{AlterSystem, Session};
use crate::statistics::Statistic;
use crate::transaction::undo_page::UndoHeader;
use crate::{EngineError, Value};
use io::sim::{Call, Fault, Trouble};
use units::Seed;

fn committed(world: &World) -> Rows {
    scan(&mut world.session())
}

#[test]
fn what_was_committed_is_there_after_a_crash_and_nothing_else() {
    let mut world = World::new(config(2048));
    let (kept, lost) = {
        let (mut a, mut b) = (world.session(), world.session());
        let t = table(&a);
        let kept = a.insert(&t, &row(1, 10, "kept")).unwrap();
        a.commit().unwrap();
        let lost = b.insert(&t, &row(2, 20, "lost")).unwrap();
        a.update(&t, kept, &row(1, 11, "changed and not committed")).unwrap();
        // Makes the redo of what is lost durable as well, so that there is something to roll back.
        let mut c = world.session();
        c.insert(&t, &row(3, 30, "rolled back")).unwrap();
        c.rollback().unwrap();
        c.insert(&t, &row(3, 30, "deleted")).unwrap();
        c.commit().unwrap();
        let at = scan(&mut c).into_iter().find(|(_, row)| row[0] == Value::Integer(3)).unwrap().0;
        c.delete(&t, at).unwrap();
        c.commit().unwrap();
        world.cut_power();
        (kept, lost)
    };
    assert_ne!(kept, lost);
    world.restart(Seed(1));
    let expected = Rows::from([(kept, row(1, 10, "kept"))]);
    world.check(&expected);
    world.drain_and_audit(&expected);
}

#[test]
fn others_see_nothing_before_the_commit_and_a_statement_sees_nothing_after_it_began() {
    let world = World::new(config(2048));
    let (mut writer, mut reader) = (world.session(), world.session());
    let t = table(&writer);
    let at = writer.insert(&t, &row(1, 1, "old")).unwrap();
    assert_eq!(scan(&mut reader), Rows::new());
    writer.commit().unwrap();
    reader.begin_statement().unwrap();
    let old = Rows::from([(at, row(1, 1, "old"))]);
    check_session(&mut reader, &old);
    for n in 0..50 {
        writer.update(&t, at, &row(1, n, &"new".repeat(n as usize * 5))).unwrap();
        writer.commit().unwrap();
        check_session(&mut reader, &old);
    }
    writer.delete(&t, at).unwrap();
    writer.commit().unwrap();
    check_session(&mut reader, &old);
    reader.end_statement();
    check_session(&mut reader, &Rows::new());
    drop((writer, reader));
    world.drain_and_audit(&Rows::new());
}

#[test]
fn a_row_is_locked_until_its_transaction_ends() {
    let world = World::new(config(2048));
    let (mut a, mut b) = (world.session(), world.session());
    let t = table(&a);
    let at = a.insert(&t, &row(1, 1, "x")).unwrap();
    a.commit().unwrap();
    assert_eq!(a.get_for_update(&t, at).unwrap(), Some(row(1, 1, "x")));
    let sid = a.sid();
    let refused = |result: crate::Result<()>| {
        assert!(matches!(result, Err(EngineError::RowLocked { blocker }) if blocker == sid), "{result:?}");
    };
    refused(b.update(&t, at, &row(1, 2, "y")));
    refused(b.delete(&t, at));
    refused(b.get_for_update(&t, at).map(|_| ()));
    assert_eq!(b.get(&t, at).unwrap(), Some(row(1, 1, "x")), "readers never wait");
    a.rollback().unwrap();
    b.update(&t, at, &row(1, 2, "y")).unwrap();
    b.commit().unwrap();
    assert_eq!(committed(&world), Rows::from([(at, row(1, 2, "y"))]));
}

#[test]
fn a_savepoint_takes_back_what_came_after_it() {
    let world = World::new(config(2048));
    let mut a = world.session();
    let t = table(&a);
    let first = a.insert(&t, &row(1, 1, "first")).unwrap();
    let savepoint = a.savepoint();
    let second = a.insert(&t, &row(2, 2, "second")).unwrap();
    a.update(&t, first, &row(1, 5, &"longer".repeat(60))).unwrap();
    a.delete(&t, first).unwrap();
    a.rollback_to(savepoint).unwrap();
    let expected = Rows::from([(first, row(1, 1, "first"))]);
    check_session(&mut a, &expected);
    let again = a.insert(&t, &row(2, 3, "again")).unwrap();
    assert_eq!(again, second, "the place is free again");
    a.rollback_to(savepoint).unwrap();
    a.commit().unwrap();
    drop(a);
    world.drain_and_audit(&expected);
}

#[test]
fn a_row_that_grows_moves_away_and_keeps_its_address() {
    let mut world = World::new(config(2048));
    let mut expected = Rows::new();
    {
        let mut a = world.session();
        let t = table(&a);
        for n in 0..40 {
            let at = a.insert(&t, &row(n, n, "short")).unwrap();
            expected.insert(at, row(n, n, "short"));
        }
        a.commit().unwrap();
        let addresses: Vec<_> = expected.keys().copied().collect();
        // Three times as much as the page has, so most rows move, some of them more than once.
        for round in 1..4 {
            for at in &addresses {
                let old = expected[at].clone();
                let Value::Integer(id) = old[0] else { panic!("an id") };
                let new = row(id, id + round, &"x".repeat(100 * round as usize));
                a.update(&t, *at, &new).unwrap();
                expected.insert(*at, new);
            }
            a.commit().unwrap();
            check_session(&mut a, &expected);
        }
        // Taken back, they are as they were, wherever they are.
        for at in &addresses {
            a.update(&t, *at, &row(1000 + i64::from(at.slot), 1, &"y".repeat(900))).unwrap_or_else(|error| {
                assert!(matches!(error, EngineError::DuplicateKey { .. }), "{error}");
            });
        }
        a.rollback().unwrap();
        check_session(&mut a, &expected);
        world.cut_power();
    }
    world.restart(Seed(3));
    world.check(&expected);
    let mut a = world.session();
    let t = table(&a);
    for at in expected.keys() {
        a.delete(&t, *at).unwrap();
    }
    a.commit().unwrap();
    drop(a);
    world.drain_and_audit(&Rows::new());
}

#[test]
fn a_shutdown_takes_back_what_sessions_left() {
    let mut world = World::new(config(2048));
    let mut idle = world.session();
    let t = table(&idle);
    let kept = idle.insert(&t, &row(1, 1, "kept")).unwrap();
    idle.commit().unwrap();
    idle.update(&t, kept, &row(1, 2, "not committed")).unwrap();
    idle.insert(&t, &row(2, 2, &"nor this".repeat(50))).unwrap();
    let mut locker = world.session();
    let locked = locker.insert(&t, &row(3, 3, "x")).unwrap();
    world.shut_down();
    assert!(matches!(idle.commit(), Err(EngineError::ShuttingDown)), "the session is of another life");
    assert!(matches!(locker.delete(&t, locked), Err(EngineError::ShuttingDown)));
    drop((idle, locker));
    world.drain_and_audit(&Rows::from([(kept, row(1, 1, "kept"))]));
}

#[test]
fn ids_go_on_after_a_restart() {
    let mut world = World::new(config(2048));
    let mut last = 0;
    for round in 0..6 {
        {
            let mut a = world.session();
            let t = table(&a);
            a.insert(&t, &row(round, 1, "x")).unwrap();
            let core = a.core().clone();
            let next = core.transactions.shared.table().next_xid().0;
            assert!(next > last, "round {round}: {next} after {last}");
            last = next - 1;
            a.commit().unwrap();
            if round % 2 == 0 {
                world.cut_power();
            }
        }
        if round % 2 == 0 { world.restart(Seed(round as u64)) } else { world.shut_down() }
    }
    assert_eq!(committed(&world).len(), 6);
}

#[test]
fn a_full_undo_tablespace_is_an_error_that_goes_away() {
    let mut config = config(2048);
    config.undo_bytes = 128 << 10;
    let world = World::new(config);
    world.storage.set_capacity(Some(0));
    let mut a = world.session();
    let t = table(&a);
    let at = a.insert(&t, &row(1, 1, "x")).unwrap();
    a.commit().unwrap();
    let refused = (0..10_000).find_map(|n| {
        let filler = [b'a' + (n % 26) as u8; 900];
        a.update(&t, at, &row(1, 1, std::str::from_utf8(&filler).unwrap())).err()
    });
    assert!(matches!(refused, Some(EngineError::TablespaceFull { .. })), "{refused:?}");
    a.rollback().unwrap();
    check_session(&mut a, &Rows::from([(at, row(1, 1, "x"))]));
    // Purge has given the pages back: the same again works for as long.
    for n in 0..40 {
        a.update(&t, at, &row(1, n, &"y".repeat(900))).unwrap();
    }
    a.commit().unwrap();
    world.storage.set_capacity(None);
}

fn undo_pages_taken(session: &Session) -> u32 {
    let core = session.core();
    let table = core.transactions.shared.table();
    let all: Vec<_> = table.streams.segments.iter().map(|slots| slots.segment.clone()).collect();
    drop(table);
    let header = |page| UndoHeader::read(&core.cache.read(&**core, session.context(), page).unwrap());
    all.iter().map(|segment| header(segment.header).taken).sum()
}

#[test]
fn small_transactions_need_no_new_undo_pages() {
    let world = World::new(config(2048));
    let mut a = world.session();
    let t = table(&a);
    let at = a.insert(&t, &row(1, 1, "x")).unwrap();
    a.commit().unwrap();
    let mut run = |count: i64| {
        for n in 0..count {
            a.update(&t, at, &row(1, n % 5, "y")).unwrap();
            a.commit().unwrap();
            let core = a.core().clone();
            core.transactions.monitor_step(&core, a.context()).unwrap();
        }
        undo_pages_taken(&a)
    };
    let before = run(200);
    assert_eq!(run(2000), before, "purged pages are used again");
}

#[test]
fn a_row_that_changes_often_is_purged_in_reasonable_time() {
    let world = World::new(config(8192));
    let (mut a, mut reader) = (world.session(), world.session());
    let t = table(&a);
    let at = a.insert(&t, &row(1, 1, "x")).unwrap();
    a.commit().unwrap();
    // As long as somebody reads, nothing can be purged.
    reader.begin_statement().unwrap();
    check_session(&mut reader, &Rows::from([(at, row(1, 1, "x"))]));
    for n in 0..3_000 {
        a.update(&t, at, &row(1, n, "x")).unwrap();
        a.commit().unwrap();
    }
    assert_eq!(scan(&mut reader), Rows::from([(at, row(1, 1, "x"))]));
    reader.end_statement();
    let steps = |session: &Session| session.context().counters.value(Statistic::ConsistentChanges);
    let before = steps(&a);
    let core = a.core().clone();
    while core.transactions.purge_step(&core, a.context()).unwrap() {}
    let walked = steps(&a) - before;
    assert!(walked < 10_000, "{walked} versions for 3,000 records");
    drop((a, reader));
    world.drain_and_audit(&Rows::from([(at, row(1, 2_999, "x"))]));
}

#[test]
fn an_old_index_entry_that_an_unfinished_transaction_uses_again_is_purged_when_it_has_ended() {
    for commits in [true, false] {
        let world = World::new(config(2048));
        let (mut a, mut b) = (world.session(), world.session());
        let t = table(&a);
        let at = a.insert(&t, &row(1, 10, "x")).unwrap();
        a.commit().unwrap();
        a.update(&t, at, &row(1, 20, "x")).unwrap();
        a.commit().unwrap();
        // The entry for 10 is there already, so no undo record says that it came with this update.
        b.update(&t, at, &row(1, 10, "x")).unwrap();
        let core = a.core().clone();
        while core.transactions.purge_step(&core, a.context()).unwrap() {}
        check_session(&mut b, &Rows::from([(at, row(1, 10, "x"))]));
        check_session(&mut a, &Rows::from([(at, row(1, 20, "x"))]));
        if commits {
            b.commit().unwrap()
        } else {
            b.rollback().unwrap()
        }
        drop((a, b));
        world.drain_and_audit(&Rows::from([(at, row(1, if commits { 10 } else { 20 }, "x"))]));
    }
}

#[test]
fn new_transactions_go_to_the_new_undo_tablespace_and_the_old_one_can_go() {
    let mut world = World::new(config(2048));
    let set = AlterSystem::Set { name: "undo_tablespace".into(), value: "undo2".into(), scope: None };
    let expected = {
        let (mut a, mut b, mut reader, mut dba) =
            (world.session(), world.session(), world.session(), world.session());
        let t = table(&a);
        let at = a.insert(&t, &row(1, 1, "old")).unwrap();
        a.commit().unwrap();
        reader.begin_statement().unwrap();
        a.update(&t, at, &row(1, 1, "new")).unwrap();
        let spec =
            FileSpec { path: "/db/undo2.dbf".into(), bytes: 512 << 10, next_bytes: 0, max_bytes: u64::MAX };
        dba.create_undo_tablespace("undo2", &[spec]).unwrap();
        dba.alter_system(&set).unwrap();
        let other = b.insert(&t, &row(2, 2, "in the new one")).unwrap();
        b.commit().unwrap();
        let mut refused = || {
            let core = dba.core().clone();
            while core.transactions.monitor_step(&core, dba.context()).unwrap() {}
            let dropped = dba.drop_tablespace("undo", false);
            assert!(matches!(dropped, Err(EngineError::Invalid(_))), "{dropped:?}");
        };
        // Somebody writes there; then somebody reads what is only there.
        refused();
        a.commit().unwrap();
        refused();
        check_session(&mut reader, &Rows::from([(at, row(1, 1, "old"))]));
        reader.end_statement();
        let core = dba.core().clone();
        while core.transactions.monitor_step(&core, dba.context()).unwrap() {}
        dba.drop_tablespace("undo", false).unwrap();
        b.update(&t, at, &row(1, 5, "after")).unwrap();
        b.commit().unwrap();
        a.update(&t, at, &row(1, 6, "not committed")).unwrap();
        world.cut_power();
        Rows::from([(at, row(1, 5, "after")), (other, row(2, 2, "in the new one"))])
    };
    world.restart(Seed(5));
    world.drain_and_audit(&expected);
}

#[test]
fn recovery_that_is_cut_off_at_any_moment_goes_on_from_there() {
    let mut world = World::new(config(2048).with("log_buffer", "64k"));
    let expected = {
        let (mut a, mut b) = (world.session(), world.session());
        let t = table(&a);
        let mut expected = Rows::new();
        for n in 0..150 {
            expected.insert(a.insert(&t, &row(n, n, "kept")).unwrap(), row(n, n, "kept"));
        }
        a.commit().unwrap();
        for (n, at) in expected.keys().enumerate() {
            match n % 3 {
                0 => a.delete(&t, *at).unwrap(),
                _ => a.update(&t, *at, &row(1000 + n as i64, 3, &"moves away".repeat(60))).unwrap(),
            }
            a.insert(&t, &row(2000 + n as i64, 1, "lost")).unwrap();
        }
        // Makes the redo of all that durable.
        let at = b.insert(&t, &row(999, 9, "b")).unwrap();
        b.commit().unwrap();
        expected.insert(at, row(999, 9, "b"));
        world.cut_power();
        expected
    };
    world.close();
    world.storage.heal();
    world.storage.crash(Seed(1));
    let mut cuts = 0;
    let mut nth = 1;
    loop {
        let trouble = Trouble::Errno(5);
        world.storage.inject(Fault { on: Call::Any, nth, for_ever: true, trouble });
        let opened = world.try_open();
        let whole = opened.is_ok();
        if whole {
            world.cut_power();
        }
        world.close();
        world.storage.heal();
        world.storage.crash(Seed(nth));
        if whole {
            break;
        }
        cuts += 1;
        nth += 1 + nth / 10;
    }
    assert!(cuts > 30, "{cuts}");
    world.open();
    // What earlier attempts had taken back, and made durable, was not done again.
    let applied = world.instance().core.statistics.value(Statistic::RollbackUndoRecordsApplied);
    assert!(applied < 900, "{applied} of about 900 records");
    world.drain_and_audit(&expected);
}
