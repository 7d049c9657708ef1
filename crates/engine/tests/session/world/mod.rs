//! A database beside its model: random calls by several sessions, whose answers must be the model's, through restarts and crashes.

mod ddl;
mod rows;
mod suffer;

use crate::machine::try_open;
use crate::model::{Changes, Model, TableModel, difference};
use engine::statistics::Statistic;
use engine::{AlterSystem, Instance, Result, Row, RowId, Savepoint, Scan, Session, Shutdown};
use io::sim::{Call, CallInfo, SimStorage};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, Mutex};
use units::{Rng, Seed};

/// How a message begins that says that a promise was broken: what was committed is not there, or half of something is.
pub const LOST: &str = "not what was committed: ";
/// How a message begins that says that the database could not be opened after a crash.
pub const SHUT: &str = "it does not open: ";

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

/// A moment at which the power went, or the process was killed.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "only the power cut runner tells them")]
pub struct Cut {
    /// What went on.
    pub doing: &'static str,
    /// Which call was interrupted.
    pub call: &'static str,
    /// Only the process died, the machine went on.
    pub killed: bool,
}

/// How rough life is.
#[derive(Clone, Copy, Debug)]
pub struct Life {
    /// One step in so many is cut short.
    pub cut_one_in: usize,
    /// One recovery in so many is cut short, too.
    pub recovery_cut_one_in: usize,
    /// One cut in so many is a kill of the process alone.
    pub kill_one_in: usize,
}

pub struct World {
    storage: SimStorage,
    life: Life,
    /// What goes on.
    doing: &'static str,
    pub cuts: Vec<Cut>,
    /// Blocks written to the flash cache, and read from it.
    pub flash: [u64; 2],
    instance: Option<Instance>,
    actors: Vec<Actor>,
    committed: Model,
    /// What the database may say instead, should the power go during this call.
    perhaps: Vec<Model>,
    rng: Rng,
    /// The power is going to go.
    armed: Option<Armed>,
    /// Calls are going to fail.
    failing: bool,
    /// The instance may be shut down and started.
    restarts: bool,
}

impl World {
    /// On a storage with an empty database, which is not open.
    pub fn over(storage: SimStorage, life: Life, seed: u64) -> Self {
        Self {
            storage,
            life,
            doing: "open",
            cuts: Vec::new(),
            flash: [0; 2],
            instance: None,
            actors: Vec::new(),
            committed: Model::new(),
            perhaps: Vec::new(),
            rng: Rng::new(Seed(seed)),
            armed: None,
            failing: false,
            restarts: true,
        }
    }

    /// So many steps, with all the ends that come meanwhile, and a last look.
    pub fn live(&mut self, steps: u32) {
        self.instance = Some(self.open());
        self.sessions();
        for _ in 0..steps {
            self.step();
        }
        self.end();
    }

    fn open(&self) -> Instance {
        try_open(&self.storage).unwrap_or_else(|error| panic!("{SHUT}{error}"))
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

    /// One random call; now and then the power is going to go soon.
    pub fn step(&mut self) {
        if self.armed.is_none() && self.below(self.life.cut_one_in) == 0 {
            // Few calls lead to the disk, so short and long times.
            let within = 1 << self.below(7);
            self.armed = Some(self.arm(within));
        }
        let result = self.act();
        if self.disarm_if_fired() {
            self.reopen();
        } else {
            result.expect("without a crash all goes as the model says");
        }
    }

    fn disarm_if_fired(&mut self) -> bool {
        let fired = self.armed.as_ref().is_some_and(Armed::has_fired);
        fired && self.armed.take().is_some_and(|armed| self.disarm(&armed))
    }

    /// The power will go during one of the next so many calls, or the process will be killed.
    fn arm(&mut self, within: u64) -> Armed {
        let at = self.storage.calls() + 1 + self.rng.below(within);
        let seed = Seed(self.rng.next_u64());
        let killed = self.below(self.life.kill_one_in) == 0;
        let armed = Armed { killed, call: Arc::default() };
        let call = armed.call.clone();
        self.storage.on_call(Some(Arc::new(move |storage, info| {
            if info.number == at {
                if killed {
                    storage.kill(seed)
                } else {
                    storage.crash(seed)
                }
                *call.lock().unwrap() = Some(name(info));
            }
        })));
        armed
    }

    /// Whether it has happened.
    fn disarm(&mut self, armed: &Armed) -> bool {
        self.storage.on_call(None);
        let call = *armed.call.lock().unwrap();
        self.cuts.extend(call.map(|call| Cut { doing: self.doing, call, killed: armed.killed }));
        call.is_some()
    }

    /// After a crash: what was committed is there, and what was being committed perhaps. Sometimes recovery is cut short, and
    /// recovery of that again.
    fn reopen(&mut self) {
        self.count_flash();
        self.actors.clear();
        self.instance = None;
        self.crash();
        self.doing = "recovery";
        while self.below(self.life.recovery_cut_one_in) == 0 {
            let within = 1 << (2 + self.below(8));
            let armed = self.arm(within);
            let opened = try_open(&self.storage);
            if !self.disarm(&armed) {
                drop(opened.unwrap_or_else(|error| panic!("{SHUT}{error}")));
                self.crash();
            }
        }
        self.instance = Some(self.open());
        self.sessions();
        self.accept();
        self.check();
    }

    fn count_flash(&mut self) {
        let Some(instance) = &self.instance else { return };
        let statistics = [Statistic::FlashInserts, Statistic::FlashHits];
        for (sum, statistic) in self.flash.iter_mut().zip(statistics) {
            *sum += instance.core.statistics.value(statistic);
        }
    }

    fn crash(&mut self) {
        let seed = Seed(self.rng.next_u64());
        let killed = self.below(self.life.kill_one_in) == 0;
        if killed { self.storage.kill(seed) } else { self.storage.crash(seed) }
    }

    /// What is there now is what was committed, or one of the states that may be.
    fn accept(&mut self) {
        let found = self.read_all();
        let mut may_be = std::mem::take(&mut self.perhaps);
        may_be.push(self.committed.clone());
        let differences: Vec<String> = may_be.iter().map(|model| difference(model, &found)).collect();
        assert!(differences.iter().any(String::is_empty), "{LOST}{}", differences.join("\nor "));
        self.committed = found;
    }

    fn restart(&mut self) -> Result<()> {
        self.count_flash();
        self.actors.clear();
        self.instance.take().unwrap().shutdown(Shutdown::Immediate)?;
        self.instance = Some(try_open(&self.storage)?);
        self.sessions();
        self.check_if_calm();
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

    /// Unless a call that reads may fail.
    fn check_if_calm(&mut self) {
        if self.armed.is_none() && !self.failing {
            self.check();
        }
    }

    /// Everything is as the model says: rows, indexes, space.
    pub fn check(&mut self) {
        self.check_rows();
        let session = &mut self.actors[0].session;
        assert_eq!(session.check_space().unwrap(), Vec::<String>::new());
    }

    fn check_rows(&mut self) {
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
    }

    /// Where there is a flash cache, blocks leave the buffer cache often.
    fn use_flash(&mut self, who: usize) -> Result<()> {
        if self.instance.as_ref().is_none_or(|instance| instance.core.cache.flash().is_none()) {
            return Ok(());
        }
        self.doing = "flush, switch, checkpoint";
        if self.below(3) == 0 {
            self.actors[who].session.alter_system(&AlterSystem::FlushBufferCache)?;
        }
        Ok(())
    }

    fn act(&mut self) -> Result<()> {
        self.perhaps.clear();
        let who = self.below(self.actors.len());
        self.use_flash(who)?;
        self.doing = "DDL";
        let Some(table) = self.any_table() else { return self.create_table(who) };
        let what = self.below(100);
        self.doing = match what {
            0..54 => "row changes",
            54..69 => "reads",
            69..74 | 84..88 => "rollback",
            74..84 | 98 => "commit",
            88..=95 => "DDL",
            97 => "flush, switch, checkpoint",
            _ => "monitor, restart",
        };
        match what {
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
                self.check_if_calm();
                Ok(())
            }
            _ if self.below(3) == 0 && self.restarts => self.restart(),
            _ => self.monitor(),
        }
    }

    pub fn end(&mut self) {
        self.storage.on_call(None);
        self.armed = None;
        self.commit_all().unwrap();
        self.check();
        self.reopen();
        self.restart().unwrap();
    }
}

/// A crash that is to come, and the call at which it came.
struct Armed {
    killed: bool,
    call: Arc<Mutex<Option<&'static str>>>,
}

impl Armed {
    fn has_fired(&self) -> bool {
        self.call.lock().unwrap().is_some()
    }
}

/// What a call does to the database.
fn name(info: &CallInfo<'_>) -> &'static str {
    let file = info.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match info.call {
        Call::Write if file.starts_with("redo") && info.offset == 0 => "log switch",
        Call::Write if file.starts_with("redo") => "log write",
        Call::Write if file.starts_with("control") => "control file write",
        Call::Write if file.starts_with("doublewrite") => "doublewrite",
        Call::Write if file.starts_with("flash") => "flash cache write",
        Call::Write => "data file write",
        Call::Read if file.starts_with("redo") => "log read",
        Call::Read => "read",
        _ => "create, extend, remove, sync",
    }
}
