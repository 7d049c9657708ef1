//! The embedded database against the raw ceiling, fio and PostgreSQL: commits, scans, growth, random reads, alternating.
//!
//! Equal durability on both sides: our commits are O_DSYNC writes, PostgreSQL's are `fdatasync`; same directory, same
//! cache. PostgreSQL is a private cluster on a socket of its own, as Debian packages it. `--only commit|scan|growth|read`.
//!
//! `cargo x bench engine --rounds 5 --seconds 4`
#![forbid(unsafe_code)]

mod common;

use common::flags::Flags;
use common::goals::{Aim, Goals, median};
use engine::{AlterSystem, Instance, Session, Shutdown};
use host::journal::Journal;
use host::workspace::Workspace;
use io::{Access, Api, File, IoMode};
use lab::compare::configuration::Configuration;
use lab::database::drive::Pace;
use lab::database::{Database, Sizes, commit, random_read, source};
use lab::load::{LoadSpec, Pattern};
use lab::workload::Window;
use lab::workload::commit::{self as raw, Log, LogCall, LogFile};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use units::{Bytes, Nanos, Seed, clock};

const BLOCK: Bytes = Bytes::kib(8);
const SETTLE: Nanos = Nanos::millis(300);
const SESSIONS: u32 = 10;
static NEVER: AtomicBool = AtomicBool::new(false);

fn main() -> ExitCode {
    let flags = Flags::parse();
    let measured = flags.measured();
    let rounds = flags.number("rounds", if measured { 5.0 } else { 1.0 }) as usize;
    let seconds = flags.number("seconds", if measured { 4.0 } else { 0.2 });
    let scale = if measured { 1 } else { 32 };
    let only = flags.text("only");
    let wanted = |part: &str| only.as_deref().is_none_or(|only| only == part);
    let bench = Bench::new(rounds, seconds, scale);
    let mut goals = Goals::default();
    if wanted("commit") {
        bench.commits(&mut goals);
    }
    if wanted("scan") {
        bench.scans(&mut goals);
    }
    if wanted("growth") {
        bench.growth(&mut goals);
    }
    if wanted("read") {
        bench.reads(&mut goals);
    }
    bench.end();
    goals.conclude(measured)
}

struct Bench {
    folder: PathBuf,
    journal: Journal,
    database: Database,
    postgres: Option<Postgres>,
    rounds: usize,
    seconds: f64,
    scale: u64,
}

fn configuration() -> Configuration {
    let api = if Api::IoUring.available().is_ok() { Api::IoUring } else { Api::Libaio };
    Configuration { mode: IoMode::Setall, api }
}

impl Bench {
    fn new(rounds: usize, seconds: f64, scale: u64) -> Self {
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("engine-bench-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut journal = Journal::open_in(&folder.join("state"), "bench").expect("a journal");
        let workspace = Arc::new(Workspace::create(&folder, &mut journal).expect("a workspace"));
        let sizes = Sizes {
            block: BLOCK,
            cache: Bytes::mib(128),
            data: Bytes((768 << 20) / scale),
            undo: Bytes::mib(64 / scale.min(8)),
            redo: Bytes::mib(256 / scale.min(16)),
            redo_groups: 3,
        };
        let database = Database::create(workspace, &sizes, &[], Seed(1)).expect("a database");
        let postgres = (scale == 1).then(|| Postgres::start(&folder.join("pg")));
        Self { folder, journal, database, postgres, rounds, seconds, scale }
    }

    fn open(&self) -> Instance {
        self.database.open(&configuration()).expect("open the database")
    }

    fn end(self) {
        drop(self.postgres);
        drop(self.database);
        self.journal.undo_all().expect("remove the workspace");
        std::fs::remove_dir_all(&self.folder).expect("remove the folder");
    }

    fn window(&self) -> Window {
        Window::after(SETTLE, Nanos::secs(self.seconds), Nanos::millis(250))
    }

    /// Each side once per round, in turns whose order reverses; rates in the order of the sides.
    fn alternate(&self, sides: &[(&str, &dyn Fn() -> f64)]) -> Vec<Vec<f64>> {
        let mut rates = vec![Vec::new(); sides.len()];
        for round in 0..self.rounds {
            for step in 0..sides.len() {
                let side = if round % 2 == 0 { step } else { sides.len() - 1 - step };
                rates[side].push(sides[side].1());
            }
        }
        for ((name, _), rates) in sides.iter().zip(&rates) {
            println!("  {name:<52} {:>12.0}  (median)", median(rates));
        }
        rates
    }

    fn commits(&self, goals: &mut Goals) {
        println!(
            "\ncommits of rows of about 1,000 bytes, {} rounds of {} s a side",
            self.rounds, self.seconds
        );
        let instance = self.open();
        let ours = |sessions: u32| {
            let window = || self.window();
            let done = commit::run(&instance, sessions, window, Pace::Closed, Seed(2), &NEVER);
            done.expect("commits").trial.rate()
        };
        let redo = self.folder.join("raw-redo.log");
        let plain = Access { read: true, write: true, direct: false, dsync: false };
        let made = File::create_new(&redo, plain).expect("a redo file");
        io::prepare::write_stamped(&made, 64 << 20, 4096, raw::REDO_FILE_ID, Seed(1), &mut |_, _| true)
            .expect("write it");
        let ceiling = |sessions: u32| {
            let access = Access { read: true, write: true, direct: true, dsync: true };
            let file = Arc::new(File::open(&redo, access).expect("open it"));
            let log = LogFile {
                region: 0..(64 << 20),
                file,
                api: Api::Threads,
                call: LogCall::Dsync,
                block_bytes: 4096,
                write_bytes_max: raw::WRITE_BYTES_MAX,
            };
            let log = Log::open(log, Seed(3)).expect("a log");
            raw::run(sessions, log, self.window(), &NEVER).expect("raw commits").rate()
        };
        let (ten, one) = (|| ours(SESSIONS), || ours(1));
        let (raw_ten, raw_one) = (|| ceiling(SESSIONS), || ceiling(1));
        let mut sides: Vec<(&str, &dyn Fn() -> f64)> = vec![
            ("ours, 10 sessions", &ten),
            ("raw group commit by io, 10 sessions", &raw_ten),
            ("ours, 1 session", &one),
            ("raw O_DSYNC writes, 1 session", &raw_one),
        ];
        let their = |clients: u32| self.postgres.as_ref().map_or(0.0, |pg| pg.commits(clients, self.seconds));
        let pg_ten = || their(SESSIONS);
        if self.postgres.is_some() {
            sides.push(("PostgreSQL, 10 sessions", &pg_ten));
        }
        let rates = self.alternate(&sides);
        goals.rounds(
            "commit, 10 sessions: ours / raw ceiling",
            &ratios(&rates[0], &rates[1]),
            Aim::AtLeast(0.75),
        );
        goals.rounds(
            "commit, 1 session: ours / lone O_DSYNC write",
            &ratios(&rates[2], &rates[3]),
            Aim::AtLeast(0.9),
        );
        if let Some(pg) = rates.get(4) {
            goals.rounds("commit, 10 sessions: ours / PostgreSQL", &ratios(&rates[0], pg), Aim::AtLeast(1.6));
        }
        instance.shutdown(Shutdown::Immediate).expect("shut down");
        std::fs::remove_file(redo).expect("remove the redo file");
    }

    fn scans(&self, goals: &mut Goals) {
        let instance = self.open();
        let mut session = instance.session("scan").expect("a session");
        // Four times the cache, and a table that fits it.
        let (large, small) = ((512 << 20) / self.scale, (64 << 20) / self.scale);
        source::create(&mut session, "LARGE", large / source::ROW_BYTES, Seed(5), &NEVER).expect("a table");
        source::create(&mut session, "SMALL", small / source::ROW_BYTES, Seed(6), &NEVER).expect("a table");
        session.alter_system(&AlterSystem::Checkpoint).expect("checkpoint");
        println!("\nfull scans, {} rounds", self.rounds);
        let session = std::cell::RefCell::new(session);
        let data = instance.datafile().into_iter().find(|f| f.name.ends_with("users01.dbf")).expect("USERS");
        let direct = || {
            let session = &mut *session.borrow_mut();
            let _ = session.alter_system(&lab::database::set("_serial_direct_read", "always"));
            session.alter_system(&AlterSystem::FlushBufferCache).expect("flush");
            let (_, bytes, elapsed) = count(session, "LARGE");
            bytes as f64 / 1e6 / elapsed
        };
        let fio = || fio_sequential(&data.name, self.seconds.min(3.0));
        let rates = self.alternate(&[("ours, direct path, MB/s", &direct), ("fio, 1 MiB reads, MB/s", &fio)]);
        goals.rounds(
            "COUNT(*) by direct path, cold: ours / fio",
            &ratios(&rates[0], &rates[1]),
            Aim::AtLeast(0.95),
        );
        let cached = || {
            let session = &mut *session.borrow_mut();
            let _ = session.alter_system(&lab::database::set("_serial_direct_read", "never"));
            count(session, "SMALL");
            let times: Vec<f64> = (0..9).map(|_| count(session, "SMALL").2).collect();
            let (rows, ..) = count(session, "SMALL");
            rows as f64 / median(&times)
        };
        if let Some(pg) = &self.postgres {
            pg.fill("small_table", small / source::ROW_BYTES);
            let theirs = || pg.count("small_table");
            let rates =
                self.alternate(&[("ours, cached, rows/s", &cached), ("PostgreSQL, cached, rows/s", &theirs)]);
            goals.rounds(
                "COUNT(*) from the cache: ours / PostgreSQL",
                &ratios(&rates[0], &rates[1]),
                Aim::AtLeast(3.0),
            );
        } else {
            cached();
        }
        for table in ["LARGE", "SMALL"] {
            session.borrow_mut().drop_table(table).expect("drop");
        }
        drop(session);
        instance.shutdown(Shutdown::Immediate).expect("shut down");
    }

    fn growth(&self, goals: &mut Goals) {
        let instance = self.open();
        println!("\nINSERT INTO t SELECT * FROM t, {} rounds", self.rounds);
        let rows = (96 << 20) / self.scale / source::ROW_BYTES;
        let ours = || {
            let mut session = instance.session("growth").expect("a session");
            source::create(&mut session, "T", rows, Seed(8), &NEVER).expect("a table");
            session.alter_system(&AlterSystem::FlushBufferCache).expect("flush");
            let table = session.table("T").expect("T");
            let before = lab::database::segment_bytes(&mut session, &table).expect("its size");
            let began = clock::now();
            let mut scan = session.scan(&table).expect("a scan");
            session.insert_select(&table, &mut scan).expect("insert");
            drop(scan);
            session.commit().expect("commit");
            let elapsed = (clock::now() - began).as_secs();
            let bytes = lab::database::segment_bytes(&mut session, &table).expect("its size") - before;
            session.drop_table("T").expect("drop");
            bytes as f64 / 1e6 / elapsed
        };
        match &self.postgres {
            Some(pg) => {
                let theirs = || pg.grow(rows);
                let rates = self.alternate(&[("ours, MB/s", &ours), ("PostgreSQL, MB/s", &theirs)]);
                goals.rounds(
                    "INSERT … SELECT: ours / PostgreSQL, MB/s",
                    &ratios(&rates[0], &rates[1]),
                    Aim::AtLeast(2.0),
                );
            }
            None => {
                ours();
            }
        }
        instance.shutdown(Shutdown::Immediate).expect("shut down");
    }

    fn reads(&self, goals: &mut Goals) {
        let instance = self.open();
        let mut session = instance.session("read").expect("a session");
        let blocks = (512 << 20) / self.scale / BLOCK.0;
        random_read::prepare(&mut session, blocks, BLOCK, Seed(9), &NEVER).expect("a table");
        session.alter_system(&AlterSystem::Checkpoint).expect("checkpoint");
        let rows = random_read::open(&mut session).expect("its rows");
        session.alter_system(&AlterSystem::FlushBufferCache).expect("flush");
        drop(session);
        println!("\nrandom reads of single blocks, {} rounds of {} s a side", self.rounds, self.seconds);
        let data = instance.datafile().into_iter().find(|f| f.name.ends_with("users01.dbf")).expect("USERS");
        let ours = || {
            let shape = random_read::Shape { sessions: 2, batch: 32, span: 0..rows.count() };
            let before = lab::database::evidence::Before::of(&instance);
            let done =
                random_read::run(&instance, &rows, &shape, self.window(), Seed(10), &NEVER).expect("reads");
            // Physical reads: what the cache answered is none of the device's rate.
            before.files_since(&instance).reads as f64 / (done.trial.seconds() + SETTLE.as_secs())
        };
        let raw = || {
            let spec = LoadSpec {
                api: configuration().api,
                access: Access { read: true, write: false, direct: true, dsync: false },
                paths: vec![data.name.clone()],
                threads: 2,
                in_flight: 64,
                pattern: Pattern::RandomRead,
                block_bytes: BLOCK.0 as u32,
                span: 0..blocks * BLOCK.0,
                batch_min: 0,
                verify_every: 0,
                file_id: 1,
                seed: Seed(11),
                interval: Nanos::millis(250),
                pin_cores: false,
                settle: SETTLE,
                measure: Nanos::secs(self.seconds),
                lock_writes: false,
            };
            let measured = lab::load::run(&spec, &NEVER).expect("raw reads");
            measured.ops as f64 / (measured.ended - measured.started).as_secs()
        };
        let rates = self.alternate(&[("ours, reads/s", &ours), ("io alone, 64 in flight, reads/s", &raw)]);
        goals.rounds("random reads: ours / io alone", &ratios(&rates[0], &rates[1]), Aim::AtLeast(0.9));
        instance.shutdown(Shutdown::Immediate).expect("shut down");
    }
}

/// Rows, bytes of the segment, seconds.
fn count(session: &mut Session, name: &str) -> (u64, u64, f64) {
    let table = session.table(name).expect("the table");
    let bytes = lab::database::segment_bytes(session, &table).expect("its size");
    let began = clock::now();
    let rows = session.count(&table).expect("COUNT(*)");
    (rows, bytes, (clock::now() - began).as_secs())
}

fn ratios(ours: &[f64], theirs: &[f64]) -> Vec<f64> {
    ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs.max(1e-9)).collect()
}

/// MB/s of sequential 1 MiB reads, 4 in flight.
fn fio_sequential(file: &Path, seconds: f64) -> f64 {
    let output = Command::new("fio")
        .args(["--name=scan", "--rw=read", "--bs=1m", "--direct=1", "--ioengine=io_uring", "--iodepth=4"])
        .args(["--readonly", "--time_based", "--output-format=json"])
        .arg(format!("--filename={}", file.display()))
        .arg(format!("--runtime={seconds}"))
        .output()
        .expect("fio");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let json = text.find('{').map_or("", |at| &text[at..]);
    let report: record::json::Value = record::json::from_str(json).expect("fio's report");
    report["jobs"][0]["read"]["bw_bytes"].as_f64().expect("its rate") / 1e6
}

/// A private cluster of Debian's PostgreSQL.
struct Postgres {
    folder: PathBuf,
    bin: PathBuf,
}

/// What the server must not run as.
const USER: &str = "postgres";

impl Postgres {
    fn start(folder: &Path) -> Self {
        let mut versions: Vec<_> =
            std::fs::read_dir("/usr/lib/postgresql").expect("PostgreSQL is installed").flatten().collect();
        versions.sort_by_key(std::fs::DirEntry::path);
        let bin = versions.last().expect("a version of PostgreSQL").path().join("bin");
        std::fs::create_dir_all(folder).expect("a folder");
        let shell = |text: String| {
            let status = Command::new("sh").arg("-c").arg(&text).stdout(Stdio::null()).status();
            assert!(status.is_ok_and(|s| s.success()), "{text}");
        };
        // Every folder above must let the server in.
        for above in folder.ancestors().skip(1).filter(|p| p.components().count() > 2) {
            let _ = Command::new("chmod").arg("o+x").arg(above).status();
        }
        shell(format!("chown {USER}: {}", folder.display()));
        let this = Self { folder: folder.to_owned(), bin };
        this.server("initdb", &["-D", "data", "-U", USER, "-A", "trust", "--no-sync"]);
        let options = "-c listen_addresses= -c unix_socket_directories=. -c shared_buffers=128MB -c wal_sync_method=fdatasync \
                       -c max_wal_size=4GB -c autovacuum=off";
        this.server("pg_ctl", &["-D", "data", "-w", "-l", "log", "-o", options, "start"]);
        let texts: Vec<String> = (1..=10).map(|n| format!("t{n} varchar(100)")).collect();
        this.sql(&format!("create table committed (id bigint, {})", texts.join(", ")));
        this
    }

    /// A program of the server, as its user, in its folder.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("setpriv");
        command
            .args([format!("--reuid={USER}"), format!("--regid={USER}"), "--clear-groups".into()])
            .arg(self.bin.join(program))
            .current_dir(&self.folder)
            .env("LC_ALL", "C");
        command
    }

    fn server(&self, program: &str, arguments: &[&str]) {
        let status =
            self.command(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
        assert!(status.is_ok_and(|s| s.success()), "{program} {arguments:?}");
    }

    fn socket(&self) -> String {
        self.folder.join("data").display().to_string()
    }

    fn sql(&self, text: &str) -> String {
        let output = self
            .command("psql")
            .args(["-h", &self.socket(), "-U", USER, "-XAtq", "-c", "\\timing on", "-c", text, "postgres"])
            .output()
            .expect("psql");
        assert!(output.status.success(), "{text}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Seconds of a statement, as psql times it.
    fn seconds(&self, text: &str) -> f64 {
        let output = self.sql(text);
        let line = output.lines().rev().find_map(|line| line.strip_prefix("Time: ")).expect("a time");
        let milliseconds: f64 = line.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
        milliseconds / 1e3
    }

    fn commits(&self, clients: u32, seconds: f64) -> f64 {
        let texts = vec![format!("'{}'", "x".repeat(97)); 10].join(", ");
        let script = self.folder.join("insert.sql");
        std::fs::write(&script, format!("insert into committed values (:client_id, {texts});\n"))
            .expect("a script");
        self.sql("truncate committed; checkpoint");
        let clients = clients.to_string();
        let output = self
            .command("pgbench")
            .args(["-h", &self.socket(), "-U", USER, "-n", "-M", "prepared", "-j", "2", "-c", &clients])
            .args(["-T", &format!("{}", seconds.ceil()), "-f"])
            .arg(&script)
            .arg("postgres")
            .output()
            .expect("pgbench");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().find_map(|line| line.strip_prefix("tps = "));
        line.and_then(|line| line.split(' ').next()).and_then(|n| n.parse().ok()).expect("a rate")
    }

    /// A table like ours.
    fn fill(&self, table: &str, rows: u64) {
        self.sql(&format!(
            "create table {table} as select 'SYS'::text as owner, 'DBMS_UNIT_' || lpad((n / 400)::text, 6, '0') as name, \
             'PACKAGE'::text as type, n % 400 as line, repeat('abcdefgh', 8) || md5(n::text) as text from \
             generate_series(1, {rows}) n"
        ));
        self.sql(&format!("vacuum analyze {table}"));
    }

    fn count(&self, table: &str) -> f64 {
        let query = format!("select count(*) from {table}");
        self.sql(&query);
        let times: Vec<f64> = (0..9).map(|_| self.seconds(&query)).collect();
        let rows = self.sql(&query);
        let rows: f64 = rows.lines().find_map(|line| line.trim().parse().ok()).expect("a count");
        rows / median(&times)
    }

    /// MB/s of doubling a table.
    fn grow(&self, rows: u64) -> f64 {
        self.fill("t", rows);
        self.sql("checkpoint");
        let size = || -> f64 {
            let text = self.sql("select pg_relation_size('t')");
            text.lines().find_map(|line| line.trim().parse().ok()).expect("a size")
        };
        let before = size();
        let seconds = self.seconds("insert into t select * from t");
        let rate = (size() - before) / 1e6 / seconds;
        self.sql("drop table t");
        rate
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let _ = self
            .command("pg_ctl")
            .args(["-D", "data", "-m", "immediate", "stop"])
            .stdout(Stdio::null())
            .status();
    }
}
