//! A client for NFS in user space: no kernel mount, no root.
//!
//! The protocol is pure encoding and decoding, without a socket or a clock: [`xdr`] (how values lie on the wire), [`rpc`] (calls,
//! replies, and how they are cut into records), [`portmap`] and [`mount`] (how an NFSv3 export is found), [`v3`] and [`v4`] (their calls, and
//! what has to be remembered between them).
//! Whatever comes from the wire is taken for hostile: each length is checked against its bound before anything is allocated or
//! skipped, and a message that does not hold together is [`xdr::Malformed`], never a panic.
#![forbid(unsafe_code)]

mod attributes;
mod client;
#[cfg(any(test, feature = "fuzz"))]
#[doc(hidden)]
pub mod fuzz;
mod handle;
mod listing;
pub mod mount;
pub mod oranfstab;
pub mod portmap;
pub mod rpc;
mod status;
mod storage;
pub mod transfer;
mod url;
pub mod v3;
pub mod v4;
pub mod xdr;

pub use attributes::{Attributes, Kind};
pub use client::{
    Alert, Cause, ChannelCounters, ChannelState, File, FileFacts, Followed, LayoutFacts, Mount, MountFacts,
    MountOptions, NetworkCounters, NfsError, Open, PORT, Path, PnfsCounters, Queue, QueueOptions, Target,
    Times, Version,
};
pub use handle::Handle;
pub use listing::{Listing, Place};
pub use status::{Fault, Status};
pub use storage::Storage;
pub use url::{Url, UrlError};

#[cfg(test)]
mod hostile;
