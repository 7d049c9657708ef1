//! Our clients of PostgreSQL and MariaDB against pgbench and sysbench: the same statements on the same server, alternating.
//!
//! Two transactions, prepared once: one row read by its key from a table that the cache holds (nothing waits, so the client shows most), and
//! one row of about 1,000 bytes inserted, which commits by itself (the log shows most). As many threads as sessions on both sides. The
//! processor time is that of the client alone, the kernel's work for it included.
//!
//! `cargo x bench clients [postgres] [mariadb] --rounds 5 --seconds 4 --sessions 4 [--pg-bin DIR]`
#![forbid(unsafe_code)]

mod common;

use common::child::{self, cpu_of_self};
use common::flags::Flags;
use common::goals::{Aim, Goals};
use engine::Placement;
use host::counters::Watch;
use host::journal::Journal;
use host::workspace::Workspace;
use io::{Api, IoMode};
use lab::LabError;
use lab::database::drive::{Pace, Played, Player, Terms, play_counted};
use lab::database::interval::Moment;
use lab::server::connection::StatementId;
use lab::server::{Connection, Kind, Parameter, Server, Settings};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use units::{Bytes, Nanos, Rng, Seed};

const ROWS: i64 = 100_000;
const SETTLE: Nanos = Nanos::millis(300);
/// Rates may differ by this share, and a transaction may cost so many times the peer's processor time.
const RATE_OFF_MAX: f64 = 0.05;
const CPU_MAX: f64 = 1.2;
static NEVER: AtomicBool = AtomicBool::new(false);

/// What a transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transaction {
    Read,
    Insert,
}

impl Transaction {
    const ALL: [Self; 2] = [Self::Read, Self::Insert];

    fn words(self) -> &'static str {
        match self {
            Self::Read => "one row read by its key",
            Self::Insert => "one row inserted and committed",
        }
    }

    fn sql(self, place: &str) -> String {
        match self {
            Self::Read => format!("select v from read_rows where id = {place}"),
            Self::Insert => {
                format!("insert into written_rows (id, t) values ({place}, '{}')", "x".repeat(970))
            }
        }
    }
}

/// What a client did.
#[derive(Clone, Copy, Debug)]
struct Done {
    per_second: f64,
    /// Processor time of a transaction, seconds.
    cpu: f64,
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    let measured = flags.measured();
    let rounds = flags.number("rounds", if measured { 5 } else { 1 });
    let seconds: f64 = flags.number("seconds", if measured { 4.0 } else { 1.0 });
    let sessions = flags.number("sessions", 4);
    let mut goals = Goals::default();
    // A rehearsal takes the one whose peer is in its own package.
    let wanted = |kind: Kind| match (flags.names("postgres"), flags.names("mariadb")) {
        (false, false) => measured || kind == Kind::Postgres,
        (postgres, mariadb) => {
            if kind == Kind::Postgres {
                postgres
            } else {
                mariadb
            }
        }
    };
    for kind in Kind::ALL.into_iter().filter(|kind| wanted(*kind)) {
        let bench = Bench::new(kind, flags.text("pg-bin").map(PathBuf::from), sessions, seconds);
        for transaction in Transaction::ALL {
            let (mut rates, mut costs) = (Vec::new(), Vec::new());
            for round in 0..rounds {
                let ours_first = round % 2 == 0;
                let first = if ours_first { bench.ours(transaction) } else { bench.peers(transaction) };
                let second = if ours_first { bench.peers(transaction) } else { bench.ours(transaction) };
                let (ours, peers) = if ours_first { (first, second) } else { (second, first) };
                println!(
                    "  {kind}, {}: ours {:.0}/s at {:.1} µs of a processor, {} {:.0}/s at {:.1} µs",
                    transaction.words(),
                    ours.per_second,
                    ours.cpu * 1e6,
                    bench.peer(),
                    peers.per_second,
                    peers.cpu * 1e6
                );
                rates.push(ours.per_second / peers.per_second);
                costs.push(ours.cpu / peers.cpu);
            }
            let what = format!("{kind} against {}, {}", bench.peer(), transaction.words());
            let rate = format!("{what}: rate");
            goals.rounds(&rate, &rates, Aim::AtLeast(1.0 - RATE_OFF_MAX));
            goals.rounds(&format!("{what}: processor time"), &costs, Aim::AtMost(CPU_MAX));
        }
        bench.end();
    }
    goals.conclude(measured)
}

struct Bench {
    server: Server,
    folder: PathBuf,
    journal: Journal,
    workspace: Option<Workspace>,
    sessions: u32,
    seconds: f64,
}

impl Bench {
    fn new(kind: Kind, programs: Option<PathBuf>, sessions: u32, seconds: f64) -> Self {
        let name = format!("redoubt-clients-{}-{}", kind.name(), std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        // The server's user passes through it.
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o711)).expect("permissions");
        let mut journal = Journal::open_in(&folder.join("state"), "bench").expect("a journal");
        let workspace = Workspace::create(&folder, &mut journal).expect("a workspace");
        let settings = Settings {
            cache: Bytes::mib(256),
            redo: Bytes::mib(1024),
            mode: IoMode::None,
            api: Api::Threads,
            block: None,
            connections: sessions + 16,
            // As it is delivered: nothing is timed or looked at.
            parameters: match kind {
                Kind::Postgres => vec![("track_io_timing".into(), "off".into())],
                Kind::Mariadb => vec![("performance-schema".into(), "OFF".into())],
            },
        };
        let programs = programs.filter(|_| kind == Kind::Postgres);
        let at = (workspace.path(), &Placement::default());
        let mut server = Server::create(kind, programs.as_deref(), at, &settings, &mut journal, &NEVER)
            .unwrap_or_else(|error| panic!("{error}"));
        server.start(&NEVER).unwrap_or_else(|error| panic!("{error}"));
        let mut session = server.connect("prepare").expect("a session");
        let numbers = match kind {
            Kind::Postgres => format!("generate_series(1, {ROWS}) as n(n)"),
            Kind::Mariadb => format!("(select seq as n from seq_1_to_{ROWS}) as n"),
        };
        for sql in [
            "create table read_rows (id bigint primary key, v bigint)",
            &format!("insert into read_rows select n, n from {numbers}"),
            "create table written_rows (id bigint, t varchar(1000))",
        ] {
            session.execute(sql).expect("a table");
        }
        if kind == Kind::Postgres {
            session.execute("vacuum analyze read_rows").expect("vacuum");
        }
        drop(session);
        Self { server, folder, journal, workspace: Some(workspace), sessions, seconds }
    }

    fn peer(&self) -> &'static str {
        match self.server.kind() {
            Kind::Postgres => "pgbench",
            Kind::Mariadb => "sysbench",
        }
    }

    /// Neither side begins with what the other one left.
    fn clear(&self, transaction: Transaction) {
        if transaction == Transaction::Insert {
            self.server
                .connect("clear")
                .and_then(|mut s| s.execute("truncate table written_rows"))
                .expect("empty");
        }
    }

    fn ours(&self, transaction: Transaction) -> Done {
        self.clear(transaction);
        let kind = self.server.kind();
        let mut players: Vec<Box<dyn Player>> = Vec::new();
        for _ in 0..self.sessions {
            let mut session = self.server.connect("bench").expect("a session");
            let statement = session.prepare(&transaction.sql(&kind.place(1))).expect("prepared");
            players.push(Box::new(Client { session, statement }));
        }
        let watch = Watch::default();
        let terms = Terms {
            settle: SETTLE,
            measure: Nanos::secs(self.seconds),
            slice: Nanos::secs(self.seconds),
            pace: Pace::Closed,
            seed: Seed(1),
            cancel: &NEVER,
            watch: &watch,
        };
        let mut cpu = Vec::new();
        let performance = play_counted(players, 1, terms, &mut |_| {
            cpu.push(cpu_of_self());
            Moment::uncounted(&watch)
        })
        .unwrap_or_else(|error| panic!("{error}"));
        let trial = &performance.trial;
        Done { per_second: trial.rate(), cpu: (cpu[1] - cpu[0]) / trial.ops.max(1) as f64 }
    }

    fn peers(&self, transaction: Transaction) -> Done {
        self.clear(transaction);
        let words = match self.server.kind() {
            Kind::Postgres => self.pgbench(transaction),
            Kind::Mariadb => self.sysbench(transaction),
        };
        let finished = child::run(&words);
        let (count, per_second) = match self.server.kind() {
            // number of transactions actually processed: 123 · tps = 45.6 (without initial connection time)
            Kind::Postgres => (after(&finished.stdout, "processed: "), after(&finished.stdout, "tps = ")),
            // transactions:    123    (45.6 per sec.)
            Kind::Mariadb => {
                let line = finished.stdout.lines().find(|l| l.contains("transactions:")).expect("a line");
                (after(line, "transactions:"), after(line, "("))
            }
        };
        Done { per_second, cpu: finished.cpu_seconds / count }
    }

    fn pgbench(&self, transaction: Transaction) -> Vec<String> {
        let text = format!("\\set id random(1, {ROWS})\n{};\n", transaction.sql(":id"));
        let script = self.script("pgbench.sql", &text);
        // Debian's programs are in one folder; other packages of PostgreSQL have no clients.
        let beside = self.server.programs().server.with_file_name("pgbench");
        let program = if beside.exists() { beside } else { PathBuf::from("pgbench") };
        let socket = self.server.connector().socket();
        let (sessions, seconds) = (self.sessions.to_string(), self.seconds.ceil().to_string());
        words(&[
            &program.display().to_string(),
            "-h",
            &socket.parent().expect("a folder").display().to_string(),
            "-U",
            "postgres",
            "-n",
            "-M",
            "prepared",
            "-c",
            &sessions,
            "-j",
            &sessions,
            "-T",
            &seconds,
            "-f",
            &script,
            "postgres",
        ])
    }

    fn sysbench(&self, transaction: Transaction) -> Vec<String> {
        let text = format!(
            "function thread_init()\n  con = sysbench.sql.driver():connect()\n  st = con:prepare(\"{}\")\n  \
             id = st:bind_create(sysbench.sql.type.BIGINT)\n  st:bind_param(id)\nend\n\
             function event()\n  id:set(sysbench.rand.uniform(1, {ROWS}))\n  st:execute()\nend\n\
             function thread_done()\n  st:close()\n  con:disconnect()\nend\n",
            transaction.sql("?")
        );
        let script = self.script("sysbench.lua", &text);
        let socket = self.server.connector().socket().display().to_string();
        words(&[
            "sysbench",
            &script,
            "--db-driver=mysql",
            &format!("--mysql-socket={socket}"),
            "--mysql-user=root",
            "--mysql-db=redoubt",
            &format!("--threads={}", self.sessions),
            &format!("--time={}", self.seconds.ceil()),
            "--events=0",
            "run",
        ])
    }

    fn script(&self, name: &str, text: &str) -> String {
        let path = self.folder.join(name);
        std::fs::write(&path, text).expect("a script");
        path.display().to_string()
    }

    fn end(mut self) {
        self.server.stop().unwrap_or_else(|error| panic!("{error}"));
        drop(self.server);
        drop(self.workspace.take());
        self.journal.undo_all().expect("remove the workspace");
        remove(&self.folder);
    }
}

struct Client {
    session: Box<dyn Connection>,
    statement: StatementId,
}

impl Player for Client {
    fn play(&mut self, rng: &mut Rng) -> Result<Played, LabError> {
        let id = 1 + rng.below(ROWS as u64) as i64;
        self.session.call(self.statement, &[Parameter::Integer(id)])?;
        Ok(Played { class: 0, bytes: 0 })
    }
}

fn remove(folder: &Path) {
    std::fs::remove_dir_all(folder).expect("remove the folder");
}

fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|word| (*word).to_owned()).collect()
}

/// The number behind `word`.
fn after(text: &str, word: &str) -> f64 {
    let (_, rest) = text.split_once(word).unwrap_or_else(|| panic!("no {word:?} in {text}"));
    let number: String = rest.trim_start().chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    number.parse().unwrap_or_else(|_| panic!("no number behind {word:?} in {text}"))
}
