//! The only place that changes the system; each change takes a [`Journal`] and notes its undo there first.
//!
//! [`loop_device`] shows a file as a disk, [`throttle()`] and [`Caps`] make a disk slow, [`set_queue`] changes a request queue,
//! [`make_file_system`] and [`mount`] build on a device that nobody uses. All need root and say so.

mod cap;
mod file_system;
mod loops;
mod queue;
mod throttle;

pub use cap::Caps;
pub use file_system::{MountedAt, blank, can_make, make_file_system, make_file_system_labelled, mount};
pub use loops::{LoopDevice, can_attach, loop_device};
pub use queue::{can_set_queue, queue_choices, queue_setting, read_setting, set_queue, set_setting};
pub use throttle::{Limits, Throttle, can_throttle, throttle, throttle_everybody};

pub use crate::journal::Journal;
