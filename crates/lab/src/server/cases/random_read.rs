//! Case `random-read` on a server: sessions read single rows from a table that the cache does not hold; one row a page.
//!
//! PostgreSQL is asked by the row's address, as the embedded database is; MariaDB has none, and is asked by its clustered key.

use super::numbers;
use crate::LabError;
use crate::database::drive::{self, Played, Player, Shown, Terms};
use crate::database::inconsistent;
use crate::database::random_read::CLASSES;
use crate::server::connection::StatementId;
use crate::server::{Connection, Kind, Parameter, Server};
use host::counters::Thread;
use units::Rng;

/// PostgreSQL's page, and MariaDB's.
const fn page_bytes(kind: Kind) -> u64 {
    match kind {
        Kind::Postgres => 8 << 10,
        Kind::Mariadb => 16 << 10,
    }
}

/// Makes a table of about `bytes`, one row in each page. Result: its rows.
///
/// # Errors
/// What the server says.
pub fn prepare(server: &Server, bytes: u64) -> Result<u64, LabError> {
    let kind = server.kind();
    let rows = (bytes / page_bytes(kind)).max(1);
    let mut session = server.connect("prepare")?;
    match kind {
        Kind::Postgres => {
            session.execute("create table rows_to_read (id bigint, filler text)")?;
            // As it is: neither compressed nor put into a table of its own.
            session.execute("alter table rows_to_read alter column filler set storage plain")?;
            session.execute(&format!(
                "insert into rows_to_read select n, repeat(md5(n::text), 153) from {}",
                numbers(kind, rows)
            ))?;
            session.execute("vacuum analyze rows_to_read")?;
        }
        Kind::Mariadb => {
            // A row takes less than half a page by rule, and the next one no longer fits what new pages are filled to.
            session.execute("create table rows_to_read (id bigint primary key, filler varchar(8000) character set latin1)")?;
            session.execute(&format!(
                "insert into rows_to_read select n, repeat(md5(n), 248) from {}",
                numbers(kind, rows)
            ))?;
        }
    }
    Ok(rows)
}

struct Reader {
    kind: Kind,
    session: Box<dyn Connection>,
    read: StatementId,
    rows: u64,
}

impl Player for Reader {
    fn play(&mut self, rng: &mut Rng) -> Result<Played, LabError> {
        let id = rng.below(self.rows) as i64;
        let found = match self.kind {
            Kind::Postgres => self.session.call(self.read, &[Parameter::Text(&format!("({id},1)"))])?,
            Kind::Mariadb => self.session.call(self.read, &[Parameter::Integer(id)])?,
        };
        if found != Some(id) {
            return Err(inconsistent("random-read", format!("row {id} has the id {found:?}")));
        }
        Ok(Played { class: 0, bytes: page_bytes(self.kind) })
    }
}

/// Reads until the window is over; each row is checked.
///
/// # Errors
/// What the server says; rows that are not what they should be.
pub fn run(
    server: &Server,
    rows: u64,
    count: u32,
    terms: Terms<'_>,
    look: &mut dyn FnMut(&[Thread]),
) -> Result<Shown, LabError> {
    let kind = server.kind();
    let sql = match kind {
        Kind::Postgres => "select id from rows_to_read where ctid = ($1::text)::tid",
        // Of the whole row, as the other one is found with its page.
        Kind::Mariadb => "select id, length(filler) from rows_to_read where id = ?",
    };
    let mut players: Vec<Box<dyn Player>> = Vec::new();
    for index in 0..count {
        let mut session = server.connect(&format!("random-read {index}"))?;
        let read = session.prepare(sql)?;
        players.push(Box::new(Reader { kind, session, read, rows }));
    }
    drive::perform(players, CLASSES.len(), terms, look)
}
