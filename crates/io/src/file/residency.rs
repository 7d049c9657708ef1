//! The page cache: what of a file is in it, how to empty it, what to tell it.

use super::File;
use crate::error::{IoError, last_errno};
use rustix::fd::AsRawFd;
use rustix::fs::Advice;
use std::ops::Range;

/// How much of a range is in the page cache, in pages of the system's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residency {
    /// Pages of the range.
    pub pages: u64,
    /// Of these, in the page cache.
    pub resident: u64,
}

impl Residency {
    /// `resident / pages`; 0 for an empty range.
    pub fn share(&self) -> f64 {
        if self.pages == 0 { 0.0 } else { self.resident as f64 / self.pages as f64 }
    }
}

/// `cachestat(2)`, the same number on every architecture (Linux 6.5).
const SYS_CACHESTAT: libc::c_long = 451;

/// Pages asked about by one `mincore` call: 1 GiB of 4 KiB pages.
const MINCORE_PAGES: u64 = 1 << 18;

impl File {
    /// Residency of the whole file, by `cachestat`, else `mincore`.
    ///
    /// # Errors
    /// What the call returned. `mincore` needs write permission or ownership of the file.
    pub fn residency(&self) -> Result<Residency, IoError> {
        let size = self.size()?;
        self.residency_of(0..size)
    }

    /// Residency of a range of bytes.
    ///
    /// # Errors
    /// As [`File::residency`].
    pub fn residency_of(&self, range: Range<u64>) -> Result<Residency, IoError> {
        let page = page_size();
        let pages = if range.is_empty() { 0 } else { range.end.div_ceil(page) - range.start / page };
        if pages == 0 {
            return Ok(Residency { pages, resident: 0 });
        }
        let resident = match self.cachestat(&range) {
            Err(libc::ENOSYS | libc::EOPNOTSUPP | libc::EPERM | libc::EACCES) => self.mincore(&range, page),
            result => {
                result.map_err(|errno| IoError::from_errno(self.path(), "cachestat", range.start, errno))
            }
        }?;
        Ok(Residency { pages, resident: resident.min(pages) })
    }

    fn cachestat(&self, range: &Range<u64>) -> Result<u64, i32> {
        let asked = [range.start, range.end - range.start];
        let mut counts = [0u64; 5]; // cached, dirty, writeback, evicted, recently evicted
        // SAFETY: both arrays have the kernel's layout (struct cachestat_range, struct cachestat) and outlive the call.
        let result = unsafe {
            libc::syscall(SYS_CACHESTAT, self.as_fd().as_raw_fd(), asked.as_ptr(), counts.as_mut_ptr(), 0)
        };
        if result == 0 { Ok(counts[0]) } else { Err(last_errno()) }
    }

    pub(super) fn mincore(&self, range: &Range<u64>, page: u64) -> Result<u64, IoError> {
        let failed = |call, offset| IoError::from_errno(self.path(), call, offset, last_errno());
        let mut resident = 0;
        let mut at = range.start / page * page;
        let mut marks = vec![0u8; MINCORE_PAGES as usize];
        while at < range.end {
            let bytes = (range.end - at).min(MINCORE_PAGES * page) as usize;
            // SAFETY: a fresh read-only mapping that is never dereferenced.
            let start = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    bytes,
                    libc::PROT_READ,
                    libc::MAP_SHARED,
                    self.as_fd().as_raw_fd(),
                    at as libc::off_t,
                )
            };
            if start == libc::MAP_FAILED {
                return Err(failed("mmap", at));
            }
            // SAFETY: `start` is the mapping made above, `marks` has a byte for each of its pages.
            let result = unsafe { libc::mincore(start, bytes, marks.as_mut_ptr()) };
            let error = (result != 0).then(|| failed("mincore", at));
            // SAFETY: made above, not referenced any more.
            unsafe { libc::munmap(start, bytes) };
            if let Some(error) = error {
                return Err(error);
            }
            let pages = bytes.div_ceil(page as usize);
            resident += marks[..pages].iter().filter(|&&mark| mark & 1 != 0).count() as u64;
            at += bytes as u64;
        }
        Ok(resident)
    }

    /// Writes dirty pages out and drops this file's clean pages from the page cache. Pages that others have mapped or
    /// locked may stay: [`File::residency`] says what did.
    ///
    /// # Errors
    /// As [`File::fdatasync`], or what `posix_fadvise` returned.
    pub fn drop_cache(&self) -> Result<(), IoError> {
        self.fdatasync()?;
        self.advise(Advice::DontNeed)
    }

    /// Tells the kernel that reads will be random: no read-ahead.
    ///
    /// # Errors
    /// What `posix_fadvise` returned.
    pub fn advise_random(&self) -> Result<(), IoError> {
        self.advise(Advice::Random)
    }

    /// Tells the kernel that reads will be sequential: more read-ahead.
    ///
    /// # Errors
    /// What `posix_fadvise` returned.
    pub fn advise_sequential(&self) -> Result<(), IoError> {
        self.advise(Advice::Sequential)
    }

    fn advise(&self, advice: Advice) -> Result<(), IoError> {
        rustix::fs::fadvise(&self.fd, 0, None, advice).map_err(|e| self.error("posix_fadvise", e))
    }
}

fn page_size() -> u64 {
    // SAFETY: reads a constant of the system.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}
