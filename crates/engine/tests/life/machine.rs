//! What the stories share: a simulated machine, a small database on it, its rows.

use engine::space::{Column, ColumnKind, TableDef};
use engine::{Background, Environment, Instance, InstanceConfig, Result, Row, Session, Value};
use io::Storage;
use io::sim::{Promises, SimStorage};
use std::path::Path;
use units::{Clock, Seed};

pub const KIB: u64 = 1 << 10;
pub const DIRECTORY: &str = "/db";

/// A simulated machine with empty storage.
pub fn storage() -> SimStorage {
    SimStorage::new(Promises::default(), Seed(1))
}

/// The engine's surroundings on it: nothing concurrent, every run the same.
pub fn environment(storage: &SimStorage) -> Environment {
    Environment {
        storage: storage.handle(),
        clock: Clock::steps(),
        background: Background::Inline,
        seed: Seed(7),
    }
}

/// A database so small that logs switch, files grow and blocks are replaced within a short story.
pub fn small(directory: impl AsRef<Path>) -> InstanceConfig {
    let mut config = InstanceConfig::new(directory.as_ref())
        .with("db_block_size", "4k")
        .with("db_cache_size", "512k")
        .with("log_buffer", "128k")
        .with("sessions", "32");
    config.data_bytes = 256 * KIB;
    config.undo_bytes = 1024 * KIB;
    config.temp_bytes = 256 * KIB;
    config.redo_bytes = 512 * KIB;
    config
}

pub fn create(storage: &SimStorage) -> Instance {
    create_with(storage, &[])
}

pub fn create_with(storage: &SimStorage, parameters: &[(&str, &str)]) -> Instance {
    let config = parameters.iter().fold(small(DIRECTORY), |config, (name, value)| config.with(name, value));
    Instance::create(environment(storage), config).unwrap()
}

pub fn try_open(storage: &SimStorage) -> Result<Instance> {
    Instance::open(environment(storage), InstanceConfig::new(DIRECTORY))
}

pub fn open(storage: &SimStorage) -> Instance {
    try_open(storage).unwrap()
}

pub fn alert(storage: &SimStorage) -> String {
    String::from_utf8(storage.read(Path::new("/db/alert.log")).unwrap()).unwrap()
}

/// `CREATE TABLE name (id INTEGER, text TEXT)`.
pub fn create_table(session: &mut Session, name: &str) {
    let columns = vec![Column::new("id", ColumnKind::Integer), Column::new("text", ColumnKind::Text)];
    session.create_table(&TableDef::new(name, columns)).unwrap();
}

pub fn row(id: i64, text: &str) -> Row {
    vec![Value::Integer(id), Value::Text(text.into())]
}

/// All ids of a table, sorted.
pub fn ids(session: &mut Session, name: &str) -> Vec<i64> {
    let table = session.table(name).unwrap();
    let mut scan = session.scan(&table).unwrap();
    let mut ids = Vec::new();
    while let Some((_, row)) = scan.next(session).unwrap() {
        let Value::Integer(id) = row[0] else { panic!("{row:?}") };
        ids.push(id);
    }
    ids.sort_unstable();
    ids
}
