//! What a load-generating thread knows about itself: its processor time, the core it stays on.

use crate::error::{IoError, last_errno};
use std::path::Path;

/// Processor time spent, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// In the program.
    pub user_ns: u64,
    /// In the kernel on its behalf.
    pub system_ns: u64,
}

impl std::ops::Sub for CpuTime {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(other.user_ns),
            system_ns: self.system_ns.saturating_sub(other.system_ns),
        }
    }
}

impl std::ops::Add for CpuTime {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { user_ns: self.user_ns + other.user_ns, system_ns: self.system_ns + other.system_ns }
    }
}

/// Processor time of the calling thread so far. The sum is exact to the microsecond; where the kernel samples, the split
/// between user and system is an estimate. Workers that the kernel starts for io_uring are not in it: they are threads
/// of the process named `iou-wrk-…`.
pub fn cpu_time() -> CpuTime {
    // SAFETY: rusage is plain numbers, for which all zeroes is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` outlives the call; RUSAGE_THREAD exists since Linux 2.6.26.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1_000;
    CpuTime { user_ns: ns(usage.ru_utime), system_ns: ns(usage.ru_stime) }
}

/// Numbers of the cores that the calling thread may run on, ascending.
pub fn cores_allowed() -> Vec<usize> {
    let set = rustix::thread::sched_getaffinity(None).unwrap_or_default();
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect()
}

/// Keeps the calling thread on the `index`-th of the cores that it may run on, counted round.
///
/// # Errors
/// [`IoError::Os`] with what `sched_setaffinity` returned.
pub fn pin(index: usize) -> Result<(), IoError> {
    let cores = cores_allowed();
    let failed = |errno| IoError::from_errno(Path::new("thread"), "sched_setaffinity", 0, errno);
    let core = *cores.get(index % cores.len().max(1)).ok_or_else(|| failed(last_errno()))?;
    let mut set = rustix::thread::CpuSet::new();
    set.set(core);
    rustix::thread::sched_setaffinity(None, &set).map_err(|e| failed(e.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_has_one_core_and_spends_time_there() {
        let spent = std::thread::spawn(|| {
            pin(1).unwrap();
            assert_eq!(cores_allowed().len(), 1);
            let before = cpu_time();
            let mut sum = 0u64;
            while cpu_time() == before {
                sum = std::hint::black_box(sum + 1);
            }
            cpu_time() - before
        });
        let spent = spent.join().unwrap();
        assert!(spent.user_ns + spent.system_ns > 0);
        assert!(!cores_allowed().is_empty());
    }
}
