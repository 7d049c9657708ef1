//! One test body over all APIs, over files and simulated disks.

use super::*;
use crate::mode::Access;
use crate::sim::{Call, CrashDisk, Disk, Fault, FaultyDisk, Promises, SimQueue, Trouble};
use crate::stamp::{Stamp, Stamper, verify};
use crate::testing::{Loop, Mount, folder, run};
use tempfile::TempDir;
use units::{Rng, Seed};

const BLOCK: u32 = 8192;
const BLOCKS: u64 = 64;

fn new_file(folder: &TempDir, name: &str, access: Access) -> Arc<File> {
    let file = File::create_new(&folder.path().join(name), access).unwrap();
    rustix::fs::ftruncate(file.as_fd(), BLOCKS * u64::from(BLOCK)).unwrap();
    Arc::new(file)
}

fn cached() -> Access {
    Access { read: true, write: true, direct: false, dsync: false }
}

fn direct() -> Access {
    Access { direct: true, ..cached() }
}

/// Every kind of queue: each API at several depths, cached and direct, and the simulated one. `check` gets the queue and
/// its name; file 0 is [`BLOCKS`] blocks long.
fn with_each_queue(check: impl Fn(&mut dyn Queue, &str)) {
    let folder = folder();
    let mut number = 0;
    for api in Api::ALL {
        for depth in [1, 2, 16] {
            for access in [cached(), direct()] {
                number += 1;
                let file = new_file(&folder, &format!("{number}"), access);
                let mut queue = open_queue(api, QueueOptions::new(depth, BLOCK, vec![file])).unwrap();
                check(&mut *queue, &format!("{api} depth {depth} direct {}", access.direct));
                assert_eq!(queue.in_flight(), 0);
            }
        }
    }
    for seed in 0..20 {
        let disk: Arc<dyn Disk> = Arc::new(CrashDisk::new(BLOCKS * u64::from(BLOCK), Promises::default()));
        let mut queue = SimQueue::new(8, BLOCK, vec![disk], Seed(seed)).unwrap();
        check(&mut queue, &format!("simulated, seed {seed}"));
    }
}

/// Runs `requests` through `queue`, as many at once as it has slots; `fill` prepares a write's buffer, `look` sees each
/// completed request and its buffer.
fn drive(
    queue: &mut dyn Queue,
    requests: &[Request],
    fill: &dyn Fn(&Request, &mut [u8]),
    look: &mut dyn FnMut(&Request, Outcome, &[u8]),
) {
    let mut free: Vec<u32> = (0..queue.depth()).collect();
    let mut held = vec![None; queue.depth() as usize];
    let mut next = requests.iter();
    let mut done = Vec::new();
    loop {
        while let Some(slot) = free.pop() {
            let Some(request) = next.next() else { break };
            fill(request, &mut queue.buffer_mut(slot)[..request.bytes as usize]);
            queue.stage(slot, *request);
            held[slot as usize] = Some(*request);
        }
        done.clear();
        queue.submit_and_reap(1, &mut done).unwrap();
        if done.is_empty() {
            return;
        }
        for completion in &done {
            let request = held[completion.slot as usize].take().expect("this slot was in flight");
            look(&request, completion.outcome, &queue.buffer(completion.slot)[..request.bytes as usize]);
            free.push(completion.slot);
        }
    }
}

fn each_block(action: Action, seed: u64) -> Vec<Request> {
    let mut blocks: Vec<u64> = (0..BLOCKS).collect();
    Rng::new(Seed(seed)).shuffle(&mut blocks);
    let request = |block| Request { file: 0, offset: block * u64::from(BLOCK), bytes: BLOCK, action };
    blocks.into_iter().map(request).collect()
}

fn stamp_into(stamper: &Stamper, generation: u64) -> impl Fn(&Request, &mut [u8]) + '_ {
    move |request, buffer| {
        let stamp = Stamp { file_id: 9, offset: request.offset, generation };
        if matches!(request.action, Action::Write | Action::WriteDsync) {
            stamper.fill(buffer, stamp);
        }
    }
}

#[test]
fn what_is_written_is_read_back_by_every_queue() {
    let stamper = Stamper::new(Seed(1));
    with_each_queue(|queue, name| {
        for (generation, action) in [(1, Action::Write), (2, Action::WriteDsync)] {
            drive(queue, &each_block(action, 1), &stamp_into(&stamper, generation), &mut |_, outcome, _| {
                assert_eq!(outcome, Outcome::Full, "{name}: {action:?}");
            });
            let sync = Request { file: 0, offset: 0, bytes: 0, action: Action::Sync };
            drive(queue, &[sync], &|_, _| {}, &mut |_, outcome, _| {
                assert_eq!(outcome, Outcome::Full, "{name}")
            });
            for action in [Action::Read, Action::ReadVectored { piece_bytes: 1024 }] {
                let mut seen = 0;
                drive(
                    queue,
                    &each_block(action, 2),
                    &|_, buffer| buffer.fill(0),
                    &mut |request, outcome, buffer| {
                        assert_eq!(outcome, Outcome::Full, "{name}: {action:?}");
                        verify(buffer, 9, request.offset, Some(generation))
                            .unwrap_or_else(|e| panic!("{name}: {e}"));
                        seen += 1;
                    },
                );
                assert_eq!(seen, BLOCKS, "{name}");
            }
        }
        let counters = queue.counters();
        assert_eq!(counters.submitted, 6 * BLOCKS + 2, "{name}");
        assert!(counters.reap_calls > 0, "{name}");
    });
}

#[test]
fn a_read_across_the_end_is_short_and_beyond_it_shorter() {
    with_each_queue(|queue, name| {
        let end = BLOCKS * u64::from(BLOCK);
        for (offset, expected) in [(end - 4096, Outcome::Short(4096)), (end, Outcome::Short(0))] {
            for action in [Action::Read, Action::ReadVectored { piece_bytes: 4096 }] {
                let request = Request { file: 0, offset, bytes: BLOCK, action };
                drive(queue, &[request], &|_, _| {}, &mut |_, outcome, _| {
                    assert_eq!(outcome, expected, "{name}")
                });
            }
        }
    });
}

#[test]
fn what_the_kernel_refuses_is_an_errno_and_others_go_on() {
    let folder = folder();
    for api in Api::ALL {
        // Written first: a direct read of a hole is not checked for alignment, no device is asked.
        let good = new_file(&folder, &format!("{api} good"), direct());
        let data = crate::Buffer::new(1 << 16).unwrap();
        assert_eq!(good.write_at(&data, 0), Outcome::Full);
        let path = folder.path().join(format!("{api} good"));
        let read_only = File::open(&path, Access { write: false, ..direct() }).unwrap();
        let mut queue =
            open_queue(api, QueueOptions::new(4, BLOCK, vec![good, Arc::new(read_only)])).unwrap();
        let read = |offset| Request { file: 0, offset, bytes: BLOCK, action: Action::Read };
        let write = Request { file: 1, action: Action::Write, ..read(0) };
        let mut refused = 0;
        drive(
            &mut *queue,
            &[read(0), write, read(100), read(8192)],
            &|_, _| {},
            &mut |request, outcome, _| {
                let expected = match (request.file, request.offset) {
                    (1, _) => Outcome::Errno(libc::EBADF),
                    (_, 100) => Outcome::Errno(libc::EINVAL),
                    _ => Outcome::Full,
                };
                assert_eq!(outcome, expected, "{api}: {request:?}");
                refused += u32::from(outcome != Outcome::Full);
            },
        );
        assert_eq!(refused, 2);
    }
}

/// The n-th call fails for n = 1, 2, 3 … until nothing fails: the queue must report exactly that one, and go on.
#[test]
fn one_failing_call_is_one_failed_completion() {
    for trouble in [Trouble::Errno(libc::EIO), Trouble::Errno(libc::ENOSPC), Trouble::Short(512)] {
        for nth in 1.. {
            let disk = CrashDisk::new(BLOCKS * u64::from(BLOCK), Promises::default());
            let disk =
                Arc::new(FaultyDisk::new(disk, Fault { on: Call::Write, nth, for_ever: false, trouble }));
            let mut queue = SimQueue::new(4, BLOCK, vec![disk.clone()], Seed(nth)).unwrap();
            let mut failed = 0;
            drive(&mut queue, &each_block(Action::Write, 3), &|_, _| {}, &mut |_, outcome, _| match (
                outcome, trouble,
            ) {
                (Outcome::Full, _) => {}
                (Outcome::Errno(seen), Trouble::Errno(planned)) if seen == planned => failed += 1,
                (Outcome::Short(seen), Trouble::Short(planned)) if seen == planned => failed += 1,
                other => panic!("{other:?}"),
            });
            assert_eq!(failed, u32::from(disk.fired()), "call {nth}");
            if !disk.fired() {
                assert_eq!(nth, BLOCKS + 1);
                break;
            }
        }
    }
}

#[test]
fn dropping_a_busy_queue_waits_for_the_kernel() {
    let folder = folder();
    for api in Api::ALL {
        let file = new_file(&folder, &format!("{api}"), direct());
        for round in 0..20 {
            let mut queue = open_queue(api, QueueOptions::new(32, BLOCK, vec![file.clone()])).unwrap();
            for slot in 0..32 {
                let offset = u64::from(slot) * u64::from(BLOCK);
                let action = if round % 2 == 0 { Action::Read } else { Action::Write };
                queue.stage(slot, Request { file: 0, offset, bytes: BLOCK, action });
            }
            queue.submit().unwrap();
            drop(queue);
        }
    }
}

#[test]
fn a_queue_may_be_driven_by_another_thread_than_the_one_that_made_it() {
    let stamper = Stamper::new(Seed(4));
    let folder = folder();
    for api in Api::ALL {
        for depth in [1, 8] {
            let file = new_file(&folder, &format!("{api}{depth}"), cached());
            let mut queue = open_queue(api, QueueOptions::new(depth, BLOCK, vec![file])).unwrap();
            for round in 0..3 {
                queue = std::thread::scope(|scope| {
                    let stamper = &stamper;
                    let moved = scope.spawn(move || {
                        let requests = each_block(Action::Write, round);
                        drive(&mut *queue, &requests, &stamp_into(stamper, round), &mut |_, outcome, _| {
                            assert_eq!(outcome, Outcome::Full);
                        });
                        queue
                    });
                    moved.join().unwrap()
                });
            }
            assert_eq!(queue.counters().submitted, 3 * BLOCKS);
        }
    }
}

#[test]
fn a_ring_dropped_by_another_thread_while_busy_keeps_its_buffers() {
    let folder = folder();
    let file = new_file(&folder, "ring", direct());
    let mut queue = open_queue(Api::IoUring, QueueOptions::new(8, BLOCK, vec![file])).unwrap();
    for slot in 0..8 {
        queue.stage(slot, Request { file: 0, offset: 0, bytes: BLOCK, action: Action::Read });
    }
    queue.submit().unwrap();
    std::thread::spawn(move || drop(queue)).join().unwrap();
}

#[test]
fn a_reap_brings_at_least_what_was_asked() {
    let folder = folder();
    for api in Api::ALL {
        let file = new_file(&folder, &format!("{api}"), direct());
        let mut queue = open_queue(api, QueueOptions::new(16, BLOCK, vec![file])).unwrap();
        for min in [0, 1, 5, 16, 100] {
            for slot in 0..16 {
                let offset = u64::from(slot) * u64::from(BLOCK);
                queue.stage(slot, Request { file: 0, offset, bytes: BLOCK, action: Action::Read });
            }
            let mut done = Vec::new();
            queue.submit_and_reap(min, &mut done).unwrap();
            assert!(done.len() >= min.min(16) as usize, "{api}: {} of {min}", done.len());
            while queue.in_flight() > 0 {
                queue.reap(0, &mut done).unwrap();
            }
            assert_eq!(done.len(), 16, "{api}");
        }
    }
}

#[test]
fn the_page_cache_shows_as_completed_at_submit() {
    let folder = folder();
    for (api, depth) in [(Api::Threads, 1), (Api::Libaio, 16), (Api::IoUring, 16)] {
        let file = new_file(&folder, &format!("{api}"), cached());
        assert_eq!(file.write_at(&vec![1; (BLOCKS * u64::from(BLOCK)) as usize], 0), Outcome::Full);
        let mut queue = open_queue(api, QueueOptions::new(depth, BLOCK, vec![file])).unwrap();
        let nothing = &|_: &Request, _: &mut [u8]| {};
        for round in 0..20 {
            drive(&mut *queue, &each_block(Action::Read, round), nothing, &mut |_, _, _| {});
        }
        let share = queue.counters().completed_at_submit_share();
        assert!(share > 0.9, "{api}: {share} of cached reads were complete at submit");
        assert!(queue.counters().submit_ns_total() > 0.0);
    }
}

#[test]
fn a_failed_sync_poisons_every_later_submit() {
    let folder = folder();
    for api in Api::ALL {
        let file = new_file(&folder, &format!("{api}"), cached());
        let mut queue = open_queue(api, QueueOptions::new(2, BLOCK, vec![file.clone()])).unwrap();
        file.note_failed_sync(libc::EIO);
        queue.stage(0, Request { file: 0, offset: 0, bytes: BLOCK, action: Action::Read });
        assert!(matches!(queue.submit(), Err(IoError::Poisoned { errno: libc::EIO, .. })), "{api}");
        assert!(matches!(queue.submit_and_reap(1, &mut Vec::new()), Err(IoError::Poisoned { .. })), "{api}");
    }
}

#[test]
#[should_panic(expected = "is in flight")]
fn a_buffer_in_flight_cannot_be_looked_at() {
    let folder = folder();
    let file = new_file(&folder, "file", direct());
    let mut queue = open_queue(Api::IoUring, QueueOptions::new(2, BLOCK, vec![file])).unwrap();
    queue.stage(1, Request { file: 0, offset: 0, bytes: BLOCK, action: Action::Read });
    queue.submit().unwrap();
    let _ = queue.buffer(1);
}

#[test]
#[should_panic(expected = "into a buffer of")]
fn a_request_longer_than_its_buffer_is_a_bug() {
    let disk: Arc<dyn Disk> = Arc::new(CrashDisk::new(1 << 20, Promises::default()));
    let mut queue = SimQueue::new(1, 4096, vec![disk], Seed(1)).unwrap();
    queue.stage(0, Request { file: 0, offset: 0, bytes: 4097, action: Action::Read });
}

#[test]
fn says_what_it_is() {
    let folder = folder();
    for (api, words) in
        [(Api::Threads, "pread/pwrite"), (Api::Libaio, "libaio"), (Api::IoUring, "registered files")]
    {
        assert!(api.available().is_ok(), "{api}");
        let file = new_file(&folder, &format!("{api}"), cached());
        let queue = open_queue(api, QueueOptions::new(4, BLOCK, vec![file])).unwrap();
        assert!(queue.describe().contains(words), "{}", queue.describe());
    }
}

/// Two write loads over `path`, one after another: queues made on this thread, driven and dropped on another, as a load
/// does it. This thread lives on, and so would anything that it holds.
fn two_loads(path: &std::path::Path) {
    for round in 0..2 {
        let file = Arc::new(File::open(path, direct()).unwrap());
        let mut queue = open_queue(Api::IoUring, QueueOptions::new(8, BLOCK, vec![file])).unwrap();
        let load = move || {
            let requests = each_block(Action::WriteDsync, round);
            drive(&mut *queue, &requests, &|_, _| {}, &mut |_, outcome, _| assert!(outcome.is_full()));
        };
        std::thread::spawn(load).join().unwrap();
    }
}

#[test]
fn a_ring_lets_go_of_files_and_devices_at_once() {
    let folder = folder();
    let backing = folder.path().join("backing");
    std::fs::write(&backing, vec![0; 16 << 20]).unwrap();
    let device = Loop::over(&backing, &[]);
    two_loads(&device.0);
    let claim = File::open(&device.0, direct());
    assert!(claim.is_ok(), "the device is still claimed: {claim:?}");
    drop(claim);

    run("mkfs.ext4", &["-q", "-F", device.text()]);
    let mount = Mount::new("ext4", device.text(), "defaults", &folder.path().join("mounted"));
    let path = mount.0.join("file");
    let file = File::create_new(&path, cached()).unwrap();
    rustix::fs::ftruncate(file.as_fd(), BLOCKS * u64::from(BLOCK)).unwrap();
    drop(file);
    two_loads(&path);
    run("umount", &[mount.0.to_str().unwrap()]);
    std::mem::forget(mount);
}

/// Launches slot 0 of fresh slots and completes it with `errno`, as often as the table asks for it again.
fn complete_with(action: Action, errno: i32) -> (u32, Completion, bool) {
    let folder = folder();
    let file = new_file(&folder, "file", cached());
    let options = QueueOptions::new(1, BLOCK, vec![file.clone()]);
    let mut slots = slots::Slots::new(&options).unwrap();
    slots.stage(0, Request { file: 0, offset: 0, bytes: BLOCK, action });
    let user_data = slots.user_data(0);
    slots.launch(1);
    let mut tries = 0;
    while slots.tries_again(user_data, -i64::from(errno)) {
        tries += 1;
        assert_eq!(slots.in_flight(), 1, "it is still the kernel's");
    }
    (tries, slots.complete(user_data, -i64::from(errno)), file.poisoned())
}

#[test]
fn a_request_given_back_undone_is_tried_again_but_not_for_ever() {
    for (errno, expected) in [(libc::EINTR, 64), (libc::EAGAIN, 64), (libc::EIO, 0)] {
        let (tries, completion, _) = complete_with(Action::Read, errno);
        assert_eq!((tries, completion.outcome), (expected, Outcome::Errno(errno)));
    }
}

#[test]
fn an_asynchronous_sync_poisons_like_fdatasync() {
    for errno in [libc::EIO, libc::ENOSPC, libc::EDQUOT, libc::EFBIG] {
        assert!(complete_with(Action::Sync, errno).2, "{errno}");
    }
    for errno in [libc::EINVAL, libc::EBADF, libc::EOPNOTSUPP, libc::ECANCELED] {
        assert!(!complete_with(Action::Sync, errno).2, "{errno}");
    }
    assert!(!complete_with(Action::WriteDsync, libc::ENOSPC).2, "refused before anything was written");
}
