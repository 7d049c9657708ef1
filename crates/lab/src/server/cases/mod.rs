//! The workloads on a real server: the words, tables and checks of the embedded database's ([`crate::database`]), in SQL.

pub mod commit;
pub mod growth;
pub mod order_entry;
pub mod random_read;
pub mod scan;

use super::site::Site;
use super::{Connection, Kind, Server, ServerError};
use crate::LabError;
use crate::database::drive::{self, Performance, Player, Terms};
use crate::database::interval::Moment;

/// Plays until the window is over; the server's counters are read at both of its edges, and the flags of its open files at the second.
///
/// # Errors
/// The first error of a session; files that are not open as the mode means; [`LabError::Cancelled`].
fn play(
    server: &dyn Site,
    players: Vec<Box<dyn Player + '_>>,
    classes: usize,
    terms: Terms<'_>,
) -> Result<Performance, LabError> {
    let mut session = server.connect("counters")?;
    let mut flags = None;
    let mut edges = 0;
    let mut performance = drive::play_counted(players, classes, terms, &mut |_| {
        edges += 1;
        let moment = Moment::of_server(server.kind(), &mut *session, terms.watch);
        if edges == 2 {
            flags = Some(server.open_flags());
        }
        moment
    })?;
    performance.trial.flags = flags.transpose()?.unwrap_or_default();
    Ok(performance)
}

/// Bytes of a block.
pub fn page_bytes(server: &dyn Site) -> u64 {
    server.block().0
}

/// Bytes of a table on disk, without its indexes where the product keeps them apart.
///
/// # Errors
/// What the server says.
pub fn table_bytes(server: &Server, session: &mut dyn Connection, table: &str) -> Result<u64, ServerError> {
    match server.kind() {
        Kind::Postgres => Ok(session.number(&format!("select pg_relation_size('{table}')"))? as u64),
        Kind::Mariadb => {
            // The file grows by several MiB at a time, and other statistics are estimates: pages in use are counted here.
            session.execute(&format!("analyze table {table}"))?;
            let pages = "select stat_value * @@innodb_page_size from mysql.innodb_index_stats where stat_name = 'n_leaf_pages'";
            let of = format!(
                "database_name = database() and table_name = '{table}' and index_name in ('PRIMARY', 'GEN_CLUST_INDEX')"
            );
            Ok(session.number(&format!("{pages} and {of}"))? as u64)
        }
    }
}

/// A query that numbers rows 0, 1 … `count - 1` as `n`.
fn numbers(kind: Kind, count: u64) -> String {
    let last = count.max(1) - 1;
    match kind {
        Kind::Postgres => format!("generate_series(0::bigint, {last}) as numbers(n)"),
        Kind::Mariadb => format!("(select seq as n from seq_0_to_{last}) as numbers"),
    }
}

/// Makes `table` with `rows` rows as [`crate::database::source`] has them: lines of program text, of varying length.
///
/// # Errors
/// What the server says.
pub(super) fn create_source(
    kind: Kind,
    session: &mut dyn Connection,
    table: &str,
    rows: u64,
) -> Result<(), ServerError> {
    session.execute(&source_definition(table))?;
    let unit = match kind {
        Kind::Postgres => "(n / 400)",
        Kind::Mariadb => "(n div 400)",
    };
    session.execute(&format!(
        "insert into {table} select 'SYS', concat('DBMS_UNIT_', lpad(concat({unit}, ''), 6, '0')), \
         case when mod({unit}, 2) = 0 then 'PACKAGE' else 'PACKAGE BODY' end, mod(n, 400) + 1, \
         left(repeat(md5(concat(n, '')), 4), cast(10 + mod(n * 7919, 111) as integer)) from {}",
        numbers(kind, rows)
    ))
}

/// The columns of `dba_source`.
fn source_definition(table: &str) -> String {
    format!(
        "create table {table} (owner varchar(128), name varchar(128), type varchar(12), line bigint, text varchar(4000))"
    )
}
