//! What became of connections, servers and data: lines for whoever runs the database, as its alert log has them.

use super::file::lock;
use std::collections::VecDeque;
use std::sync::Mutex;
use units::{Nanos, clock};

/// Lines that are remembered.
const LINES_MAX: usize = 1024;

/// Something that happened between this client and its servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    /// When.
    pub at: Nanos,
    /// What, in one line.
    pub text: String,
}

/// Those of a mount, oldest first; the last of them.
#[derive(Debug, Default)]
pub(super) struct Alerts(Mutex<Lines>);

#[derive(Debug, Default)]
struct Lines {
    all: VecDeque<Alert>,
    /// How many of the last nobody has taken.
    new: usize,
}

impl Alerts {
    pub(super) fn say(&self, text: String) {
        let mut lines = lock(&self.0);
        // What is tried again and again is told once.
        if lines.all.back().is_some_and(|last| last.text == text) {
            return;
        }
        if lines.all.len() == LINES_MAX {
            lines.all.pop_front();
        }
        lines.all.push_back(Alert { at: clock::now(), text });
        lines.new = (lines.new + 1).min(LINES_MAX);
    }

    pub(super) fn all(&self) -> Vec<Alert> {
        lock(&self.0).all.iter().cloned().collect()
    }

    /// Those since the last time.
    pub(super) fn news(&self) -> Vec<Alert> {
        let mut lines = lock(&self.0);
        let known = lines.all.len() - std::mem::take(&mut lines.new);
        lines.all.iter().skip(known).cloned().collect()
    }
}
