//! Runs a system program with a time limit; a program that hangs on a dying disk must not hang us.

use crate::error::{HostError, shell_word};
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use units::{Nanos, clock};

/// How long a killed program may take to die, and its output to end after it. A program that ended may leave a child
/// that holds the pipe; a program in uninterruptible sleep dies when its device answers.
const GRACE: Nanos = Nanos(2_000_000_000);

/// What a program left.
#[derive(Debug)]
pub(crate) struct Output {
    /// Exit status; none after a signal.
    pub(crate) status: Option<i32>,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error, trimmed.
    pub(crate) stderr: String,
    /// The command line, for messages.
    pub(crate) command: String,
}

impl Output {
    /// Standard output of a program that must succeed.
    pub(crate) fn success(self) -> Result<String, HostError> {
        if self.status == Some(0) {
            return Ok(self.stdout);
        }
        let said = if self.stderr.is_empty() { self.stdout.trim().to_owned() } else { self.stderr };
        Err(HostError::CommandFailed { command: self.command, status: self.status, stderr: said })
    }
}

/// Runs `program` (of Debian package `package`) for at most `seconds`. The C locale keeps its words parseable.
pub(crate) fn run(
    program: &str,
    arguments: &[&str],
    package: &'static str,
    seconds: u64,
) -> Result<Output, HostError> {
    run_with(Stdio::null(), program, arguments, package, seconds)
}

/// As [`run`], with its standard input: a program that changes the system gets the locked journal there
/// ([`crate::journal::Journal::run`]).
pub(crate) fn run_with(
    stdin: Stdio,
    program: &str,
    arguments: &[&str],
    package: &'static str,
    seconds: u64,
) -> Result<Output, HostError> {
    let mut command = program.to_owned();
    for argument in arguments {
        command.push(' ');
        command.push_str(&shell_word(argument));
    }
    let absent = || HostError::NoCommand { command: program.to_owned(), package };
    let mut child = Command::new(find(program).ok_or_else(absent)?)
        .args(arguments)
        .env("LC_ALL", "C")
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| HostError::CommandFailed {
            command: command.clone(),
            status: None,
            stderr: e.to_string(),
        })?;
    // Two readers, because a full pipe would stop the program; they end when the program closes its ends.
    let stdout = Reader::of(child.stdout.take());
    let stderr = Reader::of(child.stderr.take());
    let Some(status) = wait(&mut child, Nanos::secs(seconds as f64)) else {
        stop(child);
        return Err(HostError::CommandHung { command, seconds });
    };
    Ok(Output { status, stdout: stdout.text(), stderr: stderr.text().trim().to_owned(), command })
}

/// Whether `program` is installed.
pub(crate) fn is_installed(program: &str) -> bool {
    find(program).is_some()
}

/// Where `program` is: PATH first, then the folders of system programs that a user's PATH often lacks.
pub(crate) fn find(program: &str) -> Option<String> {
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':')
        .chain(["/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/bin", "/bin"])
        .filter(|folder| folder.starts_with('/'))
        .map(|folder| format!("{folder}/{program}"))
        .find(|candidate| std::fs::metadata(candidate).is_ok_and(|m| m.is_file()))
}

/// Collects what a program says while it runs.
struct Reader {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: JoinHandle<()>,
}

impl Reader {
    fn of(pipe: Option<impl Read + Send + 'static>) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&bytes);
        let thread = std::thread::spawn(move || {
            let Some(mut pipe) = pipe else { return };
            let mut piece = [0; 8192];
            // A broken pipe only shortens what is shown in a message.
            while let Ok(n @ 1..) = pipe.read(&mut piece) {
                shared.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&piece[..n]);
            }
        });
        Self { bytes, thread }
    }

    /// What was said until the program closed its end, or until [`GRACE`] is over.
    fn text(self) -> String {
        let _ = within(GRACE, || self.thread.is_finished().then_some(()));
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// The exit status (none after a signal), or none when the time was up.
fn wait(child: &mut Child, time: Nanos) -> Option<Option<i32>> {
    within(time, || match child.try_wait() {
        Ok(status) => status.map(|s| s.code()),
        Err(_) => Some(None),
    })
}

/// Kills a program whose time is up. One in uninterruptible sleep dies later; a thread takes its end then, so that it
/// does not stay as a zombie, and nobody waits for it.
fn stop(mut child: Child) {
    // It may have ended just now; then there is nothing to kill, and the caller still learns that time was up.
    let _ = child.kill();
    if wait(&mut child, GRACE).is_none() {
        std::thread::spawn(move || child.wait());
    }
}

/// Asks until there is an answer, for at most `time`.
fn within<T>(time: Nanos, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let end = clock::now() + time;
    let mut pause = Nanos::micros(200);
    loop {
        let answer = ask();
        if answer.is_some() || clock::now() >= end {
            return answer;
        }
        clock::sleep(pause);
        pause = (pause + pause).min(Nanos::millis(10));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_success_failure_absence_and_hang_apart() {
        assert_eq!(run("echo", &["two words"], "coreutils", 5).unwrap().success().unwrap(), "two words\n");
        let failed = run("sh", &["-c", "echo why >&2; exit 3"], "dash", 5).unwrap().success().unwrap_err();
        assert_eq!(failed.to_string(), "`sh -c 'echo why >&2; exit 3'` failed with status 3: why");
        let absent = run("redoubt-no-such-program", &[], "nothing", 5).unwrap_err();
        assert!(matches!(absent, HostError::NoCommand { .. }), "{absent}");
        let hung = run("sleep", &["30"], "coreutils", 1).unwrap_err();
        assert!(matches!(hung, HostError::CommandHung { seconds: 1, .. }), "{hung}");
    }

    #[test]
    fn reads_more_than_a_pipe_holds() {
        let out = run("head", &["-c", "300000", "/dev/zero"], "coreutils", 5).unwrap();
        assert_eq!(out.stdout.len(), 300_000);
    }

    #[test]
    fn a_child_that_keeps_the_pipe_holds_nobody_up() {
        let start = clock::now();
        let out = run("sh", &["-c", "echo said; sleep 30 & exit 0"], "dash", 5).unwrap();
        assert_eq!((out.status, out.stdout.as_str()), (Some(0), "said\n"));
        assert!(clock::now() - start < Nanos::secs(15.0), "the grandchild was waited for");
    }

    #[test]
    fn a_stopped_program_leaves_no_zombie() {
        let child = Command::new("sleep").arg("30").spawn().unwrap();
        let stat = format!("/proc/{}/stat", child.id());
        stop(child);
        assert!(!std::path::Path::new(&stat).exists());
    }
}
