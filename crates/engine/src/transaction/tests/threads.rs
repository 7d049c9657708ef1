//! Sessions in threads of their own, with all background processes at work: money is moved between accounts, and its
//! sum is always the same to whoever looks.

use super::world::{self, World, row, table};
use crate::context::Background;
use crate::session::Session;
use crate::statistics::Statistic;
use crate::value::{RowId, Value};
use crate::{EngineError, Environment, Result, testing};
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Clock, Rng, Seed};

const ACCOUNTS: i64 = 40;
const MONEY: i64 = 100;

fn world() -> World {
    let storage = testing::storage();
    let environment =
        Environment { background: Background::Threads, clock: Clock::Real, ..testing::environment(&storage) };
    World::with(storage, environment, world::config(4096).with("db_cache_size", "1m"))
}

fn number(value: &Value) -> i64 {
    match value {
        Value::Integer(n) => *n,
        other => panic!("{other:?} is no number"),
    }
}

/// Moves money between two accounts, by an indexed column, and now and then closes and opens an account anew.
fn transfer(session: &mut Session, rng: &mut Rng) -> Result<()> {
    let t = table(session);
    let index = &t.indexes[0];
    let account = |session: &mut Session, rng: &mut Rng| -> Result<Option<(RowId, Vec<Value>)>> {
        let id = Value::Integer(rng.below(ACCOUNTS as u64) as i64);
        let found = session.lookup(index, &[id])?;
        let Some((at, _)) = found.into_iter().next() else { return Ok(None) };
        Ok(session.get_for_update(&t, at)?.map(|row| (at, row)))
    };
    let (Some((from, a)), Some((to, b))) = (account(session, rng)?, account(session, rng)?) else {
        return Ok(());
    };
    if from == to {
        return Ok(());
    }
    let amount = rng.below(10) as i64;
    let filler = "m".repeat(rng.below(200) as usize);
    if rng.below(8) == 0 {
        session.delete(&t, from)?;
        session.insert(&t, &row(number(&a[0]), number(&a[1]) - amount, &filler))?;
    } else {
        session.update(&t, from, &row(number(&a[0]), number(&a[1]) - amount, &filler))?;
    }
    session.update(&t, to, &row(number(&b[0]), number(&b[1]) + amount, "to"))
}

fn move_money(session: &mut Session, mut rng: Rng, count: usize) {
    for _ in 0..count {
        let done = transfer(session, &mut rng);
        match done {
            Ok(()) if rng.below(10) > 0 => session.commit().unwrap(),
            Ok(()) | Err(EngineError::Deadlock { .. } | EngineError::NoSuchRow(_)) => {
                session.rollback().unwrap()
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// What all accounts have, by a scan and by an index, in one statement.
fn look(session: &mut Session) {
    session.begin_statement().unwrap();
    let rows = world::scan(session);
    let t = table(session);
    assert_eq!(rows.len() as i64, ACCOUNTS);
    assert_eq!(rows.values().map(|row| number(&row[1])).sum::<i64>(), ACCOUNTS * MONEY);
    assert_eq!(session.count(&t).unwrap(), ACCOUNTS as u64);
    world::check_session(session, &rows);
    session.end_statement();
}

#[test]
fn the_sum_of_all_money_stays_the_same() {
    let mut world = world();
    {
        let mut session = world.session();
        let t = table(&session);
        for id in 0..ACCOUNTS {
            session.insert(&t, &row(id, MONEY, "new")).unwrap();
        }
        session.commit().unwrap();
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let movers: Vec<_> = (0..4)
            .map(|n| {
                let mut session = world.session();
                scope.spawn(move || move_money(&mut session, Rng::new(Seed(n)), 400))
            })
            .collect();
        let mut session = world.session();
        let done = &done;
        let looker = scope.spawn(move || {
            let mut looks = 0;
            while !done.load(Ordering::Relaxed) || looks == 0 {
                look(&mut session);
                looks += 1;
            }
        });
        let results: Vec<_> = movers.into_iter().map(|mover| mover.join()).collect();
        done.store(true, Ordering::Relaxed);
        looker.join().unwrap();
        results.into_iter().for_each(|result| result.unwrap());
    });
    let waits = world.instance().core.statistics.value(Statistic::EnqueueWaits);
    assert!(waits > 0, "nobody ever met");
    let rows = world::scan(&mut world.session());
    world.drain_and_audit(&rows);
    world.shut_down();
    look(&mut world.session());
    world.drain_and_audit(&rows);
}

#[test]
fn two_sessions_that_wait_for_each_other_do_not_wait_for_ever() {
    let world = world();
    let (mut a, mut b) = (world.session(), world.session());
    let t = table(&a);
    let first = a.insert(&t, &row(1, 1, "first")).unwrap();
    let second = a.insert(&t, &row(2, 2, "second")).unwrap();
    a.commit().unwrap();
    a.update(&t, first, &row(1, 1, "by a")).unwrap();
    b.update(&t, second, &row(2, 2, "by b")).unwrap();
    std::thread::scope(|scope| {
        let (t, sid) = (&t, a.sid());
        let waiting = scope.spawn(move || a.update(t, second, &row(2, 2, "by a")).and_then(|()| a.commit()));
        // Not before the other one waits.
        while world.instance().core.statistics.value(Statistic::EnqueueWaits) == 0 {
            std::thread::yield_now();
        }
        let refused = b.update(t, first, &row(1, 1, "by b"));
        assert!(matches!(refused, Err(EngineError::Deadlock { blocker }) if blocker == sid), "{refused:?}");
        b.rollback().unwrap();
        waiting.join().unwrap().unwrap();
    });
    let rows = world::scan(&mut world.session());
    assert_eq!(rows.into_values().collect::<Vec<_>>(), [row(1, 1, "by a"), row(2, 2, "by a")]);
}
