//! How Redoubt decides. Pure functions over numbers: no files, no clock, no threads, and chance only from a seed.
//!
//! The path of a measurement through this crate: latencies go into a [`histogram`]; the series of rates is asked
//! whether it is [`steady`]; the best concurrency is found by [`search`]; the visits of a comparison are laid out by
//! [`order`]; what they gave becomes an [`interval`], and intervals become a [`verdict`], of many configurations a [`rank`]ing; every number is doubted by
//! [`check`]; single figures become the user's workload in [`mix`]. [`sim`] holds the noisy devices on which all of
//! this is tried before it is trusted.
//!
//! The method, with the simulations behind each constant, is `docs/method.md`; section numbers in this crate are its.
#![forbid(unsafe_code)]

pub mod check;
pub mod histogram;
pub mod interval;
pub mod mix;
pub mod mrc;
pub mod order;
pub mod rank;
pub mod sample;
pub mod search;
pub mod sim;
pub mod special;
pub mod steady;
pub mod verdict;
