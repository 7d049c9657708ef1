//! DDL, the system monitor, ALTER SYSTEM, and what must come of them.

use super::World;
use crate::machine::{index, people};
use crate::model::{IndexModel, Model, TableModel, seen};
use engine::instance::process::Role;
use engine::{EngineError, Result, Row, Session, Value};
use std::collections::BTreeSet;

const TABLES: [&str; 3] = ["a", "b", "c"];
const INDEXES: [(&str, &[usize], bool); 3] =
    [("id", &[0], true), ("both", &[2, 1], false), ("size_id", &[2, 0], true)];
const COLUMNS: [&str; 3] = ["id", "name", "size"];

impl World {
    /// DDL: commits, then is refused when somebody else is at the table (or this session reads it), or is done.
    pub(super) fn ddl(
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
    pub(super) fn is_written_by_another(&self, who: usize, table: &str) -> bool {
        self.actors.iter().enumerate().any(|(n, actor)| n != who && actor.entered.contains(table))
    }

    pub(super) fn is_read(&self, table: &str) -> bool {
        self.actors.iter().any(|actor| actor.scan.as_ref().is_some_and(|open| open.table == table))
    }

    pub(super) fn create_table(&mut self, who: usize) -> Result<()> {
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

    pub(super) fn create_index(&mut self, who: usize, table: &str) -> Result<()> {
        let (name, columns, unique) = INDEXES[self.below(INDEXES.len())];
        if self.committed[table].indexes.contains_key(name) {
            return Ok(());
        }
        let busy = self.is_written_by_another(who, table);
        let rows = seen(&self.committed, &self.actors[who].changes, table);
        let mut keys = BTreeSet::new();
        let key = |row: &Row| -> Vec<Value> { columns.iter().map(|column| row[*column].clone()).collect() };
        let is_new = |row: &Row| key(row).contains(&Value::Null) || keys.insert(format!("{:?}", key(row)));
        let fits = !unique || rows.values().all(is_new);
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

    pub(super) fn drop_index(&mut self, who: usize, table: &str) -> Result<()> {
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

    pub(super) fn truncate(&mut self, who: usize, table: &str) -> Result<()> {
        let busy = self.is_written_by_another(who, table) || self.is_read(table);
        self.ddl(
            who,
            busy,
            |session| session.truncate_table(table),
            |model| model.get_mut(table).unwrap().rows.clear(),
        )
    }

    pub(super) fn drop_table(&mut self, who: usize, table: &str) -> Result<()> {
        let busy = self.is_written_by_another(who, table) || self.is_read(table);
        self.ddl(who, busy, |session| session.drop_table(table), |model| _ = model.remove(table))
    }

    /// The system monitor does a few steps of its work: purge, hints.
    pub(super) fn monitor(&mut self) -> Result<()> {
        let core = &self.instance.as_ref().unwrap().core;
        for _ in 0..10 {
            core.processes.step(core, Role::SystemMonitor)?;
        }
        Ok(())
    }

    pub(super) fn alter_system(&mut self, who: usize) -> Result<()> {
        use engine::AlterSystem::{Checkpoint, FlushBufferCache, SwitchLogfile};
        let what = [FlushBufferCache, SwitchLogfile, Checkpoint].into_iter().nth(self.below(3)).unwrap();
        self.actors[who].session.alter_system(&what).map(|_| ())
    }
}
