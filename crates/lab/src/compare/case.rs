//! The named questions: a case is workloads, what it varies by itself, and the question that its answer answers.

use super::TargetKind;
use super::visit::Workload;
use crate::factor::{Factor, Vary, nearest};
use std::fmt;
use std::str::FromStr;
use units::Nanos;

/// A question that `compare` answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Case {
    /// No case was named: the main job.
    #[default]
    IoModes,
    /// Cached, direct or concurrent I/O for a table that grows and is scanned.
    Growth,
    /// Commits.
    Commit,
    /// Which file system.
    Filesystem,
    /// Which I/O scheduler.
    Scheduler,
    /// Which class of files belongs on the fast device.
    Placement,
    /// What asynchronous I/O gives on a slow and on a fast device.
    Async,
    /// Three ways to scan a table.
    Scan,
    /// A flash cache, against the slow device without one and against everything on the fast device.
    Flash,
    /// Single rows by address.
    RandomRead,
    /// Transactions of a wholesale supplier.
    OrderEntry,
    /// Many writers on one file, against one.
    Writers,
    /// Is it really asynchronous?
    Syscalls,
    /// Versions of NFS, by our own client.
    Dnfs,
}

impl Case {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::IoModes,
        Self::Growth,
        Self::Commit,
        Self::Filesystem,
        Self::Scheduler,
        Self::Placement,
        Self::Async,
        Self::Scan,
        Self::Flash,
        Self::RandomRead,
        Self::OrderEntry,
        Self::Writers,
        Self::Syscalls,
        Self::Dnfs,
    ];

    /// As it is typed; the main job needs no name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::IoModes => "io-modes",
            Self::Growth => "growth",
            Self::Commit => "commit",
            Self::Filesystem => "filesystem",
            Self::Scheduler => "scheduler",
            Self::Placement => "placement",
            Self::Async => "async",
            Self::Scan => "scan",
            Self::Flash => "flash",
            Self::RandomRead => "random-read",
            Self::OrderEntry => "order-entry",
            Self::Writers => "writers",
            Self::Syscalls => "syscalls",
            Self::Dnfs => "dnfs",
        }
    }

    /// The headline question.
    pub const fn question(self) -> &'static str {
        match self {
            Self::IoModes => {
                "Cached, asynchronous, direct, both, or concurrent I/O: which should the database use here?"
            }
            Self::Growth => {
                "Cached, direct or concurrent I/O: how fast does a table grow, and how fast is it scanned?"
            }
            Self::Commit => "Which I/O mode brings the most commits per second?",
            Self::Filesystem => "Which file system should the database be on?",
            Self::Scheduler => "Which I/O scheduler should the device have?",
            Self::Placement => "Which files belong on the fast device: which single move pays most?",
            Self::Async => "Does asynchronous I/O pay, on a slow and on a fast device, and is it stable?",
            Self::Scan => "How fast is a table scanned past the cache, into the cache, and again?",
            Self::Flash => {
                "Does a flash cache before a slow device pay, and what does the second pass of a scan find in it?"
            }
            Self::RandomRead => "Which I/O mode reads the most single blocks?",
            Self::OrderEntry => "Which I/O mode carries the most business transactions?",
            Self::Writers => "Does the file system let writers run side by side on one file?",
            Self::Syscalls => {
                "Is it really asynchronous: do requests go on while the process does, or is it held in submit?"
            }
            Self::Dnfs => "Which version of NFS should the database use with this server?",
        }
    }

    /// What is done under each configuration, in running order.
    pub fn workloads(self, target: TargetKind) -> Vec<Workload> {
        use Workload::*;
        let wanted: &[Workload] = match self {
            Self::IoModes => &[
                ReadColdOne,
                ReadCold,
                ReadCached,
                GrowthWrite,
                GrowthScanCold,
                GrowthScanWarm,
                CommitOne,
                Commit,
                Mixed,
                Writers,
            ],
            Self::Growth => &[GrowthWrite, GrowthScanCold, GrowthScanWarm],
            Self::Commit => &[CommitOne, Commit],
            Self::Filesystem => &[ReadCold, GrowthWrite, GrowthScanCold, Commit, Mixed, Writers],
            Self::Scheduler => &[ReadCold, Commit, Mixed, Writers],
            Self::Placement | Self::Async => &[Commit, Mixed],
            Self::Scan => &[ScanDirectPath, ScanScattered, ScanCached],
            Self::Flash => &[FlashPassOne, FlashPassTwo, FlashPassThree, Mixed],
            Self::RandomRead => &[ReadColdOne, ReadCold, ReadCached],
            Self::OrderEntry => &[Mixed],
            Self::Writers => &[Writers, WritersExtend],
            Self::Syscalls => &[BatchRead, BatchOverwrite, BatchExtend],
            Self::Dnfs => &[ReadColdOne, ReadCold, ReadMoved, CommitOne, Commit],
        };
        wanted.iter().copied().filter(|workload| workload.runs_on(target)).collect()
    }

    /// What `dnfs` varies on a server of the user's.
    pub(super) const DNFS_VARIES: &'static str = "nfs=v3,v4.0,v4.1,pnfs";

    /// What it varies when the user does not say, `FACTOR=LEVEL,…`; the first level is the baseline's.
    const fn varies(self, target: TargetKind) -> &'static [&'static str] {
        match (self, target) {
            // A server's modes are what its version can do; the rest is left out with the reason.
            (Self::IoModes, TargetKind::Postgres) => {
                &["io=none,asynch,directio,setall", "api=threads,io_uring"]
            }
            // Whatever the version: by which call the redo log is made durable.
            (Self::Commit, TargetKind::Postgres) => &["set.wal_sync_method=fdatasync,open_datasync"],
            (Self::Growth, TargetKind::Postgres) => &["io=none,directio"],
            (Self::Async, TargetKind::Postgres) => &["fs=ext4", "io=none,asynch", "sessions=32"],
            (Self::IoModes, _) => &["io=none,asynch,directio,setall,concurrent", "api=io_uring,libaio"],
            (Self::Growth, TargetKind::Mariadb) => &["io=none,directio,setall"],
            (Self::Growth, _) => &["io=none,directio,concurrent"],
            (Self::Commit | Self::Scan, _) => &["io=none,directio,setall"],
            (Self::RandomRead | Self::OrderEntry, _) => &["io=none,asynch,directio,setall"],
            (Self::Filesystem, _) => &[
                "fs=ext4:data=ordered,ext4:data=writeback,ext3:data=ordered,ext3:data=writeback,xfs,ext2,btrfs",
            ],
            (Self::Scheduler, _) => &["fs=ext4", "scheduler=none,mq-deadline,kyber,bfq"],
            // Its configurations are moves, not combinations. What is fast has the same file system as what is slow. The cache holds
            // the tables, as that of a database does that has been open for a while, and no log is switched every second.
            (Self::Placement, _) => &["fs=ext4", "redo_size=64m", "cache=64m"],
            // As in `placement`; the cache holds a small part of the table, or the flash cache had nothing to do.
            (Self::Flash, _) => &["fs=ext4", "redo_size=64m", "cache=8m"],
            (Self::Async, _) => &["fs=ext4", "io=directio,setall", "sessions=32"],
            // `directio` is one writer at a time by its meaning, so it says nothing of the file system.
            (Self::Writers, _) => &["io=none,setall,concurrent", "writers=1,8"],
            (Self::Dnfs, _) => &[Self::DNFS_VARIES],
            (Self::Syscalls, _) => &["fs=here,ext4,xfs,btrfs", "io=asynch,setall", "api=io_uring,libaio"],
        }
    }

    /// The factor without which it would not be itself; it stays when the user varies others beside.
    const fn own_factor(self) -> Option<Factor> {
        match self {
            Self::Filesystem => Some(Factor::Fs),
            Self::Scheduler => Some(Factor::Scheduler),
            Self::Async | Self::Syscalls => Some(Factor::Io),
            Self::Writers => Some(Factor::Writers),
            Self::Dnfs => Some(Factor::Nfs),
            _ => None,
        }
    }

    /// What it runs on when `asked` is what the user has: how a file system takes single calls is a matter of plain files.
    pub fn target(self, asked: TargetKind) -> TargetKind {
        if matches!(self, Self::Writers | Self::Syscalls) { TargetKind::Files } else { asked }
    }

    /// What is varied and held: what the user said; beside it what the case varies, unless the user varies something
    /// else instead. A factor that the user names is the user's.
    ///
    /// # Panics
    /// A default of ours that cannot be read: a bug, and a test looks for it.
    pub fn vary(self, target: TargetKind, asked: &[Vary]) -> Vec<Vary> {
        let own = self.varies(target).iter().map(|text| text.parse::<Vary>().expect("a default of ours"));
        let theirs = asked.iter().any(|vary| vary.levels.len() > 1);
        let mut all: Vec<Vary> = own
            .filter(|vary| !asked.iter().any(|other| other.factor == vary.factor))
            .filter(|vary| !theirs || self.own_factor().is_some() || vary.levels.len() == 1)
            .chain(asked.iter().cloned())
            .collect();
        all.sort_by_key(|vary| vary.factor.rank());
        all
    }

    /// Shortest window that answers its question: steadiness over time wants some time.
    pub const fn window_min(self) -> Nanos {
        match self {
            Self::Async => Nanos::millis(4_000),
            _ => Nanos(0),
        }
    }

    /// Whether figures of a slow and a fast place are what it is about.
    pub const fn slow_and_fast(self) -> bool {
        matches!(self, Self::Placement | Self::Async | Self::Flash)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Case {
    type Err = String;

    /// # Errors
    /// A sentence with the nearest name and the list.
    fn from_str(text: &str) -> Result<Self, String> {
        let names = Self::ALL.map(Self::name);
        Self::ALL.into_iter().find(|case| case.name() == text.trim()).ok_or_else(|| {
            let meant =
                nearest(text, &names).map_or_else(String::new, |name| format!(". Did you mean {name}?"));
            format!("{text:?} is not a case{meant}. Cases: {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn varied(case: Case, asked: &[&str]) -> Vec<String> {
        let asked: Vec<Vary> = asked.iter().map(|text| text.parse().unwrap()).collect();
        case.vary(TargetKind::Engine, &asked).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_case_reads_its_name_and_its_defaults() {
        for case in Case::ALL {
            assert_eq!(case.name().parse(), Ok(case));
            for target in TargetKind::ALL {
                case.vary(target, &[]);
                assert!(!case.workloads(case.target(target)).is_empty() || target == TargetKind::Files);
            }
        }
        assert!("filesytem".parse::<Case>().unwrap_err().contains("Did you mean filesystem?"));
    }

    #[test]
    fn what_the_user_varies_replaces_or_crosses() {
        // Its own factor stays, and is crossed with what the user varies.
        assert_eq!(varied(Case::Scheduler, &["io=none,setall"]).len(), 3);
        assert_eq!(varied(Case::Filesystem, &["fs=ext4,xfs"]), ["fs=ext4,xfs"]);
        // A case that only happens to vary the mode varies what the user wants instead.
        assert_eq!(varied(Case::Commit, &["place.redo=/ssd,/hdd"]), ["place.redo=/ssd,/hdd"]);
        assert_eq!(varied(Case::IoModes, &["fs=ext4,xfs"]), ["fs=ext4,xfs"]);
        // What has one level is held, and changes nothing else.
        assert_eq!(varied(Case::Commit, &["fs=xfs"]), ["fs=xfs", "io=none,directio,setall"]);
        assert_eq!(varied(Case::IoModes, &["api=libaio"]).len(), 2);
    }
}
