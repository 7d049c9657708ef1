//! Directories in NFSv3: made, removed, listed, and names that are given to other files. Source: RFC 1813, 3.3.9 to 3.3.16.

use super::{HANDLE_BYTES_MAX, changes, named, procedure};
use crate::listing::{Listing, NAME_BYTES_MAX, Place};
use crate::rpc::Procedure;
use crate::xdr::{Reader, Writer};
use crate::{Attributes, Fault, Handle, Status};

/// Makes a directory.
pub const MKDIR: Procedure = procedure(9);
/// Removes an empty directory; its arguments are those of [`super::REMOVE`].
pub const RMDIR: Procedure = procedure(13);
/// Gives a file another name, at once and over whatever file had it.
pub const RENAME: Procedure = procedure(14);
/// Lists a directory.
pub const READDIR: Procedure = procedure(16);

/// Arguments of [`MKDIR`]: `name` with permissions `mode`.
pub fn mkdir(w: &mut Writer, directory: &Handle, name: &str, mode: u32) {
    named(w, directory, name);
    changes(w, Some(mode), None);
}

/// Arguments of [`RENAME`]: directory and name as they are, and as they shall be.
pub fn rename(w: &mut Writer, old: (&Handle, &str), new: (&Handle, &str)) {
    named(w, old.0, old.1);
    named(w, new.0, new.1);
}

/// Arguments of [`READDIR`]: from `place` on, at most `bytes_max` bytes of results.
pub fn readdir(w: &mut Writer, directory: &Handle, place: Place, bytes_max: u32) {
    directory.encode(w);
    w.u64(place.cookie);
    w.fixed(&place.verifier);
    w.u32(bytes_max);
}

/// Results of MKDIR. RFC 1813, 3.3.9.
///
/// # Errors
/// [`Fault`]; status `EXIST` where the name is taken.
pub fn read_mkdir(r: &mut Reader<'_>) -> Result<(), Fault> {
    Status::read(r, "MKDIR")?;
    if r.bool()? {
        Handle::decode(r, HANDLE_BYTES_MAX)?;
    }
    Ok(Attributes::read_optional_v3(r).map(drop)?)
}

/// Results of RMDIR. RFC 1813, 3.3.13.
///
/// # Errors
/// [`Fault`].
pub fn read_rmdir(r: &mut Reader<'_>) -> Result<(), Fault> {
    Status::read(r, "RMDIR")
}

/// Results of RENAME. RFC 1813, 3.3.14.
///
/// # Errors
/// [`Fault`].
pub fn read_rename(r: &mut Reader<'_>) -> Result<(), Fault> {
    Status::read(r, "RENAME")
}

/// Results of READDIR. RFC 1813, 3.3.16.
///
/// # Errors
/// [`Fault`]; status `BAD_COOKIE` where the place has lost its meaning.
pub fn read_readdir(r: &mut Reader<'_>) -> Result<Listing, Fault> {
    Status::read(r, "READDIR")?;
    Attributes::read_optional_v3(r)?;
    Listing::read(r, |r| {
        r.skip(8)?; // Number of the file.
        let name = r.opaque("a name in a directory", NAME_BYTES_MAX)?;
        Ok((r.u64()?, name))
    })
}
