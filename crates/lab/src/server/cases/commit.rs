//! Case `commit` on a server: each session inserts rows of about 1,000 bytes into a table of its own and commits each.

use super::play;
use crate::LabError;
use crate::database::commit::{CLASSES, ROW_BYTES, TEXT_BYTES, TEXTS};
use crate::database::drive::{Performance, Played, Player, Terms};
use crate::database::inconsistent;
use crate::server::connection::StatementId;
use crate::server::{Connection, Kind, Parameter, Server};
use units::Rng;

struct Inserter {
    session: Box<dyn Connection>,
    insert: StatementId,
    next: i64,
    letters: String,
}

impl Player for Inserter {
    fn play(&mut self, rng: &mut Rng) -> Result<Played, LabError> {
        let shift = rng.below((self.letters.len() - TEXT_BYTES) as u64) as usize;
        let text = Parameter::Text(&self.letters[shift..shift + TEXT_BYTES]);
        let mut row = [text; 1 + TEXTS];
        row[0] = Parameter::Integer(self.next);
        // Outside a transaction a statement commits by itself: one way to the server and back.
        self.session.call(self.insert, &row)?;
        self.next += 1;
        Ok(Played { class: 0, bytes: ROW_BYTES })
    }
}

fn insert(kind: Kind, table: &str) -> String {
    let places: Vec<String> = (1..=1 + TEXTS).map(|n| kind.place(n)).collect();
    format!("insert into {table} values ({})", places.join(", "))
}

/// Creates the tables, plays, checks that every acknowledged row is there, drops the tables.
///
/// # Errors
/// What the server says; rows that are missing or too many.
pub fn run(server: &Server, count: u32, terms: Terms<'_>) -> Result<Performance, LabError> {
    let mut admin = server.connect("commit")?;
    let letters: String = {
        let mut rng = Rng::new(terms.seed);
        (0..4096).map(|_| char::from(b'A' + rng.below(26) as u8)).collect()
    };
    let columns: Vec<String> = (1..=TEXTS).map(|n| format!("text{n} varchar(100)")).collect();
    let mut players: Vec<Box<dyn Player>> = Vec::new();
    for index in 0..count {
        admin.execute(&format!("create table commit_{index} (id bigint, {})", columns.join(", ")))?;
        let mut session = server.connect(&format!("commit {index}"))?;
        let insert = session.prepare(&insert(server.kind(), &format!("commit_{index}")))?;
        players.push(Box::new(Inserter { session, insert, next: 1, letters: letters.clone() }));
    }
    let performance = play(server, players, CLASSES.len(), terms)?;
    let mut counted = 0;
    for index in 0..count {
        counted += admin.number(&format!("select count(*) from commit_{index}"))? as u64;
        admin.execute(&format!("drop table commit_{index}"))?;
    }
    if counted != performance.played[0] {
        return Err(inconsistent(
            "commit",
            format!("{} commits were acknowledged and {counted} rows are there", performance.played[0]),
        ));
    }
    Ok(performance)
}
