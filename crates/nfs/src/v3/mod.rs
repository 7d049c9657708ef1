//! NFS version 3: arguments and results of the procedures that a database's files need. Source: RFC 1813, 3.3.
//!
//! For each procedure there is a function that appends its arguments and one (`read_…`) that takes its results; both are pure. How
//! a call of them is made is in [`crate::rpc`]; reads, writes and commits are templates ([`transfer`]).

pub mod directory;
mod results;
pub mod transfer;

pub use results::{
    Access, FileSystem, Found, Limits, Space, read_access, read_create, read_fsinfo, read_fsstat,
    read_getattr, read_lookup, read_pathconf, read_remove, read_setattr,
};

use crate::Handle;
use crate::rpc::Procedure;
use crate::xdr::Writer;

/// Longest handle, bytes. RFC 1813, 2.4.
pub(crate) const HANDLE_BYTES_MAX: usize = 64;

const fn procedure(number: u32) -> Procedure {
    Procedure { program: 100_003, version: 3, number }
}

/// What a procedure is called, by its number. RFC 1813, 3.3.
pub const fn name(procedure: Procedure) -> &'static str {
    const NAMES: [&str; 22] = [
        "NULL",
        "GETATTR",
        "SETATTR",
        "LOOKUP",
        "ACCESS",
        "READLINK",
        "READ",
        "WRITE",
        "CREATE",
        "MKDIR",
        "SYMLINK",
        "MKNOD",
        "REMOVE",
        "RMDIR",
        "RENAME",
        "LINK",
        "READDIR",
        "READDIRPLUS",
        "FSSTAT",
        "FSINFO",
        "PATHCONF",
        "COMMIT",
    ];
    assert!((procedure.number as usize) < NAMES.len(), "it is one of NFSv3");
    NAMES[procedure.number as usize]
}

/// Does nothing: is anybody there?
pub const NULL: Procedure = procedure(0);
/// Attributes.
pub const GETATTR: Procedure = procedure(1);
/// Changes attributes; here, the size.
pub const SETATTR: Procedure = procedure(2);
/// Finds a name in a directory.
pub const LOOKUP: Procedure = procedure(3);
/// What the caller may do.
pub const ACCESS: Procedure = procedure(4);
/// Reads.
pub const READ: Procedure = procedure(6);
/// Writes.
pub const WRITE: Procedure = procedure(7);
/// Makes a file.
pub const CREATE: Procedure = procedure(8);
/// Removes a file.
pub const REMOVE: Procedure = procedure(12);
/// Space of the file system.
pub const FSSTAT: Procedure = procedure(18);
/// Limits of the server.
pub const FSINFO: Procedure = procedure(19);
/// Limits of names.
pub const PATHCONF: Procedure = procedure(20);
/// Makes writes durable.
pub const COMMIT: Procedure = procedure(21);

/// Arguments of [`GETATTR`], [`FSSTAT`], [`FSINFO`] and [`PATHCONF`].
pub fn of(w: &mut Writer, handle: &Handle) {
    handle.encode(w);
}

/// Arguments of [`LOOKUP`] and [`REMOVE`].
pub fn named(w: &mut Writer, directory: &Handle, name: &str) {
    directory.encode(w);
    w.opaque(name.as_bytes());
}

/// Arguments of [`ACCESS`]: may the caller read, and write?
pub fn access(w: &mut Writer, handle: &Handle) {
    handle.encode(w);
    w.u32(results::ACCESS_READ | results::ACCESS_MODIFY | results::ACCESS_EXTEND);
}

/// Arguments of [`CREATE`]: `name` with permissions `mode`. With a `verifier`, it must not exist, and a call that is repeated with
/// the same verifier finds what the first one made (EXCLUSIVE; the mode is then set by [`setattr`]).
pub fn create(w: &mut Writer, directory: &Handle, name: &str, how: Create) {
    named(w, directory, name);
    match how {
        Create::Unchecked { mode } => {
            w.u32(0);
            changes(w, Some(mode), None);
        }
        Create::Exclusive { verifier } => {
            w.u32(2);
            w.fixed(&verifier);
        }
    }
}

/// What becomes of a name that exists. RFC 1813, 3.3.8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Create {
    /// It is taken as it is.
    Unchecked {
        /// Permissions of a new one.
        mode: u32,
    },
    /// The call fails, unless it is the repetition of the one that made it.
    Exclusive {
        /// Different for each new file.
        verifier: [u8; 8],
    },
}

/// Arguments of [`SETATTR`]: new permissions, a new size in bytes; what is none stays.
pub fn setattr(w: &mut Writer, handle: &Handle, mode: Option<u32>, size: Option<u64>) {
    handle.encode(w);
    changes(w, mode, size);
    w.bool(false); // Whatever its time of change.
}

/// A `sattr3`. RFC 1813, 2.5.
fn changes(w: &mut Writer, mode: Option<u32>, size: Option<u64>) {
    w.bool(mode.is_some());
    mode.into_iter().for_each(|mode| w.u32(mode));
    w.bool(false); // Owner.
    w.bool(false); // Group.
    w.bool(size.is_some());
    size.into_iter().for_each(|size| w.u64(size));
    w.u32(0); // Time of access,
    w.u32(0); // of change: as they are.
}
