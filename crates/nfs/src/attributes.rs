//! What a server says of a file.

use crate::xdr::{Malformed, Reader};

/// What kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A device, a link, a pipe, a socket or an attribute: its number in the RFC.
    Other(u32),
}

impl From<u32> for Kind {
    /// Both versions have the same numbers. RFC 1813, 2.5; RFC 8881, 3.3.13.
    fn from(number: u32) -> Self {
        match number {
            1 => Self::Regular,
            2 => Self::Directory,
            other => Self::Other(other),
        }
    }
}

/// The attributes that this client uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// What kind of file.
    pub kind: Kind,
    /// Permissions.
    pub mode: u32,
    /// Size, bytes.
    pub size: u64,
    /// Space that it takes, bytes.
    pub used: u64,
    /// The server's number of the file.
    pub file_id: u64,
}

impl Attributes {
    /// Takes a `fattr3`. RFC 1813, 2.5.
    pub(crate) fn read_v3(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (kind, mode) = (Kind::from(r.u32()?), r.u32()?);
        r.skip(3 * 4)?; // Links, owner, group.
        let (size, used) = (r.u64()?, r.u64()?);
        r.skip(2 * 8)?; // Device, file system.
        let file_id = r.u64()?;
        r.skip(3 * 8)?; // Times.
        Ok(Self { kind, mode, size, used, file_id })
    }

    /// Takes a `post_op_attr`. RFC 1813, 2.6.
    pub(crate) fn read_optional_v3(r: &mut Reader<'_>) -> Result<Option<Self>, Malformed> {
        if r.bool()? { Self::read_v3(r).map(Some) } else { Ok(None) }
    }
}
