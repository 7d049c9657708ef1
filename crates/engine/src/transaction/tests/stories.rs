//! Transactions told one by one.

use super::world::{Rows, World, check_session, config, row, scan, table};
use crate::{EngineError, Value};
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

#[test]
fn small_transactions_need_no_new_undo_pages() {
    let world = World::new(config(2048));
    let mut a = world.session();
    let t = table(&a);
    let at = a.insert(&t, &row(1, 1, "x")).unwrap();
    a.commit().unwrap();
    let core = a.core().clone();
    let blocks = || {
        let table = core.transactions.shared.table();
        let all: Vec<_> = table.streams.segments.iter().map(|slots| slots.segment.clone()).collect();
        drop(table);
        let header = |page| UndoHeader::read(&core.cache.read(&core, a_context(&world), page).unwrap());
        all.iter().map(|segment| header(segment.header).taken).sum::<u32>()
    };
    fn a_context(world: &World) -> &crate::Context {
        Box::leak(Box::new(world.session())).context()
    }
    use crate::transaction::undo_page::UndoHeader;
    for n in 0..200 {
        a.update(&t, at, &row(1, n % 5, "y")).unwrap();
        a.commit().unwrap();
        core.transactions.monitor_step(&core, a.context()).unwrap();
    }
    let before = blocks();
    for n in 0..2000 {
        a.update(&t, at, &row(1, n % 5, "z")).unwrap();
        a.commit().unwrap();
        core.transactions.monitor_step(&core, a.context()).unwrap();
    }
    assert_eq!(blocks(), before, "purged pages are used again");
}
