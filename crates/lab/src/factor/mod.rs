//! What may vary between configurations: the factors, what each costs to change, and one value for each ([`Setup`]).
//!
//! A factor and its levels are typed as `FACTOR=LEVEL,LEVEL…` ([`Vary`]); all combinations of what is varied make the
//! configurations ([`Vary::combine`]). Here they are only named, read and checked for sense; `stage` brings them about.

mod flash;
mod limit;
mod near;
mod parameter;
mod setup;
mod storage;
mod vary;

pub use flash::FlashPolicy;
pub use limit::{Limit, PRESETS, Preset};
pub use near::nearest;
pub use setup::{Levels, Setup, cost};
pub use storage::{Fs, Storage};
pub use vary::Vary;

use std::fmt;
use std::str::FromStr;

/// What may vary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Factor {
    /// What the workloads run on.
    Target,
    /// The version of NFS that our client speaks with the export.
    Nfs,
    /// The node that keeps the data, of a cluster of our own that is mounted by node A.
    Node,
    /// The file system.
    Fs,
    /// Mount options of a file system that we make.
    Mount,
    /// Where all files lie.
    Places,
    /// Where the files of a class lie.
    Place(FileClass),
    /// A cap on the device under the database.
    Throttle,
    /// The I/O scheduler of the device.
    Scheduler,
    /// Another setting of its request queue.
    Queue(QueueSetting),
    /// Database block.
    BlockSize,
    /// Size of a redo group.
    RedoSize,
    /// Size of the flash cache.
    FlashSize,
    /// Buffer cache.
    Cache,
    /// What is let into the flash cache.
    FlashPolicy,
    /// Database writers.
    Writers,
    /// I/O mode: `filesystemio_options`.
    Io,
    /// API of asynchronous calls.
    Api,
    /// Concurrent sessions.
    Sessions,
    /// A parameter of the database, by the name that it has there.
    Parameter(&'static str),
}

/// Files that can be placed by themselves. SYSTEM lies with `data`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileClass {
    /// Data files of users' tablespaces, and SYSTEM.
    Data,
    /// The undo tablespace.
    Undo,
    /// Temporary files: sorts that spill.
    Temp,
    /// Redo log groups.
    Redo,
    /// The control file, and with it what the database keeps beside: parameters, alert log.
    Control,
    /// The flash cache, where there is one: not among [`FileClass::ALL`], which every database has.
    Flash,
}

impl FileClass {
    /// Those of every database.
    pub const ALL: [Self; 5] = [Self::Data, Self::Undo, Self::Temp, Self::Redo, Self::Control];

    /// As it is typed behind `place.`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Undo => "undo",
            Self::Temp => "temp",
            Self::Redo => "redo",
            Self::Control => "control",
            Self::Flash => "flash",
        }
    }
}

impl fmt::Display for FileClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Settings of a request queue beside the scheduler, under their names in `/sys/block/DEVICE/queue`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueueSetting {
    /// Requests that the queue holds.
    NrRequests,
    /// Read-ahead, KiB.
    ReadAheadKb,
    /// On which CPU a request completes: 0, 1 or 2.
    RqAffinity,
    /// Target latency of writeback throttling, µs; 0 switches it off.
    WbtLatUsec,
}

impl QueueSetting {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::NrRequests, Self::ReadAheadKb, Self::RqAffinity, Self::WbtLatUsec];

    /// The name of its file, and of the factor.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NrRequests => "nr_requests",
            Self::ReadAheadKb => "read_ahead_kb",
            Self::RqAffinity => "rq_affinity",
            Self::WbtLatUsec => "wbt_lat_usec",
        }
    }
}

impl fmt::Display for QueueSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a change of level costs (docs/method.md, section 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cost {
    /// Inside a stage: the database is opened with another parameter, a setting is written.
    Easy,
    /// Unmount and mount, or everything shut down in between.
    Medium,
    /// Made anew: file system, database. The replicate is then the instance.
    Hard,
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Easy => "easy",
            Self::Medium => "medium",
            Self::Hard => "hard",
        })
    }
}

impl Factor {
    /// All of them but the parameters of databases, the costliest first: the order in which a configuration's name and plan tell them.
    pub const ALL: [Self; 27] = [
        Self::Target,
        Self::Nfs,
        Self::Node,
        Self::Fs,
        Self::Mount,
        Self::Places,
        Self::Place(FileClass::Data),
        Self::Place(FileClass::Undo),
        Self::Place(FileClass::Temp),
        Self::Place(FileClass::Redo),
        Self::Place(FileClass::Control),
        Self::Place(FileClass::Flash),
        Self::Throttle,
        Self::Scheduler,
        Self::Queue(QueueSetting::NrRequests),
        Self::Queue(QueueSetting::ReadAheadKb),
        Self::Queue(QueueSetting::RqAffinity),
        Self::Queue(QueueSetting::WbtLatUsec),
        Self::BlockSize,
        Self::RedoSize,
        Self::FlashSize,
        Self::Cache,
        Self::FlashPolicy,
        Self::Writers,
        Self::Io,
        Self::Api,
        Self::Sessions,
    ];

    /// Its place in that order; parameters come last.
    pub fn rank(self) -> usize {
        Self::ALL.iter().position(|factor| *factor == self).unwrap_or(Self::ALL.len())
    }

    /// What a change of it costs.
    pub const fn cost(self) -> Cost {
        match self {
            Self::Target
            | Self::Fs
            | Self::Places
            | Self::Place(_)
            | Self::BlockSize
            | Self::RedoSize
            | Self::FlashSize => Cost::Hard,
            Self::Mount | Self::Nfs | Self::Node => Cost::Medium,
            Self::Throttle
            | Self::Scheduler
            | Self::Queue(_)
            | Self::Cache
            | Self::FlashPolicy
            | Self::Writers
            | Self::Io
            | Self::Api
            | Self::Sessions
            | Self::Parameter(_) => Cost::Easy,
        }
    }

    /// What its levels are, for people who type them.
    pub const fn grammar(self) -> &'static str {
        match self {
            Self::Target => "engine, postgres, mariadb or files",
            Self::Nfs => "v3, v4.0, v4.1, pnfs, with --dir nfs://server/export/path",
            Self::Node => "A, B: the node that keeps the data, in redoubt compare dnfs without --dir",
            Self::Fs => {
                "here (the directory as it is), ext2, ext3, ext4, xfs, btrfs or another file system that mkfs knows, with its \
                 mount options behind a colon (ext4:data=writeback+noatime), or raw (no file system)"
            }
            Self::Mount => "mount options joined by + (noatime+discard), or defaults",
            Self::Place(FileClass::Flash) => {
                "none (no flash cache), here, a directory (/ssd), a free block device (/dev/nvme0n1), or throttled:LIMIT with \
                 @DIRECTORY behind it when it shall lie elsewhere (throttled:ssd-sata)"
            }
            Self::Places | Self::Place(_) => {
                "here, a directory (/ssd), a free block device (/dev/sdb), or throttled:LIMIT with @DIRECTORY behind it when \
                 it shall lie elsewhere (throttled:hdd-7200, throttled:150iops+35MB/s@/data)"
            }
            Self::Throttle => {
                "off, a limit (150iops, 35MB/s, 3000iops+125MB/s, 250MB/s+write:70MB/s) or a device to imitate (hdd-7200, aws-gp3 …)"
            }
            Self::Scheduler => {
                "as-is, none, mq-deadline, kyber, bfq: what the kernel has for the loop device that we make; for a disk of yours, \
                 name it in full: kyber@/dev/sdb"
            }
            Self::Queue(QueueSetting::NrRequests) => {
                "as-is, or a number of requests such as 64 (of a disk of yours: 64@/dev/sdb)"
            }
            Self::Queue(QueueSetting::ReadAheadKb) => "as-is, or KiB such as 128",
            Self::Queue(QueueSetting::RqAffinity) => "as-is, 0, 1 or 2",
            Self::Queue(QueueSetting::WbtLatUsec) => "as-is, or µs such as 75000 (0: off)",
            Self::BlockSize => "4k, 8k, 16k or 32k",
            Self::RedoSize => "a size such as 64m",
            Self::FlashSize => "auto (as large as the data file), or a size such as 4g",
            Self::Cache => "auto, or a size such as 64m",
            Self::FlashPolicy => "scan_resistant, classic",
            Self::Writers => "a number of database writers, 1 to 36",
            Self::Io => "none (or cached), asynch, directio, setall, concurrent",
            Self::Api => "io_uring, libaio; with --target postgres io_uring, threads (its worker processes)",
            Self::Sessions => "a number of sessions such as 10",
            Self::Parameter(_) => "values of that parameter of the database, or default",
        }
    }

    /// What it varies, in a few words.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Target => "what the workloads run on",
            Self::Nfs => "version of NFS",
            Self::Node => "node that keeps the data",
            Self::Fs => "file system",
            Self::Mount => "mount options",
            Self::Places => "where all files lie",
            Self::Place(FileClass::Data) => "where the data files lie",
            Self::Place(FileClass::Undo) => "where the undo tablespace lies",
            Self::Place(FileClass::Temp) => "where the temporary files lie",
            Self::Place(FileClass::Redo) => "where the redo log lies",
            Self::Place(FileClass::Control) => "where the control file lies",
            Self::Place(FileClass::Flash) => "where the flash cache lies",
            Self::Throttle => "cap on the device: what if it were slower?",
            Self::Scheduler => "I/O scheduler of the device",
            Self::Queue(QueueSetting::NrRequests) => "requests in the device's queue",
            Self::Queue(QueueSetting::ReadAheadKb) => "read-ahead of the device",
            Self::Queue(QueueSetting::RqAffinity) => "CPU on which requests complete",
            Self::Queue(QueueSetting::WbtLatUsec) => "throttling of writeback",
            Self::BlockSize => "database block",
            Self::RedoSize => "size of a redo group",
            Self::FlashSize => "size of the flash cache",
            Self::Cache => "buffer cache",
            Self::FlashPolicy => "what is let into the flash cache",
            Self::Writers => "database writers",
            Self::Io => "I/O mode (filesystemio_options)",
            Self::Api => "API of asynchronous calls",
            Self::Sessions => "concurrent sessions",
            Self::Parameter(_) => "parameter of the database",
        }
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Place(class) => return f.pad(&format!("place.{class}")),
            Self::Parameter(name) => return f.pad(&format!("{}{name}", parameter::PREFIX)),
            Self::Queue(setting) => setting.name(),
            Self::Target => "target",
            Self::Nfs => "nfs",
            Self::Node => "node",
            Self::Fs => "fs",
            Self::Mount => "mount",
            Self::Places => "place",
            Self::Throttle => "throttle",
            Self::Scheduler => "scheduler",
            Self::BlockSize => "block_size",
            Self::RedoSize => "redo_size",
            Self::FlashSize => "flash_size",
            Self::Cache => "cache",
            Self::FlashPolicy => "flash_policy",
            Self::Writers => "writers",
            Self::Io => "io",
            Self::Api => "api",
            Self::Sessions => "sessions",
        };
        f.pad(name)
    }
}

impl FromStr for Factor {
    type Err = String;

    /// # Errors
    /// A sentence with the nearest name and the list.
    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = text.trim();
        if let Some(name) = wanted.strip_prefix(parameter::PREFIX) {
            return parameter::named(name);
        }
        let names: Vec<String> = Self::ALL.iter().map(ToString::to_string).collect();
        match names.iter().position(|name| name == wanted) {
            Some(index) => Ok(Self::ALL[index]),
            None => Err(format!(
                "{wanted:?} is not a factor{}. Factors: {}, and {}NAME for a parameter of the database",
                near::did_you_mean(wanted, &names),
                names.join(", "),
                parameter::PREFIX
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_factor_reads_its_own_name() {
        for factor in Factor::ALL {
            assert_eq!(factor.to_string().parse(), Ok(factor));
        }
        let costs: Vec<_> = Factor::ALL.iter().map(|factor| factor.cost()).collect();
        assert!(costs.contains(&Cost::Hard) && costs.contains(&Cost::Medium) && costs.contains(&Cost::Easy));
    }

    #[test]
    fn a_slip_of_the_pen_is_told_the_nearest_name() {
        for (typed, meant) in
            [("sheduler", "scheduler"), ("place.rdo", "place.redo"), ("session", "sessions")]
        {
            let error = typed.parse::<Factor>().unwrap_err();
            assert!(error.contains(&format!("Did you mean {meant}?")), "{error}");
        }
        assert!(!"colour of the box".parse::<Factor>().unwrap_err().contains("Did you mean"));
    }
}
