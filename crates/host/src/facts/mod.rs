//! What this machine is: facts with their source, unknown where a source is absent.
//!
//! [`machine()`] describes processors, memory and kernel; [`storage()`] follows a path down to its disks; [`smart()`] asks the
//! disk for its health; [`cgroup_limits`] finds the limits that apply to this process; [`in_use()`] finds every reason not
//! to write to a device.

pub(crate) mod cgroup;
mod device;
mod in_use;
mod machine;
mod mount_options;
pub(crate) mod mounts;
mod signature;
mod smart;
pub(crate) mod stack;
mod storage;
mod wire;

pub use cgroup::{IoLimit, cgroup_limits, io_limits};
pub use device::{Device, DeviceKind, Queue};
pub use in_use::{InUse, Use, in_use};
pub use machine::{cores_allowed, machine, memory_available, memory_total, swap_used};
pub use mount_options::{mount_options, mount_options_in_force, mountinfo_line};
pub use mounts::Mount;
pub use smart::{Smart, parse as parse_smart, smart, smart_within};
pub use storage::{Storage, magic, storage};

pub use crate::counters::load_average;

use crate::files;
use std::path::Path;

/// One thing known, or known to be unknown, about the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// `cpu`, `memory`, `kernel`, `filesystem`, `device`, `cgroup`, `smart` or `tool`.
    pub layer: &'static str,
    /// Which one: `vda`, `/data`; empty when there is only one.
    pub object: String,
    /// What, in snake case.
    pub name: &'static str,
    /// The value; none is unknown, and then [`Fact::source`] says why. Never zero for absent.
    pub value: Option<String>,
    /// Unit of the value; empty for words and plain counts.
    pub unit: &'static str,
    /// Path or command it comes from, with the reason after a colon when the value is unknown.
    pub source: String,
}

impl Fact {
    /// A fact whose value is known.
    pub(crate) fn known(
        layer: &'static str,
        object: &str,
        name: &'static str,
        value: impl ToString,
        source: &str,
    ) -> Self {
        Self {
            layer,
            object: object.to_owned(),
            name,
            value: Some(value.to_string()),
            unit: "",
            source: source.to_owned(),
        }
    }

    /// A fact that could not be learned.
    pub(crate) fn unknown(
        layer: &'static str,
        object: &str,
        name: &'static str,
        source: &str,
        reason: &str,
    ) -> Self {
        Self {
            layer,
            object: object.to_owned(),
            name,
            value: None,
            unit: "",
            source: format!("{source}: {reason}"),
        }
    }

    /// The text of a kernel file as it is.
    pub(crate) fn file(
        layer: &'static str,
        object: &str,
        name: &'static str,
        path: impl AsRef<Path>,
    ) -> Self {
        let source = path.as_ref().display().to_string();
        match files::read(&path) {
            Ok(text) => Self::known(layer, object, name, text.trim(), &source),
            Err(reason) => Self::unknown(layer, object, name, &source, &reason),
        }
    }

    /// What was found in a source, or that it was not there.
    pub(crate) fn found(
        layer: &'static str,
        object: &str,
        name: &'static str,
        value: Option<impl ToString>,
        source: &str,
    ) -> Self {
        match value {
            Some(value) => Self::known(layer, object, name, value, source),
            None => Self::unknown(layer, object, name, source, "not there"),
        }
    }

    /// The same with a unit.
    pub(crate) fn unit(mut self, unit: &'static str) -> Self {
        self.unit = unit;
        self
    }
}
