//! A model beside the database: sessions that insert, change, lock, delete, go back to savepoints, read in open
//! statements, commit and roll back, while purge runs and the power goes. What the model says each call must return,
//! it must return.

use super::world::{Rows, World, check_session, config, row, table};
use crate::session::{Savepoint, Session};
use crate::space::Table;
use crate::value::{Row, RowId, Value};
use crate::{EngineError, Result};
use io::sim::{Call, Fault, Trouble};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use units::{Rng, Seed};

/// Ids are drawn from so few that they often meet.
const IDS: u64 = 60;

/// What a session has changed and not committed.
#[derive(Clone, Debug, Default)]
struct Changes {
    rows: BTreeMap<RowId, Option<Row>>,
    locked: BTreeSet<RowId>,
}

struct Statement {
    /// What it sees.
    snapshot: Rows,
    /// What had been committed when it began.
    committed: Rows,
    /// What the session had changed by then.
    changes: Changes,
    /// Savepoints that there were.
    savepoints: usize,
}

struct Client {
    session: Session,
    changes: Changes,
    savepoints: Vec<(Savepoint, Changes)>,
    statement: Option<Statement>,
}

/// What a call must come to.
#[derive(Debug, PartialEq)]
enum Outcome {
    Done,
    Locked,
    Duplicate,
    /// The row was changed by somebody else since the statement began.
    Restart,
    /// The row has come since the statement began.
    NoRow,
}

/// The storage has failed: time to cut the power. `in_doubt`: what may have been committed.
struct Failed {
    in_doubt: Option<Changes>,
}

struct Model {
    rng: Rng,
    committed: Rows,
    clients: Vec<Client>,
    table: Arc<Table>,
}

fn apply(rows: &mut Rows, changes: &Changes) {
    for (at, row) in &changes.rows {
        match row {
            Some(row) => rows.insert(*at, row.clone()),
            None => rows.remove(at),
        };
    }
}

fn outcome<T>(result: &Result<T>) -> std::result::Result<Outcome, Failed> {
    match result {
        Ok(_) => Ok(Outcome::Done),
        Err(EngineError::RowLocked { .. }) => Ok(Outcome::Locked),
        Err(EngineError::DuplicateKey { .. }) => Ok(Outcome::Duplicate),
        Err(EngineError::StatementRestart) => Ok(Outcome::Restart),
        Err(EngineError::NoSuchRow(_)) => Ok(Outcome::NoRow),
        Err(EngineError::Io(_) | EngineError::Crashed(_)) => Err(Failed { in_doubt: None }),
        Err(other) => panic!("{other}"),
    }
}

impl Model {
    fn new(world: &World, rng: Rng, committed: Rows) -> Self {
        let clients: Vec<Client> = (0..4)
            .map(|_| Client {
                session: world.session(),
                changes: Changes::default(),
                savepoints: Vec::new(),
                statement: None,
            })
            .collect();
        let table = table(&clients[0].session);
        Self { rng, committed, clients, table }
    }

    fn below(&mut self, n: usize) -> usize {
        self.rng.below(n as u64) as usize
    }

    /// What a session would see if a statement began now.
    fn sees_now(&self, who: usize) -> Rows {
        let mut rows = self.committed.clone();
        apply(&mut rows, &self.clients[who].changes);
        rows
    }

    fn random_row(&mut self) -> Row {
        let (id, k) = (self.rng.below(IDS) as i64, self.rng.below(6) as i64);
        let filler = match self.rng.below(10) {
            0 => 600 + self.rng.below(700),
            1..4 => self.rng.below(300),
            _ => self.rng.below(20),
        };
        row(id, k, &"f".repeat(filler as usize))
    }

    /// Which session other than `who` holds a row.
    fn holder(&self, who: usize, at: RowId) -> Option<usize> {
        (0..self.clients.len())
            .find(|&other| other != who && self.clients[other].changes.locked.contains(&at))
    }

    /// What the unique index says about a new row (or version of `at`) with this id.
    fn unique(&self, who: usize, at: Option<RowId>, id: &Value) -> Outcome {
        let own = self.sees_now(who);
        let mut locked = false;
        let others = self.clients.iter().enumerate().filter(|(other, _)| *other != who);
        for (_, other) in others {
            for (held, newest) in &other.changes.rows {
                let before = self.committed.get(held);
                let has = |row: Option<&Row>| row.is_some_and(|row| row[0] == *id);
                locked |= has(newest.as_ref()) || has(before);
            }
            // Locked and not changed: its newest version is what was committed, by somebody who has not ended.
            let only_locked =
                other.changes.locked.iter().filter(|held| !other.changes.rows.contains_key(held));
            locked |=
                only_locked.clone().any(|held| self.committed.get(held).is_some_and(|row| row[0] == *id));
        }
        let duplicate = own
            .iter()
            .any(|(row, values)| Some(*row) != at && values[0] == *id && self.holder(who, *row).is_none());
        match (duplicate, locked) {
            (true, _) => Outcome::Duplicate,
            (false, true) => Outcome::Locked,
            _ => Outcome::Done,
        }
    }

    fn insert(&mut self, who: usize) -> std::result::Result<(), Failed> {
        let new = self.random_row();
        let expected = self.unique(who, None, &new[0]);
        let client = &mut self.clients[who];
        let done = client.session.insert(&self.table, &new);
        assert_eq!(outcome(&done)?, expected, "insert {new:?} by {who}");
        if let Ok(at) = done {
            assert!(!client.changes.rows.get(&at).is_some_and(Option::is_some), "{at} is taken");
            client.changes.rows.insert(at, Some(new));
            client.changes.locked.insert(at);
        }
        Ok(())
    }

    /// A row that the session sees, in its open statement or now.
    fn some_row(&mut self, who: usize) -> Option<RowId> {
        let rows = match &self.clients[who].statement {
            Some(statement) if self.rng.below(2) == 0 => {
                statement.snapshot.keys().copied().collect::<Vec<_>>()
            }
            _ => self.sees_now(who).keys().copied().collect(),
        };
        (!rows.is_empty()).then(|| rows[self.below(rows.len())])
    }

    /// What must come of changing a row that is there or not; none when more than one answer is right.
    fn expect_change(&self, who: usize, at: RowId) -> Option<Outcome> {
        if self.holder(who, at).is_some() {
            return Some(Outcome::Locked);
        }
        let Some(statement) = &self.clients[who].statement else { return Some(Outcome::Done) };
        if self.clients[who].changes.locked.contains(&at) {
            // Who has locked a row has been told its newest version.
            return Some(Outcome::Done);
        }
        match (statement.committed.get(&at), self.committed.get(&at)) {
            // Somebody may have locked it and let it go, or changed it and changed it back.
            (then, now) if then == now => None,
            (None, _) => Some(Outcome::NoRow),
            _ => Some(Outcome::Restart),
        }
    }

    /// The statement that is open is taken back as a whole.
    fn restart(&mut self, who: usize) {
        let client = &mut self.clients[who];
        let statement = client.statement.take().expect("only statements restart");
        client.changes = statement.changes;
        client.savepoints.truncate(statement.savepoints);
    }

    /// Updates (with a row) or deletes.
    fn change(&mut self, who: usize, delete: bool) -> std::result::Result<(), Failed> {
        let Some(at) = self.some_row(who) else { return Ok(()) };
        let current = self.sees_now(who).get(&at).cloned();
        let new = (!delete).then(|| {
            let mut new = self.random_row();
            if let (Some(current), true) = (&current, self.rng.below(4) > 0) {
                new[0] = current[0].clone();
            }
            new
        });
        let row_expected = self.expect_change(who, at);
        let unique = new.as_ref().map_or(Outcome::Done, |new| match &current {
            Some(current) if current[0] == new[0] => Outcome::Done,
            _ => self.unique(who, Some(at), &new[0]),
        });
        let client = &mut self.clients[who];
        let done = match &new {
            Some(new) => client.session.update(&self.table, at, new),
            None => client.session.delete(&self.table, at),
        };
        if current.is_none() {
            // Gone meanwhile, or by this session itself: of a statement that saw it, one error or the other.
            match outcome(&done)? {
                Outcome::NoRow => {}
                Outcome::Restart => self.restart(who),
                Outcome::Locked if self.holder(who, at).is_some() => {}
                other => panic!("{other:?} for {at}, which is gone"),
            }
            return Ok(());
        }
        let got = outcome(&done)?;
        match (row_expected, &got) {
            (Some(Outcome::Done), got) => assert_eq!(*got, unique, "{at} by {who}"),
            (Some(expected), got) => assert_eq!(*got, expected, "{at} by {who}"),
            (None, Outcome::Restart) => {}
            (None, got) => assert_eq!(*got, unique, "{at} by {who} in a statement"),
        }
        match got {
            Outcome::Done => {
                let client = &mut self.clients[who];
                client.changes.rows.insert(at, new);
                client.changes.locked.insert(at);
            }
            Outcome::Restart => self.restart(who),
            _ => {}
        }
        Ok(())
    }

    fn lock(&mut self, who: usize) -> std::result::Result<(), Failed> {
        let Some(at) = self.some_row(who) else { return Ok(()) };
        let held = self.holder(who, at).is_some();
        let expected = self.sees_now(who).get(&at).cloned();
        let client = &mut self.clients[who];
        let done = client.session.get_for_update(&self.table, at);
        match outcome(&done)? {
            Outcome::Locked => assert!(held, "{at} by {who}"),
            _ => {
                assert!(!held);
                // It gives the newest version, whatever the open statement sees.
                assert_eq!(done.ok().flatten(), expected, "{at} by {who}");
                if expected.is_some() {
                    client.changes.locked.insert(at);
                }
            }
        }
        Ok(())
    }

    fn commit(&mut self, who: usize) -> std::result::Result<(), Failed> {
        let client = &mut self.clients[who];
        end_statement(client);
        client.savepoints.clear();
        let done = client.session.commit();
        let changes = std::mem::take(&mut client.changes);
        if done.is_err() {
            return Err(Failed { in_doubt: Some(changes) });
        }
        apply(&mut self.committed, &changes);
        Ok(())
    }

    fn rollback(&mut self, who: usize) -> std::result::Result<(), Failed> {
        let client = &mut self.clients[who];
        end_statement(client);
        client.savepoints.clear();
        client.changes = Changes::default();
        outcome(&client.session.rollback()).map(|_| ())
    }

    fn savepoints(&mut self, who: usize) -> std::result::Result<(), Failed> {
        let draw = self.below(8);
        let client = &mut self.clients[who];
        if client.statement.is_some() {
            return Ok(());
        }
        if draw < 4 || client.savepoints.is_empty() {
            client.savepoints.push((client.session.savepoint(), client.changes.clone()));
            return Ok(());
        }
        let at = draw % client.savepoints.len();
        client.savepoints.truncate(at + 1);
        let (savepoint, changes) = client.savepoints[at].clone();
        client.changes = changes;
        outcome(&client.session.rollback_to(savepoint)).map(|_| ())
    }

    fn statement(&mut self, who: usize) -> std::result::Result<(), Failed> {
        let snapshot = self.sees_now(who);
        let committed = self.committed.clone();
        let client = &mut self.clients[who];
        if client.statement.is_some() {
            end_statement(client);
            return Ok(());
        }
        outcome(&client.session.begin_statement())?;
        let (changes, savepoints) = (client.changes.clone(), client.savepoints.len());
        client.statement = Some(Statement { snapshot, committed, changes, savepoints });
        Ok(())
    }

    fn check(&mut self, who: usize) {
        let expected = match &self.clients[who].statement {
            Some(statement) => statement.snapshot.clone(),
            None => self.sees_now(who),
        };
        check_session(&mut self.clients[who].session, &expected);
    }

    fn purge(&mut self, who: usize) -> std::result::Result<(), Failed> {
        let session = &self.clients[who].session;
        outcome(&session.core().transactions.purge_step(session.core(), session.context())).map(|_| ())
    }

    fn step(&mut self, who: usize, may_check: bool) -> std::result::Result<(), Failed> {
        match self.below(40) {
            0..10 => self.insert(who),
            10..19 => self.change(who, false),
            19..23 => self.change(who, true),
            23..25 => self.lock(who),
            25..29 => self.commit(who),
            29 | 30 => self.rollback(who),
            31..34 => self.savepoints(who),
            34 | 35 => self.statement(who),
            36 | 37 => self.purge(who),
            _ if may_check => {
                self.check(who);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn end_statement(client: &mut Client) {
    if client.statement.take().is_some() {
        client.session.end_statement();
    }
}

impl Model {
    /// A read failed, and the instance lives: the call, or the whole transaction, was undone, now or in the background.
    fn survive(&mut self, who: usize, world: &World) {
        world.storage.heal();
        let client = &mut self.clients[who];
        end_statement(client);
        // A savepoint that could not be gone back to leaves nothing that could be committed.
        client.session.rollback().unwrap();
        client.savepoints.clear();
        client.changes = Changes::default();
        let core = client.session.core().clone();
        while core.transactions.monitor_step(&core, client.session.context()).unwrap() {}
    }
}

/// What the storage does in a life.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Weather {
    Calm,
    /// Now and then a read fails.
    Gusts,
    /// From some call on nothing works any more.
    Storm,
}

/// How a life went.
struct Life {
    /// What must be there afterwards.
    committed: Rows,
    /// What may be there instead.
    alternative: Option<Rows>,
    /// Failed calls that it survived.
    survived: u32,
}

/// One life of an instance, ended by the power.
fn live(world: &World, rng: &mut Rng, committed: Rows, steps: u64) -> Life {
    let mut model = Model::new(world, Rng::new(Seed(rng.next_u64())), committed);
    let mut survived = 0;
    let weather = [Weather::Calm, Weather::Gusts, Weather::Storm, Weather::Storm][rng.below(4) as usize];
    for step in 0..steps {
        let trouble = Trouble::Errno(5);
        match weather {
            Weather::Storm if step == steps / 2 => {
                let nth = 1 + rng.below(60);
                world.storage.inject(Fault { on: Call::Any, nth, for_ever: true, trouble });
            }
            Weather::Gusts if step % 8 == 0 => {
                // So that there is something to read.
                world.flush_cache();
                let nth = 1 + rng.below(20);
                world.storage.inject(Fault { on: Call::Read, nth, for_ever: false, trouble });
            }
            _ => {}
        }
        let quiet = weather == Weather::Calm || (weather == Weather::Storm && step < steps / 2);
        let who = model.below(model.clients.len());
        if let Err(failed) = model.step(who, quiet) {
            if world.instance().crashed().is_none() && weather == Weather::Gusts {
                model.survive(who, world);
                survived += 1;
                continue;
            }
            world.cut_power();
            let alternative = failed.in_doubt.map(|changes| {
                let mut rows = model.committed.clone();
                apply(&mut rows, &changes);
                rows
            });
            return Life { committed: model.committed, alternative, survived };
        }
    }
    if weather == Weather::Gusts {
        world.storage.heal();
        (0..model.clients.len()).for_each(|who| model.check(who));
    }
    world.cut_power();
    Life { committed: model.committed, alternative: None, survived }
}

/// Returns how many failed calls instances survived.
fn run(seed: u64, block_bytes: u64, lives: u64, steps: u64) -> u32 {
    let mut rng = Rng::new(Seed(seed));
    let mut world = World::new(config(block_bytes));
    let mut committed = Rows::new();
    let mut survived = 0;
    for life in 0..lives {
        let lived = live(&world, &mut rng, committed, steps);
        survived += lived.survived;
        world.restart(Seed(rng.next_u64()));
        let found = super::world::scan(&mut world.session());
        assert!(
            found == lived.committed || Some(&found) == lived.alternative.as_ref(),
            "seed {seed}, life {life}: {found:?}"
        );
        committed = found;
        world.check(&committed);
        if life % 3 == 2 {
            world.drain_and_audit(&committed);
        }
        if life % 4 == 3 {
            world.shut_down();
            world.check(&committed);
        }
    }
    world.drain_and_audit(&committed);
    survived
}

#[test]
fn sessions_do_what_the_model_does() {
    let seeds = 0..8;
    let survived: u32 = seeds.map(|seed| run(seed, [2048, 8192, 4096][seed as usize % 3], 8, 300)).sum();
    assert!(survived > 20, "only {survived} calls failed and were survived");
}
