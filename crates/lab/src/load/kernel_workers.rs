//! Processor time of threads that work for the load without being its own: the kernel's io_uring workers (`iou-wrk-…`) and
//! the workers of a thread pool (`io00`, `io01` …). Without them a request that was handed to a worker would look free.

use std::collections::BTreeMap;
use std::fs;

/// Nanoseconds by thread.
#[derive(Default)]
pub(super) struct Snapshot(BTreeMap<u32, Usage>);

/// Nanoseconds, and how many of the threads were the kernel's.
#[derive(Clone, Copy, Default)]
pub(super) struct Usage {
    pub(super) user_ns: u64,
    pub(super) system_ns: u64,
    /// Workers of io_uring (`iou-wrk`): requests that it could not start without waiting were handed to them.
    pub(super) kernel_threads: u32,
}

impl Snapshot {
    /// What was used after `before`. A worker that ended in between is lost: the kernel keeps idle ones for 5 s.
    pub(super) fn since(&self, before: &Self) -> Usage {
        let mut sum = Usage::default();
        for (thread, now) in &self.0 {
            let then = before.0.get(thread).copied().unwrap_or_default();
            sum.user_ns += now.user_ns.saturating_sub(then.user_ns);
            sum.system_ns += now.system_ns.saturating_sub(then.system_ns);
            if now.user_ns + now.system_ns > then.user_ns + then.system_ns {
                sum.kernel_threads += now.kernel_threads;
            }
        }
        sum
    }
}

/// How the kernel names its io_uring workers.
const KERNEL: &str = "iou-wrk";

/// Looks at all threads of this process.
pub(super) fn usage() -> Snapshot {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let ids = threads.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    Snapshot(ids.filter_map(|id| Some((id, usage_of(id)?))).collect())
}

fn usage_of(thread: u32) -> Option<Usage> {
    let read = |name: &str| fs::read_to_string(format!("/proc/self/task/{thread}/{name}")).ok();
    let name = read("comm")?;
    if !works_for_us(name.trim_end()) {
        return None;
    }
    let (user, system) = parse_ticks(&read("stat")?)?;
    // schedstat counts nanoseconds, stat ticks of 10 ms: the one says how much, the other how it divides.
    let exact = read("schedstat").and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    let total = exact.unwrap_or((user + system) * 10_000_000);
    let user_ns = (total as f64 * user as f64 / (user + system).max(1) as f64) as u64;
    let kernel_threads = u32::from(name.starts_with(KERNEL));
    Some(Usage { user_ns, system_ns: total - user_ns, kernel_threads })
}

fn works_for_us(name: &str) -> bool {
    let numbered =
        name.strip_prefix("io").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    name.starts_with(KERNEL) || numbered
}

/// Fields 14 and 15 of `/proc/…/stat`; the name in field 2 may hold spaces and ends with the last parenthesis.
fn parse_ticks(stat: &str) -> Option<(u64, u64)> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_its_workers_by_name() {
        for (name, ours) in
            [("iou-wrk-123", true), ("io00", true), ("io", false), ("iou", false), ("fg00", false)]
        {
            assert_eq!(works_for_us(name), ours, "{name}");
        }
    }

    #[test]
    fn reads_ticks_behind_any_name() {
        let stat = "7 (io) 0) x) S 1 7 7 0 -1 4194304 94 0 0 0 21 43 0 0 20 0 1 0 5 0 0";
        assert_eq!(parse_ticks(stat), Some((21, 43)));
        assert_eq!(parse_ticks("7 (x"), None);
    }

    #[test]
    fn counts_a_worker_that_works() {
        let (finish, finished) = std::sync::mpsc::channel::<()>();
        let before = usage();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let worker = std::thread::Builder::new().name("io77".into()).spawn(move || {
            let begin = units::clock::now();
            while units::clock::now() - begin < units::Nanos::millis(20) {}
            ready.send(()).unwrap();
            let _ = finished.recv();
        });
        is_ready.recv().unwrap();
        let spent = usage().since(&before);
        finish.send(()).unwrap();
        worker.unwrap().join().unwrap();
        assert!(spent.user_ns + spent.system_ns >= 5_000_000, "{} + {} ns", spent.user_ns, spent.system_ns);
    }
}
