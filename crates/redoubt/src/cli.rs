//! What can be typed, and the help that teaches it.

pub mod nfs_lab;
pub mod oranfstab;
pub mod place;
pub mod profile;
pub mod server;

use self::oranfstab::Oranfstab;
use clap::{Args, Parser, Subcommand, ValueEnum};
use server::ServerOptions;
use std::path::PathBuf;
use units::Bytes;

/// Which storage set-up should this database run on? Measured, doubted, decided.
#[derive(Parser)]
#[command(name = "redoubt", version, about, long_about = None, disable_help_subcommand = true,
    after_help = "Files that Redoubt makes are its own, in a new directory, and are removed at the end. Nothing else is written.\n\
                  Ctrl-C stops soon and keeps what was measured; `redoubt cleanup` undoes what a killed run left.")]
pub struct Cli {
    /// What to do; without it a short guide is printed.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The commands.
#[derive(Subcommand)]
pub enum Command {
    /// The main job: which I/O mode, file system, scheduler, placement … should the database use here?
    Compare(Box<Compare>),
    /// Run one case on the embedded database under one configuration, with everything that it saw.
    Run(Run),
    /// How much can this storage do? IOPS, MB/s, latency, redo writes, the knee. 3 minutes.
    Calibrate(Calibrate),
    /// Look before measuring: health, honest fsync, scheduler, mount options, noise, limits.
    Doctor(Doctor),
    /// Should I buy one? What a flash cache of each size would serve, and how much faster that would be.
    Advise(Advise),
    /// What does a database ask of the kernel? Calls, sizes, batches, latencies by role and file: direct? truly asynchronous?
    Trace(Trace),
    /// Top activity of a database over time, live: what its sessions wait for, statement by statement, and the devices beneath.
    Watch(Watch),
    /// What does my database do? Its mix of reads, changes, commits and redo, from its own statistics, for `compare --like`.
    Profile(profile::Profile),
    /// Show finished runs again: terminal, HTML, JSON, CSV; two or more side by side.
    Report(Report),
    /// All runs in a browser on this machine: each report, and two or more side by side.
    Serve(Serve),
    /// Ask a database of ours, or a finished run, in SQL: tables, v$ views, ALTER SYSTEM.
    Sql(Sql),
    /// A small NFS cluster on this machine, with pNFS, to try things on: nodes, moves, cuts, restarts.
    NfsLab(nfs_lab::NfsLab),
    /// What can be asked, and the command for it.
    Cases,
    /// Undo what a killed run left: files, loop devices, mounts, settings.
    Cleanup(Cleanup),
    /// Print shell completions.
    Completions {
        /// For which shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page (roff): redoubt man | man -l -
    Man,
}

/// Options of `compare`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    redoubt compare                           the I/O modes, in the current directory\n  \
    redoubt compare --dir /data --minutes 15  on other storage, seeing smaller differences\n  \
    redoubt compare --modes none,setall       two modes only, decided sooner\n  \
    redoubt compare --read-share 0.7 --hit-ratio 0.98   weighted for your own mix\n  \
    redoubt compare --awr awrrpt_1_1201_1202.txt        the same, from what your database says of itself\n  \
    redoubt compare filesystem --dry-run      what would be compared, how long, with what left out\n  \
    redoubt compare --vary fs=ext4,xfs:noatime --vary io=none,setall --vary sessions=1,10\n  \
    redoubt compare placement --slow /hdd --fast /ssd\n  \
    redoubt compare commit --vary place.redo=here,/ssd\n  \
    redoubt compare commit --target postgres --vary place.redo=here,/ssd   on a private PostgreSQL server\n\n\
    FACTOR is one of: target, nfs, node, fs, mount, place, place.data, place.undo, place.temp, place.redo, place.control, place.flash,\n\
    throttle, scheduler, nr_requests, read_ahead_kb, rq_affinity, wbt_lat_usec, block_size, redo_size, flash_size, cache,\n\
    flash_policy, writers, io, api, sessions, or set.NAME for a parameter of the database.\n\
    `redoubt compare --vary FACTOR` says what its levels are.")]
pub struct Compare {
    /// The question; `redoubt cases` lists them. Without one: which I/O mode?
    #[arg(value_name = "CASE")]
    pub case: Option<lab::compare::Case>,
    /// What is varied: all combinations of all --vary are compared. One level alone is held.
    #[arg(long, value_name = "FACTOR=LEVEL,…")]
    pub vary: Vec<lab::factor::Vary>,
    /// The comparison written down; what is typed beside goes before what it says.
    #[arg(long, value_name = "FILE.toml")]
    pub experiment: Option<PathBuf>,
    /// Say what would be compared, how long it takes, what it needs and what cannot be had; change nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Name of the configuration that the others are held against [default: the first].
    #[arg(long, value_name = "NAME")]
    pub baseline: Option<String>,
    /// The slow place of cases placement, async and flash [default: throttled:hdd-7200].
    #[arg(long, value_name = "PLACE")]
    pub slow: Option<lab::factor::Storage>,
    /// The fast place of cases placement, async and flash [default: here].
    #[arg(long, value_name = "PLACE")]
    pub fast: Option<lab::factor::Storage>,
    /// What the workloads run on: engine (the embedded database), postgres or mariadb (a private server, made and removed by this
    /// run), or files (a database's I/O on plain files) [default: engine].
    #[arg(long)]
    pub target: Option<CompareOn>,
    /// Where the programs of servers are, and how long one may hang.
    #[command(flatten)]
    pub server: ServerOptions,
    /// Directory on the storage in question, or an export: nfs://server/path [default: .].
    #[arg(long, visible_alias = "server", value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Where exports are said to be.
    #[command(flatten)]
    pub oranfstab: Oranfstab,
    /// A storage node behind the export, and where its Prometheus node_exporter answers: --node A=http://10.0.0.1:9100. Its processor
    /// time and network bytes are read before and after each trial; may be repeated.
    #[arg(long, value_name = "NAME=URL")]
    pub node: Vec<lab::nodes::Named>,
    /// Time budget in minutes; more time sees smaller differences [default: 4.5, or what the case takes].
    #[arg(long, allow_negative_numbers = true)]
    pub minutes: Option<f64>,
    /// Size of the data file, such as 512m or 8g [default: 256m, or 64m where it is made anew for each visit].
    #[arg(long)]
    pub size: Option<Bytes>,
    /// Concurrent database sessions [default: 10].
    #[arg(long)]
    pub sessions: Option<u32>,
    /// Database block size [default: 8k; with --target mariadb its own 16k].
    #[arg(long)]
    pub block: Option<Bytes>,
    /// The mix that the verdict is weighted for.
    #[command(flatten)]
    pub mix: MixOptions,
    /// Read back after each visit what it wrote, past all caches, and compare: finds lost, torn, stale and misdirected writes.
    /// Visits take so much longer, or become fewer.
    #[arg(long)]
    pub verify: bool,
    /// Only these I/O modes: none, asynch, directio, setall, concurrent.
    #[arg(long, value_delimiter = ',', value_name = "MODE,…")]
    pub modes: Vec<io::IoMode>,
    /// Only these APIs for the asynchronous modes: io_uring, libaio; with --target postgres io_uring, threads.
    #[arg(long, value_delimiter = ',', value_name = "API,…")]
    pub api: Vec<io::Api>,
    /// Options of every run.
    #[command(flatten)]
    pub run: RunOptions,
}

/// What `compare` runs on.
#[derive(Clone)]
pub enum CompareOn {
    /// What this run makes, and removes.
    Own(lab::compare::TargetKind),
    /// A server that is there, which cannot be restarted.
    Url,
}

impl std::str::FromStr for CompareOn {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains("://") { Ok(Self::Url) } else { text.parse().map(Self::Own) }
    }
}

/// Options of `watch`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    redoubt watch postgres://dba@localhost:5432/sales\n  \
    redoubt watch postgres:///sales?host=/var/run/postgresql     over the socket\n  \
    redoubt watch 'postgres://dba@db/sales?sslmode=verify-full&sslrootcert=ca.pem'   by TLS, and only with that server\n  \
    redoubt watch mysql://dba@db1:3306/\n  \
    redoubt watch last                                          the newest run, also while it goes on\n\n\
    A password comes from the URL, or better from PGPASSWORD, ~/.pgpass, MYSQL_PWD or ~/.my.cnf: others can read a command line.\n\
    One connection, which may change nothing, asks once in --every what each session does. Keys: ? explains them, q quits.")]
pub struct Watch {
    /// What: postgres://user@host:port/database, mysql://user@host:port/, the name or path of a run's record, or a directory of records.
    #[arg(value_name = "URL|RUN|DIR")]
    pub what: String,
    /// Time between two looks, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    pub every: f64,
    /// Show it in a browser on this machine instead: prints the address.
    #[arg(long)]
    pub web: bool,
    /// CPUs of the server's machine, for the line in the chart [default: known where it is this machine].
    #[arg(long, value_name = "NUMBER")]
    pub cpus: Option<u32>,
}

/// Options of `run`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    redoubt run commit                           10 sessions commit row by row for a minute\n  \
    redoubt run order-entry --sessions 15 --io setall --minutes 5\n  \
    redoubt run growth --scale 0.1 --dir /data   the article's script, a tenth of its size\n  \
    redoubt run commit --target postgres         the same on a private PostgreSQL server\n  \
    redoubt run commit --target postgres://me@db/app --allow-writes   on a server that is there, in a schema of our own\n  \
    redoubt run order-entry --flash /ssd         with a flash cache there\n  \
    redoubt run order-entry --verify             does the device keep what it is given?\n  \
    redoubt run commit --set commit_logging=batch --redo 16m")]
pub struct Run {
    /// What to run; `redoubt cases` tells what each answers.
    #[arg(value_name = "CASE")]
    pub case: lab::run::Case,
    /// What it runs on: engine (the embedded database), postgres or mariadb (a private server, made and removed by this run), or a server
    /// that is there: postgres://user@host/database, mysql://user@host. Passwords: PGPASSWORD or ~/.pgpass, MYSQL_PWD or ~/.my.cnf.
    #[arg(long, default_value = "engine")]
    pub target: RunOn,
    /// With the URL of a server: make tables there, in a schema redoubt_… of our own, and drop it at the end.
    #[arg(long)]
    pub allow_writes: bool,
    /// Where its programs are, and how long it may hang.
    #[command(flatten)]
    pub server: ServerOptions,
    /// Directory on the storage in question.
    #[arg(long, default_value = ".")]
    pub dir: PathBuf,
    /// Where exports are said to be.
    #[command(flatten)]
    pub oranfstab: Oranfstab,
    /// Length of the measured window, minutes. growth takes what its rounds need.
    #[arg(long, default_value_t = 1.0)]
    pub minutes: f64,
    /// Concurrent sessions.
    #[arg(long, default_value_t = 10)]
    pub sessions: u32,
    /// I/O mode: none, asynch, directio, setall, concurrent [default: setall; with --target postgres none, as it is used].
    #[arg(long, value_name = "MODE")]
    pub io: Option<io::IoMode>,
    /// API of an asynchronous mode: io_uring or libaio; PostgreSQL 18: io_uring or threads [default: io_uring where it works].
    #[arg(long)]
    pub api: Option<io::Api>,
    /// Size of the data; 1 is the article's or the specification's.
    #[arg(long, default_value_t = 0.02)]
    pub scale: f64,
    /// Buffer cache [default: a quarter of the data, 16 to 512 MiB].
    #[arg(long)]
    pub cache: Option<Bytes>,
    /// Where a flash cache lies: here, a directory, a free block device, or throttled:LIMIT [default: none].
    #[arg(long, value_name = "PLACE")]
    pub flash: Option<String>,
    /// Size of the flash cache [default: as large as the data file will be].
    #[arg(long, value_name = "SIZE", requires = "flash")]
    pub flash_size: Option<String>,
    /// What is let into the flash cache: scan_resistant or classic [default: scan_resistant].
    #[arg(long, value_name = "POLICY", requires = "flash")]
    pub flash_policy: Option<String>,
    /// Database block size.
    #[arg(long, default_value = "8k")]
    pub block: Bytes,
    /// Size of each of the three redo groups.
    #[arg(long, default_value = "64m")]
    pub redo: Bytes,
    /// Transactions per second over all sessions, at fixed instants; latency counts from there [default: as fast as they go].
    #[arg(long, value_name = "PER-SECOND")]
    pub rate: Option<f64>,
    /// Keying and think times of order-entry.
    #[arg(long, value_enum, default_value_t = Thinking::None)]
    pub think: Thinking,
    /// A parameter of the database, NAME=VALUE; may be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub parameters: Vec<String>,
    /// Read back at the end everything that was written, past all caches, and compare: finds lost, torn, stale and misdirected writes.
    /// Takes as long as reading it takes.
    #[arg(long)]
    pub verify: bool,
    /// Keep the blocks that are read from storage, sampled, in the record: what `redoubt advise flash` needs.
    #[arg(long)]
    pub references: bool,
    /// Options of every run.
    #[command(flatten)]
    pub run: RunOptions,
}

/// What a case runs on.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RunTarget {
    /// The embedded database.
    Engine,
    /// A private PostgreSQL server.
    Postgres,
    /// A private MariaDB server.
    Mariadb,
}

/// What `run` runs on.
#[derive(Clone)]
pub enum RunOn {
    /// What this run makes, and removes.
    Own(RunTarget),
    /// A server that is there. Read later: nothing that is typed here is shown again, as a password may be in it.
    Url(String),
}

impl std::str::FromStr for RunOn {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains("://") {
            return Ok(Self::Url(text.to_owned()));
        }
        RunTarget::from_str(text, false).map(Self::Own).map_err(|_| {
            "type engine, postgres, mariadb, or the URL of a server: postgres://user@host/database".to_owned()
        })
    }
}

/// How long users think.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Thinking {
    /// Not at all.
    None,
    /// A hundredth of the specification's times.
    Light,
    /// The specification's times.
    Spec,
}

/// Options of `calibrate`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    redoubt calibrate /data               makes its own file there, measures reads, writes and redo\n  \
    redoubt calibrate /data/big.dbf       an existing file: only read\n  \
    redoubt calibrate nfs://filer/vol/db?version=v4.1   an export, by our own NFS client: no mount, no root\n  \
    redoubt calibrate /dev/sdb            a device: only read\n  \
    redoubt calibrate /dev/sdb --destroy /dev/sdb   also written; ALL ITS DATA IS LOST")]
pub struct Calibrate {
    /// Directory, export (nfs://server/path), existing file (only read) or block device (only read).
    #[arg(default_value = ".")]
    pub target: PathBuf,
    /// Where exports are said to be.
    #[command(flatten)]
    pub oranfstab: Oranfstab,
    /// About 40 s; the maximum is then a lower bound.
    #[arg(long, conflicts_with = "thorough")]
    pub quick: bool,
    /// About 15 minutes; the constants of the method in full.
    #[arg(long)]
    pub thorough: bool,
    /// Highest acceptable mean latency of a single-block read, milliseconds (Oracle's max_latency).
    #[arg(long, default_value_t = 20.0, value_name = "MS")]
    pub max_latency: f64,
    /// Database block size.
    #[arg(long, default_value = "8k")]
    pub block: Bytes,
    /// Size of our own file, or how much of a file or device is used [default: 1g, all of what is only read].
    #[arg(long)]
    pub size: Option<Bytes>,
    /// Sessions of the group commit figures.
    #[arg(long, default_value_t = 10)]
    pub sessions: u32,
    /// Overwrite this block device; type the target's full name again.
    #[arg(long, value_name = "DEVICE")]
    pub destroy: Option<PathBuf>,
    /// Options of every run.
    #[command(flatten)]
    pub run: RunOptions,
}

/// Options of `advise`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    redoubt run order-entry --references          keep the blocks that it reads\n  \
    redoubt advise flash                          what would a flash cache serve of them?\n  \
    redoubt advise flash --slow /hdd --fast /ssd  and how much faster would it be?\n  \
    redoubt advise flash --fast 90us              the same before the purchase, by the data sheet\n  \
    redoubt advise flash --trace reads.csv --cache 2g --slow 6ms --fast 90us\n\n\
    A trace has one read in each line: `file block`, or an offset in bytes, or columns named in the first line: file, block,\n\
    offset, size, op.")]
pub struct Advise {
    /// What is thought of: flash, a second-level cache on a fast device.
    #[arg(value_name = "WHAT")]
    pub what: Purchase,
    /// A run with --references: a record's path, the beginning of its name, or `last` [default: the newest that has them].
    #[arg(value_name = "RUN", conflicts_with = "trace")]
    pub run: Option<String>,
    /// Reads that reached storage, one in each line, in place of a run.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Sizes to look at, such as 4g,8g,16g [default: eight, by what was read].
    #[arg(long, value_delimiter = ',', value_name = "SIZE,…")]
    pub sizes: Vec<Bytes>,
    /// What is let in: scan_resistant or classic (db_flash_cache_policy).
    #[arg(long, default_value = "scan_resistant")]
    pub policy: stats::mrc::miniature::Policy,
    /// Where the data files are: a directory, which is measured, or the time of a read [default: where the run was].
    #[arg(long, value_name = "DIR|TIME")]
    pub slow: Option<lab::advise::Place>,
    /// Where the flash cache would be: a directory, or the time of a read, such as 90us [default: only hit ratios].
    #[arg(long, value_name = "DIR|TIME")]
    pub fast: Option<lab::advise::Place>,
    /// Block of the database that a trace is of.
    #[arg(long, default_value = "8k", requires = "trace")]
    pub block: Bytes,
    /// Buffer cache of the database that a trace is of [default: unknown].
    #[arg(long, requires = "trace")]
    pub cache: Option<Bytes>,
    /// Sessions that read at once in a trace.
    #[arg(long, default_value_t = 10, requires = "trace")]
    pub sessions: u32,
    /// Options of every run.
    #[command(flatten)]
    pub options: RunOptions,
}

/// What may be bought.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Purchase {
    /// A flash cache.
    Flash,
}

/// Options that every measuring command has.
#[derive(Args)]
pub struct RunOptions {
    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,
    /// Show no progress.
    #[arg(long, short)]
    pub quiet: bool,
    /// Repeat the random choices of an earlier run.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Where the record goes [default: the directory that `redoubt report` looks in].
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
}

/// Options of `trace`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    sudo redoubt trace --pid $(pidof mariadbd)       a server that runs, for 10 seconds\n  \
    redoubt trace --target postgres                  a private server, ten sessions that commit\n  \
    redoubt trace --target engine random-read --io asynch --api libaio\n  \
    redoubt trace -- dd if=/dev/zero of=x bs=8k count=100 oflag=direct,dsync\n\n\
    Needs root and tracefs. Otherwise strace is used, which slows every call down and cannot see io_uring.")]
pub struct Trace {
    /// A process that runs, with its threads and all that came from it.
    #[arg(long, value_name = "N", conflicts_with_all = ["target", "words"])]
    pub pid: Option<u32>,
    /// A private database that plays a short workload: engine, postgres or mariadb.
    #[arg(long, value_enum)]
    pub target: Option<RunTarget>,
    /// What is played with --target: commit, order-entry or random-read [default: commit]; behind `--`, a command to start and trace.
    #[arg(value_name = "CASE | -- CMD")]
    pub words: Vec<std::ffi::OsString>,
    /// How long.
    #[arg(long, default_value_t = 10.0)]
    pub seconds: f64,
    /// Concurrent sessions of --target.
    #[arg(long, default_value_t = 10, requires = "target")]
    pub sessions: u32,
    /// I/O mode of --target: none, asynch, directio, setall, concurrent [default: setall; with postgres none, as it is used].
    #[arg(long, value_name = "MODE", requires = "target")]
    pub io: Option<io::IoMode>,
    /// API of an asynchronous mode: io_uring or libaio.
    #[arg(long, requires = "target")]
    pub api: Option<io::Api>,
    /// A parameter of the database of --target, NAME=VALUE; may be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE", requires = "target")]
    pub parameters: Vec<String>,
    /// Folder of PostgreSQL's programs [default: found along PATH and in the usual folders].
    #[arg(long, value_name = "DIR")]
    pub pg_bin: Option<PathBuf>,
    /// Folder of MariaDB's programs [default: found along PATH and in the usual folders].
    #[arg(long, value_name = "DIR")]
    pub mariadb_bin: Option<PathBuf>,
    /// Where --target makes its files.
    #[arg(long, default_value = ".")]
    pub dir: PathBuf,
    /// By strace, also where the kernel's tracer works.
    #[arg(long)]
    pub strace: bool,
    /// Options of every run.
    #[command(flatten)]
    pub run: RunOptions,
}

/// Options of `doctor`.
#[derive(Args)]
pub struct Doctor {
    /// Directory, file or device to look at.
    #[arg(default_value = ".")]
    pub path: PathBuf,
    /// Print the findings as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Options of `serve`.
#[derive(Args)]
pub struct Serve {
    /// Folder of records [default: where runs are kept].
    #[arg(value_name = "DIR")]
    pub folder: Option<PathBuf>,
}

/// Options of `report`.
#[derive(Args)]
#[command(after_help = "RUN is a record's path, the beginning of its name, or `last`.\n\nExamples:\n  \
    redoubt report last\n  redoubt report old.redoubt new.redoubt --html both.html\n  redoubt report last --csv tables/\n  redoubt report last --awr awrrpt_1_1201_1202.txt\n  redoubt report last --hit-ratio 0.99 --commits-per-tx 2")]
pub struct Report {
    /// The runs; none: list them.
    pub runs: Vec<String>,
    /// Write the page here; one self-contained file.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["csv", "format"])]
    pub html: Option<PathBuf>,
    /// What to print.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Write every table of the record as CSV into this directory (one run).
    #[arg(long, value_name = "DIR", conflicts_with = "format")]
    pub csv: Option<PathBuf>,
    /// The mix that a comparison is weighted for.
    #[command(flatten)]
    pub mix: MixOptions,
}

/// Your own mix: what is typed goes before what a file or a run says.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Your own mix, for the weighted verdict")]
pub struct MixOptions {
    /// Share of reads among your database's block accesses, 0 to 1 [compare: 0.9].
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub read_share: Option<f64>,
    /// Your database's buffer cache hit ratio, 0 to 1 [compare: 0.9].
    #[arg(long, value_name = "RATIO", allow_negative_numbers = true)]
    pub hit_ratio: Option<f64>,
    /// Commits in a transaction.
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub commits_per_tx: Option<f64>,
    /// The mix of an AWR report (text or HTML), or of a table `metric,value per second`.
    #[arg(long, value_name = "FILE")]
    pub awr: Option<PathBuf>,
    /// The mix of a server that runs: the file that `redoubt profile URL` wrote.
    #[arg(long, value_name = "FILE", conflicts_with = "awr")]
    pub like: Option<PathBuf>,
    /// The mix of a run: redoubt run order-entry, then --mix-from last.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["awr", "like"])]
    pub mix_from: Option<String>,
}

/// What `report` prints.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For the terminal.
    Text,
    /// Verdicts, figures and doubts.
    Json,
    /// The whole record, all rows.
    Raw,
}

/// Options of `sql`.
#[derive(Args)]
#[command(
    after_help = "TARGET is a directory with a database, or a run: a record's path, the beginning of its name, or `last`.\n\nExamples:\n  \
    redoubt sql /data/db --create                  make a database there and type statements\n  \
    redoubt sql nfs://filer/vol/db --create        the same on an export, by our own NFS client\n  \
    redoubt sql /data/db growth.sql                run a script, as sqlplus does\n  \
    redoubt sql /data/db --set filesystemio_options=setall -c \"select count(*) from t\"\n  \
    redoubt sql last -c \"select * from v$system_event order by time_waited desc\""
)]
pub struct Sql {
    /// Directory of a database, here or on an export (nfs://server/export/path), or a run.
    #[arg(default_value = ".")]
    pub target: String,
    /// Where exports are said to be.
    #[command(flatten)]
    pub oranfstab: Oranfstab,
    /// Script to run; without it and without -c, statements are typed, or come from a pipe.
    #[arg(conflicts_with = "command")]
    pub file: Option<PathBuf>,
    /// Statements to run.
    #[arg(short, long, value_name = "TEXT")]
    pub command: Vec<String>,
    /// Make a new database in the directory, which must be new or empty.
    #[arg(long)]
    pub create: bool,
    /// First size of a new database's data file; it grows.
    #[arg(long, requires = "create", default_value = "64m")]
    pub data: Bytes,
    /// Size of each of a new database's three redo groups.
    #[arg(long, requires = "create", default_value = "64m")]
    pub redo: Bytes,
    /// A parameter for this time, such as db_cache_size=64m; with --create the database keeps it.
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
}

/// Options of `cleanup`.
#[derive(Args)]
pub struct Cleanup {
    /// Only say what would be undone.
    #[arg(long)]
    pub dry_run: bool,
}
