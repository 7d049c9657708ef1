//! The configurations that `compare` puts side by side: I/O mode × API.

use io::{Access, Api, IoMode};

/// One way of doing a database's I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// The I/O mode, in the words of `filesystemio_options`.
    pub mode: IoMode,
    /// The API of its asynchronous calls; `threads` for blocking modes.
    pub api: Api,
}

/// Requests that a database writer or a scan keeps in flight where the mode is asynchronous.
const BATCH: u32 = 32;
/// Requests of 1 MiB that a bulk write or scan keeps in flight where the mode is asynchronous.
const BULK_DEPTH: u32 = 8;
/// Writers in the workload `writers`.
pub const WRITERS: u32 = 8;

impl Configuration {
    /// Every mode, the asynchronous ones with each API that works here. The first is the baseline.
    pub fn all(apis: &[Api]) -> Vec<Self> {
        let mut all = Vec::new();
        for mode in IoMode::ALL {
            if mode.asynchronous() {
                all.extend(apis.iter().filter(|&&a| a != Api::Threads).map(|&api| Self { mode, api }));
            } else {
                all.push(Self { mode, api: Api::Threads });
            }
        }
        all
    }

    /// `none`, `setall io_uring`, …
    pub fn name(&self) -> String {
        if self.mode.asynchronous() { format!("{} {}", self.mode, self.api) } else { self.mode.to_string() }
    }

    /// How the data and redo files are opened.
    pub fn access(&self) -> Access {
        Access::for_mode(self.mode, true)
    }

    /// Blocks that one database writer keeps in flight.
    pub fn writer_batch(&self) -> u32 {
        if self.mode.asynchronous() { BATCH } else { 1 }
    }

    /// 1-MiB requests in flight in bulk writes and scans.
    pub fn bulk_depth(&self) -> u32 {
        if self.mode.asynchronous() { BULK_DEPTH } else { 1 }
    }

    /// Threads that write one file at once, and requests in flight over all of them, in workload `writers`.
    ///
    /// Blocking modes: each writer has one write in flight (`directio`: the file's lock lets one through at a time).
    /// `asynch`, `setall`: one database writer submits batches. `concurrent`: every writer submits its own batch.
    pub fn writers(&self) -> (u32, u32) {
        match self.mode {
            IoMode::None | IoMode::Directio => (WRITERS, WRITERS),
            IoMode::Asynch | IoMode::Setall => (1, BATCH),
            IoMode::Concurrent => (WRITERS, BATCH),
        }
    }

    /// Database writers in workload `mixed`.
    pub fn database_writers(&self) -> u32 {
        if self.mode.prewritten() { 2 } else { 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_times_apis() {
        let names: Vec<_> = Configuration::all(&Api::ALL).iter().map(Configuration::name).collect();
        let expected = [
            "none",
            "asynch io_uring",
            "asynch libaio",
            "directio",
            "setall io_uring",
            "setall libaio",
            "concurrent io_uring",
            "concurrent libaio",
        ];
        let mut sorted = names.clone();
        sorted.sort();
        let mut wanted: Vec<String> = expected.iter().map(ToString::to_string).collect();
        wanted.sort();
        assert_eq!(sorted, wanted);
        assert_eq!(names[0], "none");
    }
}
