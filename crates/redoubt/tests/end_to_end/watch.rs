//! `redoubt watch` as a DBA meets it: in a terminal (tmux), on a server that works, goes away and comes back.

use crate::stage::{Stage, is_root};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use units::{Nanos, clock};

const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";
/// Longest until something is on the screen; far beyond what it takes.
const PATIENCE: Nanos = Nanos::millis(30_000);

/// A private PostgreSQL server with a table of pgbench's, on a socket and on a port of its own; a password over the network.
struct Server {
    folder: tempfile::TempDir,
    port: u16,
}

impl Server {
    fn new() -> Self {
        let folder = tempfile::tempdir_in("/tmp").expect("a temporary folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("permissions");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("its number").port();
        let this = Self { folder, port };
        let secret = this.path("secret");
        fs::write(&secret, "right\n").expect("a file");
        let data = this.path("data");
        let arguments =
            ["-D", &data, "-U", "dba", "--no-sync", "--auth-local=trust", "--auth-host=scram-sha-256"];
        this.done("initdb", &[&arguments[..], &["--pwfile", &secret]].concat());
        drop(listener);
        this.start();
        this.done(
            "pgbench",
            &["-h", &this.path(""), "-p", &port.to_string(), "-U", "dba", "-i", "-q", "postgres"],
        );
        this
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// A program of the server's, as its own user.
    fn program(&self, name: &str, arguments: &[&str]) -> Command {
        let path: PathBuf = Path::new(PROGRAMS).join(name);
        let mut command = match is_root() {
            true => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(path);
                command
            }
            false => Command::new(path),
        };
        command.args(arguments).current_dir("/tmp").env("LC_ALL", "C").stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn done(&self, name: &str, arguments: &[&str]) {
        let status = self.program(name, arguments).status().expect("PostgreSQL is installed: cargo x test");
        assert!(status.success(), "{name} {arguments:?}");
    }

    fn start(&self) {
        let folder = self.path("");
        // Whoever commits first sleeps 20 ms and the others wait for him, however fast the disk is.
        let options = format!(
            "-c listen_addresses=127.0.0.1 -c commit_delay=20000 -c commit_siblings=0 -p {} -k {}",
            self.port,
            folder.trim_end_matches('/')
        );
        self.done(
            "pg_ctl",
            &["-D", &self.path("data"), "-l", &self.path("log"), "-o", &options, "-w", "start"],
        );
    }

    fn stop(&self) {
        self.done("pg_ctl", &["-D", &self.path("data"), "-m", "immediate", "-w", "stop"]);
    }

    fn work(&self) -> Child {
        let arguments =
            ["-h", &self.path(""), "-p", &self.port.to_string(), "-U", "dba", "-c", "4", "-T", "60", "-N"];
        self.program("pgbench", &[&arguments[..], &["postgres"]].concat()).spawn().expect("pgbench starts")
    }

    fn url(&self) -> String {
        format!("postgres://dba@127.0.0.1:{}/postgres", self.port)
    }

    /// The server's process that serves our session.
    fn our_session(&self) -> String {
        let query = "select pid from pg_stat_activity where application_name = 'redoubt watch'";
        let (folder, port) = (self.path(""), self.port.to_string());
        let mut psql =
            self.program("psql", &["-h", &folder, "-p", &port, "-U", "dba", "-Atc", query, "postgres"]);
        let output = psql.stdout(Stdio::piped()).output().expect("psql starts");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

fn signal(signal: &str, process: &str) {
    let status = Command::new("kill").args([signal, process]).status().expect("kill starts");
    assert!(status.success(), "{signal} {process}");
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.program("pg_ctl", &["-D", &self.path("data"), "-m", "immediate", "stop"]).status();
    }
}

/// A terminal with a shell's prompt of its own, which is there again when the program has ended.
struct Terminal {
    socket: String,
}

impl Terminal {
    fn new(stage: &Stage, (width, height): (u16, u16), setting: &str) -> Self {
        let this = Self { socket: stage.folder().join("tmux").display().to_string() };
        let (width, height) = (width.to_string(), height.to_string());
        let shell = format!("cd {}; export PS1='ready> ' {setting}; exec sh", stage.directory.display());
        this.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", &width, "-y", &height, &shell]);
        this.until("ready>");
        this
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let output = Command::new("tmux").arg("-S").arg(&self.socket).args(arguments).output();
        let output = output.expect("tmux is installed: cargo x test");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    fn watch(&self, what: &str) {
        let command = format!("{} watch --every 0.2 {what}", env!("CARGO_BIN_EXE_redoubt"));
        self.press(&["clear; ", &command, "Enter"]);
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// The screen, as soon as it shows `word`.
    fn until(&self, word: &str) -> String {
        let end = clock::now() + PATIENCE;
        loop {
            let screen = self.screen();
            if screen.contains(word) {
                return screen;
            }
            assert!(clock::now() < end, "no {word:?} on the screen:\n{screen}");
            clock::sleep(Nanos::millis(50));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = Command::new("tmux").arg("-S").arg(&self.socket).arg("kill-server").status();
    }
}

#[test]
fn a_server_is_watched_through_its_restart() {
    let (stage, server) = (Stage::new(), Server::new());
    let mut load = server.work();
    let terminal = Terminal::new(&stage, (80, 24), "PGPASSWORD=right NO_COLOR=1");
    terminal.watch(&server.url());
    let screen = terminal.until("log file sync");
    for word in ["PostgreSQL 15", &server.port.to_string(), "Commit", "live", "active share", "q quit"] {
        assert!(screen.contains(word), "no {word:?}:\n{screen}");
    }
    assert!(!screen.contains("right"), "a password is never shown:\n{screen}");
    terminal.press(&["Space"]);
    terminal.until("paused at");
    terminal.press(&["End"]);
    terminal.until("▶ log file sync");
    terminal.press(&["Enter"]);
    terminal.until("All ▸ log file sync");
    terminal.press(&["Escape"]);
    terminal.press(&["?"]);
    terminal.until("closes this");
    terminal.press(&["Escape"]);
    terminal.tmux(&["resize-window", "-x", "200", "-y", "60"]);
    let screen = terminal.until("Files");
    assert!(screen.lines().any(|line| line.chars().count() > 150), "the wide screen is used:\n{screen}");
    let session = server.our_session();
    signal("-STOP", &session);
    terminal.until("no answer for ");
    signal("-CONT", &session);
    terminal.until(" live");
    server.stop();
    terminal.until("server gone");
    server.start();
    terminal.until("the server is back");
    terminal.press(&["q"]);
    let screen = terminal.until("ready>");
    assert!(!screen.contains("log file sync"), "the screen is as it was:\n{screen}");
    let _ = load.kill();
    let _ = load.wait();
}

#[test]
fn what_cannot_be_watched_is_told() {
    let (stage, server) = (Stage::new(), Server::new());
    let wrong = server.url().replace("dba@", "dba:wrong@");
    let refused = |arguments: &[&str], words: &[&str]| {
        stage.run(&[&["watch"], arguments].concat()).refused(words);
        stage.assert_untouched();
    };
    refused(&[&wrong], &["password authentication failed", "PGPASSWORD", ".pgpass"]);
    refused(&[&server.url()], &["asks for a password", ".pgpass"]);
    refused(
        &["postgres://dba@127.0.0.1:1/"],
        &["does not answer", "127.0.0.1:1", "nothing listens", "ss -ltnp"],
    );
    refused(&["postgres:///x?host=/no/such/folder"], &["/no/such/folder", "no such socket"]);
    refused(&["postgres://a,b/"], &["several hosts"]);
    refused(&["no-such-run"], &["no-such-run"]);
    refused(&[&server.url(), "--every", "0"], &["--every", "0.1 to 60"]);
    let socket =
        format!("'postgres://dba@:{}/postgres?host={}'", server.port, server.path("").trim_end_matches('/'));
    refused(&[socket.trim_matches('\'')], &["draws on a terminal", "ssh -t"]);
}
