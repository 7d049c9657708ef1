//! A private MariaDB, as Debian packages it: its defaults, a buffer pool as large as our cache, redo as large as ours.

use super::REDO_TOTAL;
use super::server::{answer, start};
use host::journal::Journal;
use io::IoMode;
use lab::server::{Kind, Server};
use std::path::Path;
use std::process::Command;

/// So many are asked for, for each second that is wanted: what it does here, roughly.
const QUERIES_PER_SECOND: f64 = 12_000.0;

pub struct Mariadb {
    server: Server,
}

impl Mariadb {
    pub fn start(folder: &Path, journal: &mut Journal) -> Self {
        let quiet = [("performance-schema", "OFF")];
        let server = start(Kind::Mariadb, IoMode::Setall, REDO_TOTAL, &quiet, folder, journal);
        let this = Self { server };
        let columns: Vec<String> = (1..=10).map(|n| format!("t{n} varchar(100)")).collect();
        this.sql(&format!(
            "create database bench; create table bench.committed (id bigint auto_increment primary key, {})",
            columns.join(", ")
        ));
        this
    }

    /// A client program, ready for its arguments.
    fn client(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let socket = self.server.connector().socket();
        command.args(["--no-defaults", "-uroot", "-S"]).arg(socket);
        command
    }

    fn sql(&self, text: &str) {
        answer(self.client("mariadb").args(["-e", text]));
    }

    /// Commits per second of rows of about 1,000 bytes, by mariadb-slap. A procedure that commits in a loop would have no way to the
    /// client and back, but its commits do not wait: 47 of 10 sessions shared one write of the log, where 10 can.
    pub fn commits(&self, clients: u32, seconds: f64) -> f64 {
        let texts = vec![format!("'{}'", "x".repeat(97)); 10].join(", ");
        let queries = (QUERIES_PER_SECOND * seconds) as u64;
        self.sql("truncate bench.committed");
        let output = answer(self.client("mariadb-slap").args([
            "--create-schema=bench".into(),
            "--no-drop".into(),
            "--csv".into(),
            format!("--concurrency={clients}"),
            format!("--number-of-queries={queries}"),
            format!("--query=insert into committed values (null, {texts})"),
        ]));
        // Engine, kind, seconds on average, least, most, clients, queries of each.
        let took: Option<f64> = output.trim().split(',').nth(2).and_then(|field| field.parse().ok());
        queries as f64 / took.unwrap_or_else(|| panic!("mariadb-slap gives no time but {output:?}"))
    }
}
