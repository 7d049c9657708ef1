//! When to count, and what one thread has counted.

use super::{LoadSpec, Measured, Slice};
use io::QueueCounters;
use io::thread::{CpuTime, cpu_time};
use stats::histogram::Histogram;
use units::{Nanos, clock};

/// The measured window, the same for all threads: slices begin at the same instants everywhere and can be added.
#[derive(Clone, Copy)]
pub(super) struct Timeline {
    pub(super) begin: Nanos,
    pub(super) end: Nanos,
    pub(super) interval: Nanos,
}

impl Timeline {
    pub(super) fn from_now(spec: &LoadSpec) -> Self {
        let begin = clock::now() + spec.settle;
        Self { begin, end: begin + spec.measure, interval: spec.interval.min(spec.measure) }
    }

    /// Empty slices from the beginning to `ended`.
    pub(super) fn slices_until(&self, ended: Nanos) -> Vec<Slice> {
        let mut slices = Vec::new();
        let mut t = self.begin;
        while t < ended.min(self.end) {
            let next = (t + self.interval).min(ended);
            slices.push(Slice { t, seconds: (next - t).as_secs(), ..Slice::default() });
            t += self.interval;
        }
        slices
    }
}

/// How many wrong reads are told in words.
const WRONG_TOLD: usize = 5;

/// One thread's count.
pub(super) struct Tally {
    timeline: Timeline,
    /// The instant at which [`Tally::cross`] must be called next.
    pub(super) edge: Nanos,
    counting: bool,
    histogram: Histogram,
    current: Slice,
    slices: Vec<Slice>,
    /// Requests in flight × nanoseconds, and the instants between which they were summed.
    in_flight_ns: u64,
    first: Nanos,
    last: Nanos,
    cpu: CpuTime,
    /// Of the window.
    pub(super) counters: QueueCounters,
    /// Requests from the first to the last, before and after the window too.
    pub(super) requests_total: u64,
    pub(super) ended: Nanos,
    pub(super) first_error: Option<String>,
    pub(super) verified: u64,
    pub(super) wrong: Vec<String>,
    pub(super) wrong_count: u64,
}

impl Tally {
    pub(super) fn new(timeline: Timeline) -> Self {
        let slices = (timeline.end - timeline.begin).0.div_ceil(timeline.interval.0);
        Self {
            timeline,
            edge: timeline.begin,
            counting: false,
            histogram: Histogram::new(),
            current: Slice::default(),
            slices: Vec::with_capacity(slices as usize + 1),
            in_flight_ns: 0,
            first: Nanos(0),
            last: Nanos(0),
            cpu: CpuTime::default(),
            counters: QueueCounters::default(),
            requests_total: 0,
            ended: timeline.end,
            first_error: None,
            verified: 0,
            wrong: Vec::new(),
            wrong_count: 0,
        }
    }

    /// A successful request of `bytes` took `latency`.
    #[inline]
    pub(super) fn success(&mut self, latency: Nanos, bytes: u32) {
        self.histogram.record(latency.0);
        self.current.ops += 1;
        self.current.bytes += u64::from(bytes);
        self.current.latency_sum_ns += latency.0;
        self.current.latency_max_ns = self.current.latency_max_ns.max(latency.0);
    }

    #[cold]
    pub(super) fn failure(&mut self, words: impl FnOnce() -> String) {
        self.current.errors += 1;
        self.first_error.get_or_insert_with(words);
    }

    #[cold]
    pub(super) fn wrong(&mut self, words: String) {
        self.wrong_count += 1;
        if self.wrong.len() < WRONG_TOLD {
            self.wrong.push(words);
        }
    }

    /// `count` requests were in flight from `self.last` to `until`.
    #[inline]
    pub(super) fn in_flight(&mut self, count: u32, until: Nanos) {
        self.in_flight_ns += u64::from(count) * (until - self.last).0;
        self.last = until;
    }

    /// `now` has reached the edge: the window begins, a slice ends, or (the result is `true`) the window ends. What
    /// completed at `now` belongs to the time after the edge.
    #[cold]
    pub(super) fn cross(&mut self, now: Nanos, counters: QueueCounters) -> bool {
        if !self.counting {
            self.begin(now, counters);
        }
        while now >= self.edge && self.edge < self.timeline.end {
            self.end_slice();
        }
        if now < self.timeline.end {
            return false;
        }
        self.end_slice();
        self.finish(self.timeline.end, counters);
        true
    }

    /// Forgets the settling time; what was wrong in it stays told.
    fn begin(&mut self, now: Nanos, counters: QueueCounters) {
        self.counting = true;
        self.histogram = Histogram::new();
        self.current = Slice::default();
        self.in_flight_ns = 0;
        (self.first, self.last) = (now, now);
        self.cpu = cpu_time();
        self.counters = counters;
        self.edge = (self.timeline.begin + self.timeline.interval).min(self.timeline.end);
    }

    fn end_slice(&mut self) {
        self.slices.push(std::mem::take(&mut self.current));
        self.edge = (self.edge + self.timeline.interval).min(self.timeline.end);
    }

    fn finish(&mut self, ended: Nanos, counters: QueueCounters) {
        self.ended = ended;
        self.cpu = cpu_time() - self.cpu;
        self.counters = counters.since(&self.counters);
    }

    /// The run is over before its time.
    pub(super) fn cut_short(&mut self, now: Nanos, counters: QueueCounters) {
        if !self.counting {
            self.begin(now, counters);
        }
        self.slices.push(std::mem::take(&mut self.current));
        self.finish(now.min(self.timeline.end).max(self.timeline.begin), counters);
    }

    pub(super) fn add_to(self, measured: &mut Measured) {
        for (sum, slice) in measured.slices.iter_mut().zip(&self.slices) {
            sum.ops += slice.ops;
            sum.bytes += slice.bytes;
            sum.latency_sum_ns += slice.latency_sum_ns;
            sum.latency_max_ns = sum.latency_max_ns.max(slice.latency_max_ns);
            sum.errors += slice.errors;
        }
        measured.histogram.merge(&self.histogram);
        measured.in_flight_mean += self.in_flight_ns as f64 / (self.last - self.first).0.max(1) as f64;
        measured.cpu_user_ns += self.cpu.user_ns;
        measured.cpu_system_ns += self.cpu.system_ns;
        measured.verified += self.verified;
        measured.wrong_count += self.wrong_count;
        let room = WRONG_TOLD.saturating_sub(measured.wrong.len());
        measured.wrong.extend(self.wrong.into_iter().take(room));
        if measured.first_error.is_none() {
            measured.first_error = self.first_error;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline() -> Timeline {
        Timeline { begin: Nanos(1000), end: Nanos(1250), interval: Nanos(100) }
    }

    fn total(tally: Tally) -> (Vec<u64>, Measured) {
        let timeline = timeline();
        let counters = QueueCounters::default();
        assert_eq!(tally.counters, counters);
        let measured =
            super::super::merge(timeline, vec![tally], Default::default(), String::new(), String::new());
        (measured.slices.iter().map(|slice| slice.ops).collect(), measured)
    }

    /// Feeds completions at the given instants, with one request in flight.
    fn feed(instants: &[u64]) -> Tally {
        let mut tally = Tally::new(timeline());
        for &now in instants {
            let now = Nanos(now);
            tally.in_flight(1, now);
            if now >= tally.edge && tally.cross(now, QueueCounters::default()) {
                break;
            }
            tally.success(Nanos(10), 512);
        }
        tally
    }

    #[test]
    fn each_completion_falls_into_its_slice() {
        let (ops, measured) = total(feed(&[500, 999, 1000, 1099, 1100, 1150, 1200, 1249, 1250, 1260]));
        assert_eq!(ops, [2, 2, 2], "what came while settling and at the end is not counted");
        assert_eq!((measured.ops, measured.histogram.count(), measured.bytes), (6, 6, 6 * 512));
        let seconds: Vec<f64> = measured.slices.iter().map(|slice| slice.seconds * 1e9).collect();
        assert!((seconds[2] - 50.0).abs() < 1e-6, "the last slice is shorter: {seconds:?}");
        assert!((measured.in_flight_mean - 1.0).abs() < 1e-9);
    }

    /// Little's law, exact: one of two requests is done every 10 ns, and its place is empty for 3 ns.
    #[test]
    fn requests_in_flight_are_latency_times_rate() {
        let mut tally = Tally::new(timeline());
        let mut now = Nanos(1000);
        while now < tally.edge || !tally.cross(now, QueueCounters::default()) {
            tally.success(Nanos(17), 512);
            tally.in_flight(1, now + Nanos(3));
            tally.in_flight(2, now + Nanos(10));
            now += Nanos(10);
        }
        let (_, measured) = total(tally);
        let by_latency = measured.histogram.sum() as f64 / 250.0;
        assert!((by_latency - 1.7).abs() < 1e-9, "{by_latency}");
        assert!((measured.in_flight_mean - 1.7).abs() < 1e-9, "{}", measured.in_flight_mean);
    }

    #[test]
    fn a_long_wait_leaves_empty_slices() {
        assert_eq!(total(feed(&[900, 1010, 1220, 1300])).0, [1, 0, 1]);
        assert_eq!(total(feed(&[900, 1300])).0, [0, 0, 0]);
    }

    #[test]
    fn a_run_cut_short_keeps_what_it_had() {
        let mut tally = feed(&[900, 1010, 1110]);
        tally.cut_short(Nanos(1120), QueueCounters::default());
        let (ops, measured) = total(tally);
        assert_eq!(ops, [1, 1]);
        assert_eq!(measured.ended, Nanos(1120));
        let mut early = feed(&[900]);
        early.cut_short(Nanos(950), QueueCounters::default());
        assert_eq!(total(early).0, [0; 0]);
    }
}
