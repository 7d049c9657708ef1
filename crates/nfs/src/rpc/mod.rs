//! Remote procedure calls over a stream: calls ([`call`]), replies and calls in the other direction ([`reply`]), how a stream is
//! cut into messages ([`record`]), and the numbers that pair them ([`xid`]). Source: RFC 5531.

pub mod call;
pub mod record;
pub mod reply;
pub mod xid;

/// The version of the protocol itself. RFC 5531, 9.
pub(crate) const RPC_VERSION: u32 = 2;
pub(crate) const MESSAGE_CALL: u32 = 0;
pub(crate) const MESSAGE_REPLY: u32 = 1;
/// Longest credential or verifier, bytes. RFC 5531, 8.2.
pub(crate) const AUTH_BYTES_MAX: usize = 400;

/// A procedure of a program on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Procedure {
    /// Program: 100003 is NFS.
    pub program: u32,
    /// Its version.
    pub version: u32,
    /// The procedure's number in it.
    pub number: u32,
}
