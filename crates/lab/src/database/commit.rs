//! Case `commit`: each session inserts rows of about 1,000 bytes into a table of its own and commits each.

use super::drive::{self, Performance, Played, Player, Terms};
use super::{Action, inconsistent, sessions};
use crate::LabError;
use engine::{Column, ColumnKind, Instance, Session, Table, TableDef, Value};
use std::sync::Arc;
use units::Rng;

/// Columns of text beside the id, as in the article.
pub(crate) const TEXTS: usize = 10;
/// Letters in each.
pub(crate) const TEXT_BYTES: usize = 97;
/// Bytes of a row as the user counts them.
pub const ROW_BYTES: u64 = (8 + TEXTS * TEXT_BYTES) as u64;
/// Its only transaction.
pub const CLASSES: [&str; 1] = ["insert"];

struct Inserter {
    session: Session,
    table: Arc<Table>,
    next: i64,
    text: String,
}

impl Player for Inserter {
    fn play(&mut self, rng: &mut Rng) -> Result<Played, LabError> {
        let shift = rng.below((self.text.len() - TEXT_BYTES) as u64) as usize;
        let mut row = vec![Value::Integer(self.next)];
        row.extend((0..TEXTS).map(|_| Value::Text(self.text[shift..shift + TEXT_BYTES].to_owned())));
        self.session.insert(&self.table, &row)?;
        self.session.commit()?;
        self.next += 1;
        Ok(Played { class: 0, bytes: ROW_BYTES })
    }
}

fn table_name(session: usize) -> String {
    format!("COMMIT_{session}")
}

fn definition(name: &str) -> TableDef {
    let texts = (1..=TEXTS).map(|n| Column::new(&format!("TEXT{n}"), ColumnKind::Text));
    TableDef::new(name, std::iter::once(Column::new("ID", ColumnKind::Integer)).chain(texts).collect())
}

/// Creates the tables, plays, checks that every acknowledged row is there, drops the tables.
///
/// # Errors
/// What the engine says; rows that are missing or too many.
pub fn run(instance: &Instance, count: u32, terms: Terms<'_>) -> Result<Performance, LabError> {
    let mut admin = instance.session("commit")?;
    let mut players: Vec<Box<dyn Player>> = Vec::new();
    let letters: String = {
        let mut rng = Rng::new(terms.seed);
        (0..4096).map(|_| char::from(b'A' + rng.below(26) as u8)).collect()
    };
    for (index, session) in sessions(instance, "commit", count)?.into_iter().enumerate() {
        let table = admin.create_table(&definition(&table_name(index)))?;
        Action::new(&session, CLASSES[0]).set(&session);
        players.push(Box::new(Inserter { session, table, next: 1, text: letters.clone() }));
    }
    let result = drive::play(instance, players, CLASSES.len(), terms);
    let counted: u64 = (0..count as usize)
        .map(|index| {
            let table = admin.table(&table_name(index))?;
            let rows = admin.count(&table)?;
            admin.drop_table(&table_name(index))?;
            Ok::<u64, LabError>(rows)
        })
        .sum::<Result<u64, LabError>>()?;
    let performance = result?;
    if counted != performance.played[0] {
        return Err(inconsistent(
            "commit",
            format!("{} commits were acknowledged and {counted} rows are there", performance.played[0]),
        ));
    }
    Ok(performance)
}
