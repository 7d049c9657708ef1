//! What became of a server that no longer does what it is asked, from what is left of it: its processes and its log.

use super::lifeline::{Hang, Lifeline};
use super::{Kind, ServerError};
use host::process::{self, Process, State};
use units::{Nanos, clock};

/// A process that was killed takes this many looks, 20 ms apart, until the kernel tells it.
const LOOKS: u32 = 25;

/// What is left of a private server.
pub(super) struct Remains<'a> {
    pub(super) lifeline: &'a Lifeline,
    /// The process that others began from; none when it was not started, or waited for.
    pub(super) process: Option<u32>,
    /// All of its processes.
    pub(super) processes: Vec<i32>,
    /// The end of its log.
    pub(super) log: String,
}

impl Remains<'_> {
    /// The same error, with the likely cause where the server is gone or hangs.
    pub(super) fn explain(&self, kind: Kind, error: ServerError) -> ServerError {
        let ServerError::Gone { said, .. } = &error else { return error };
        let patience = self.lifeline.patience();
        match self.lifeline.hang() {
            Some(Hang::Mute) => {
                let processes: Vec<_> = self.processes.iter().filter_map(|pid| process::look(*pid)).collect();
                return ServerError::Silent { kind, silence: patience, why: why_silent(&processes) };
            }
            Some(Hang::Stuck(Process { pid, name, .. })) => {
                return ServerError::Stuck { kind, patience, thread: *pid, name: name.clone() };
            }
            None => {}
        }
        let ended = self.process.and_then(|pid| ended(pid as i32));
        let Some(why) = why_gone(ended.as_ref(), &self.log) else { return with_log(error, &self.log) };
        let told = ServerError::Gone { kind, why, said: said.clone() };
        // Who was killed had no time for words; what its log ends with is of other things.
        let killed = |process: &Process| matches!(process.state, State::Killed(9 | 15));
        if ended.as_ref().is_some_and(killed) { told } else { with_log(told, &self.log) }
    }
}

/// The error of a server that was there before, with the likely cause.
pub(super) fn explain_existing(error: ServerError, lifeline: &Lifeline) -> ServerError {
    match (error, lifeline.hang()) {
        (ServerError::Gone { kind, .. }, Some(_)) => ServerError::Silent {
            kind,
            silence: lifeline.patience(),
            why: format!(
                "is it stopped, does its storage answer, is the network there? Look on its machine: ps -eo pid,stat,wchan:20,args | grep {} \
                 (T: stopped, D: waits for a device), and dmesg | tail; to wait longer: --patience SECONDS",
                program(kind)
            ),
        },
        (error, _) => refused_by_existing(error),
    }
}

/// The same before anything has begun there.
pub(super) fn refused_by_existing(error: ServerError) -> ServerError {
    match error {
        ServerError::Refused { kind, said, code, .. } if super::error::is_full(&code) => {
            ServerError::Refused { kind, said, code, advice: all_taken(kind) }
        }
        error => error,
    }
}

fn program(kind: Kind) -> &'static str {
    match kind {
        Kind::Postgres => "postgres",
        Kind::Mariadb => "mariadbd",
    }
}

/// Somebody else's server has its own limit, and others who use it up.
fn all_taken(kind: Kind) -> &'static str {
    match kind {
        Kind::Postgres => {
            "; all of its connections are taken, ours and those of others: type fewer --sessions, or see there who has them: \
             select usename, application_name, count(*) from pg_stat_activity group by 1, 2   (the limit: show max_connections)"
        }
        Kind::Mariadb => {
            "; all of its connections are taken, ours and those of others: type fewer --sessions, or see there who has them: \
             select user, command, count(*) from information_schema.processlist group by 1, 2   (the limit: select @@max_connections)"
        }
    }
}

/// The process once it has ended, which may take a moment after its sessions were lost.
fn ended(pid: i32) -> Option<Process> {
    for _ in 0..LOOKS {
        let found = process::look(pid)?;
        if matches!(found.state, State::Killed(_) | State::Ended(_)) {
            return Some(found);
        }
        clock::sleep(Nanos::millis(20));
    }
    None
}

fn with_log(error: ServerError, log: &str) -> ServerError {
    match error {
        ServerError::Gone { kind, why, said } if !log.is_empty() => {
            ServerError::Gone { kind, why, said: format!("{said} | {log}") }
        }
        other => other,
    }
}

/// Why a server is gone; `ended`: its first process, where it has ended.
fn why_gone(ended: Option<&Process>, log: &str) -> Option<String> {
    let lower = log.to_lowercase();
    if lower.contains("no space left") || lower.contains("disk full") {
        return Some(
            "its disk is full, see: df -h; free some space, type a smaller --scale, or name another directory with --dir"
                .into(),
        );
    }
    if lower.contains("input/output error") {
        return Some(
            "its storage reports errors; look at: dmesg | tail, and type: redoubt doctor, before anything is kept there".into(),
        );
    }
    let Process { pid, name, state } = ended?;
    Some(match state {
        State::Killed(9) => format!(
            "its process {pid} ({name}) was ended by signal 9: somebody typed kill -9, or the kernel wanted its memory; look: dmesg | grep -i \
             'killed process'; after the latter type a smaller --cache, else type the same again"
        ),
        State::Killed(signal) => format!(
            "its process {pid} ({name}) was ended by signal {signal}{}",
            if [4, 6, 7, 8, 11].contains(signal) {
                ": it crashed, and its last words may tell where"
            } else {
                "; somebody stopped it: type the same again"
            }
        ),
        State::Ended(status) => format!("its process {pid} ({name}) ended by itself with status {status}"),
        _ => return None,
    })
}

/// Why a server that is there says nothing.
fn why_silent(processes: &[Process]) -> String {
    let of = |state: State| processes.iter().find(|process| process.state == state);
    if let Some(Process { pid, name, .. }) = of(State::Stopped) {
        return format!(
            "its process {pid} ({name}) is stopped (state T): somebody sent it SIGSTOP, or a debugger held it. It was ended with the run: type the same again"
        );
    }
    if let Some(Process { pid, name, .. }) = of(State::Uninterruptible) {
        return format!(
            "its process {pid} ({name}) waits in the kernel (state D): its device does not answer. Look at: dmesg | tail; to wait longer: \
             --patience SECONDS"
        );
    }
    "its processes run: it waits for itself, or has too little processor time. To wait longer: --patience SECONDS".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_tells_the_cause() {
        let process = |state| Process { pid: 7, name: "postgres".into(), state };
        let check = |state, log, words: &[&str]| {
            let why = why_gone(Some(&process(state)), log).unwrap_or_default();
            assert!(words.iter().all(|word| why.contains(word)), "{state:?}, {log}: {why}");
        };
        check(State::Killed(9), "", &["process 7 (postgres)", "kill -9", "dmesg", "--cache"]);
        check(State::Killed(11), "", &["signal 11", "crashed"]);
        check(State::Killed(15), "", &["signal 15", "somebody stopped it"]);
        check(State::Ended(1), "", &["status 1"]);
        check(State::Ended(1), "PANIC: could not write: No space left on device", &["disk is full", "df -h"]);
        assert_eq!(why_gone(None, "LOG: ready"), None);
        for (state, word) in
            [(State::Stopped, "SIGSTOP"), (State::Uninterruptible, "dmesg"), (State::Alive, "--patience")]
        {
            assert!(why_silent(&[process(State::Alive), process(state)]).contains(word));
        }
    }
}
