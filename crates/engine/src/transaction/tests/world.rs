//! A small database on a simulated storage, with one table and two indexes.

use super::audit;
use crate::context::Environment;
use crate::instance::{Instance, InstanceConfig};
use crate::session::Session;
use crate::space::{Column, ColumnKind, IndexDef, Table, TableDef};
use crate::value::{Row, RowId, Value};
use crate::{Result, testing};
use io::sim::SimStorage;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use units::Seed;

pub const KIB: u64 = 1 << 10;

/// Everything that a view sees of the table.
pub type Rows = BTreeMap<RowId, Row>;

pub struct World {
    pub storage: SimStorage,
    environment: Environment,
    config: InstanceConfig,
    instance: Option<Instance>,
}

pub fn config(block_bytes: u64) -> InstanceConfig {
    let mut config = InstanceConfig::new("/db")
        .with("db_block_size", &block_bytes.to_string())
        .with("db_cache_size", "512k")
        .with("log_buffer", "256k");
    config.data_bytes = 512 * KIB;
    config.undo_bytes = 512 * KIB;
    config.temp_bytes = 128 * KIB;
    config.redo_bytes = 1024 * KIB;
    config.redo_groups = 2;
    config
}

impl World {
    /// A new database. Table `t`: `id` with a unique index, `k` with another, `filler`.
    pub fn new(config: InstanceConfig) -> Self {
        let storage = testing::storage();
        let environment = testing::environment(&storage);
        Self::with(storage, environment, config)
    }

    pub fn with(storage: SimStorage, environment: Environment, config: InstanceConfig) -> Self {
        let instance = Instance::create(environment.clone(), config.clone()).unwrap();
        let world = Self { storage, environment, config, instance: Some(instance) };
        let mut session = world.session();
        let columns = vec![
            Column::new("id", ColumnKind::Integer),
            Column::new("k", ColumnKind::Integer),
            Column::new("filler", ColumnKind::Text),
        ];
        session.create_table(&TableDef::new("t", columns)).unwrap();
        for (column, unique) in [("id", true), ("k", false)] {
            let name = format!("t_{column}");
            let columns = vec![column.to_owned()];
            session
                .create_index(&IndexDef { name, table: "t".into(), columns, unique, tablespace: None })
                .unwrap();
        }
        world
    }

    pub fn instance(&self) -> &Instance {
        self.instance.as_ref().expect("open")
    }

    pub fn session(&self) -> Session {
        self.instance().session("test").unwrap()
    }

    /// Nothing of this instance reaches the storage from here on; sessions that are dropped now leave their transactions as
    /// they are.
    pub fn cut_power(&self) {
        self.instance().core.health.crash("the test cuts the power");
    }

    /// The power comes back; what was durable is there again. After [`World::cut_power`], when all sessions are gone.
    pub fn restart(&mut self, seed: Seed) {
        drop(self.instance.take());
        self.storage.heal();
        self.storage.crash(seed);
        self.open();
    }

    /// Opens the database again, after its instance has been dropped or has died.
    pub fn open(&mut self) {
        self.try_open().unwrap();
    }

    pub fn try_open(&mut self) -> Result<()> {
        self.close();
        self.instance = Some(Instance::open(self.environment.clone(), self.config.clone())?);
        Ok(())
    }

    /// The instance is dropped, wherever it is.
    pub fn close(&mut self) {
        drop(self.instance.take());
    }

    pub fn shut_down(&mut self) {
        let instance = self.instance.take().expect("open");
        instance.shutdown(crate::instance::Shutdown::Immediate).unwrap();
        self.open();
    }

    pub fn flush_cache(&self) {
        let session = self.session();
        session.core().cache.flush(&**session.core(), session.context()).unwrap();
    }

    /// All ways to look at the table show the same: these rows.
    pub fn check(&self, expected: &Rows) {
        let mut session = self.session();
        check_session(&mut session, expected);
    }

    /// Purges until there is nothing left to purge, then looks for anything that should be gone.
    pub fn drain_and_audit(&self, expected: &Rows) {
        let session = self.session();
        let core = session.core();
        while core.transactions.monitor_step(core, session.context()).unwrap() {}
        audit::nothing_is_left_over(&session, expected.len());
        self.check(expected);
    }
}

pub fn table(session: &Session) -> Arc<Table> {
    session.table("t").unwrap()
}

pub fn row(id: i64, k: i64, filler: &str) -> Row {
    vec![Value::Integer(id), Value::Integer(k), Value::Text(filler.into())]
}

pub fn scan(session: &mut Session) -> Rows {
    let table = table(session);
    let mut scan = session.scan(&table).unwrap();
    let mut rows = Rows::new();
    while let Some((id, row)) = scan.next(session).unwrap() {
        assert_eq!(rows.insert(id, row), None, "{id} twice");
    }
    rows
}

/// Scan, count, look-ups by address and by both indexes, as the session sees it.
pub fn check_session(session: &mut Session, expected: &Rows) {
    let table = table(session);
    let found = scan(session);
    assert_eq!(&found, expected, "full scan");
    assert_eq!(session.count(&table).unwrap(), expected.len() as u64, "count");
    for (id, row) in expected {
        assert_eq!(session.get(&table, *id).unwrap().as_ref(), Some(row), "{id}");
    }
    for (column, index) in table.indexes.iter().enumerate() {
        let mut cursor = session.range(index, Bound::Unbounded, Bound::Unbounded, false).unwrap();
        let mut rows = Rows::new();
        let mut last = Value::Integer(i64::MIN);
        while let Some((id, row)) = cursor.next(session).unwrap() {
            let in_order = match (&last, &row[column]) {
                (Value::Integer(a), Value::Integer(b)) => a <= b,
                _ => false,
            };
            assert!(in_order, "{}: {last:?} before {:?}", index.name, row[column]);
            last = row[column].clone();
            assert_eq!(rows.insert(id, row), None, "{id} twice by {}", index.name);
        }
        assert_eq!(&rows, expected, "by index {}", index.name);
    }
}
