//! A private PostgreSQL cluster, as Debian packages it, on a socket of its own.

use super::server::{answer, start};
use super::{NEVER, REDO_TOTAL};
use crate::common::goals::median;
use host::journal::Journal;
use io::IoMode;
use lab::database::order_entry::Scale;
use lab::server::cases::order_entry;
use lab::server::{Kind, Server};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use units::Bytes;

/// Its superuser.
const USER: &str = "postgres";
/// Order entry's transactions: share in percent, and the call. The clerk's warehouse is `:w`.
const ORDER_ENTRY: [(u32, &str); 5] = [
    (45, "call new_order(:w, :warehouses, :customers, :items);"),
    (43, "call payment(:w, :warehouses, :customers);"),
    (4, "call order_status(:w, :customers);"),
    (4, "call delivery(:w);"),
    (4, "call stock_level(:w);"),
];

pub struct Postgres {
    server: Server,
    /// Of its socket, and of our scripts.
    folder: PathBuf,
    /// Of psql and pgbench.
    bin: PathBuf,
}

impl Postgres {
    pub fn start(folder: &Path, journal: &mut Journal) -> Self {
        let quiet = [("track_io_timing", "off"), ("track_wal_io_timing", "off")];
        let redo = Bytes(REDO_TOTAL.0.max(4 << 30));
        let server = start(Kind::Postgres, IoMode::None, redo, &quiet, folder, journal);
        let parent = |path: &Path| path.parent().expect("a folder").to_owned();
        let (folder, bin) = (parent(&server.data()), parent(&server.programs().server));
        let this = Self { server, folder, bin };
        let texts: Vec<String> = (1..=10).map(|n| format!("t{n} varchar(100)")).collect();
        this.sql(&format!("create table committed (id bigint, {})", texts.join(", ")));
        this
    }

    fn client(&self, program: &str) -> Command {
        let mut command = Command::new(self.bin.join(program));
        command.arg("-h").arg(&self.folder).args(["-U", USER]);
        command
    }

    fn sql(&self, text: &str) -> String {
        answer(self.client("psql").args(["-XAtq", "-c", "\\timing on", "-c", text, "postgres"]))
    }

    /// The number that a query answers.
    fn number(&self, query: &str) -> f64 {
        let text = self.sql(query);
        text.lines().find_map(|line| line.trim().parse().ok()).expect("a number")
    }

    /// Seconds of a statement, as psql times it.
    fn seconds(&self, text: &str) -> f64 {
        let output = self.sql(text);
        let line = output.lines().rev().find_map(|line| line.strip_prefix("Time: ")).expect("a time");
        let milliseconds: f64 = line.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
        milliseconds / 1e3
    }

    /// A script for pgbench.
    fn script(&self, name: &str, text: &str) -> String {
        let path = self.folder.join(name);
        std::fs::write(&path, text).expect("a script");
        path.display().to_string()
    }

    /// Transactions per second of prepared scripts.
    fn pgbench(&self, clients: u32, seconds: f64, arguments: &[String]) -> f64 {
        let text = answer(
            self.client("pgbench")
                .args(["-n", "-M", "prepared", "-j", "2", "-c", &clients.to_string()])
                .args(["-T", &seconds.ceil().to_string()])
                .args(arguments)
                .arg("postgres")
                .stderr(Stdio::null()),
        );
        let line = text.lines().find_map(|line| line.strip_prefix("tps = "));
        line.and_then(|line| line.split(' ').next()).and_then(|n| n.parse().ok()).expect("a rate")
    }

    /// Commits per second of rows of about 1,000 bytes.
    pub fn commits(&self, clients: u32, seconds: f64) -> f64 {
        let texts = vec![format!("'{}'", "x".repeat(97)); 10].join(", ");
        let insert =
            self.script("insert.sql", &format!("insert into committed values (:client_id, {texts});\n"));
        self.sql("truncate committed; checkpoint");
        self.pgbench(clients, seconds, &["-f".into(), insert])
    }

    /// A table like ours.
    pub fn fill(&self, table: &str, rows: u64) {
        self.sql(&format!(
            "create table {table} as select 'SYS'::text as owner, 'DBMS_UNIT_' || lpad((n / 400)::text, 6, '0') as name, \
             'PACKAGE'::text as type, n % 400 as line, repeat('abcdefgh', 8) || md5(n::text) as text from \
             generate_series(1, {rows}) n"
        ));
        self.sql(&format!("vacuum analyze {table}"));
    }

    /// Rows per second of a cached full scan.
    pub fn count(&self, table: &str) -> f64 {
        let query = format!("select count(*) from {table}");
        self.sql(&query);
        let times: Vec<f64> = (0..9).map(|_| self.seconds(&query)).collect();
        self.number(&query) / median(&times)
    }

    /// MB/s of doubling a table.
    pub fn grow(&self, rows: u64) -> f64 {
        self.fill("t", rows);
        self.sql("checkpoint");
        let size = || self.number("select pg_relation_size('t')");
        let before = size();
        let seconds = self.seconds("insert into t select * from t");
        let rate = (size() - before) / 1e6 / seconds;
        self.sql("drop table t");
        rate
    }

    /// Makes the tables, indexes, first rows and procedures of order entry; bytes of them all.
    pub fn prepare_order_entry(&self, scale: Scale) -> f64 {
        order_entry::prepare(&self.server, scale, &NEVER).unwrap_or_else(|error| panic!("{error}"));
        self.sql("checkpoint");
        self.number("select pg_database_size('postgres')")
    }

    fn variables(scale: Scale) -> [(&'static str, i64); 3] {
        [("warehouses", scale.warehouses), ("customers", scale.customers), ("items", scale.items)]
    }

    /// Transactions of all kinds per second.
    pub fn order_entry(&self, scale: Scale, clients: u32, seconds: f64) -> f64 {
        // A transaction that lost a deadlock is played again, as ours is.
        let mut arguments = vec!["--max-tries=100".to_owned()];
        for (name, value) in Self::variables(scale) {
            arguments.extend(["-D".into(), format!("{name}={value}")]);
        }
        for (at, (share, call)) in ORDER_ENTRY.into_iter().enumerate() {
            let text = format!("\\set w 1 + :client_id % :warehouses\n{call}\n");
            let path = self.script(&format!("call{at}.sql"), &text);
            arguments.extend(["-f".into(), format!("{path}@{share}")]);
        }
        self.pgbench(clients, seconds, &arguments)
    }
}
