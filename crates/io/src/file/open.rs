//! Opening and creating, with every refusal named.

use super::{BlockSizes, File};
use crate::error::IoError;
use crate::mode::Access;
use rustix::fd::OwnedFd;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::path::Path;
use std::sync::atomic::AtomicI32;

impl File {
    /// Opens an existing regular file or block device; never creates, never truncates.
    ///
    /// A block device opened for writing is opened exclusively: the kernel refuses while it is mounted or held, so a
    /// mistake cannot overwrite a file system in use.
    ///
    /// # Errors
    /// [`IoError::NoSuchFile`], [`IoError::Permission`], [`IoError::ReadOnly`], [`IoError::NotAFile`],
    /// [`IoError::Busy`], [`IoError::DirectRefusedAtOpen`].
    pub fn open(path: &Path, access: Access) -> Result<Self, IoError> {
        Self::open_with(path, access, OFlags::EXCL)
    }

    /// As [`File::open`], beside a handle of our own that claimed the block device already.
    ///
    /// # Errors
    /// Those of [`File::open`].
    pub(crate) fn open_unclaimed(path: &Path, access: Access) -> Result<Self, IoError> {
        Self::open_with(path, access, OFlags::empty())
    }

    fn open_with(path: &Path, access: Access, claim: OFlags) -> Result<Self, IoError> {
        // Looked at before it is opened: opening some character devices or pipes has effects or blocks.
        let kind =
            rustix::fs::stat(path).map_err(|e| IoError::from_errno(path, "stat", 0, e.raw_os_error()))?;
        let kind = FileType::from_raw_mode(kind.st_mode);
        check_kind(path, kind)?;
        let mut flags = flags_of(access);
        if kind == FileType::BlockDevice && access.write {
            flags |= claim;
        }
        Self::from_fd(path, access, open(path, flags, access)?)
    }

    /// Creates a new file, readable and writable by its owner alone. Never follows a symbolic link, never opens or
    /// truncates what is there already.
    ///
    /// # Errors
    /// [`IoError::Exists`], and those of [`File::open`].
    pub fn create_new(path: &Path, access: Access) -> Result<Self, IoError> {
        let access = Access { write: true, ..access };
        // Made without O_DIRECT first: a file system that refuses it does so after the file was made, or before, and then
        // nobody could say whether the file at `path` is ours to take back.
        let plain = Access { direct: false, ..access };
        let made = open(path, flags_of(plain) | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW, plain)?;
        if !access.direct {
            return Self::from_fd(path, access, made);
        }
        let result = Self::reopen_direct(path, access, &made);
        if result.is_err() && is_at(path, &made) {
            let _ = rustix::fs::unlink(path);
        }
        result
    }

    fn reopen_direct(path: &Path, access: Access, made: &OwnedFd) -> Result<Self, IoError> {
        let file = Self::from_fd(path, access, open(path, flags_of(access) | OFlags::NOFOLLOW, access)?)?;
        if is_at(path, made) && is_at(path, &file.fd) {
            return Ok(file);
        }
        Err(IoError::from_errno(path, "open", 0, libc::EEXIST))
    }

    fn from_fd(path: &Path, access: Access, fd: OwnedFd) -> Result<Self, IoError> {
        let failed = |call, e: Errno| IoError::from_errno(path, call, 0, e.raw_os_error());
        // Asked again of the descriptor: the path may have been exchanged between stat and open.
        let kind = rustix::fs::fstat(&fd).map_err(|e| failed("fstat", e))?;
        let kind = FileType::from_raw_mode(kind.st_mode);
        check_kind(path, kind)?;
        let block = if kind == FileType::BlockDevice {
            Some(BlockSizes {
                logical: rustix::fs::ioctl_blksszget(&fd).map_err(|e| failed("BLKSSZGET", e))?,
                physical: rustix::fs::ioctl_blkpbszget(&fd).map_err(|e| failed("BLKPBSZGET", e))?,
            })
        } else {
            None
        };
        Ok(Self { fd, path: path.to_path_buf(), access, block, poison: AtomicI32::new(0) })
    }
}

/// Whether the file that `fd` names is the one at `path` now.
pub(crate) fn is_at(path: &Path, fd: &OwnedFd) -> bool {
    match (rustix::fs::fstat(fd), rustix::fs::lstat(path)) {
        (Ok(ours), Ok(there)) => (ours.st_dev, ours.st_ino) == (there.st_dev, there.st_ino),
        _ => false,
    }
}

fn flags_of(access: Access) -> OFlags {
    let mut flags = OFlags::CLOEXEC
        | match (access.read, access.write) {
            (_, false) => OFlags::RDONLY,
            (true, true) => OFlags::RDWR,
            (false, true) => OFlags::WRONLY,
        };
    flags.set(OFlags::DIRECT, access.direct);
    if access.dsync {
        // Not `OFlags::DSYNC`: rustix 1.1 means O_SYNC by it, which also waits for metadata that nobody asked for.
        flags |= OFlags::from_bits_retain(libc::O_DSYNC as u32);
    }
    flags
}

fn open(path: &Path, flags: OFlags, access: Access) -> Result<OwnedFd, IoError> {
    loop {
        match rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR) {
            Ok(fd) => return Ok(fd),
            Err(Errno::INTR) => {}
            Err(Errno::INVAL) if access.direct => {
                let errno = Errno::INVAL.raw_os_error();
                return Err(IoError::DirectRefusedAtOpen { path: path.to_path_buf(), errno });
            }
            Err(errno) => return Err(IoError::from_errno(path, "open", 0, errno.raw_os_error())),
        }
    }
}

fn check_kind(path: &Path, kind: FileType) -> Result<(), IoError> {
    let what = match kind {
        FileType::RegularFile | FileType::BlockDevice => return Ok(()),
        FileType::Directory => "a directory",
        FileType::CharacterDevice => "a character device",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        _ => "something unknown",
    };
    Err(IoError::NotAFile { path: path.to_path_buf(), what })
}
