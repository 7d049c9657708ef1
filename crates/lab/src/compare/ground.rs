//! Where visits happen: on files that stand for the whole run, or on a stage that is made anew for each.

use super::embedded::Embedded;
use super::served::Served;
use super::stay::{Stay, Subject, Terms};
use super::visit::{DATA_FILE_ID, Files, Notes, Workload};
use super::{CACHED_BYTES, Options, REDO_BYTES, TargetKind};
use crate::LabError;
use crate::bench::Bench;
use crate::control::Control;
use crate::database::{Places, Sizes};
use crate::factor::Setup;
use crate::server::find::Named;
use crate::stage::Stage;
use crate::verify;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use units::{Bytes, Nanos, Seed};

/// Where a comparison stands.
pub enum Ground {
    /// Made once; every configuration works on the same blocks.
    Standing {
        /// What had to be made beside files in a directory.
        stage: Option<Box<RefCell<Stage>>>,
        /// On it.
        subject: Subject,
    },
    /// Made for each visit, and removed after it: the replicate is the instance.
    Fresh,
}

impl Ground {
    /// Makes what stands for the whole run: in the directory, or where any of the configurations needs one, on a stage that
    /// is raised for `setup`.
    ///
    /// # Errors
    /// What the system or the database says.
    pub fn standing(
        contents: &Contents<'_>,
        setup: &Setup,
        needs_stage: bool,
        bench: &mut Bench,
        control: &mut Control<'_>,
    ) -> Result<Self, LabError> {
        if !needs_stage {
            let places = bench.places();
            return Ok(Self::Standing {
                stage: None,
                subject: contents.make(places, setup, bench, control)?,
            });
        }
        let (stage, subject) = contents.staged(setup, bench, control)?;
        Ok(Self::Standing { stage: Some(Box::new(RefCell::new(stage))), subject })
    }

    /// Takes down what stood for the whole run.
    ///
    /// # Errors
    /// What could not be undone; it stays in the journal.
    pub fn strike(self, bench: &mut Bench) -> Result<(), LabError> {
        match self {
            Self::Standing { stage, subject } => {
                let removed = subject.remove(bench);
                let struck = stage.map_or(Ok(()), |stage| stage.into_inner().strike(bench));
                removed.and(struck)
            }
            Self::Fresh => Ok(()),
        }
    }
}

/// What a ground is made of.
#[derive(Clone, Copy)]
pub struct Contents<'a> {
    /// Data to read.
    pub data: Bytes,
    /// What will be done with it.
    pub workloads: &'a [Workload],
    /// Where the programs of servers are.
    pub programs: &'a Named,
    /// The longest that a server may say nothing, or a device beneath it not answer.
    pub patience: Nanos,
    /// Whether what is written is read back.
    pub verify: bool,
}

impl<'a> Contents<'a> {
    /// What `options` and `workloads` ask for, with `data` to read.
    pub fn of(options: &'a Options, workloads: &'a [Workload], data: Bytes) -> Self {
        let Options { programs, patience, verify, .. } = options;
        Self { data, workloads, programs, patience: *patience, verify: *verify }
    }

    /// What a device of ours must hold: the sizes, what sessions insert meanwhile, and the new places that some file systems
    /// write to.
    pub fn room(&self, setup: &Setup) -> Sizes {
        const INSERTED: u64 = 256 << 20;
        let sizes = self.sizes(setup);
        Sizes { data: Bytes(sizes.data.0 + INSERTED), ..sizes }
    }

    /// Sizes of the database under `setup`, or of the files that stand for one.
    pub fn sizes(&self, setup: &Setup) -> Sizes {
        let sizes = Embedded::sizes(self.data, setup);
        match setup.target {
            TargetKind::Engine => sizes,
            TargetKind::Postgres | TargetKind::Mariadb => Served::sizes(self.data, setup),
            TargetKind::Files => {
                let grows = self.workloads.contains(&Workload::GrowthWrite);
                // What is made longer block by block ends where the data does.
                let extends = self.workloads.iter().any(|w| w.extends());
                let growth = match (extends, grows) {
                    (true, _) => self.data.0,
                    (false, true) => self.growth_max().0,
                    (false, false) => 0,
                };
                Sizes {
                    data: Bytes(self.data.0 + growth),
                    undo: Bytes(0),
                    redo: setup.redo.unwrap_or(REDO_BYTES),
                    redo_groups: 1,
                    ..sizes
                }
            }
        }
    }

    /// Most that growth may write in a visit.
    pub fn growth_max(&self) -> Bytes {
        Bytes(self.data.0 / super::GROWTH_SHARE)
    }

    /// A stage with the files or the database on it. Nothing is capped yet: [`Scene::stay`] does that.
    ///
    /// # Errors
    /// What the system or the database says; nothing of the stage is left then.
    pub fn staged(
        &self,
        setup: &Setup,
        bench: &mut Bench,
        control: &mut Control<'_>,
    ) -> Result<(Stage, Subject), LabError> {
        let mut stage = Stage::raise(setup, &self.room(setup), bench)?;
        let made = stage.relax(bench).and_then(|()| self.make(stage.places(), setup, bench, control));
        match made {
            Ok(subject) => Ok((stage, subject)),
            Err(error) => {
                // The error that led here is the one to tell; what stays is in the journal.
                let _ = stage.strike(bench);
                Err(error)
            }
        }
    }

    /// Makes the files or the database in `places`.
    ///
    /// # Errors
    /// No space, [`LabError::Cancelled`], what the engine says.
    pub fn make(
        &self,
        places: Places,
        setup: &Setup,
        bench: &mut Bench,
        control: &mut Control<'_>,
    ) -> Result<Subject, LabError> {
        if let Some(kind) = setup.target.server() {
            let made = Served::create(kind, self, &places, setup, bench, control);
            super::stop_if_cancelled(control)?;
            return Ok(Subject::Database(Box::new(made?)));
        }
        match setup.target {
            TargetKind::Files => {
                let redo = places.placement.redo.first().unwrap_or(&places.directory).clone();
                let data = places.placement.data.as_ref().unwrap_or(&places.directory).clone();
                let files = Files {
                    data: note(&places, data.join("data.dbf"))?,
                    data_bytes: self.data.0,
                    cached_bytes: CACHED_BYTES.0.min(self.data.0 / 4),
                    redo: note(&places, redo.join("redo.log"))?,
                    growth: note(&places, data.join("growth.dbf"))?,
                    notes: self.verify.then(|| Notes::new(self.data.0, setup.block.0 as u32)),
                };
                let redo_bytes = setup.redo.unwrap_or(REDO_BYTES).0;
                make(bench, control, &files.data, self.data.0, setup.block.0 as u32, DATA_FILE_ID)?;
                make(bench, control, &files.redo, redo_bytes, 4096, crate::workload::commit::REDO_FILE_ID)?;
                Ok(Subject::Files(files))
            }
            _ => {
                let seed = bench.seed.part(3);
                let (data, workloads) = (self.data, self.workloads);
                let made =
                    Embedded::create(places, data, setup, workloads, self.verify, seed, control.cancel);
                super::stop_if_cancelled(control)?;
                let mut made = made?;
                verify::store(bench, "filling the database", made.seen.take())?;
                Ok(Subject::Database(Box::new(made)))
            }
        }
    }
}

/// A file that is about to be made: noted as ours first, where it lies in a workspace.
fn note(places: &Places, path: PathBuf) -> Result<PathBuf, LabError> {
    let ours = places.workspaces.iter().find(|workspace| path.parent() == Some(workspace.path()));
    if let (Some(workspace), Some(name)) = (ours, path.file_name().and_then(|name| name.to_str())) {
        workspace.list(name)?;
    }
    Ok(path)
}

/// What a stay takes place on.
pub struct Scene<'a> {
    /// Files or a database.
    pub subject: &'a Subject,
    /// What they stand on; none: the directory as it is.
    pub stage: Option<&'a mut Stage>,
    /// What shall be in force.
    pub setup: &'a Setup,
}

impl Scene<'_> {
    /// One stay: the database is opened, `act` done under the setup, and the database shut down, or left in haste after an
    /// error. Nobody waits for a capped device while it is opened and shut down.
    ///
    /// # Errors
    /// What `act` says, then what leaving says.
    pub fn stay<T>(
        mut self,
        terms: Terms<'_>,
        bench: &mut Bench,
        control: &mut Control<'_>,
        act: impl FnOnce(&mut Stay<'_>, Option<&mut Stage>, &mut Bench, &mut Control<'_>) -> Result<T, LabError>,
    ) -> Result<T, LabError> {
        let mut stay = self.subject.enter(self.setup, terms)?;
        let entered = match self.stage.as_deref_mut() {
            Some(stage) => stage.change(self.setup, bench),
            None => Ok(()),
        };
        let done = entered.and_then(|()| act(&mut stay, self.stage.as_deref_mut(), bench, control));
        let relaxed = self.stage.map_or(Ok(()), |stage| stage.relax(bench));
        match done {
            Ok(value) => {
                let seen = stay.leave()?;
                verify::store(bench, &self.setup.configuration().name(), seen)?;
                relaxed.map(|()| value)
            }
            Err(error) => {
                stay.abandon();
                Err(error)
            }
        }
    }
}

/// Brings about what `workload` begins with. Nobody waits for a capped device meanwhile: it is not measured.
///
/// # Errors
/// What cannot be brought about.
pub fn prepare(
    workload: Workload,
    seed: Seed,
    stay: &mut Stay<'_>,
    stage: Option<&mut Stage>,
    setup: &Setup,
    bench: &mut Bench,
) -> Result<(), LabError> {
    match stage.filter(|_| setup.capped() && !workload.goes_on()) {
        None => stay.prepare(workload, seed),
        Some(stage) => {
            stage.relax(bench)?;
            stay.prepare(workload, seed)?;
            stage.change(setup, bench)
        }
    }
}

/// Makes one file of ours: preallocated, written, stamped, synced.
pub fn make(
    bench: &mut Bench,
    control: &mut Control<'_>,
    path: &Path,
    bytes: u64,
    block_bytes: u32,
    file_id: u64,
) -> Result<(), LabError> {
    crate::target::make_file(path, bytes, block_bytes, file_id, bench.seed, control, &mut |control, done| {
        let what = format!("writing {} of {} test data", Bytes(done), Bytes(bytes));
        bench.step(control, &what);
    })
}
