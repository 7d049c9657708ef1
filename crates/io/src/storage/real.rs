//! The file system and block devices.

use super::{Ownership, Storage, StorageLock};
use crate::buffer::Buffer;
use crate::error::IoError;
use crate::file::File;
use crate::mode::{Access, Api};
use crate::prepare;
use crate::queue::{Queue, QueueOptions, open_queue};
use crate::sim::Disk;
use rustix::fs::{Advice, FallocateFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use units::{Nanos, clock};

/// Bytes of one write of zeroes.
const CHUNK_BYTES: u64 = 1 << 20;
/// What of a block device has to be blank before it is taken, and is afterwards when it is given back.
const HEAD_BYTES: u64 = 1 << 20;
/// Writers of zeroes at once, as in [`prepare`].
const WRITERS: u64 = 4;
/// How often, and for how long each time, a claimed device is waited for.
const FREE_NAPS: u32 = 50;
const FREE_NAP: Nanos = Nanos::millis(20);
/// What direct transfers of zeroes are aligned to: the largest block that a disk is known to have.
const ALIGNMENT: u64 = 4096;

/// [`Storage`] on the machine itself. Keeps nothing: all state is the kernel's.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealStorage;

impl Storage for RealStorage {
    /// 1. the name, which must be new. 2. space, before a byte is written: a full disk is found now. 3. zeroes everywhere, so
    ///    that no later write changes metadata. 4. sync the file, 5. then its directory: the other way round a crash could leave
    ///    the name of a file without content. 6. open it as asked; zeroes were written without `O_DSYNC`.
    fn create(&self, path: &Path, bytes: u64, access: Access) -> Result<Arc<dyn Disk>, IoError> {
        if self.is_device(path) {
            return take_device(path, bytes, access);
        }
        let direct = access.direct && bytes.is_multiple_of(ALIGNMENT);
        let plain = Access { read: false, write: true, direct, dsync: false };
        let made = File::create_new(path, plain)?;
        let result = prepare::reserve(&made, FallocateFlags::empty(), 0, bytes)
            .and_then(|()| write_zeroes(&made, 0, bytes, WRITERS))
            .and_then(|()| sync(&made))
            .and_then(|()| sync_directory_of(path))
            .and_then(|()| File::open(path, access));
        match result {
            Ok(file) => Ok(Arc::new(file)),
            Err(error) => {
                drop(made);
                let _ = self.remove(path);
                Err(error)
            }
        }
    }

    fn open(&self, path: &Path, access: Access) -> Result<Arc<dyn Disk>, IoError> {
        Ok(Arc::new(open_when_free(path, access)?))
    }

    fn ownership(&self, path: &Path) -> Option<Ownership> {
        super::owner::ask(path)
    }

    /// 1. space beyond the end, without touching the size. 2. zeroes from `from` on, one after the other, so that the size never
    ///    runs ahead of them. 3. sync. What fails takes the file back to `from`.
    ///
    /// Through the page cache, whatever the owner's handle does; the pages are dropped again afterwards.
    fn extend(&self, path: &Path, from: u64, to: u64) -> Result<(), IoError> {
        let file = open_beside_owner(path)?;
        if file.is_block_device() && file.size()? < to {
            return Err(IoError::from_errno(path, "extend", from, libc::ENOSPC));
        }
        let more = to.saturating_sub(from);
        let result = prepare::reserve(&file, FallocateFlags::KEEP_SIZE, from, more)
            .and_then(|()| write_zeroes(&file, from, to, 1))
            .and_then(|()| sync(&file));
        if result.is_err() && !file.is_block_device() {
            let _ = rustix::fs::ftruncate(file.as_fd(), from);
        }
        let _ = rustix::fs::fadvise(file.as_fd(), from, more.try_into().ok(), Advice::DontNeed);
        result
    }

    fn remove(&self, path: &Path) -> Result<(), IoError> {
        if self.is_device(path) {
            let file = open_beside_owner(path)?;
            return write_zeroes(&file, 0, HEAD_BYTES.min(file.size()?), 1).and_then(|()| sync(&file));
        }
        std::fs::remove_file(path).map_err(|e| failed(path, "unlink", &e))?;
        sync_directory_of(path)
    }

    /// 1. the content under another name, synced: before 2, or the name could get an empty file. 2. rename over it, which is
    ///    atomic. 3. sync the directory.
    fn replace(&self, path: &Path, content: &[u8]) -> Result<(), IoError> {
        let mut name = std::ffi::OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(".new");
        let draft = path.with_file_name(name);
        let result = std::fs::File::create(&draft).and_then(|mut file| {
            file.write_all(content)?;
            file.sync_all()
        });
        let result = result.and_then(|()| std::fs::rename(&draft, path));
        if let Err(error) = result {
            let _ = std::fs::remove_file(&draft);
            return Err(failed(path, "replace", &error));
        }
        sync_directory_of(path)
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, IoError> {
        std::fs::read(path).map_err(|e| failed(path, "read", &e))
    }

    fn append_line(&self, path: &Path, line: &str) {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        // One write, so that lines of two threads do not mix.
        let _ = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    }

    fn exists(&self, path: &Path) -> bool {
        path.symlink_metadata().is_ok()
    }

    fn is_device(&self, path: &Path) -> bool {
        rustix::fs::stat(path)
            .is_ok_and(|facts| FileType::from_raw_mode(facts.st_mode) == FileType::BlockDevice)
    }

    fn lock(&self, path: &Path) -> Result<StorageLock, IoError> {
        loop {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let fd = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)
                .map_err(|e| IoError::from_errno(path, "open", 0, e.raw_os_error()))?;
            match rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::INTR) => continue,
                Err(Errno::WOULDBLOCK) => {
                    let text = std::fs::read_to_string(path).unwrap_or_default();
                    return Err(IoError::Locked {
                        path: path.to_path_buf(),
                        holder: text.trim().parse().ok(),
                    });
                }
                Err(e) => return Err(IoError::from_errno(path, "flock", 0, e.raw_os_error())),
            }
            // Its owner may have removed it between open and flock: then this is a lock on nothing.
            if !crate::file::is_at(path, &fd) {
                continue;
            }
            let mut file = std::fs::File::from(fd);
            let written = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
            written.map_err(|e| failed(path, "write", &e))?;
            return Ok(StorageLock::new(file));
        }
    }

    /// From the top down, and each new name is synced in the directory above it.
    fn create_directory(&self, path: &Path) -> Result<(), IoError> {
        let missing: Vec<&Path> = path.ancestors().take_while(|p| !p.is_dir()).collect();
        for directory in missing.into_iter().rev() {
            match std::fs::create_dir(directory) {
                Ok(()) => sync_directory_of(directory)?,
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && directory.is_dir() => {}
                Err(error) => return Err(failed(directory, "mkdir", &error)),
            }
        }
        Ok(())
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>, IoError> {
        let entries = std::fs::read_dir(directory).map_err(|e| failed(directory, "readdir", &e))?;
        let mut paths = entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|e| failed(directory, "readdir", &e))?;
        paths.sort();
        Ok(paths)
    }

    fn open_queue(
        &self,
        api: Api,
        depth: u32,
        buffer_bytes: u32,
        files: &[Arc<dyn Disk>],
    ) -> Result<Box<dyn Queue>, IoError> {
        let real = |disk: &Arc<dyn Disk>| {
            let file = disk.clone().as_any().and_then(|any| any.downcast::<File>().ok());
            file.expect("a file of this storage")
        };
        open_queue(api, QueueOptions::new(depth, buffer_bytes, files.iter().map(real).collect()))
    }
}

fn failed(path: &Path, call: &'static str, error: &std::io::Error) -> IoError {
    IoError::from_errno(path, call, 0, error.raw_os_error().unwrap_or(libc::EIO))
}

/// With metadata: sizes and extents have to survive too.
fn sync(file: &File) -> Result<(), IoError> {
    rustix::fs::fsync(file.as_fd())
        .map_err(|e| IoError::from_errno(file.path(), "fsync", 0, e.raw_os_error()))
}

/// Makes the name of `path` durable.
fn sync_directory_of(path: &Path) -> Result<(), IoError> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or_else(|| Path::new("."));
    let file = std::fs::File::open(directory).map_err(|e| failed(directory, "open", &e))?;
    match file.sync_all() {
        // What some network and FUSE file systems say: there is nothing to sync there.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
        result => result.map_err(|e| failed(directory, "fsync", &e)),
    }
}

/// A second handle to what its owner has open; a device without the claim that the owner holds already.
fn open_beside_owner(path: &Path) -> Result<File, IoError> {
    let access = Access { read: true, write: true, direct: false, dsync: false };
    File::open_unclaimed(path, access)
}

/// Waits a little for a device that is claimed: when an io_uring queue ends on another thread than it worked on, or with its
/// process, a kernel worker lets its files go some time later.
fn open_when_free(path: &Path, access: Access) -> Result<File, IoError> {
    for _ in 0..FREE_NAPS {
        match File::open(path, access) {
            Err(IoError::Busy { .. }) => clock::sleep(FREE_NAP),
            result => return result,
        }
    }
    File::open(path, access)
}

/// Blank, large enough, zeroed, and then ours.
fn take_device(path: &Path, bytes: u64, access: Access) -> Result<Arc<dyn Disk>, IoError> {
    // Claimed first, so that nobody mounts it while it is looked at and zeroed.
    let file = open_when_free(path, access)?;
    let plain = open_beside_owner(path)?;
    if plain.size()? < bytes {
        return Err(IoError::from_errno(path, "create", 0, libc::ENOSPC));
    }
    let head_bytes = HEAD_BYTES.min(plain.size()?);
    let mut head = Buffer::new(head_bytes as usize)?;
    let outcome = plain.read_at(&mut head, 0);
    plain.check("pread", 0, head_bytes as u32, outcome)?;
    if let Some(offset) = head.iter().position(|byte| *byte != 0) {
        return Err(IoError::NotBlank { path: path.to_path_buf(), offset: offset as u64 });
    }
    write_zeroes(&plain, 0, bytes, WRITERS).and_then(|()| sync(&plain))?;
    Ok(Arc::new(file))
}

/// Zeroes in `from..to`, by so many writers at once; not durable yet.
fn write_zeroes(file: &File, from: u64, to: u64, writers: u64) -> Result<(), IoError> {
    let zeroes = Buffer::new(CHUNK_BYTES.min(to.saturating_sub(from)).max(1) as usize)?;
    let next = AtomicU64::new(from);
    let write = || -> Result<(), IoError> {
        loop {
            let offset = next.fetch_add(CHUNK_BYTES, Ordering::Relaxed);
            if offset >= to {
                return Ok(());
            }
            let length = CHUNK_BYTES.min(to - offset);
            let outcome = file.write_at(&zeroes[..length as usize], offset);
            file.check("pwrite", offset, length as u32, outcome)?;
        }
    };
    let chunks = to.saturating_sub(from).div_ceil(CHUNK_BYTES);
    std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..writers.min(chunks)).map(|_| scope.spawn(write)).collect();
        let own = write();
        // The first error of any; a helper that panicked has found a bug.
        helpers.into_iter().map(|h| h.join().expect("no panic")).fold(own, Result::and)
    })
}
