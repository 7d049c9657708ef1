//! Kind `commit`: each session inserts the parts of a transaction into a table of its own, now and then deletes an older
//! one, notes its number in a table that all share, and commits. Everything follows from session and number.

use crate::{Checked, child, trees};
use engine::{Column, ColumnKind, EngineError, IndexDef, Instance, Row, RowId, Session, TableDef, Value};
use std::collections::BTreeSet;
use std::thread::Scope;

/// A table that comes and goes.
pub const SCRAP: &str = "SCRAP";
const NOTES: &str = "NOTES";
/// How far back a transaction deletes.
const BACK: i64 = 50;

fn int(n: i64) -> Value {
    Value::Integer(n)
}

fn integer(value: &Value) -> Option<i64> {
    if let Value::Integer(n) = value { Some(*n) } else { None }
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn table(session: usize) -> String {
    format!("LEDGER{session}")
}

/// Taken back instead of committed.
fn is_taken_back(number: i64) -> bool {
    number % 7 == 3
}

/// Whether it deletes an older one.
fn deletes(number: i64) -> bool {
    number % 5 == 0
}

fn parts(session: usize, number: i64) -> impl Iterator<Item = Row> {
    (1..=1 + number % 4).map(move |part| {
        let word = format!("{session}.{number}.{part} ");
        let length = (number * 131 + part * 37) as usize % 900;
        vec![int(number), int(part), Value::Text(word.repeat(1 + length / word.len()))]
    })
}

/// The tables, in a new database.
pub fn prepare(instance: &Instance, sessions: usize) -> engine::Result<()> {
    let mut session = instance.session("prepare")?;
    let column = |name: &str, kind| Column::new(name, kind);
    for n in 0..sessions {
        let columns =
            [("ID", ColumnKind::Integer), ("PART", ColumnKind::Integer), ("WORDS", ColumnKind::Text)];
        session.create_table(&TableDef::new(
            &table(n),
            columns.map(|(name, kind)| column(name, kind)).to_vec(),
        ))?;
        for (name, columns, unique) in [("PK", &["ID", "PART"][..], true), ("WORDS", &["PART", "ID"], false)]
        {
            session.create_index(&IndexDef {
                name: format!("{}_{name}", table(n)),
                table: table(n),
                columns: columns.iter().map(|column| (*column).to_owned()).collect(),
                unique,
                tablespace: None,
            })?;
        }
    }
    let columns = ["SESSION", "NEWEST"].map(|name| column(name, ColumnKind::Integer));
    let notes = session.create_table(&TableDef::new(NOTES, columns.to_vec()))?;
    for n in 0..sessions {
        session.insert(&notes, &[int(n as i64), int(0)])?;
    }
    session.commit()
}

pub fn make_scrap(session: &mut Session) -> engine::Result<()> {
    let scrap = session.create_table(&TableDef::new(SCRAP, vec![Column::new("WORDS", ColumnKind::Text)]))?;
    session.insert_many(&scrap, &mut (0..100).map(|n| vec![text(&format!("scrap {n}"))]))?;
    session.commit()
}

/// Sessions that work until the process is killed.
pub fn work<'scope>(scope: &'scope Scope<'scope, '_>, instance: &Instance, first: i64, sessions: u32) {
    for n in 0..sessions as usize {
        let mut session = instance.session(&format!("commit {n}")).expect("a session");
        scope.spawn(move || {
            for number in first.. {
                child::say(&format!("b {n} {number}"));
                let committed = transaction(&mut session, n, number).expect("a transaction");
                child::say(&format!("{} {n} {number}", if committed { "a" } else { "r" }));
            }
        });
    }
}

/// Whether it was committed.
fn transaction(session: &mut Session, n: usize, number: i64) -> Result<bool, EngineError> {
    let ledger = session.table(&table(n))?;
    let notes = session.table(NOTES)?;
    session.insert_many(&ledger, &mut parts(n, number))?;
    if deletes(number) {
        let index = session.index(&format!("{}_PK", table(n)))?;
        for (at, _) in session.lookup(&index, &[int(number - BACK)])? {
            session.delete(&ledger, at)?;
        }
    }
    let at = note_of(session, n)?.expect("made with the table").0;
    session.update(&notes, at, &[int(n as i64), int(number)])?;
    if is_taken_back(number) {
        session.rollback()?;
        return Ok(false);
    }
    session.commit()?;
    Ok(true)
}

/// A session's row of the notes.
fn note_of(session: &mut Session, n: usize) -> Result<Option<(RowId, i64)>, EngineError> {
    let notes = session.table(NOTES)?;
    let mut scan = session.scan(&notes)?;
    while let Some((at, row)) = scan.next(session)? {
        if let [Value::Integer(who), Value::Integer(newest)] = row[..]
            && who == n as i64
        {
            return Ok(Some((at, newest)));
        }
    }
    Ok(None)
}

/// What one session said over all lives of its database.
#[derive(Clone, Default)]
pub struct Said {
    /// Begun, and neither acknowledged nor taken back before a kill.
    pub uncertain: BTreeSet<i64>,
    pub acknowledged: BTreeSet<i64>,
}

/// Everything that was acknowledged is there, and nothing else but perhaps, whole, what was being committed at a kill; that counts
/// as acknowledged from then on.
pub fn check(session: &mut Session, said: &mut [Said]) -> Checked {
    for (n, said) in said.iter_mut().enumerate() {
        let note = note_of(session, n).map_err(|e| e.to_string())?;
        let Some((_, newest)) = note else { return Err(format!("session {n} has no note any more")) };
        let rows = trees::rows(session, &table(n))?;
        let ids: BTreeSet<i64> = rows.values().filter_map(|row| integer(&row[0])).collect();
        let mut committed = said.acknowledged.clone();
        for number in said.uncertain.iter().filter(|number| !is_taken_back(**number)) {
            // A later one may have deleted it; then what it deleted itself is gone.
            let before = number - BACK;
            let has_deleted = deletes(*number) && committed.contains(&before) && !ids.contains(&before);
            if ids.contains(number) || has_deleted {
                committed.insert(*number);
            }
        }
        let known = committed.last().copied().unwrap_or(0);
        if newest != known {
            return Err(format!("session {n} was told of {known}, its note says {newest}"));
        }
        let deleted: BTreeSet<i64> = committed.iter().filter(|m| deletes(**m)).map(|m| m - BACK).collect();
        let expected: BTreeSet<String> = committed
            .difference(&deleted)
            .flat_map(|number| parts(n, *number))
            .map(|row| format!("{row:?}"))
            .collect();
        let found: BTreeSet<String> = rows.values().map(|row| format!("{row:?}")).collect();
        let short = |row: Option<&String>| row.map(|row| row.chars().take(80).collect::<String>());
        if let Some(missing) = short(expected.difference(&found).next()) {
            return Err(format!("session {n}: an acknowledged row is missing: {missing}"));
        }
        if let Some(more) = short(found.difference(&expected).next()) {
            return Err(format!(
                "session {n}: a row that was not committed, or was deleted, is there: {more}"
            ));
        }
        if rows.len() != expected.len() {
            return Err(format!("session {n}: {} rows instead of {}", rows.len(), expected.len()));
        }
        *said = Said { acknowledged: committed, uncertain: BTreeSet::new() };
    }
    Ok(())
}

/// Harm that the check must notice; each is taken back.
pub const PLANTS: [fn(&mut Session) -> engine::Result<()>; 4] = [
    // A row of a transaction is gone.
    |session| {
        let ledger = session.table(&table(0))?;
        let at = session.scan(&ledger)?.next(session)?.expect("rows").0;
        session.delete(&ledger, at)
    },
    // A row has another content.
    |session| {
        let ledger = session.table(&table(0))?;
        let (at, mut row) = session.scan(&ledger)?.next(session)?.expect("rows");
        row[2] = text("something else");
        session.update(&ledger, at, &row)
    },
    // A row that nobody committed.
    |session| {
        let ledger = session.table(&table(0))?;
        session.insert(&ledger, &[int(-1), int(1), text("who?")]).map(|_| ())
    },
    // A note is older than what was acknowledged.
    |session| {
        let notes = session.table(NOTES)?;
        let (at, newest) = note_of(session, 0)?.expect("a note");
        session.update(&notes, at, &[int(0), int(newest - 1)])
    },
];
