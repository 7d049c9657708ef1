//! Which ways to storage are open here: direct I/O, io_uring, libaio?

use super::{Finding, Patient};
use host::journal::Journal;
use host::workspace::Workspace;
use io::{Access, Api, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

pub(super) fn examine(patient: &Patient, _: &AtomicBool) -> Vec<Finding> {
    vec![
        direct(patient),
        api(Api::IoUring, "io_uring", IO_URING),
        api(Api::Libaio, "libaio", LIBAIO),
        contexts(patient),
    ]
}

const IO_URING: &str =
    "sudo sysctl kernel.io_uring_disabled=0   (in a container: allow io_uring in its seccomp profile)";
const LIBAIO: &str = "sudo sysctl fs.aio-max-nr=1048576";

fn api(api: Api, topic: &'static str, advice: &str) -> Finding {
    match api.available() {
        Ok(()) => Finding::good(topic, "available"),
        Err(error) => Finding::warn(topic, error.to_string())
            .effect("modes asynch, setall and concurrent cannot be measured with it, nor can a database use it here")
            .advice(advice),
    }
}

/// A database of a thousand sessions asks for some ten thousand contexts' requests at once.
fn contexts(patient: &Patient) -> Finding {
    let number = |name| patient.fact("kernel", name).and_then(|v| v.parse::<u64>().ok());
    let (Some(limit), Some(used)) = (number("aio_max_nr"), number("aio_nr")) else {
        return Finding::unknown("aio-max-nr", "/proc/sys/fs/aio-max-nr cannot be read");
    };
    judge_contexts(limit, used)
}

fn judge_contexts(limit: u64, used: u64) -> Finding {
    let seen = format!("{used} of {limit} asynchronous requests (libaio) are reserved");
    if limit.saturating_sub(used) >= 32_768 {
        return Finding::good("aio-max-nr", seen);
    }
    Finding::warn("aio-max-nr", seen)
        .effect("a database that gets no context falls back to synchronous I/O without a word")
        .advice(LIBAIO)
}

fn direct(patient: &Patient) -> Finding {
    let tried = match &patient.directory {
        Some(directory) => try_new_file(directory),
        None => try_open(&patient.path),
    };
    match tried {
        Ok(bytes) => Finding::good("direct I/O", format!("works, in units of {bytes} bytes")),
        Err(Trouble::Refused(words)) => Finding::bad("direct I/O", words)
            .effect("modes directio, setall and concurrent cannot be measured here; everything passes the page cache")
            .advice("use ext4, xfs or NFS; without direct I/O keep the files larger than memory"),
        Err(Trouble::Untried(words)) => Finding::unknown("direct I/O", words),
    }
}

enum Trouble {
    Refused(String),
    Untried(String),
}

/// A file of our own: whether the first transfer works is only known by making one.
fn try_new_file(directory: &Path) -> Result<u32, Trouble> {
    let untried = |e: &dyn std::fmt::Display| Trouble::Untried(e.to_string());
    let mut journal =
        Journal::open(&format!("doctor in {}", directory.display())).map_err(|e| untried(&e))?;
    let space = Workspace::create(directory, &mut journal).map_err(|e| untried(&e))?;
    let path: PathBuf = space.list("direct").map_err(|e| untried(&e))?;
    let access = Access { read: true, write: true, direct: true, dsync: false };
    let done = File::create_new(&path, access)
        .and_then(|file| file.probe_direct().map(|()| file.alignment().length));
    let result = done.map_err(|e| sort(&e));
    journal.undo_all().map_err(|e| untried(&e))?;
    result
}

fn try_open(path: &Path) -> Result<u32, Trouble> {
    let access = Access { read: true, write: false, direct: true, dsync: false };
    File::open(path, access)
        .and_then(|file| file.probe_direct().map(|()| file.alignment().length))
        .map_err(|e| sort(&e))
}

/// Only EINVAL and EOPNOTSUPP speak about direct I/O; a full disk or a missing permission does not.
fn sort(error: &io::IoError) -> Trouble {
    const EINVAL: i32 = 22;
    const EOPNOTSUPP: i32 = 95;
    match error.errno() {
        Some(EINVAL | EOPNOTSUPP) => Trouble::Refused(error.to_string()),
        _ => Trouble::Untried(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn few_contexts_are_a_warning() {
        assert_eq!(judge_contexts(65_536, 0).level, Level::Good);
        assert_eq!(judge_contexts(65_536, 60_000).level, Level::Warn);
        assert_eq!(judge_contexts(0, 10).level, Level::Warn);
    }
}
