//! Doubts about numbers that come from a simulated disk, from counters, or from elsewhere.

use host::counters::{CpuTimes, Snapshot};
use io::sim::{CrashDisk, Disk, LyingDisk, Promises};
use io::stamp::{Stamp, Stamper, verify};
use io::{File, Outcome};
use lab::evidence::Delta;
use stats::check::{self, Check, Status};
use units::Seed;

const BLOCK_BYTES: usize = 4096;
const BLOCKS: u64 = 64;

/// It fails or warns as `status`, is the entry `id` of the catalogue, and says all `words`.
fn caught(check: &Check, id: &str, status: Status, words: &[&str]) {
    assert_eq!((check.id, check.status), (id, status), "{check:?}");
    for word in words {
        assert!(check.evidence.contains(word), "no {word:?} in: {}", check.evidence);
    }
}

/// An article's table had 20 µs beside 25,547 reads per second, where the other rows have 9.6 requests in flight. Nobody's tool
/// said that both cannot be true.
#[test]
fn twenty_microseconds_at_25547_reads_per_second() {
    let known = 27_066.0 * 355e-6;
    let check = check::little_imported(25_547.0, 20_000.0, Some(known));
    caught(&check, "L2", Status::Fail, &["25,547/s", "0.51", "9.6", "376 µs", "cache"]);
    assert!(check.withdraws());
    // The row beside it is consistent.
    assert_eq!(check::little_imported(27_066.0, 355_000.0, Some(known)).status, Status::Pass);
}

/// The hypervisor takes 8 % of the CPU time between two readings of /proc/stat.
#[test]
fn injected_steal() {
    let at = |user, idle, steal| Snapshot {
        cpu: Some(CpuTimes { user, idle, steal, ..CpuTimes::default() }),
        ..Snapshot::default()
    };
    let stolen = Delta::between(&at(1000, 5000, 10), &at(1040, 5052, 18));
    caught(&check::steal(stolen.steal_share, None), "H1", Status::Fail, &["8.0 %", "hypervisor"]);
    let honest = Delta::between(&at(1000, 5000, 10), &at(1040, 5060, 10));
    assert_eq!(check::steal(honest.steal_share, None).status, Status::Pass);
    let silent = Delta::between(&Snapshot::default(), &Snapshot::default());
    assert_eq!(check::steal(silent.steal_share, None).status, Status::NotApplicable, "absent is not zero");
}

/// Writes stamped blocks, syncs each, loses power, and counts what is no longer there.
fn lost_after_power_cut(disk: &dyn Disk, crash: &dyn Fn(Seed), seed: Seed) -> (u64, Vec<String>) {
    let stamper = Stamper::new(seed);
    let mut block = vec![0; BLOCK_BYTES];
    for index in 0..BLOCKS {
        let offset = index * BLOCK_BYTES as u64;
        stamper.fill(&mut block, Stamp { file_id: 7, offset, generation: 1 });
        assert_eq!(disk.write_at(&block, offset), Outcome::Full);
        assert_eq!(disk.sync(), Outcome::Full, "acknowledged");
    }
    crash(seed);
    let mut wrong = Vec::new();
    for index in 0..BLOCKS {
        let offset = index * BLOCK_BYTES as u64;
        assert_eq!(disk.read_at(&mut block, offset), Outcome::Full);
        if let Err(error) = verify(&block, 7, offset, Some(1)) {
            wrong.push(error.to_string());
        }
    }
    (BLOCKS, wrong)
}

/// A disk acknowledges every sync and keeps nothing. The stamps tell, and so do the missing flushes and the impossible speed.
#[test]
fn an_fsync_that_lies() {
    for seed in 1..=5 {
        let liar = LyingDisk::new(BLOCKS * BLOCK_BYTES as u64, Promises::default());
        let (verified, wrong) = lost_after_power_cut(&liar, &|s| liar.crash(s), Seed(seed));
        assert_eq!(liar.syncs_acknowledged(), BLOCKS);
        let first = wrong.first().unwrap_or_else(|| panic!("seed {seed}: nothing was lost"));
        let check = check::wrong_data(verified, wrong.len() as u64, first);
        caught(&check, "D2", Status::Fail, &["wrong", "do not use this storage for a database"]);

        let honest = CrashDisk::new(BLOCKS * BLOCK_BYTES as u64, Promises::default());
        let (verified, wrong) = lost_after_power_cut(&honest, &|s| honest.crash(s), Seed(seed));
        assert_eq!(
            check::wrong_data(verified, wrong.len() as u64, "stamp").status,
            Status::Pass,
            "{wrong:?}"
        );
    }
    let no_flush = check::volatile_cache(Some("write back"), Some(3), 1000, 90e3, None);
    caught(&no_flush, "W1", Status::Fail, &["write-back", "flushes per sync", "power cut"]);
    let too_fast = check::volatile_cache(Some("write back"), Some(1000), 1000, 2e3, None);
    caught(&too_fast, "W1", Status::Fail, &["no medium is that fast"]);
    let faster_than_it_turns = check::volatile_cache(None, None, 1000, 1e6, Some(7200.0));
    caught(&faster_than_it_turns, "W1", Status::Fail, &["7200", "faster than it turns"]);
    assert_eq!(check::volatile_cache(Some("write back"), Some(1000), 1000, 90e3, None).status, Status::Pass);
}

/// A stamp tells a block from another place, an old one, and one that is only half there.
#[test]
fn lost_torn_and_misdirected_writes() {
    let stamper = Stamper::new(Seed(3));
    let block = |offset: u64, generation: u64| {
        let mut block = vec![0; BLOCK_BYTES];
        stamper.fill(&mut block, Stamp { file_id: 7, offset, generation });
        block
    };
    let wrong = |block: &[u8]| verify(block, 7, 8192, Some(5)).expect_err("it is wrong").to_string();
    let mut torn = block(8192, 5);
    torn[2048..].copy_from_slice(&block(8192, 4)[2048..]);
    let kinds = [wrong(&block(4096, 5)), wrong(&block(8192, 4)), wrong(&torn), wrong(&vec![0; BLOCK_BYTES])];
    let mut different = kinds.to_vec();
    different.sort();
    different.dedup();
    assert_eq!(different.len(), kinds.len(), "each kind has its own words: {kinds:?}");
    assert!(verify(&block(8192, 5), 7, 8192, Some(5)).is_ok());
}

/// A file that was allocated and never written is answered by the kernel, at 420,000 reads per second and with Little's law
/// satisfied. Only the extents and the device's counters tell.
#[test]
fn an_allocated_file_that_was_never_written() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
    let path = folder.path().join("allocated");
    std::fs::File::create(&path).expect("create").set_len(1 << 20).expect("a hole");
    let access = io::Access { read: true, write: false, direct: false, dsync: false };
    let extents = File::open(&path, access).and_then(|f| f.extents()).expect("extents");
    let check = check::holes(1 << 20, Some(extents.unwritten_bytes), Some(extents.hole_bytes));
    caught(&check, "D1", Status::Fail, &["holes", "answered with zeros by the kernel"]);
    caught(&check::funnel_ops(420_000, Some(0), 1.0), "F1", Status::Fail, &["420,000"]);
    assert_eq!(
        check::little_own(420_000.0, 9_310.0, 4.0).status,
        Status::Pass,
        "self-consistency is not enough"
    );
}
