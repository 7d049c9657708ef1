//! Examines a path and its machine before a week is wasted on them: what is wrong, what it does to results, what to type.
//!
//! Start with [`examine`]. The parts: `storage` (health, file system, options, queue settings), `sync` (is a sync
//! honest? measured), `access` (direct I/O, io_uring, libaio), `machine` (memory, limits) and `noise` (three seconds of
//! silence, listened to). Each part gathers first and judges after, so that the judgements are tested without the machine
//! that deserves them.

mod access;
mod machine;
mod noise;
mod storage;
mod sync;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// As it should be.
    Good,
    /// Worth knowing; results stay comparable on this machine.
    Note,
    /// Results are shifted or blurred.
    Warn,
    /// Results are wrong or data is at risk.
    Bad,
    /// Could not be found out; the finding says why.
    Unknown,
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Good => "good",
            Self::Note => "note",
            Self::Warn => "warn",
            Self::Bad => "bad",
            Self::Unknown => "unknown",
        })
    }
}

/// One thing the doctor looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// What was looked at, in a word or two: `health`, `sync`, `scheduler` …
    pub topic: &'static str,
    /// What was seen.
    pub seen: String,
    /// What it does to results; empty for a good finding that needs no words.
    pub effect: String,
    /// What to type or do; empty when there is nothing to do.
    pub advice: String,
}

impl Finding {
    fn new(level: Level, topic: &'static str, seen: impl Into<String>) -> Self {
        Self { level, topic, seen: seen.into(), effect: String::new(), advice: String::new() }
    }

    fn good(topic: &'static str, seen: impl Into<String>) -> Self {
        Self::new(Level::Good, topic, seen)
    }

    fn note(topic: &'static str, seen: impl Into<String>) -> Self {
        Self::new(Level::Note, topic, seen)
    }

    fn warn(topic: &'static str, seen: impl Into<String>) -> Self {
        Self::new(Level::Warn, topic, seen)
    }

    fn bad(topic: &'static str, seen: impl Into<String>) -> Self {
        Self::new(Level::Bad, topic, seen)
    }

    fn unknown(topic: &'static str, seen: impl Into<String>) -> Self {
        Self::new(Level::Unknown, topic, seen)
    }

    fn effect(mut self, words: impl Into<String>) -> Self {
        self.effect = words.into();
        self
    }

    fn advice(mut self, words: impl Into<String>) -> Self {
        self.advice = words.into();
        self
    }
}

/// What is examined: the path and everything that was gathered about it once.
struct Patient {
    /// As given.
    path: PathBuf,
    /// Where a file of our own can be made: the path, or the directory of a file; none for a block device.
    directory: Option<PathBuf>,
    storage: host::facts::Storage,
    machine: Vec<host::facts::Fact>,
}

impl Patient {
    fn meet(path: &Path) -> Self {
        let storage = host::facts::storage(path);
        let directory = match (path.is_dir(), storage.mount.is_some()) {
            (true, _) => Some(path.to_owned()),
            (false, true) => path
                .parent()
                .map(|p| if p.as_os_str().is_empty() { PathBuf::from(".") } else { p.to_owned() }),
            (false, false) => None,
        };
        Self { path: path.to_owned(), directory, storage, machine: host::facts::machine() }
    }

    /// The value of a fact about the machine.
    fn fact(&self, layer: &str, name: &str) -> Option<&str> {
        self.machine.iter().find(|f| f.layer == layer && f.name == name)?.value.as_deref()
    }
}

/// Examines `path` (a directory, file or block device) in about six seconds: three of listening, two of syncs into a small
/// file of its own (journaled, removed at the end), the rest of reading. Raising `cancel` ends it within 100 ms; what was
/// found until then is returned. `progress` hears what is being looked at.
///
/// Nothing is changed, and a block device is only read.
pub fn examine(path: &Path, cancel: &AtomicBool, progress: &mut dyn FnMut(&str)) -> Vec<Finding> {
    if !path.exists() {
        let seen = format!("{} does not exist", path.display());
        return vec![Finding::bad("path", seen).advice(format!("mkdir -p {}", path.display()))];
    }
    let patient = Patient::meet(path);
    // Noise first: afterwards our own requests would be heard.
    let parts: [(&str, Part); 5] = [
        ("listening to the machine for 3 s", noise::examine),
        ("reading what the disk says about itself", storage::examine),
        ("syncing a small file again and again", sync::examine),
        ("trying direct and asynchronous I/O", access::examine),
        ("looking for limits", machine::examine),
    ];
    let mut findings = Vec::new();
    for (words, part) in parts {
        if cancel.load(Ordering::Relaxed) {
            break;
        }
        progress(words);
        findings.extend(part(&patient, cancel));
    }
    findings
}

type Part = fn(&Patient, &AtomicBool) -> Vec<Finding>;

#[cfg(test)]
mod tests;
