//! What several protocols here have in common on the wire: handles, names, and how a call ends early.

use nfs::Status;
use nfs::xdr::{Malformed, Reader, Writer};

/// Longest name, bytes.
pub(crate) const NAME_BYTES_MAX: usize = 255;
/// Longest transfer, bytes.
pub(crate) const TRANSFER_BYTES_MAX: u32 = 1 << 20;
/// Longest message, bytes.
pub(crate) const MESSAGE_BYTES_MAX: usize = TRANSFER_BYTES_MAX as usize + (64 << 10);
/// What is told of the largest file, bytes.
pub(crate) const FILE_BYTES_MAX: u64 = 1 << 50;
const MAGIC: u32 = u32::from_be_bytes(*b"NLAB");

/// Why a call has no result.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stop {
    /// It is refused.
    Status(Status),
    /// It cannot be read.
    Malformed,
}

impl From<Status> for Stop {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl From<Malformed> for Stop {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

/// What a handle names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) id: u64,
    /// The layout that gave it, 0 for none: it ends with the layout, and a node may insist on keeping its data itself.
    pub(crate) grant: u64,
}

impl Place {
    pub(crate) fn encode(self, w: &mut Writer) {
        let mut inner = Writer::new();
        inner.u32(MAGIC);
        inner.u64(self.grant);
        inner.u64(self.id);
        w.opaque(inner.bytes());
    }

    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, Stop> {
        let mut inner = Reader::new(r.opaque("a file handle", 128)?);
        let mut read = || Ok::<_, Malformed>((inner.u32()?, inner.u64()?, inner.u64()?));
        match read() {
            Ok((MAGIC, grant, id)) => Ok(Self { id, grant }),
            _ => Err(Status::BADHANDLE.into()),
        }
    }
}

/// A name of a directory's entry.
pub(crate) fn name(r: &mut Reader<'_>) -> Result<String, Stop> {
    let bytes = r.opaque("a name", 4096)?;
    if bytes.len() > NAME_BYTES_MAX {
        return Err(Status::NAMETOOLONG.into());
    }
    let name = std::str::from_utf8(bytes).map_err(|_| Status::INVAL)?;
    if matches!(name, "" | "." | "..") || name.contains(['/', '\0']) {
        return Err(Status::INVAL.into());
    }
    Ok(name.to_owned())
}
