//! Several sessions at once: what each sees, who waits for whom, and statements that others overtake.

mod support;

use engine::{Background, Environment, Instance, InstanceConfig, Shutdown, Value};
use io::RealStorage;
use sql::{Connection, Kept, Nowhere};
use std::sync::Arc;
use support::{check, database, refused, run};
use units::{Clock, Seed};

const THREADS: usize = 4;
const TURNS: usize = 25;

#[test]
fn nobody_sees_what_is_not_committed() {
    let mut db = database();
    let mut other = db.connect();
    run(&mut db, &["create table t (id number primary key, n number)", "insert into t values (1, 1)"]);
    check(&mut other, "select count(*) from t", "0");
    run(&mut db, &["commit", "update t set n = 2"]);
    check(&mut db, "select n from t", "2");
    check(&mut other, "select n from t where id = 1", "1");
    // In a simulation nobody could release the row meanwhile, so it is said at once.
    refused(&mut other, "update t set n = 3", "locked by session");
    run(&mut db, &["rollback"]);
    run(&mut other, &["update t set n = n + 3", "commit"]);
    check(&mut db, "select n from t", "4");
}

#[test]
fn definitions_of_others_are_seen() {
    let mut db = database();
    let mut other = db.connect();
    refused(&mut other, "select * from t", "table t does not exist");
    run(&mut db, &["create table t (a number)", "insert into t values (1)", "commit"]);
    check(&mut other, "select * from t", "1");
    run(&mut db, &["drop table t", "create table t (b number, c number)"]);
    check(&mut other, "select b, c from t", "");
    run(&mut db, &["create index t_b on t (b)"]);
    check(
        &mut other,
        "explain plan for select c from t where b = 1",
        "TABLE ACCESS BY INDEX ROWID T, INDEX RANGE SCAN T_B",
    );
    run(&mut db, &["drop table t"]);
    refused(&mut other, "select * from t", "table t does not exist");
}

/// Each thread adds to the same few rows; no addition may be lost, though each statement computes the new value from the old one
/// that it has read before it had the lock.
#[test]
fn additions_of_many_sessions_all_count() {
    let folder = tempfile::Builder::new().prefix("redoubt-sql-").tempdir_in("/var/tmp").expect("a folder");
    let environment = Environment {
        storage: Arc::new(RealStorage),
        clock: Clock::Real,
        background: Background::Threads,
        seed: Seed(7),
    };
    let instance = Instance::create(environment, support::small(InstanceConfig::new(folder.path())));
    let instance = instance.expect("an instance");
    let connect = || Connection::new(instance.session("adder").expect("a session")).expect("a connection");
    let mut db = connect();
    run(&mut db, &["create table t (id number primary key, n number)"]);
    run(&mut db, &["insert into t values (1, 0), (2, 0)", "commit"]);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let mut db = connect();
            scope.spawn(move || {
                let add = db.prepare("update t set n = n + 1 where id = ?").expect("a statement");
                for turn in 0..TURNS {
                    // Always in this order, so that nobody waits in a circle.
                    for id in 1..=2 {
                        let done = db.run(&add, &[Value::Integer(id)], &mut Nowhere);
                        done.unwrap_or_else(|error| panic!("thread {thread}, turn {turn}: {error}"));
                    }
                    db.commit().expect("a commit");
                }
            });
        }
    });
    let mut kept = Kept::default();
    db.execute("select sum(n), count(*) from t", &mut kept).expect("a query");
    assert_eq!(kept.rows, [[Value::Integer((2 * THREADS * TURNS) as i64), Value::Integer(2)]]);
    drop(db);
    instance.shutdown(Shutdown::Immediate).expect("a clean end");
}
