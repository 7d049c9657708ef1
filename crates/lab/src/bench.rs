//! The bench on which every run stands: journal, workspace, record, sampler.
//!
//! Opened before anything is touched, finished however the run ends. The journal knows what to undo before it is done,
//! the record is written as the run goes; a killed run therefore leaves a readable record and a `redoubt cleanup`.

use crate::control::Control;
use crate::database::Places;
use crate::evidence::{Delta, check_row};
use crate::export::{self, ExportSampler, Folder, is_export};
use crate::health::Health;
use crate::verify::Verification;
use crate::{LabError, METHOD_VERSION};
use host::counters::{Sampler, Snapshot, Watch};
use host::journal::{CleanupLine, Journal};
use host::workspace::Workspace;
use record::{CounterRow, Experiment, FactRow, Writer};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::{Nanos, Seed, clock};

/// How often counters are sampled for the time lines.
const SAMPLE_EVERY: Nanos = Nanos::millis(500);

/// Everything that a run holds open.
pub struct Bench {
    /// The record.
    pub writer: Writer,
    /// The storage under the target.
    pub storage: host::facts::Storage,
    /// Where chance comes from.
    pub seed: Seed,
    /// What was read back so far, with `--verify`.
    pub(crate) verification: Option<Verification>,
    /// What the disks say of themselves.
    health: Health,
    /// Trials can be left out one by one.
    has_visits: bool,
    workspace: Option<Arc<Workspace>>,
    /// The same on an export.
    folder: Option<Folder>,
    journal: Option<Journal>,
    sampler: Option<Sampler>,
    /// Where the target is on an export.
    exports: Option<ExportSampler>,
    started: Nanos,
    before: Snapshot,
    forecast_seconds: f64,
}

/// What a run is, for its record.
pub struct Purpose {
    /// `calibrate` or `compare`.
    pub kind: &'static str,
    /// The case, when it has one.
    pub case: Option<&'static str>,
    /// The command as typed.
    pub command: String,
    /// The seed.
    pub seed: Seed,
    /// What the user allowed, seconds.
    pub budget_seconds: f64,
    /// Where the record goes; `None` for the usual place.
    pub record_path: Option<PathBuf>,
    /// Where our own files go, when the target is a directory.
    pub workspace_in: Option<PathBuf>,
    /// It is on a server in this process: nothing there outlives us, and nothing has to be noted.
    pub is_server_ours: bool,
}

impl Bench {
    /// Opens the bench over `target`.
    ///
    /// # Errors
    /// When the record or the workspace cannot be created.
    pub fn open(target: &Path, purpose: Purpose) -> Result<Self, LabError> {
        let remote = is_export(target);
        let nowhere = || host::facts::Storage { mount: None, stack: Vec::new(), facts: Vec::new() };
        let storage = if remote { nowhere() } else { host::facts::storage(target) };
        // The record comes last: what fails before it leaves no record of a run that never was.
        let mut journal = Journal::open(purpose.kind)?;
        let folder = match &purpose.workspace_in {
            Some(parent) if is_export(parent) => {
                Some(Folder::create(parent, (!purpose.is_server_ours).then_some(&mut journal))?)
            }
            _ => None,
        };
        let workspace = match &purpose.workspace_in {
            Some(parent) if folder.is_none() => Some(Arc::new(Workspace::create(parent, &mut journal)?)),
            _ => None,
        };
        let path = purpose.record_path.unwrap_or_else(|| record::runs::new_path(purpose.kind));
        let mut writer = Writer::create(
            &path,
            &Experiment {
                kind: purpose.kind.into(),
                case: purpose.case.map(Into::into),
                target: target.display().to_string(),
                command: purpose.command,
                seed: purpose.seed.0,
                method_version: METHOD_VERSION.into(),
                tool_version: env!("CARGO_PKG_VERSION").into(),
                build_profile: if cfg!(debug_assertions) { "debug" } else { "release" }.into(),
                started_utc: clock::utc(),
                budget_seconds: purpose.budget_seconds,
            },
        )?;
        let mut facts = host::facts::machine();
        facts.extend(storage.facts.iter().cloned());
        facts.extend(host::facts::cgroup_limits(&storage.stack));
        writer.facts(&facts.into_iter().map(fact_row).collect::<Vec<_>>())?;
        writer.facts(&export::fact_rows(target, purpose.kind == "compare"))?;
        // Before anything is counted: a disk may be slow to answer.
        let health = Health::begin(&storage.leaves(), &mut writer)?;
        let sampler = Sampler::start(storage.watch(), SAMPLE_EVERY);
        let exports = remote.then(|| ExportSampler::start(&writer)).transpose()?;
        let before = host::counters::snapshot(&storage.watch());
        Ok(Self {
            writer,
            storage,
            seed: purpose.seed,
            verification: None,
            health,
            has_visits: purpose.kind == "compare",
            workspace,
            folder,
            journal: Some(journal),
            sampler: Some(sampler),
            exports,
            started: clock::now(),
            before,
            forecast_seconds: purpose.budget_seconds,
        })
    }

    /// Path for a file of our own, known to the journal.
    ///
    /// # Errors
    /// When it cannot be noted on disk.
    ///
    /// # Panics
    /// When the bench was opened without a workspace: a bug.
    pub fn new_file(&self, name: &str) -> Result<PathBuf, LabError> {
        if let Some(folder) = &self.folder {
            return Ok(folder.path().join(name));
        }
        Ok(self.workspace.as_ref().expect("a bench with a workspace").list(name)?)
    }

    /// The workspace, for a target that makes its files itself.
    ///
    /// # Panics
    /// When the bench was opened without a workspace: a bug.
    pub fn workspace(&self) -> Arc<Workspace> {
        self.workspace.clone().expect("a bench with a workspace")
    }

    /// The same for the files of a database.
    ///
    /// # Panics
    /// When the bench was opened without a place for files: a bug.
    pub fn places(&self) -> Places {
        match &self.folder {
            Some(folder) => Places {
                directory: folder.path().to_owned(),
                placement: engine::Placement::default(),
                flash: None,
                workspaces: Vec::new(),
            },
            None => self.workspace().into(),
        }
    }

    /// Another workspace inside `parent`; [`Bench::remove`] it, or the end of the run does.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new_workspace(&mut self, parent: &Path) -> Result<Arc<Workspace>, LabError> {
        Ok(Arc::new(Workspace::create(parent, self.journal())?))
    }

    /// Removes a workspace with all of its files.
    ///
    /// # Errors
    /// When something in it is not ours, or the system refuses.
    pub fn remove(&mut self, workspace: &Workspace) -> Result<(), LabError> {
        self.journal().undo(workspace.step())?;
        Ok(())
    }

    /// The journal of what this run changes.
    ///
    /// # Panics
    /// After the run has ended: a bug.
    pub fn journal(&mut self) -> &mut Journal {
        self.journal.as_mut().expect("the journal is open until the run ends")
    }

    /// Where `result` says that a device does not answer, what lies on disk is left to cleanup; whether it does.
    pub(crate) fn spare<T>(&mut self, result: &Result<T, LabError>) -> bool {
        let is_stuck = result.as_ref().err().is_some_and(LabError::is_stuck);
        if is_stuck {
            self.journal().leave_files();
        }
        is_stuck
    }

    /// Seconds since the start.
    pub fn elapsed_seconds(&self) -> f64 {
        (clock::now() - self.started).as_secs()
    }

    /// A better forecast of the whole run, seconds.
    pub fn set_forecast(&mut self, seconds: f64) {
        self.forecast_seconds = seconds;
    }

    /// Tells what is being done, with the time spent and the forecast.
    pub fn step(&self, control: &mut Control<'_>, what: &str) {
        control.progress.step(what, self.elapsed_seconds(), self.forecast_seconds);
    }

    /// The devices below.
    pub fn watch(&self) -> Watch {
        self.storage.watch()
    }

    /// A snapshot of the counters now.
    pub fn snapshot(&self) -> Snapshot {
        host::counters::snapshot(&self.watch())
    }

    /// What changed since the run began.
    pub fn since_start(&self) -> Delta {
        self.since(&self.before)
    }

    /// What changed since `before`.
    pub fn since(&self, before: &Snapshot) -> Delta {
        Delta::between(before, &self.snapshot())
    }

    /// Asks the disks for their health, when the last time was long ago. Between two measurements.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn look_at_disks(&mut self) -> Result<(), LabError> {
        Ok(self.health.look_between(&mut self.writer)?)
    }

    /// The last rows: what was read back, what the disks say now.
    fn conclude(&mut self) -> Result<(), LabError> {
        self.health.look("after", &mut self.writer)?;
        let mut checks = self.health.checks(self.has_visits);
        checks.extend(self.verification.take().map(|seen| seen.check()));
        for check in checks {
            self.writer.check(&check_row("run", None, "", &check))?;
        }
        Ok(())
    }

    /// Ends a visit: its status, and the counters sampled meanwhile, so that a killed run keeps its time line.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn end_visit(&mut self, id: i64, status: &str, drop_reason: Option<&str>) -> Result<(), LabError> {
        if let Some(sampler) = &self.sampler {
            self.writer.counters(&counter_rows(&sampler.drain()))?;
        }
        self.writer.end_visit(id, status, drop_reason)?;
        Ok(())
    }

    /// Ends the run, however it went: samples into the record, own files removed, every change undone, the status written.
    ///
    /// # Errors
    /// [`LabError::Failed`] with the run's own error; else what could not be written, undone or removed. Ctrl-C is no error.
    pub fn finish(mut self, result: Result<(), LabError>) -> Result<Finished, LabError> {
        let status = match &result {
            Ok(()) => "finished".to_owned(),
            Err(LabError::Cancelled) => "interrupted".to_owned(),
            Err(error) => format!("failed: {error}"),
        };
        let record = self.writer.path().to_owned();
        let samples = self.sampler.take().map(Sampler::stop).unwrap_or_default();
        let counted = self.writer.counters(&counter_rows(&samples));
        let concluded = self.conclude();
        let sampled = self.exports.take().map_or(Ok(()), ExportSampler::stop);
        drop(self.workspace.take());
        let is_stuck = self.spare(&result);
        let folder = self.folder.take().filter(|_| !is_stuck).and_then(|folder| {
            let path = folder.path().display().to_string();
            folder.remove(self.journal()).err().map(|error| format!("the directory {path} ({error})"))
        });
        let undone = self.journal.take().map_or_else(|| Ok(Vec::new()), Journal::undo_all);
        let closed = self.writer.finish(&status);
        let unsettled = |lines: Vec<CleanupLine>| {
            lines.into_iter().find(|line| !line.result.is_settled()).map(|line| line.action)
        };
        let interrupted = match result {
            Ok(()) => false,
            Err(LabError::Cancelled) => true,
            Err(error) => {
                let undone = undone.map_or_else(|error| Some(error.to_string()), unsettled);
                let left = folder.or(undone);
                return Err(LabError::Failed { error: Box::new(error), record, left });
            }
        };
        counted?;
        concluded?;
        sampled?;
        closed?;
        Ok(Finished { record, interrupted, left: folder.or(unsettled(undone?)) })
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Its record.
    pub record: PathBuf,
    /// The user stopped it.
    pub interrupted: bool,
    /// A change that could not be undone; it stays in the journal.
    pub left: Option<String>,
}

fn fact_row(fact: host::facts::Fact) -> FactRow {
    FactRow {
        layer: fact.layer.into(),
        object: fact.object,
        name: fact.name.into(),
        value: fact.value,
        unit: fact.unit.into(),
        source: fact.source,
    }
}

/// Raw cumulative counters, as the method asks; rates are formed by whoever reads the record.
fn counter_rows(samples: &[Snapshot]) -> Vec<CounterRow> {
    let mut rows = Vec::new();
    for sample in samples {
        let mut row = |layer: &str, object: &str, metric: &str, value: f64| {
            rows.push(CounterRow {
                phase_id: None,
                t_ns: sample.t.0,
                layer: layer.into(),
                object: object.into(),
                metric: metric.into(),
                value,
            });
        };
        for (name, disk) in &sample.disks {
            row("device", name, "reads", disk.reads as f64);
            row("device", name, "read_bytes", disk.sectors_read as f64 * 512.0);
            row("device", name, "writes", disk.writes as f64);
            row("device", name, "write_bytes", disk.sectors_written as f64 * 512.0);
            row("device", name, "queue_ms", disk.weighted_ms as f64);
        }
        if let Some(cpu) = &sample.cpu {
            let busy = cpu.user + cpu.nice + cpu.system + cpu.irq + cpu.softirq;
            row("cpu", "all", "busy_ticks", busy as f64);
            row("cpu", "all", "steal_ticks", cpu.steal as f64);
            row("cpu", "all", "total_ticks", (busy + cpu.steal + cpu.idle + cpu.iowait) as f64);
        }
        if let Some(load) = sample.load {
            row("load", "1min", "load_average", load[0]);
        }
        if let Some(psi) = &sample.psi {
            for (what, value) in
                [("cpu", psi.cpu_some_us), ("io", psi.io_some_us), ("memory", psi.memory_some_us)]
            {
                if let Some(us) = value {
                    row("pressure", what, "some_us", us as f64);
                }
            }
        }
        if let Some(dirty) = sample.dirty_kb {
            row("memory", "page cache", "dirty_bytes", dirty as f64 * 1024.0);
        }
    }
    rows
}
