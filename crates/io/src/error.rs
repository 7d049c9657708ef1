//! What storage refuses, and what to do about it.
//!
//! Each message says what was seen, the likely cause, and what to type or try next.

use crate::file::Alignment;
use crate::mode::Api;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// An error of files and queues. `errno` is the kernel's number, `call` the system call that returned it.
#[derive(Debug, Error)]
pub enum IoError {
    /// The path does not exist.
    #[error(
        "{path}: no such file or directory; check the path, or give a directory to let a file be made there"
    )]
    NoSuchFile {
        /// What was opened.
        path: PathBuf,
    },
    /// A file that was to be made is there already; it is never overwritten.
    #[error("{path} exists already and was not made by this run; choose another name, or remove it yourself")]
    Exists {
        /// What was to be created.
        path: PathBuf,
    },
    /// Not a regular file or block device.
    #[error("{path} is {what}, not a regular file or a block device; give one of those")]
    NotAFile {
        /// What was opened.
        path: PathBuf,
        /// What it is instead.
        what: &'static str,
    },
    /// A block device that something else holds.
    #[error("{path} is in use (mounted, part of a volume, or swap); see `lsblk {path}` and release it first")]
    Busy {
        /// The device.
        path: PathBuf,
    },
    /// Another process, or another part of this one, works on it.
    #[error("{path} is locked{}; stop that one first, or use another directory", holder_words(*.holder))]
    Locked {
        /// The file that names the lock.
        path: PathBuf,
        /// The process that has it, where it is known.
        holder: Option<u32>,
    },
    /// A block device that is to be taken for something new and holds data.
    #[error(
        "{path} holds data at byte {offset}; if it can be destroyed, blank the device: `blkdiscard -z {path}`, or `dd if=/dev/zero of={path} bs=1M count=1`"
    )]
    NotBlank {
        /// The device.
        path: PathBuf,
        /// The first byte that is not zero.
        offset: u64,
    },
    /// The kernel denied access.
    #[error("{path}: {call} was denied ({}); run as the owner, as root, or `chmod` the file", explain(*.errno))]
    Permission {
        /// The file.
        path: PathBuf,
        /// The system call.
        call: &'static str,
        /// `EACCES` or `EPERM`.
        errno: i32,
    },
    /// The file system or device is read-only.
    #[error("{path}: read-only; `findmnt -T {path}` shows the mount, `mount -o remount,rw` changes it")]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// No space, or over a quota.
    #[error("{path}: {call} found no space ({}); look at what is left (`df -h`; of an export, on its server), free some, or choose a smaller size", explain(*.errno))]
    NoSpace {
        /// The file.
        path: PathBuf,
        /// The system call.
        call: &'static str,
        /// `ENOSPC`, `EDQUOT` or `EFBIG`.
        errno: i32,
    },
    /// The file system does not know `O_DIRECT`.
    #[error(
        "{path}: the file system refuses O_DIRECT at open; older tmpfs and some FUSE file systems do; use mode none or asynch there, or another file system"
    )]
    DirectRefusedAtOpen {
        /// The file.
        path: PathBuf,
        /// Usually `EINVAL`.
        errno: i32,
    },
    /// `O_DIRECT` was accepted at open and refused at the first transfer.
    #[error("{path}: opened with O_DIRECT, but the first aligned transfer failed ({}); the file system pretends to support it; use mode none or asynch there", explain(*.errno))]
    DirectRefusedAtTransfer {
        /// The file.
        path: PathBuf,
        /// The error of the transfer.
        errno: i32,
    },
    /// A direct transfer does not fit the device's blocks.
    #[error("{path}: a transfer of {bytes} bytes at offset {offset} is not aligned; this device needs offsets of {} and lengths of {} bytes, in memory aligned to {}; use a block size that is a multiple of {}", needed.offset, needed.length, needed.memory, needed.offset)]
    Misaligned {
        /// The file.
        path: PathBuf,
        /// Where the transfer began.
        offset: u64,
        /// How long it was.
        bytes: u32,
        /// What the device needs.
        needed: Alignment,
    },
    /// A sync failed earlier: what is on the medium is unknown from then on.
    #[error("{path}: a sync failed before ({}), so nothing written since the last good one can be trusted; look at `dmesg`, check the device, and start over with a new file", explain(*.errno))]
    Poisoned {
        /// The file.
        path: PathBuf,
        /// The error of the sync.
        errno: i32,
    },
    /// The device reported an unrecoverable error.
    #[error("{path}: {call} at offset {offset} failed ({}); the device or the network below could not do it; look at `dmesg` and `smartctl -a`", explain(*.errno))]
    Medium {
        /// The file.
        path: PathBuf,
        /// The system call.
        call: &'static str,
        /// Where.
        offset: u64,
        /// `EIO` and its like.
        errno: i32,
    },
    /// Fewer bytes than asked for.
    #[error(
        "{path}: {call} at offset {offset} transferred {done} of {wanted} bytes; the file is shorter than thought, full, or interrupted; check its size"
    )]
    ShortTransfer {
        /// The file.
        path: PathBuf,
        /// The system call.
        call: &'static str,
        /// Where.
        offset: u64,
        /// Bytes asked for.
        wanted: u32,
        /// Bytes done.
        done: u32,
    },
    /// The kernel does not offer this API here.
    #[error("{api} cannot be used here ({}): {reason}", explain(*.errno))]
    ApiUnavailable {
        /// Which.
        api: Api,
        /// What its set-up returned.
        errno: i32,
        /// The likely cause and what to type.
        reason: &'static str,
    },
    /// After preparation some of the file is still not backed by written extents.
    #[error(
        "{path}: {bytes} bytes are still holes or unwritten after every block was written; reads of them would never reach the device; use another file system, or report this"
    )]
    Unwritten {
        /// The file.
        path: PathBuf,
        /// How many.
        bytes: u64,
    },
    /// The caller's callback said stop.
    #[error("{path}: stopped on request, {done} bytes were written")]
    Stopped {
        /// The file.
        path: PathBuf,
        /// Bytes written so far.
        done: u64,
    },
    /// Memory for the buffers could not be had.
    #[error("no memory for {bytes} bytes of buffers ({}); use fewer requests in flight, or smaller ones", explain(*.errno))]
    NoMemory {
        /// How many.
        bytes: usize,
        /// What `mmap` returned.
        errno: i32,
    },
    /// Storage that is not this machine's, with what its client says of it.
    #[error("{said}")]
    Elsewhere {
        /// The file.
        path: PathBuf,
        /// What was asked of it.
        call: &'static str,
        /// The number that is closest.
        errno: i32,
        /// What is wrong and what to do.
        said: String,
    },
    /// Anything else, with the number.
    #[error("{path}: {call} failed ({})", explain(*.errno))]
    Os {
        /// The file, or empty.
        path: PathBuf,
        /// The system call.
        call: &'static str,
        /// The kernel's number.
        errno: i32,
    },
}

fn holder_words(holder: Option<u32>) -> String {
    holder.map_or_else(|| " by another process".into(), |pid| format!(" by process {pid}"))
}

/// The C library's words for an error number, without Rust's "(os error n)".
fn explain(errno: i32) -> String {
    let text = std::io::Error::from_raw_os_error(errno).to_string();
    let words = text.split(" (os error").next().unwrap_or(&text).to_lowercase();
    format!("{words}, errno {errno}")
}

impl IoError {
    /// The variant that fits `errno` of `call` on `path`; `offset` where the call had one.
    pub fn from_errno(path: &Path, call: &'static str, offset: u64, errno: i32) -> Self {
        let path = path.to_path_buf();
        match errno {
            libc::ENOENT | libc::ENOTDIR => Self::NoSuchFile { path },
            libc::EEXIST => Self::Exists { path },
            libc::EBUSY => Self::Busy { path },
            libc::EACCES | libc::EPERM => Self::Permission { path, call, errno },
            libc::EROFS => Self::ReadOnly { path },
            libc::ENOSPC | libc::EDQUOT | libc::EFBIG => Self::NoSpace { path, call, errno },
            libc::EIO | libc::ENXIO | libc::ENODEV | libc::EREMOTEIO | libc::ENODATA | libc::EBADE => {
                Self::Medium { path, call, offset, errno }
            }
            _ => Self::Os { path, call, errno },
        }
    }

    /// The kernel's number, where there is one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::NoSuchFile { .. } => Some(libc::ENOENT),
            Self::Exists { .. } => Some(libc::EEXIST),
            Self::Busy { .. } => Some(libc::EBUSY),
            Self::ReadOnly { .. } => Some(libc::EROFS),
            Self::Misaligned { .. } => Some(libc::EINVAL),
            Self::Permission { errno, .. }
            | Self::NoSpace { errno, .. }
            | Self::DirectRefusedAtOpen { errno, .. }
            | Self::DirectRefusedAtTransfer { errno, .. }
            | Self::Poisoned { errno, .. }
            | Self::Medium { errno, .. }
            | Self::ApiUnavailable { errno, .. }
            | Self::NoMemory { errno, .. }
            | Self::Elsewhere { errno, .. }
            | Self::Os { errno, .. } => Some(*errno),
            Self::NotAFile { .. }
            | Self::Locked { .. }
            | Self::NotBlank { .. }
            | Self::ShortTransfer { .. }
            | Self::Unwritten { .. }
            | Self::Stopped { .. } => None,
        }
    }
}

/// The last error of a raw system call made by this thread.
pub(crate) fn last_errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}
