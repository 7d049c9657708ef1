//! The client: blocking calls on plain sockets, no runtime.
//!
//! Start with [`Mount`]: a [`Target`] says where, [`Mount::open`] connects and finds the export. A mount opens files one call at a time
//! over its control connection (behind a lock); each worker has a [`Queue`] of its own for transfers.

mod alerts;
mod caller;
mod channel;
mod connection;
mod control;
mod control_v3;
mod control_v4;
mod directory;
mod error;
mod file;
mod follow;
mod identity;
mod keeper;
mod layouts;
mod mend;
mod mount;
mod paths;
mod queue;
mod seen;
mod target;
mod uncommitted;

pub use alerts::Alert;
pub use channel::{ChannelCounters, ChannelState, Times};
pub use error::NfsError;
pub use file::File;
pub use follow::{Followed, PnfsCounters};
pub use layouts::Cause;
pub use mount::{Mount, MountFacts, MountOptions, Open};
#[cfg(any(test, feature = "fuzz"))]
pub(crate) use queue::landing;
pub use queue::{NetworkCounters, Queue, QueueOptions};
pub use seen::{FileFacts, LayoutFacts};
pub use target::{PORT, Path, Target, Version};
