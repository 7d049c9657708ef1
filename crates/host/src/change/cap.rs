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
        if let Some(group) = &self.group {
            return group.change(device, limits);
        }
        if top_of_version_1().is_some() {
            self.steps.extend(throttle_everybody(journal, device, limits)?);
            return Ok(());
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Plain files in place of the kernel's: what is written where, in which order.
    #[test]
    fn version_2_is_one_group_for_all_devices_and_left_before_it_goes() {
        let (top, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut journal = Journal::open_in(state.path(), "test").unwrap();
        let (group, home) = (top.path().join("redoubt-x"), top.path().join("home"));
        std::fs::create_dir(&home).unwrap();
        let throttle = Throttle::standing(group.clone(), home.clone(), &mut journal).unwrap();
        for file in [group.join("cgroup.procs"), home.join("cgroup.procs"), group.join("io.max")] {
            std::fs::write(file, "").unwrap();
        }
        let of = |folder: &Path, file: &str| files::text(folder.join(file)).unwrap();
        throttle.enter_self().unwrap();
        assert_eq!(of(&group, "cgroup.procs"), std::process::id().to_string());
        let mut caps = Caps { steps: vec![throttle.step], group: Some(throttle) };
        let device = Device { number: (7, 3), ..crate::facts::storage(Path::new("/")).stack[0].clone() };
        let limits = Limits { read_iops: Some(150), write_bps: Some(1 << 20), ..Limits::default() };
        caps.add(&mut journal, &device, limits).unwrap();
        let line = format!("{}: 7:3 riops=150 wbps=1048576", group.join("io.max").display());
        assert_eq!(caps.shown(&device), [line]);
        // The kernel shows every key, with `max` for those that are not limited; the line of another device is none of ours.
        std::fs::write(group.join("io.max"), "7:30 riops=9\n7:3 rbps=max wbps=1048576 riops=150 wiops=max\n")
            .unwrap();
        assert!(caps.shown(&device)[0].ends_with(": 7:3 rbps=max wbps=1048576 riops=150 wiops=max"));
        // The kernel's files go with their directory; these do not, and what is not ours is left.
        let left = caps.lift(&mut journal);
        assert_eq!(of(&home, "cgroup.procs"), std::process::id().to_string(), "{left:?}");
    }
}
