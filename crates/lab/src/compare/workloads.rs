//! The workloads of a visit: what each is called, asks and measures, and on what it can be done.

use super::TargetKind;
use crate::workload::Trial;

/// The workloads of a visit in the order in which they run. The order is fixed: each prepares what it needs itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Single-block reads by one session, nothing cached.
    ReadColdOne,
    /// Single-block reads by all sessions, nothing cached.
    ReadCold,
    /// Single-block reads of a region that a page cache would hold.
    ReadCached,
    /// Case `growth`: bulk write.
    GrowthWrite,
    /// Case `growth`: scan after the page cache was dropped.
    GrowthScanCold,
    /// Case `growth`: the same scan again.
    GrowthScanWarm,
    /// One session commits.
    CommitOne,
    /// All sessions commit.
    Commit,
    /// Transactions that read, change and commit, beside dirty-page writes: order entry where there is a database.
    Mixed,
    /// Many writers on one file.
    Writers,
    /// Case `scan`: past the database's cache, nothing cached.
    ScanDirectPath,
    /// Case `scan`: into the database's cache, nothing cached.
    ScanScattered,
    /// Case `scan`: again, when caches hold what they could.
    ScanCached,
    /// Case `flash`: a scan through the cache when all caches are empty.
    FlashPassOne,
    /// The same again: the caches are as the first pass left them.
    FlashPassTwo,
    /// And again.
    FlashPassThree,
    /// Many writers make one file longer.
    WritersExtend,
    /// Case `syscalls`: one submitter reads single blocks in batches, nothing cached.
    BatchRead,
    /// Case `syscalls`: the same for writes to blocks that are there.
    BatchOverwrite,
    /// Case `syscalls`: the same for writes that make the file longer.
    BatchExtend,
    /// Case `dnfs`: single-block reads by all sessions, while the data goes to another node and comes back.
    ReadMoved,
}

/// What a workload is called, asks and measures.
pub struct About {
    /// Key in the record.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    /// The question that it answers.
    pub question: &'static str,
    /// Unit of its rate.
    pub metric: &'static str,
    /// Gets a verdict of its own on the first page.
    pub headline: bool,
}

impl Workload {
    /// All, in running order.
    pub const ALL: [Self; 21] = [
        Self::ReadColdOne,
        Self::ReadCold,
        Self::ReadCached,
        Self::GrowthWrite,
        Self::GrowthScanCold,
        Self::GrowthScanWarm,
        Self::CommitOne,
        Self::Commit,
        Self::Mixed,
        Self::Writers,
        Self::ScanDirectPath,
        Self::ScanScattered,
        Self::ScanCached,
        Self::FlashPassOne,
        Self::FlashPassTwo,
        Self::FlashPassThree,
        Self::WritersExtend,
        Self::BatchRead,
        Self::BatchOverwrite,
        Self::BatchExtend,
        Self::ReadMoved,
    ];

    /// Its description.
    pub fn about(self) -> About {
        let about =
            |name, title, question, metric, headline| About { name, title, question, metric, headline };
        match self {
            Self::ReadColdOne => about(
                "read-cold-1",
                "single-block reads, cold, one session",
                "How long does one session wait for a block that no cache holds?",
                "reads/s",
                false,
            ),
            Self::ReadCold => about(
                "read-cold",
                "single-block reads, cold",
                "How many blocks per second do the sessions read that no cache holds?",
                "reads/s",
                true,
            ),
            Self::ReadCached => about(
                "read-cached",
                "single-block reads, hot region",
                "What does the file system's page cache give to blocks that the database's own cache missed?",
                "reads/s",
                true,
            ),
            Self::GrowthWrite => about(
                "growth-write",
                "growth: bulk write",
                "How fast does a table grow, commit included?",
                "MB/s",
                true,
            ),
            Self::GrowthScanCold => about(
                "growth-scan-cold",
                "growth: full scan, cold",
                "How fast is it scanned when no cache holds it?",
                "MB/s",
                true,
            ),
            Self::GrowthScanWarm => about(
                "growth-scan-warm",
                "growth: full scan, second pass",
                "How fast is it scanned again?",
                "MB/s",
                false,
            ),
            Self::CommitOne => about(
                "commit-1",
                "redo commits, one session",
                "How long does a lone commit take?",
                "commits/s",
                false,
            ),
            Self::Commit => about(
                "commit",
                "redo commits",
                "How many commits per second do the sessions get through one log writer?",
                "commits/s",
                true,
            ),
            Self::Mixed => about(
                "mixed",
                "transactions beside dirty-page writes",
                "How many transactions (reads, changes, a commit) per second, while dirty pages are written?",
                "transactions/s",
                true,
            ),
            Self::Writers => about(
                "writers",
                "many writers on one file",
                "How many durable single-block writes per second do many writers bring into one file?",
                "writes/s",
                true,
            ),
            Self::ScanDirectPath => about(
                "scan-direct-path",
                "full scan, direct path",
                "How fast is a table scanned past the database's cache?",
                "MB/s",
                true,
            ),
            Self::ScanScattered => about(
                "scan-scattered",
                "full scan, scattered",
                "How fast is it read into the database's cache?",
                "MB/s",
                true,
            ),
            Self::ScanCached => about(
                "scan-cached",
                "full scan, again",
                "How fast is it scanned again, when caches hold what they could?",
                "MB/s",
                true,
            ),
            Self::FlashPassOne => about(
                "flash-pass-1",
                "scan, first pass",
                "How fast is a table scanned that no cache holds?",
                "MB/s",
                true,
            ),
            Self::FlashPassTwo => about(
                "flash-pass-2",
                "scan, second pass",
                "How fast is it scanned again, with what the first pass left in the caches?",
                "MB/s",
                true,
            ),
            Self::FlashPassThree => about(
                "flash-pass-3",
                "scan, third pass",
                "How fast is it scanned a third time?",
                "MB/s",
                true,
            ),
            Self::WritersExtend => about(
                "writers-extend",
                "many writers extend one file",
                "How many durable single-block writes per second do many writers append to one file?",
                "writes/s",
                true,
            ),
            Self::BatchRead => about(
                "batch-read",
                "batches of cold reads",
                "How many single blocks per second does one process read in batches, nothing cached?",
                "reads/s",
                true,
            ),
            Self::BatchOverwrite => about(
                "batch-overwrite",
                "batches of overwriting writes",
                "How many durable writes per second does one process hand over in batches, to blocks that are there?",
                "writes/s",
                true,
            ),
            Self::BatchExtend => about(
                "batch-extend",
                "batches of extending writes",
                "How many durable writes per second does one process hand over in batches, each making the file longer?",
                "writes/s",
                true,
            ),
            Self::ReadMoved => about(
                "read-moved",
                "single-block reads while the data moves",
                "How many blocks per second do the sessions read while the data goes to another node, and comes back?",
                "reads/s",
                true,
            ),
        }
    }

    /// Whether `target` can do it.
    pub fn runs_on(self, target: TargetKind) -> bool {
        match target {
            TargetKind::Files => !self.scans() && !self.passes() && self != Self::ReadMoved,
            // Many writers on one file are database writers there, and part of `mixed`.
            TargetKind::Engine => !self.plain(),
            // No server has direct path reads that one could ask for, or a flash cache.
            TargetKind::Postgres | TargetKind::Mariadb => {
                !self.plain() && !self.passes() && self != Self::ScanDirectPath
            }
        }
    }

    /// Whether it is a matter of plain files.
    fn plain(self) -> bool {
        self.batches() || matches!(self, Self::Writers | Self::WritersExtend)
    }

    /// Whether one process hands its requests over in batches.
    pub fn batches(self) -> bool {
        matches!(self, Self::BatchRead | Self::BatchOverwrite | Self::BatchExtend)
    }

    /// Whether it makes a new file longer block by block.
    pub fn extends(self) -> bool {
        matches!(self, Self::WritersExtend | Self::BatchExtend)
    }

    /// Whether it is a fixed amount of work instead of a span of time.
    pub fn bulk(self) -> bool {
        self.scans()
            || self.passes()
            || matches!(self, Self::GrowthWrite | Self::GrowthScanCold | Self::GrowthScanWarm)
    }

    /// Whether it reads from the table of rows.
    pub fn reads_rows(self) -> bool {
        matches!(self, Self::ReadColdOne | Self::ReadCold | Self::ReadCached | Self::ReadMoved)
    }

    /// Whether it scans the table of case `scan`.
    pub fn scans(self) -> bool {
        matches!(self, Self::ScanDirectPath | Self::ScanScattered | Self::ScanCached)
    }

    /// Whether it is a pass of case `flash`.
    pub fn passes(self) -> bool {
        matches!(self, Self::FlashPassOne | Self::FlashPassTwo | Self::FlashPassThree)
    }

    /// Whether it begins as the workload before left everything: nothing is prepared.
    pub fn goes_on(self) -> bool {
        matches!(self, Self::FlashPassTwo | Self::FlashPassThree)
    }

    /// Sessions or writers at once, when the configuration has `sessions`.
    pub fn sessions(self, sessions: u32) -> u32 {
        match self {
            Self::ReadColdOne | Self::CommitOne => 1,
            Self::Writers | Self::WritersExtend => super::configuration::WRITERS,
            alone if alone.bulk() || alone.batches() => 1,
            _ => sessions,
        }
    }

    /// Its value in its own metric.
    pub fn rate(self, trial: &Trial) -> f64 {
        match self {
            bulk if bulk.bulk() => trial.megabytes_per_second(),
            _ => trial.rate(),
        }
    }

    /// Whether each of its requests must reach the device as one read when the mode bypasses the page cache.
    pub fn reads_only(self) -> bool {
        matches!(
            self,
            Self::ReadColdOne
                | Self::ReadCold
                | Self::ReadMoved
                | Self::ReadCached
                | Self::GrowthScanCold
                | Self::GrowthScanWarm
                | Self::ScanDirectPath
                | Self::ScanScattered
                | Self::ScanCached
                | Self::FlashPassOne
                | Self::FlashPassTwo
                | Self::FlashPassThree
                | Self::BatchRead
        )
    }

    /// Whether a page cache may serve it by design.
    pub fn cache_intended(self) -> bool {
        matches!(self, Self::ReadCached | Self::GrowthScanWarm | Self::ScanCached)
    }
}
