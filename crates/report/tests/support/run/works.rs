//! What a run did: made-up workloads with their waits, rates and files.

use record::FileStatRow;

/// An event: name, class, share of the time of those who may wait for it, mean wait in microseconds.
pub type Source = (&'static str, &'static str, f64, f64);

/// A stretch in which one thing is done.
pub struct Work {
    pub name: &'static str,
    pub title: &'static str,
    pub metric: &'static str,
    pub seconds: f64,
    pub rate: f64,
    pub op_bytes: u64,
    pub sessions: u32,
    pub waits: Vec<Source>,
    pub background: Vec<(&'static str, Source)>,
    pub kinds: Vec<(&'static str, f64, f64)>,
    /// Redo, MB/s; blocks read and written a second.
    pub redo_mb_s: f64,
    pub reads_s: f64,
    pub writes_s: f64,
    /// Bytes of a read.
    pub read_bytes: u64,
}

impl Default for Work {
    fn default() -> Self {
        Self {
            name: "commit",
            title: "redo commits",
            metric: "commits/s",
            seconds: 60.0,
            rate: 4_310.0,
            op_bytes: 1_000,
            sessions: 10,
            waits: vec![
                ("log file sync", "Commit", 0.86, 1_990.0),
                ("buffer busy waits", "Concurrency", 0.012, 130.0),
                ("log file switch completion", "Configuration", 0.006, 24_000.0),
                ("db file sequential read", "User I/O", 0.004, 420.0),
                ("enq: HW - contention", "Configuration", 0.003, 900.0),
                ("latch: cache buffers chains", "Concurrency", 0.0004, 40.0),
            ],
            background: vec![
                ("lgwr", ("log file parallel write", "System I/O", 0.81, 870.0)),
                ("dbw0", ("db file parallel write", "System I/O", 0.22, 2_600.0)),
                ("ckpt", ("control file parallel write", "System I/O", 0.03, 3_100.0)),
            ],
            kinds: vec![("insert", 1.0, 1.0)],
            redo_mb_s: 6.4,
            reads_s: 30.0,
            writes_s: 900.0,
            read_bytes: 8192,
        }
    }
}

pub fn works(case: &str) -> Vec<Work> {
    match case {
        "order-entry" => vec![order_entry()],
        "growth" => growth(),
        "random-read" => vec![random_read()],
        "scan" => scans(),
        _ => vec![Work::default()],
    }
}

fn order_entry() -> Work {
    Work {
        name: "order-entry",
        title: "order entry",
        metric: "tx/min",
        seconds: 150.0,
        rate: 30_720.0,
        op_bytes: 8192,
        sessions: 15,
        waits: vec![
            ("db file sequential read", "User I/O", 0.44, 390.0),
            ("log file sync", "Commit", 0.17, 2_300.0),
            ("enq: TX - row lock contention", "Application", 0.11, 5_200.0),
            ("log file switch (checkpoint incomplete)", "Configuration", 0.035, 180_000.0),
            ("buffer busy waits", "Concurrency", 0.02, 160.0),
            ("read by other session", "User I/O", 0.012, 350.0),
            ("free buffer waits", "Configuration", 0.009, 8_000.0),
            ("db file scattered read", "User I/O", 0.006, 900.0),
        ],
        background: vec![
            ("lgwr", ("log file parallel write", "System I/O", 0.42, 1_100.0)),
            ("dbw0", ("db file parallel write", "System I/O", 0.71, 5_100.0)),
            ("dbw1", ("db file parallel write", "System I/O", 0.68, 5_100.0)),
            ("ckpt", ("control file parallel write", "System I/O", 0.02, 3_100.0)),
        ],
        kinds: vec![
            ("new order", 0.45, 1.2),
            ("payment", 0.43, 0.6),
            ("order status", 0.04, 0.35),
            ("delivery", 0.04, 3.6),
            ("stock level", 0.04, 1.8),
        ],
        redo_mb_s: 9.2,
        reads_s: 14_800.0,
        writes_s: 5_100.0,
        ..Work::default()
    }
}

fn random_read() -> Work {
    Work {
        name: "read-cold",
        title: "single-block reads, cold",
        metric: "reads/s",
        seconds: 40.0,
        rate: 17_900.0,
        op_bytes: 8192,
        waits: vec![
            ("db file sequential read", "User I/O", 0.93, 540.0),
            ("latch: cache buffers chains", "Concurrency", 0.004, 30.0),
        ],
        background: vec![("ckpt", ("control file parallel write", "System I/O", 0.004, 3_000.0))],
        kinds: vec![("read", 1.0, 1.0)],
        redo_mb_s: 0.0,
        reads_s: 17_900.0,
        writes_s: 0.0,
        ..Work::default()
    }
}

/// Taking turns: one stretch of time for all, and one account of their waits.
fn scans() -> Vec<Work> {
    let scan = |name, title, rate| Work {
        name,
        title,
        metric: "MB/s",
        seconds: 30.0,
        rate,
        op_bytes: 190 << 20,
        sessions: 1,
        waits: vec![
            ("db file scattered read", "User I/O", 0.66, 890.0),
            ("direct path read", "User I/O", 0.18, 940.0),
        ],
        background: vec![("ckpt", ("control file parallel write", "System I/O", 0.01, 3_000.0))],
        kinds: vec![("scan", 1.0, 1.0)],
        redo_mb_s: 0.0,
        reads_s: 1_100.0,
        writes_s: 0.0,
        read_bytes: 1 << 20,
    };
    vec![
        scan("scan direct path", "scan direct path", 1_910.0),
        scan("scan scattered", "scan scattered", 995.0),
        scan("scan cached", "scan cached", 1_003.0),
    ]
}

fn growth() -> Vec<Work> {
    let scan = |name, title, seconds, rate, event: Source| Work {
        name,
        title,
        metric: "MB/s",
        seconds,
        rate,
        op_bytes: 1 << 20,
        sessions: 1,
        waits: vec![event],
        background: vec![("ckpt", ("control file parallel write", "System I/O", 0.01, 3_000.0))],
        kinds: vec![("count", 1.0, 1.0)],
        redo_mb_s: 0.0,
        reads_s: rate,
        writes_s: 0.0,
        read_bytes: 1 << 20,
    };
    let insert = Work {
        name: "growth-write",
        title: "growth: bulk write",
        metric: "MB/s",
        seconds: 40.0,
        rate: 92.0,
        op_bytes: 1 << 20,
        sessions: 1,
        waits: vec![
            ("free buffer waits", "Configuration", 0.31, 9_400.0),
            ("direct path read", "User I/O", 0.17, 1_900.0),
            ("log file switch (checkpoint incomplete)", "Configuration", 0.12, 240_000.0),
            ("log buffer space", "Configuration", 0.08, 2_400.0),
            ("Data file init write", "User I/O", 0.03, 14_000.0),
        ],
        background: vec![
            ("lgwr", ("log file parallel write", "System I/O", 0.83, 4_700.0)),
            ("dbw0", ("db file parallel write", "System I/O", 0.94, 11_000.0)),
            ("ckpt", ("control file parallel write", "System I/O", 0.02, 3_000.0)),
        ],
        kinds: vec![("insert", 1.0, 1.0)],
        redo_mb_s: 108.0,
        reads_s: 92.0,
        writes_s: 11_700.0,
        read_bytes: 1 << 20,
    };
    vec![
        insert,
        scan(
            "growth-scan-cold",
            "growth: full scan, cold",
            9.0,
            640.0,
            ("direct path read", "User I/O", 0.78, 2_100.0),
        ),
        scan(
            "growth-scan-warm",
            "growth: full scan, warm",
            12.0,
            1_900.0,
            ("direct path read", "User I/O", 0.31, 330.0),
        ),
    ]
}

pub fn files(work: &Work) -> Vec<FileStatRow> {
    let file = |file_no, path: &str, file_type: &str| FileStatRow {
        file_no,
        path: path.into(),
        file_type: file_type.into(),
        ..FileStatRow::default()
    };
    let reads = (work.reads_s * work.seconds) as u64;
    let writes = (work.writes_s * work.seconds / 3.1) as u64;
    let mut users = file(2, "/data/redoubt-x/users01.dbf", "Data File");
    if work.read_bytes > 131_072 {
        (users.large_reads, users.large_read_bytes, users.large_read_ns) =
            (reads, reads * work.read_bytes, reads * 1_900_000);
    } else {
        (users.small_reads, users.small_read_bytes, users.small_read_ns) =
            (reads, reads * work.read_bytes, reads * 390_000);
    }
    (users.small_writes, users.small_write_bytes, users.small_write_ns) =
        (writes, writes * 3 * 8192, writes * 1_400_000);
    (users.large_writes, users.large_write_bytes, users.large_write_ns) =
        (writes / 40, writes / 40 * 262_144, writes / 40 * 3_400_000);
    let mut undo = file(3, "/data/redoubt-x/undo01.dbf", "Data File");
    (undo.small_writes, undo.small_write_bytes, undo.small_write_ns) =
        (writes / 8, writes / 8 * 8192, writes / 8 * 1_500_000);
    let mut log = file(0, "", "Log File");
    let redo = (work.redo_mb_s * work.seconds * 1e6 / 8_192.0) as u64;
    (log.small_writes, log.small_write_bytes, log.small_write_ns) = (redo, redo * 8_192, redo * 870_000);
    let mut control = file(0, "", "Control File");
    let kept = (work.seconds / 3.0) as u64;
    (control.small_writes, control.small_write_bytes, control.small_write_ns) =
        (kept, kept * 16_384, kept * 3_000_000);
    vec![
        file(1, "/data/redoubt-x/system01.dbf", "Data File"),
        users,
        undo,
        file(201, "/data/redoubt-x/temp01.dbf", "Temp File"),
        log,
        control,
    ]
}
