//! What the user asked for, and whether it makes sense.

use super::case::Case;
use crate::LabError;
use crate::factor::{Factor, Storage, Vary};
use io::Api;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use units::{Bytes, Seed};

/// What the user asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// The question.
    pub case: Case,
    /// The directory on the storage in question.
    pub directory: PathBuf,
    /// What the workloads run on.
    pub target: TargetKind,
    /// What is varied, and what is held at one level.
    pub vary: Vec<Vary>,
    /// Name of the configuration that the others are held against; `None`: the first.
    pub baseline: Option<String>,
    /// The slow place of cases `placement` and `async`.
    pub slow: Storage,
    /// The fast place of cases `placement` and `async`.
    pub fast: Storage,
    /// Time budget, minutes; `None`: what the case takes.
    pub minutes: Option<f64>,
    /// Size of the data file; `None`: chosen here and said.
    pub size: Option<Bytes>,
    /// Concurrent sessions.
    pub sessions: u32,
    /// Database block.
    pub block: Bytes,
    /// Share of reads among the user's logical operations.
    pub read_share: f64,
    /// Buffer cache hit ratio of the user's database.
    pub hit_ratio: f64,
    /// Only these modes; empty: all.
    pub modes: Vec<io::IoMode>,
    /// Only these APIs for asynchronous modes; empty: all that work here.
    pub apis: Vec<Api>,
    /// Where chance comes from.
    pub seed: Seed,
    /// The command as typed.
    pub command: String,
    /// Where the record goes; `None`: the usual place.
    pub record_path: Option<PathBuf>,
}

/// What the workloads run on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TargetKind {
    /// The embedded database.
    #[default]
    Engine,
    /// Plain files: a database's I/O without a database.
    Files,
}

impl fmt::Display for TargetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Engine => "engine",
            Self::Files => "files",
        })
    }
}

impl FromStr for TargetKind {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "engine" => Ok(Self::Engine),
            "files" => Ok(Self::Files),
            _ => Err(format!(
                "{text:?} is not a target; type engine (the embedded database) or files (plain files)"
            )),
        }
    }
}

impl Options {
    /// Whether each value makes sense by itself.
    ///
    /// # Errors
    /// A sentence that says what was seen and what to type.
    pub fn check(&self) -> Result<(), LabError> {
        let refuse = |text: String| Err(LabError::Target(text));
        if !(0.0..=1.0).contains(&self.read_share) {
            return refuse(format!(
                "--read-share {} is not a share; type a number from 0 to 1",
                self.read_share
            ));
        }
        if !(0.0..=1.0).contains(&self.hit_ratio) {
            return refuse(format!(
                "--hit-ratio {} is not a ratio; type a number from 0 to 1",
                self.hit_ratio
            ));
        }
        if let Some(minutes) = self.minutes.filter(|minutes| !(0.2..=1440.0).contains(minutes)) {
            return refuse(format!("--minutes {minutes} is out of range; type 0.2 to 1440"));
        }
        crate::workload::commit::check_sessions(self.sessions)?;
        if self.apis.contains(&Api::Threads) {
            return refuse(
                "--api names the API of the asynchronous modes: io_uring, libaio. The blocking modes need none."
                    .into(),
            );
        }
        for (list, empty, factor) in
            [("--modes", self.modes.is_empty(), Factor::Io), ("--api", self.apis.is_empty(), Factor::Api)]
        {
            if !empty && self.vary.iter().any(|vary| vary.factor == factor) {
                return refuse(format!("{list} and --vary {factor}= say the same; leave {list} out"));
            }
        }
        let block = self.block.0;
        if !block.is_power_of_two() || !(4096..=32768).contains(&block) {
            return refuse(format!(
                "--block {} is not a database block; type 4k, 8k, 16k or 32k",
                self.block
            ));
        }
        Ok(())
    }
}
