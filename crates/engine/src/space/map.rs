//! Bits of a space map page: finding free units, marking them.

use super::layout::map::{BITS, USED};
use crate::change::{Change, Handle};
use crate::page::{self, PageKind, get_u32};

/// First of `want` neighbouring free units among `from..limit`, in a map page (or a page of zeroes).
pub fn find(page: &[u8], limit: u32, want: u32) -> Option<u32> {
    let bits = &page[BITS..];
    let fresh = page::kind(page) == Some(PageKind::Free);
    // The range's own unit is used, also when the page does not say so yet.
    let (mut at, mut run) = (1, 0);
    while at < limit {
        let byte = if fresh { 0 } else { bits[at as usize / 8] };
        let whole = at % 8 == 0 && at + 8 <= limit;
        if whole && byte == 0xFF {
            run = 0;
            at += 8;
        } else if whole && byte == 0 {
            run += 8;
            at += 8;
        } else {
            run = if byte >> (at % 8) & 1 == 0 { run + 1 } else { 0 };
            at += 1;
        }
        if run >= want {
            return Some(at - run);
        }
    }
    None
}

/// Bytes of edits that [`mark`] makes at most.
pub const MARK_BYTES: usize = 4 * 16;

/// Marks units as used or free.
///
/// # Panics
/// When one of them is so already: an extent would belong to two segments.
pub fn mark(change: &mut Change<'_>, map: Handle, first: u32, count: u32, used: bool) {
    let bytes = change.bytes(map);
    let same =
        (first..first + count).any(|unit| (bytes[BITS + unit as usize / 8] >> (unit % 8) & 1 == 1) == used);
    assert!(!same, "units {first} to {} of map {} marked twice", first + count - 1, change.id(map));
    let before = get_u32(bytes, USED);
    let after = if used { before + count } else { before - count };
    change.write(map, USED, &after.to_le_bytes());

    let end = first + count;
    let (head_end, tail) = (first.next_multiple_of(8).min(end), (end / 8 * 8).max(first));
    mark_in_byte(change, map, first, head_end, used);
    if head_end < tail {
        let at = BITS + head_end as usize / 8;
        change.fill(map, at, (tail - head_end) as usize / 8, if used { 0xFF } else { 0 });
    }
    mark_in_byte(change, map, tail.max(head_end), end, used);
}

/// Units `first..end` of one byte.
fn mark_in_byte(change: &mut Change<'_>, map: Handle, first: u32, end: u32, used: bool) {
    if first >= end {
        return;
    }
    let at = BITS + first as usize / 8;
    let mask = (first..end).fold(0u8, |mask, unit| mask | 1 << (unit % 8));
    let byte = change.bytes(map)[at];
    change.write(map, at, &[if used { byte | mask } else { byte & !mask }]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::PageId;

    fn page(used: &[u32]) -> Vec<u8> {
        let mut page = vec![0; 2048];
        page::format(&mut page, PageId { file: 1, block: 1 }, PageKind::SpaceMap, 0);
        for unit in used.iter().chain(&[0]) {
            page[BITS + *unit as usize / 8] |= 1 << (unit % 8);
        }
        page
    }

    #[test]
    fn finds_the_first_run_that_is_long_enough() {
        for (used, limit, want, found) in [
            (&[][..], 100, 1, Some(1)),
            (&[1, 2, 3], 100, 4, Some(4)),
            (&[1, 4, 8], 100, 3, Some(5)),
            (&[1, 4, 8], 100, 4, Some(9)),
            (&[40], 48, 38, Some(1)),
            (&[40], 48, 39, Some(1)),
            (&[40], 48, 40, None),
            (&[40], 100, 40, Some(41)),
            (&[], 1, 1, None),
            (&[], 0, 1, None),
        ] {
            assert_eq!(find(&page(used), limit, want), found, "{used:?} {limit} {want}");
        }
        assert_eq!(find(&vec![0; 2048], 64, 63), Some(1), "a page of zeroes");
        assert_eq!(find(&vec![0; 2048], 64, 64), None, "its own unit is used");
    }

    #[test]
    fn finds_what_a_bit_by_bit_search_finds() {
        let mut rng = units::Rng::new(units::Seed(5));
        for _ in 0..200 {
            let density = rng.below(10) + 1;
            let used: Vec<u32> = (1..400).filter(|_| rng.below(10) < density).collect();
            let want = rng.below(20) as u32 + 1;
            let free = |unit: u32| !used.contains(&unit);
            let simple = (1..=400 - want).find(|first| (*first..first + want).all(free));
            assert_eq!(find(&page(&used), 400, want), simple, "{used:?} {want}");
        }
    }
}
