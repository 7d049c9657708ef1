//! Redo records: byte edits of pages, written by a change, read by recovery. Recovery knows no row and no key.
//!
//! ```text
//! record   byte 0       4       6       8
//!               length  parts   0       parts, one after the other
//!               u32     u16     u16
//!
//! part     byte 0     2      6     7     8       12      16
//!               file  block  form  kind  object  length  body
//!               u16   u32    u8    u8    u32     u32     `length` bytes
//!
//! form 0   edits: the page is read, then edited
//!      1   image: the page is this; read nothing
//!      2   format: an empty page of `kind` and `object`, then edited; read nothing
//!
//! edit     byte 0   1     3       5
//!   write       1   at    length  `length` bytes
//!   copy        2   from  length  to u16
//!   fill        3   at    length  byte u8
//!               u8  u16   u16
//!
//! image    byte 0        2            4
//!               hole at  hole length  bytes 4 to the end of the page without the hole, which is zeroes
//!               u16      u16
//! ```
//! All numbers little-endian; `length` of a record counts its header too. A part is applied only when the page's LSN is
//! below the end of the record, and leaves that end as the page's LSN; so applying a record twice does nothing more.
//!
//! Not here: where records lie in the log (`chunk`), and when they are read (`recovery`).

use crate::page::{self, PageId, PageKind};

/// Bytes before the first part.
pub const RECORD_HEADER: usize = 8;
/// Bytes before the body of a part.
pub const PART_HEADER: usize = 16;
/// First byte of a page that an edit may touch: before it lie address, checksum and LSN, which are nobody's to edit.
pub const EDITABLE_FROM: usize = 24;
/// Bytes that an image has besides the page's own, at most; its first four bytes (the checksum) are left out.
pub const IMAGE_OVERHEAD: usize = 4;
/// Most bytes that an edit needs besides its data.
pub const EDIT_OVERHEAD: usize = 8;

const WRITE: u8 = 1;
const COPY: u8 = 2;
const FILL: u8 = 3;

/// First byte of an image: the checksum before it is made when the page is written.
const IMAGE_FROM: usize = 4;

/// How a part says what the page becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Form {
    /// Edits of what is there.
    Edits = 0,
    /// The whole page.
    Image = 1,
    /// An empty page, then edits.
    Format = 2,
}

/// Bytes that are no redo record although their checksum was right: a bug, or somebody's hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// Collects `page[at..at + data.len()] = data`.
pub fn push_write(edits: &mut Vec<u8>, at: usize, data: &[u8]) {
    push_head(edits, WRITE, at, data.len());
    edits.extend_from_slice(data);
}

/// Collects a `memmove` of `length` bytes inside the page.
pub fn push_copy(edits: &mut Vec<u8>, from: usize, length: usize, to: usize) {
    push_head(edits, COPY, from, length);
    edits.extend_from_slice(&(to as u16).to_le_bytes());
}

/// Collects `page[at..at + length] = byte`.
pub fn push_fill(edits: &mut Vec<u8>, at: usize, length: usize, byte: u8) {
    push_head(edits, FILL, at, length);
    edits.push(byte);
}

fn push_head(edits: &mut Vec<u8>, op: u8, at: usize, length: usize) {
    let (at, length) = ((at as u16).to_le_bytes(), (length as u16).to_le_bytes());
    edits.extend_from_slice(&[op, at[0], at[1], length[0], length[1]]);
}

/// Begins a record in `out`, which must be empty; parts follow, then [`end_record`].
pub fn begin_record(out: &mut Vec<u8>) {
    debug_assert!(out.is_empty());
    out.resize(RECORD_HEADER, 0);
}

/// Adds a part whose body is made of `pieces`, one after the other.
pub fn push_part<'a>(
    out: &mut Vec<u8>,
    id: PageId,
    form: Form,
    kind: u8,
    object: u32,
    pieces: impl Iterator<Item = &'a [u8]>,
) {
    let start = begin_part(out, id, form, kind, object);
    pieces.for_each(|piece| out.extend_from_slice(piece));
    end_part(out, start);
}

/// Adds a part that is the page as it is now, without its longest run of zeroes.
pub fn push_image(out: &mut Vec<u8>, id: PageId, page: &[u8]) {
    let start = begin_part(out, id, Form::Image, page[4], page::object(page));
    let hole = longest_hole(page);
    out.extend_from_slice(&(hole.start as u16).to_le_bytes());
    out.extend_from_slice(&(hole.len() as u16).to_le_bytes());
    out.extend_from_slice(&page[IMAGE_FROM..hole.start]);
    out.extend_from_slice(&page[hole.end..]);
    end_part(out, start);
}

fn begin_part(out: &mut Vec<u8>, id: PageId, form: Form, kind: u8, object: u32) -> usize {
    let start = out.len();
    out.extend_from_slice(&id.file.to_le_bytes());
    out.extend_from_slice(&id.block.to_le_bytes());
    out.extend_from_slice(&[form as u8, kind]);
    out.extend_from_slice(&object.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    let parts = u16::from_le_bytes([out[4], out[5]]) + 1;
    out[4..6].copy_from_slice(&parts.to_le_bytes());
    start
}

fn end_part(out: &mut [u8], start: usize) {
    let length = (out.len() - start - PART_HEADER) as u32;
    out[start + 12..start + PART_HEADER].copy_from_slice(&length.to_le_bytes());
}

/// Ends the record that `out` holds.
pub fn end_record(out: &mut [u8]) {
    let length = out.len() as u32;
    out[..4].copy_from_slice(&length.to_le_bytes());
}

/// The longest run of zero words from byte 32 on; empty at 32 when there is none. Words of 8 bytes are enough: what is
/// lost at its ends is at most 14 bytes.
fn longest_hole(page: &[u8]) -> std::ops::Range<usize> {
    let (mut best, mut start) = (page::HEADER_BYTES..page::HEADER_BYTES, page::HEADER_BYTES);
    let words = page[page::HEADER_BYTES..].chunks_exact(8);
    let mut at = page::HEADER_BYTES;
    for word in words {
        at += 8;
        if word != [0; 8] {
            start = at;
        } else if at - start > best.len() {
            best = start..at;
        }
    }
    best
}

/// A record read back; its parts are not looked at yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    parts: u16,
    /// All of it, header included.
    bytes: &'a [u8],
}

/// What a record says of one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// Which page.
    pub id: PageId,
    /// How.
    pub form: Form,
    /// For [`Form::Format`]: of which kind.
    pub kind: PageKind,
    /// For [`Form::Format`]: of which object.
    pub object: u32,
    body: &'a [u8],
}

/// The first record of `bytes`, and its length.
///
/// # Errors
/// When it is none. Never panics, whatever the bytes are.
pub fn decode(bytes: &[u8]) -> Result<(Record<'_>, usize), Malformed> {
    let header = bytes.get(..RECORD_HEADER).ok_or(Malformed("record header beyond the end"))?;
    let length = page::get_u32(header, 0) as usize;
    if length < RECORD_HEADER || length > bytes.len() {
        return Err(Malformed("record length"));
    }
    if page::get_u16(header, 6) != 0 {
        return Err(Malformed("record header"));
    }
    Ok((Record { parts: page::get_u16(header, 4), bytes: &bytes[..length] }, length))
}

impl<'a> Record<'a> {
    /// Its parts, in order, each with the byte of the record at which it begins; ends after the first error.
    pub fn parts(&self) -> impl Iterator<Item = Result<(usize, Part<'a>), Malformed>> + use<'a> {
        let (bytes, mut at, mut left) = (self.bytes, RECORD_HEADER, self.parts);
        std::iter::from_fn(move || {
            if at == bytes.len() && left == 0 {
                return None;
            }
            let found = match left {
                0 => Err(Malformed("bytes behind the last part")),
                _ => part(&bytes[at..]).map(|part| (at, part)),
            };
            match &found {
                Ok((_, part)) => (at, left) = (at + PART_HEADER + part.body.len(), left - 1),
                Err(_) => (at, left) = (bytes.len(), 0),
            }
            Some(found)
        })
    }
}

/// The part at the beginning of `bytes`.
///
/// # Errors
/// When there is none.
pub fn part(bytes: &[u8]) -> Result<Part<'_>, Malformed> {
    let header = bytes.get(..PART_HEADER).ok_or(Malformed("part header beyond the end"))?;
    let length = page::get_u32(header, 12) as usize;
    let body = bytes[PART_HEADER..].get(..length).ok_or(Malformed("part length"))?;
    let form = match header[6] {
        0 => Form::Edits,
        1 => Form::Image,
        2 => Form::Format,
        _ => return Err(Malformed("part form")),
    };
    let id = PageId { file: page::get_u16(header, 0), block: page::get_u32(header, 2) };
    if !id.is_some() {
        return Err(Malformed("page address"));
    }
    let kind = page::kind(&[0, 0, 0, 0, header[7]]).ok_or(Malformed("page kind"))?;
    Ok(Part { id, form, kind, object: page::get_u32(header, 8), body })
}

impl Part<'_> {
    /// Whether the page's old content does not matter.
    pub fn is_whole(&self) -> bool {
        self.form != Form::Edits
    }

    /// Makes `page` what the part says. LSN and checksum are the caller's.
    ///
    /// # Errors
    /// When the body does not fit the page; the page is then half done and must not be used. Never panics.
    pub fn apply(&self, page: &mut [u8]) -> Result<(), Malformed> {
        match self.form {
            Form::Edits => {}
            Form::Image => return apply_image(self.id, self.body, page),
            Form::Format => page::format(page, self.id, self.kind, self.object),
        }
        let mut rest = self.body;
        while !rest.is_empty() {
            rest = apply_edit(rest, page)?;
        }
        Ok(())
    }
}

fn apply_image(id: PageId, body: &[u8], page: &mut [u8]) -> Result<(), Malformed> {
    let (hole, bytes) = body.split_at_checked(4).ok_or(Malformed("image header"))?;
    let (start, length) = (page::get_u16(hole, 0) as usize, page::get_u16(hole, 2) as usize);
    let end = start + length;
    if start < IMAGE_FROM || end > page.len() || bytes.len() != page.len() - length - IMAGE_FROM {
        return Err(Malformed("image length"));
    }
    let (before, after) = bytes.split_at(start - IMAGE_FROM);
    page[IMAGE_FROM..start].copy_from_slice(before);
    page[start..end].fill(0);
    page[end..].copy_from_slice(after);
    if page::page_id(page) == id { Ok(()) } else { Err(Malformed("image of another page")) }
}

/// Applies the first edit of `edits`; returns those that follow.
fn apply_edit<'a>(edits: &'a [u8], page: &mut [u8]) -> Result<&'a [u8], Malformed> {
    let (head, rest) = edits.split_at_checked(5).ok_or(Malformed("edit beyond the end"))?;
    let (at, length) = (page::get_u16(head, 1) as usize, page::get_u16(head, 3) as usize);
    if at < EDITABLE_FROM || at + length > page.len() {
        return Err(Malformed("edit outside of the page"));
    }
    let extra = match head[0] {
        WRITE => length,
        COPY => 2,
        FILL => 1,
        _ => return Err(Malformed("kind of edit")),
    };
    let (data, rest) = rest.split_at_checked(extra).ok_or(Malformed("edit beyond the end"))?;
    match head[0] {
        WRITE => page[at..at + length].copy_from_slice(data),
        COPY => {
            let to = page::get_u16(data, 0) as usize;
            if to < EDITABLE_FROM || to + length > page.len() {
                return Err(Malformed("copy outside of the page"));
            }
            page.copy_within(at..at + length, to);
        }
        _ => page[at..at + length].fill(data[0]),
    }
    Ok(rest)
}
