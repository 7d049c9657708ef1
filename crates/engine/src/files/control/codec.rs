//! Numbers, texts and lists as bytes, and back without trusting them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

#[derive(Default)]
pub(super) struct Writer {
    pub(super) bytes: Vec<u8>,
}

impl Writer {
    pub(super) fn u8(&mut self, n: u8) {
        self.bytes.push(n);
    }
    pub(super) fn u16(&mut self, n: u16) {
        self.bytes.extend_from_slice(&n.to_le_bytes());
    }
    pub(super) fn u32(&mut self, n: u32) {
        self.bytes.extend_from_slice(&n.to_le_bytes());
    }
    pub(super) fn u64(&mut self, n: u64) {
        self.bytes.extend_from_slice(&n.to_le_bytes());
    }

    /// # Panics
    /// Beyond 64 KiB: names and paths are far shorter (`PATH_MAX` is 4096).
    fn short(&mut self, bytes: &[u8]) {
        self.u16(u16::try_from(bytes.len()).expect("a name or path below 64 KiB"));
        self.bytes.extend_from_slice(bytes);
    }
    pub(super) fn text(&mut self, text: &str) {
        self.short(text.as_bytes());
    }
    pub(super) fn path(&mut self, path: &Path) {
        self.short(path.as_os_str().as_bytes());
    }

    pub(super) fn list<T>(&mut self, items: &[T], each: impl Fn(&mut Self, &T)) {
        self.u32(items.len() as u32);
        items.iter().for_each(|item| each(self, item));
    }
}

/// Every read is `None` at the end of the bytes.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }
    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }
    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }
    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }
    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn short(&mut self) -> Option<&'a [u8]> {
        let length = self.u16()?;
        self.take(length.into())
    }
    pub(super) fn text(&mut self) -> Option<String> {
        String::from_utf8(self.short()?.to_vec()).ok()
    }
    pub(super) fn path(&mut self) -> Option<PathBuf> {
        Some(OsStr::from_bytes(self.short()?).into())
    }

    pub(super) fn list<T>(&mut self, mut each: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.u32()?;
        (0..count).map(|_| each(self)).collect()
    }
}
