//! What the scheduler counted for one thread of this process.

use crate::files;
use units::Nanos;

/// A thread of this process, for as long as it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread(i32);

/// Time since a thread began. The rest of its life it slept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// On a processor.
    pub cpu: Nanos,
    /// Ready to run, and no processor free.
    pub delay: Nanos,
}

impl Thread {
    /// The one that asks.
    pub fn this() -> Self {
        Self(rustix::thread::gettid().as_raw_nonzero().get())
    }

    /// What was counted for it, about 5 µs; none when it has ended, or the kernel does not say.
    ///
    /// Source: kernel `Documentation/scheduler/sched-stats.rst`, `/proc/<pid>/schedstat`.
    pub fn schedule(self) -> Option<Schedule> {
        parse(&files::text(format!("/proc/self/task/{}/schedstat", self.0))?)
    }
}

impl Schedule {
    /// Both together.
    pub fn add(&mut self, other: &Self) {
        self.cpu += other.cpu;
        self.delay += other.delay;
    }

    /// What came since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self { cpu: self.cpu - earlier.cpu, delay: self.delay - earlier.delay }
    }
}

fn parse(text: &str) -> Option<Schedule> {
    let mut words = text.split_ascii_whitespace().map(|word| word.parse().ok());
    Some(Schedule { cpu: Nanos(words.next()??), delay: Nanos(words.next()??) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[test]
    fn reads_the_kernels_line() {
        let line = "382388808 348070948 97\n";
        assert_eq!(parse(line), Some(Schedule { cpu: Nanos(382_388_808), delay: Nanos(348_070_948) }));
        assert_eq!(parse("382388808\n"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn work_is_counted_and_sleep_is_not() {
        let spent = |act: &dyn Fn()| {
            let (thread, before) = (Thread::this(), Thread::this().schedule().expect("this kernel counts"));
            act();
            thread.schedule().expect("still here").since(&before).cpu
        };
        let slept = spent(&|| std::thread::sleep(std::time::Duration::from_millis(50)));
        let worked = spent(&|| (0..20_000_000u64).for_each(|n| _ = black_box(n)));
        assert!(worked > slept, "{worked:?} of work, {slept:?} of sleep");
    }

    #[test]
    fn a_thread_that_ended_says_nothing() {
        let thread = std::thread::spawn(Thread::this).join().expect("it ends");
        assert_eq!(thread.schedule(), None);
    }
}
