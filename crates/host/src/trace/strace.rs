//! The fallback where the kernel's tracer may not be used: `strace`, which stops a thread twice for each call and cannot see io_uring.

use super::event::{Call, Event, What};
use super::process::{self, O_DSYNC};
use crate::command;
use crate::error::HostError;
use rustix::fs::OFlags;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use units::{Nanos, clock};

/// Longest that it may take to attach.
const ATTACH_MAX: Nanos = Nanos::millis(10_000);

/// `strace` at work.
#[derive(Debug)]
pub(super) struct Strace {
    child: Child,
    lines: Receiver<String>,
    parser: Parser,
    pub(super) read: u64,
}

impl Strace {
    /// Attaches to processes, their threads, and what they make.
    ///
    /// # Errors
    /// It is not installed, or may not.
    pub(super) fn attach(processes: &[u32]) -> Result<Self, HostError> {
        let names: Vec<&str> = Call::ALL.iter().map(|call| call.name()).collect();
        let program = command::find("strace")
            .ok_or_else(|| HostError::NoCommand { command: "strace".into(), package: "strace" })?;
        let mut strace = Command::new(program);
        strace.args(["-f", "-ttt", "-T", "-y", "-qq", "-e", "signal=none", "-s", "0", "-o", "|cat"]);
        strace.arg("-e").arg(format!("trace={}", names.join(",")));
        for process in processes {
            strace.arg("-p").arg(process.to_string());
        }
        let failed = |said: String| HostError::CommandFailed {
            command: "strace -f -p …".into(),
            status: None,
            stderr: said,
        };
        let spawned = strace.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = spawned.map_err(|e| failed(e.to_string()))?;
        let out = child.stdout.take().ok_or_else(|| failed("it has no output".into()))?;
        let (tell, lines) = mpsc::channel();
        std::thread::spawn(move || {
            // Ends with strace, or with who listens.
            BufReader::new(out).lines().map_while(Result::ok).all(|line| tell.send(line).is_ok())
        });
        let mut this = Self { child, lines, parser: Parser::default(), read: 0 };
        this.wait_until_attached(processes)?;
        Ok(this)
    }

    /// Until it has attached, what the others do is not seen.
    fn wait_until_attached(&mut self, processes: &[u32]) -> Result<(), HostError> {
        let until = clock::now() + ATTACH_MAX;
        while !processes.iter().all(|process| process::is_traced(*process)) {
            if !self.lives() || clock::now() > until {
                return Err(HostError::Unsupported {
                    what: "tracing with strace".into(),
                    why:
                        "it could not attach: the process belongs to another user, another tracer has it, or \
                          /proc/sys/kernel/yama/ptrace_scope forbids it"
                            .into(),
                    instead: "try again as root: sudo redoubt trace …".into(),
                });
            }
            clock::sleep(Nanos::millis(1));
        }
        Ok(())
    }

    /// Whether it is still there; it ends when nobody is left to look at, or when it may not look.
    pub(super) fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    pub(super) fn drain(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        for line in self.lines.try_iter() {
            self.parser.line(&line, &mut events);
        }
        self.read += events.len() as u64;
        events
    }

    /// Detaches.
    pub(super) fn stop(mut self) -> Vec<Event> {
        let pid = rustix::process::Pid::from_child(&self.child);
        // It may have ended with the last of them.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
        let _ = self.child.wait();
        let mut events = Vec::new();
        while let Ok(line) = self.lines.recv() {
            self.parser.line(&line, &mut events);
        }
        events
    }
}

/// Makes events of lines.
#[derive(Debug, Default)]
struct Parser {
    /// By thread: the call that another thread's line came between, and when it began.
    unfinished: BTreeMap<u32, (Call, u64)>,
}

impl Parser {
    /// `5645 1795340000.342538 pwrite64(3</data/x>, ""..., 8192, 0) = 8192 <0.000431>`
    fn line(&mut self, line: &str, events: &mut Vec<Event>) -> Option<()> {
        let (tid, rest) = line.trim_start().split_once(' ')?;
        let (time, rest) = rest.trim_start().split_once(' ')?;
        let (tid, time): (u32, u64) = (tid.parse().ok()?, nanos(time)?);
        if let Some(rest) = rest.strip_prefix("<... ") {
            let (_, end) = rest.split_once(" resumed>")?;
            let (call, began) = self.unfinished.remove(&tid)?;
            return finish(tid, call, began, end, events);
        }
        let (name, rest) = rest.split_once('(')?;
        let call = Call::named(name)?;
        let (arguments, end) = arguments(rest);
        enter(tid, call, time, &arguments, events);
        match end {
            Some(end) => finish(tid, call, time, end, events),
            None => {
                self.unfinished.insert(tid, (call, time));
                Some(())
            }
        }
    }
}

fn enter(tid: u32, call: Call, time: u64, words: &[&str], events: &mut Vec<Event>) {
    let mut arguments = [0; 6];
    for (value, word) in arguments.iter_mut().zip(words) {
        *value = if word.starts_with("O_") { flags(word) } else { number(word).unwrap_or(0) as u64 };
    }
    if call.is_about_fd()
        && let Some((fd, path)) = words.first().and_then(|word| named(word))
    {
        events.push(Event { at: Nanos(time), tid, what: What::Named { fd, path } });
    }
    events.push(Event { at: Nanos(time), tid, what: What::Enter { call, arguments } });
}

/// `) = 8192 <0.000431>`, ` = -1 ENOENT (No such file or directory) <0.000010>`, `) = 3</data/x> <0.000020>`
fn finish(tid: u32, call: Call, began: u64, text: &str, events: &mut Vec<Event>) -> Option<()> {
    let (_, result) = text.rsplit_once("= ")?;
    let (result, took) = result.rsplit_once(" <")?;
    let at = Nanos(began + nanos(took.trim_end().strip_suffix('>')?)?);
    if let Some((fd, path)) = named(result) {
        events.push(Event { at, tid, what: What::Named { fd, path } });
    }
    events.push(Event { at, tid, what: What::Exit { call, result: number(result)? } });
    Some(())
}

/// The arguments, and what follows their closing bracket; none where another thread's line came between.
fn arguments(text: &str) -> (Vec<&str>, Option<&str>) {
    let (mut words, mut begin, mut depth, mut quoted, mut before) = (Vec::new(), 0, 0, false, ' ');
    for (at, c) in text.char_indices() {
        match c {
            '"' if before != '\\' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' | '{' => depth += 1,
            ')' if depth == 0 => {
                words.push(text[begin..at].trim());
                return (words, Some(&text[at + 1..]));
            }
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                words.push(text[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
        before = c;
    }
    words.push(text[begin..].trim().trim_end_matches("<unfinished ...>").trim());
    (words, None)
}

/// `3</data/x>`: the descriptor and its path.
fn named(word: &str) -> Option<(i32, String)> {
    let (fd, path) = word.split_once('<')?;
    Some((fd.trim().parse().ok()?, path.trim_end().strip_suffix('>')?.to_owned()))
}

/// A number at the beginning of a word.
fn number(word: &str) -> Option<i64> {
    if let Some(hex) = word.strip_prefix("0x") {
        let end = hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
        return u64::from_str_radix(&hex[..end], 16).ok().map(|n| n as i64);
    }
    let end = word.char_indices().find(|(at, c)| !(c.is_ascii_digit() || *at == 0 && *c == '-'));
    word[..end.map_or(word.len(), |(at, _)| at)].parse().ok()
}

/// The number of open flags that strace spells out.
fn flags(words: &str) -> u64 {
    let value = |name: &str| match name {
        "O_WRONLY" => OFlags::WRONLY.bits(),
        "O_RDWR" => OFlags::RDWR.bits(),
        "O_CREAT" => OFlags::CREATE.bits(),
        "O_TRUNC" => OFlags::TRUNC.bits(),
        "O_APPEND" => OFlags::APPEND.bits(),
        "O_DSYNC" => O_DSYNC,
        "O_DIRECT" => OFlags::DIRECT.bits(),
        "O_SYNC" => OFlags::SYNC.bits(),
        _ => 0,
    };
    u64::from(words.split('|').map(value).fold(0, |all, flag| all | flag))
}

/// Seconds with a fraction.
fn nanos(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.')?;
    let digits = format!("{fraction:0<9}");
    Some(whole.parse::<u64>().ok()? * 1_000_000_000 + digits.get(..9)?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(lines: &str) -> Vec<Event> {
        let (mut parser, mut events) = (Parser::default(), Vec::new());
        for line in lines.lines() {
            parser.line(line, &mut events);
        }
        events
    }

    #[test]
    fn a_call_its_file_and_its_time() {
        let seen = events(include_str!("samples/dd.strace"));
        let written: Vec<i64> = seen
            .iter()
            .filter_map(|event| match event.what {
                What::Exit { call: Call::Write, result } => Some(result),
                _ => None,
            })
            .collect();
        assert_eq!(&written[..5], [8192; 5], "five blocks, then its report");
        let opened = seen.iter().find_map(|event| match &event.what {
            What::Enter { call: Call::Openat, arguments }
                if arguments[2] & u64::from(OFlags::DIRECT.bits()) != 0 =>
            {
                Some(arguments[2])
            }
            _ => None,
        });
        let asked = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::DIRECT;
        assert_eq!(opened, Some(u64::from(asked.bits() | O_DSYNC)));
        let path =
            |event: &Event| matches!(&event.what, What::Named { fd: 1, path } if path.ends_with("sample"));
        assert!(seen.iter().filter(|event| path(event)).count() >= 5, "{seen:?}");
    }

    #[test]
    fn lines_that_come_between() {
        let seen = events(
            "7 1.000100 pread64(3</d/x>,  <unfinished ...>\n8 1.000200 fsync(4</d/y>) = 0 <0.000050>\n\
             7 1.000300 <... pread64 resumed>\"\"..., 8192, 0) = 8192 <0.000210>\n\
             9 1.5 pwrite64(3</d/x>, \"a,)\"..., 10, 0) = -1 ENOSPC (No space left on device) <0.000001>\n",
        );
        let exits: Vec<(u32, u64, i64)> = seen
            .iter()
            .filter_map(|event| match event.what {
                What::Exit { result, .. } => Some((event.tid, event.at.0, result)),
                _ => None,
            })
            .collect();
        assert_eq!(exits, [(8, 1_000_250_000, 0), (7, 1_000_310_000, 8192), (9, 1_500_001_000, -1)]);
    }
}
