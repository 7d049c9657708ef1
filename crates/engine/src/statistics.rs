//! Counters with Oracle's names: `v$sysstat`.
//!
//! Each [`crate::Context`] has its own [`Counters`], which only its thread writes, so counting is a load and a store without a
//! lock prefix. [`Statistics`] adds them up when somebody looks; what an ended context counted stays in the sum. Per-file
//! counters are `files::iostat`'s.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Class of a statistic, with the bit that `v$sysstat.class` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// What users do.
    User = 1,
    /// Redo.
    Redo = 2,
    /// Locks.
    Enqueue = 4,
    /// Buffer cache.
    Cache = 8,
    /// Statements.
    Sql = 64,
    /// For those who look closer.
    Debug = 128,
}

macro_rules! catalogue {
    ($($variant:ident $class:ident $name:literal $meaning:literal)*) => {
        /// A counter. The names are Oracle's where Oracle has the counter.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Statistic {
            $(#[doc = $meaning] $variant,)*
        }

        impl Statistic {
            /// All of them, in the order of `v$sysstat.statistic#`.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// As `v$sysstat.name`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// As `v$sysstat.class`.
            pub const fn class(self) -> Class {
                match self { $(Self::$variant => Class::$class,)* }
            }

            /// What is counted, in one sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }
        }
    };
}

catalogue! {
    LogonsCumulative User "logons cumulative" "Sessions begun."
    UserCommits User "user commits" "Transactions committed that had changed something."
    UserRollbacks User "user rollbacks" "Transactions rolled back by their session."
    SessionLogicalReads User "session logical reads" "Blocks asked of the cache: db block gets and consistent gets."
    DbBlockGets Cache "db block gets" "Blocks asked for to change them."
    ConsistentGets Cache "consistent gets" "Blocks asked for to read them."
    DbBlockChanges Cache "db block changes" "Blocks changed."
    ConsistentChanges Cache "consistent changes" "Undo records applied so that a reader sees an older version."
    PhysicalReads Cache "physical reads" "Blocks read from data and temp files."
    PhysicalReadsCache Cache "physical reads cache" "Blocks read into the cache."
    PhysicalReadsCachePrefetch Cache "physical reads cache prefetch" "Blocks read into the cache before they were asked for."
    PhysicalReadsDirect Cache "physical reads direct" "Blocks read past the cache."
    PhysicalReadsDirectTemporary Cache "physical reads direct temporary tablespace" "Blocks of sorts read back."
    PhysicalReadIoRequests Cache "physical read IO requests" "Read requests to data and temp files."
    PhysicalReadBytes Cache "physical read bytes" "Bytes read from data and temp files."
    PhysicalWrites Cache "physical writes" "Blocks written to data and temp files."
    PhysicalWritesFromCache Cache "physical writes from cache" "Blocks written by the database writers."
    PhysicalWritesDirect Cache "physical writes direct" "Blocks written past the cache."
    PhysicalWritesDirectTemporary Cache "physical writes direct temporary tablespace" "Blocks of sorts written."
    PhysicalWriteIoRequests Cache "physical write IO requests" "Write requests to data and temp files."
    PhysicalWriteBytes Cache "physical write bytes" "Bytes written to data and temp files."
    FreeBufferRequested Cache "free buffer requested" "Times a frame was needed for a block."
    FreeBufferInspected Cache "free buffer inspected" "Frames passed over in the search for one that can be reused."
    DirtyBuffersInspected Cache "dirty buffers inspected" "Of those, the dirty ones."
    FlashHits Cache "physical read flash cache hits" "Blocks that came from the flash cache, also while they waited to be written; not among physical reads."
    PhysicalReadRequestsOptimized Cache "physical read requests optimized" "Read requests to the flash cache."
    FlashInserts Cache "flash cache inserts" "Blocks written to the flash cache."
    FlashEvictionAgedOut Cache "flash cache eviction: aged out" "Blocks given up in the flash cache for others."
    FlashEvictionPinned Cache "flash cache eviction: buffer pinned" "Times a block could not be given up there because it was being written."
    FlashEvictionInvalidated Cache "flash cache eviction: invalidated" "Blocks given up there because they changed, or their object went."
    FlashSkipOverloaded Cache "flash cache insert skip: DBWR overloaded" "Blocks not written to the flash cache because its writer was behind."
    FlashSkipCorrupt Cache "flash cache insert skip: corrupt" "Blocks not written there because they have another block's address."
    FlashSkipExists Cache "flash cache insert skip: exists" "Blocks not written there because they were there."
    FlashSkipModification Cache "flash cache insert skip: modification" "Blocks not written there because they changed while they waited."
    FlashSkipNotCurrent Cache "flash cache insert skip: not current" "Blocks not written there because memory and disk may differ."
    FlashSkipNotUseful Cache "flash cache insert skip: not useful" "Blocks not written there because that would not pay: seen once, blank, of a sort, or FLASH_CACHE NONE."
    DbwrCheckpoints Cache "DBWR checkpoints" "Times the database writers were asked to write up to some redo position."
    DbwrCheckpointBuffersWritten Cache "DBWR checkpoint buffers written" "Blocks written so that the checkpoint moves on."
    DbwrMakeFreeRequests Cache "DBWR make free requests" "Times the database writers were asked for frames that can be reused."
    DbwrUndoBlockWrites Cache "DBWR undo block writes" "Blocks of undo written."
    DoublewriteBlocks Cache "doublewrite blocks" "Blocks written to the doublewrite file before they went home."
    BackgroundCheckpointsStarted Cache "background checkpoints started" "Checkpoints begun."
    BackgroundCheckpointsCompleted Cache "background checkpoints completed" "Checkpoints ended."
    RedoEntries Redo "redo entries" "Redo records appended."
    RedoSize Redo "redo size" "Bytes of redo records."
    RedoPageImages Redo "redo page images" "Full pages that went into redo against torn writes."
    RedoBlocksWritten Redo "redo blocks written" "Log blocks written."
    RedoWrites Redo "redo writes" "Writes by the log writer."
    RedoWriteTime Redo "redo write time (usec)" "Microseconds in those writes."
    RedoWastage Redo "redo wastage" "Bytes that padded writes to whole log blocks."
    RedoSynchWrites Redo "redo synch writes" "Commits that waited for the log."
    RedoSynchTime Redo "redo synch time (usec)" "Microseconds that they waited."
    RedoLogSpaceRequests Redo "redo log space requests" "Times the next log group was not free yet."
    RedoBufferAllocationRetries Redo "redo buffer allocation retries" "Times the log buffer was full."
    EnqueueRequests Enqueue "enqueue requests" "Locks asked for."
    EnqueueWaits Enqueue "enqueue waits" "Locks waited for."
    EnqueueDeadlocks Enqueue "enqueue deadlocks" "Statements undone because two sessions waited for each other."
    TableScansShort Sql "table scans (short tables)" "Full scans through the cache."
    TableScansLong Sql "table scans (long tables)" "Full scans of tables above the threshold."
    TableScansDirect Sql "table scans (direct read)" "Full scans past the cache."
    TableScanRowsGotten Sql "table scan rows gotten" "Rows that full scans looked at."
    TableScanBlocksGotten Sql "table scan blocks gotten" "Blocks that full scans looked at."
    TableFetchByRowid Sql "table fetch by rowid" "Rows fetched by address."
    TableFetchContinuedRow Sql "table fetch continued row" "Rows that had moved to another block."
    IndexFetchByKey Sql "index fetch by key" "Look-ups of one key."
    IndexScans Sql "index scans kdiixs1" "Range scans of indexes."
    LeafNodeSplits Sql "leaf node splits" "Index leaves split."
    LeafNode9010Splits Sql "leaf node 90-10 splits" "Of those, at the right edge, leaving the left leaf full."
    BranchNodeSplits Sql "branch node splits" "Index branches split."
    SortsMemory Sql "sorts (memory)" "Sorts that fitted sort_area_size."
    SortsDisk Sql "sorts (disk)" "Sorts that spilled to temp."
    SortsRows Sql "sorts (rows)" "Rows sorted."
    UndoChangeVectorSize Debug "undo change vector size" "Bytes of undo records."
    TransactionRollbacks Debug "transaction rollbacks" "Transactions rolled back, by their session or by recovery."
    RollbackUndoRecordsApplied Debug "rollback changes - undo records applied" "Undo records applied by rollbacks."
}

const COUNT: usize = Statistic::ALL.len();

/// One context's counters; aligned so that two contexts never share a cache line.
#[repr(align(128))]
struct Shard([AtomicU64; COUNT]);

impl Shard {
    fn new() -> Self {
        Self([const { AtomicU64::new(0) }; COUNT])
    }

    fn add_to(&self, sums: &mut [u64; COUNT]) {
        for (sum, value) in sums.iter_mut().zip(&self.0) {
            *sum += value.load(Ordering::Relaxed);
        }
    }
}

struct Shards {
    live: Vec<Arc<Shard>>,
    /// What contexts that are gone had counted.
    ended: [u64; COUNT],
}

/// All counters of an instance, from its start.
pub struct Statistics {
    shards: Mutex<Shards>,
}

impl Statistics {
    /// All zero.
    pub fn new() -> Arc<Self> {
        Arc::new(Self { shards: Mutex::new(Shards { live: Vec::new(), ended: [0; COUNT] }) })
    }

    /// Counters for one more context.
    pub fn counters(self: &Arc<Self>) -> Counters {
        let shard = Arc::new(Shard::new());
        self.shards.lock().live.push(shard.clone());
        Counters { shard, home: self.clone() }
    }

    /// Each statistic with its sum over all contexts, in the order of [`Statistic::ALL`].
    pub fn snapshot(&self) -> Vec<(Statistic, u64)> {
        Statistic::ALL.iter().copied().zip(self.sums()).collect()
    }

    /// The sum of one.
    pub fn value(&self, statistic: Statistic) -> u64 {
        self.sums()[statistic as usize]
    }

    fn sums(&self) -> [u64; COUNT] {
        let shards = self.shards.lock();
        let mut sums = shards.ended;
        shards.live.iter().for_each(|shard| shard.add_to(&mut sums));
        sums
    }
}

/// The counters of one context.
pub struct Counters {
    shard: Arc<Shard>,
    home: Arc<Statistics>,
}

impl Counters {
    /// Adds `n`. Only the context's own thread calls this, so a load and a store lose nothing.
    #[inline]
    pub fn add(&self, statistic: Statistic, n: u64) {
        let value = &self.shard.0[statistic as usize];
        value.store(value.load(Ordering::Relaxed) + n, Ordering::Relaxed);
    }

    /// What this context has counted: `v$sesstat`.
    pub fn value(&self, statistic: Statistic) -> u64 {
        self.shard.0[statistic as usize].load(Ordering::Relaxed)
    }
}

impl Drop for Counters {
    /// Under the lock that readers take, so that no reader counts it twice or not at all.
    fn drop(&mut self) {
        let mut shards = self.home.shards.lock();
        self.shard.add_to(&mut shards.ended);
        shards.live.retain(|shard| !Arc::ptr_eq(shard, &self.shard));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        let mut names: Vec<_> = Statistic::ALL.iter().map(|s| s.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), COUNT);
        assert!(Statistic::ALL.iter().enumerate().all(|(index, s)| *s as usize == index));
    }

    #[test]
    fn what_an_ended_session_counted_stays() {
        let statistics = Statistics::new();
        let first = statistics.counters();
        first.add(Statistic::UserCommits, 2);
        let second = statistics.counters();
        second.add(Statistic::UserCommits, 40);
        assert_eq!(second.value(Statistic::UserCommits), 40);
        drop(first);
        assert_eq!(statistics.value(Statistic::UserCommits), 42);
        drop(second);
        assert_eq!(statistics.value(Statistic::UserCommits), 42);
        assert_eq!(statistics.value(Statistic::PhysicalReads), 0);
    }
}
