//! Runs a system program with a time limit; a program that hangs on a dying disk must not hang us.

use crate::error::{HostError, shell_word};
use std::io::Read;
use std::process::{Child, Command, Stdio};
use units::{Nanos, clock};

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
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    let status =
        wait(&mut child, seconds).ok_or(HostError::CommandHung { command: command.clone(), seconds })?;
    let collect = |reader: std::thread::JoinHandle<String>| reader.join().unwrap_or_default();
    Ok(Output { status, stdout: collect(stdout), stderr: collect(stderr).trim().to_owned(), command })
}

/// Where `program` is: PATH first, then the folders of system programs that a user's PATH often lacks.
fn find(program: &str) -> Option<String> {
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':')
        .chain(["/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/bin", "/bin"])
        .filter(|folder| folder.starts_with('/'))
        .map(|folder| format!("{folder}/{program}"))
        .find(|candidate| std::fs::metadata(candidate).is_ok_and(|m| m.is_file()))
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // A broken pipe only shortens what is shown in a message.
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// The exit status, or none when the time was up; the child is then killed. A child in uninterruptible sleep stays; it
/// is not waited for.
fn wait(child: &mut Child, seconds: u64) -> Option<Option<i32>> {
    let end = clock::now() + Nanos::secs(seconds as f64);
    let mut pause = Nanos::micros(200);
    while clock::now() < end {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.code()),
            Ok(None) => clock::sleep(pause),
            Err(_) => return Some(None),
        }
        pause = (pause + pause).min(Nanos::millis(10));
    }
    // It may have ended just now; then there is nothing to kill, and the caller still learns that time was up.
    let _ = child.kill();
    None
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
}
