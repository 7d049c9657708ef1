//! Calls that change and read rows, and what must come of them.

use super::{Actor, OpenScan, World};
use crate::machine::{int, text};
use crate::model::{Changes, Refusal, apply, refusals, seen};
use engine::{EngineError, Result, Row, RowId, Session, Table, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Rows up to which a table is copied: it would double without end.
const COPIED_MAX: usize = 150;

impl World {
    pub(super) fn any_table(&mut self) -> Option<String> {
        let n = self.below(self.committed.len().max(1));
        self.committed.keys().nth(n).cloned()
    }

    pub(super) fn row(&mut self) -> Row {
        let name = match self.below(5) {
            0 => Value::Null,
            1 => text(&"long ".repeat(self.below(70))),
            _ => text(&format!("n{}", self.below(10))),
        };
        let size = if self.below(8) == 0 { Value::Null } else { int(self.below(20) as i64) };
        vec![int(self.below(300) as i64), name, size]
    }

    pub(super) fn visible_row(&mut self, who: usize, table: &str) -> Option<RowId> {
        let rows = seen(&self.committed, &self.actors[who].changes, table);
        let n = self.below(rows.len().max(1));
        rows.into_keys().nth(n)
    }

    pub(super) fn is_held_by_another(&self, who: usize, table: &str, at: RowId) -> bool {
        let key = (table.to_owned(), at);
        self.actors.iter().enumerate().any(|(n, actor)| n != who && actor.changes.contains_key(&key))
    }

    pub(super) fn refusals(
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
    pub(super) fn outcome<T>(
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

    pub(super) fn insert(&mut self, who: usize, table: &str) -> Result<()> {
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

    pub(super) fn insert_many(&mut self, who: usize, table: &str) -> Result<()> {
        let rows: Vec<Row> = (0..1 + self.below(60)).map(|_| self.row()).collect();
        let given = rows.clone();
        self.insert_all(who, table, rows, |session, table| session.insert_many(table, &mut given.into_iter()))
    }

    /// `INSERT INTO … SELECT * FROM` some table, perhaps the same.
    pub(super) fn copy(&mut self, who: usize, table: &str) -> Result<()> {
        let Some(source) = self.any_table() else { return Ok(()) };
        let rows: Vec<Row> =
            seen(&self.committed, &self.actors[who].changes, &source).into_values().collect();
        if rows.len() > COPIED_MAX {
            return self.insert_many(who, table);
        }
        self.insert_all(who, table, rows, |session, table| {
            let source = session.table(&source)?;
            let mut scan = session.scan(&source)?;
            session.insert_select(table, &mut scan)
        })
    }

    /// A statement that inserts many rows.
    fn insert_all(
        &mut self,
        who: usize,
        table: &str,
        rows: Vec<Row>,
        statement: impl FnOnce(&mut Session, &Table) -> Result<u64>,
    ) -> Result<()> {
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
        let result = statement(session, &described);
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

    pub(super) fn update(&mut self, who: usize, table: &str) -> Result<()> {
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

    pub(super) fn delete(&mut self, who: usize, table: &str) -> Result<()> {
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
    pub(super) fn look_up(&mut self, who: usize, table: &str) -> Result<()> {
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

    pub(super) fn compare(&mut self, who: usize, table: &str) -> Result<()> {
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
    pub(super) fn scan(&mut self, who: usize, table: &str) -> Result<()> {
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

    pub(super) fn savepoint(&mut self, who: usize) -> Result<()> {
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

    pub(super) fn commit(&mut self, who: usize) -> Result<()> {
        self.before_commit(who);
        self.actors[who].session.commit()?;
        self.after_commit(who);
        Ok(())
    }

    /// Should the power go now, the commit may have come through.
    pub(super) fn before_commit(&mut self, who: usize) {
        let mut after = self.committed.clone();
        apply(&mut after, &mut self.actors[who].changes.clone());
        self.perhaps.push(after);
    }

    pub(super) fn after_commit(&mut self, who: usize) {
        let actor = &mut self.actors[who];
        apply(&mut self.committed, &mut actor.changes);
        actor.entered.clear();
        actor.savepoints.clear();
    }

    pub(super) fn commit_all(&mut self) -> Result<()> {
        for who in 0..self.actors.len() {
            self.commit(who)?;
            self.perhaps.clear();
        }
        Ok(())
    }

    pub(super) fn rollback(&mut self, who: usize) -> Result<()> {
        let actor = &mut self.actors[who];
        actor.scan = None;
        actor.session.rollback()?;
        actor.changes.clear();
        actor.entered.clear();
        actor.savepoints.clear();
        Ok(())
    }
}
