//! Data that proves where it came from: incompressible, different in every block, and stamped.
//!
//! ```text
//! byte  0        8        16       24           32        36        40
//!       | magic  | file   | offset | generation | length  | crc32   | payload …
//! ```
//! All little-endian. The checksum (CRC-32, IEEE) is over the whole block with its own field as zero. The payload is a
//! pool of random words, xor-ed per 4 KiB with a key made from file, offset and generation: no two 4 KiB pieces of a
//! file are equal (nothing to deduplicate) and none repeats inside (nothing to compress). A lost write shows as an old
//! generation, a torn one as a wrong checksum, a misdirected one as a wrong offset or file.

use std::fmt;
use units::{Rng, Seed};

/// Bytes of a block that the stamp takes; blocks are at least this long.
pub const HEADER_BYTES: usize = 40;

const MAGIC: u64 = u64::from_le_bytes(*b"REDOUBT1");
const LENGTH_AT: usize = 32;
const CHECKSUM_AT: usize = 36;
/// Each piece has its own key; the size of the smallest unit that storage deduplicates.
const PIECE_BYTES: usize = 4096;
const POOL_BYTES: usize = 64 << 10;
/// Pool positions start on cache lines.
const POOL_STEP: usize = 64;

/// Where a block belongs and how often it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Which file, chosen by the caller.
    pub file_id: u64,
    /// Offset of the block in it, bytes.
    pub offset: u64,
    /// Rises with each write of the block.
    pub generation: u64,
}

/// What is wrong with a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// No stamp: not written by us, or overwritten by somebody.
    NotOurs,
    /// A stamp, but the checksum does not fit: part of the block is from another write.
    Torn,
    /// A whole block that belongs elsewhere.
    Misdirected {
        /// Where it belongs.
        found_offset: u64,
        /// To which file.
        found_file: u64,
    },
    /// An older write of this block: a later one was lost.
    Stale {
        /// The generation found.
        found_generation: u64,
    },
    /// Nothing but zeroes: never written, discarded, or lost.
    Zeroes,
    /// Stamped in blocks longer than what was read, which cannot be verified in part.
    Longer {
        /// Size of the stamped block.
        found_bytes: u32,
    },
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOurs => write!(f, "data that was not written by this run"),
            Self::Torn => write!(f, "a torn block: its checksum does not fit"),
            Self::Misdirected { found_offset, found_file } => {
                write!(
                    f,
                    "the block of offset {found_offset} of file {found_file:x}: a misdirected write or read"
                )
            }
            Self::Stale { found_generation } => {
                write!(f, "an old version (generation {found_generation}): a later write was lost")
            }
            Self::Zeroes => write!(f, "zeroes: never written, discarded, or lost"),
            Self::Longer { found_bytes } => {
                write!(f, "part of a block stamped with {found_bytes} bytes: read whole blocks to verify")
            }
        }
    }
}

/// Fills blocks. Holds the random pool, 64 KiB: small enough to stay in a core's own cache.
#[derive(Clone)]
pub struct Stamper {
    pool: Box<[u8]>,
}

/// SplitMix64's finalizer: spreads every input bit over the word.
const fn mix(word: u64) -> u64 {
    let z = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Stamper {
    /// A pool drawn from `seed`.
    pub fn new(seed: Seed) -> Self {
        let mut rng = Rng::new(seed);
        let words = (POOL_BYTES + PIECE_BYTES) / 8;
        Self { pool: (0..words).flat_map(|_| rng.next_u64().to_le_bytes()).collect() }
    }

    /// Fills `block` with the data of `stamp`. Under 1 µs for 8 KiB.
    ///
    /// # Panics
    /// When the block is shorter than [`HEADER_BYTES`] or not a multiple of 8: a bug of the caller.
    pub fn fill(&self, block: &mut [u8], stamp: Stamp) {
        assert!(
            block.len() >= HEADER_BYTES && block.len().is_multiple_of(8),
            "a block of {} bytes",
            block.len()
        );
        let key = mix(stamp.offset ^ mix(stamp.file_id ^ mix(stamp.generation.wrapping_add(1))));
        for (index, piece) in block.chunks_mut(PIECE_BYTES).enumerate() {
            let key = mix(key.wrapping_add(index as u64));
            let start = (key as usize % (POOL_BYTES / POOL_STEP)) * POOL_STEP;
            for (to, from) in piece.chunks_exact_mut(8).zip(self.pool[start..].chunks_exact(8)) {
                let word = u64::from_le_bytes(from.try_into().expect("8 bytes")) ^ key;
                to.copy_from_slice(&word.to_le_bytes());
            }
        }
        let length = u32::try_from(block.len()).expect("a block is below 4 GiB");
        for (at, word) in [(0, MAGIC), (8, stamp.file_id), (16, stamp.offset), (24, stamp.generation)] {
            block[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        block[LENGTH_AT..CHECKSUM_AT].copy_from_slice(&length.to_le_bytes());
        let checksum = checksum(block);
        block[CHECKSUM_AT..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
    }
}

fn checksum(block: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&block[..CHECKSUM_AT]);
    hasher.update(&[0; 4]);
    hasher.update(&block[HEADER_BYTES..]);
    hasher.finalize()
}

fn word(block: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(block[at..at + 8].try_into().expect("8 bytes"))
}

/// Checks what was read at `offset` of file `file_id` and gives its stamp. `generation`: the smallest that is right, or
/// `None` when any is. Several stamped blocks read at once are all checked; the stamp is the first one's.
///
/// # Errors
/// The first thing that is [`Wrong`].
///
/// # Panics
/// When `block` is shorter than [`HEADER_BYTES`]: a bug of the caller.
pub fn verify(block: &[u8], file_id: u64, offset: u64, generation: Option<u64>) -> Result<Stamp, Wrong> {
    let first = verify_first(block, file_id, offset, generation)?;
    let stamped = stamped_bytes(block);
    let mut at = stamped;
    while at < block.len() {
        let rest = &block[at..];
        if rest.len() < HEADER_BYTES || stamped_bytes(rest) != stamped {
            return Err(unstamped(rest));
        }
        verify_first(rest, file_id, offset + at as u64, generation)?;
        at += stamped;
    }
    Ok(first)
}

fn stamped_bytes(block: &[u8]) -> usize {
    u32::from_le_bytes(block[LENGTH_AT..CHECKSUM_AT].try_into().expect("4 bytes")) as usize
}

fn unstamped(block: &[u8]) -> Wrong {
    if block.iter().all(|&byte| byte == 0) { Wrong::Zeroes } else { Wrong::NotOurs }
}

fn verify_first(block: &[u8], file_id: u64, offset: u64, generation: Option<u64>) -> Result<Stamp, Wrong> {
    if word(block, 0) != MAGIC {
        return Err(unstamped(block));
    }
    let stamped = stamped_bytes(block);
    if stamped < HEADER_BYTES {
        return Err(Wrong::Torn);
    }
    if stamped > block.len() {
        return Err(Wrong::Longer { found_bytes: stamped as u32 });
    }
    let block = &block[..stamped];
    let found = u32::from_le_bytes(block[CHECKSUM_AT..HEADER_BYTES].try_into().expect("4 bytes"));
    if found != checksum(block) {
        return Err(Wrong::Torn);
    }
    let stamp = Stamp { file_id: word(block, 8), offset: word(block, 16), generation: word(block, 24) };
    if stamp.offset != offset || stamp.file_id != file_id {
        return Err(Wrong::Misdirected { found_offset: stamp.offset, found_file: stamp.file_id });
    }
    if generation.is_some_and(|least| stamp.generation < least) {
        return Err(Wrong::Stale { found_generation: stamp.generation });
    }
    Ok(stamp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::LazyLock;

    const STAMP: Stamp = Stamp { file_id: 7, offset: 8192 * 3, generation: 5 };

    fn filled(bytes: usize, stamp: Stamp) -> Vec<u8> {
        static STAMPER: LazyLock<Stamper> = LazyLock::new(|| Stamper::new(Seed(1)));
        let mut block = vec![0; bytes];
        STAMPER.fill(&mut block, stamp);
        block
    }

    #[test]
    fn what_was_filled_verifies() {
        for bytes in [HEADER_BYTES, 512, 4096, 8192, 1 << 20] {
            let block = filled(bytes, STAMP);
            assert_eq!(verify(&block, 7, STAMP.offset, Some(5)), Ok(STAMP), "{bytes}");
            assert_eq!(verify(&block, 7, STAMP.offset, None), Ok(STAMP), "{bytes}");
        }
    }

    #[test]
    fn every_flipped_bit_is_seen() {
        let block = filled(512, STAMP);
        for bit in 0..512 * 8 {
            let mut block = block.clone();
            block[bit / 8] ^= 1 << (bit % 8);
            assert!(verify(&block, 7, STAMP.offset, Some(5)).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn each_kind_of_wrong_has_its_name() {
        let good = filled(8192, STAMP);
        let old = filled(8192, Stamp { generation: 4, ..STAMP });
        let check = |block: &[u8]| verify(block, 7, STAMP.offset, Some(5)).unwrap_err();
        assert_eq!(check(&[0; 8192]), Wrong::Zeroes);
        assert_eq!(check(&[9; 8192]), Wrong::NotOurs);
        assert_eq!(check(&old), Wrong::Stale { found_generation: 4 });
        let elsewhere = filled(8192, Stamp { offset: 0, ..STAMP });
        assert_eq!(check(&elsewhere), Wrong::Misdirected { found_offset: 0, found_file: 7 });
        let other_file = filled(8192, Stamp { file_id: 8, ..STAMP });
        assert_eq!(check(&other_file), Wrong::Misdirected { found_offset: STAMP.offset, found_file: 8 });
        for sector in 1..16 {
            let mut torn = good.clone();
            torn[sector * 512..].copy_from_slice(&old[sector * 512..]);
            assert_eq!(check(&torn), Wrong::Torn, "sector {sector}");
        }
        let mut headless = good.clone();
        headless[..512].fill(0);
        assert_eq!(check(&headless), Wrong::NotOurs);
        assert_eq!(check(&good[..4096]), Wrong::Longer { found_bytes: 8192 });
        assert!(check(&old).to_string().contains("a later write was lost"));
    }

    #[test]
    fn many_blocks_in_one_read_are_all_checked() {
        let mut read: Vec<u8> =
            (0..8).flat_map(|i| filled(1024, Stamp { offset: STAMP.offset + i * 1024, ..STAMP })).collect();
        assert_eq!(verify(&read, 7, STAMP.offset, Some(5)), Ok(STAMP));
        read[5 * 1024 + 700] ^= 1;
        assert_eq!(verify(&read, 7, STAMP.offset, Some(5)), Err(Wrong::Torn));
        read[5 * 1024..6 * 1024].fill(0);
        assert!(matches!(verify(&read, 7, STAMP.offset, Some(5)), Err(Wrong::NotOurs | Wrong::Zeroes)));
        read.truncate(5 * 1024 + 16);
        assert_eq!(verify(&read, 7, STAMP.offset, Some(5)), Err(Wrong::Zeroes));
    }

    /// Storage that deduplicates or compresses must find nothing: not one 8-byte word occurs twice in 1 MiB, at any of
    /// the block sizes, but those of the header.
    #[test]
    fn nothing_repeats() {
        for bytes in [512, 4096, 8192, 65_536] {
            let mut seen = HashSet::new();
            for offset in (0..1 << 20).step_by(bytes) {
                let block = filled(bytes, Stamp { offset, ..STAMP });
                let payload = block[HEADER_BYTES..].chunks_exact(8);
                let fresh = payload.filter(|&word| seen.insert(<[u8; 8]>::try_from(word).unwrap())).count();
                assert_eq!(fresh, (bytes - HEADER_BYTES) / 8, "{bytes} at {offset}");
            }
        }
    }
}
