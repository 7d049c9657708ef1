//! A database beside its model: random calls by several sessions, whose answers must be the model's, through restarts and crashes.

use crate::machine::{create, index, int, open, people, storage, text, try_open};
use crate::model::{Changes, IndexModel, Model, Refusal, TableModel, apply, difference, refusals, seen};
use engine::instance::process::Role;
use engine::{EngineError, Instance, Result, Row, RowId, Savepoint, Scan, Session, Shutdown, Value};
use io::sim::SimStorage;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use units::{Rng, Seed};

const TABLES: [&str; 3] = ["a", "b", "c"];
const INDEXES: [(&str, &[usize], bool); 3] =
    [("id", &[0], true), ("both", &[2, 1], false), ("size_id", &[2, 0], true)];
const COLUMNS: [&str; 3] = ["id", "name", "size"];

/// A scan that is read a little at a time, and what it must give.
struct OpenScan {
    table: String,
    scan: Scan,
    expected: BTreeMap<RowId, Row>,
}

struct Actor {
    session: Session,
    changes: Changes,
    entered: BTreeSet<String>,
    savepoints: Vec<(Savepoint, Changes)>,
    scan: Option<OpenScan>,
}

pub struct World {
    storage: SimStorage,
    instance: Option<Instance>,
    actors: Vec<Actor>,
    committed: Model,
    /// What the database may say instead, should the power go during this call.
    perhaps: Vec<Model>,
    rng: Rng,
    /// The power may go during this call.
    cutting: bool,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let storage = storage(seed);
        let instance = create(&storage);
        let mut world = Self {
            storage,
            instance: Some(instance),
            actors: Vec::new(),
            committed: Model::new(),
            perhaps: Vec::new(),
            rng: Rng::new(Seed(seed)),
            cutting: false,
        };
        world.sessions();
        world
    }

    fn sessions(&mut self) {
        let instance = self.instance.as_ref().unwrap();
        self.actors = (0..3)
            .map(|n| Actor {
                session: instance.session(&format!("actor {n}")).unwrap(),
                changes: Changes::new(),
                entered: BTreeSet::new(),
                savepoints: Vec::new(),
                scan: None,
            })
            .collect();
    }

    fn below(&mut self, n: usize) -> usize {
        self.rng.below(n as u64) as usize
    }

    /// One random call; sometimes the power goes meanwhile.
    pub fn step(&mut self) {
        if self.below(40) > 0 {
            self.act().expect("without a crash all goes as the model says");
            return;
        }
        let at = self.storage.calls() + 1 + self.rng.below(40);
        let seed = Seed(self.rng.next_u64());
        let fired = Arc::new(AtomicU64::new(0));
        let flag = fired.clone();
        self.storage.on_call(Some(Arc::new(move |storage, info| {
            if info.number == at {
                storage.crash(seed);
                flag.store(1, Ordering::SeqCst);
            }
        })));
        self.cutting = true;
        let result = self.act();
        self.cutting = false;
        self.storage.on_call(None);
        if fired.load(Ordering::SeqCst) == 0 {
            result.expect("there was no crash");
            return;
        }
        self.reopen();
    }

    /// After a crash: what was committed is there, and what was being committed perhaps.
    fn reopen(&mut self) {
        self.actors.clear();
        self.instance = None;
        let seed = self.rng.next_u64();
        self.storage.crash(Seed(seed));
        self.instance = Some(open(&self.storage));
        self.sessions();
        let found = self.read_all();
        let mut may_be = std::mem::take(&mut self.perhaps);
        may_be.push(self.committed.clone());
        let differences: Vec<String> = may_be.iter().map(|model| difference(model, &found)).collect();
        assert!(differences.iter().any(String::is_empty), "{}", differences.join("\nor "));
        self.committed = found;
        self.check();
    }

    fn restart(&mut self) -> Result<()> {
        self.actors.clear();
        self.instance.take().unwrap().shutdown(Shutdown::Immediate)?;
        self.storage.on_call(None);
        self.instance = Some(try_open(&self.storage)?);
        self.sessions();
        self.check();
        Ok(())
    }

    fn read_all(&mut self) -> Model {
        let session = &mut self.actors[0].session;
        let mut model = Model::new();
        for table in session.tables() {
            let mut scan = session.scan(&table).unwrap();
            let mut rows = BTreeMap::new();
            while let Some((at, row)) = scan.next(session).unwrap() {
                assert!(rows.insert(at, row).is_none(), "{at} twice");
            }
            let index = |index: &Arc<engine::Index>| {
                let name = index.name.split_once('_').unwrap().1.to_owned();
                (name, (index.columns.clone(), index.unique))
            };
            model.insert(
                table.name.clone(),
                TableModel { rows, indexes: table.indexes.iter().map(index).collect() },
            );
        }
        model
    }

    /// Everything is as the model says: rows, indexes, space.
    pub fn check(&mut self) {
        assert_eq!(self.read_all(), self.committed);
        let session = &mut self.actors[0].session;
        for (name, model) in &self.committed {
            let table = session.table(name).unwrap();
            assert_eq!(session.count(&table).unwrap(), model.rows.len() as u64);
            for index in &table.indexes {
                let mut cursor = session.range(index, Bound::Unbounded, Bound::Unbounded, false).unwrap();
                let mut rows = BTreeMap::new();
                let mut before = None;
                while let Some((at, row)) = cursor.next(session).unwrap() {
                    let key = Some(index.key(&row));
                    assert!(before <= key, "out of order");
                    before = key;
                    assert!(rows.insert(at, row).is_none(), "{at} twice in {}", index.name);
                }
                assert_eq!(rows, model.rows, "{}", index.name);
                let core = session.core().clone();
                let structure = engine::btree::check(&core, session.context(), &index.segment).unwrap();
                assert_eq!(structure.problems, Vec::<String>::new(), "{}", index.name);
            }
        }
        assert_eq!(session.check_space().unwrap(), Vec::<String>::new());
    }

    fn act(&mut self) -> Result<()> {
        self.perhaps.clear();
        let who = self.below(self.actors.len());
        let Some(table) = self.any_table() else { return self.create_table(who) };
        match self.below(100) {
            0..20 => self.insert(who, &table),
            20..26 => self.insert_many(who, &table),
            26..44 => self.update(who, &table),
            44..54 => self.delete(who, &table),
            54..60 => self.look_up(who, &table),
            60..63 => self.compare(who, &table),
            63..69 => self.scan(who, &table),
            69..74 => self.savepoint(who),
            74..84 => self.commit(who),
            84..88 => self.rollback(who),
            88..90 => self.create_table(who),
            90..93 => self.create_index(who, &table),
            93 => self.drop_index(who, &table),
            94 => self.truncate(who, &table),
            95 => self.drop_table(who, &table),
            96 => self.monitor(),
            97 => self.alter_system(who),
            98 => {
                self.commit_all()?;
                if !self.cutting {
                    self.check();
                }
                Ok(())
            }
            _ if self.below(3) == 0 => self.restart(),
            _ => self.monitor(),
        }
    }

    fn any_table(&mut self) -> Option<String> {
        let n = self.below(self.committed.len().max(1));
        self.committed.keys().nth(n).cloned()
    }

    fn row(&mut self) -> Row {
        let name = match self.below(5) {
            0 => Value::Null,
            1 => text(&"long ".repeat(self.below(70))),
            _ => text(&format!("n{}", self.below(10))),
        };
        let size = if self.below(8) == 0 { Value::Null } else { int(self.below(20) as i64) };
        vec![int(self.below(300) as i64), name, size]
    }

    fn visible_row(&mut self, who: usize, table: &str) -> Option<RowId> {
        let rows = seen(&self.committed, &self.actors[who].changes, table);
        let n = self.below(rows.len().max(1));
        rows.into_keys().nth(n)
    }

    fn is_held_by_another(&self, who: usize, table: &str, at: RowId) -> bool {
        let key = (table.to_owned(), at);
        self.actors.iter().enumerate().any(|(n, actor)| n != who && actor.changes.contains_key(&key))
    }

    fn refusals(
        &self,
        who: usize,
        own: &Changes,
        table: &str,
        at: Option<RowId>,
        row: &Row,
    ) -> BTreeSet<Refusal> {
        let others: Vec<&Changes> = self
            .actors
            .iter()
            .enumerate()
            .filter(|(n, _)| *n != who)
            .map(|(_, actor)| &actor.changes)
            .collect();
        refusals(&self.committed, own, &others, table, at, row)
    }

    /// A change was tried: it was refused in one of these ways, or done when there is none. A first change that is refused leaves
    /// nothing of its transaction.
    fn outcome<T>(
        &mut self,
        who: usize,
        table: &str,
        expected: &BTreeSet<Refusal>,
        result: Result<T>,
    ) -> Result<Option<T>> {
        let actor = &mut self.actors[who];
        if actor.session.in_transaction() {
            actor.entered.insert(table.to_owned());
        }
        match result {
            Ok(done) => {
                assert!(expected.is_empty(), "should have been refused: {expected:?}");
                Ok(Some(done))
            }
            Err(error @ (EngineError::DuplicateKey { .. } | EngineError::RowLocked { .. })) => {
                assert!(expected.contains(&Refusal::of(&error)), "{error}; expected {expected:?}");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn insert(&mut self, who: usize, table: &str) -> Result<()> {
        let row = self.row();
        let expected = self.refusals(who, &self.actors[who].changes, table, None, &row);
        let session = &mut self.actors[who].session;
        let described = session.table(table)?;
        let result = session.insert(&described, &row);
        if let Some(at) = self.outcome(who, table, &expected, result)? {
            self.actors[who].changes.insert((table.to_owned(), at), Some(row));
        }
        Ok(())
    }

    fn insert_many(&mut self, who: usize, table: &str) -> Result<()> {
        let rows: Vec<Row> = (0..1 + self.below(60)).map(|_| self.row()).collect();
        let mut own = self.actors[who].changes.clone();
        let mut expected = BTreeSet::new();
        for (n, row) in rows.iter().enumerate() {
            expected.extend(self.refusals(who, &own, table, None, row));
            // An address that no row has.
            let at = RowId { page: engine::PageId { file: u16::MAX, block: 0 }, slot: n as u16 };
            own.insert((table.to_owned(), at), Some(row.clone()));
        }
        let before = seen(&self.committed, &self.actors[who].changes, table);
        let session = &mut self.actors[who].session;
        let described = session.table(table)?;
        let result = session.insert_many(&described, &mut rows.clone().into_iter());
        if self.outcome(who, table, &expected, result)?.is_none() {
            return Ok(());
        }
        let Actor { session, changes, .. } = &mut self.actors[who];
        let mut scan = session.scan(&described)?;
        let mut added = Vec::new();
        while let Some((at, row)) = scan.next(session)? {
            if !before.contains_key(&at) {
                added.push(row.clone());
                changes.insert((table.to_owned(), at), Some(row));
            }
        }
        let sorted = |mut rows: Vec<Row>| {
            rows.sort_by_key(|row| format!("{row:?}"));
            rows
        };
        assert_eq!(sorted(added), sorted(rows));
        Ok(())
    }

    fn update(&mut self, who: usize, table: &str) -> Result<()> {
        let Some(at) = self.visible_row(who, table) else { return Ok(()) };
        let mut row = self.row();
        if self.below(2) == 0 {
            row[0] = seen(&self.committed, &self.actors[who].changes, table)[&at][0].clone();
        }
        let expected = if self.is_held_by_another(who, table, at) {
            BTreeSet::from([Refusal::Locked])
        } else {
            self.refusals(who, &self.actors[who].changes, table, Some(at), &row)
        };
        let session = &mut self.actors[who].session;
        let described = session.table(table)?;
        let result = session.update(&described, at, &row);
        if self.outcome(who, table, &expected, result)?.is_some() {
            self.actors[who].changes.insert((table.to_owned(), at), Some(row));
        }
        Ok(())
    }

    fn delete(&mut self, who: usize, table: &str) -> Result<()> {
        let Some(at) = self.visible_row(who, table) else { return Ok(()) };
        let held = self.is_held_by_another(who, table, at);
        let expected = if held { BTreeSet::from([Refusal::Locked]) } else { BTreeSet::new() };
        let session = &mut self.actors[who].session;
        let described = session.table(table)?;
        let result = session.delete(&described, at);
        if self.outcome(who, table, &expected, result)?.is_some() {
            self.actors[who].changes.insert((table.to_owned(), at), None);
        }
        Ok(())
    }

    /// Rows by address and by key are those that the session sees.
    fn look_up(&mut self, who: usize, table: &str) -> Result<()> {
        let rows = seen(&self.committed, &self.actors[who].changes, table);
        let some = self.visible_row(who, table);
        let wanted = int(self.below(20) as i64);
        let session = &mut self.actors[who].session;
        let described = session.table(table)?;
        if let Some(at) = some {
            assert_eq!(session.get(&described, at)?.as_ref(), rows.get(&at));
            let beyond = RowId { slot: 9999, ..at };
            assert_eq!(session.get(&described, beyond)?, None);
        }
        for index in &described.indexes {
            let found: BTreeMap<RowId, Row> =
                session.lookup(index, std::slice::from_ref(&wanted))?.into_iter().collect();
            let has_key = |row: &Row| row[index.columns[0]] == wanted;
            let expected: BTreeMap<RowId, Row> =
                rows.iter().filter(|(_, row)| has_key(row)).map(|(at, row)| (*at, row.clone())).collect();
            assert_eq!(found, expected, "{}", index.name);
        }
        Ok(())
    }

    fn compare(&mut self, who: usize, table: &str) -> Result<()> {
        let rows = seen(&self.committed, &self.actors[who].changes, table);
        let session = &mut self.actors[who].session;
        let described = session.table(table)?;
        assert_eq!(session.count(&described)?, rows.len() as u64);
        let mut found = BTreeMap::new();
        let mut scan = session.scan_columns(&described, &[2, 0])?;
        while let Some((at, row)) = scan.next(session)? {
            found.insert(at, row);
        }
        let expected = rows.into_iter().map(|(at, row)| (at, vec![row[2].clone(), row[0].clone()]));
        assert_eq!(found, expected.collect());
        Ok(())
    }

    /// Opens a scan, or reads on in the one that is open: it gives what was there when it was opened.
    fn scan(&mut self, who: usize, table: &str) -> Result<()> {
        let rows = seen(&self.committed, &self.actors[who].changes, table);
        let some = self.below(40);
        let actor = &mut self.actors[who];
        let Some(mut open) = actor.scan.take() else {
            let described = actor.session.table(table)?;
            let scan = actor.session.scan(&described)?;
            actor.scan = Some(OpenScan { table: table.to_owned(), scan, expected: rows });
            return Ok(());
        };
        for _ in 0..some {
            match open.scan.next(&mut actor.session)? {
                Some((at, row)) => assert_eq!(open.expected.remove(&at), Some(row), "{at}"),
                None => {
                    assert_eq!(open.expected, BTreeMap::new(), "missed in {}", open.table);
                    return Ok(());
                }
            }
        }
        actor.scan = Some(open);
        Ok(())
    }

    fn savepoint(&mut self, who: usize) -> Result<()> {
        let back = self.below(2) == 0;
        let actor = &mut self.actors[who];
        match actor.savepoints.pop() {
            Some((savepoint, changes)) if back => {
                // It may have seen what is taken back now.
                actor.scan = None;
                actor.session.rollback_to(savepoint)?;
                actor.changes = changes;
                if !actor.session.in_transaction() {
                    actor.entered.clear();
                }
            }
            popped => {
                actor.savepoints.extend(popped);
                actor.savepoints.push((actor.session.savepoint(), actor.changes.clone()));
            }
        }
        Ok(())
    }

    fn commit(&mut self, who: usize) -> Result<()> {
        self.before_commit(who);
        self.actors[who].session.commit()?;
        self.after_commit(who);
        Ok(())
    }

    /// Should the power go now, the commit may have come through.
    fn before_commit(&mut self, who: usize) {
        let mut after = self.committed.clone();
        apply(&mut after, &mut self.actors[who].changes.clone());
        self.perhaps.push(after);
    }

    fn after_commit(&mut self, who: usize) {
        let actor = &mut self.actors[who];
        apply(&mut self.committed, &mut actor.changes);
        actor.entered.clear();
        actor.savepoints.clear();
    }

    fn commit_all(&mut self) -> Result<()> {
        for who in 0..self.actors.len() {
            self.commit(who)?;
            self.perhaps.clear();
        }
        Ok(())
    }

    fn rollback(&mut self, who: usize) -> Result<()> {
        let actor = &mut self.actors[who];
        actor.scan = None;
        actor.session.rollback()?;
        actor.changes.clear();
        actor.entered.clear();
        actor.savepoints.clear();
        Ok(())
    }

    /// DDL: commits, then is refused when somebody else is at the table (or this session reads it), or is done.
    fn ddl(
        &mut self,
        who: usize,
        busy: bool,
        work: impl FnOnce(&mut Session) -> Result<()>,
        change: impl Fn(&mut Model),
    ) -> Result<()> {
        self.before_commit(who);
        let mut after = self.perhaps[0].clone();
        change(&mut after);
        self.perhaps.push(after);
        let result = work(&mut self.actors[who].session);
        match result {
            Ok(()) => {
                assert!(!busy, "somebody is at the table");
                self.after_commit(who);
                change(&mut self.committed);
            }
            Err(EngineError::RowLocked { .. } | EngineError::Invalid(_)) if busy => self.after_commit(who),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Whether others write to a table.
    fn is_written_by_another(&self, who: usize, table: &str) -> bool {
        self.actors.iter().enumerate().any(|(n, actor)| n != who && actor.entered.contains(table))
    }

    fn is_read(&self, table: &str) -> bool {
        self.actors.iter().any(|actor| actor.scan.as_ref().is_some_and(|open| open.table == table))
    }

    fn create_table(&mut self, who: usize) -> Result<()> {
        let name = TABLES[self.below(TABLES.len())];
        if self.committed.contains_key(name) {
            self.before_commit(who);
            let refused = self.actors[who].session.create_table(&people(name));
            if !matches!(refused, Err(EngineError::Exists { .. })) {
                return refused.map(|_| panic!("{name} exists"));
            }
            self.after_commit(who);
            return Ok(());
        }
        self.ddl(
            who,
            false,
            |session| session.create_table(&people(name)).map(|_| ()),
            |model| _ = model.insert(name.to_owned(), TableModel::default()),
        )
    }

    fn create_index(&mut self, who: usize, table: &str) -> Result<()> {
        let (name, columns, unique) = INDEXES[self.below(INDEXES.len())];
        if self.committed[table].indexes.contains_key(name) {
            return Ok(());
        }
        let busy = self.is_written_by_another(who, table);
        let rows = seen(&self.committed, &self.actors[who].changes, table);
        let mut keys = BTreeSet::new();
        let key = |row: &Row| -> Vec<Value> { columns.iter().map(|column| row[*column].clone()).collect() };
        let is_new = |row: &Row| key(row).contains(&Value::Null) || keys.insert(format!("{:?}", key(row)));
        let fits = !unique || rows.values().map(is_new).fold(true, |all, new| all && new);
        let names: Vec<&str> = columns.iter().map(|column| COLUMNS[*column]).collect();
        let def = index(&format!("{table}_{name}"), table, &names, unique);
        if !fits && !busy {
            self.before_commit(who);
            return match self.actors[who].session.create_index(&def) {
                Err(EngineError::DuplicateKey { .. }) => {
                    self.after_commit(who);
                    Ok(())
                }
                other => other.map(|_| panic!("there are duplicates")),
            };
        }
        let model: IndexModel = (columns.to_vec(), unique);
        let add = |all: &mut Model| {
            _ = all.get_mut(table).unwrap().indexes.insert(name.to_owned(), model.clone());
        };
        self.ddl(who, busy, |session| session.create_index(&def).map(|_| ()), add)
    }

    fn drop_index(&mut self, who: usize, table: &str) -> Result<()> {
        let n = self.below(self.committed[table].indexes.len().max(1));
        let Some(name) = self.committed[table].indexes.keys().nth(n).cloned() else { return Ok(()) };
        let busy = self.is_written_by_another(who, table) || self.is_read(table);
        let full = format!("{table}_{name}");
        self.ddl(
            who,
            busy,
            |session| session.drop_index(&full),
            |model| _ = model.get_mut(table).unwrap().indexes.remove(&name),
        )
    }

    fn truncate(&mut self, who: usize, table: &str) -> Result<()> {
        let busy = self.is_written_by_another(who, table) || self.is_read(table);
        self.ddl(
            who,
            busy,
            |session| session.truncate_table(table),
            |model| model.get_mut(table).unwrap().rows.clear(),
        )
    }

    fn drop_table(&mut self, who: usize, table: &str) -> Result<()> {
        let busy = self.is_written_by_another(who, table) || self.is_read(table);
        self.ddl(who, busy, |session| session.drop_table(table), |model| _ = model.remove(table))
    }

    /// The system monitor does a few steps of its work: purge, hints.
    fn monitor(&mut self) -> Result<()> {
        let core = &self.instance.as_ref().unwrap().core;
        for _ in 0..10 {
            core.processes.step(core, Role::SystemMonitor)?;
        }
        Ok(())
    }

    fn alter_system(&mut self, who: usize) -> Result<()> {
        use engine::AlterSystem::{Checkpoint, FlushBufferCache, SwitchLogfile};
        let what = [FlushBufferCache, SwitchLogfile, Checkpoint].into_iter().nth(self.below(3)).unwrap();
        self.actors[who].session.alter_system(&what).map(|_| ())
    }

    pub fn finish(mut self) {
        self.commit_all().unwrap();
        self.check();
        self.reopen();
        self.restart().unwrap();
    }
}
