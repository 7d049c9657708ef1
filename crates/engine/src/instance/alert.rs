//! The alert log: what the instance tells the people who run it.

use io::Storage;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::Clock;

/// Its name, in the database's directory.
pub(super) const FILE_NAME: &str = "alert.log";

/// Lines of text with the time in front, in a file of the database's directory.
pub struct AlertLog {
    storage: Arc<dyn Storage>,
    clock: Clock,
    path: PathBuf,
}

impl AlertLog {
    /// `alert.log` in `directory`; appended to.
    pub fn new(storage: Arc<dyn Storage>, clock: Clock, directory: &Path) -> Self {
        Self { storage, clock, path: directory.join(FILE_NAME) }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a line. Never fails: who cannot write the alert log has other worries, and an error of its own.
    pub fn line(&self, text: &str) {
        self.storage.append_line(&self.path, &format!("{} {text}", self.clock.utc()));
    }
}
