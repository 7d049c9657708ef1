//! The counters that a profile rests on, read at one moment, and what cannot be read there.

use super::super::counters;
use crate::server::{Connection, Kind, ServerError};
use std::collections::BTreeMap;
use units::{Nanos, clock};

/// Statements of ours at both ends, beside the looks.
pub(super) const STATEMENTS: u64 = 16;
/// Tables or files that are told.
const HOT_MAX: usize = 8;

/// All databases of the server together; transactions that wrote draw a number, others do not.
const POSTGRES: &str = "select sum(xact_commit), sum(xact_rollback), sum(blks_hit), sum(blks_read), \
     pg_snapshot_xmax(pg_current_snapshot()), current_setting('block_size') from pg_stat_database";
const POSTGRES_NAMES: [&str; 6] = ["commits", "rollbacks", "hits", "reads", "numbers", "block"];
const POSTGRES_ROWS: &str =
    "select sum(seq_tup_read), sum(coalesce(idx_tup_fetch, 0)) from pg_stat_user_tables";
/// From 16 on: reads of large scans, and all.
const POSTGRES_BULK: &str = "select sum(reads) filter (where context = 'bulkread'), sum(reads) from pg_stat_io where object = 'relation'";
const POSTGRES_HOT: &str = "select schemaname || '.' || relname, coalesce(heap_blks_read, 0) + coalesce(heap_blks_hit, 0) + \
     coalesce(idx_blks_read, 0) + coalesce(idx_blks_hit, 0) from pg_statio_user_tables";
const MARIADB: &str = "show global status";
const MARIADB_HOT: &str = "select substring_index(file_name, '/', -2), sum_number_of_bytes_read + sum_number_of_bytes_write \
     from performance_schema.file_summary_by_instance where event_name like 'wait/io/file/innodb/%'";

/// A table or file, and what moved there.
#[derive(Clone, Debug, PartialEq)]
pub struct Hot {
    /// Its name.
    pub name: String,
    /// PostgreSQL: blocks that were got, per second; MariaDB: bytes read and written, per second.
    pub per_second: f64,
    /// Of all that were counted.
    pub share: f64,
}

/// Counters of a server at one moment.
#[derive(Clone, Debug)]
pub(super) struct Counters {
    pub(super) at: Nanos,
    pub(super) values: BTreeMap<String, f64>,
    hot: BTreeMap<String, f64>,
}

impl Counters {
    /// For tests of what follows from them.
    #[cfg(test)]
    pub(super) fn of(at: Nanos, values: &[(&str, f64)]) -> Self {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        Self { at, values, hot: BTreeMap::new() }
    }

    pub(super) fn read(kind: Kind, session: &mut dyn Connection) -> Result<Self, ServerError> {
        let at = clock::now();
        let values = match kind {
            Kind::Postgres => postgres(session)?,
            Kind::Mariadb => mariadb(session)?,
        };
        // Who may not see it is told by `doubts`.
        let hot = session.rows(match kind {
            Kind::Postgres => POSTGRES_HOT,
            Kind::Mariadb => MARIADB_HOT,
        });
        let hot = hot.unwrap_or_default().into_iter().filter_map(pair).collect();
        Ok(Self { at, values, hot })
    }

    /// The tables or files where most moved since `before`.
    pub(super) fn hot_since(&self, before: &Self) -> Vec<Hot> {
        let seconds = (self.at - before.at).as_secs().max(1e-9);
        let grown = |(name, value): (&String, &f64)| {
            let grown = value - before.hot.get(name).unwrap_or(&0.0);
            (grown > 0.0).then(|| (name.clone(), grown))
        };
        let mut all: Vec<(String, f64)> = self.hot.iter().filter_map(grown).collect();
        let sum: f64 = all.iter().map(|(_, grown)| grown).sum();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        let hot = all.into_iter().take(HOT_MAX);
        hot.map(|(name, grown)| Hot { name, per_second: grown / seconds, share: grown / sum }).collect()
    }
}

fn pair(row: Vec<Option<String>>) -> Option<(String, f64)> {
    let mut fields = row.into_iter();
    Some((fields.next()??, fields.next()??.parse().ok()?))
}

fn postgres(session: &mut dyn Connection) -> Result<BTreeMap<String, f64>, ServerError> {
    let mut values = counters::read(Kind::Postgres, session)?;
    let mut take = |names: &[&str], rows: Vec<Vec<Option<String>>>| {
        for (name, value) in names.iter().zip(rows.into_iter().flatten()) {
            if let Some(value) = value.and_then(|text| text.parse().ok()) {
                values.insert((*name).to_owned(), value);
            }
        }
    };
    take(&POSTGRES_NAMES, session.rows(POSTGRES)?);
    take(&["scanned rows", "fetched rows"], session.rows(POSTGRES_ROWS)?);
    // Before 16 there is no such view.
    take(&["bulk reads", "all reads"], session.rows(POSTGRES_BULK).unwrap_or_default());
    Ok(values)
}

fn mariadb(session: &mut dyn Connection) -> Result<BTreeMap<String, f64>, ServerError> {
    let mut values: BTreeMap<String, f64> = session.rows(MARIADB)?.into_iter().filter_map(pair).collect();
    values.insert("block".into(), session.number("select @@innodb_page_size")? as f64);
    // `Trx id counter N`, where we may see it.
    let status = session.rows("show engine innodb status").unwrap_or_default();
    let status = status.into_iter().flatten().flatten().last().unwrap_or_default();
    let counter = status.lines().find_map(|line| line.strip_prefix("Trx id counter "));
    if let Some(counter) = counter.and_then(|text| text.trim().parse().ok()) {
        values.insert("numbers".into(), counter);
    }
    Ok(values)
}

/// Sessions of others that work now.
pub(super) fn active(kind: Kind) -> &'static str {
    match kind {
        Kind::Postgres => {
            "select count(*) from pg_stat_activity where state = 'active' and backend_type = 'client backend' and pid <> pg_backend_pid()"
        }
        // Not its own threads, not the listener, not us.
        Kind::Mariadb => {
            "select count(*) from information_schema.processlist where command not in ('Sleep', 'Daemon', 'Binlog Dump') and id <> connection_id()"
        }
    }
}

/// What cannot be seen there, with what to type.
///
/// # Errors
/// Without its statistics nothing can be said: a refusal.
pub(super) fn doubts(kind: Kind, session: &mut dyn Connection) -> Result<Vec<String>, crate::LabError> {
    let mut doubts = Vec::new();
    match kind {
        Kind::Postgres => {
            if text(session, "show track_counts")? != "on" {
                return Err(crate::LabError::Target(
                    "track_counts is off there: PostgreSQL counts no blocks, and no mix can be derived. As a superuser type: \
                     ALTER SYSTEM SET track_counts = on; SELECT pg_reload_conf();"
                        .into(),
                ));
            }
            if text(session, "select pg_has_role(current_user, 'pg_read_all_stats', 'usage')")? != "t" {
                let user = text(session, "select current_user")?;
                doubts.push(format!(
                    "Active sessions of other users cannot be seen. As a superuser type: GRANT pg_monitor TO {user}"
                ));
            }
            let database = text(session, "select current_database()")?;
            doubts.push(format!(
                "Hot tables and scans are those of the database {database}; all other figures are of the whole server."
            ));
        }
        Kind::Mariadb => {
            if text(session, "select @@performance_schema")? != "1" {
                doubts.push(
                    "Hot files cannot be seen: performance_schema is off. In my.cnf: performance_schema=ON, and restart".into(),
                );
            } else if session.rows(MARIADB_HOT).is_err() {
                doubts.push(
                    "Hot files cannot be seen. Type there: GRANT SELECT ON performance_schema.* TO user"
                        .into(),
                );
            }
        }
    }
    Ok(doubts)
}

/// The first value of a query; empty for none.
pub(super) fn text(session: &mut dyn Connection, query: &str) -> Result<String, ServerError> {
    let rows = session.rows(query)?;
    Ok(rows.into_iter().next().and_then(|row| row.into_iter().next().flatten()).unwrap_or_default())
}
