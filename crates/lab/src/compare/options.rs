//! What the user asked for, and whether it makes sense.

use super::case::Case;
use crate::LabError;
use crate::factor::{Factor, Storage, Vary};
use crate::nodes::Nodes;
use crate::server::Kind;
use crate::server::find::Named;
use io::Api;
use record::json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use units::{Bytes, Nanos, Seed};

/// What the user asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// The question.
    pub case: Case,
    /// The directory on the storage in question.
    pub directory: PathBuf,
    /// The storage nodes behind the export, as far as they can be asked.
    pub nodes: Nodes,
    /// What the workloads run on.
    pub target: TargetKind,
    /// Where the programs of servers are, as far as the user says.
    pub programs: Named,
    /// The longest that a private server may say nothing, or a device beneath it not answer.
    pub patience: Nanos,
    /// What is varied, and what is held at one level.
    pub vary: Vec<Vary>,
    /// Name of the configuration that the others are held against; `None`: the first.
    pub baseline: Option<String>,
    /// The slow place of cases `placement`, `async` and `flash`.
    pub slow: Storage,
    /// The fast place of cases `placement`, `async` and `flash`.
    pub fast: Storage,
    /// Time budget, minutes; `None`: what the case takes.
    pub minutes: Option<f64>,
    /// Size of the data file; `None`: chosen here and said.
    pub size: Option<Bytes>,
    /// Concurrent sessions.
    pub sessions: u32,
    /// Database block; `None`: 8 KiB, and MariaDB's own 16 where it is the only target.
    pub block: Option<Bytes>,
    /// The user's own mix, for which the verdict is weighted.
    pub mix: Mix,
    /// Only these modes; empty: all.
    pub modes: Vec<io::IoMode>,
    /// Only these APIs for asynchronous modes; empty: all that work here.
    pub apis: Vec<Api>,
    /// Read back after each visit what it wrote.
    pub verify: bool,
    /// Where chance comes from.
    pub seed: Seed,
    /// The command as typed.
    pub command: String,
    /// Where the record goes; `None`: the usual place.
    pub record_path: Option<PathBuf>,
}

/// A mix as the plan keeps it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mix {
    /// `read_share`, `hit_ratio`, `commits_per_transaction` …; what is not in here is assumed, and said to be.
    pub values: BTreeMap<String, f64>,
    /// Where they come from, in sentences.
    pub said: Vec<String>,
}

/// Read share and hit ratio when nobody says them.
const SHARE_ASSUMED: f64 = 0.9;

impl Mix {
    /// For the plan of a comparison with `sessions` sessions; `assumed` names what nobody said.
    pub fn plan(&self, sessions: u32) -> Value {
        let mut plan = Map::new();
        plan.insert("sessions".into(), json!(sessions));
        plan.extend(self.values.iter().map(|(key, value)| (key.clone(), json!(value))));
        let shares = ["read_share", "hit_ratio"];
        let assumed: Vec<&str> = shares.into_iter().filter(|key| !self.values.contains_key(*key)).collect();
        plan.extend(assumed.iter().map(|key| ((*key).to_owned(), json!(SHARE_ASSUMED))));
        plan.insert("assumed".into(), json!(assumed));
        plan.insert("said".into(), json!(self.said));
        Value::Object(plan)
    }
}

/// What the workloads run on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TargetKind {
    /// The embedded database.
    #[default]
    Engine,
    /// Plain files: a database's I/O without a database.
    Files,
    /// A private PostgreSQL server.
    Postgres,
    /// A private MariaDB server.
    Mariadb,
}

impl TargetKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Engine, Self::Postgres, Self::Mariadb, Self::Files];

    /// The server that it is; none: ours.
    pub const fn server(self) -> Option<Kind> {
        match self {
            Self::Engine | Self::Files => None,
            Self::Postgres => Some(Kind::Postgres),
            Self::Mariadb => Some(Kind::Mariadb),
        }
    }
}

impl fmt::Display for TargetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Engine => "engine",
            Self::Files => "files",
            Self::Postgres => "postgres",
            Self::Mariadb => "mariadb",
        })
    }
}

impl FromStr for TargetKind {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|kind| kind.to_string() == text).ok_or_else(|| {
            format!(
                "{text:?} is not a target; type engine (the embedded database), postgres or mariadb (a private server), or files \
                 (plain files)"
            )
        })
    }
}

impl Options {
    /// Whether each value makes sense by itself.
    ///
    /// # Errors
    /// A sentence that says what was seen and what to type.
    pub fn check(&self) -> Result<(), LabError> {
        let refuse = |text: String| Err(LabError::Target(text));
        if let Some(minutes) = self.minutes.filter(|minutes| !(0.2..=1440.0).contains(minutes)) {
            return refuse(format!("--minutes {minutes} is out of range; type 0.2 to 1440"));
        }
        crate::workload::commit::check_sessions(self.sessions)?;
        if self.apis.contains(&Api::Threads) && self.target != TargetKind::Postgres {
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
        match self.block {
            Some(block) if !block.0.is_power_of_two() || !(4096..=32768).contains(&block.0) => {
                refuse(format!("--block {block} is not a database block; type 4k, 8k, 16k or 32k"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_says_what_nobody_said() {
        let nothing = Mix::default().plan(10);
        assert_eq!(nothing["assumed"], json!(["read_share", "hit_ratio"]));
        assert_eq!((&nothing["hit_ratio"], &nothing["sessions"]), (&json!(0.9), &json!(10)));
        let values = [("hit_ratio".to_owned(), 0.97), ("sessions".to_owned(), 4.0)].into();
        let given = Mix { values, said: vec!["The table says: buffer hit 97 %.".into()] }.plan(10);
        assert_eq!(given["assumed"], json!(["read_share"]));
        assert_eq!((&given["hit_ratio"], &given["sessions"]), (&json!(0.97), &json!(4.0)));
    }
}
