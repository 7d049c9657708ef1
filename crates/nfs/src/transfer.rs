//! Reads, writes and commits: the calls that come by the hundred thousand, encoded once and patched for each request.
//!
//! ```text
//! | record's mark | xid | head, credential | [sequence id, slot] | handle, state | offset | length(s) | …payload, sent from the caller's memory |
//! ```

use crate::rpc::call::XID_AT;
use crate::rpc::record;
use crate::xdr::{Malformed, Reader, Writer};

/// How far a written block has to be when the server says yes. RFC 1813, 3.3.7; RFC 8881, 18.32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stability {
    /// In the server's memory: [`Verifier`] tells at the next commit whether it still was.
    Unstable = 0,
    /// Data on stable storage, and what is needed to find it.
    Data = 1,
    /// Data and all metadata on stable storage.
    File = 2,
}

impl Stability {
    pub(crate) const fn from_wire(number: u32) -> Option<Self> {
        match number {
            0 => Some(Self::Unstable),
            1 => Some(Self::Data),
            2 => Some(Self::File),
            _ => None,
        }
    }
}

/// Changes whenever the server may have lost what was written and not committed: it was restarted. RFC 1813, 3.3.7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Verifier(pub [u8; 8]);

/// What a READ gave: what stands before the payload in the received message, which may have been received elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct ReadResult<'m> {
    /// Length of the payload.
    pub bytes: u32,
    /// Whether the file ends behind it.
    pub end_of_file: bool,
    pub(crate) behind: Reader<'m>,
}

impl<'m> ReadResult<'m> {
    /// The payload where it lies in the received message.
    ///
    /// # Errors
    /// [`Malformed::Short`].
    pub fn data(mut self) -> Result<&'m [u8], Malformed> {
        self.behind.padded(self.bytes as usize)
    }
}

/// What a WRITE gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteResult {
    /// Bytes that were written, from the front.
    pub bytes: u32,
    /// How far they are.
    pub stability: Stability,
    /// To compare with that of the commit.
    pub verifier: Verifier,
}

/// The place of a call in a session of v4.1: which slot, and its how-manieth call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotCall {
    /// Slot.
    pub slot: u32,
    /// Its sequence id.
    pub sequence: u32,
}

/// A call that is encoded but for what differs from one request to the next.
#[derive(Clone, Debug, Default)]
pub struct Template {
    encoded: Vec<u8>,
    sequence_at: Option<usize>,
    offset_at: usize,
    length_at: usize,
    payload_length_at: Option<usize>,
}

impl Template {
    /// From a record that is complete in `writer`, but for its mark: where the offset (8 bytes) and the length (4 bytes) lie.
    pub(crate) fn new(writer: &Writer, offset_at: usize, length_at: usize) -> Self {
        Self { encoded: writer.bytes().to_vec(), offset_at, length_at, ..Self::default() }
    }

    /// Where the length of the payload lies: a write.
    pub(crate) fn with_payload(self, at: usize) -> Self {
        Self { payload_length_at: Some(at), ..self }
    }

    /// Where the sequence id lies, the slot behind it.
    pub(crate) fn with_sequence(self, at: usize) -> Self {
        Self { sequence_at: Some(at), ..self }
    }

    /// Appends a call to `writer`: number `xid`, for `bytes` bytes at `offset`. A write's payload, and the zeroes that pad it to
    /// four bytes, are to be sent right behind.
    pub fn append(&self, writer: &mut Writer, xid: u32, place: SlotCall, offset: u64, bytes: u32) {
        let start = writer.len();
        writer.raw(&self.encoded);
        writer.set_u32(start + XID_AT, xid);
        if let Some(at) = self.sequence_at {
            writer.set_u32(start + at, place.sequence);
            writer.set_u32(start + at + 4, place.slot);
        }
        writer.set_u64(start + self.offset_at, offset);
        writer.set_u32(start + self.length_at, bytes);
        let mut behind = 0;
        if let Some(at) = self.payload_length_at {
            writer.set_u32(start + at, bytes);
            behind = bytes as usize + padding(bytes);
        }
        record::seal(writer, start, behind);
    }
}

/// Zeroes that pad `bytes` bytes of payload.
pub const fn padding(bytes: u32) -> usize {
    (bytes.wrapping_neg() & 3) as usize
}
