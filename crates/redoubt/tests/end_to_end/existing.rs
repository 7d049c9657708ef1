//! A server that was there before: nothing of it changes but a schema of ours while a run lasts, and what it refuses is told in words.
//!
//! The server is a private one of the laboratory's, which for these tests belongs to somebody else.

use crate::stage::{Stage, measuring};
use engine::Placement;
use host::journal::Journal;
use host::workspace::Workspace;
use io::{Api, IoMode};
use lab::server::{Kind, Server, Settings};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::AtomicBool;
use units::{Bytes, Nanos, clock};

static GO_ON: AtomicBool = AtomicBool::new(false);
const PASSWORD: &str = "tiger+scott";

/// Somebody's server.
pub struct Somebodys {
    pub server: Server,
    journal: Journal,
    _workspace: Workspace,
    _folder: tempfile::TempDir,
}

impl Somebodys {
    pub fn start(kind: Kind) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711)).expect("permissions");
        let mut journal = Journal::open_in(&folder.path().join("state"), "test").expect("a journal");
        let workspace = Workspace::create(folder.path(), &mut journal).expect("a workspace");
        let settings = Settings {
            cache: Bytes::mib(16),
            redo: Bytes::mib(64),
            mode: IoMode::None,
            api: Api::Threads,
            block: None,
            connections: 12,
            parameters: Vec::new(),
        };
        let at = (workspace.path(), &Placement::default());
        let server = Server::create(kind, None, at, &settings, &mut journal, &GO_ON);
        let mut server = server.unwrap_or_else(|error| panic!("{error}"));
        server.start(&GO_ON).unwrap_or_else(|error| panic!("{error}"));
        let mut session = server.connect("owner").expect("a session");
        if kind == Kind::Mariadb {
            session
                .execute(&format!("create user scott@localhost identified by '{PASSWORD}'"))
                .expect("a user");
            session.execute("grant all on `redoubt\\_%`.* to scott@localhost").expect("rights");
            session.execute("grant process on *.* to scott@localhost").expect("rights");
        }
        drop(session);
        Self { server, journal, _workspace: workspace, _folder: folder }
    }

    pub fn url(&self, password: &str) -> String {
        let socket = self.server.connector().socket();
        match self.server.kind() {
            Kind::Postgres => {
                let folder = socket.parent().expect("a folder").display().to_string();
                // Its socket asks for no password; one that is given must show up nowhere all the same.
                format!("postgres://postgres:{password}@/postgres?host={folder}")
            }
            Kind::Mariadb => format!("mysql://scott:{password}@localhost/?socket={}", socket.display()),
        }
    }

    /// Schemas of ours in it.
    pub fn left(&self) -> i64 {
        let mut session = self.server.connect("owner").expect("a session");
        session
            .number("select count(*) from information_schema.schemata where schema_name like 'redoubt\\_%'")
            .expect("a count")
    }

    pub fn end(mut self) {
        self.server.stop().unwrap_or_else(|error| panic!("{error}"));
        drop(self.server);
        self.journal.undo_all().expect("undone");
    }
}

const SHORT: [&str; 6] = ["--minutes", "0.03", "--sessions", "3", "--scale", "0.0005"];

#[test]
fn a_case_runs_in_a_schema_of_its_own_and_leaves_nothing() {
    let _turn = measuring();
    for kind in Kind::ALL {
        let somebodys = Somebodys::start(kind);
        let url = somebodys.url("tiger%2Bscott");
        for case in ["commit", "order-entry"] {
            let stage = Stage::new();
            let arguments = [&["run", case, "--target", &url], &SHORT[..]].concat();
            // Without a word nothing is made.
            stage.run(&arguments).refused(&["--allow-writes", "dropped afterwards"]);
            let done = stage.run(&[&arguments[..], &["--allow-writes"]].concat()).ok();
            assert!(done.stderr.contains("durable: "), "{}", done.stderr);
            stage.assert_untouched();
            let record = fs::read(stage.record()).expect("the record");
            let shown = format!("{}{}{}", done.stdout, done.stderr, String::from_utf8_lossy(&record));
            assert!(!shown.contains(PASSWORD) && !shown.contains("tiger%2Bscott"), "a password was shown");
            assert_eq!(stage.reader().status().expect("status"), "finished");
            assert!(stage.run(&["cleanup"]).ok().stdout.contains("Nothing to undo"));
        }
        assert_eq!(somebodys.left(), 0, "{kind}: a schema of ours is left");
        somebodys.end();
    }
}

/// kill -9 leaves the schema; cleanup drops it with the server's own client.
#[test]
fn cleanup_drops_the_schema_of_a_killed_run() {
    let _turn = measuring();
    let somebodys = Somebodys::start(Kind::Postgres);
    let stage = Stage::new();
    let url = somebodys.url("");
    let arguments =
        ["run", "commit", "--target", &url, "--allow-writes", "--minutes", "1", "--sessions", "3"];
    let mut child = crate::stop::start(&stage, &arguments);
    while somebodys.left() == 0 {
        assert!(child.try_wait().expect("alive").is_none(), "it ended before it began");
        clock::sleep(Nanos::millis(20));
    }
    clock::sleep(Nanos::millis(700));
    child.kill().expect("kill");
    child.wait().expect("wait");
    assert!(somebodys.left() > 0, "a kill leaves it");
    let done = stage.run(&["cleanup"]).ok();
    assert!(
        done.stdout.contains("drop the schema redoubt_") && done.stdout.contains("undone"),
        "{}",
        done.stdout
    );
    assert_eq!(somebodys.left(), 0);
    assert!(stage.run(&["cleanup"]).ok().stdout.contains("Nothing to undo"));
    somebodys.end();
}

/// Who takes no writes, knows another password, or is gone, says so; nothing is left, and the password is not shown.
#[test]
fn what_a_server_of_somebody_elses_refuses_is_told_in_words() {
    let _turn = measuring();
    let somebodys = Somebodys::start(Kind::Mariadb);
    let stage = Stage::new();
    let run = |url: &str, more: &[&str]| {
        let arguments = [&["run", "commit", "--target", url, "--allow-writes"], &SHORT[..], more].concat();
        stage.run(&arguments)
    };
    let url = somebodys.url("tiger%2Bscott");
    let wrong = run(&somebodys.url("lion"), &[]);
    wrong.refused(&["1045", "MYSQL_PWD"]);
    run(&url, &["--set", "innodb_doublewrite=0"]).refused(&["started by somebody else", "--target mariadb"]);
    run(&url, &["--io", "setall"]).refused(&["--target mariadb"]);
    run("mysql://scott@localhost:1/", &[]).refused(&["nothing listens"]);
    run("mysql://scott:tiger+scott@", &["--cache", "1g"]).refused(&[]);
    let scan = ["run", "scan", "--target", &url, "--allow-writes"];
    stage.run(&scan).refused(&["not ours to restart", "--target mariadb"]);
    stage.run(&["compare", "--target", &url]).refused(&["not ours to restart", "redoubt report"]);
    let mut owner = somebodys.server.connect("owner").expect("a session");
    owner.execute("set global read_only = 1").expect("read only");
    run(&url, &[]).refused(&["takes no writes"]);
    owner.execute("set global read_only = 0").expect("writes");
    owner.execute("revoke all on `redoubt\\_%`.* from scott@localhost").expect("no rights");
    run(&url, &[]).refused(&["may not make a schema", "GRANT ALL"]);
    assert_eq!(stage.records().len(), 1, "only the last one had begun");
    stage.assert_untouched();
    assert!(stage.run(&["cleanup"]).ok().stdout.contains("Nothing to undo"));
    drop(owner);
    somebodys.end();
}
