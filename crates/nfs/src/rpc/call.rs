//! The head of a call: what is called, and who calls.

use super::{MESSAGE_CALL, Procedure, RPC_VERSION};
use crate::rpc::record;
use crate::xdr::Writer;

/// Most groups that AUTH_SYS carries. RFC 5531, appendix A.
const GROUPS_MAX: usize = 16;
/// Longest name of a machine, bytes. RFC 5531, appendix A.
const MACHINE_BYTES_MAX: usize = 255;
const AUTH_NONE: u32 = 0;
const AUTH_SYS: u32 = 1;

/// Where the call's number lies in what [`begin`] wrote at the start of a buffer, bytes.
pub const XID_AT: usize = 4;

/// Who calls, as the server is told and believes: AUTH_SYS. Encoded once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    encoded: Vec<u8>,
    /// User.
    uid: u32,
    /// Group.
    gid: u32,
}

impl Credential {
    /// User `uid` of groups `gid` and `groups` (the first 16 count) on `machine` (its first 255 bytes). RFC 5531, appendix A.
    pub fn sys(machine: &str, uid: u32, gid: u32, groups: &[u32]) -> Self {
        let mut body = Writer::new();
        body.u32(0);
        body.opaque(&machine.as_bytes()[..machine.len().min(MACHINE_BYTES_MAX)]);
        body.u32(uid);
        body.u32(gid);
        let groups = &groups[..groups.len().min(GROUPS_MAX)];
        body.u32(groups.len() as u32);
        groups.iter().for_each(|&group| body.u32(group));
        let mut both = Writer::new();
        both.u32(AUTH_SYS);
        both.opaque(body.bytes());
        both.u32(AUTH_NONE);
        both.opaque(&[]);
        Self { encoded: both.bytes().to_vec(), uid, gid }
    }

    /// The user and the group that the server is told.
    pub fn ids(&self) -> (u32, u32) {
        (self.uid, self.gid)
    }
}

/// Starts a record with the head of a call of `procedure`, number `xid`; its arguments follow, then [`record::seal`] closes it.
/// Result: where the record starts.
pub fn begin(writer: &mut Writer, xid: u32, procedure: Procedure, credential: &Credential) -> usize {
    let at = record::open(writer);
    for word in [xid, MESSAGE_CALL, RPC_VERSION, procedure.program, procedure.version, procedure.number] {
        writer.u32(word);
    }
    writer.raw(&credential.encoded);
    at
}
