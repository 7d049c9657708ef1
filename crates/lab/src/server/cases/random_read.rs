//! Case `random-read` on a server: sessions read single rows from a table that the cache does not hold; one row a page.
//!
//! PostgreSQL is asked by the row's address, as the embedded database is; MariaDB has none, and is asked by its clustered key.

use super::{numbers, page_bytes, play};
use crate::LabError;
use crate::database::drive::{Performance, Played, Player, Terms};
use crate::database::inconsistent;
use crate::database::random_read::{CLASSES, Shape};
use crate::server::connection::StatementId;
use crate::server::site::Site;
use crate::server::{Connection, Kind, Parameter};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use units::Rng;

/// Letters of a checksum, of which a row is made.
const LETTERS: u64 = 33;

/// Makes a table of about `bytes`, one row in each page. Result: its rows.
///
/// # Errors
/// What the server says.
pub fn prepare(server: &dyn Site, bytes: u64) -> Result<u64, LabError> {
    let kind = server.kind();
    let page = page_bytes(server);
    let rows = (bytes / page).max(1);
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
                "insert into rows_to_read select n, repeat(md5(n), {}) from {}",
                page / (2 * LETTERS),
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
    order: Order,
    page: u64,
}

/// Which row comes next.
#[derive(Clone)]
enum Order {
    /// Any of the first so many, again and again.
    Random(u64),
    /// Each of all of them once, in an order without neighbours, over all sessions.
    Once { next: Arc<AtomicU64>, rows: u64, step: u64 },
}

impl Order {
    /// All rows once where `span` has them all: no cache can have a row that nobody has read.
    fn of(span: u64, rows: u64, rng: &mut Rng) -> Self {
        if span < rows {
            return Self::Random(span);
        }
        // A step near the golden section of the rows, without a common divisor: neighbours in time lie far apart.
        let mut step = (rows as f64 * 0.618) as u64 | 1;
        while gcd(step, rows) > 1 {
            step += 2;
        }
        Self::Once { next: Arc::new(AtomicU64::new(rng.below(rows))), rows, step }
    }

    fn next(&self, rng: &mut Rng) -> u64 {
        match self {
            Self::Random(span) => rng.below(*span),
            Self::Once { next, rows, step } => {
                let turn = u128::from(next.fetch_add(1, Ordering::Relaxed));
                (turn * u128::from(*step) % u128::from(*rows)) as u64
            }
        }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Player for Reader {
    fn play(&mut self, rng: &mut Rng) -> Result<Played, LabError> {
        let id = self.order.next(rng);
        read(self.kind, &mut *self.session, self.read, id)?;
        Ok(Played { class: 0, bytes: self.page })
    }
}

/// The statement that reads a row.
fn prepare_read(kind: Kind, session: &mut dyn Connection) -> Result<StatementId, LabError> {
    Ok(session.prepare(match kind {
        Kind::Postgres => "select id from rows_to_read where ctid = ($1::text)::tid",
        // Of the whole row, as the other one is found with its page.
        Kind::Mariadb => "select id, length(filler) from rows_to_read where id = ?",
    })?)
}

/// Reads row `id` and compares it with what it should be.
fn read(kind: Kind, session: &mut dyn Connection, statement: StatementId, id: u64) -> Result<(), LabError> {
    let found = match kind {
        Kind::Postgres => session.call(statement, &[Parameter::Text(&format!("({id},1)"))])?,
        Kind::Mariadb => session.call(statement, &[Parameter::Integer(id as i64)])?,
    };
    if found == Some(id as i64) {
        return Ok(());
    }
    Err(inconsistent("random-read", format!("row {id} has the id {found:?}")))
}

/// Reads the first `count` rows once.
///
/// # Errors
/// What the server says; rows that are not what they should be.
pub fn touch(kind: Kind, session: &mut dyn Connection, count: u64) -> Result<(), LabError> {
    let statement = prepare_read(kind, session)?;
    (0..count).try_for_each(|id| read(kind, session, statement, id))
}

/// Reads until the window is over, of `rows` rows those that `shape` says; each row is checked.
///
/// # Errors
/// What the server says; rows that are not what they should be.
pub fn run(server: &dyn Site, rows: u64, shape: &Shape, terms: Terms<'_>) -> Result<Performance, LabError> {
    let (kind, page) = (server.kind(), page_bytes(server));
    let order = Order::of(shape.span.end, rows, &mut Rng::new(terms.seed));
    let mut players: Vec<Box<dyn Player>> = Vec::new();
    for index in 0..shape.sessions {
        let mut session = server.connect(&format!("random-read {index}"))?;
        let read = prepare_read(kind, &mut *session)?;
        players.push(Box::new(Reader { kind, session, read, order: order.clone(), page }));
    }
    play(server, players, CLASSES.len(), terms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Seed;

    #[test]
    fn every_row_comes_once_and_none_after_its_neighbour() {
        let mut rng = Rng::new(Seed(1));
        for rows in [1, 2, 7, 1000, 1024, 32768] {
            let order = Order::of(rows, rows, &mut rng);
            let all: Vec<u64> = (0..rows).map(|_| order.next(&mut rng)).collect();
            let mut sorted = all.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..rows).collect::<Vec<_>>());
            assert!(rows < 100 || all.windows(2).all(|pair| pair[0].abs_diff(pair[1]) > 1), "{rows}");
        }
    }
}
