//! A database for a test, and its answers as text.
#![allow(dead_code, reason = "each file of tests uses a part of this")]

use engine::{Background, Environment, Instance, InstanceConfig, Value};
use io::sim::{Promises, SimStorage};
use sql::{Connection, Outcome};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use units::{Clock, Seed};

/// A database in a simulation, and a connection to it.
pub struct Database {
    db: Connection,
    pub instance: Instance,
}

impl Deref for Database {
    type Target = Connection;
    fn deref(&self) -> &Connection {
        &self.db
    }
}

impl DerefMut for Database {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.db
    }
}

impl Database {
    /// One more connection.
    pub fn connect(&self) -> Connection {
        Connection::new(self.instance.session("test").expect("a session")).expect("a connection")
    }
}

/// A small database: logs switch, files grow and blocks are replaced within a short story.
pub fn small(config: InstanceConfig) -> InstanceConfig {
    let config = config.with("db_block_size", "4k").with("db_cache_size", "1m").with("log_buffer", "128k");
    let (kib, mib) = (1 << 10, 1 << 20);
    InstanceConfig {
        data_bytes: 512 * kib,
        undo_bytes: mib,
        temp_bytes: 256 * kib,
        redo_bytes: mib,
        ..config
    }
}

/// A new, empty database.
pub fn database() -> Database {
    let environment = Environment {
        storage: SimStorage::new(Promises::default(), Seed(1)).handle(),
        // An hour of 1970 has passed, so that there is a time before now.
        clock: Clock::Steps(Arc::new(AtomicU64::new(3_600_000_000_000))),
        background: Background::Inline,
        seed: Seed(7),
    };
    let instance = Instance::create(environment, small(InstanceConfig::new("/db"))).expect("an instance");
    let db = Connection::new(instance.session("test").expect("a session")).expect("a connection");
    Database { db, instance }
}

/// The result as `a|b`, one row a line.
pub fn rows(db: &mut Connection, query: &str) -> String {
    let kept = db.query(query).unwrap_or_else(|error| panic!("{query}\n{}", error.with_caret(query)));
    let line = |row: &Vec<Value>| row.iter().map(cell).collect::<Vec<_>>().join("|");
    kept.rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::Blob(bytes) => format!("{} bytes", bytes.len()),
    }
}

/// Does statements that must succeed.
pub fn run(db: &mut Connection, statements: &[&str]) {
    for statement in statements {
        db.done(statement).unwrap_or_else(|error| panic!("{statement}\n{}", error.with_caret(statement)));
    }
}

/// Asks, and compares the answer.
pub fn check(db: &mut Connection, query: &str, expected: &str) {
    assert_eq!(rows(db, query), expected, "{query}");
}

/// Does a statement that must fail with these words.
pub fn refused(db: &mut Connection, statement: &str, words: &str) {
    let error = db.done(statement).expect_err(statement).with_caret(statement);
    assert!(error.contains(words), "{statement}\n{error}");
}

/// Does a statement that must change so many rows.
pub fn changes(db: &mut Connection, statement: &str, verb: &'static str, count: u64) {
    let outcome = db.done(statement);
    let outcome = outcome.unwrap_or_else(|error| panic!("{statement}\n{}", error.with_caret(statement)));
    assert_eq!(outcome, Outcome::Changed(verb, count), "{statement}");
}
