//! NFS version 4.0 and 4.1: compounds of operations, and what client and server have to remember of each other.
//!
//! Pure, as [`crate::v3`]: [`compound`] (how operations are strung together and their results taken apart), [`attributes`], [`directory`], [`open`] (files'
//! states), [`identity`] (client ids, sessions, leases on the wire), [`transfer`], [`layout`] (pNFS); and machines that are told what happened and say what to
//! do: [`session`] (slots and their sequence ids), [`recovery`] (what a status asks for), [`callback`] (what the server wants of
//! us). Sources: RFC 7530 and 7531 for 4.0, RFC 8881 and 5662 for 4.1.

pub mod attributes;
pub mod callback;
pub mod compound;
pub mod directory;
pub mod identity;
pub mod layout;
pub mod open;
pub mod recovery;
pub mod session;
pub mod transfer;

use crate::rpc::Procedure;

/// Does nothing: is anybody there?
pub const NULL: Procedure = Procedure { program: 100_003, version: 4, number: 0 };
/// Everything else.
pub const COMPOUND: Procedure = Procedure { program: 100_003, version: 4, number: 1 };

/// Longest handle, bytes. RFC 8881, 3.2.
pub(crate) const HANDLE_BYTES_MAX: usize = 128;
/// Longest opaque name, tag or identity, bytes. RFC 8881, 3.2 (`NFS4_OPAQUE_LIMIT`).
pub(crate) const OPAQUE_BYTES_MAX: usize = 1024;

/// The minor version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Minor {
    /// 4.0: states hang on a client id, and their leases are renewed by themselves.
    V0 = 0,
    /// 4.1: sessions, whose slots make each call happen exactly once.
    V1 = 1,
}
