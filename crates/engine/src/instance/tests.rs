//! Tests of the parent module: processes that have nothing to do, fail, and panic. The life of an instance is in `tests/life`.

use super::process::{Process, Role};
use super::*;
use crate::{Background, testing};
use std::sync::atomic::{AtomicU32, Ordering};
use units::Nanos;

/// No instance has so many database writers.
const ROLE: Role = Role::DatabaseWriter(35);

fn instance(background: Background) -> Instance {
    let storage = testing::storage();
    let environment = Environment { background, ..testing::environment(&storage) };
    let config =
        InstanceConfig { data_bytes: 1, undo_bytes: 1 << 20, temp_bytes: 1, ..InstanceConfig::new("/db") };
    let config = InstanceConfig { redo_bytes: 1 << 20, ..config.with("db_cache_size", "1m") };
    Instance::create(environment, config).unwrap()
}

/// Does in a step what it is told to.
struct Told<F>(F);

impl<F: FnMut(&Core) -> Result<bool> + Send> Process for Told<F> {
    fn role(&self) -> Role {
        ROLE
    }
    fn step(&mut self, core: &Core, _context: &Context) -> Result<bool> {
        (self.0)(core)
    }
    fn idle(&self) -> Nanos {
        Nanos::millis(1)
    }
}

fn start(instance: &Instance, step: impl FnMut(&Core) -> Result<bool> + Send + 'static) {
    instance.core.processes.start(&instance.core, Box::new(Told(step))).unwrap();
}

#[test]
fn who_waits_does_the_work_until_it_is_done() {
    let instance = instance(Background::Inline);
    let done = Arc::new(AtomicU32::new(0));
    let counted = done.clone();
    // A step inside of a step is the same step.
    start(&instance, move |core| {
        assert!(!core.processes.step(core, ROLE)?);
        Ok(counted.fetch_add(1, Ordering::SeqCst) < 10)
    });
    let core = &instance.core;
    core.processes.drive(core, &[ROLE], &mut || Ok(done.load(Ordering::SeqCst) == 5)).unwrap();
    assert_eq!(done.load(Ordering::SeqCst), 5);
    let stuck = core.processes.drive(core, &[ROLE], &mut || Ok(false)).unwrap_err().to_string();
    assert!(stuck.contains("dbwz for ever"), "{stuck}");
    core.processes.stop(ROLE);
    assert!(!core.processes.step(core, ROLE).unwrap() && !core.processes.roles().contains(&ROLE));
    assert_eq!(instance.crashed(), None);
}

#[test]
fn a_process_that_fails_stops_the_instance() {
    for background in [Background::Inline, Background::Threads] {
        let instance = instance(background);
        start(&instance, |_| Err(EngineError::Invalid("the disk is gone".into())));
        match background {
            Background::Inline => {
                assert!(instance.core.processes.step(&instance.core, ROLE).is_err());
                let later = instance.core.processes.step(&instance.core, Role::LogWriter);
                assert!(matches!(later, Err(EngineError::Crashed(_))));
            }
            Background::Threads => wait_for_crash(&instance),
        }
        assert_eq!(instance.crashed().unwrap(), "dbwz: the disk is gone");
        assert!(matches!(instance.shutdown(Shutdown::Immediate), Err(EngineError::Crashed(_))));
    }
}

#[test]
fn a_process_that_panics_stops_the_instance() {
    let instance = instance(Background::Threads);
    start(&instance, |_| panic!("on purpose, by a test"));
    wait_for_crash(&instance);
    assert_eq!(instance.crashed().unwrap(), "dbwz panicked");
}

/// Two databases made with one seed are two databases.
#[test]
fn each_database_has_its_own_id() {
    let ids: Vec<_> =
        (0..2).map(|_| instance(Background::Inline).core.control.content().database_id).collect();
    assert_eq!(ids[0], ids[1], "in a simulation of the same moment and place it is the same");
    let storage = testing::storage();
    let environment = testing::environment(&storage);
    let made = ["/db/a", "/db/b"].map(|directory| {
        let config = InstanceConfig { redo_bytes: 1 << 20, ..InstanceConfig::new(directory) };
        Instance::create(environment.clone(), config).unwrap().core.control.content().database_id
    });
    assert_ne!(made[0], made[1]);
}

/// What an instance held, files and memory, is free when it and its sessions are gone.
#[test]
fn nothing_holds_an_instance_that_is_gone() {
    for background in [Background::Inline, Background::Threads] {
        for how in [Shutdown::Immediate, Shutdown::Abort] {
            let instance = instance(background);
            let core = Arc::downgrade(&instance.core);
            let session = instance.session("test").unwrap();
            instance.shutdown(how).unwrap();
            assert!(core.upgrade().is_some(), "a session keeps it");
            drop(session);
            assert!(core.upgrade().is_none(), "{background:?} {how:?}");
        }
    }
}

fn wait_for_crash(instance: &Instance) {
    while instance.crashed().is_none() {
        std::thread::yield_now();
    }
}

#[test]
fn every_session_has_a_number_and_there_is_an_end_to_them() {
    let instance = instance(Background::Inline);
    let mut contexts = Vec::new();
    let error = loop {
        match instance.core.context(SessionKind::Foreground, "test") {
            Ok(context) => contexts.push(context),
            Err(error) => break error.to_string(),
        }
    };
    assert!(contexts.len() > 300 && error.contains("all 400 sessions are taken"), "{error}");
    let mut numbers: Vec<_> = contexts.iter().map(|context| context.session).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), contexts.len());
    contexts.pop();
    instance.core.context(SessionKind::Foreground, "test").unwrap();
}
