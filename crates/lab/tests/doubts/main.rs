//! Doubts work: a number that does not hold together is caught, with the right reason.
//!
//! [`traps`]: real storage that deceives, calibrated as a user would. [`numbers`]: what needs no storage: a disk that lies
//! about fsync, stolen CPU time, a latency from elsewhere that contradicts its own rate.
#![forbid(unsafe_code)]

mod numbers;
mod traps;
