//! The ground floor: quantities, the clock, the seed.
//!
//! Everything above speaks in [`Nanos`] and [`Bytes`], asks [`clock`] for the time and [`Rng`] for chance. No other
//! crate reads a clock or draws a seed, so a run can be replayed from its record. Only `std` is used here.
#![forbid(unsafe_code)]

mod bytes;
pub mod clock;
mod counter;
mod nanos;
mod rng;

pub use bytes::Bytes;
pub use clock::Clock;
pub use counter::Counter;
pub use nanos::Nanos;
pub use rng::{Rng, Seed};
