//! A private MariaDB, as Debian packages it: its defaults, a buffer pool as large as our cache, redo as large as ours.

use super::server::{answer, as_user, folder_of, quiet};
use super::{CACHE, REDO_TOTAL};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use units::{Nanos, clock};

/// What the server must not be root for.
const USER: &str = "mysql";
/// Until a new server must answer.
const START_MAX: Nanos = Nanos::millis(60_000);
/// So many are asked for, for each second that is wanted: what it does here, roughly.
const QUERIES_PER_SECOND: f64 = 12_000.0;

pub struct Mariadb {
    folder: PathBuf,
    server: Child,
}

impl Mariadb {
    pub fn start(folder: &Path) -> Self {
        folder_of(USER, folder);
        let data = folder.join("data");
        quiet(
            Command::new("mariadb-install-db")
                .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"])
                .arg(format!("--user={USER}"))
                .arg(format!("--datadir={}", data.display())),
        );
        // O_DIRECT and a flush at each commit are the defaults; they are written out because the comparison rests on them.
        let server = as_user(USER, Path::new("/usr/sbin/mariadbd"), folder)
            .args([
                "--no-defaults",
                "--skip-networking",
                "--socket=s.sock",
                "--pid-file=pid",
                "--log-error=log",
            ])
            .args(["--innodb-flush-log-at-trx-commit=1", "--innodb-flush-method=O_DIRECT"])
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--innodb-buffer-pool-size={}", CACHE.0))
            .arg(format!("--innodb-log-file-size={}", REDO_TOTAL.0))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("mariadbd");
        let this = Self { folder: data, server };
        let begun = clock::now();
        while !this
            .client("mariadb")
            .args(["-e", "select 1"])
            .output()
            .is_ok_and(|output| output.status.success())
        {
            assert!(
                clock::now() < begun + START_MAX,
                "mariadbd does not answer: see its log in {:?}",
                this.folder
            );
            clock::sleep(Nanos::millis(200));
        }
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
        command.args(["--no-defaults", "-uroot", "-S", "s.sock"]).current_dir(&self.folder);
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

impl Drop for Mariadb {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
