//! A small NFS cluster in one process, for tests and demonstrations: nodes on loopback addresses that each serve the whole export, and each
//! keep a part of its data.
//!
//! Start with [`Cluster::start`]. Every node speaks v3 (MOUNT on the same port), v4.0 and v4.1 with pNFS ([`Layouts`]: files or flexible files), and passes on
//! to its owner, over a connection between the nodes, what it does not keep itself. What makes a cluster interesting can be
//! commanded: moves of files and volumes, told or silent ([`Tell`]), paths that are cut, restarts, errors, delays ([`Command`] reads such a line). Each node counts what
//! it did ([`NodeCounters`]).
//!
//! ```text
//! connection.rs   a thread for each connection: messages in, replies out; callbacks go the other way
//!   v3/  v4/      what is asked, decoded, done, encoded
//!     transfer.rs reads and writes at their owner, forwarded where that is another node; moves.rs
//!       tree.rs   names          store.rs   data of one node
//! ```
//! Data is kept in memory, within a bound. There is no grace period, no lock and no access check, and a delegation only by [`Cluster::delegate`].
#![forbid(unsafe_code)]

mod cluster;
mod command;
mod connection;
mod counters;
#[cfg(any(test, feature = "fuzz"))]
#[doc(hidden)]
pub mod fuzz;
mod interconnect;
mod moves;
mod node;
mod replies;
mod store;
mod transfer;
mod tree;
mod v3;
mod v4;
mod wire;

pub use cluster::{Cluster, ClusterOptions, DataServer, Delegations, LabError, Layouts, WrongNode};
pub use command::Command;
pub use counters::NodeCounters;
pub use moves::{Moved, Tell};

#[cfg(test)]
mod hostile;
