//! Slow devices of our own: the device itself is slow, as far as this kernel can do that.

use super::throttle::{Limits, Throttle, throttle, throttle_everybody, top_of_version_1};
use crate::error::HostError;
use crate::facts::Device;
use crate::files;
use crate::journal::{Journal, Step};
use std::path::PathBuf;

/// Limits on devices that this run made.
///
/// Where control groups of version 1 are mounted, their top group limits a device for everybody, write-back included. Version 2
/// limits nobody at its top: this process then enters one group that holds the limits of all devices. The price there: write-back
/// of the page cache is limited only where the file system knows whose pages they are (ext4, xfs, btrfs). Databases do not wait
/// for write-back: their writes are `O_DIRECT` or `O_DSYNC`.
#[derive(Debug, Default)]
pub struct Caps {
    group: Option<Throttle>,
    steps: Vec<Step>,
}

impl Caps {
    /// Limits `device`, which must be a loop device of this run.
    ///
    /// # Errors
    /// Not root, no control groups for I/O, a limit of zero, or limits of somebody else on it.
    pub fn add(&mut self, journal: &mut Journal, device: &Device, limits: Limits) -> Result<(), HostError> {
        if top_of_version_1().is_some() {
            self.steps.extend(throttle_everybody(journal, device, limits)?);
            return Ok(());
        }
        if let Some(group) = &self.group {
            return group.change(device, limits);
        }
        let group = throttle(journal, device, limits)?;
        self.steps.push(group.step);
        group.enter_self()?;
        self.group = Some(group);
        Ok(())
    }

    /// The limits on `device` as the kernel shows them, one `file: line` each; empty when there is none.
    pub fn shown(&self, device: &Device) -> Vec<String> {
        let folder = self.group.as_ref().map(|group| group.group.clone()).or_else(top_of_version_1);
        let Some(folder) = folder else { return Vec::new() };
        let key = format!("{}:{} ", device.number.0, device.number.1);
        let limits = |file: PathBuf| {
            let text = files::text(&file).unwrap_or_default();
            let line = text.lines().find(|line| line.starts_with(&key))?;
            Some(format!("{}: {line}", file.display()))
        };
        let limit_file = |name: &String| {
            name == "io.max" || name.starts_with("blkio.throttle.") && name.ends_with("_device")
        };
        files::names(&folder)
            .iter()
            .filter(|name| limit_file(name))
            .filter_map(|name| limits(folder.join(name)))
            .collect()
    }

    /// Takes all limits away.
    ///
    /// # Errors
    /// What could not be undone; it stays in the journal.
    pub fn lift(self, journal: &mut Journal) -> Result<(), HostError> {
        if let Some(group) = &self.group {
            group.leave_self()?;
        }
        self.steps.into_iter().rev().try_for_each(|step| journal.undo(step).map(|_| ()))
    }
}
