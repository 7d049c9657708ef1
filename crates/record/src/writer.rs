//! Writing a record while the run goes.
//!
//! Every call is one transaction into SQLite's write-ahead log: it reaches the kernel, so a `kill -9` loses nothing, and
//! costs some ten microseconds without touching the disk. The disk is synced where a visit ends, never inside one: the
//! price is that a power cut may take the visit that was going on.

use crate::rows::{
    BlockRow, CheckRow, ConfigurationRow, CounterRow, CurvePointRow, Ending, EstimateRow, EventRow,
    Experiment, FactRow, HistogramRow, IntervalRow, PhaseOwned, PhaseRow, PlanRow, ReferenceRow,
    SampledBeside, VisitEndRow, VisitOwned, VisitRow, WorkloadRow,
};
use crate::table::{Table, insert};
use crate::{RecordError, chain, schema};
use rusqlite::{Connection, ErrorCode, OptionalExtension, TransactionBehavior};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;
use units::clock;

type Result<T> = std::result::Result<T, RecordError>;

/// The one connection that fills a record. `Send`; a run has one.
#[derive(Debug)]
pub struct Writer {
    db: Connection,
    path: PathBuf,
    /// Hash of the newest plan or ended visit; empty before the first.
    chain_head: String,
}

impl Writer {
    /// Creates the file, its folder if need be, and the row that says what was asked.
    ///
    /// # Errors
    /// [`RecordError::Exists`] when something has that name already; [`RecordError::Io`] and [`RecordError::Sqlite`]
    /// where it cannot be created.
    pub fn create(path: &Path, experiment: &Experiment) -> Result<Self> {
        Ok(Self { db: schema::create(path, experiment)?, path: path.into(), chain_head: String::new() })
    }

    /// Where the record is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Another connection to the same file, for what a thread samples while this one has other things to do.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn beside(&self) -> Result<Beside> {
        let db = schema::connect_writer(&self.path).map_err(|e| self.failed(e))?;
        Ok(Beside { db, path: self.path.clone() })
    }

    /// Keeps one fact.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`], as all calls below.
    pub fn fact(&mut self, fact: &FactRow) -> Result<()> {
        self.facts(std::slice::from_ref(fact))
    }

    /// Keeps facts, all or none.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn facts(&mut self, facts: &[FactRow]) -> Result<()> {
        self.add_all(None, facts)
    }

    /// Keeps a plan, before the first visit that follows it. Answers its hash, 64 hex digits; of the first plan it is
    /// the SHA-256 of the JSON text.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn plan(&mut self, json: &Value) -> Result<String> {
        let previous_sha256 = self.chain_head.clone();
        let sha256 = chain::plan(&previous_sha256, &json.to_string());
        let created_utc = clock::utc();
        self.add(&PlanRow { created_utc, json: json.clone(), previous_sha256, sha256: sha256.clone() })?;
        self.chain_head.clone_from(&sha256);
        Ok(sha256)
    }

    /// Keeps a configuration; answers its id.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn configuration(&mut self, configuration: &ConfigurationRow) -> Result<i64> {
        self.add(configuration)
    }

    /// Keeps a workload; answers its id.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn workload(&mut self, name: &str, json: &Value) -> Result<i64> {
        self.add(&WorkloadRow { name: name.into(), json: json.clone() })
    }

    /// Keeps a block with the order that chance chose; answers its id.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn block(&mut self, ordinal: u32, permutation: &[usize], seed: u64) -> Result<i64> {
        self.add(&BlockRow { ordinal, permutation: permutation.into(), seed })
    }

    /// Begins a visit; answers its id.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`], also when its block or configuration does not exist.
    pub fn visit(&mut self, visit: &VisitRow) -> Result<i64> {
        self.add(visit)
    }

    /// Ends a visit: seals its rows with a hash and syncs the record to disk. `status` is `measured`, or says why the
    /// visit does not count.
    ///
    /// # Errors
    /// [`RecordError::VisitNotOpen`] the second time; [`RecordError::Sqlite`].
    pub fn end_visit(&mut self, id: i64, status: &str, drop_reason: Option<&str>) -> Result<()> {
        self.assert_visit_open(id)?;
        let previous_sha256 = self.chain_head.clone();
        let sha256 =
            chain::visit(&self.db, id, status, drop_reason, &previous_sha256).map_err(|e| self.failed(e))?;
        let drop_reason = drop_reason.map(str::to_owned);
        let end = VisitEndRow { status: status.into(), drop_reason, previous_sha256, sha256: sha256.clone() };
        insert(&self.db, Some(id), &end).map_err(|e| self.failed(e))?;
        self.chain_head = sha256;
        self.sync()
    }

    /// Keeps a phase of an open visit, when it is over; answers its id.
    ///
    /// # Errors
    /// [`RecordError::VisitNotOpen`] after [`Writer::end_visit`]; [`RecordError::Sqlite`].
    pub fn phase(&mut self, phase: &PhaseRow) -> Result<i64> {
        self.assert_visit_open(phase.visit_id)?;
        self.add(phase)
    }

    /// Keeps the intervals of a phase, all or none.
    ///
    /// # Errors
    /// [`RecordError::VisitNotOpen`] after [`Writer::end_visit`]; [`RecordError::Sqlite`].
    pub fn intervals(&mut self, phase: i64, intervals: &[IntervalRow]) -> Result<()> {
        self.assert_phase_open(phase)?;
        self.add_all(Some(phase), intervals)
    }

    /// Keeps the latency histogram of a phase and class, as `stats::histogram` encodes it.
    ///
    /// # Errors
    /// [`RecordError::VisitNotOpen`] after [`Writer::end_visit`]; [`RecordError::Sqlite`].
    pub fn histogram(&mut self, phase: i64, op_class: &str, encoded: &[u8]) -> Result<()> {
        self.assert_phase_open(phase)?;
        self.add_all(Some(phase), &[HistogramRow { op_class: op_class.into(), encoded: encoded.into() }])
    }

    /// Keeps what the database says of a phase: its waits, statistics or files, all or none.
    ///
    /// # Errors
    /// [`RecordError::VisitNotOpen`] after [`Writer::end_visit`]; [`RecordError::Sqlite`].
    pub fn of_phase<T: PhaseOwned>(&mut self, phase: i64, rows: &[T]) -> Result<()> {
        self.assert_phase_open(phase)?;
        self.add_all(Some(phase), rows)
    }

    /// Keeps samples of a visit that goes on: sessions, ticks, buffers or redo, all or none.
    ///
    /// # Errors
    /// [`RecordError::VisitNotOpen`] after [`Writer::end_visit`]; [`RecordError::Sqlite`].
    pub fn of_visit<T: VisitOwned>(&mut self, visit: i64, rows: &[T]) -> Result<()> {
        self.assert_visit_open(visit)?;
        self.add_all(Some(visit), rows)
    }

    /// Keeps counters, all or none.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn counters(&mut self, counters: &[CounterRow]) -> Result<()> {
        self.add_all(None, counters)
    }

    /// Keeps a point of a curve.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn curve_point(&mut self, point: &CurvePointRow) -> Result<()> {
        self.add(point).map(drop)
    }

    /// Keeps the outcome of a consistency rule.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn check(&mut self, check: &CheckRow) -> Result<()> {
        self.add(check).map(drop)
    }

    /// Keeps a figure.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`], also when its configuration does not exist.
    pub fn estimate(&mut self, estimate: &EstimateRow) -> Result<()> {
        self.add(estimate).map(drop)
    }

    /// Keeps a sample of block references.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn references(&mut self, references: &ReferenceRow) -> Result<()> {
        self.add(references).map(drop)
    }

    /// Keeps something that happened, with the time.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn event(&mut self, kind: &str, json: &Value) -> Result<()> {
        let event =
            EventRow { utc: clock::utc(), t_ns: clock::now().0, kind: kind.into(), json: json.clone() };
        self.add(&event).map(drop)
    }

    /// Says how the run ended (`finished`, `interrupted`, `failed: …`) and makes the record one single file that opens
    /// anywhere, read-only media included. The last word counts when it is called twice.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn finish(&mut self, status: &str) -> Result<()> {
        self.add(&Ending { status: status.into(), finished_utc: clock::utc() })?;
        self.sync()?;
        self.leave_the_log().map_err(|e| self.failed(e))
    }

    /// Back to a single file. Needs it for us alone: with a reader beside us the log stays, and is read with the file.
    fn leave_the_log(&self) -> rusqlite::Result<()> {
        self.db.busy_timeout(Duration::ZERO)?;
        let left = self.db.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()));
        self.db.busy_timeout(schema::PATIENCE)?;
        match left {
            Err(e) if e.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(()),
            other => other,
        }
    }

    fn add<T: Table>(&mut self, row: &T) -> Result<i64> {
        insert(&self.db, None, row).map_err(|e| self.failed(e))
    }

    fn add_all<T: Table>(&mut self, owner: Option<i64>, rows: &[T]) -> Result<()> {
        let written = (|| {
            let all = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            rows.iter().try_for_each(|row| insert(&all, owner, row).map(drop))?;
            all.commit()
        })();
        written.map_err(|e| self.failed(e))
    }

    /// The visit has begun and has not ended.
    fn assert_visit_open(&self, id: i64) -> Result<()> {
        const OPEN: &str = "SELECT 1 FROM visit WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM visit_end WHERE visit_id = visit.id)";
        let open = self.db.prepare_cached(OPEN).and_then(|mut query| query.exists([id]));
        if open.map_err(|e| self.failed(e))? { Ok(()) } else { Err(RecordError::VisitNotOpen(id)) }
    }

    /// The phase exists and its visit has not ended.
    fn assert_phase_open(&self, id: i64) -> Result<()> {
        let find = self.db.prepare_cached("SELECT visit_id FROM phase WHERE id = ?1");
        let visit = find.and_then(|mut query| query.query_row([id], |row| row.get(0)).optional());
        match visit.map_err(|e| self.failed(e))? {
            Some(visit) => self.assert_visit_open(visit),
            None => Err(RecordError::NoSuchPhase(id)),
        }
    }

    /// Moves the log into the file and syncs it; readers are not waited for.
    fn sync(&self) -> Result<()> {
        self.db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).map_err(|e| self.failed(e))
    }

    fn failed(&self, source: rusqlite::Error) -> RecordError {
        RecordError::Sqlite { path: self.path.clone(), act: "written", cause: source }
    }
}

/// A second connection that fills a record: samples of no visit, which nothing waits for. It is dropped before [`Writer::finish`].
#[derive(Debug)]
pub struct Beside {
    db: Connection,
    path: PathBuf,
}

impl Beside {
    /// Keeps samples, all or none; whoever reads the record beside us sees them at once.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn add<T: SampledBeside>(&mut self, rows: &[T]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let written = (|| {
            let all = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            rows.iter().try_for_each(|row| insert(&all, None, row).map(drop))?;
            all.commit()
        })();
        written.map_err(|cause| RecordError::Sqlite { path: self.path.clone(), act: "written", cause })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reader;

    /// The record's own disk is full in the middle of a batch: the batch is gone, the rest stays, and later calls work
    /// when there is room again.
    #[test]
    fn a_full_disk_takes_nothing_that_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.redoubt");
        let mut writer = Writer::create(&path, &Experiment::default()).unwrap();
        let fact = |n: usize| FactRow { name: "x".repeat(1000), object: n.to_string(), ..FactRow::default() };
        writer.fact(&fact(0)).unwrap();
        let pages: i64 = writer.db.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        let limit = |writer: &Writer, pages: i64| {
            writer.db.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
        };
        limit(&writer, pages + 10);
        let many: Vec<FactRow> = (1..100).map(fact).collect();
        let error = writer.facts(&many).unwrap_err().to_string();
        assert!(error.contains("could not be written") && error.contains("make room"), "{error}");
        assert_eq!(Reader::open(&path).unwrap().facts().unwrap(), [fact(0)]);
        limit(&writer, 1_000_000);
        writer.facts(&many).unwrap();
        writer.finish("failed: disk full").unwrap();
        let record = Reader::open(&path).unwrap();
        assert_eq!(
            (record.facts().unwrap().len(), record.status().unwrap()),
            (100, "failed: disk full".into())
        );
    }

    #[test]
    fn a_finished_record_is_one_single_file() {
        let folder = tempfile::tempdir().unwrap();
        let files = || std::fs::read_dir(folder.path()).unwrap().count();
        let path = folder.path().join("run.redoubt");
        let mut writer = Writer::create(&path, &Experiment::default()).unwrap();
        let reader = Reader::open(&path).unwrap();
        assert_eq!(reader.status().unwrap(), "running");
        writer.finish("interrupted").unwrap();
        assert_eq!(
            (reader.status().unwrap().as_str(), files()),
            ("interrupted", 3),
            "the reader keeps the log"
        );
        drop(reader);
        writer.finish("finished").unwrap();
        assert_eq!((Reader::open(&path).unwrap().status().unwrap().as_str(), files()), ("finished", 1));
    }
}
