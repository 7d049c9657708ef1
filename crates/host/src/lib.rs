//! The machine under the database: what it is, what it is doing, and the only hands that change it.
//!
//! [`facts`] says what stands between a file and its disks; [`counters`] says what the kernel counted meanwhile. Both
//! only read, need no privilege, and report an absent source as unknown, never as zero. [`change`] makes loop devices,
//! throttles, file systems and queue settings; every change writes its undo to a [`journal`] first, so that `cleanup`
//! restores the machine after a kill at any moment. [`workspace`] is the only directory in which files are created; inside it,
//! [`server`] holds the processes and files of a private database server. [`trace`] watches what processes ask of the kernel.
#![forbid(unsafe_code)]

pub mod change;
mod command;
pub mod counters;
pub mod error;
pub mod facts;
mod files;
pub mod journal;
pub mod process;
pub mod server;
pub mod trace;
pub mod workspace;

pub use error::HostError;
