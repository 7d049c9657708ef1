//! Which port a program listens on, as the server's port mapper knows it. Source: RFC 1833, 3.

use crate::rpc::Procedure;
use crate::xdr::{Malformed, Reader, Writer};

/// Where the port mapper itself listens.
pub const PORT: u16 = 111;
const TCP: u32 = 6;

/// `PMAPPROC_GETPORT`.
pub const GET_PORT: Procedure = Procedure { program: 100_000, version: 2, number: 3 };

/// Asks where `version` of `program` listens over TCP.
pub fn get_port(writer: &mut Writer, program: u32, version: u32) {
    for word in [program, version, TCP, 0] {
        writer.u32(word);
    }
}

/// The port; `None` when the program is not registered.
///
/// # Errors
/// [`Malformed`].
pub fn read_get_port(reader: &mut Reader<'_>) -> Result<Option<u16>, Malformed> {
    let seen = reader.u32()?;
    let port = u16::try_from(seen).map_err(|_| Malformed::Unknown { what: "the port", seen })?;
    Ok((port != 0).then_some(port))
}
