//! Tests of the parent module: stories of lost power.

use super::*;
use crate::stamp::{Stamp, Stamper, Wrong, verify};
use std::sync::LazyLock;
use units::Seed;

static STAMPER: LazyLock<Stamper> = LazyLock::new(|| Stamper::new(Seed(1)));
const BLOCK: usize = 4096;
const BLOCKS: u64 = 16;

fn write(disk: &dyn Disk, block: u64, generation: u64) -> Outcome {
    let mut data = vec![0; BLOCK];
    let offset = block * BLOCK as u64;
    STAMPER.fill(&mut data, Stamp { file_id: 1, offset, generation });
    disk.write_at(&data, offset)
}

fn read(disk: &dyn Disk, block: u64, least: u64) -> Result<u64, Wrong> {
    let mut data = vec![0; BLOCK];
    assert_eq!(disk.read_at(&mut data, block * BLOCK as u64), Outcome::Full);
    verify(&data, 1, block * BLOCK as u64, Some(least)).map(|stamp| stamp.generation)
}

fn disk(promises: Promises) -> CrashDisk {
    CrashDisk::new(BLOCKS * BLOCK as u64, promises)
}

#[test]
fn what_was_synced_survives_every_crash() {
    for seed in 0..200 {
        let disk = disk(Promises::default());
        for block in 0..BLOCKS {
            assert_eq!(write(&disk, block, 1), Outcome::Full);
        }
        assert_eq!(disk.sync(), Outcome::Full);
        assert_eq!((disk.pending(), disk.syncs()), (0, 1));
        for block in 0..BLOCKS / 2 {
            assert_eq!(write(&disk, block, 2), Outcome::Full);
        }
        assert_eq!(read(&disk, 0, 2), Ok(2), "a reader sees what was written, synced or not");
        disk.crash(Seed(seed));
        for block in BLOCKS / 2..BLOCKS {
            assert_eq!(read(&disk, block, 1), Ok(1));
        }
    }
}

#[test]
fn what_was_not_synced_meets_every_fate() {
    let (mut survived, mut vanished, mut torn) = (0, 0, 0);
    for seed in 0..300 {
        let disk = disk(Promises::default());
        assert_eq!(write(&disk, 3, 1), Outcome::Full);
        assert_eq!(disk.sync(), Outcome::Full);
        assert_eq!(write(&disk, 3, 2), Outcome::Full);
        disk.crash(Seed(seed));
        match read(&disk, 3, 2) {
            Ok(2) => survived += 1,
            Err(Wrong::Stale { found_generation: 1 }) => vanished += 1,
            Err(Wrong::Torn) => torn += 1,
            other => panic!("seed {seed}: {other:?}"),
        }
    }
    assert!(survived > 50 && vanished > 50 && torn > 50, "{survived} {vanished} {torn}");
}

#[test]
fn writes_may_arrive_in_another_order() {
    let overtaken = (0..300).any(|seed| {
        let disk = disk(Promises { whole_writes: true, ..Promises::default() });
        assert_eq!(write(&disk, 0, 1), Outcome::Full);
        assert_eq!(write(&disk, 1, 1), Outcome::Full);
        disk.crash(Seed(seed));
        read(&disk, 0, 1).is_err() && read(&disk, 1, 1).is_ok()
    });
    assert!(overtaken);
}

#[test]
fn promises_are_kept() {
    for seed in 0..300 {
        let disk = disk(Promises { whole_writes: true, in_order: true, ..Promises::default() });
        for block in 0..BLOCKS {
            assert_eq!(write(&disk, block, 1), Outcome::Full);
        }
        disk.crash(Seed(seed));
        let there: Vec<bool> = (0..BLOCKS)
            .map(|block| match read(&disk, block, 1) {
                Ok(1) => true,
                Err(Wrong::Zeroes) => false,
                other => panic!("seed {seed}: {other:?}: whole writes do not tear"),
            })
            .collect();
        assert!(there.is_sorted_by(|a, b| a >= b), "seed {seed}: {there:?}: an earlier write is missing");
    }
}

#[test]
fn the_same_seed_crashes_alike() {
    let image = |seed| {
        let disk = disk(Promises::default());
        (0..BLOCKS).for_each(|block| assert_eq!(write(&disk, block, 1), Outcome::Full));
        disk.crash(Seed(seed));
        let mut image = vec![0; disk.bytes() as usize];
        assert_eq!(disk.read_at(&mut image, 0), Outcome::Full);
        image
    };
    assert_eq!(image(4), image(4));
    assert_ne!(image(4), image(5));
}

#[test]
fn a_durable_write_makes_nothing_else_durable() {
    let lost = (0..100).any(|seed| {
        let disk = disk(Promises::default());
        assert_eq!(write(&disk, 0, 1), Outcome::Full);
        let mut data = vec![0; BLOCK];
        STAMPER.fill(&mut data, Stamp { file_id: 1, offset: BLOCK as u64, generation: 1 });
        assert_eq!(disk.write_at_dsync(&data, BLOCK as u64), Outcome::Full);
        disk.crash(Seed(seed));
        assert_eq!(read(&disk, 1, 1), Ok(1), "the durable one survives");
        read(&disk, 0, 1).is_err()
    });
    assert!(lost, "the other one may be lost");
}

/// The disk that everybody fears: it says yes to every sync. Stamps find what it lost.
#[test]
fn a_lying_disk_is_caught_by_stamps() {
    let caught = (0..50).any(|seed| {
        let disk = LyingDisk::new(BLOCKS * BLOCK as u64, Promises::default());
        assert_eq!(write(&disk, 2, 9), Outcome::Full);
        assert_eq!(disk.sync(), Outcome::Full);
        assert_eq!(disk.syncs_acknowledged(), 1);
        disk.crash(Seed(seed));
        read(&disk, 2, 9).is_err()
    });
    assert!(caught);
}

#[test]
fn the_ends_of_the_disk_are_hard() {
    let disk = disk(Promises::default());
    let end = disk.bytes();
    let mut data = vec![1; BLOCK];
    assert_eq!(disk.write_at(&data, end), Outcome::Errno(libc::ENOSPC));
    assert_eq!(disk.write_at(&data, end - 512), Outcome::Short(512));
    assert_eq!(disk.read_at(&mut data, end - 512), Outcome::Short(512));
    assert_eq!(disk.read_at(&mut data, end + 512), Outcome::Short(0));
}

#[test]
fn a_fault_strikes_the_chosen_call() {
    let fault = Fault { on: Call::Sync, nth: 2, for_ever: true, trouble: Trouble::Errno(libc::EIO) };
    let disk = FaultyDisk::new(disk(Promises::default()), fault);
    assert_eq!(write(&disk, 0, 1), Outcome::Full);
    assert_eq!(disk.sync(), Outcome::Full);
    assert!(!disk.fired());
    assert_eq!(disk.sync(), Outcome::Errno(libc::EIO));
    assert_eq!(disk.sync(), Outcome::Errno(libc::EIO));
    assert!(disk.fired());
    assert_eq!(read(&disk, 0, 1), Ok(1));
    assert_eq!(disk.inner().syncs(), 1);
}

#[test]
fn a_short_write_leaves_its_beginning() {
    let fault = Fault { on: Call::Write, nth: 1, for_ever: false, trouble: Trouble::Short(512) };
    let disk = FaultyDisk::new(disk(Promises::default()), fault);
    assert_eq!(write(&disk, 0, 1), Outcome::Short(512));
    assert_eq!(read(&disk, 0, 1), Err(Wrong::Torn));
    assert_eq!(write(&disk, 0, 2), Outcome::Full);
    assert_eq!(read(&disk, 0, 2), Ok(2));
}

#[test]
fn a_simulated_queue_fills_pieces_like_a_real_one() {
    let disk: Arc<dyn Disk> = Arc::new(disk(Promises::default()));
    assert_eq!(disk.write_at(&[1, 2, 3, 4, 5, 6, 7, 8], 0), Outcome::Full);
    let (mut a, mut b) = ([0; 3], [0; 5]);
    assert_eq!(disk.read_vectored_at(&mut [&mut a, &mut b], 0), Outcome::Full);
    assert_eq!((a, b), ([1, 2, 3], [4, 5, 6, 7, 8]));
}

/// Generation 1 is written and not synced, then generation 2 durably over the same place: no crash may bring 1 back.
#[test]
fn an_older_write_never_lands_over_a_durable_one() {
    for whole_writes in [false, true] {
        for seed in 0..300 {
            let disk = disk(Promises { whole_writes, ..Promises::default() });
            assert_eq!(disk.write_at(&[1; 3 * BLOCK], 0), Outcome::Full);
            let mut data = vec![0; BLOCK];
            STAMPER.fill(&mut data, Stamp { file_id: 1, offset: BLOCK as u64, generation: 2 });
            assert_eq!(disk.write_at_dsync(&data, BLOCK as u64), Outcome::Full);
            assert_eq!(disk.pending(), 1);
            disk.crash(Seed(seed));
            assert_eq!(read(&disk, 1, 2), Ok(2), "seed {seed}");
        }
    }
}

#[test]
fn a_short_transfer_is_never_longer_than_asked() {
    let fault = Fault { on: Call::Any, nth: 1, for_ever: true, trouble: Trouble::Short(1 << 20) };
    let disk = FaultyDisk::new(disk(Promises::default()), fault);
    assert_eq!(write(&disk, 0, 1), Outcome::Full);
    assert_eq!(read(&disk, 0, 1), Ok(1));
}
