//! One value for each factor: a configuration in full.

use super::limit::Limit;
use super::storage::{Fs, Storage, mount_options};
use super::{Cost, Factor, FileClass, FlashPolicy, QueueSetting};
use crate::compare::TargetKind;
use crate::compare::configuration::Configuration;
use crate::nodes;
use io::{Api, IoMode};
use nfs::Version;
use std::collections::BTreeMap;
use units::Bytes;

/// `(factor, level)` of what is varied, in the order of [`Factor::ALL`].
pub type Levels = Vec<(Factor, String)>;

/// Everything that is needed to bring a configuration about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// What the workloads run on.
    pub target: TargetKind,
    /// The version of NFS on an export; none: as its URL says, or files of this machine.
    pub nfs: Option<Version>,
    /// The node that keeps the data, A is 0; none: it stays where it is.
    pub node: Option<usize>,
    /// File system.
    pub fs: Fs,
    /// Mount options beside those of [`Fs::Made`], joined by commas; may be empty.
    pub mount: String,
    /// Where files of a class lie; what is not in here lies [`Storage::Here`], but for the flash cache: then there is none.
    pub place: BTreeMap<FileClass, Storage>,
    /// Cap on the device under everything that lies here.
    pub throttle: Option<Limit>,
    /// I/O scheduler; none: as it is.
    pub scheduler: Option<String>,
    /// Other settings of the queue; what is not in here stays as it is.
    pub queue: BTreeMap<QueueSetting, String>,
    /// Database block.
    pub block: Bytes,
    /// Each redo group; none: chosen by the plan.
    pub redo: Option<Bytes>,
    /// Buffer cache; none: chosen by the plan.
    pub cache: Option<Bytes>,
    /// Size of the flash cache; none: as large as the data file.
    pub flash_size: Option<Bytes>,
    /// What is let into it.
    pub flash_policy: FlashPolicy,
    /// Database writers; none: the database's own default.
    pub writers: Option<u32>,
    /// I/O mode.
    pub mode: IoMode,
    /// API of the asynchronous modes.
    pub api: Api,
    /// Concurrent sessions.
    pub sessions: u32,
    /// Parameters of the database, by name; what is not in here is as the database has it.
    pub parameters: BTreeMap<&'static str, String>,
}

impl Default for Setup {
    /// The embedded database as it comes, in the directory as it is.
    fn default() -> Self {
        Self {
            target: TargetKind::Engine,
            nfs: None,
            node: None,
            fs: Fs::Here,
            mount: String::new(),
            place: BTreeMap::new(),
            throttle: None,
            scheduler: None,
            queue: BTreeMap::new(),
            block: Bytes::kib(8),
            redo: None,
            cache: None,
            flash_size: None,
            flash_policy: FlashPolicy::default(),
            writers: None,
            mode: IoMode::Setall,
            api: Api::IoUring,
            sessions: 10,
            parameters: BTreeMap::new(),
        }
    }
}

impl Setup {
    /// I/O mode and API as the database opens its files.
    pub fn configuration(&self) -> Configuration {
        let api = if self.mode.asynchronous() { self.api } else { Api::Threads };
        Configuration { mode: self.mode, api }
    }

    /// Threads that write one file at once in workload `writers`, and their requests in flight: as the I/O mode has it, or, when a
    /// number of writers is said, one write in flight for each.
    pub fn writing(&self) -> (u32, u32) {
        self.writers.map_or_else(|| self.configuration().writers(), |writers| (writers, writers))
    }

    /// Where files of `class` lie; of the flash cache where there is one.
    pub fn storage(&self, class: FileClass) -> &Storage {
        self.place.get(&class).unwrap_or(&Storage::Here)
    }

    /// Whether it caps a device.
    pub fn capped(&self) -> bool {
        let place = |storage: &Storage| matches!(storage, Storage::Throttled { .. });
        self.throttle.is_some() || self.place.values().any(place)
    }

    /// Mount options of the file system that we make, joined by commas.
    pub fn mount_options(&self) -> String {
        let made = match &self.fs {
            Fs::Made { options, .. } => options.as_str(),
            Fs::Here | Fs::Raw => "",
        };
        [made, &self.mount].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(",")
    }

    /// The level of `factor`, as it would be typed; `none` of what belongs to a flash cache where there is none.
    pub fn level(&self, factor: Factor) -> String {
        if factor.needs_flash() && self.flash().is_none() { "none".into() } else { self.typed(factor) }
    }

    /// The level of `factor`, whether or not it means anything beside the others.
    pub(super) fn typed(&self, factor: Factor) -> String {
        let or = |value: Option<String>, otherwise: &str| value.unwrap_or_else(|| otherwise.into());
        match factor {
            Factor::Target => self.target.to_string(),
            Factor::Nfs => or(self.nfs.map(|version| version.to_string()), "as-is"),
            Factor::Node => or(self.node.map(nodes::name), "as-is"),
            Factor::Fs => self.fs.to_string(),
            Factor::Mount if self.mount.is_empty() => "defaults".into(),
            Factor::Mount => self.mount.replace(',', "+"),
            Factor::Places => {
                let data = self.storage(FileClass::Data);
                let together = FileClass::ALL.iter().all(|class| self.storage(*class) == data);
                if together { data.to_string() } else { "several".into() }
            }
            Factor::Place(FileClass::Flash) => or(self.flash().map(ToString::to_string), "none"),
            Factor::Place(class) => self.storage(class).to_string(),
            Factor::Throttle => or(self.throttle.map(|limit| limit.to_string()), "off"),
            Factor::Scheduler => or(self.scheduler.clone(), "as-is"),
            Factor::Queue(setting) => or(self.queue.get(&setting).cloned(), "as-is"),
            Factor::BlockSize => short(self.block),
            Factor::RedoSize => or(self.redo.map(short), "auto"),
            Factor::FlashSize => or(self.flash_size.map(short), "auto"),
            Factor::Cache => or(self.cache.map(short), "auto"),
            Factor::FlashPolicy => self.flash_policy.to_string(),
            Factor::Writers => or(self.writers.map(|n| n.to_string()), "auto"),
            Factor::Io => self.mode.to_string(),
            Factor::Api => self.configuration().api.to_string(),
            Factor::Sessions => self.sessions.to_string(),
            Factor::Parameter(name) => or(self.parameters.get(name).cloned(), "default"),
        }
    }

    /// Gives `factor` a level as it was typed.
    ///
    /// # Errors
    /// A sentence that says what was seen and what to type.
    pub fn set(&mut self, factor: Factor, typed: &str) -> Result<(), String> {
        let typed = typed.trim();
        let unless = |word: &str| (typed != word).then(|| typed.to_owned());
        match factor {
            Factor::Target => self.target = typed.parse()?,
            Factor::Nfs => self.nfs = unless("as-is").map(|version| version.parse()).transpose()?,
            Factor::Node => {
                let known =
                    |word: &str| (0..nodes::COUNT).find(|node| nodes::name(*node).eq_ignore_ascii_case(word));
                let wrong = || format!("{typed:?} is no node; type {}", factor.grammar());
                self.node = unless("as-is").map(|word| known(&word).ok_or_else(wrong)).transpose()?;
            }
            Factor::Fs => self.fs = typed.parse()?,
            Factor::Mount => {
                self.mount = match unless("defaults") {
                    Some(options) => mount_options(&options)?,
                    None => String::new(),
                }
            }
            Factor::Places => {
                let storage: Storage = typed.parse()?;
                self.place.extend(FileClass::ALL.into_iter().map(|class| (class, storage.clone())));
            }
            Factor::Place(FileClass::Flash) if typed == "none" => {
                self.place.remove(&FileClass::Flash);
            }
            Factor::Place(class) => {
                self.place.insert(class, typed.parse()?);
            }
            Factor::Throttle => self.throttle = unless("off").map(|limit| limit.parse()).transpose()?,
            Factor::Scheduler => {
                let plain =
                    |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c == '-');
                let (scheduler, disk) = named_disk(typed);
                if !plain(scheduler) || disk.is_some_and(|disk| !is_disk(disk)) {
                    return Err(format!("{typed:?} is not a scheduler; type {}", factor.grammar()));
                }
                self.scheduler = unless("as-is");
            }
            Factor::Queue(setting) => match unless("as-is") {
                Some(value) => {
                    let most = if setting == QueueSetting::RqAffinity { 2 } else { 1_000_000_000 };
                    let (value, disk) = named_disk(&value);
                    let known = number(value, 0..=most).filter(|_| disk.is_none_or(is_disk));
                    let value = known.ok_or_else(|| {
                        format!("{typed:?} is no value of {setting}; type {}", factor.grammar())
                    })?;
                    let level = disk.map_or(value.to_string(), |disk| format!("{value}@{disk}"));
                    self.queue.insert(setting, level);
                }
                None => {
                    self.queue.remove(&setting);
                }
            },
            Factor::BlockSize => {
                let block: Bytes = typed.parse()?;
                if !block.0.is_power_of_two() || !(4096..=32768).contains(&block.0) {
                    return Err(format!("{typed} is not a database block; type 4k, 8k, 16k or 32k"));
                }
                self.block = block;
            }
            Factor::RedoSize => {
                self.redo = unless("auto").map(|size| at_least(&size, Bytes::mib(4))).transpose()?
            }
            Factor::FlashSize => {
                self.flash_size = unless("auto").map(|size| at_least(&size, Bytes::mib(1))).transpose()?
            }
            Factor::FlashPolicy => self.flash_policy = typed.parse()?,
            Factor::Cache => {
                self.cache = unless("auto").map(|size| at_least(&size, Bytes::mib(1))).transpose()?
            }
            Factor::Writers => {
                self.writers = unless("auto")
                    .map(|n| {
                        number(&n, 1..=36).ok_or_else(|| format!("{typed:?}: type {}", factor.grammar()))
                    })
                    .transpose()?
                    .map(|n| n as u32);
            }
            Factor::Io => self.mode = typed.parse()?,
            Factor::Api => self.api = typed.parse()?,
            Factor::Sessions => {
                self.sessions = number(typed, 1..=10_000)
                    .ok_or_else(|| format!("{typed:?} is no number of sessions; type 1 to 10000"))?
                    as u32;
            }
            Factor::Parameter(name) => match unless("default") {
                Some(value) => {
                    self.parameters.insert(name, value);
                }
                None => {
                    self.parameters.remove(name);
                }
            },
        }
        Ok(())
    }

    /// Says in short what is varied, for tables and sentences: `xfs setall`, `redo on /ssd`, `sessions 4`.
    pub fn name(&self, varied: &[Factor]) -> String {
        let mut words = Vec::new();
        for &factor in varied {
            let level = self.level(factor);
            match factor {
                // A blocking mode has no API to speak of.
                Factor::Api if !self.mode.asynchronous() => {}
                Factor::Fs | Factor::Io | Factor::Api | Factor::Target => words.push(level),
                Factor::Nfs => words.push(self.nfs.map_or("NFS as it is", Version::title).into()),
                Factor::Node => words.push(format!("data on {level}")),
                Factor::Scheduler if level != "none" => words.push(level),
                Factor::Places => words.push(format!("on {level}")),
                Factor::Place(FileClass::Flash) if level == "none" => words.push("no flash cache".into()),
                Factor::FlashSize | Factor::FlashPolicy if level == "none" => {}
                Factor::FlashPolicy => words.push(level),
                Factor::Place(class) => words.push(format!("{class} on {level}")),
                Factor::Parameter(name) => words.push(format!("{name} {level}")),
                _ => words.push(format!("{factor} {level}")),
            }
        }
        words.join(" ")
    }

    /// The levels of what is varied.
    pub fn levels(&self, varied: &[Factor]) -> Levels {
        varied.iter().map(|&factor| (factor, self.level(factor))).collect()
    }

    /// Values that contradict each other.
    ///
    /// # Errors
    /// A sentence that says what was seen and what to type.
    pub fn check(&self) -> Result<(), String> {
        if !self.mount.is_empty() && !matches!(self.fs, Fs::Made { .. }) {
            return Err(format!(
                "mount options belong to a file system that Redoubt makes, and fs is {}; type --vary fs=ext4 beside \
                 --vary mount={}",
                self.fs,
                self.level(Factor::Mount)
            ));
        }
        // PostgreSQL's worker processes are to it what threads are to us.
        if self.mode.asynchronous() && self.api == Api::Threads && self.target != TargetKind::Postgres {
            return Err("api names the API of the asynchronous modes: io_uring, libaio. The blocking modes need none.".into());
        }
        if self.target == TargetKind::Files && !self.parameters.is_empty() {
            return Err(
                "plain files have no parameters of a database; leave set.… out, or type --target engine"
                    .into(),
            );
        }
        if self.target == TargetKind::Files {
            let together = self.level(Factor::Places) != "several";
            let others = |class: &&FileClass| match class {
                FileClass::Data | FileClass::Redo => false,
                FileClass::Flash => true,
                FileClass::Undo | FileClass::Temp | FileClass::Control => !together,
            };
            if let Some(class) = self.place.keys().find(others) {
                return Err(format!(
                    "target files has no {class} files; leave place.{class} out, or type --target engine"
                ));
            }
        }
        Ok(())
    }
}

/// The costliest change among `varied`; none when nothing is.
pub fn cost(varied: &[Factor]) -> Option<Cost> {
    varied.iter().map(|factor| factor.cost()).max()
}

/// `64m` of 64 MiB, as it would be typed.
fn short(bytes: Bytes) -> String {
    for (unit, shift) in [("g", 30), ("m", 20), ("k", 10)] {
        if bytes.0 > 0 && bytes.0.is_multiple_of(1 << shift) {
            return format!("{}{unit}", bytes.0 >> shift);
        }
    }
    bytes.0.to_string()
}

/// A level of a device's setting and the disk behind `@`.
fn named_disk(level: &str) -> (&str, Option<&str>) {
    level.split_once('@').map_or((level, None), |(value, disk)| (value, Some(disk)))
}

fn is_disk(path: &str) -> bool {
    let plain = |name: &str| {
        !name.is_empty()
            && !name.contains("..")
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_/.!".contains(c))
    };
    path.strip_prefix("/dev/").is_some_and(plain)
}

fn number(text: &str, range: std::ops::RangeInclusive<u64>) -> Option<u64> {
    text.parse().ok().filter(|n| range.contains(n))
}

fn at_least(text: &str, least: Bytes) -> Result<Bytes, String> {
    let size: Bytes = text.parse()?;
    if size < least { Err(format!("{text} is too small; type at least {least}")) } else { Ok(size) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(factor: Factor, typed: &str, level: &str) {
        let mut setup = Setup::default();
        setup.set(factor, typed).unwrap_or_else(|error| panic!("{factor}={typed}: {error}"));
        assert_eq!(setup.level(factor), level, "{factor}={typed}");
        let mut again = Setup::default();
        again.set(factor, level).unwrap_or_else(|error| panic!("{factor}={level}: {error}"));
        assert_eq!(again, setup, "a level reads itself");
    }

    #[test]
    fn levels_read_themselves() {
        let redo = Factor::Place(FileClass::Redo);
        for (factor, typed, level) in [
            (Factor::Target, "files", "files"),
            (Factor::Target, "mariadb", "mariadb"),
            (Factor::Nfs, "nfsv4", "v4.0"),
            (Factor::Nfs, "pnfs", "pnfs"),
            (Factor::Nfs, "as-is", "as-is"),
            (Factor::Parameter("fsync"), "on", "on"),
            (Factor::Parameter("fsync"), "default", "default"),
            (Factor::Fs, "ext3:data=journal", "ext3:data=journal"),
            (Factor::Mount, "noatime+discard", "noatime+discard"),
            (Factor::Mount, "defaults", "defaults"),
            (redo, "throttled:azure-p10", "throttled:azure-p10"),
            (redo, "here", "here"),
            (Factor::Places, "/ssd", "/ssd"),
            (Factor::Throttle, "150iops", "150iops"),
            (Factor::Throttle, "off", "off"),
            (Factor::Scheduler, "mq-deadline", "mq-deadline"),
            (Factor::Scheduler, "as-is", "as-is"),
            (Factor::Scheduler, "kyber@/dev/sdb", "kyber@/dev/sdb"),
            (Factor::Queue(QueueSetting::NrRequests), "64@/dev/nvme0n1", "64@/dev/nvme0n1"),
            (Factor::Queue(QueueSetting::NrRequests), "64", "64"),
            (Factor::Queue(QueueSetting::RqAffinity), "2", "2"),
            (Factor::BlockSize, "16 KiB", "16k"),
            (Factor::RedoSize, "64m", "64m"),
            (Factor::Cache, "1.5g", "1536m"),
            (Factor::Cache, "auto", "auto"),
            (Factor::Writers, "2", "2"),
            (Factor::Place(FileClass::Flash), "throttled:ssd-sata", "throttled:ssd-sata"),
            (Factor::Place(FileClass::Flash), "none", "none"),
            (Factor::Io, "cached", "none"),
            (Factor::Api, "libaio", "libaio"),
            (Factor::Sessions, "4", "4"),
        ] {
            check(factor, typed, level);
        }
    }

    #[test]
    fn what_is_no_level_is_refused_with_what_to_type() {
        for (factor, typed, words) in [
            (Factor::Io, "turbo", "setall"),
            (Factor::Sessions, "0", "1 to"),
            (Factor::Sessions, "many", "1 to"),
            (Factor::Writers, "99", "1 to 36"),
            (Factor::BlockSize, "5000", "8k"),
            (Factor::Cache, "8x", "unit"),
            (Factor::RedoSize, "1k", "at least"),
            (Factor::FlashSize, "1k", "at least"),
            (Factor::FlashPolicy, "lru", "classic"),
            (Factor::Scheduler, "none; rm", "mq-deadline"),
            (Factor::Scheduler, "none@sdb", "@/dev/sdb"),
            (Factor::Queue(QueueSetting::NrRequests), "64@/dev/../sdb", "64"),
            (Factor::Queue(QueueSetting::RqAffinity), "3", "0, 1 or 2"),
            (Factor::Throttle, "slow", "hdd-7200"),
            (Factor::Target, "oracle", "engine"),
            (Factor::Nfs, "v2", "v4.1"),
        ] {
            let error = Setup::default().set(factor, typed).expect_err(typed);
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn names_tell_what_is_varied() {
        let mut setup = Setup::default();
        setup.set(Factor::Fs, "xfs").unwrap();
        setup.set(Factor::Place(FileClass::Redo), "/ssd").unwrap();
        let varied = [Factor::Fs, Factor::Place(FileClass::Redo), Factor::Io, Factor::Api, Factor::Sessions];
        assert_eq!(setup.name(&varied), "xfs redo on /ssd setall io_uring sessions 10");
        setup.set(Factor::Io, "none").unwrap();
        assert_eq!(setup.name(&[Factor::Io, Factor::Api]), "none");
        setup.set(Factor::Scheduler, "none").unwrap();
        assert_eq!(setup.name(&[Factor::Scheduler, Factor::Io]), "scheduler none none");
    }

    #[test]
    fn contradictions_are_refused() {
        let mut setup = Setup::default();
        setup.set(Factor::Mount, "noatime").unwrap();
        assert!(setup.check().unwrap_err().contains("--vary fs=ext4"));
        setup.set(Factor::Fs, "ext4:data=writeback").unwrap();
        assert_eq!(setup.check(), Ok(()));
        assert_eq!(setup.mount_options(), "data=writeback,noatime");
        setup.set(Factor::Target, "files").unwrap();
        setup.set(Factor::Place(FileClass::Undo), "/ssd").unwrap();
        assert!(setup.check().unwrap_err().contains("undo"));
        let workers = Setup { api: Api::Threads, ..Setup::default() };
        assert!(workers.check().unwrap_err().contains("libaio"));
        assert_eq!(Setup { target: TargetKind::Postgres, ..workers }.check(), Ok(()));
    }
}
