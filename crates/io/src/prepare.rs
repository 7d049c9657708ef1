//! Files that really have their data on the device: allocated, written in every block, proven.

use crate::buffer::Buffer;
use crate::error::IoError;
use crate::file::File;
use crate::stamp::{Stamp, Stamper};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use units::{Nanos, Seed, clock};

/// Bytes of one write.
const CHUNK_BYTES: u64 = 1 << 20;
/// Writers at once: enough to keep a disk busy, few enough not to collapse a slow one.
const WRITERS: u64 = 4;
/// How often `progress` is called.
const TICK: Nanos = Nanos::millis(50);

/// Makes the first `bytes` of `file` real: reserves the space where the file system can, writes every block of
/// `block_bytes` with its stamp (`file_id`, its offset, generation 0), syncs, and checks that no hole and no unwritten
/// extent is left. What the file holds beyond `bytes` stays. `progress(done, total)` is called from this thread about
/// 20 times a second and stops the work by returning `false`.
///
/// Open the file without `dsync`: one sync at the end does it. A last block that does not fit `bytes` is not written:
/// `bytes` is rounded down to whole blocks.
///
/// # Errors
/// [`IoError::NoSpace`] before anything is written, where the file system can reserve; [`IoError::Unwritten`];
/// [`IoError::Stopped`]; or what a write or the sync met.
///
/// # Panics
/// When `block_bytes` cannot hold a stamp or is not a multiple of 8.
pub fn write_stamped(
    file: &File,
    bytes: u64,
    block_bytes: u32,
    file_id: u64,
    seed: Seed,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<(), IoError> {
    let bytes = bytes - bytes % u64::from(block_bytes);
    reserve(file, FallocateFlags::empty(), 0, bytes)?;
    write_blocks(file, bytes, block_bytes, file_id, seed, progress)?;
    file.fdatasync()?;
    check_written(file, bytes)?;
    progress(bytes, bytes);
    Ok(())
}

/// Reserves `bytes` from `offset` on; `flags` say whether the size follows.
///
/// # Errors
/// [`IoError::NoSpace`] and the like; a file system that cannot reserve is not an error.
pub(crate) fn reserve(file: &File, flags: FallocateFlags, offset: u64, bytes: u64) -> Result<(), IoError> {
    if file.is_block_device() || bytes == 0 {
        return Ok(());
    }
    loop {
        match rustix::fs::fallocate(file.as_fd(), flags, offset, bytes) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => {
                return Err(IoError::from_errno(file.path(), "fallocate", offset, errno.raw_os_error()));
            }
        }
    }
}

/// What the writers share.
struct Work<'a> {
    file: &'a File,
    bytes: u64,
    block_bytes: u32,
    file_id: u64,
    stamper: Stamper,
    next: AtomicU64,
    done: AtomicU64,
    stop: AtomicBool,
    failure: Mutex<Option<IoError>>,
}

fn write_blocks(
    file: &File,
    bytes: u64,
    block_bytes: u32,
    file_id: u64,
    seed: Seed,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<(), IoError> {
    let work = Work {
        file,
        bytes,
        block_bytes,
        file_id,
        stamper: Stamper::new(seed),
        next: AtomicU64::new(0),
        done: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        failure: Mutex::new(None),
    };
    let mut stopped = false;
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS).map(|_| scope.spawn(|| work.write_chunks())).collect();
        while writers.iter().any(|writer| !writer.is_finished()) {
            clock::sleep(TICK);
            if !progress(work.done.load(Ordering::Relaxed), bytes) {
                stopped = true;
                work.stop.store(true, Ordering::Relaxed);
            }
        }
    });
    let done = work.done.into_inner();
    match work.failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        Some(error) => Err(error),
        None if stopped && done < bytes => Err(IoError::Stopped { path: file.path().to_path_buf(), done }),
        None => Ok(()),
    }
}

impl Work<'_> {
    fn write_chunks(&self) {
        if let Err(error) = self.try_write_chunks() {
            self.stop.store(true, Ordering::Relaxed);
            self.failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(error);
        }
    }

    fn try_write_chunks(&self) -> Result<(), IoError> {
        let block_bytes = u64::from(self.block_bytes);
        let chunk_bytes = CHUNK_BYTES.next_multiple_of(block_bytes);
        let mut buffer = Buffer::new(chunk_bytes as usize)?;
        while !self.stop.load(Ordering::Relaxed) {
            let offset = self.next.fetch_add(chunk_bytes, Ordering::Relaxed);
            if offset >= self.bytes {
                return Ok(());
            }
            let length = chunk_bytes.min(self.bytes - offset);
            let chunk = &mut buffer[..length as usize];
            for (index, block) in chunk.chunks_mut(self.block_bytes as usize).enumerate() {
                let offset = offset + index as u64 * block_bytes;
                self.stamper.fill(block, Stamp { file_id: self.file_id, offset, generation: 0 });
            }
            let outcome = self.file.write_at(chunk, offset);
            self.file.check("pwrite", offset, length as u32, outcome)?;
            self.done.fetch_add(length, Ordering::Relaxed);
        }
        Ok(())
    }
}

fn check_written(file: &File, bytes: u64) -> Result<(), IoError> {
    // Beyond `bytes` the file may hold whatever it did before.
    let missing = file.extents_of_first(bytes)?.not_on_device();
    if missing > 0 {
        return Err(IoError::Unwritten { path: file.path().to_path_buf(), bytes: missing });
    }
    Ok(())
}

/// Bytes that this user can still write below `path` (a file or directory).
///
/// # Errors
/// What `statvfs` returned.
pub fn free_space(path: &Path) -> Result<u64, IoError> {
    let facts =
        rustix::fs::statvfs(path).map_err(|e| IoError::from_errno(path, "statvfs", 0, e.raw_os_error()))?;
    Ok(facts.f_bavail.saturating_mul(facts.f_frsize))
}

/// Name of the file system that holds `path`, by the magic number of `statfs`; `unknown (0x…)` when it is none of the
/// known. ext2, ext3 and ext4 share a number and are all called `ext4`; every FUSE file system is `fuse`.
///
/// # Errors
/// What `statfs` returned.
pub fn file_system(path: &Path) -> Result<String, IoError> {
    let facts =
        rustix::fs::statfs(path).map_err(|e| IoError::from_errno(path, "statfs", 0, e.raw_os_error()))?;
    let magic = facts.f_type as u32;
    let name = FILE_SYSTEMS.iter().find(|(number, _)| *number == magic).map(|(_, name)| *name);
    Ok(name.map_or_else(|| format!("unknown (0x{magic:x})"), str::to_owned))
}

/// linux/magic.h, and for those outside the kernel tree the projects' own headers.
const FILE_SYSTEMS: [(u32, &str); 22] = [
    (0xef53, "ext4"),
    (0x5846_5342, "xfs"),
    (0x9123_683e, "btrfs"),
    (0x2fc1_2fc1, "zfs"),
    (0xf2f5_2010, "f2fs"),
    (0xca45_1a4e, "bcachefs"),
    (0x3153_464a, "jfs"),
    (0x5265_4973, "reiserfs"),
    (0x0102_1994, "tmpfs"),
    (0x8584_58f6, "ramfs"),
    (0x794c_7630, "overlayfs"),
    (0x6969, "nfs"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb2"),
    (0x6573_5546, "fuse"),
    (0x0bd0_0bd0, "lustre"),
    (0x00c3_6400, "ceph"),
    (0x4750_4653, "gpfs"),
    (0x7461_636f, "ocfs2"),
    (0x0116_1970, "gfs2"),
    (0x4d44, "vfat"),
    (0x2011_bab0, "exfat"),
];

#[cfg(test)]
mod tests;
