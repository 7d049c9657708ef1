//! What backs a file: written extents, or something whose reads never reach the device.

use super::File;
use crate::error::{IoError, last_errno};
use rustix::fd::AsRawFd;

/// How the bytes of a file are backed. Only `mapped_bytes` are read from the device; the rest is answered with zeroes
/// or from memory, and a benchmark that reads it measures nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extents {
    /// Bytes looked at: the size of the file, or the part that was asked about.
    pub total_bytes: u64,
    /// Written, at a place on the device.
    pub mapped_bytes: u64,
    /// Allocated, never written.
    pub unwritten_bytes: u64,
    /// Not allocated.
    pub hole_bytes: u64,
    /// Waiting in memory for a place (delayed allocation).
    pub delayed_bytes: u64,
    /// Kept in the inode.
    pub inline_bytes: u64,
    /// Number of extents.
    pub count: u64,
}

impl Extents {
    /// Bytes whose reads would not reach the device.
    pub fn not_on_device(&self) -> u64 {
        self.unwritten_bytes + self.hole_bytes + self.delayed_bytes + self.inline_bytes
    }
}

const FS_IOC_FIEMAP: u64 = 0xC020_660B;
const EXTENT_LAST: u32 = 0x1;
const EXTENT_DELALLOC: u32 = 0x4;
const EXTENT_INLINE: u32 = 0x200;
const EXTENT_UNWRITTEN: u32 = 0x800;
const BATCH: usize = 64;

/// `struct fiemap_extent` of linux/fiemap.h.
#[repr(C)]
#[derive(Clone, Copy)]
struct FiemapExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// `struct fiemap` of linux/fiemap.h with room for a batch of extents.
#[repr(C)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [FiemapExtent; BATCH],
}

const _: () = assert!(size_of::<FiemapExtent>() == 56 && std::mem::offset_of!(Fiemap, extents) == 32);

impl File {
    /// How this file is backed, by FIEMAP; by `SEEK_DATA`/`SEEK_HOLE` where the file system has none (then unwritten
    /// extents cannot be told from holes); a block device is mapped everywhere. Sync first: data still in the page cache
    /// is reported as delayed or unwritten.
    ///
    /// # Errors
    /// What `ioctl` or `lseek` returned.
    pub fn extents(&self) -> Result<Extents, IoError> {
        self.extents_of_first(self.size()?)
    }

    /// As [`File::extents`], of the first `total_bytes` alone; what lies beyond the end counts as a hole.
    ///
    /// # Errors
    /// As [`File::extents`].
    pub fn extents_of_first(&self, total_bytes: u64) -> Result<Extents, IoError> {
        if self.is_block_device() {
            return Ok(Extents { total_bytes, mapped_bytes: total_bytes, count: 1, ..Extents::default() });
        }
        match self.extents_by_fiemap(total_bytes) {
            Err(IoError::Os { errno: libc::EOPNOTSUPP | libc::ENOTTY | libc::EINVAL, .. }) => {
                self.extents_by_seeking(total_bytes)
            }
            result => result,
        }
    }

    fn extents_by_fiemap(&self, total_bytes: u64) -> Result<Extents, IoError> {
        let mut found = Extents { total_bytes, ..Extents::default() };
        let mut covered = 0;
        let mut start = 0;
        while start < total_bytes {
            let map = self.fiemap(start, total_bytes - start)?;
            let extents = &map.extents[..(map.mapped_extents as usize).min(BATCH)];
            for extent in extents {
                let bytes = extent.length.min(total_bytes.saturating_sub(extent.logical));
                *match extent.flags {
                    f if f & EXTENT_INLINE != 0 => &mut found.inline_bytes,
                    f if f & EXTENT_DELALLOC != 0 => &mut found.delayed_bytes,
                    f if f & EXTENT_UNWRITTEN != 0 => &mut found.unwritten_bytes,
                    _ => &mut found.mapped_bytes,
                } += bytes;
                covered += bytes;
                found.count += 1;
                start = extent.logical + extent.length;
            }
            if extents.last().is_none_or(|extent| extent.flags & EXTENT_LAST != 0) {
                break;
            }
        }
        found.hole_bytes = total_bytes.saturating_sub(covered);
        Ok(found)
    }

    fn fiemap(&self, start: u64, length: u64) -> Result<Box<Fiemap>, IoError> {
        const NOTHING: FiemapExtent = FiemapExtent {
            logical: 0,
            physical: 0,
            length: 0,
            reserved64: [0; 2],
            flags: 0,
            reserved: [0; 3],
        };
        let mut map = Box::new(Fiemap {
            start,
            length,
            flags: 0,
            mapped_extents: 0,
            extent_count: BATCH as u32,
            reserved: 0,
            extents: [NOTHING; BATCH],
        });
        // SAFETY: the layout is the kernel's (asserted above), with room for `extent_count` extents, and `map` outlives
        // the call.
        let result = unsafe { libc::ioctl(self.as_fd().as_raw_fd(), FS_IOC_FIEMAP as _, &raw mut *map) };
        if result != 0 {
            return Err(IoError::from_errno(self.path(), "FIEMAP", start, last_errno()));
        }
        Ok(map)
    }

    fn extents_by_seeking(&self, total_bytes: u64) -> Result<Extents, IoError> {
        use rustix::fs::SeekFrom;
        use rustix::io::Errno;
        let mut found = Extents { total_bytes, ..Extents::default() };
        let mut at = 0;
        while at < total_bytes {
            let data = match rustix::fs::seek(&self.fd, SeekFrom::Data(at)) {
                Ok(data) => data,
                Err(Errno::NXIO) => break,
                Err(errno) => return Err(self.error("lseek SEEK_DATA", errno)),
            };
            if data >= total_bytes {
                break;
            }
            let hole = rustix::fs::seek(&self.fd, SeekFrom::Hole(data))
                .map_err(|e| self.error("lseek SEEK_HOLE", e))?;
            found.mapped_bytes += hole.min(total_bytes) - data;
            found.count += 1;
            at = hole;
        }
        found.hole_bytes = total_bytes - found.mapped_bytes;
        Ok(found)
    }
}
