//! What state a process is in, as the kernel tells: it runs, is stopped, waits for a device, or has ended, and how.

use crate::files;
use std::collections::BTreeMap;
use units::{Nanos, clock};

/// A process, at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// Its program's name.
    pub name: String,
    /// What it does.
    pub state: State,
}

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It works, or waits for something that a signal may interrupt.
    Alive,
    /// Somebody stopped it (SIGSTOP), or a debugger holds it.
    Stopped,
    /// It waits in the kernel and cannot be interrupted: for a device, or memory.
    Uninterruptible,
    /// It has ended, by this signal.
    Killed(i32),
    /// It has ended by itself, with this status.
    Ended(i32),
}

/// The process `pid`; none when there is none, or the one that it was has ended and was waited for.
pub fn look(pid: i32) -> Option<Process> {
    parse(pid, &files::text(format!("/proc/{pid}/stat"))?)
}

/// `pid (name) state ppid … exit_code`, of which a name may hold anything.
fn parse(pid: i32, stat: &str) -> Option<Process> {
    let (head, tail) = stat.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_owned();
    let mut fields = tail.split_whitespace();
    let state = match fields.next()? {
        "T" | "t" => State::Stopped,
        "D" => State::Uninterruptible,
        "Z" | "X" => {
            // As `wait` tells it: the signal in the low seven bits, else the status above.
            let code: i32 = fields.last()?.parse().ok()?;
            if code & 0x7f == 0 { State::Ended(code >> 8) } else { State::Killed(code & 0x7f) }
        }
        _ => State::Alive,
    };
    Some(Process { pid, name, state })
}

/// Which threads wait in the kernel, and since when each has been in one and the same wait: what the kernel itself calls a hung task.
#[derive(Debug, Default)]
pub struct Waits {
    /// By number of the thread: how often it had waited when this wait was first seen, and when that was.
    since: BTreeMap<i32, (u64, Nanos)>,
}

impl Waits {
    /// Looks at all threads of `processes`; the one that has been in the same uninterruptible wait for at least `patience`, as far as
    /// earlier looks have seen.
    pub fn look(&mut self, processes: &[i32], patience: Nanos) -> Option<Process> {
        let threads = processes.iter().map(|pid| format!("/proc/{pid}/task")).flat_map(|folder| {
            let numbers = files::names(&folder).into_iter().filter_map(|name| name.parse().ok());
            numbers.filter_map(|thread| wait(&folder, thread)).collect::<Vec<_>>()
        });
        let seen: Vec<_> = threads.collect();
        self.note(clock::now(), seen, patience)
    }

    /// `waiting`: threads that wait, with how often each has waited so far.
    fn note(&mut self, now: Nanos, waiting: Vec<(Process, u64)>, patience: Nanos) -> Option<Process> {
        let before = std::mem::take(&mut self.since);
        let mut hung = None;
        for (thread, waits) in waiting {
            let same = before.get(&thread.pid).filter(|(old, _)| *old == waits);
            let since = same.map_or(now, |(_, since)| *since);
            self.since.insert(thread.pid, (waits, since));
            if now - since >= patience {
                hung = Some(thread);
            }
        }
        hung
    }
}

/// A thread that waits uninterruptibly, with how often it has waited so far.
fn wait(folder: &str, thread: i32) -> Option<(Process, u64)> {
    let found = parse(thread, &files::text(format!("{folder}/{thread}/stat"))?)?;
    if found.state != State::Uninterruptible {
        return None;
    }
    let status = files::text(format!("{folder}/{thread}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    Some((found, line.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Pid, Signal, kill_process};
    use std::process::Command;
    use units::{Nanos, clock};

    fn comes_to(pid: i32, state: State) {
        for _ in 0..500 {
            if look(pid).is_some_and(|process| process.state == state) {
                return;
            }
            clock::sleep(Nanos::millis(10));
        }
        panic!("{:?} instead of {state:?}", look(pid));
    }

    #[test]
    fn tells_a_living_a_stopped_and_a_killed_process_apart() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let (pid, who) = (child.id() as i32, Pid::from_child(&child));
        comes_to(pid, State::Alive);
        kill_process(who, Signal::STOP).unwrap();
        comes_to(pid, State::Stopped);
        kill_process(who, Signal::KILL).unwrap();
        comes_to(pid, State::Killed(9));
        child.wait().unwrap();
        assert_eq!(look(pid), None);
    }

    #[test]
    fn only_one_and_the_same_wait_hangs() {
        let mut waits = Waits::default();
        let patience = Nanos::millis(3_000);
        let mut seen = |second: u64, all: &[(i32, u64)]| {
            let thread = |&(pid, waits): &(i32, u64)| {
                (Process { pid, name: "x".into(), state: State::Uninterruptible }, waits)
            };
            let found = waits.note(Nanos::millis(1000 * second), all.iter().map(thread).collect(), patience);
            found.map(|process| process.pid)
        };
        assert_eq!(seen(1, &[(7, 40), (8, 1)]), None);
        assert_eq!(seen(2, &[(7, 40), (8, 2)]), None);
        assert_eq!(seen(4, &[(7, 40), (8, 3)]), Some(7), "three seconds in its fortieth wait");
        assert_eq!(seen(5, &[(7, 41), (8, 3)]), None, "it came back, and waits anew");
        assert_eq!(seen(6, &[(8, 3)]), None);
        assert_eq!(seen(8, &[(7, 41), (8, 3)]), Some(8), "who was away meanwhile waits anew");
    }

    #[test]
    fn a_name_may_hold_anything() {
        let found = parse(7, "7 (a) b (c) Z 1 0 256").unwrap();
        assert_eq!((found.name.as_str(), found.state), ("a) b (c", State::Ended(1)));
    }
}
