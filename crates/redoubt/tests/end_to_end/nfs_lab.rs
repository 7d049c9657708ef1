//! `redoubt nfs-lab`: a cluster on loopback that prints its addresses, takes commands, and ends when it is told to; and a case on it.

use crate::stage::{Stage, measuring};
use crate::stop::signal;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use units::{Nanos, clock};

/// A running cluster.
struct Lab {
    child: Child,
    commands: Option<ChildStdin>,
    said: BufReader<ChildStdout>,
    errors: BufReader<ChildStderr>,
    /// Those that it printed: v3, v4.0, v4.1, pNFS.
    urls: Vec<String>,
}

impl Lab {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_redoubt"));
        command.arg("nfs-lab").args(arguments).env("NO_COLOR", "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("start redoubt");
        let commands = child.stdin.take();
        let said = BufReader::new(child.stdout.take().expect("a pipe"));
        let errors = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut lab = Self { child, commands, said, errors, urls: Vec::new() };
        while lab.urls.len() < 4 {
            let line = lab.line();
            if let Some(url) = line.trim().strip_prefix('\'') {
                lab.urls.push(url.trim_end_matches('\'').to_owned());
            }
        }
        assert!(lab.line().contains("Volumes /a, /b and /striped"));
        lab
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.said.read_line(&mut line).expect("text") > 0, "it ended");
        line
    }

    fn tell(&mut self, command: &str) {
        let commands = self.commands.as_mut().expect("not closed yet");
        commands.write_all(format!("{command}\n").as_bytes()).expect("it listens");
    }

    /// What is left to say, and the exit code.
    fn end(&mut self) -> (String, Option<i32>) {
        let mut rest = String::new();
        self.said.read_to_string(&mut rest).expect("text");
        (rest, self.child.wait().expect("it ran").code())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // Nothing to end when the test went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn commands_are_taken_and_a_case_runs_in_each_version() {
    let _turn = measuring();
    let mut lab = Lab::start(&["--layouts", "flex-v3"]);
    for url in lab.urls.clone() {
        let stage = Stage::new();
        let done = stage
            .run(&["run", "commit", "--minutes", "0.02", "--sessions", "2", "--verify", "--dir", &url])
            .ok();
        assert!(done.stdout.contains("committed"), "{url}: {}", done.stdout);
    }
    lab.tell("");
    lab.tell("move /a B");
    assert!(lab.line().starts_with("moved "));
    lab.tell("cut A");
    assert_eq!(lab.line(), "done\n");
    lab.tell("dance");
    let mut error = String::new();
    lab.errors.read_line(&mut error).expect("text");
    assert!(error.contains("\"dance\" is no command"), "{error}");
    lab.tell("show");
    assert!(lab.line().starts_with("node"));
    let a = lab.line();
    assert!(a.starts_with('A') && a.contains("127.0.0.1:"), "{a}");
    assert!(lab.line().starts_with('B'));
    lab.commands = None;
    let (rest, code) = lab.end();
    assert!(rest.contains("The nodes end.") && code == Some(0), "{code:?} {rest}");
}

/// A database at work whose server is restarted again and again: it goes on, nothing is lost, and the user is told.
#[test]
fn a_run_survives_restarts_and_tells_of_them() {
    let _turn = measuring();
    let mut lab = Lab::start(&[]);
    for url in [lab.urls[0].clone(), lab.urls[2].clone(), lab.urls[3].clone()] {
        let stage = Stage::new();
        let typed = ["run", "commit", "--minutes", "0.05", "--sessions", "2", "--verify", "--dir", &url];
        let restarts = || {
            clock::sleep(Nanos::millis(700));
            lab.tell("restart A");
            assert_eq!(lab.line(), "done\n");
        };
        let done = stage.run_amid(&typed, restarts).ok();
        assert!(done.stdout.contains("committed"), "{url}: {}", done.stdout);
        for words in ["NFS: channel to", "is DOWN", "is UP again"] {
            assert!(done.stderr.contains(words), "{url}: {words:?} is missing: {}", done.stderr);
        }
    }
}

#[test]
fn signals_end_it() {
    for name in ["INT", "TERM"] {
        let mut lab = Lab::start(&["--nodes", "3"]);
        signal(&lab.child, name);
        let (rest, code) = lab.end();
        assert!(rest.contains("The nodes end.") && rest.contains("127.0.0.3:"), "{name}: {rest}");
        assert_eq!(code, Some(0), "{name}");
    }
}

#[test]
fn what_makes_no_cluster_is_said() {
    let stage = Stage::new();
    stage.run(&["nfs-lab", "--nodes", "33"]).refused(&["1 to 32"]);
    stage.run(&["nfs-lab", "--layouts", "blocks"]).refused(&["is no command"]);
}
