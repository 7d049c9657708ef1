//! Processes and threads as `/proc` shows them: who belongs together, what they are called, what they have open.

use crate::files;
use rustix::fs::OFlags;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// `O_DSYNC` of asm-generic/fcntl.h; rustix takes it for `O_SYNC`, which has one bit more.
pub(super) const O_DSYNC: u32 = 0o10000;

/// A thread, as far as it was seen before it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its process.
    pub process: u32,
    /// Its own name, at most fifteen bytes.
    pub name: String,
}

/// Looks at a thread; none when it has ended.
pub fn task(tid: u32) -> Option<Task> {
    let status = files::text(format!("/proc/{tid}/status"))?;
    let value = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    Some(Task { process: value("Tgid:")?.parse().ok()?, name: value("Name:")?.to_owned() })
}

/// Whether another process steps through it, as `strace` does; also when it is gone.
pub(super) fn is_traced(process: u32) -> bool {
    let status = files::text(format!("/proc/{process}/status")).unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("TracerPid:")).is_none_or(|pid| pid.trim() != "0")
}

/// Threads of a process, those that the kernel runs for it included.
pub fn threads(process: u32) -> Vec<u32> {
    files::names(format!("/proc/{process}/task")).iter().filter_map(|name| name.parse().ok()).collect()
}

/// A process and all that came from it, as far as their parents still live.
pub fn with_descendants(process: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for pid in files::names("/proc").iter().filter_map(|name| name.parse::<u32>().ok()) {
        let Some(stat) = files::text(format!("/proc/{pid}/stat")) else { continue };
        if let Some(parent) = parent(&stat) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut all = vec![process];
    let mut next = 0;
    while let Some(pid) = all.get(next) {
        all.extend(children.remove(pid).unwrap_or_default());
        next += 1;
    }
    all
}

/// The fourth field of `/proc/PID/stat`, counted after the last bracket: a name may hold spaces and brackets.
fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// The letter of its state: `R`, `S`, `T` …; none when it has ended.
pub fn state(process: u32) -> Option<char> {
    let stat = files::text(format!("/proc/{process}/stat"))?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Its command line, blanks between the words; a server writes there what it does.
pub fn command_line(process: u32) -> Option<String> {
    let text = files::text(format!("/proc/{process}/cmdline"))?;
    Some(text.split('\0').collect::<Vec<_>>().join(" ").trim().to_owned())
}

/// The file name of its program.
pub fn program(process: u32) -> Option<String> {
    let path = std::fs::read_link(format!("/proc/{process}/exe")).ok()?;
    Some(path.file_name()?.to_string_lossy().trim_end_matches(" (deleted)").to_owned())
}

/// A descriptor of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFile {
    /// What it shows: a path, `socket:[…]`, `pipe:[…]`, `anon_inode:[io_uring]` ….
    pub path: String,
    /// Open flags, as the kernel shows them (octal in `fdinfo`).
    pub flags: u32,
}

/// Past the page cache (`O_DIRECT`).
pub const fn is_direct(flags: u32) -> bool {
    flags & OFlags::DIRECT.bits() != 0
}

/// A write is durable when it returns (`O_DSYNC`, `O_SYNC`).
pub const fn is_durable(flags: u32) -> bool {
    flags & O_DSYNC != 0
}

/// The flags that matter to storage; the others (close-on-exec, large files, creation) left out.
pub const fn marks(flags: u32) -> u32 {
    let kept = OFlags::DIRECT.bits() | OFlags::SYNC.bits() | O_DSYNC | OFlags::APPEND.bits();
    flags & (kept | 3)
}

/// The flags that matter to storage, as `open` calls them.
pub fn flag_names(flags: u32) -> Vec<&'static str> {
    let access = match flags & 3 {
        0 => "O_RDONLY",
        1 => "O_WRONLY",
        _ => "O_RDWR",
    };
    let sync = if flags & OFlags::SYNC.bits() == OFlags::SYNC.bits() {
        Some("O_SYNC")
    } else {
        is_durable(flags).then_some("O_DSYNC")
    };
    let append = (flags & OFlags::APPEND.bits() != 0).then_some("O_APPEND");
    std::iter::once(access).chain(is_direct(flags).then_some("O_DIRECT")).chain(sync).chain(append).collect()
}

/// What is behind a descriptor now; none when it is closed.
pub fn open_file(process: u32, fd: i32) -> Option<OpenFile> {
    let path = std::fs::read_link(format!("/proc/{process}/fd/{fd}")).ok()?;
    let info = files::text(format!("/proc/{process}/fdinfo/{fd}"))?;
    Some(OpenFile { path: path.to_string_lossy().into_owned(), flags: flags(&info)? })
}

/// All descriptors of a process.
pub fn open_files(process: u32) -> Vec<OpenFile> {
    let all = files::names(format!("/proc/{process}/fd"));
    all.iter().filter_map(|fd| open_file(process, fd.parse().ok()?)).collect()
}

/// Paths of the files that are registered with the io_uring behind a descriptor, in order.
pub fn registered_files(process: u32, ring: i32) -> Vec<String> {
    registered(&files::text(format!("/proc/{process}/fdinfo/{ring}")).unwrap_or_default())
}

/// `flags:` and an octal number behind a tab.
fn flags(info: &str) -> Option<u32> {
    let octal = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
    u32::from_str_radix(octal.trim(), 8).ok()
}

/// ```text
/// UserFiles:  2
///     0: /data/redo01.log
///     1: /data/redo02.log
/// ```
fn registered(info: &str) -> Vec<String> {
    let lines = info.lines().skip_while(|line| !line.starts_with("UserFiles:")).skip(1);
    let path = |line: &str| {
        let (number, path) = line.trim_start().split_once(": ")?;
        number.parse::<u32>().ok().map(|_| path.trim().to_owned())
    };
    lines.map_while(path).collect()
}

/// Bytes of a process's memory.
#[derive(Debug)]
pub struct Memory(File);

impl Memory {
    /// Opens it; none without the right to.
    pub fn of(process: u32) -> Option<Self> {
        File::open(format!("/proc/{process}/mem")).ok().map(Self)
    }

    /// Numbers of 64 bits from `address`; none where nothing is mapped.
    pub fn words<const N: usize>(&self, address: u64) -> Option<[u64; N]> {
        let mut bytes = vec![0; N * 8];
        self.0.read_exact_at(&mut bytes, address).ok()?;
        let mut words = [0; N];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(bytes.try_into().ok()?);
        }
        Some(words)
    }
}

/// Where a process works: its relative paths begin there.
pub fn directory(process: u32) -> Option<PathBuf> {
    std::fs::read_link(Path::new("/proc").join(process.to_string()).join("cwd")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_shows() {
        assert_eq!(parent("817 (tail) R) S 52 817 52 0 -1 4194304"), Some(52));
        assert_eq!(flags("pos:\t0\nflags:\t02150002\nmnt_id:\t29\n"), Some(0o2150002));
        let flags = (OFlags::RDWR | OFlags::DIRECT).bits() | O_DSYNC;
        assert_eq!(flag_names(flags), ["O_RDWR", "O_DIRECT", "O_DSYNC"]);
        assert_eq!(flag_names(OFlags::SYNC.bits()), ["O_RDONLY", "O_SYNC"]);
        let info = "pos:\t0\nflags:\t02000002\nSqThread:\t-1\nUserFiles:\t2\n    0: /data/redo01.log\n    1: /data/a\\040b\n\
                    UserBufs:\t1\n    0: 0x7f/4096\n";
        assert_eq!(registered(info), ["/data/redo01.log", "/data/a\\040b"]);
        assert!(registered("pos:\t0\n").is_empty());
    }

    #[test]
    fn finds_itself() {
        let own = std::process::id();
        assert_eq!(task(own).map(|task| task.process), Some(own));
        assert!(threads(own).contains(&own) && with_descendants(own).contains(&own));
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_string_lossy().into_owned();
        assert!(open_files(own).iter().any(|open| open.path == path && open.flags & 3 == 2));
        let known = [0x1234_5678_9abc_def0u64, 7];
        assert_eq!(Memory::of(own).unwrap().words::<2>((&raw const known) as u64), Some(known));
        assert_eq!(Memory::of(own).unwrap().words::<1>(0), None);
    }
}
