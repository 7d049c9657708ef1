//! A database beside its model: random calls by several sessions, whose answers must be the model's, through restarts and crashes.

mod ddl;
mod rows;

use crate::machine::{create, open, storage, try_open};
use crate::model::{Changes, Model, TableModel, difference};
use engine::{Instance, Result, Row, RowId, Savepoint, Scan, Session, Shutdown};
use io::sim::SimStorage;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use units::{Rng, Seed};

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
            20..23 => self.insert_many(who, &table),
            23..26 => self.copy(who, &table),
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

    pub fn finish(mut self) {
        self.commit_all().unwrap();
        self.check();
        self.reopen();
        self.restart().unwrap();
    }
}
