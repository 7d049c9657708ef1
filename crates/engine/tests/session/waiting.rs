//! Who waits for whom when DDL meets transactions and cursors, seen as a DBA would see it.

use crate::machine::{all, config, index, int, people, storage, text};
use engine::{Background, Environment, Instance, Session};
use io::sim::SimStorage;
use std::sync::mpsc::{Receiver, channel};
use units::{Clock, Nanos, Seed, clock};
use waits::Event;

fn instance(storage: &SimStorage) -> Instance {
    let environment = Environment {
        storage: storage.handle(),
        clock: Clock::Real,
        background: Background::Threads,
        seed: Seed(1),
    };
    Instance::create(environment, config()).unwrap()
}

/// Until the session is seen waiting for a table; by whom it is blocked.
fn until_waiting(instance: &Instance, sid: u32) -> Option<u32> {
    for _ in 0..5000 {
        let sessions = instance.core.waits.sessions();
        let state = sessions.into_iter().find(|state| state.sid == sid).expect("it is there");
        if state.doing.event() == Some(Event::EnqTmContention) {
            return state.blocker;
        }
        clock::sleep(Nanos::millis(1));
    }
    panic!("session {sid} does not wait");
}

/// Does the work with the session in a thread of its own, which gives the session back.
fn start(mut session: Session, work: impl FnOnce(&mut Session) + Send + 'static) -> Receiver<Session> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        work(&mut session);
        sender.send(session).unwrap();
    });
    receiver
}

#[test]
fn an_index_waits_for_writers_and_new_writers_wait_for_the_index() {
    let storage = storage(31);
    let instance = instance(&storage);
    let [mut writer, mut other, ddl, newcomer] = [0; 4].map(|_| instance.session("test").unwrap());
    let (t, u) = (writer.create_table(&people("t")).unwrap(), writer.create_table(&people("u")).unwrap());
    let row = |n: i64| [int(n), text("x"), int(n)];
    writer.insert(&t, &row(1)).unwrap();
    other.insert(&u, &row(1)).unwrap();

    let (ddl_sid, newcomer_sid) = (ddl.sid(), newcomer.sid());
    let ddl = start(ddl, |ddl| _ = ddl.create_index(&index("t_id", "t", &["id"], true)).unwrap());
    assert_eq!(until_waiting(&instance, ddl_sid), Some(writer.sid()));
    let table = t.clone();
    let newcomer = start(newcomer, move |session| {
        session.insert(&table, &row(2)).unwrap();
        session.commit().unwrap();
    });
    until_waiting(&instance, newcomer_sid);
    assert_eq!(all(&mut other, "t"), Vec::<Vec<_>>::new(), "readers go on");
    writer.insert(&t, &row(3)).unwrap();
    // This one has locked rows elsewhere: the writer might wait for it, and then nobody would ever go on.
    other.insert(&t, &row(4)).unwrap();
    other.commit().unwrap();
    assert!(ddl.try_recv().is_err(), "it still waits for the first writer");
    writer.commit().unwrap();
    let mut ddl = ddl.recv().unwrap();
    newcomer.recv().unwrap();
    let by_id = ddl.index("t_id").unwrap();
    for n in 1..=4 {
        assert_eq!(ddl.lookup(&by_id, &[int(n)]).unwrap().len(), 1, "{n}");
    }
}

#[test]
fn a_drop_waits_for_a_cursor_and_readers_then_find_nothing() {
    let storage = storage(32);
    let instance = instance(&storage);
    let [mut reader, ddl, newcomer] = [0; 3].map(|_| instance.session("test").unwrap());
    let table = reader.create_table(&people("t")).unwrap();
    reader.insert(&table, &[int(1), text("x"), int(1)]).unwrap();
    reader.commit().unwrap();
    let mut scan = reader.scan(&table).unwrap();

    let (ddl_sid, newcomer_sid) = (ddl.sid(), newcomer.sid());
    let ddl = start(ddl, |ddl| ddl.drop_table("t").unwrap());
    assert_eq!(until_waiting(&instance, ddl_sid), Some(reader.sid()));
    let late = start(newcomer, move |session| {
        let error = session.count(&table).unwrap_err().to_string();
        assert_eq!(error, "table t does not exist: it was dropped");
    });
    until_waiting(&instance, newcomer_sid);
    assert!(scan.next(&mut reader).unwrap().is_some());
    assert!(scan.next(&mut reader).unwrap().is_none());
    assert!(ddl.try_recv().is_err(), "the cursor is still open");
    drop(scan);
    let mut ddl = ddl.recv().unwrap();
    late.recv().unwrap();
    assert_eq!(ddl.check_space().unwrap(), Vec::<String>::new());
}

#[test]
fn a_shutdown_wakes_who_waits_for_a_table() {
    let storage = storage(33);
    let instance = instance(&storage);
    let [mut writer, ddl] = [0; 2].map(|_| instance.session("test").unwrap());
    let table = writer.create_table(&people("t")).unwrap();
    writer.insert(&table, &[int(1), text("x"), int(1)]).unwrap();
    let sid = ddl.sid();
    let ddl = start(ddl, |ddl| assert!(ddl.drop_table("t").is_err()));
    until_waiting(&instance, sid);
    instance.shutdown(engine::Shutdown::Immediate).unwrap();
    ddl.recv().unwrap();
    assert!(writer.commit().is_err());
}
