//! The rows of a record: one struct for each table, one public field for each column.
//!
//! Times in `…_ns` are nanoseconds of this run's monotonic clock (`units::clock::now`), `…_utc` is RFC 3339. The first
//! table is the run itself, the others follow in the order in which a run fills them. `docs/record.md` says the same to
//! readers of the file; a test holds the two together.

use crate::table::{Description, Table, table};
use serde_json::Value;

/// Every table, in the order in which the schema creates them: owners before what they own.
pub(crate) const TABLES: [Description; 31] = [
    Experiment::TABLE,
    Ending::TABLE,
    FactRow::TABLE,
    PlanRow::TABLE,
    ConfigurationRow::TABLE,
    WorkloadRow::TABLE,
    BlockRow::TABLE,
    VisitRow::TABLE,
    VisitEndRow::TABLE,
    PhaseRow::TABLE,
    IntervalRow::TABLE,
    HistogramRow::TABLE,
    CounterRow::TABLE,
    CurvePointRow::TABLE,
    CheckRow::TABLE,
    EstimateRow::TABLE,
    EventRow::TABLE,
    WaitEventRow::TABLE,
    StatisticRow::TABLE,
    FileStatRow::TABLE,
    AshRow::TABLE,
    AshTickRow::TABLE,
    NativeWaitRow::TABLE,
    BufferStateRow::TABLE,
    RedoStateRow::TABLE,
    ReferenceRow::TABLE,
    DnfsServerRow::TABLE,
    DnfsChannelRow::TABLE,
    DnfsFileRow::TABLE,
    DnfsStatRow::TABLE,
    DnfsMoveRow::TABLE,
];

table! {
    /// What was asked, by whom it is answered, and where chance came from. One row.
    struct Experiment in "experiment" {
        /// `calibrate`, `compare`, `run`, `advise` or `doctor`.
        kind: String,
        /// The named case, where one was asked for.
        case: Option<String>,
        /// What was measured: a directory, a file or a device, as resolved.
        target: String,
        /// The command as typed.
        command: String,
        /// The seed of all chance in the run.
        seed: u64,
        /// The method's version: numbers of different major versions are not compared.
        method_version: String,
        /// Redoubt's version.
        tool_version: String,
        /// `release` or `debug`; figures of a debug build say nothing.
        build_profile: String,
        /// When the run began.
        started_utc: String,
        /// The time the user allowed, seconds.
        budget_seconds: f64,
    }
}

table! {
    /// How the run ended. No row: it still runs, or it was killed.
    struct Ending in "ending" {
        /// `finished`, `interrupted` or `failed: …`.
        status: String,
        /// When.
        finished_utc: String,
    }
}

table! {
    /// A fact about the machine, the storage or the target, with where it was read.
    struct FactRow in "fact" {
        /// `host`, `cpu`, `memory`, `kernel`, `filesystem`, `device`, `target` ….
        layer: String,
        /// Which one of that layer: a device name, a mount point; empty for the host itself.
        object: String,
        /// What is stated.
        name: String,
        /// The value as text; `None` is *unknown*, never zero.
        value: Option<String>,
        /// Unit of the value; empty for words.
        unit: String,
        /// The file or the call that said so.
        source: String,
    }
}

table! {
    /// A plan, stored before the first visit that follows it.
    struct PlanRow in "plan" {
        /// When it was stored.
        created_utc: String,
        /// Factors, margin, looks, seed, order, drop rules, primary question.
        json: Value,
        /// [`PlanRow::sha256`] of the row before it in the chain; empty for the first.
        previous_sha256: String,
        /// SHA-256 of `previous_sha256` and the JSON text, so that a first plan's is the plain hash of its text.
        sha256: String,
    }
}

table! {
    /// A point of the factor space.
    struct ConfigurationRow in "configuration" {
        /// What people call it: `setall (io_uring)`.
        name: String,
        /// Whether the others are compared with this one.
        is_baseline: bool,
        /// `(factor, level, cost of change)` with cost `easy`, `medium` or `hard` (method section 1).
        levels: Vec<(String, String, String)>,
    }
}

table! {
    /// What is done to the storage.
    struct WorkloadRow in "workload" {
        /// Stable key: `read-cold`, `commit` ….
        name: String,
        /// Title, question, metric, direction, sessions, block size, span.
        json: Value,
    }
}

table! {
    /// Visits close in time that hold every configuration: the unit of evidence.
    struct BlockRow in "block" {
        /// 0, 1, 2 … in run order.
        ordinal: u32,
        /// The order of configurations that chance chose, as positions in the plan.
        permutation: Vec<usize>,
        /// The seed of that choice.
        seed: u64,
    }
}

table! {
    /// A period in which one configuration is active.
    struct VisitRow in "visit" {
        /// The block it belongs to; none for calibration.
        block_id: Option<i64>,
        /// 0, 1, 2 … inside its block.
        position: u32,
        /// The configuration; none where nothing is compared.
        configuration_id: Option<i64>,
        /// When it began.
        started_utc: String,
        /// When it began, on the clock of the intervals.
        start_ns: u64,
    }
}

table! {
    /// How a visit ended, and the hash that seals it. No row: the run ended inside the visit.
    struct VisitEndRow in "visit_end" of "visit_id" {
        /// `measured`, or a word that says why not: `dropped`, `interrupted`, `failed` ….
        status: String,
        /// The reason declared beforehand under which it was dropped, with the counter that shows it.
        drop_reason: Option<String>,
        /// Hash of the row before it in the chain of plans and visits; empty for the first.
        previous_sha256: String,
        /// Hash of `previous_sha256`, the visit, its status, its phases, intervals and histograms.
        sha256: String,
    }
}

table! {
    /// A stretch of a visit in which one thing is done: `switch`, `settle`, `measure`, `prepare` ….
    struct PhaseRow in "phase" {
        /// The visit.
        visit_id: i64,
        /// The workload.
        workload_id: i64,
        /// `switch`, `settle`, `measure`, `prepare` ….
        kind: String,
        /// Threads that did it.
        threads: u32,
        /// Requests asked to be in flight, all threads together.
        in_flight: u32,
        /// Begin of the window.
        start_ns: u64,
        /// End of the window.
        end_ns: u64,
        /// Completed requests.
        ops: u64,
        /// Their bytes.
        bytes: u64,
        /// Requests that failed.
        errors: u64,
        /// Sum of all latencies, submit to reap.
        latency_sum_ns: u64,
        /// Length of the window.
        seconds: f64,
        /// The primary value, in `metric`.
        rate: f64,
        /// `reads/s`, `MB/s` (10⁶ bytes), `commits/s` ….
        metric: String,
        /// The steady-state class (method section 2.2).
        steady_class: Option<String>,
        /// Drift of the throughput inside the window.
        drift_percent_per_minute: Option<f64>,
        /// Requests really in flight, time-weighted, as the generator counted them.
        in_flight_mean: Option<f64>,
        /// Time inside submit calls / (window × threads), 0–1.
        submit_share: Option<f64>,
        /// CPU time of the worker threads, user and system.
        cpu_ns: Option<u64>,
        /// The open flags in force, as the kernel shows them.
        proof: Option<String>,
        /// Requests handed to storage from the first to the last, before and after the window too: what `device_ops` is
        /// held against.
        requests: Option<u64>,
        /// Requests that the device counted meanwhile.
        device_ops: Option<u64>,
        /// Bytes that the device counted meanwhile.
        device_bytes: Option<u64>,
    }
}

table! {
    /// A second (a quarter in the ramp) of one phase: the raw row from which figures are computed again.
    struct IntervalRow in "interval" of "phase_id" {
        /// Begin of the interval.
        t_ns: u64,
        /// `read`, `write`, `commit` ….
        op_class: String,
        /// Completed requests.
        ops: u64,
        /// Their bytes.
        bytes: u64,
        /// Sum of their latencies.
        lat_sum_ns: u64,
        /// The longest.
        lat_max_ns: u64,
        /// Requests that failed.
        errors: u64,
    }
}

table! {
    /// All latencies of one phase and class.
    struct HistogramRow in "histogram" of "phase_id" {
        /// As in the intervals.
        op_class: String,
        /// The bytes of `stats::histogram` (its `encode`).
        #[serde(with = "crate::export::hex")]
        encoded: Vec<u8>,
    }
}

table! {
    /// A raw counter of kernel, device or process at an instant.
    struct CounterRow in "counter" {
        /// The phase in which it was read; none between phases.
        phase_id: Option<i64>,
        /// When.
        t_ns: u64,
        /// `device`, `cpu`, `memory`, `process`, `pressure` ….
        layer: String,
        /// Which one of that layer.
        object: String,
        /// Name with unit last: `reads`, `read_bytes`, `steal_share` ….
        metric: String,
        /// The value; cumulative where the source is.
        value: f64,
    }
}

table! {
    /// One point of a load → latency curve.
    struct CurvePointRow in "curve_point" {
        /// Which curve: `random read 8 KiB`.
        series: String,
        /// Requests in flight.
        n: u32,
        /// Threads that kept them there.
        threads: u32,
        /// Requests in flight of each thread.
        depth: u32,
        /// `bracket`, `race`, `confirm`, `knee` or `beyond` (method section 6.2).
        stage: String,
        /// 0, 1, 2 … within the stage.
        round: u32,
        /// Completed requests per second.
        rate: f64,
        /// Mean latency.
        latency_mean_ns: f64,
        /// Standard deviation of the rate over the intervals of the point.
        sd: f64,
        /// Length of the sample.
        seconds: f64,
    }
}

table! {
    /// A consistency rule applied (method section 7), whether it held or not.
    struct CheckRow in "checks" {
        /// What it is about: `run`, `figure`, `phase` or `configuration`.
        scope: String,
        /// The id in that table; none for the run.
        scope_id: Option<i64>,
        /// Metric or configuration, by name.
        subject: String,
        /// `L1`, `F1` …, as in the method.
        check_id: String,
        /// The rule in words.
        title: String,
        /// `integrity`: a failure withdraws the figure. `context`: it labels it.
        severity: String,
        /// `pass`, `warn`, `fail` or `na`.
        status: String,
        /// What was found.
        value: Option<f64>,
        /// What would have been good.
        threshold: String,
        /// The rows or the reading behind it.
        evidence: String,
    }
}

table! {
    /// A figure as the run computed it, with its interval.
    struct EstimateRow in "estimate" {
        /// Stable key: `read_iops_max` ….
        metric: String,
        /// What people read.
        label: String,
        /// The figure, in `unit`.
        value: f64,
        /// Lower end of the interval.
        low: Option<f64>,
        /// Upper end of the interval.
        high: Option<f64>,
        /// Confidence level of the interval, 0–1.
        level: Option<f64>,
        /// How many independent values it rests on.
        n: u64,
        /// Unit.
        unit: String,
        /// Steady-state class of the window, or that steadiness was not proven.
        steady: Option<String>,
        /// What a reader must know beside the number.
        note: Option<String>,
        /// Mean latency at the figure's operating point.
        latency_ns: Option<f64>,
        /// 99th percentile of the latency there.
        latency_p99_ns: Option<f64>,
        /// The configuration, where several are compared.
        configuration_id: Option<i64>,
        /// Requests in flight at the operating point.
        in_flight: Option<u32>,
        /// Threads at the operating point.
        threads: Option<u32>,
    }
}

table! {
    /// Something that happened: a decision of the run, a surprise, a change to the system.
    struct EventRow in "event" {
        /// When.
        utc: String,
        /// When, on the clock of the intervals.
        t_ns: u64,
        /// `collapse`, `mix`, `round`, `cache_dropped` ….
        kind: String,
        /// What is to be known of it.
        json: Value,
    }
}

table! {
    /// What sessions waited for in one phase: counted exactly by the embedded database, concluded from samples on a server.
    struct WaitEventRow in "wait_event" of "phase_id" {
        /// Whether users' sessions waited; false: processes of the database.
        foreground: bool,
        /// Its name, as Oracle has it. Parts of `log file sync` are rows `log file sync: queue`, `: write`, `: wake-up`.
        event: String,
        /// Its class.
        wait_class: String,
        /// Waits that ended in the phase; NULL where samples tell of the time alone (`statistic` `sampled`).
        waits: Option<u64>,
        /// Those that ended because a time ran out.
        timeouts: u64,
        /// Time of all of them.
        time_ns: u64,
        /// Waits by length: number k counts those shorter than 2^k µs that fit no smaller one.
        histogram_micro: Vec<u64>,
    }
}

table! {
    /// A counter of the database over one phase.
    struct StatisticRow in "statistic" of "phase_id" {
        /// `system` (`v$sysstat`), `time` (`v$sys_time_model`, nanoseconds) or `sampled` (`looks` at a server's sessions that the
        /// phase's waits and times were concluded from).
        class: String,
        /// Its name, as Oracle has it.
        name: String,
        /// What it grew by.
        value: f64,
    }
}

table! {
    /// What one file of the database saw in one phase.
    struct FileStatRow in "file_stat" of "phase_id" {
        /// Absolute file number; 0 for redo and control files.
        file_no: u32,
        /// Where it is.
        path: String,
        /// `Data File`, `Temp File`, `Log File`, `Control File`, `Flash Cache`.
        file_type: String,
        /// Reads of up to 128 KiB.
        small_reads: u64,
        /// Their bytes.
        small_read_bytes: u64,
        /// Their time.
        small_read_ns: u64,
        /// Larger reads.
        large_reads: u64,
        /// Their bytes.
        large_read_bytes: u64,
        /// Their time.
        large_read_ns: u64,
        /// Writes of up to 128 KiB.
        small_writes: u64,
        /// Their bytes.
        small_write_bytes: u64,
        /// Their time.
        small_write_ns: u64,
        /// Larger writes.
        large_writes: u64,
        /// Their bytes.
        large_write_bytes: u64,
        /// Their time.
        large_write_ns: u64,
    }
}

table! {
    /// One active session at one tick of the sampler.
    struct AshRow in "ash" of "visit_id" {
        /// When.
        t_ns: u64,
        /// What the row stands for: time since the tick before.
        weight_ns: u64,
        /// Number of the session.
        session: u32,
        /// Whether it is a user's.
        foreground: bool,
        /// `lgwr`, `dbw0`, `commit 3` ….
        program: String,
        /// What it waits for; none: on CPU.
        event: Option<String>,
        /// Class of the event; `CPU` where it is on CPU.
        wait_class: String,
        /// First parameter of the event.
        p1: u64,
        /// Second.
        p2: u64,
        /// Third.
        p3: u64,
        /// File and block that it is at; 0 and 0: none.
        file_no: u32,
        /// See `file_no`.
        block_no: u32,
        /// Statement or transaction class.
        statement: Option<String>,
        /// Session that blocks it.
        blocking_session: Option<u32>,
    }
}

table! {
    /// One tick of the sampler, also where nobody was active.
    struct AshTickRow in "ash_tick" of "visit_id" {
        /// When it happened.
        t_ns: u64,
        /// When it should have happened.
        planned_ns: u64,
        /// What taking it cost.
        cost_ns: u64,
        /// Active sessions seen.
        active: u32,
    }
}

table! {
    /// What sessions of a real database server waited for in its own words, and what that was taken for. Of samples.
    struct NativeWaitRow in "native_wait" of "visit_id" {
        /// Whether users' sessions waited; false: processes of the server.
        foreground: bool,
        /// `LWLock:WALWrite`, `wait/io/file/innodb/innodb_data_file` …; empty: no wait that it tells, shown as CPU.
        wait: String,
        /// The event that it is shown as; none: under its own name.
        event: Option<String>,
        /// Class of the event.
        wait_class: String,
        /// `exact`, `approximate`, `inferred`, or `none` where no event says the same.
        grade: String,
        /// Rows of `ash` that are of it.
        samples: u64,
        /// The time that they stand for.
        time_ns: u64,
    }
}

table! {
    /// Buffers of the cache by state at an instant (`v$bh`).
    struct BufferStateRow in "buffer_state" of "visit_id" {
        /// When.
        t_ns: u64,
        /// `free`, `xcur`, `dirty`, `flashcur`, `flashfree` ….
        state: String,
        /// How many.
        buffers: u64,
    }
}

table! {
    /// The redo log at an instant.
    struct RedoStateRow in "redo_state" of "visit_id" {
        /// When.
        t_ns: u64,
        /// The group that is written.
        current_group: u32,
        /// Its sequence number: rises at each switch.
        sequence: u64,
        /// End of the redo.
        tail_lsn: u64,
        /// Durable up to here.
        durable_lsn: u64,
        /// Recovery would begin here.
        checkpoint_lsn: u64,
        /// Groups that a checkpoint still needs.
        active_groups: u32,
        /// Bytes of all groups together.
        redo_bytes: u64,
    }
}

table! {
    /// What a flash cache below the buffer cache would see: reads, evictions and changes of sampled blocks, in order.
    struct ReferenceRow in "reference_sample" {
        /// Where it comes from: `run order-entry`, or the file of a trace.
        source: String,
        /// Bytes of a block.
        block_bytes: u64,
        /// Bytes of the buffer cache above; 0 where none is known.
        cache_bytes: u64,
        /// Which blocks were chosen.
        seed: u64,
        /// Share of blocks that were kept, above 0 to 1.
        rate: f64,
        /// Reads of all blocks, kept or not.
        reads: u64,
        /// References that were kept.
        kept: u64,
        /// They, as `stats::mrc::References` encodes them.
        #[serde(with = "crate::export::hex")]
        encoded: Vec<u8>,
    }
}

table! {
    /// An export that our own NFS client used (`v$dnfs_servers`). A later row of a mount replaces the one before.
    struct DnfsServerRow in "dnfs_server" {
        /// When.
        t_ns: u64,
        /// Which mount of this run: an export that is mounted once more is another one.
        mount: u32,
        /// What the server is called.
        server: String,
        /// The exported directory.
        export: String,
        /// Port of MOUNT, where it is given.
        mount_port: Option<u32>,
        /// Port of NFS.
        port: u32,
        /// The version in use, which is the one that was asked for: `NFSv3`, `NFSv4.0`, `NFSv4.1`, `pNFS`.
        version: String,
        /// Longest READ, bytes.
        read_max: u64,
        /// Longest WRITE, bytes.
        write_max: u64,
        /// The ways to it, in order: `192.0.2.1 from 192.0.2.9, 192.0.2.2`.
        paths: String,
    }
}

table! {
    /// What one worker sent to one address (`v$dnfs_channels`), counted since the channel was made. A row where something has changed, once a second.
    struct DnfsChannelRow in "dnfs_channel" {
        /// When.
        t_ns: u64,
        /// Its mount.
        mount: u32,
        /// Which channel of the mount.
        channel: u32,
        /// Which worker of the mount has it.
        worker: u32,
        /// Name of the thread that made it.
        worker_name: String,
        /// Where it leads: address and port.
        address: String,
        /// Our own address; none before the first connection.
        local: Option<String>,
        /// Our own port.
        local_port: Option<u32>,
        /// Whether it leads to a data server, by a layout; else to the server that was mounted.
        data_server: bool,
        /// `UP`, `DOWN`, `IDLE` (its worker went to another path) or `CLOSED` (its worker has ended).
        state: String,
        /// READs that were sent.
        reads: u64,
        /// WRITEs that were sent.
        writes: u64,
        /// COMMITs that were sent.
        commits: u64,
        /// Replies.
        receives: u64,
        /// Calls that were lost here, and sent again here or elsewhere.
        replays: u64,
        /// Connections made after the first.
        reconnects: u64,
        /// Bytes that were read.
        read_bytes: u64,
        /// Bytes that were written.
        written_bytes: u64,
        /// READs that were answered.
        reads_done: u64,
        /// Time from sending to reply of all of them.
        read_ns: u64,
        /// The longest.
        read_max_ns: u64,
        /// WRITEs that were answered.
        writes_done: u64,
        /// Time from sending to reply of all of them.
        write_ns: u64,
        /// The longest.
        write_max_ns: u64,
        /// Times that requests waited for a connection, or for a layout that was recalled.
        stalls: u64,
        /// How long, together.
        stall_ns: u64,
        /// The longest.
        stall_max_ns: u64,
    }
}

table! {
    /// A file that was open on an export (`v$dnfs_files`), and where its data was. A row where something has changed.
    struct DnfsFileRow in "dnfs_file" {
        /// When.
        t_ns: u64,
        /// Its mount.
        mount: u32,
        /// Its path below the export.
        path: String,
        /// Its size, when it was asked last.
        bytes: Option<u64>,
        /// Kind of its layout: `files` or `flexible files`; none where everything goes to the server that was mounted.
        layout: Option<String>,
        /// The data server of each stripe; empty without a layout.
        nodes: String,
        /// Since when the data is known to be there.
        since_ns: Option<u64>,
        /// Recalls of its layout, since it was opened.
        recalls: u64,
        /// Looks at its layout because it was time.
        refreshes: u64,
        /// Looks for another reason: a notification, a refusal of a data server, flags.
        doubts: u64,
        /// Times that its data was found elsewhere.
        moves: u64,
    }
}

table! {
    /// How often one operation was called over one mount (`v$dnfs_stats`). A later row replaces the one before.
    struct DnfsStatRow in "dnfs_stat" {
        /// When.
        t_ns: u64,
        /// The mount.
        mount: u32,
        /// `READ`, `GETATTR`, `SEQUENCE` …, `MOUNT` for MNT.
        operation: String,
        /// Calls since it was mounted, repetitions included.
        calls: u64,
    }
}

table! {
    /// Data that was found elsewhere.
    struct DnfsMoveRow in "dnfs_move" {
        /// When requests went to the new place.
        t_ns: u64,
        /// The mount.
        mount: u32,
        /// Which file.
        path: String,
        /// What made the client look: `recall`, `notification`, `data server`, `flags`, `refresh`.
        cause: String,
        /// The data servers before.
        old_nodes: String,
        /// And after.
        new_nodes: String,
        /// How long requests had to wait, or took the way by the server that was mounted.
        stall_ns: u64,
        /// Bytes that went by the old layout since it was last known to be right.
        unsure_bytes: u64,
    }
}

/// Rows that are written beside the run, by [`Beside`](crate::Beside).
pub trait SampledBeside: crate::table::Table {}
impl SampledBeside for DnfsServerRow {}
impl SampledBeside for DnfsChannelRow {}
impl SampledBeside for DnfsFileRow {}
impl SampledBeside for DnfsStatRow {}
impl SampledBeside for DnfsMoveRow {}

/// Rows that belong to a phase and say what the database itself saw.
pub trait PhaseOwned: crate::table::Table {}
impl PhaseOwned for WaitEventRow {}
impl PhaseOwned for StatisticRow {}
impl PhaseOwned for FileStatRow {}

/// Samples of a visit.
pub trait VisitOwned: crate::table::Table {}
impl VisitOwned for AshRow {}
impl VisitOwned for AshTickRow {}
impl VisitOwned for NativeWaitRow {}
impl VisitOwned for BufferStateRow {}
impl VisitOwned for RedoStateRow {}
