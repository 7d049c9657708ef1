//! Is it in force? Asked of the kernel, not remembered.

use super::Stage;
use super::volume::Volume;
use crate::LabError;
use crate::factor::Setup;
use host::change::{Caps, queue_setting};
use host::{HostError, facts};
use record::json::{Value, json};
use std::path::Path;

/// One thing that was asked of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// What: `mount`, `loop device`, `cap`, `scheduler` …
    pub what: String,
    /// The kernel's answer.
    pub value: String,
}

impl Proof {
    pub(crate) fn new(what: impl Into<String>, value: impl Into<String>) -> Self {
        Self { what: what.into(), value: value.into() }
    }

    /// As it stands in the record.
    pub fn json(&self) -> Value {
        json!({ "what": self.what, "value": self.value })
    }
}

impl Stage {
    /// Asks the kernel for everything that `setup` put in force.
    ///
    /// # Errors
    /// [`HostError::NotInForce`]: what was asked for, and what is in force instead.
    pub fn proof(&self, setup: &Setup) -> Result<Vec<Proof>, LabError> {
        let mut proofs = vec![Proof::new("directory", mount_of(&self.here)?)];
        for volume in &self.volumes {
            proofs.extend(volume_proof(volume)?);
            if let Some(limit) = volume.limit(setup) {
                proofs.push(cap_proof(&self.caps, volume, limit.limits())?);
            }
        }
        for (class, paths) in &self.spots {
            let text: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            proofs.push(Proof::new(format!("place.{class}"), text.join(", ")));
        }
        for setting in self.settings.all() {
            let shown = queue_setting(&setting.disk, setting.name).unwrap_or_default();
            if shown != setting.value {
                return Err(not_in_force(
                    format!("{} {}", setting.name, setting.value),
                    &Path::new("/dev").join(&setting.disk),
                    shown,
                ));
            }
            let choice = if self.volumes.iter().any(|v| v.device().name == setting.disk) {
                "our loop device; the disk beneath it is not named, and so not touched"
            } else {
                "the disk that was named"
            };
            proofs.push(Proof::new(
                setting.name,
                format!("/sys/block/{}/queue/{}: {shown} ({choice})", setting.disk, setting.name),
            ));
        }
        Ok(proofs)
    }
}

fn not_in_force(asked: String, place: &Path, shown: String) -> LabError {
    LabError::Host(HostError::NotInForce { asked, place: place.to_owned(), shown })
}

/// The line of the mount under `path`, with the number of its file system's kind.
fn mount_of(path: &Path) -> Result<String, LabError> {
    let point = facts::storage(path).mount.map(|m| m.mount_point);
    let line = point.as_deref().and_then(facts::mountinfo_line);
    let magic = facts::magic(path).map(|magic| format!("{magic:#x}"));
    match (line, magic) {
        (Some(line), Some(magic)) => Ok(format!("{line}; statfs: {magic}")),
        _ => {
            Err(not_in_force("a mounted file system".into(), path, "no mount in /proc/self/mountinfo".into()))
        }
    }
}

/// The numbers of the kinds that we know.
fn magic_of(kind: &str) -> Option<u64> {
    match kind {
        "ext2" | "ext3" | "ext4" => Some(0xef53),
        "xfs" => Some(0x5846_5342),
        "btrfs" => Some(0x9123_683e),
        "f2fs" => Some(0xf2f5_2010),
        _ => None,
    }
}

fn volume_proof(volume: &Volume) -> Result<Vec<Proof>, LabError> {
    let device = volume.device();
    let mut proofs = Vec::new();
    if let Some(file) = volume.loop_file() {
        let backing = device.backing_file.clone().unwrap_or_default();
        let direct = device.backing_direct == Some(true);
        if backing != file || !direct {
            let shown =
                format!("{} with direct I/O {}", backing.display(), if direct { "on" } else { "off" });
            return Err(not_in_force(format!("direct I/O on {}", file.display()), volume.node(), shown));
        }
        proofs.push(Proof::new(
            "loop device",
            format!(
                "/sys/block/{0}/loop/backing_file: {1}; /sys/block/{0}/loop/dio: 1",
                device.name,
                backing.display()
            ),
        ));
    }
    let classes: Vec<String> = volume.classes().iter().map(ToString::to_string).collect();
    let whose = if classes.is_empty() { "everything".to_owned() } else { classes.join(", ") };
    let Some(kind) = volume.kind() else {
        let text = format!("{}, {} bytes, no file system", volume.node().display(), device.size_bytes);
        proofs.push(Proof::new(format!("block device for {whose}"), text));
        return Ok(proofs);
    };
    let point = volume.place();
    let line = mount_of(point)?;
    let mounted = facts::storage(point).mount.filter(|m| m.mount_point == point);
    let (shown, source) = mounted.map_or_else(Default::default, |m| (m.fs_type, m.source));
    if shown != kind || Path::new(&source) != volume.node() {
        return Err(not_in_force(format!("{kind} of {}", volume.node().display()), point, line));
    }
    if magic_of(kind).is_some_and(|magic| facts::magic(point) != Some(magic)) {
        return Err(not_in_force(format!("a file system of kind {kind}"), point, line));
    }
    facts::mount_options_in_force(&volume.options, point)?;
    proofs.push(Proof::new(format!("mount for {whose}"), line));
    proofs.push(Proof::new(
        format!("mount options for {whose}"),
        format!("asked: {}; in force: {}", volume.options, facts::mount_options(point).join(",")),
    ));
    Ok(proofs)
}

fn cap_proof(caps: &Caps, volume: &Volume, limits: host::change::Limits) -> Result<Proof, LabError> {
    let device = volume.device();
    let shown = caps.shown(&device);
    let numbers = [limits.read_iops, limits.write_iops, limits.read_bps, limits.write_bps];
    let is_shown = |number: &u64| {
        let word = number.to_string();
        shown.iter().any(|line| line.split([' ', '=']).any(|w| w == word))
    };
    match numbers.into_iter().flatten().find(|number| !is_shown(number)) {
        Some(number) => {
            Err(not_in_force(format!("a cap of {number} per second"), volume.node(), shown.join("; ")))
        }
        None => Ok(Proof::new(format!("cap on {}", volume.node().display()), shown.join("; "))),
    }
}
