//! What was acknowledged must be there after a crash; what failed must not be acknowledged, and nobody waits for ever.

use super::*;
use io::sim::{Call, CrashDisk, Disk, Fault, FaultyDisk, LyingDisk, Promises, SimQueue, Trouble};
use std::sync::Arc;
use units::Nanos;

const REGION: u64 = 4 << 20;
const BLOCK: u32 = 4096;

fn log_on(disk: Arc<dyn Disk>, call: LogCall) -> Log {
    let queue = SimQueue::new(1, 64 << 10, vec![disk], Seed(5)).expect("queue");
    Log::over(Box::new(queue), call, 0..REGION, BLOCK, String::new(), Seed(6))
}

/// Six sessions commit until the region is nearly full; the result is how many bytes were written and acknowledged.
fn commit_some(log: Log) -> Result<u64, LabError> {
    let group = GroupCommit::new(6);
    thread::scope(|scope| {
        let writer = scope.spawn(|| group.log_writer(log));
        let sessions: Vec<_> = (0..6)
            .map(|session| {
                let group = &group;
                scope.spawn(move || {
                    group.join(session);
                    (0..40).take_while(|_| group.commit(session, REDO_PER_COMMIT_BYTES)).count()
                })
            })
            .collect();
        let commits: usize = sessions.into_iter().map(|s| s.join().expect("session")).sum();
        group.close();
        let log = writer.join().expect("lgwr")?;
        assert_eq!(commits, 240, "all commits of a healthy log are acknowledged");
        Ok(log.written_bytes())
    })
}

/// Blocks of the redo from its beginning that carry the right stamp.
fn intact_blocks(disk: &dyn Disk) -> u64 {
    let mut block = vec![0; BLOCK as usize];
    (0..REGION / u64::from(BLOCK))
        .take_while(|index| {
            let offset = index * u64::from(BLOCK);
            assert_eq!(disk.read_at(&mut block, offset), Outcome::Full);
            io::stamp::verify(&block, REDO_FILE_ID, offset, Some(1)).is_ok()
        })
        .count() as u64
}

#[test]
fn acknowledged_commits_survive_a_crash() {
    for call in [LogCall::Fdatasync, LogCall::Fua] {
        for seed in 0..4 {
            let disk = Arc::new(CrashDisk::new(REGION, Promises::default()));
            let written = commit_some(log_on(disk.clone(), call)).expect("healthy disk");
            disk.crash(Seed(seed));
            assert!(intact_blocks(&*disk) * u64::from(BLOCK) >= written, "{call:?}, seed {seed}");
        }
    }
}

#[test]
fn a_lying_disk_is_seen_after_the_crash() {
    let lost = (0..8).any(|seed| {
        let disk = Arc::new(LyingDisk::new(REGION, Promises::default()));
        let written =
            commit_some(log_on(disk.clone(), LogCall::Fdatasync)).expect("it says that all is well");
        disk.crash(Seed(seed));
        intact_blocks(&*disk) * u64::from(BLOCK) < written
    });
    assert!(lost, "eight crashes of a disk that ignores syncs lost nothing");
}

/// The n-th call fails, for n = 1, 2, 3 … until nothing fails: each time the run ends with the error.
#[test]
fn a_failing_log_releases_everybody_with_the_error() {
    for trouble in [Trouble::Errno(5), Trouble::Short(512)] {
        for nth in 1.. {
            let fault = Fault { on: Call::Any, nth, for_ever: false, trouble };
            let disk = Arc::new(FaultyDisk::new(CrashDisk::new(REGION, Promises::default()), fault));
            let log = log_on(disk.clone(), LogCall::Fdatasync);
            let window = Window::after(Nanos(0), Nanos::millis(20), Nanos::millis(10));
            let result = run(3, log, window, &AtomicBool::new(false));
            if disk.fired() {
                let text = result.expect_err("a failed call must end the run").to_string();
                assert!(text.contains("redo write"), "{text}");
            }
            if nth == 25 {
                break;
            }
        }
    }
}
