//! A run's record, asked in SQL: its own tables, and what the run saw of the database under the names of v$ views.
//!
//! Everything is read-only; the views are in this connection's memory alone. SYSDATE is when the run ended, so that a query for
//! the last five minutes finds the last five of the run.

use crate::outcome::{Described, Kept, Outcome, Sink};
use crate::statement::{self, Statement};
use crate::step::{self, Interrupter};
use crate::{Error, SqlError, rewrite, sqlite};
use record::{Reader, RecordError};
use rusqlite::{Connection, OpenFlags};
use std::path::Path;

/// A record, opened for questions.
pub struct RunRecord {
    db: Connection,
}

/// Why a record was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It is none, or cannot be read.
    #[error("{0}")]
    Record(#[from] RecordError),
    /// SQLite says no.
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
}

impl RunRecord {
    /// Opens the record at `path`.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        // The reader knows what a record is, and what a killed run leaves.
        let reader = Reader::open(path)?;
        let began = reader.experiment()?.started_utc;
        let ended = reader.ending()?.map_or(began, |ending| ending.finished_utc);
        drop(reader);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(path, flags)?;
        let now: Option<i64> = db.query_row("SELECT unixepoch(?)", [ended], |row| row.get(0))?;
        let now = now.and_then(|now| u64::try_from(now).ok()).unwrap_or(0);
        sqlite::prepare(&db, move || now)?;
        sqlite::create_dual(&db)?;
        let tables = |name: &str| db.table_exists(None, name);
        for view in VIEWS.iter().chain(dnfs::VIEWS) {
            // A record of an older schema has not all tables.
            if tables(view.from)? {
                db.execute_batch(&format!("CREATE TEMP VIEW [{}] AS {}", view.name, view.query))?;
            }
        }
        db.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        db.pragma_update(None, "query_only", true)?;
        Ok(Self { db })
    }

    /// Asks one question, without its `;`.
    ///
    /// # Errors
    /// What is wrong with it; all that is no question.
    pub fn execute(&mut self, text: &str, sink: &mut dyn Sink) -> Result<Outcome, Error> {
        match statement::parse(text)? {
            Statement::Query => {}
            Statement::Other if step::is_harmless(text) => {}
            Statement::Nothing(why) => return Ok(Outcome::Nothing(why)),
            _ => return Err(SqlError::at(0, "a record is evidence: it can only be asked (SELECT)").into()),
        }
        let rewritten = rewrite::rewrite(text, None)?;
        let mut progress = step::Progress::default();
        step::steps(&self.db, &rewritten.sql, &[], sink, &mut progress)
            .map_err(|error| step::failure(&error, &rewritten))?;
        Ok(Outcome::Rows(progress.rows))
    }

    /// Asks one question and keeps the answer.
    ///
    /// # Errors
    /// As [`RunRecord::execute`].
    pub fn query(&mut self, text: &str) -> Result<Kept, Error> {
        let mut kept = Kept::default();
        self.execute(text, &mut kept)?;
        Ok(kept)
    }

    /// What stops a question that takes too long.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter::of(&self.db)
    }

    /// The columns of a table or view; none when there is none of that name.
    pub fn describe(&self, name: &str) -> Option<Vec<Described>> {
        let sql = "SELECT name, \"notnull\", type FROM pragma_table_info(?)";
        let mut columns = self.db.prepare_cached(sql).ok()?;
        let column = |row: &rusqlite::Row<'_>| {
            Ok(Described { name: row.get(0)?, not_null: row.get(1)?, declared: row.get(2)? })
        };
        let found = columns.query_map([name], column).ok()?.collect::<Result<Vec<_>, _>>().ok()?;
        (!found.is_empty()).then_some(found)
    }

    /// Names of all tables and views, with those of their columns.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn names(&self) -> rusqlite::Result<Vec<(String, Vec<String>)>> {
        let sql = "SELECT name FROM main.sqlite_schema WHERE type = 'table' UNION ALL
                   SELECT name FROM temp.sqlite_schema WHERE type = 'view' ORDER BY name";
        let mut tables = self.db.prepare(sql)?;
        let names: Vec<String> = tables.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        let columns = |name: String| {
            let mut columns = self.db.prepare("SELECT name FROM pragma_table_info(?)")?;
            let found = columns.query_map([&name], |row| row.get(0))?.collect::<Result<_, _>>()?;
            Ok((name, found))
        };
        names.into_iter().map(columns).collect()
    }
}

mod dnfs;

/// A view over a record's tables.
struct RecordView {
    name: &'static str,
    /// The newest of its tables.
    from: &'static str,
    query: &'static str,
}

/// As the v$ views of the instance, with the units of those, and what tells the parts of a run apart. Sums are over the whole run.
const VIEWS: &[RecordView] = &[
    RecordView {
        name: "v$active_session_history",
        from: "ash",
        query: "SELECT dense_rank() OVER (ORDER BY a.visit_id, a.t_ns) AS SAMPLE_ID,
            datetime(v.started_utc, ((a.t_ns - v.start_ns) / 1000000000) || ' seconds') AS SAMPLE_TIME,
            a.weight_ns / 1000 AS USECS_PER_ROW, a.session AS SESSION_ID,
            CASE a.foreground WHEN 1 THEN 'FOREGROUND' ELSE 'BACKGROUND' END AS SESSION_TYPE,
            CASE WHEN a.event IS NULL THEN 'ON CPU' ELSE 'WAITING' END AS SESSION_STATE,
            a.event AS EVENT, a.p1 AS P1, a.p2 AS P2, a.p3 AS P3, a.wait_class AS WAIT_CLASS,
            a.blocking_session AS BLOCKING_SESSION, a.file_no AS [CURRENT_FILE#], a.block_no AS [CURRENT_BLOCK#],
            a.program AS PROGRAM, a.statement AS SQL_TEXT, a.visit_id AS VISIT_ID, c.name AS CONFIGURATION
            FROM ash a JOIN visit v ON v.id = a.visit_id LEFT JOIN configuration c ON c.id = v.configuration_id",
    },
    RecordView {
        name: "v$system_event",
        from: "wait_event",
        query: "SELECT event AS EVENT, sum(waits) AS TOTAL_WAITS, sum(timeouts) AS TOTAL_TIMEOUTS,
            sum(time_ns) / 10000000 AS TIME_WAITED, round(sum(time_ns) / 1e7 / nullif(sum(waits), 0), 2) AS AVERAGE_WAIT,
            sum(time_ns) / 1000 AS TIME_WAITED_MICRO, sum(waits * foreground) AS TOTAL_WAITS_FG,
            sum(time_ns * foreground) / 10000000 AS TIME_WAITED_FG,
            sum(time_ns * foreground) / 1000 AS TIME_WAITED_MICRO_FG, wait_class AS WAIT_CLASS
            FROM wait_event WHERE event NOT LIKE 'log file sync: %' GROUP BY event, wait_class",
    },
    RecordView {
        name: "v$event_histogram_micro",
        from: "wait_event",
        query: "SELECT w.event AS EVENT, 1 << min(b.key, 62) AS WAIT_TIME_MICRO, sum(b.value) AS WAIT_COUNT
            FROM wait_event w, json_each(w.histogram_micro) b GROUP BY w.event, b.key HAVING sum(b.value) > 0",
    },
    RecordView {
        name: "v$sysstat",
        from: "statistic",
        query: "SELECT name AS NAME, sum(value) AS VALUE FROM statistic WHERE class = 'system' GROUP BY name",
    },
    RecordView {
        name: "v$sys_time_model",
        from: "statistic",
        query: "SELECT name AS STAT_NAME, CAST(sum(value) / 1000 AS INTEGER) AS VALUE FROM statistic
            WHERE class = 'time' GROUP BY name",
    },
    RecordView {
        name: "v$iostat_file",
        from: "file_stat",
        query: "SELECT file_no AS FILE_NO, file_type AS FILETYPE_NAME,
            sum(small_read_bytes) >> 20 AS SMALL_READ_MEGABYTES, sum(small_write_bytes) >> 20 AS SMALL_WRITE_MEGABYTES,
            sum(large_read_bytes) >> 20 AS LARGE_READ_MEGABYTES, sum(large_write_bytes) >> 20 AS LARGE_WRITE_MEGABYTES,
            sum(small_reads) AS SMALL_READ_REQS, sum(small_writes) AS SMALL_WRITE_REQS,
            sum(large_reads) AS LARGE_READ_REQS, sum(large_writes) AS LARGE_WRITE_REQS,
            sum(small_read_ns) / 1e6 AS SMALL_READ_SERVICETIME, sum(small_write_ns) / 1e6 AS SMALL_WRITE_SERVICETIME,
            sum(large_read_ns) / 1e6 AS LARGE_READ_SERVICETIME, sum(large_write_ns) / 1e6 AS LARGE_WRITE_SERVICETIME,
            path AS FILE_NAME
            FROM file_stat GROUP BY file_no, file_type, path",
    },
    RecordView {
        name: "dba_rsrc_io_calibrate",
        from: "estimate",
        query: "SELECT e.started_utc AS START_TIME, (SELECT finished_utc FROM ending ORDER BY id DESC LIMIT 1) AS END_TIME,
            (SELECT round(value) FROM estimate WHERE metric = 'read_iops_max') AS MAX_IOPS,
            (SELECT round(value) FROM estimate WHERE metric = 'read_mbps_max') AS MAX_MBPS,
            (SELECT round(value) FROM estimate WHERE metric = 'read_mbps_stream') AS MAX_PMBPS,
            (SELECT round(latency_ns / 1e6, 3) FROM estimate WHERE metric = 'read_iops_max') AS LATENCY
            FROM experiment e WHERE e.kind = 'calibrate'",
    },
    RecordView {
        name: "v$io_calibration_status",
        from: "estimate",
        query: "SELECT CASE WHEN EXISTS (SELECT 1 FROM estimate WHERE metric = 'read_iops_max') THEN 'READY'
            ELSE 'NOT AVAILABLE' END AS STATUS, (SELECT finished_utc FROM ending ORDER BY id DESC LIMIT 1) AS CALIBRATION_TIME",
    },
];
