//! A private PostgreSQL cluster, as Debian packages it, on a socket of its own.

use super::server::{answer, as_user, folder_of, quiet};
use super::{CACHE, REDO_TOTAL};
use crate::common::goals::median;
use lab::database::order_entry::Scale;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the server must not be root for.
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
    folder: PathBuf,
    bin: PathBuf,
}

impl Postgres {
    pub fn start(folder: &Path) -> Self {
        let mut versions: Vec<_> =
            std::fs::read_dir("/usr/lib/postgresql").expect("PostgreSQL is installed").flatten().collect();
        versions.sort_by_key(std::fs::DirEntry::path);
        let bin = versions.last().expect("a version of PostgreSQL").path().join("bin");
        folder_of(USER, folder);
        let this = Self { folder: folder.to_owned(), bin };
        quiet(this.command("initdb").args(["-D", "data", "-U", USER, "-A", "trust", "--no-sync"]));
        // synchronous_commit and fdatasync are the defaults; they are written out because the comparison rests on them.
        let options = format!(
            "-c listen_addresses= -c unix_socket_directories=. -c shared_buffers={}MB -c synchronous_commit=on \
             -c wal_sync_method=fdatasync -c max_wal_size={}MB -c autovacuum=off",
            CACHE.0 >> 20,
            (REDO_TOTAL.0 >> 20).max(4096),
        );
        quiet(this.command("pg_ctl").args(["-D", "data", "-w", "-l", "log", "-o", &options, "start"]));
        let texts: Vec<String> = (1..=10).map(|n| format!("t{n} varchar(100)")).collect();
        this.sql(&format!("create table committed (id bigint, {})", texts.join(", ")));
        this
    }

    /// A program of the server, as its user, in its folder.
    fn command(&self, program: &str) -> Command {
        as_user(USER, &self.bin.join(program), &self.folder)
    }

    fn client(&self, program: &str) -> Command {
        let mut command = self.command(program);
        command.arg("-h").arg(self.folder.join("data")).args(["-U", USER]);
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
        let script = self.script("order_entry.sql", include_str!("order_entry.sql"));
        let mut psql = self.client("psql");
        psql.args(["-XAtq", "-f", &script]);
        for (name, value) in Self::variables(scale) {
            psql.args(["-v", &format!("{name}={value}")]);
        }
        answer(psql.arg("postgres"));
        self.sql("vacuum analyze");
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

impl Drop for Postgres {
    fn drop(&mut self) {
        let stop = self
            .command("pg_ctl")
            .args(["-D", "data", "-m", "immediate", "stop"])
            .stdout(Stdio::null())
            .status();
        if !stop.is_ok_and(|status| status.success()) {
            eprintln!("PostgreSQL in {} could not be stopped", self.folder.display());
        }
    }
}
