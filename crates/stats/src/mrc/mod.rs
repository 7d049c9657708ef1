//! How many reads a second-level cache of each size would have served: miss-ratio curves from sampled block references.
//!
//! What a flash cache below a buffer cache sees is not what sessions ask for: it sees the buffer cache's misses ([`Event::Read`]),
//! the blocks that leave it ([`Event::Offer`]) and those that change ([`Event::Change`]). None of that depends on the flash cache's size, so one
//! run without a flash cache answers for all of them.
//!
//! [`Sampler`] keeps the references of some blocks, chosen by a hash of their address: of a chosen block all, of another none, so that
//! reuse stays whole (SHARDS). From what it kept, [`Shards`] gives the curve of an LRU cache at all sizes in one pass, and [`miniature`] plays a
//! cache of any policy, its size scaled down by the sampling rate. [`gain`] makes a speed-up of a hit ratio.
//!
//! Sources: Waldspurger, Park, Garthwaite & Ahmad, *Efficient MRC Construction with SHARDS*, FAST '15; Waldspurger, Saemundson, Ahmad &
//! Park, *Cache Modeling and Optimization using Miniature Simulations*, ATC '17.

pub mod gain;
pub mod miniature;
mod references;
mod shards;
mod stack;
#[cfg(test)]
mod tests;

pub use references::{Event, Reference, References, Sampler};
pub use shards::{Curve, Shards};

/// Uniform bits of a block's address; the sampling condition uses the upper 32, groups for intervals the lower.
///
/// Finalizer of SplitMix64 (S. Vigna, public domain).
#[inline]
pub const fn hash(block: u64, seed: u64) -> u64 {
    let mut z = block.wrapping_add(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A block is kept when the upper 32 bits of its hash are below the threshold; this one keeps all.
pub const KEEP_ALL: u64 = 1 << 32;

/// Whether a block is kept at `threshold`, 0 ..= [`KEEP_ALL`].
#[inline]
pub const fn is_kept(block: u64, seed: u64, threshold: u64) -> bool {
    hash(block, seed) >> 32 < threshold
}
