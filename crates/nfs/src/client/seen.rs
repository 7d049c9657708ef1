//! What can be asked of a mount while it works: its open files with their layouts, and how often each operation was called. What goes over its
//! connections is in [`super::channel`].

use super::channel::ChannelCounters;
use super::file::{FileState, lock};
use super::layouts::Cause;
use super::mount::Mount;
use super::target::{Target, Version};
use crate::v4::compound::Op;
use crate::v4::layout::LayoutKind;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, Weak};
use units::Nanos;

/// An open file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// Its path below the export.
    pub path: String,
    /// Bytes, when it was asked last: [`Mount::measure`].
    pub size: Option<u64>,
    /// Where its data is; none where everything goes to the server that was mounted.
    pub layout: Option<LayoutFacts>,
    /// Recalls of its layout.
    pub recalls: u64,
    /// Times that its layout was looked at again because it was time.
    pub refreshes: u64,
    /// Times that its layout was looked at again for another reason: a notification, a refusal, flags.
    pub doubts: u64,
    /// Times that its data was found elsewhere.
    pub moves: u64,
}

/// A layout in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutFacts {
    /// Its kind.
    pub kind: LayoutKind,
    /// The data server of each stripe.
    pub nodes: Vec<SocketAddr>,
    /// Since when the data is known to be there.
    pub since: Nanos,
    /// When that was last known to be right.
    pub sure: Nanos,
}

/// How often a file's layout was looked at, and what came of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Looks {
    pub(super) recalls: u64,
    pub(super) refreshes: u64,
    pub(super) doubts: u64,
    pub(super) moves: u64,
}

impl Looks {
    pub(super) fn count(&mut self, cause: Cause) {
        *match cause {
            Cause::Recall => &mut self.recalls,
            Cause::Refresh => &mut self.refreshes,
            Cause::Notification | Cause::DataServer | Cause::Flags => &mut self.doubts,
        } += 1;
    }
}

/// The open files of a mount, and the calls about everything but data.
#[derive(Debug, Default)]
pub(super) struct Seen {
    files: Mutex<Vec<Weak<FileState>>>,
    calls: Mutex<BTreeMap<&'static str, u64>>,
}

impl Seen {
    pub(super) fn opened(&self, file: &Arc<FileState>) {
        let mut files = lock(&self.files);
        files.retain(|file| file.strong_count() > 0);
        files.push(Arc::downgrade(file));
    }

    pub(super) fn files(&self) -> Vec<Arc<FileState>> {
        lock(&self.files).iter().filter_map(Weak::upgrade).collect()
    }

    pub(super) fn called(&self, name: &'static str) {
        *lock(&self.calls).entry(name).or_default() += 1;
    }

    pub(super) fn compound(&self, ops: &[Op]) {
        let mut calls = lock(&self.calls);
        ops.iter().for_each(|op| *calls.entry(op.name()).or_default() += 1);
    }
}

impl Mount {
    /// Where it leads.
    pub fn target(&self) -> &Target {
        &self.shared.way.target
    }

    /// Longest READ and WRITE, bytes.
    pub fn transfer_max(&self) -> (u32, u32) {
        (self.shared.root.read_max, self.shared.root.write_max)
    }

    /// What went over each channel of each worker; those of workers that have ended are the last few hundred. Takes no lock that a request waits for.
    pub fn channels(&self) -> Vec<ChannelCounters> {
        self.shared.channels.counters()
    }

    /// The open files. Takes no lock that a request waits for.
    pub fn files(&self) -> Vec<FileFacts> {
        self.shared.way.seen.files().iter().map(|file| file.facts()).collect()
    }

    /// Asks for the sizes of the open files; what cannot be had is left as it was.
    pub fn measure(&self) {
        for file in self.shared.way.seen.files() {
            let asked =
                self.on(&file.path, "GETATTR", |control, deadline| match control.way.target.version {
                    Version::V3 => control.attributes_v3(&file.handle, deadline),
                    _ => control.attributes_v4(&file.handle, deadline),
                });
            if let Ok(attributes) = asked {
                file.measured(attributes.size);
            }
        }
    }

    /// How often each operation was called, by the name that its version gives it, and `MOUNT` for MNT.
    pub fn calls(&self) -> BTreeMap<&'static str, u64> {
        let mut calls = lock(&self.shared.way.seen.calls).clone();
        let version = self.shared.way.target.version;
        let mut sum = self.shared.channels.gone();
        self.channels().iter().for_each(|channel| sum.add(channel));
        let data = [("READ", sum.reads), ("WRITE", sum.writes), ("COMMIT", sum.commits)];
        let all: u64 = data.iter().map(|(_, count)| count).sum();
        // Each of them is a compound of its own.
        let around = match version {
            Version::V3 => [("PUTFH", 0), ("SEQUENCE", 0)],
            Version::V40 => [("PUTFH", all), ("SEQUENCE", 0)],
            Version::V41 | Version::Pnfs => [("PUTFH", all), ("SEQUENCE", all)],
        };
        for (name, count) in data.into_iter().chain(around).filter(|(_, count)| *count > 0) {
            *calls.entry(name).or_default() += count;
        }
        calls
    }
}
