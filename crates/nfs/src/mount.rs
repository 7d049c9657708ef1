//! How the handle of an NFSv3 export's root is got: the MOUNT program, version 3. Source: RFC 1813, 5.

use crate::rpc::Procedure;
use crate::xdr::{Malformed, Reader, Writer};
use crate::{Fault, Handle, Status};

const PROGRAM: u32 = 100_005;
const VERSION: u32 = 3;
/// Longest path, bytes.
const PATH_BYTES_MAX: usize = 1024;
/// Longest handle of NFSv3, bytes.
const HANDLE_BYTES_MAX: usize = 64;
const FLAVORS_MAX: usize = 64;
/// AUTH_SYS, which is what this client speaks.
const AUTH_SYS: u32 = 1;

/// Asks whether the program is there.
pub const NULL: Procedure = Procedure { program: PROGRAM, version: VERSION, number: 0 };
/// Mounts an export.
pub const MNT: Procedure = Procedure { program: PROGRAM, version: VERSION, number: 1 };
/// Takes a mount off the server's list.
pub const UMNT: Procedure = Procedure { program: PROGRAM, version: VERSION, number: 3 };

/// Arguments of [`MNT`] and [`UMNT`]: the export's path.
pub fn path(writer: &mut Writer, path: &str) {
    writer.opaque(path.as_bytes());
}

/// What [`MNT`] gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mounted {
    /// Handle of the export's root.
    pub root: Handle,
    /// Whether AUTH_SYS is accepted there. A server that lists nothing is taken to accept it.
    pub auth_sys: bool,
}

/// Result of [`MNT`].
///
/// # Errors
/// [`Fault::Refused`]: 2 no such export, 13 not for this client; [`Fault::Malformed`].
pub fn read_mnt(reader: &mut Reader<'_>) -> Result<Mounted, Fault> {
    Status::read(reader, "MNT")?;
    let root = Handle::decode(reader, HANDLE_BYTES_MAX)?;
    let flavors = reader.count("a list of security flavors", FLAVORS_MAX)?;
    let mut auth_sys = flavors == 0;
    for _ in 0..flavors {
        auth_sys |= reader.u32()? == AUTH_SYS;
    }
    Ok(Mounted { root, auth_sys })
}

/// Whether `path` can be asked for at all.
///
/// # Errors
/// [`Malformed::TooLong`].
pub fn check_path(path: &str) -> Result<(), Malformed> {
    if path.len() > PATH_BYTES_MAX {
        let (seen, max) = (path.len() as u64, PATH_BYTES_MAX as u64);
        return Err(Malformed::TooLong { what: "a path", seen, max });
    }
    Ok(())
}
