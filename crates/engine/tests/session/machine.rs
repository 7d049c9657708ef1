//! A simulated machine with a small database.

use engine::{
    Background, Column, ColumnKind, Environment, IndexDef, Instance, InstanceConfig, Session, TableDef,
};
use engine::{Row, Value};
use io::Storage;
use io::sim::{Promises, SimStorage};
use std::path::Path;
use units::{Clock, Seed};

pub const MIB: u64 = 1 << 20;

/// A storage with an empty directory `/db`.
pub fn storage(seed: u64) -> SimStorage {
    let storage = SimStorage::new(Promises::default(), Seed(seed));
    storage.create_directory(Path::new("/db")).unwrap();
    storage
}

pub fn environment(storage: &SimStorage, seed: u64) -> Environment {
    Environment {
        storage: storage.handle(),
        clock: Clock::steps(),
        background: Background::Inline,
        seed: Seed(seed),
    }
}

/// Small files, small blocks, a small cache: everything happens soon.
pub fn config() -> InstanceConfig {
    let mut config = InstanceConfig::new("/db")
        .with("db_block_size", "2k")
        .with("db_cache_size", "1m")
        .with("log_buffer", "256k");
    (config.data_bytes, config.undo_bytes, config.temp_bytes) = (MIB, MIB, MIB);
    (config.redo_bytes, config.redo_groups) = (2 * MIB, 2);
    config
}

pub fn create(storage: &SimStorage) -> Instance {
    Instance::create(environment(storage, 7), config()).unwrap()
}

pub fn try_open(storage: &SimStorage) -> engine::Result<Instance> {
    Instance::open(environment(storage, 7), InstanceConfig::new("/db"))
}

pub fn open(storage: &SimStorage) -> Instance {
    try_open(storage).unwrap()
}

/// What the alert log says.
pub fn alert(storage: &SimStorage) -> String {
    String::from_utf8(storage.read(Path::new("/db/alert.log")).unwrap()).unwrap()
}

/// How much to do, when the environment says so.
pub fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect("a whole number"))
}

pub fn int(n: i64) -> Value {
    Value::Integer(n)
}

pub fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

/// `id INTEGER, name TEXT, size INTEGER`.
pub fn people(name: &str) -> TableDef {
    let mut id = Column::new("id", ColumnKind::Integer);
    id.not_null = true;
    TableDef::new(
        name,
        vec![id, Column::new("name", ColumnKind::Text), Column::new("size", ColumnKind::Integer)],
    )
}

pub fn index(name: &str, table: &str, columns: &[&str], unique: bool) -> IndexDef {
    IndexDef {
        name: name.into(),
        table: table.into(),
        columns: columns.iter().map(|column| (*column).to_owned()).collect(),
        unique,
        tablespace: None,
    }
}

/// All rows of a table, sorted by their printed form.
pub fn all(session: &mut Session, table: &str) -> Vec<Row> {
    let table = session.table(table).unwrap();
    let mut scan = session.scan(&table).unwrap();
    let mut rows = Vec::new();
    while let Some((_, row)) = scan.next(session).unwrap() {
        rows.push(row);
    }
    rows.sort_by_key(|row| format!("{row:?}"));
    rows
}
