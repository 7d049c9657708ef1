//! Writing a record while the run goes.
//!
//! Every call is one transaction into SQLite's write-ahead log: it reaches the kernel, so a `kill -9` loses nothing, and
//! costs some ten microseconds without touching the disk. The disk is synced where a visit ends, never inside one: the
//! price is that a power cut may take the visit that was going on.

use crate::rows::{
    BlockRow, CheckRow, ConfigurationRow, CounterRow, CurvePointRow, Ending, EstimateRow, EventRow,
    Experiment, FactRow, HistogramRow, IntervalRow, PhaseRow, PlanRow, VisitEndRow, VisitRow, WorkloadRow,
};
use crate::table::{Table, insert};
use crate::{RecordError, chain, schema};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};
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
        let mut writer = Self { db: schema::create(path)?, path: path.into(), chain_head: String::new() };
        writer.add(experiment)?;
        Ok(writer)
    }

    /// Where the record is.
    pub fn path(&self) -> &Path {
        &self.path
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
        self.assert_open("visit", id)?;
        let previous_sha256 = self.chain_head.clone();
        let sha256 =
            chain::visit(&self.db, id, status, drop_reason, &previous_sha256).map_err(|e| self.failed(e))?;
        let drop_reason = drop_reason.map(str::to_owned);
        let end = VisitEndRow { status: status.into(), drop_reason, previous_sha256, sha256: sha256.clone() };
        insert(&self.db, Some(id), &end).map_err(|e| self.failed(e))?;
        self.chain_head = sha256;
        self.sync("PASSIVE")
    }

    /// Keeps a phase of an open visit, when it is over; answers its id.
    ///
    /// # Errors
    /// [`RecordError::VisitNotOpen`] after [`Writer::end_visit`]; [`RecordError::Sqlite`].
    pub fn phase(&mut self, phase: &PhaseRow) -> Result<i64> {
        self.assert_open("visit", phase.visit_id)?;
        self.add(phase)
    }

    /// Keeps the intervals of a phase, all or none.
    ///
    /// # Errors
    /// [`RecordError::VisitNotOpen`] after [`Writer::end_visit`]; [`RecordError::Sqlite`].
    pub fn intervals(&mut self, phase: i64, intervals: &[IntervalRow]) -> Result<()> {
        self.assert_open("phase", phase)?;
        self.add_all(Some(phase), intervals)
    }

    /// Keeps the latency histogram of a phase and class, as `stats::histogram` encodes it.
    ///
    /// # Errors
    /// [`RecordError::VisitNotOpen`] after [`Writer::end_visit`]; [`RecordError::Sqlite`].
    pub fn histogram(&mut self, phase: i64, op_class: &str, encoded: &[u8]) -> Result<()> {
        self.assert_open("phase", phase)?;
        self.add_all(Some(phase), &[HistogramRow { op_class: op_class.into(), encoded: encoded.into() }])
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
        self.sync("PASSIVE")?;
        // Needs the file alone. With a reader beside us the log stays, and is read as well as the file.
        let alone = self.db.busy_timeout(Duration::ZERO);
        alone.map_err(|e| self.failed(e))?;
        match self.db.pragma_update_and_check(None, "journal_mode", "DELETE", |row| row.get::<_, String>(0)) {
            Ok(_) => {}
            Err(e) if e.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {}
            Err(e) => return Err(self.failed(e)),
        }
        self.db.busy_timeout(Duration::from_secs(10)).map_err(|e| self.failed(e))
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

    /// The visit, or the visit of the phase, has begun and has not ended.
    fn assert_open(&self, table: &str, id: i64) -> Result<()> {
        let visit: Option<i64> = match table {
            "phase" => {
                let find = "SELECT visit_id FROM phase WHERE id = ?1";
                let row =
                    self.db.prepare_cached(find).and_then(|mut s| s.query_one([id], |r| r.get(0)).optional());
                row.map_err(|e| self.failed(e))?
            }
            _ => Some(id),
        };
        let open = "SELECT 1 FROM visit WHERE id = ?1 AND id NOT IN (SELECT visit_id FROM visit_end WHERE visit_id = ?1)";
        let found = self.db.prepare_cached(open).and_then(|mut s| s.exists([visit]));
        if found.map_err(|e| self.failed(e))? {
            Ok(())
        } else {
            Err(RecordError::VisitNotOpen(visit.unwrap_or(id)))
        }
    }

    /// Moves the log into the file and syncs it.
    fn sync(&self, mode: &str) -> Result<()> {
        let query = format!("PRAGMA wal_checkpoint({mode})");
        self.db.query_row(&query, [], |_| Ok(())).map_err(|e| self.failed(e))
    }

    fn failed(&self, source: rusqlite::Error) -> RecordError {
        RecordError::Sqlite { path: self.path.clone(), act: "written", source }
    }
}
