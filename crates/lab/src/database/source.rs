//! A table to begin with, as `dba_source` is for the article: lines of program text, of varying length.

use super::{stop_if, until};
use crate::LabError;
use engine::{Column, ColumnKind, Session, TableDef, Value};
use std::sync::atomic::AtomicBool;
use units::{Rng, Seed};

/// Mean bytes of a row of [`rows`], as stored.
pub const ROW_BYTES: u64 = 110;

/// The columns of `dba_source`.
pub fn definition(name: &str) -> TableDef {
    let text = |name: &str| Column::new(name, ColumnKind::Text);
    TableDef::new(
        name,
        vec![
            text("OWNER"),
            text("NAME"),
            text("TYPE"),
            Column::new("LINE", ColumnKind::Integer),
            text("TEXT"),
        ],
    )
}

/// `count` rows; always the same for a seed.
pub fn rows(count: u64, seed: Seed) -> impl Iterator<Item = Vec<Value>> {
    let mut rng = Rng::new(seed);
    (0..count).map(move |n| {
        let unit = n / 400;
        vec![
            Value::Text("SYS".into()),
            Value::Text(format!("DBMS_UNIT_{unit:06}")),
            Value::Text(if unit.is_multiple_of(2) { "PACKAGE" } else { "PACKAGE BODY" }.into()),
            Value::Integer((n % 400 + 1) as i64),
            Value::Text(line(&mut rng)),
        ]
    })
}

/// A line of 10 to 120 letters.
fn line(rng: &mut Rng) -> String {
    let length = 10 + rng.below(111) as usize;
    let mut text = String::with_capacity(length + 8);
    while text.len() < length {
        let mut bits = rng.next_u64();
        for _ in 0..8 {
            let letter = b"abcdefghijklmnopqrstuvwxyz :=();"[(bits & 31) as usize];
            text.push(char::from(letter));
            bits >>= 5;
        }
    }
    text.truncate(length);
    text
}

/// Makes the table and fills it with `count` rows, committed.
///
/// # Errors
/// What the engine says; [`LabError::Cancelled`].
pub fn create(
    session: &mut Session,
    name: &str,
    count: u64,
    seed: Seed,
    cancel: &AtomicBool,
) -> Result<(), LabError> {
    let table = session.create_table(&definition(name))?;
    session.insert_many(&table, &mut until(cancel, rows(count, seed)))?;
    stop_if(cancel, session)?;
    session.commit()?;
    Ok(())
}
