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
pub(super) struct Alerts(Mutex<VecDeque<Alert>>);

impl Alerts {
    pub(super) fn say(&self, text: String) {
        let mut all = lock(&self.0);
        // What is tried again and again is told once.
        if all.back().is_some_and(|last| last.text == text) {
            return;
        }
        if all.len() == LINES_MAX {
            all.pop_front();
        }
        all.push_back(Alert { at: clock::now(), text });
    }

    pub(super) fn all(&self) -> Vec<Alert> {
        lock(&self.0).iter().cloned().collect()
    }
}
