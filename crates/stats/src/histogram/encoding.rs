//! A histogram as bytes, for the record.
//!
//! ```text
//! 0x48 0x31   'H' '1': the layout below, 64 buckets per doubling, 37 bits
//! varint      count, sum, min, max
//! varint ×2   for each non-empty bucket, ascending: index minus the previous index (the first: plus one), count
//! ```
//! Varints are LEB128. A second of latencies takes about 300 bytes.

use super::{BUCKETS, Histogram, bounds};
use std::fmt;

const MAGIC: [u8; 2] = *b"H1";

/// Why bytes are not a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// They do not begin with the mark of a layout that this version knows.
    Layout,
    /// They end in the middle of a number.
    Truncated,
    /// They contradict themselves: counts that do not add up, a bucket out of range or order, a minimum or maximum
    /// outside the buckets.
    Inconsistent,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Layout => "not a histogram, or one of a newer version of the program",
            Self::Truncated => "the histogram ends too early",
            Self::Inconsistent => "the histogram contradicts itself: it was damaged",
        })
    }
}

impl std::error::Error for DecodeError {}

fn put(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn take(bytes: &mut &[u8]) -> Result<u64, DecodeError> {
    let mut n = 0u64;
    for shift in (0..70).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or(DecodeError::Truncated)?;
        *bytes = rest;
        let low = u64::from(byte & 0x7f);
        if shift == 63 && low > 1 {
            return Err(DecodeError::Inconsistent);
        }
        n |= low << shift;
        if byte & 0x80 == 0 {
            return Ok(n);
        }
    }
    Err(DecodeError::Inconsistent)
}

impl Histogram {
    /// As bytes; [`Histogram::decode`] gives the same histogram back.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        for n in [self.count, self.sum, self.min(), self.max] {
            put(&mut out, n);
        }
        let mut next = 0;
        for (index, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            put(&mut out, (index + 1 - next) as u64);
            put(&mut out, *count);
            next = index + 1;
        }
        out
    }

    /// From the bytes of [`Histogram::encode`].
    ///
    /// # Errors
    /// [`DecodeError`] when the bytes are of another layout, cut, or damaged.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut rest = bytes.strip_prefix(&MAGIC).ok_or(DecodeError::Layout)?;
        let mut h = Self::new();
        h.count = take(&mut rest)?;
        h.sum = take(&mut rest)?;
        let min = take(&mut rest)?;
        h.max = take(&mut rest)?;
        let (mut next, mut total) = (0u64, 0u64);
        while !rest.is_empty() {
            let step = take(&mut rest)?;
            let count = take(&mut rest)?;
            next = next.checked_add(step).ok_or(DecodeError::Inconsistent)?;
            total = total.checked_add(count).ok_or(DecodeError::Inconsistent)?;
            if step == 0 || next > BUCKETS as u64 || count == 0 {
                return Err(DecodeError::Inconsistent);
            }
            h.counts[next as usize - 1] = count;
        }
        if h.count > 0 {
            h.min = min;
        }
        if total == h.count && h.ends_fit(min) { Ok(h) } else { Err(DecodeError::Inconsistent) }
    }

    /// Minimum and maximum lie in the outermost buckets.
    fn ends_fit(&self, min: u64) -> bool {
        let first = self.counts.iter().position(|count| *count > 0).map(bounds);
        let last = self.counts.iter().rposition(|count| *count > 0);
        match (first, last) {
            (Some((low, high)), Some(last)) => {
                let clamped = |ns: u64| ns.min(bounds(BUCKETS - 1).1 - 1);
                let (last_low, last_high) = bounds(last);
                (low..high).contains(&clamped(min)) && (last_low..last_high).contains(&clamped(self.max))
            }
            _ => min == 0 && self.max == 0 && self.sum == 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Rng, Seed};

    fn sample() -> Histogram {
        let mut rng = Rng::new(Seed(5));
        let mut h = Histogram::new();
        for _ in 0..3_000 {
            h.record((200_000.0 * rng.normal().exp()) as u64);
        }
        h.record(u64::MAX / 4);
        h
    }

    #[test]
    fn comes_back_the_same() {
        for h in [Histogram::new(), sample()] {
            assert_eq!(Histogram::decode(&h.encode()), Ok(h));
        }
    }

    #[test]
    fn every_cut_is_seen() {
        let bytes = sample().encode();
        for end in 0..bytes.len() {
            assert!(Histogram::decode(&bytes[..end]).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn damage_never_panics_and_counts_are_guarded() {
        let bytes = sample().encode();
        assert_eq!(Histogram::decode(b"X1"), Err(DecodeError::Layout));
        let mut wrong_count = bytes.clone();
        wrong_count[2] ^= 1;
        assert_eq!(Histogram::decode(&wrong_count), Err(DecodeError::Inconsistent));
        let mut rng = Rng::new(Seed(6));
        for _ in 0..2_000 {
            let mut damaged = bytes.clone();
            let at = rng.below(bytes.len() as u64) as usize;
            damaged[at] ^= 1 << rng.below(8);
            if let Ok(h) = Histogram::decode(&damaged) {
                assert_eq!(h.buckets().map(|b| b.2).sum::<u64>(), h.count());
            }
        }
    }
}
