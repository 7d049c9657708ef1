//! Bringing a configuration about: what must stand before a database can be made in it, and how it is proven and taken down.
//!
//! [`possible`] asks before anything is changed. [`Stage::raise`] makes loop files, file systems, mounts, caps and queue settings,
//! each noted in the journal before; [`Stage::places`] says where files go; [`Stage::proof`] asks the kernel whether all of it is
//! in force; [`Stage::beneath`] names the devices that are counted; [`Stage::change`] and [`Stage::remount`] move to another setup of
//! the same stage; [`Stage::strike`] takes it down.
//!
//! What is ours and what is not: a scheduler, a queue setting, a mount option or a cap is only ever given to a device that this run
//! made, or to one that the user named in full. Loop files stay in the workspace after [`Stage::strike`], to be used by the next
//! stage, and go with the workspace.

mod beneath;
mod obstacle;
mod proof;
mod settings;
mod volume;

pub use beneath::Beneath;
pub use obstacle::{Obstacle, level_field, possible};
pub use proof::Proof;

use crate::LabError;
use crate::bench::Bench;
use crate::database::{Places, Sizes};
use crate::factor::{FileClass, Fs, Setup, Storage};
use engine::Placement;
use host::change::Caps;
use host::journal::{CleanupResult, Step};
use host::workspace::Workspace;
use settings::Settings;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::{Bytes, Nanos};
use volume::{Plan, Volume};

/// Control files, SYSTEM, alert log and what a file system needs for itself.
const SYSTEM_BYTES: Bytes = Bytes::mib(48);
/// First size of TEMP and what sorts may add.
const TEMP_BYTES: Bytes = Bytes::mib(64);

/// What stands while the hard and medium factors of a configuration are in force.
pub struct Stage {
    /// Where everything lies that is not placed elsewhere.
    here: PathBuf,
    /// The run's own workspace: loop files are in it, and stay for the next stage.
    own: Arc<Workspace>,
    /// Workspaces of this stage, each with the directory that it is in.
    workspaces: Vec<(PathBuf, Arc<Workspace>)>,
    volumes: Vec<Volume>,
    spots: BTreeMap<FileClass, Vec<PathBuf>>,
    caps: Caps,
    settings: Settings,
}

impl Stage {
    /// Makes everything that `setup` needs, with room for a database of `sizes`.
    ///
    /// # Errors
    /// What the system refuses; what was made until then is taken down again.
    pub fn raise(setup: &Setup, sizes: &Sizes, bench: &mut Bench) -> Result<Self, LabError> {
        let own = bench.workspace();
        let mut stage = Self {
            here: own.path().to_owned(),
            own,
            workspaces: Vec::new(),
            volumes: Vec::new(),
            spots: BTreeMap::new(),
            caps: Caps::default(),
            settings: Settings::default(),
        };
        match stage.build(setup, sizes, bench).and_then(|()| stage.put_in_force(setup, bench)) {
            Ok(()) => Ok(stage),
            Err(error) => {
                // The error that led here is the one to tell; what stays is in the journal.
                let _ = stage.strike(bench);
                Err(error)
            }
        }
    }

    /// Brings `setup` about, which differs from the one before in easy factors only: caps, scheduler, queue.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn change(&mut self, setup: &Setup, bench: &mut Bench) -> Result<(), LabError> {
        self.settle(bench)?;
        self.set(setup, bench)
    }

    /// Takes caps and queue settings away until the next [`Stage::change`]: nobody waits for a slow disk while a database is filled.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn relax(&mut self, bench: &mut Bench) -> Result<(), LabError> {
        self.settle(bench)
    }

    /// Unmounts and mounts again with the options of `setup`, which has the same file systems and places. Nobody may use a file
    /// here meanwhile: the database is shut down.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn remount(&mut self, setup: &Setup, bench: &mut Bench) -> Result<(), LabError> {
        self.settle(bench)?;
        self.volumes.iter_mut().try_for_each(|volume| volume.unmount(bench))?;
        self.put_in_force(setup, bench)
    }

    /// What raising it took that no later stage has to do again: loop files stay.
    pub fn lasting(&self) -> Nanos {
        Nanos(self.volumes.iter().map(|volume| volume.lasting.0).sum())
    }

    /// Where files of `class` lie: a directory, or a block device; the first one where there are several.
    pub fn path(&self, class: FileClass) -> &Path {
        self.spots.get(&class).and_then(|paths| paths.first()).unwrap_or(&self.here)
    }

    /// Where a database puts its files.
    pub fn places(&self) -> Places {
        let one = |class| self.spots.get(&class).and_then(|paths| paths.first()).cloned();
        Places {
            directory: self.here.clone(),
            placement: Placement {
                data: one(FileClass::Data),
                undo: one(FileClass::Undo),
                temp: one(FileClass::Temp),
                redo: self.spots.get(&FileClass::Redo).cloned().unwrap_or_default(),
                control: one(FileClass::Control),
            },
            flash: one(FileClass::Flash),
            workspaces: self.workspaces.iter().map(|(_, workspace)| Arc::clone(workspace)).collect(),
        }
    }

    /// Takes everything down; the machine is as before, but for loop files in the workspace.
    ///
    /// # Errors
    /// What could not be undone; it stays in the journal.
    pub fn strike(mut self, bench: &mut Bench) -> Result<(), LabError> {
        self.settle(bench)?;
        for mut volume in self.volumes.into_iter().rev() {
            volume.unmount(bench)?;
            volume.dismantle(bench)?;
        }
        for (_, workspace) in self.workspaces.iter().rev() {
            bench.remove(workspace)?;
        }
        Ok(())
    }

    /// Devices, file systems and directories.
    fn build(&mut self, setup: &Setup, sizes: &Sizes, bench: &mut Bench) -> Result<(), LabError> {
        for plan in volume::plans(setup, sizes) {
            let workspace = match plan.within() {
                Some(parent) => self.workspace(parent, bench)?,
                None => Arc::clone(&self.own),
            };
            let classes = plan.classes.clone();
            let volume = Volume::make(plan, &workspace, bench).map_err(|error| of(&classes, error))?;
            for class in classes {
                self.spots.entry(class).or_default().push(volume.place().to_owned());
            }
            if volume.holds_the_rest() {
                self.here = volume.place().to_owned();
            }
            self.volumes.push(volume);
        }
        for class in setup.classes() {
            if let Storage::Directory(parent) = setup.storage(class) {
                let workspace = self.workspace(parent, bench).map_err(|error| of(&[class], error))?;
                let path = workspace.path().to_owned();
                self.spots.insert(class, vec![path]);
            }
        }
        if !self.volumes.iter().any(Volume::holds_the_rest) {
            // Beside the run's own workspace: the files of this stage go with it.
            let beside = self.own.path().parent().unwrap_or(Path::new("/")).to_owned();
            self.here = self.workspace(&beside, bench)?.path().to_owned();
        }
        Ok(())
    }

    /// A workspace of this stage inside `parent`.
    fn workspace(&mut self, parent: &Path, bench: &mut Bench) -> Result<Arc<Workspace>, LabError> {
        if let Some((_, workspace)) = self.workspaces.iter().find(|(other, _)| other == parent) {
            return Ok(Arc::clone(workspace));
        }
        let workspace = bench.new_workspace(parent)?;
        self.workspaces.push((parent.to_owned(), Arc::clone(&workspace)));
        Ok(workspace)
    }

    fn put_in_force(&mut self, setup: &Setup, bench: &mut Bench) -> Result<(), LabError> {
        self.volumes.iter_mut().try_for_each(|volume| volume.mount(setup, bench))?;
        self.set(setup, bench)
    }

    /// Caps and settings as `setup` says.
    fn set(&mut self, setup: &Setup, bench: &mut Bench) -> Result<(), LabError> {
        for volume in &self.volumes {
            if let Some(limit) = volume.limit(setup) {
                self.caps.add(bench.journal(), &volume.device(), limit.limits())?;
            }
        }
        let ours: Vec<String> =
            self.volumes.iter().filter(|v| v.is_here()).map(|v| v.device().name).collect();
        self.settings = Settings::make(setup, &ours, bench)?;
        Ok(())
    }

    /// Takes caps and settings away.
    fn settle(&mut self, bench: &mut Bench) -> Result<(), LabError> {
        std::mem::take(&mut self.settings).undo(bench)?;
        std::mem::take(&mut self.caps).lift(bench.journal())?;
        Ok(())
    }
}

/// What a place that only a flash cache needs refuses is the flash cache's failure.
fn of(classes: &[FileClass], error: LabError) -> LabError {
    match (classes, error) {
        ([FileClass::Flash], error) if !matches!(error, LabError::Cancelled) => {
            LabError::Flash(error.to_string())
        }
        (_, error) => error,
    }
}

/// Undoes one change. What somebody else changed since is left alone and reported as an error: the run's end would say so too.
fn undo(bench: &mut Bench, step: Step) -> Result<(), LabError> {
    match bench.journal().undo(step)? {
        CleanupResult::LeftAlone(why) | CleanupResult::Failed(why) => Err(LabError::Left(why)),
        CleanupResult::Undone | CleanupResult::AlreadyGone | CleanupResult::WouldUndo => Ok(()),
    }
}

/// What the loop files of `setup` take on disk, for a database of `sizes`.
pub fn disk(setup: &Setup, sizes: &Sizes) -> Bytes {
    Bytes(loop_files(setup, sizes).map(|(_, bytes)| bytes.0).sum())
}

/// What the loop files of all setups take on disk: each stays for the next stage that has one of its name.
pub fn disk_of_all(all: impl IntoIterator<Item = (Setup, Sizes)>) -> Bytes {
    let mut largest: BTreeMap<PathBuf, u64> = BTreeMap::new();
    for (setup, sizes) in all {
        for (name, bytes) in loop_files(&setup, &sizes) {
            let known = largest.entry(name).or_default();
            *known = bytes.0.max(*known);
        }
    }
    Bytes(largest.values().sum())
}

/// Names, below the directory that was named for them, and sizes.
fn loop_files(setup: &Setup, sizes: &Sizes) -> impl Iterator<Item = (PathBuf, Bytes)> {
    let plans = volume::plans(setup, sizes).into_iter().filter(Plan::is_ours);
    plans.map(|plan| (plan.within().unwrap_or(Path::new("")).join(&plan.role), plan.bytes))
}

/// Whether `setup` needs more than a directory.
pub fn is_needed(setup: &Setup) -> bool {
    let placed = setup.place.values().any(|storage| *storage != Storage::Here);
    setup.fs != Fs::Here || placed || setup.throttle.is_some() || settings::any(setup)
}

#[cfg(test)]
mod tests;
