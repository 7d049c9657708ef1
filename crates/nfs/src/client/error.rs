//! What this client says when it cannot go on.

use super::target::Version;
use crate::rpc::reply::Refusal;
use crate::xdr::Malformed;
use crate::{Fault, Status};
use thiserror::Error;
use units::Nanos;

/// An error of a mount, a file or a queue. Each names the server, and what to look at.
#[derive(Clone, Debug, Error)]
pub enum NfsError {
    /// No path leads there.
    #[error(
        "{server} cannot be reached on any path ({tried}); is the server running, is the port right (`rpcinfo -p {server}` lists them), and does a firewall let us through?"
    )]
    Unreachable {
        /// Which server.
        server: String,
        /// Each path with its error.
        tried: String,
    },
    /// It went silent, or kept asking to wait.
    #[error(
        "{server}: {what} was not done within {}; the last answer was: {last}; look at the server's log and at the network between",
        limit
    )]
    TimedOut {
        /// Which server.
        server: String,
        /// What was asked.
        what: &'static str,
        /// How long it was waited for.
        limit: Nanos,
        /// What was seen last.
        last: String,
    },
    /// The version that was asked for is not spoken there. Another is never taken instead.
    #[error(
        "{server} does not speak NFS{wanted} ({said}); enable it there, or ask for another version: nothing falls back by itself"
    )]
    Version {
        /// Which server.
        server: String,
        /// What was asked for.
        wanted: Version,
        /// What the server said.
        said: String,
    },
    /// The export is not there.
    #[error(
        "{server} has no export {export} ({fault}); `showmount -e {server}` lists those of NFSv3; with NFSv4 the path is the one below the server's pseudo root"
    )]
    NoExport {
        /// Which server.
        server: String,
        /// What was asked for.
        export: String,
        /// What the server said.
        fault: Fault,
    },
    /// The export is there, but not for us.
    #[error(
        "{server} does not let this client use {export} ({fault}); we come as user {uid}, group {gid}; look at the export's list of clients, its security flavors (sys is needed) and the directory's mode; some servers say so of an export that they do not have"
    )]
    Denied {
        /// Which server.
        server: String,
        /// What was asked for.
        export: String,
        /// What the server said.
        fault: Fault,
        /// As whom we come.
        uid: u32,
        /// Of which group.
        gid: u32,
    },
    /// The server says no to something that concerns one file.
    #[error("{path}: {fault} ({})", hint(*.fault))]
    Refused {
        /// Which file.
        path: String,
        /// What the server said.
        fault: Fault,
    },
    /// The server does not take our calls at all.
    #[error("{server} refused the call: {refusal}")]
    Rpc {
        /// Which server.
        server: String,
        /// Why.
        refusal: Refusal,
    },
    /// A reply that does not hold together.
    #[error(
        "{server} sent something that is no NFS ({malformed}); is it an NFS server, and of this version, that listens on that port?"
    )]
    Malformed {
        /// Which server.
        server: String,
        /// What is wrong.
        malformed: Malformed,
    },
    /// A name that cannot be one.
    #[error(
        "{0:?} is no name of a file below an export; names are separated by /, and none is empty, . or .."
    )]
    Name(String),
    /// The machine itself refuses something: a thread, a descriptor.
    #[error("this machine refuses {what}: {error}")]
    Machine {
        /// What.
        what: &'static str,
        /// Its error.
        error: String,
    },
}

impl NfsError {
    /// What the server said; none where it is not an answer of NFS.
    pub const fn status(&self) -> Option<Status> {
        match self {
            Self::NoExport { fault, .. } | Self::Denied { fault, .. } | Self::Refused { fault, .. } => {
                fault.status()
            }
            _ => None,
        }
    }

    /// The error number of Linux that is closest.
    pub fn errno(&self) -> i32 {
        match self {
            Self::Unreachable { .. } => 113,
            Self::TimedOut { .. } => 110,
            Self::Version { .. } => 93,
            Self::NoExport { fault, .. } | Self::Denied { fault, .. } | Self::Refused { fault, .. } => {
                fault.status().map_or(5, Status::errno)
            }
            Self::Rpc { .. } | Self::Malformed { .. } | Self::Machine { .. } => 5,
            Self::Name(_) => 22,
        }
    }
}

fn hint(fault: Fault) -> &'static str {
    match fault.status() {
        Some(Status::NOENT) => "no such file; check its name",
        Some(Status::ACCESS | Status::PERM) => {
            "the server does not allow it to this user; check owner and mode"
        }
        Some(Status::EXIST) => "it exists already and was not made by this run",
        Some(Status::NOSPC | Status::DQUOT) => "no space is left there",
        Some(Status::ROFS) => "the export is read-only",
        Some(Status::STALE | Status::BADHANDLE) => "the file was removed, or the export was made anew",
        Some(Status::SHARE_DENIED | Status::LOCKED) => "another client has it and shares it with nobody",
        _ => "see the server's log",
    }
}
