//! What NFSv3 procedures give, but for transfers.

use super::HANDLE_BYTES_MAX;
use crate::attributes::Attributes;
use crate::xdr::{Malformed, Reader};
use crate::{Fault, Handle, Status};

pub(super) const ACCESS_READ: u32 = 0x01;
pub(super) const ACCESS_MODIFY: u32 = 0x04;
pub(super) const ACCESS_EXTEND: u32 = 0x08;

/// A file, as LOOKUP and CREATE find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its handle; CREATE may leave it out, and LOOKUP finds it then.
    pub handle: Option<Handle>,
    /// Its attributes, where the server adds them.
    pub attributes: Option<Attributes>,
}

/// What the caller may do with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Read it.
    pub read: bool,
    /// Write to it, and make it longer.
    pub write: bool,
}

/// Limits of the server. Bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest READ.
    pub read_max: u32,
    /// Longest WRITE.
    pub write_max: u32,
    /// Largest file.
    pub file_max: u64,
}

/// Space of a file system, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// All of it.
    pub total: u64,
    /// Free for this caller.
    pub available: u64,
}

/// Limits of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// Longest name, bytes.
    pub name_max: u32,
    /// Whether a longer one is an error, rather than cut.
    pub no_truncation: bool,
}

/// Results of GETATTR. RFC 1813, 3.3.1.
///
/// # Errors
/// [`Fault`].
pub fn read_getattr(r: &mut Reader<'_>) -> Result<Attributes, Fault> {
    Status::read(r, "GETATTR")?;
    Ok(Attributes::read_v3(r)?)
}

/// Results of SETATTR. RFC 1813, 3.3.2.
///
/// # Errors
/// [`Fault`].
pub fn read_setattr(r: &mut Reader<'_>) -> Result<(), Fault> {
    Status::read(r, "SETATTR")
}

/// Results of LOOKUP. RFC 1813, 3.3.3.
///
/// # Errors
/// [`Fault`]; status `NOENT` where there is no such name.
pub fn read_lookup(r: &mut Reader<'_>) -> Result<Found, Fault> {
    Status::read(r, "LOOKUP")?;
    let handle = Some(Handle::decode(r, HANDLE_BYTES_MAX)?);
    Ok(Found { handle, attributes: Attributes::read_optional_v3(r)? })
}

/// Results of ACCESS. RFC 1813, 3.3.4.
///
/// # Errors
/// [`Fault`].
pub fn read_access(r: &mut Reader<'_>) -> Result<Access, Fault> {
    Status::read(r, "ACCESS")?;
    Attributes::read_optional_v3(r)?;
    let granted = r.u32()?;
    let has = |bits: u32| granted & bits == bits;
    Ok(Access { read: has(ACCESS_READ), write: has(ACCESS_MODIFY | ACCESS_EXTEND) })
}

/// Results of CREATE. RFC 1813, 3.3.8.
///
/// # Errors
/// [`Fault`]; status `EXIST` where the name is taken.
pub fn read_create(r: &mut Reader<'_>) -> Result<Found, Fault> {
    Status::read(r, "CREATE")?;
    let handle = if r.bool()? { Some(Handle::decode(r, HANDLE_BYTES_MAX)?) } else { None };
    Ok(Found { handle, attributes: Attributes::read_optional_v3(r)? })
}

/// Results of REMOVE. RFC 1813, 3.3.12.
///
/// # Errors
/// [`Fault`].
pub fn read_remove(r: &mut Reader<'_>) -> Result<(), Fault> {
    Status::read(r, "REMOVE")
}

/// Results of FSSTAT. RFC 1813, 3.3.18.
///
/// # Errors
/// [`Fault`].
pub fn read_fsstat(r: &mut Reader<'_>) -> Result<Space, Fault> {
    Status::read(r, "FSSTAT")?;
    Attributes::read_optional_v3(r)?;
    let total = r.u64()?;
    r.skip(8)?; // Free for root.
    Ok(Space { total, available: r.u64()? })
}

/// Results of FSINFO. RFC 1813, 3.3.19.
///
/// # Errors
/// [`Fault`]; a server whose longest transfer is 0 bytes is malformed.
pub fn read_fsinfo(r: &mut Reader<'_>) -> Result<Limits, Fault> {
    Status::read(r, "FSINFO")?;
    Attributes::read_optional_v3(r)?;
    let read_max = r.u32()?;
    r.skip(2 * 4)?; // Preferred size, multiple.
    let write_max = r.u32()?;
    r.skip(3 * 4)?; // Preferred size, multiple; size of READDIR.
    if read_max == 0 || write_max == 0 {
        return Err(Malformed::Unknown { what: "the longest transfer", seen: 0 }.into());
    }
    Ok(Limits { read_max, write_max, file_max: r.u64()? })
}

/// Results of PATHCONF. RFC 1813, 3.3.20.
///
/// # Errors
/// [`Fault`].
pub fn read_pathconf(r: &mut Reader<'_>) -> Result<FileSystem, Fault> {
    Status::read(r, "PATHCONF")?;
    Attributes::read_optional_v3(r)?;
    r.skip(4)?; // Links.
    Ok(FileSystem { name_max: r.u32()?, no_truncation: r.bool()? })
}
