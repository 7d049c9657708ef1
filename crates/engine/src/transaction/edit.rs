//! What page layouts are edited through: a page of a change, or plain bytes in a test. So the layouts know neither latches
//! nor redo.

use crate::change::{Change, Handle};
use std::ops::Range;

/// A page that can be edited. Edits cannot fail.
pub(crate) trait Edit {
    /// The page as it is now, edits so far included.
    fn bytes(&self) -> &[u8];
    /// `bytes[at..][..data.len()] = data`.
    fn write(&mut self, at: usize, data: &[u8]);
    /// `memmove` inside the page.
    fn copy_within(&mut self, from: Range<usize>, to: usize);
}

/// A page latched by a change.
pub(crate) struct Latched<'c, 'a> {
    change: &'c mut Change<'a>,
    page: Handle,
}

impl<'c, 'a> Latched<'c, 'a> {
    pub fn new(change: &'c mut Change<'a>, page: Handle) -> Self {
        Self { change, page }
    }
}

impl Edit for Latched<'_, '_> {
    #[inline]
    fn bytes(&self) -> &[u8] {
        self.change.bytes(self.page)
    }

    #[inline]
    fn write(&mut self, at: usize, data: &[u8]) {
        self.change.write(self.page, at, data);
    }

    #[inline]
    fn copy_within(&mut self, from: Range<usize>, to: usize) {
        self.change.copy_within(self.page, from, to);
    }
}

/// Plain bytes, for tests of layouts.
#[cfg(test)]
pub(crate) struct Plain(pub Vec<u8>);

#[cfg(test)]
impl Edit for Plain {
    fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn write(&mut self, at: usize, data: &[u8]) {
        assert!(at >= 24, "the header is nobody's to edit");
        self.0[at..at + data.len()].copy_from_slice(data);
    }

    fn copy_within(&mut self, from: Range<usize>, to: usize) {
        self.0.copy_within(from, to);
    }
}
