//! Tests of the cache as a whole, in a small world of its own ([`world`]).

mod faults;
mod model;
mod pages;
mod references;
mod threads;
pub(crate) mod world;
