//! What a server counts of itself, under its own names: `pg_stat_wal.wal_sync`, `Innodb_log_writes` ….

use super::{Connection, Kind, ServerError};
use std::collections::BTreeMap;

/// Cumulative counters by name.
pub type Counted = BTreeMap<String, f64>;

/// Each view becomes names and values, whatever columns the version has.
const POSTGRES: [(&str, &str); 3] = [
    ("pg_stat_wal", "pg_stat_wal"),
    ("pg_stat_bgwriter", "pg_stat_bgwriter"),
    ("pg_stat_database", "(select * from pg_stat_database where datname = current_database())"),
];
/// I/O of all its processes by object: `pg_stat_io.relation.reads`, `pg_stat_io.wal.fsync_time` (milliseconds) …; from 18 on redo is counted
/// here alone.
const POSTGRES_IO: &str = "select object || '.' || key, sum(value::float8) from pg_stat_io as v, json_each_text(to_json(v)) \
     where key not in ('backend_type', 'object', 'context', 'op_bytes', 'stats_reset') and value is not null group by 1";
/// Views that not every version has: from 16 and from 17 on.
const LATER: &str = "select relname from pg_class where relname in ('pg_stat_io', 'pg_stat_checkpointer')";
const MARIADB: &str = "show global status where variable_name like 'Innodb%' or variable_name in ('Com_commit', 'Handler_commit')";

/// Reads them.
///
/// # Errors
/// What the server says.
pub fn read(kind: Kind, connection: &mut dyn Connection) -> Result<Counted, ServerError> {
    let mut all = Counted::new();
    let mut take = |prefix: &str, rows: Vec<Vec<Option<String>>>| {
        for row in rows {
            let [Some(name), Some(value)] = &row[..] else { continue };
            if let Ok(value) = value.parse() {
                all.insert(format!("{prefix}{name}"), value);
            }
        }
    };
    match kind {
        Kind::Postgres => {
            let later: Vec<String> =
                connection.rows(LATER)?.into_iter().filter_map(|row| row.into_iter().next()?).collect();
            let has = |name: &str| later.iter().any(|view| view == name);
            let checkpointer =
                Some(("pg_stat_checkpointer", "pg_stat_checkpointer")).filter(|(name, _)| has(name));
            for (name, from) in POSTGRES.into_iter().chain(checkpointer) {
                let query = format!("select key, value from {from} as v, json_each_text(to_json(v))");
                take(&format!("{name}."), connection.rows(&query)?);
            }
            if has("pg_stat_io") {
                take("pg_stat_io.", connection.rows(POSTGRES_IO)?);
            }
        }
        Kind::Mariadb => take("", connection.rows(MARIADB)?),
    }
    Ok(all)
}

/// What grew; what did not, and what is no counter and fell, is left out.
pub fn since(before: &Counted, after: &Counted) -> Vec<(String, f64)> {
    let grown = after.iter().filter_map(|(name, value)| {
        let grown = value - before.get(name)?;
        (grown > 0.0).then(|| (name.clone(), grown))
    });
    grown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_grew_is_told() {
        let counted =
            |pairs: &[(&str, f64)]| pairs.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect::<Counted>();
        let before = counted(&[("a", 1.0), ("b", 2.0), ("c", 5.0)]);
        let after = counted(&[("a", 4.0), ("b", 2.0), ("c", 4.0), ("d", 9.0)]);
        assert_eq!(since(&before, &after), [("a".to_owned(), 3.0)]);
    }
}
