//! Scheduler and queue settings: of devices that we made, or of a disk that the user named in full.

use super::undo;
use crate::LabError;
use crate::bench::Bench;
use crate::factor::Setup;
use host::change;
use host::journal::Step;

/// Settings in force.
#[derive(Default)]
pub(super) struct Settings {
    all: Vec<Setting>,
}

/// One of them.
pub(super) struct Setting {
    pub(super) disk: String,
    pub(super) name: &'static str,
    pub(super) value: String,
    step: Step,
}

/// A level `VALUE` or `VALUE@/dev/DISK` as its value and the disk's kernel name.
pub(super) fn split(level: &str) -> (&str, Option<&str>) {
    match level.split_once('@') {
        Some((value, device)) => (value, Some(device.trim_start_matches("/dev/"))),
        None => (level, None),
    }
}

/// `(setting, level)` of what `setup` asks for; the scheduler first, because the kernel chooses others anew with it.
pub(super) fn asked(setup: &Setup) -> Vec<(&'static str, &str)> {
    let scheduler = setup.scheduler.as_deref().map(|level| ("scheduler", level));
    let others = setup.queue.iter().map(|(setting, level)| (setting.name(), level.as_str()));
    scheduler.into_iter().chain(others).collect()
}

/// Whether it asks for any.
pub(super) fn any(setup: &Setup) -> bool {
    !asked(setup).is_empty()
}

impl Settings {
    /// Sets what `setup` asks for, on `ours` where no disk is named.
    pub(super) fn make(setup: &Setup, ours: &[String], bench: &mut Bench) -> Result<Self, LabError> {
        let mut settings = Self::default();
        for (name, level) in asked(setup) {
            let (value, named) = split(level);
            let disks = named.map_or_else(|| ours.to_vec(), |disk| vec![disk.to_owned()]);
            for disk in disks {
                let done = change::set_queue(bench.journal(), &disk, name, value);
                match done {
                    Ok(step) => settings.all.push(Setting { disk, name, value: value.to_owned(), step }),
                    Err(error) => {
                        settings.undo(bench)?;
                        return Err(error.into());
                    }
                }
            }
        }
        Ok(settings)
    }

    /// Takes them back, the last first.
    pub(super) fn undo(self, bench: &mut Bench) -> Result<(), LabError> {
        self.all.into_iter().rev().try_for_each(|setting| undo(bench, setting.step))
    }

    pub(super) fn all(&self) -> &[Setting] {
        &self.all
    }
}
