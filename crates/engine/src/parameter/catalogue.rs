//! The list of parameters. What they do is where they are used; how they are read and checked is in the parent module.

use super::{Definition, Kind, Modifiable};

macro_rules! catalogue {
    ($($variant:ident $name:literal $kind:expr, $default:literal, $modifiable:ident, $description:literal;)*) => {
        /// A parameter, by the name that Oracle has for it; those that only this engine has are named in Oracle's manner.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Parameter {
            $(#[doc = $description] $variant,)*
        }

        impl Parameter {
            /// All of them, sorted by name.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];
        }

        pub(super) static DEFINITIONS: &[Definition] = &[$(Definition {
            name: $name,
            kind: $kind,
            default: $default,
            modifiable: Modifiable::$modifiable,
            description: $description,
        },)*];
    };
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

const fn number(min: u64, max: u64) -> Kind {
    Kind::Integer { min, max }
}

const fn size(min: u64, max: u64) -> Kind {
    Kind::Size { min, max }
}

catalogue! {
    AshInterval "_ash_sampling_interval" number(10, 60_000), "1000", Restart,
        "milliseconds between two samples of the active sessions";
    WritesMax "_db_writer_max_writes" number(1, 4096), "64", Restart,
        "writes in flight of one database writer";
    DirectReadDepth "_direct_read_depth" number(1, 256), "4", Now,
        "requests in flight of one direct path read";
    FlashCacheTimeout "_flash_cache_timeout" number(10, 3_600_000), "5000", Restart,
        "milliseconds that a transfer of the flash cache may take before the cache is switched off";
    SerialDirectRead "_serial_direct_read" Kind::Choice(&["auto", "always", "never"]), "auto", Now,
        "whether full scans go past the cache: auto above _small_table_threshold";
    SmallTableThreshold "_small_table_threshold" number(0, u32::MAX as u64), "0", Now,
        "blocks up to which a full scan goes through the cache; 0 is 2 % of the cache";
    VerifyWrites "_verify_writes" Kind::Boolean, "false", Restart,
        "whether 12 bytes are kept of each block that is written, so that what is read can be held against it";
    CommitLogging "commit_logging" Kind::Choice(&["immediate", "batch"]), "immediate", Now,
        "whether a commit that does not wait (commit_wait) wakes the log writer at once, or leaves it to its next write, at most a second later";
    CommitWait "commit_wait" Kind::Choice(&["wait", "nowait"]), "wait", Now,
        "nowait returns from a commit before its redo is on disk: the last commits may be lost in a crash";
    BlockSize "db_block_size" size(2 * KIB, 32 * KIB), "8k", Creation,
        "bytes of a database block, a power of two";
    CacheSize "db_cache_size" size(MIB / 2, 64 * 1024 * GIB), "128m", Restart,
        "bytes of the buffer cache";
    MultiblockReadCount "db_file_multiblock_read_count" number(1, 1024), "128", Now,
        "blocks of one request of a full scan";
    Files "db_files" number(8, 65_533), "200", Restart,
        "data and temp files at most";
    FlashCacheFile "db_flash_cache_file" Kind::Paths, "", Restart,
        "files or devices of the flash cache, by comma, at most 16";
    FlashCachePolicy "db_flash_cache_policy" Kind::Choice(&["scan_resistant", "classic"]), "scan_resistant", Restart,
        "what is let into the flash cache: what is wanted again, or everything that is evicted";
    FlashCacheSize "db_flash_cache_size" Kind::Sizes, "0", Restart,
        "bytes of each file of the flash cache, by comma; 0 is no flash cache";
    WriterProcesses "db_writer_processes" number(1, 36), "1", Restart,
        "database writers";
    RedoTarget "fast_start_redo_target" size(0, 1024 * GIB), "0", Now,
        "bytes of redo between the checkpoint and the end of the log that are aimed at; 0 is half of the redo groups";
    IoApi "filesystemio_api" Kind::Choice(&["auto", "io_uring", "libaio", "threads"]), "auto", Restart,
        "how asynchronous requests reach the kernel; auto takes io_uring, else libaio, else threads";
    IoMode "filesystemio_options" Kind::Choice(&["none", "asynch", "directio", "setall", "concurrent"]), "none", Restart,
        "how files are opened and driven: through the page cache or past it, one call at a time or many";
    LogBlockSize "log_block_size" size(512, 64 * KIB), "4k", Creation,
        "bytes that redo writes are padded to, a power of two";
    LogBuffer "log_buffer" size(64 * KIB, GIB), "8m", Restart,
        "bytes of the log buffer; at most a quarter of the smallest redo group is used";
    CheckpointsToAlert "log_checkpoints_to_alert" Kind::Boolean, "false", Now,
        "whether the alert log notes each checkpoint";
    Sessions "sessions" number(16, 65_000), "400", Restart,
        "sessions at most, background processes included";
    SortAreaSize "sort_area_size" size(64 * KIB, 64 * GIB), "16m", Now,
        "bytes of one sort in memory before it spills to temp";
    TornPageProtection "torn_page_protection" Kind::Choice(&["redo", "doublewrite", "atomic", "off"]), "redo", Restart,
        "how a block that was half written when the power went is mended: from full images in redo, from a second copy, or by the device";
    UndoTablespace "undo_tablespace" Kind::Name, "UNDO", Now,
        "where new transactions keep their undo";
}
