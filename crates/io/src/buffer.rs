//! Memory that direct I/O accepts.

use crate::error::{IoError, last_errno};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

const PAGE: usize = 4096;
const HUGE_PAGE: usize = 2 << 20;

/// Page-aligned memory of its own mapping: what `O_DIRECT` needs and what io_uring registers. Zeroed and resident when
/// made, so that the first transfer pays no page fault.
pub struct Buffer {
    start: NonNull<u8>,
    bytes: usize,
    mapped_bytes: usize,
}

// SAFETY: the mapping belongs to this value alone and is reached only through `&self` or `&mut self`.
unsafe impl Send for Buffer {}
// SAFETY: as above; shared references only read.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// `bytes` of zeroes, aligned to a page; from 1 MiB on to a huge page, and in huge pages where the system has them.
    ///
    /// # Errors
    /// [`IoError::NoMemory`].
    pub fn new(bytes: usize) -> Result<Self, IoError> {
        let huge = bytes >= HUGE_PAGE / 16;
        let unit = if huge { HUGE_PAGE } else { PAGE };
        let mapped_bytes = bytes.max(1).next_multiple_of(unit);
        let start = if huge { map_huge(mapped_bytes) } else { map(mapped_bytes, libc::MAP_POPULATE) }
            .map_err(|errno| IoError::NoMemory { bytes, errno })?;
        // A child must not share pages that the device is writing to: after a fork the copy-on-write could hand the
        // device's data to the wrong process.
        // SAFETY: the range was mapped above and belongs to us.
        unsafe { libc::madvise(start.as_ptr().cast(), mapped_bytes, libc::MADV_DONTFORK) };
        Ok(Self { start, bytes, mapped_bytes })
    }

    /// Leaves the mapping to the process for good; the value stays usable.
    pub(crate) fn leak(&mut self) {
        self.mapped_bytes = 0;
    }

    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

fn map(bytes: usize, extra: libc::c_int) -> Result<NonNull<u8>, i32> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | extra;
    // SAFETY: an anonymous mapping at an address of the kernel's choice touches no existing memory.
    let start =
        unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(last_errno());
    }
    NonNull::new(start.cast()).ok_or(libc::ENOMEM)
}

/// Maps one huge page more than asked for, gives the unaligned ends back, and asks for huge pages before touching it.
fn map_huge(bytes: usize) -> Result<NonNull<u8>, i32> {
    let whole = map(bytes + HUGE_PAGE, 0)?;
    let lead = whole.as_ptr().align_offset(HUGE_PAGE);
    let tail = HUGE_PAGE - lead;
    // SAFETY: all ranges lie inside the mapping made above: lead + bytes + tail is its length.
    unsafe {
        let start = whole.as_ptr().add(lead);
        if lead > 0 {
            libc::munmap(whole.as_ptr().cast(), lead);
        }
        if tail > 0 {
            libc::munmap(start.add(bytes).cast(), tail);
        }
        libc::madvise(start.cast(), bytes, libc::MADV_HUGEPAGE);
        for page in (0..bytes).step_by(PAGE) {
            start.add(page).write_volatile(0);
        }
        NonNull::new(start).ok_or(libc::ENOMEM)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.mapped_bytes == 0 {
            return;
        }
        // SAFETY: the mapping was made by `new`, and no reference outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.mapped_bytes) };
    }
}

impl Deref for Buffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: `bytes` of initialised memory, borrowed as `self` is.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_zeroed_aligned_and_as_long_as_asked() {
        for (bytes, alignment) in
            [(1, PAGE), (8192, PAGE), (PAGE + 1, PAGE), (HUGE_PAGE, HUGE_PAGE), (3 << 20, HUGE_PAGE)]
        {
            let mut buffer = Buffer::new(bytes).unwrap();
            assert_eq!(buffer.len(), bytes);
            assert_eq!(buffer.as_ptr() as usize % alignment, 0, "{bytes}");
            assert!(buffer.iter().all(|&b| b == 0));
            buffer[bytes - 1] = 7;
            assert_eq!(buffer[bytes - 1], 7);
        }
    }

    #[test]
    fn too_much_is_an_error() {
        assert!(matches!(Buffer::new(1 << 50), Err(IoError::NoMemory { errno: libc::ENOMEM, .. })));
    }
}
