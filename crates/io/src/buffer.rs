//! Memory that direct I/O accepts.

use crate::error::{IoError, last_errno};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

const PAGE: usize = 4096;
const HUGE_PAGE: usize = 2 << 20;

/// Page-aligned memory of its own mapping: what `O_DIRECT` needs and what io_uring registers. Zeroed and resident when
/// made, so that the first transfer pays no page fault. One of [`Buffer::many`] shares its mapping with the others.
pub struct Buffer {
    start: NonNull<u8>,
    bytes: usize,
    mapped_bytes: usize,
    /// The mapping that this is a piece of; none when it is a mapping itself.
    _whole: Option<Arc<Buffer>>,
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
        Ok(Self { start, bytes, mapped_bytes, _whole: None })
    }

    /// `count` buffers of `bytes` zeroes side by side in one mapping, so that a large cache has huge pages and does not
    /// meet the kernel's limit on mappings. Each is aligned to the largest power of two that divides `bytes`, at most
    /// a page. The mapping ends with the last of them.
    ///
    /// # Errors
    /// [`IoError::NoMemory`].
    ///
    /// # Panics
    /// When `bytes` is 0 or no multiple of 512: no device reads into such memory.
    pub fn many(count: usize, bytes: usize) -> Result<Vec<Self>, IoError> {
        assert!(bytes > 0 && bytes.is_multiple_of(512), "{bytes} bytes are no sectors");
        let total =
            count.checked_mul(bytes).ok_or(IoError::NoMemory { bytes: usize::MAX, errno: libc::ENOMEM })?;
        let whole = Arc::new(Self::new(total)?);
        let piece = |index: usize| {
            // SAFETY: index < count, so the piece lies inside the mapping of count × bytes.
            let start = unsafe { whole.start.add(index * bytes) };
            // Nobody reaches the memory through the whole, and pieces do not overlap: each owns its own bytes.
            Self { start, bytes, mapped_bytes: 0, _whole: Some(whole.clone()) }
        };
        Ok((0..count).map(piece).collect())
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
    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: `bytes` of initialised memory, borrowed as `self` is.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl DerefMut for Buffer {
    #[inline]
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
    fn many_do_not_overlap_and_outlive_each_other() {
        let mut many = Buffer::many(5, 2048).unwrap();
        for (index, buffer) in many.iter_mut().enumerate() {
            assert!(buffer.len() == 2048 && buffer.iter().all(|&b| b == 0));
            assert_eq!(buffer.as_ptr() as usize % 2048, 0);
            buffer.fill(index as u8 + 1);
        }
        let last = many.pop().unwrap();
        drop(many);
        assert!(last.iter().all(|&b| b == 5));
        assert!(Buffer::many(0, 4096).unwrap().is_empty());
        assert!(matches!(Buffer::many(usize::MAX / 2, 4096), Err(IoError::NoMemory { .. })));
    }

    #[test]
    fn too_much_is_an_error() {
        assert!(matches!(Buffer::new(1 << 50), Err(IoError::NoMemory { errno: libc::ENOMEM, .. })));
    }
}
