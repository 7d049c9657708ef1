//! Tests of the parent module: stories of many files and one power switch.

use super::*;
use crate::buffer::Buffer;
use crate::outcome::Outcome;
use crate::queue::{Action, Request};
use std::sync::atomic::{AtomicU64, Ordering};

const KIB: usize = 1024;

fn access(dsync: bool) -> Access {
    Access { read: true, write: true, direct: false, dsync }
}

fn storage() -> SimStorage {
    let storage = SimStorage::new(Promises::default(), Seed(1));
    storage.create_directory("/db".as_ref()).unwrap();
    storage
}

fn make(storage: &SimStorage, name: &str, dsync: bool) -> Arc<dyn Disk> {
    storage.create(&Path::new("/db").join(name), 64 * KIB as u64, access(dsync)).unwrap()
}

fn first_byte(storage: &SimStorage, name: &str, offset: usize) -> u8 {
    storage.read(&Path::new("/db").join(name)).unwrap()[offset]
}

/// A log is written durably, then a data file not durably: whenever the power goes, the log is there.
#[test]
fn what_was_durable_survives_in_every_file() {
    let (mut lost, mut kept) = (0, 0);
    for seed in 0..50 {
        let storage = storage();
        let (log, data) = (make(&storage, "log", true), make(&storage, "data", false));
        assert!(data.write_at(&[1; 512], 0).is_full());
        assert!(log.write_at(&[2; 8 * KIB], 0).is_full());
        assert_eq!(storage.pending(), 1);
        storage.crash(Seed(seed));
        assert_eq!(first_byte(&storage, "log", 8 * KIB - 1), 2);
        match first_byte(&storage, "data", 0) {
            0 => lost += 1,
            _ => kept += 1,
        }
        assert_eq!(log.write_at(&[3; 512], 0), Outcome::Errno(libc::EIO), "a handle of before the crash");
        assert_eq!(storage.pending(), 0);
    }
    assert!(lost > 10 && kept > 10, "{lost} lost, {kept} kept");
}

/// A fork taken in the middle of a durable write meets every fate; what was acknowledged before it none.
#[test]
fn a_write_is_torn_in_the_middle_and_the_one_before_is_not() {
    let storage = storage();
    let log = make(&storage, "log", true);
    let forks = Arc::new(Mutex::new(Vec::new()));
    let keep = forks.clone();
    storage.on_call(Some(Arc::new(move |storage, info| {
        if info.call == Call::Write && info.offset > 0 {
            keep.lock().unwrap().push(storage.fork());
        }
    })));
    assert!(log.write_at(&[1; 4 * KIB], 0).is_full());
    assert!(log.write_at(&[2; 4 * KIB], 4 * KIB as u64).is_full());
    storage.on_call(None);
    let forks = std::mem::take(&mut *forks.lock().unwrap());
    assert_eq!(forks.len(), 1);
    let mut fates = std::collections::BTreeSet::new();
    for seed in 0..100 {
        let fork = forks[0].fork();
        fork.crash(Seed(seed));
        let content = fork.read("/db/log".as_ref()).unwrap();
        assert!(content[..4 * KIB].iter().all(|byte| *byte == 1));
        let second: Vec<bool> = content[4 * KIB..8 * KIB].chunks(512).map(|sector| sector[0] == 2).collect();
        assert!(content[4 * KIB..8 * KIB].chunks(512).all(|s| s.iter().all(|byte| *byte == s[0])), "sectors");
        fates.insert((second.iter().any(|there| *there), second.iter().all(|there| *there)));
    }
    assert_eq!(fates.len(), 3, "there, gone and torn: {fates:?}");
    assert_eq!(first_byte(&storage, "log", 4 * KIB), 2, "the original went on");
}

/// Two writes in flight at once: a crash before the first is reaped may keep either, both, or parts.
#[test]
fn writes_in_flight_in_a_queue_meet_every_fate() {
    let mut fates = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let storage = storage();
        let file = make(&storage, "data", true);
        let mut queue = storage.open_queue(Api::IoUring, 2, 4096, &[file]).unwrap();
        for slot in 0..2 {
            queue.buffer_mut(slot).fill(1);
            let offset = u64::from(slot) * 4096;
            queue.stage(slot, Request { file: 0, offset, bytes: 4096, action: Action::Write });
        }
        assert_eq!(queue.submit().unwrap(), 2);
        storage.crash(Seed(seed));
        let content = storage.read("/db/data".as_ref()).unwrap();
        fates.insert((content[0], content[4096]));
        let mut done = Vec::new();
        queue.reap(2, &mut done).unwrap();
        assert!(done.iter().all(|completion| completion.outcome == Outcome::Errno(libc::EIO)));
    }
    assert_eq!(fates.len(), 4, "{fates:?}");
}

#[test]
fn a_queue_reads_what_it_wrote() {
    let storage = storage();
    let file = make(&storage, "data", true);
    let mut queue = storage.open_queue(Api::Threads, 4, 4096, std::slice::from_ref(&file)).unwrap();
    let mut done = Vec::new();
    for (action, fill) in [(Action::Write, 7), (Action::Read, 0)] {
        for slot in 0..4 {
            queue.buffer_mut(slot).fill(fill);
            queue.stage(slot, Request { file: 0, offset: u64::from(slot) * 4096, bytes: 4096, action });
        }
        done.clear();
        queue.submit().unwrap();
        queue.reap(4, &mut done).unwrap();
        assert!(done.len() == 4 && done.iter().all(|completion| completion.outcome.is_full()));
    }
    assert!((0..4).all(|slot| queue.buffer(slot).iter().all(|byte| *byte == 7)));
    assert_eq!(storage.pending(), 0, "the file is O_DSYNC");
}

#[test]
fn names_are_durable_and_half_made_files_are_seen() {
    let storage = storage();
    make(&storage, "old", true);
    storage.replace("/db/small".as_ref(), b"one").unwrap();
    let forks = Arc::new(Mutex::new(Vec::new()));
    let keep = forks.clone();
    storage.on_call(Some(Arc::new(move |storage, info| {
        if info.call == Call::Name {
            keep.lock().unwrap().push(storage.fork());
        }
    })));
    make(&storage, "new", true);
    storage.extend("/db/new".as_ref(), 64 * KIB as u64, 128 * KIB as u64).unwrap();
    storage.replace("/db/small".as_ref(), b"two").unwrap();
    storage.remove("/db/old".as_ref()).unwrap();
    storage.on_call(None);
    let seen: Vec<_> = std::mem::take(&mut *forks.lock().unwrap())
        .into_iter()
        .map(|fork| {
            fork.crash(Seed(0));
            let new = fork.read("/db/new".as_ref()).map(|content| content.len() / KIB).unwrap_or(0);
            (new, fork.read("/db/small".as_ref()).unwrap(), fork.exists("/db/old".as_ref()))
        })
        .collect();
    let one = b"one".to_vec();
    let expected = [0, 32, 64, 96, 128].map(|new| (new, one.clone(), true));
    assert_eq!(seen[..5], expected);
    assert_eq!(seen[5], (128, b"two".to_vec(), true));
    let refused = storage.create("/db/new".as_ref(), 1, access(true)).err().unwrap();
    assert!(matches!(refused, IoError::Exists { .. }));
    assert!(matches!(storage.open("/db/old".as_ref(), access(true)), Err(IoError::NoSuchFile { .. })));
    let names: Vec<_> = storage.list("/db".as_ref()).unwrap();
    assert_eq!(names, [PathBuf::from("/db/new"), PathBuf::from("/db/small")]);
}

/// The n-th call over all files fails, for n = 1, 2, 3 … until none does: each time somebody is told.
#[test]
fn every_call_can_fail() {
    for trouble in [Trouble::Errno(libc::EIO), Trouble::Errno(libc::ENOSPC), Trouble::Short(512)] {
        let mut failures = 0;
        for nth in 1.. {
            let storage = storage();
            let base = storage.calls();
            storage.inject(Fault { on: Call::Any, nth, for_ever: false, trouble });
            let result = work(&storage);
            if storage.fired() == 0 {
                assert!(result.is_ok());
                assert_eq!(storage.calls() - base, nth - 1);
                break;
            }
            assert!(result.is_err(), "call {nth} failed and nobody said so");
            failures += 1;
        }
        assert_eq!(failures, 6);
    }
}

fn work(storage: &SimStorage) -> Result<(), IoError> {
    let path = Path::new("/db/a");
    let disk = storage.create(path, 4096, access(true))?;
    disk.write_at(&[1; 4096], 0).check(path, "pwrite", 0, 4096)?;
    let mut back = [0; 4096];
    disk.read_at(&mut back, 0).check(path, "pread", 0, 4096)?;
    storage.extend(path, 4096, 8192)
}

#[test]
fn a_failed_durable_write_poisons_and_may_have_arrived() {
    let mut arrived = 0;
    for seed in 0..60 {
        let storage = storage();
        let (a, b) = (make(&storage, "a", true), make(&storage, "b", true));
        let fault = Fault { on: Call::Write, nth: 1, for_ever: false, trouble: Trouble::Errno(libc::EIO) };
        storage.inject_on("/db/a".as_ref(), fault);
        assert!(b.write_at(&[5; 512], 0).is_full(), "the fault is on the other file");
        assert_eq!(a.write_at(&[1; 512], 0), Outcome::Errno(libc::EIO));
        assert_eq!(a.write_at(&[1; 512], 0), Outcome::Errno(libc::EIO), "poisoned");
        assert_eq!(storage.fired(), 1);
        storage.crash(Seed(seed));
        arrived += u32::from(first_byte(&storage, "a", 0));
    }
    assert!((10..50).contains(&arrived), "{arrived}");
    let storage = storage();
    let a = make(&storage, "a", true);
    let fault = Fault { on: Call::Write, nth: 1, for_ever: false, trouble: Trouble::Errno(libc::ENOSPC) };
    storage.inject(fault);
    assert_eq!(a.write_at(&[1; 512], 0), Outcome::Errno(libc::ENOSPC));
    assert!(a.write_at(&[2; 512], 0).is_full(), "no space is no poison");
}

#[test]
fn a_full_disk_leaves_things_as_they_were() {
    let storage = storage();
    storage.set_capacity(Some(100 * KIB as u64));
    make(&storage, "a", true);
    let path = Path::new("/db/b");
    assert!(matches!(storage.create(path, 64 * KIB as u64, access(true)), Err(IoError::NoSpace { .. })));
    assert!(!storage.exists(path));
    let a = Path::new("/db/a");
    assert!(matches!(storage.extend(a, 64 * KIB as u64, 128 * KIB as u64), Err(IoError::NoSpace { .. })));
    assert_eq!(storage.read(a).unwrap().len(), 64 * KIB);
    storage.set_capacity(None);
    storage.extend(a, 64 * KIB as u64, 128 * KIB as u64).unwrap();
}

#[test]
fn a_lying_device_loses_what_it_acknowledged() {
    let lost = (0..50).any(|seed| {
        let storage = storage();
        storage.set_lying(true);
        let log = make(&storage, "log", true);
        assert!(log.write_at(&[1; 512], 0).is_full() && log.sync().is_full());
        storage.crash(Seed(seed));
        first_byte(&storage, "log", 0) == 0
    });
    assert!(lost);
}

/// A killed process leaves its writes with the kernel; only a later power cut can take them.
#[test]
fn a_killed_process_loses_nothing_that_it_wrote() {
    let storage = storage();
    let data = make(&storage, "data", false);
    let lock = storage.lock("/db/lock".as_ref()).unwrap();
    assert!(matches!(storage.lock("/db/lock".as_ref()), Err(IoError::Locked { .. })));
    assert!(data.write_at(&[1; 512], 0).is_full());
    storage.kill(Seed(1));
    assert_eq!(first_byte(&storage, "data", 0), 1);
    assert_eq!(storage.pending(), 1);
    let next = storage.lock("/db/lock".as_ref()).unwrap();
    drop(lock);
    assert!(storage.lock("/db/lock".as_ref()).is_err(), "the dead owner's guard frees nothing");
    drop(next);
    storage.lock("/db/lock".as_ref()).unwrap();
}

#[test]
fn direct_files_want_alignment_and_access_is_kept() {
    let storage = storage();
    let path = Path::new("/db/direct");
    let disk = storage.create(path, 8192, Access { direct: true, ..access(true) }).unwrap();
    let mut buffer = Buffer::new(1024).unwrap();
    assert!(disk.write_at(&buffer[..512], 512).is_full());
    assert_eq!(disk.write_at(&buffer[..512], 100), Outcome::Errno(libc::EINVAL));
    assert_eq!(disk.read_at(&mut buffer[1..513], 0), Outcome::Errno(libc::EINVAL));
    assert_eq!(disk.write_at(&buffer[..100], 0), Outcome::Errno(libc::EINVAL));
    let pieces = buffer.split_at_mut(512);
    assert!(disk.read_vectored_at(&mut [pieces.0, pieces.1], 0).is_full());
    let (a, b) = buffer[..512].split_at_mut(100);
    assert_eq!(disk.read_vectored_at(&mut [a, b], 0), Outcome::Errno(libc::EINVAL));
    let reader = storage.open(path, Access { write: false, ..access(false) }).unwrap();
    assert_eq!(reader.write_at(&[1], 0), Outcome::Errno(libc::EBADF));
    storage.damage(path, 512, &[9]);
    assert!(reader.read_at(&mut buffer[..1], 512).is_full() && buffer[0] == 9);
}

/// An observer that cuts the power itself: the call that it saw never comes back.
#[test]
fn the_power_goes_in_the_middle_of_a_call() {
    let storage = storage();
    let log = make(&storage, "log", true);
    let countdown = AtomicU64::new(3);
    storage.on_call(Some(Arc::new(move |storage, _| {
        if countdown.fetch_sub(1, Ordering::SeqCst) == 1 {
            storage.crash(Seed(4));
        }
    })));
    let outcomes: Vec<_> = (0..4).map(|n| log.write_at(&[1; 512], n * 512).is_full()).collect();
    assert_eq!(outcomes, [true, true, false, false]);
    assert_eq!((first_byte(&storage, "log", 0), first_byte(&storage, "log", 512)), (1, 1));
    assert_eq!(first_byte(&storage, "log", 3 * 512), 0);
}
