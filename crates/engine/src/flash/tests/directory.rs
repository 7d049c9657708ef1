//! The directory by itself.

use crate::flash::Policy;
use crate::flash::directory::{BYTES_PER_BLOCK_MAX, Candidate, Shard};
use crate::page::{Lsn, PageId};
use std::collections::BTreeMap;
use units::{Rng, Seed};

fn page(block: u32) -> PageId {
    PageId { file: 1, block }
}

fn candidate(block: u32) -> Candidate {
    Candidate { id: page(block), lsn: Lsn(u64::from(block)), object: block % 3, keep: false }
}

fn insert(shard: &mut Shard, block: u32) -> bool {
    !shard.has(page(block)) && shard.offer(candidate(block)).0.is_some_and(|slot| shard.settle(slot))
}

#[test]
fn memory_is_bounded() {
    for slots in [4096, 4097, 100_000] {
        let shard = Shard::new(slots, Policy::ScanResistant);
        assert!(shard.bytes() <= BYTES_PER_BLOCK_MAX * slots as usize, "{slots}: {}", shard.bytes());
    }
}

#[test]
fn a_block_that_changes_while_it_is_written_is_never_found_and_its_slot_waits() {
    let mut shard = Shard::new(1, Policy::Classic);
    let (offered, _) = shard.offer(candidate(7));
    assert_eq!(offered, Some(0));
    assert!(shard.find(page(7)).is_some_and(|found| found.pending), "not written yet");
    assert!(shard.remove(page(7)));
    let (offered, _) = shard.offer(candidate(8));
    assert_eq!(offered, None, "its write is still under way");
    assert!(!shard.settle(0));
    assert_eq!(shard.find(page(7)), None);
    assert!(insert(&mut shard, 8));
}

#[test]
fn classic_gives_up_what_was_not_used_for_longest() {
    let mut shard = Shard::new(3, Policy::Classic);
    assert!((1..=3).all(|block| insert(&mut shard, block)));
    assert!(shard.find(page(1)).is_some());
    assert!(insert(&mut shard, 4));
    assert_eq!([1, 2, 3, 4].map(|block| shard.find(page(block)).is_some()), [true, false, true, true]);
}

#[test]
fn a_scan_does_not_wash_out_what_is_used() {
    let mut shard = Shard::new(100, Policy::ScanResistant);
    assert!((0..100).all(|block| insert(&mut shard, block)));
    for _ in 0..3 {
        assert!((0..50).all(|block| shard.find(page(block)).is_some()));
    }
    let taken = (1_000..3_000).filter(|block| insert(&mut shard, *block)).count();
    assert_eq!(taken, 0, "seen once");
    assert!((0..50).all(|block| shard.find(page(block)).is_some()));
    let again = (2_900..3_000).filter(|block| insert(&mut shard, *block)).count();
    assert!(again > 20, "wanted a second time: {again}");
    assert!((0..50).all(|block| shard.find(page(block)).is_some()), "in place of what nobody wanted");
}

#[test]
fn blocks_to_keep_go_last() {
    let mut shard = Shard::new(10, Policy::Classic);
    for block in 0..5 {
        let (slot, _) = shard.offer(Candidate { keep: true, ..candidate(block) });
        assert!(shard.settle(slot.unwrap()));
    }
    assert!((5..200).all(|block| insert(&mut shard, block)));
    assert!((0..5).all(|block| shard.find(page(block)).is_some()));
}

/// A model beside the directory: what it has is what was put last and not removed.
#[test]
fn it_never_finds_what_was_removed() {
    for (seed, policy) in [(1, Policy::Classic), (2, Policy::ScanResistant), (3, Policy::ScanResistant)] {
        let mut shard = Shard::new(40, policy);
        let (mut rng, mut model, mut pending) = (Rng::new(Seed(seed)), BTreeMap::new(), Vec::new());
        for lsn in 0..20_000 {
            let id = page(rng.below(100) as u32);
            match rng.below(10) {
                0..4 => {
                    let entry =
                        Candidate { lsn: Lsn(lsn), id, object: id.block % 3, keep: rng.below(9) == 0 };
                    if !shard.has(id)
                        && let (Some(slot), _) = shard.offer(entry)
                    {
                        model.insert(id, lsn);
                        pending.push(slot);
                    }
                }
                4..6 => {
                    shard.remove(id);
                    model.remove(&id);
                }
                6..8 if !pending.is_empty() => {
                    let slot = pending.swap_remove(rng.below(pending.len() as u64) as usize);
                    shard.settle(slot);
                }
                _ => {
                    if let Some(found) = shard.find(id) {
                        assert_eq!(model.get(&id), Some(&found.lsn.0), "{id}");
                        assert_eq!(found.pending, pending.contains(&found.slot));
                        assert_eq!(shard.is_still(id, found), !found.pending);
                    }
                }
            }
            let there = shard.entries().count();
            assert_eq!(there, shard.valid_count() as usize);
            assert!(there + pending.len() + shard.free_count() as usize == 40, "slots are lost");
        }
        let (before, mut restored) = (shard.entries().collect::<Vec<_>>(), Shard::new(40, policy));
        restored.restore(&before);
        assert_eq!(restored.entries().collect::<Vec<_>>(), before);
        assert_eq!(restored.free_count() as usize, 40 - before.len());
    }
}
