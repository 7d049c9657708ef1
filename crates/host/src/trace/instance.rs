//! A private instance of the kernel's tracer under tracefs: its own buffer, its own events, its own list of processes.
//!
//! Nobody else's tracing is touched. While it stands, every system call of the machine takes the kernel's slower way in and out (about
//! 0.1 µs); only those of the listed threads are written down.

use super::event::{Call, Event};
use super::format::{Decoder, Format, OTHERS};
use super::page;
use crate::error::HostError;
use crate::files;
use crate::journal::{Journal, Step, Undo};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Where tracefs is mounted.
const ROOTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// Buffers of all processors together.
const BUFFER_BYTES: u64 = 64 << 20;
/// Of one processor.
const BUFFER_KIB: (u64, u64) = (1 << 10, 16 << 10);
/// Largest page that is asked for; kernels have 4 KiB.
const PAGE_MAX: usize = 64 << 10;
/// Number of the first name space of processes, whose numbers the tracer speaks (`PROC_PID_INIT_INO`).
const FIRST_PID_SPACE: &str = "pid:[4026531836]";

/// What became of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Overwritten before they were read, or dropped.
    pub events: u64,
    /// Read.
    pub read: u64,
}

/// The instance, with its buffers open.
#[derive(Debug)]
pub(super) struct Instance {
    path: PathBuf,
    step: Step,
    pipes: Vec<File>,
    decoder: Decoder,
    /// Events that this kernel does not have.
    pub(super) missing: Vec<String>,
    /// Read, and perhaps not yet all before their time.
    early: Vec<Event>,
    read: u64,
    page: Vec<u8>,
}

impl Instance {
    /// Makes it; nothing is recorded until threads are listed.
    ///
    /// # Errors
    /// tracefs is not there, or not for this user; the kernel cannot trace system calls.
    pub(super) fn create(journal: &mut Journal) -> Result<Self, HostError> {
        let root = root()?;
        let path = root.join("instances").join(format!("redoubt-{}", journal.id()));
        // 1. The undo is on disk; 2. the instance is made. Everything else is inside it and goes with it.
        let step = journal.will(Undo::RemoveTraceInstance(path.clone()))?;
        std::fs::create_dir(&path).map_err(|e| HostError::file("create", &path, &e))?;
        Self::furnish(&root, &path, step).inspect_err(|_| {
            // The error that led here is the one to tell; what is left stays in the journal.
            let _ = journal.undo(step);
        })
    }

    fn furnish(root: &Path, path: &Path, step: Step) -> Result<Self, HostError> {
        let set = |name: &str, value: &str| files::write_setting(&path.join(name), value);
        set("tracing_on", "0")?;
        set("trace_clock", "mono")?;
        set("options/event-fork", "1")?;
        let processors = files::names(path.join("per_cpu"));
        let kib = (BUFFER_BYTES / 1024 / processors.len().max(1) as u64).clamp(BUFFER_KIB.0, BUFFER_KIB.1);
        set("buffer_size_kb", &kib.to_string())?;
        // Nobody has this number: an empty list would mean everybody.
        set("set_event_pid", "4194304")?;
        let (mut decoder, mut missing) = (Decoder::default(), Vec::new());
        let calls = Call::ALL.iter().flat_map(|call| {
            ["enter", "exit"].map(|side| ("syscalls", format!("sys_{side}_{}", call.name())))
        });
        for (folder, name) in calls.chain(OTHERS.map(|(folder, name)| (folder, name.to_owned()))) {
            let at = path.join("events").join(folder).join(&name);
            let format = files::text(at.join("format")).and_then(|text| Format::parse(&text));
            if format.is_some_and(|format| decoder.learn(&name, &format)) {
                files::write_setting(&at.join("enable"), "1")?;
            } else {
                missing.push(name);
            }
        }
        if missing.iter().any(|name| name == "sys_enter_pread64") {
            return Err(HostError::Unsupported {
                what: "tracing system calls".into(),
                why: format!("{} has no events for them (CONFIG_FTRACE_SYSCALLS)", root.display()),
                instead: "install strace, which is used then: sudo apt install strace".into(),
            });
        }
        let pipes = processors
            .iter()
            .map(|processor| {
                let pipe = path.join("per_cpu").join(processor).join("trace_pipe_raw");
                let open = OpenOptions::new()
                    .read(true)
                    .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
                    .open(&pipe);
                open.map_err(|e| HostError::file("open", &pipe, &e))
            })
            .collect::<Result<_, _>>()?;
        set("tracing_on", "1")?;
        let (early, page) = (Vec::new(), vec![0; PAGE_MAX]);
        Ok(Self { path: path.to_owned(), step, pipes, decoder, missing, early, read: 0, page })
    }

    /// Lists threads; what they make is listed by itself, but for workers of the kernel.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(super) fn add(&self, threads: &[u32]) -> Result<(), HostError> {
        let path = self.path.join("set_event_pid");
        let list = || {
            let mut file = OpenOptions::new().append(true).open(&path)?;
            // A buffer of the kernel's is a page.
            threads.chunks(256).try_for_each(|some| {
                let words: Vec<String> = some.iter().map(u32::to_string).collect();
                file.write_all(words.join(" ").as_bytes())
            })
        };
        list().map_err(|e| HostError::file("write", &path, &e))
    }

    /// Nobody is listed any more, and what was recorded until now is thrown away.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(super) fn forget(&mut self) -> Result<(), HostError> {
        let path = self.path.join("set_event_pid");
        std::fs::write(&path, "4194304").map_err(|e| HostError::file("write", &path, &e))?;
        self.collect()?;
        self.early.clear();
        self.read = 0;
        Ok(())
    }

    /// All that happened until now, in order.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(super) fn drain(&mut self) -> Result<Vec<Event>, HostError> {
        // What is recorded on one processor while another's buffer is read waits for the next time, so that each thread's events
        // stay in order when it moves.
        let until = self.now();
        self.collect()?;
        self.early.sort_by_key(|event| event.at);
        let whole = self.early.partition_point(|event| event.at.0 < until);
        let later = self.early.split_off(whole);
        Ok(std::mem::replace(&mut self.early, later))
    }

    /// Stops recording; what is left is drained.
    pub(super) fn stop(&mut self) -> Result<Vec<Event>, HostError> {
        files::write_setting(&self.path.join("tracing_on"), "0")?;
        self.collect()?;
        self.early.sort_by_key(|event| event.at);
        Ok(std::mem::take(&mut self.early))
    }

    fn collect(&mut self) -> Result<(), HostError> {
        let Self { pipes, decoder, early, page, read, .. } = self;
        for pipe in pipes {
            loop {
                match pipe.read(page) {
                    Ok(0) => break,
                    Ok(n) => {
                        page::entries(&page[..n], &mut |at, payload| {
                            *read += 1;
                            early.extend(decoder.decode(at, payload));
                        });
                    }
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    Err(e) if e.kind() == ErrorKind::Interrupted => {}
                    Err(e) => return Err(HostError::file("read", &self.path, &e)),
                }
            }
        }
        Ok(())
    }

    /// The trace clock, nanoseconds to the microsecond; 0 where it is not shown.
    fn now(&self) -> u64 {
        let text = files::text(self.path.join("per_cpu/cpu0/stats")).unwrap_or_default();
        number_of(&text, "now ts:").unwrap_or(0)
    }

    /// Counted by the kernel.
    pub(super) fn lost(&self) -> Lost {
        let lost = |processor: &String| {
            let text = files::text(self.path.join("per_cpu").join(processor).join("stats"));
            let text = text.unwrap_or_default();
            ["overrun:", "commit overrun:", "dropped events:"]
                .iter()
                .filter_map(|name| number_of(&text, name))
                .sum::<u64>()
        };
        let events = files::names(self.path.join("per_cpu")).iter().map(lost).sum();
        Lost { events, read: self.read }
    }

    /// Removes it.
    ///
    /// # Errors
    /// It is still there; the journal knows.
    pub(super) fn remove(self, journal: &mut Journal) -> Result<(), HostError> {
        let step = self.step;
        drop(self);
        journal.undo(step).map(|_| ())
    }
}

/// The number behind `name` in a file of `name: number` lines; seconds with a fraction become nanoseconds.
fn number_of(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?.trim();
    match value.split_once('.') {
        Some((whole, fraction)) => {
            let digits = format!("{fraction:0<9}");
            Some(whole.parse::<u64>().ok()? * 1_000_000_000 + digits.get(..9)?.parse::<u64>().ok()?)
        }
        None => value.parse().ok(),
    }
}

/// Where instances are made.
fn root() -> Result<PathBuf, HostError> {
    let unsupported = |why: String, instead: &str| HostError::Unsupported {
        what: "tracing by the kernel".into(),
        why,
        instead: instead.into(),
    };
    if !files::is_root() {
        return Err(HostError::needs_root("tracing by the kernel"));
    }
    let root = ROOTS.iter().map(Path::new).find(|root| root.join("instances").is_dir()).ok_or_else(|| {
        let mount = "mount it: sudo mount -t tracefs nodev /sys/kernel/tracing";
        unsupported("tracefs is not mounted, or the kernel has no tracer".into(), mount)
    })?;
    let space = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    if space != Path::new(FIRST_PID_SPACE) {
        let why = "this is a container, and the tracer knows processes by the numbers of the machine";
        return Err(unsupported(why.into(), "run it on the machine, or with docker run --pid=host"));
    }
    Ok(root.to_owned())
}

/// Removes an instance that a journal names. `rmdir` of a tracefs instance takes its events and buffers along.
pub(crate) fn remove(path: &Path) -> Result<bool, HostError> {
    if !path.exists() {
        return Ok(false);
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_instance = files::parent(path).file_name().is_some_and(|above| above == "instances");
    if !is_instance || !name.starts_with("redoubt-") {
        return Err(HostError::NotOurs {
            path: path.to_owned(),
            why: "it is no trace instance of ours: its name does not begin with redoubt-".into(),
        });
    }
    std::fs::remove_dir(path).map(|()| true).map_err(|e| HostError::file("remove", path, &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_processor() {
        let text = "entries: 0\noverrun: 7\ncommit overrun: 0\nbytes: 0\noldest event ts: 49150.336917\n\
                    now ts: 49150.385407\ndropped events: 3\nread events: 28\n";
        assert_eq!(number_of(text, "overrun:"), Some(7));
        assert_eq!(number_of(text, "dropped events:"), Some(3));
        assert_eq!(number_of(text, "now ts:"), Some(49_150_385_407_000));
        assert_eq!(number_of(text, "missing:"), None);
    }
}
