//! Files, block devices and request queues: the only crate with `unsafe`.
//!
//! Start with [`File`] (open flags as a database sets them, one call per transfer, facts read back from the kernel)
//! and [`open_queue`] (many requests in flight by threads, libaio or io_uring behind one trait, [`Queue`]). Every
//! transfer ends as one [`Outcome`]; a short one is never success. [`stamp`] makes data that proves where it came
//! from, [`prepare`] fills files with it, [`sim`] holds disks that crash, lie and fail on purpose. [`Storage`] is a name space
//! of files over either.
//!
//! Not here: what to read or write and when (crate `lab`), and anything that changes the machine (crate `host`).

mod buffer;
mod counter;
pub mod descriptor;
mod error;
mod file;
mod mode;
mod outcome;
pub mod prepare;
mod queue;
pub mod sim;
pub mod stamp;
mod storage;
#[cfg(test)]
mod testing;
pub mod thread;

pub use buffer::Buffer;
pub use counter::clock;
pub use error::IoError;
pub use file::{Alignment, Extents, File, FlagsInForce, Residency, refused_beforehand};
pub use mode::{Access, Api, IoMode};
pub use outcome::Outcome;
pub use queue::{Action, Completion, Queue, QueueCounters, QueueOptions, Request, open_queue};
pub use storage::{Ownership, RealStorage, Storage, StorageLock};
