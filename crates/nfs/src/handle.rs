//! The name by which a server knows a file.

use crate::xdr::{Malformed, Reader, Writer};
use std::fmt;

/// Longest handle, bytes: `NFS4_FHSIZE`; NFSv3 has 64.
const HANDLE_BYTES_MAX: usize = 128;

/// A file handle: opaque to everybody but the server that gave it. Kept inline, so that it is copied without an allocation.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle {
    bytes: [u8; HANDLE_BYTES_MAX],
    length: u8,
}

impl Handle {
    /// From its bytes; `None` above 128.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut handle = Self { bytes: [0; HANDLE_BYTES_MAX], length: u8::try_from(bytes.len()).ok()? };
        handle.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(handle)
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Takes one of at most `max` bytes, 64 or 128, from a message. RFC 1813, 2.3.3; RFC 8881, 4.2.
    pub(crate) fn decode(reader: &mut Reader<'_>, max: usize) -> Result<Self, Malformed> {
        let bytes = reader.opaque("a file handle", max.min(HANDLE_BYTES_MAX))?;
        Self::new(bytes).ok_or(Malformed::Unknown { what: "the file handle", seen: 0 })
    }

    /// Appends it to a message.
    pub fn encode(&self, writer: &mut Writer) {
        writer.opaque(self.bytes());
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
