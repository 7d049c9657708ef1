//! Reading a record: of a finished run, of one that still goes, of one that was killed.

use crate::rows::{
    BlockRow, CheckRow, ConfigurationRow, CounterRow, CurvePointRow, Ending, EstimateRow, EventRow,
    Experiment, FactRow, HistogramRow, IntervalRow, PhaseOwned, PhaseRow, PlanRow, ReferenceRow,
    SampledBeside, VisitEndRow, VisitOwned, VisitRow, WorkloadRow,
};
use crate::table::{Table, select};
use crate::{ChainLink, RecordError, chain, schema};
use rusqlite::{Connection, Params};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

type Result<T> = std::result::Result<T, RecordError>;

/// A record opened read-only. Rows come in the order of writing; a number before a row is its id.
#[derive(Debug)]
pub struct Reader {
    db: Connection,
    path: PathBuf,
}

/// A visit with its end.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Visit {
    /// The block it belongs to; none for calibration.
    pub block_id: Option<i64>,
    /// 0, 1, 2 … inside its block.
    pub position: u32,
    /// The configuration; none where nothing is compared.
    pub configuration_id: Option<i64>,
    /// When it began.
    pub started_utc: String,
    /// When it began, nanoseconds of the run's clock.
    pub start_ns: u64,
    /// `measured`, or why not; `open` when the run ended, or is still, inside the visit.
    pub status: String,
    /// The reason under which it was dropped.
    pub drop_reason: Option<String>,
    /// Its hash in the chain; none while it is open.
    pub sha256: Option<String>,
}

impl Reader {
    /// Opens the record at `path` and looks whether it is one. Also right for the file of a killed run, whose last rows
    /// are still in the log beside it (`…-wal`), and for one that is being written.
    ///
    /// # Errors
    /// [`RecordError::Missing`], [`RecordError::NotARecord`], [`RecordError::NewerSchema`], [`RecordError::Io`],
    /// [`RecordError::Sqlite`].
    pub fn open(path: &Path) -> Result<Self> {
        let reader = Self { db: schema::open(path)?, path: path.into() };
        reader.experiment()?;
        Ok(reader)
    }

    /// Where the record is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was asked.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`], as all calls below; [`RecordError::NotARecord`] when the run was killed before it said.
    pub fn experiment(&self) -> Result<Experiment> {
        let why = || "it holds no experiment (killed before its first row?)".into();
        let first = self.rows("", [])?.into_iter().next();
        first.ok_or_else(|| RecordError::NotARecord { path: self.path.clone(), why: why() })
    }

    /// How the run ended; `None` while it goes, and when it was killed.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn ending(&self) -> Result<Option<Ending>> {
        Ok(self.rows("", [])?.pop())
    }

    /// `finished`, `interrupted`, `failed: …`; or `running`, which a killed run stays for ever.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn status(&self) -> Result<String> {
        Ok(self.ending()?.map_or_else(|| "running".into(), |ending| ending.status))
    }

    /// All facts.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn facts(&self) -> Result<Vec<FactRow>> {
        self.rows("", [])
    }

    /// The first plan, the one that stood before the first visit.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn plan(&self) -> Result<Option<PlanRow>> {
        Ok(self.plans()?.into_iter().next())
    }

    /// All plans: later ones changed the course of the run.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn plans(&self) -> Result<Vec<PlanRow>> {
        self.rows("", [])
    }

    /// All configurations.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn configurations(&self) -> Result<Vec<(i64, ConfigurationRow)>> {
        self.rows_by_id()
    }

    /// All workloads.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn workloads(&self) -> Result<Vec<(i64, WorkloadRow)>> {
        self.rows_by_id()
    }

    /// All blocks.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn blocks(&self) -> Result<Vec<(i64, BlockRow)>> {
        self.rows_by_id()
    }

    /// All visits with their ends.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn visits(&self) -> Result<Vec<(i64, Visit)>> {
        let mut ends: HashMap<i64, VisitEndRow> = self.rows_by_owner("", [])?.into_iter().collect();
        let begun: Vec<(i64, VisitRow)> = self.rows_by_id()?;
        Ok(begun.into_iter().map(|(id, row)| (id, visit(row, ends.remove(&id)))).collect())
    }

    /// All phases.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn phases(&self) -> Result<Vec<(i64, PhaseRow)>> {
        self.rows_by_id()
    }

    /// The intervals of one phase.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn intervals(&self, phase: i64) -> Result<Vec<IntervalRow>> {
        self.rows("WHERE phase_id = ?1", [phase])
    }

    /// All intervals, each behind the id of its phase.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn all_intervals(&self) -> Result<Vec<(i64, IntervalRow)>> {
        self.rows_by_owner("", [])
    }

    /// The encoded histogram of one phase and class, where there is one.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn histogram(&self, phase: i64, op_class: &str) -> Result<Option<Vec<u8>>> {
        let found: Vec<HistogramRow> =
            self.rows("WHERE phase_id = ?1 AND op_class = ?2", (phase, op_class))?;
        Ok(found.into_iter().next().map(|row| row.encoded))
    }

    /// All histograms, each behind the id of its phase.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn histograms(&self) -> Result<Vec<(i64, HistogramRow)>> {
        self.rows_by_owner("", [])
    }

    /// What the database said of its phases, each row behind the id of its phase; empty where it was not asked.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn of_phases<T: PhaseOwned>(&self) -> Result<Vec<(i64, T)>> {
        self.rows_by_owner("", [])
    }

    /// Samples of one visit.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn of_visit<T: VisitOwned>(&self, visit: i64) -> Result<Vec<T>> {
        self.rows("WHERE visit_id = ?1", [visit])
    }

    /// Samples of block references; empty where they were not asked for.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn references(&self) -> Result<Vec<ReferenceRow>> {
        self.rows("", [])
    }

    /// Samples that were taken beside the run, those after row `after`, each behind its number; empty where nothing was sampled.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn sampled<T: SampledBeside>(&self, after: i64) -> Result<Vec<(i64, T)>> {
        let stored = select(&self.db, "WHERE id > ?1", [after]).map_err(|e| self.failed(e))?;
        Ok(stored.into_iter().map(|stored| (stored.id, stored.row)).collect())
    }

    /// All counters.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn counters(&self) -> Result<Vec<CounterRow>> {
        self.rows("", [])
    }

    /// All points of all curves.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn curve_points(&self) -> Result<Vec<CurvePointRow>> {
        self.rows("", [])
    }

    /// The outcome of every rule that was applied.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn checks(&self) -> Result<Vec<CheckRow>> {
        self.rows("", [])
    }

    /// All figures.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn estimates(&self) -> Result<Vec<EstimateRow>> {
        self.rows("", [])
    }

    /// Everything that happened.
    ///
    /// # Errors
    /// [`RecordError::Sqlite`].
    pub fn events(&self) -> Result<Vec<EventRow>> {
        self.rows("", [])
    }

    /// Computes the chain of plans and visits again (method section 9) and answers its links, first to last. The last
    /// hash, kept elsewhere, proves the whole record of measurements.
    ///
    /// # Errors
    /// [`RecordError::Changed`] names the first row that is not what it was when it was sealed;
    /// [`RecordError::Sqlite`].
    pub fn verify(&self) -> Result<Vec<ChainLink>> {
        let mut sealed = self.sealed()?;
        let mut links: Vec<ChainLink> = Vec::with_capacity(sealed.len());
        loop {
            let head = links.last().map_or("", |link| link.sha256.as_str());
            let Some(at) = sealed.iter().position(|(link, _)| link.previous_sha256 == head) else { break };
            let (link, now) = sealed.swap_remove(at);
            if link.sha256 != now {
                return Err(RecordError::Changed { path: self.path.clone(), row: link.row });
            }
            links.push(link);
        }
        // Whatever is left hangs on a hash that nothing has any more.
        match sealed.into_iter().next() {
            Some((link, _)) => Err(RecordError::Changed { path: self.path.clone(), row: link.row }),
            None => Ok(links),
        }
    }

    /// Every sealed row, in no order, with the hash that it has now.
    fn sealed(&self) -> Result<Vec<(ChainLink, String)>> {
        let mut sealed = Vec::new();
        for stored in select::<PlanRow>(&self.db, "", []).map_err(|e| self.failed(e))? {
            let PlanRow { previous_sha256, sha256, .. } = stored.row;
            // The text as it stands, not parsed and printed again: another JSON library may order keys differently.
            let text =
                self.db.query_row("SELECT json FROM plan WHERE id = ?1", [stored.id], |row| row.get(0));
            let text: String = text.map_err(|e| self.failed(e))?;
            let now = chain::plan(&previous_sha256, &text);
            sealed.push((ChainLink { row: format!("plan {}", stored.id), previous_sha256, sha256 }, now));
        }
        for (id, end) in self.rows_by_owner::<VisitEndRow>("", [])? {
            let now =
                chain::visit(&self.db, id, &end.status, end.drop_reason.as_deref(), &end.previous_sha256);
            let now = now.map_err(|e| self.failed(e))?;
            let row = format!("visit {id}");
            sealed.push((ChainLink { row, previous_sha256: end.previous_sha256, sha256: end.sha256 }, now));
        }
        Ok(sealed)
    }

    pub(crate) fn db(&self) -> &Connection {
        &self.db
    }

    pub(crate) fn failed(&self, source: rusqlite::Error) -> RecordError {
        RecordError::Sqlite { path: self.path.clone(), act: "read", cause: source }
    }

    fn rows<T: Table>(&self, rest: &str, params: impl Params) -> Result<Vec<T>> {
        let stored = select(&self.db, rest, params).map_err(|e| self.failed(e))?;
        Ok(stored.into_iter().map(|stored| stored.row).collect())
    }

    fn rows_by_id<T: Table>(&self) -> Result<Vec<(i64, T)>> {
        let stored = select(&self.db, "", []).map_err(|e| self.failed(e))?;
        Ok(stored.into_iter().map(|stored| (stored.id, stored.row)).collect())
    }

    fn rows_by_owner<T: Table>(&self, rest: &str, params: impl Params) -> Result<Vec<(i64, T)>> {
        let stored = select(&self.db, rest, params).map_err(|e| self.failed(e))?;
        Ok(stored.into_iter().filter_map(|stored| Some((stored.owner?, stored.row))).collect())
    }
}

fn visit(begun: VisitRow, end: Option<VisitEndRow>) -> Visit {
    let VisitRow { block_id, position, configuration_id, started_utc, start_ns } = begun;
    let (status, drop_reason, sha256) =
        end.map_or(("open".into(), None, None), |end| (end.status, end.drop_reason, Some(end.sha256)));
    Visit { block_id, position, configuration_id, started_utc, start_ns, status, drop_reason, sha256 }
}
