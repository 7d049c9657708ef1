//! What a hit ratio is worth: the speed-up of sessions that read from a slow device and, more and more, from a fast one.
//!
//! A closed network ([`crate::mix`]): sessions queue for processors, for the slow device and for the fast one, each as fast as it was measured with so
//! many requests in flight; what else they wait for is a delay. Fewer reads on the slow device leave shorter queues there, which no product of hit ratio and
//! latency would show.

use crate::interval::Interval;
use crate::mix::{Station, network_throughput};

/// Completions per second of a device with 1, 2, … requests in flight; the last holds beyond.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    rate: Vec<f64>,
}

impl Device {
    /// From what was measured: requests in flight and completions per second. Between two points the rate is drawn in a straight line, it never falls, and never
    /// rises faster than in proportion. `None` without a positive point.
    pub fn measured(points: &[(u32, f64)]) -> Option<Self> {
        let mut points: Vec<(u32, f64)> =
            points.iter().copied().filter(|(n, rate)| *n > 0 && *rate > 0.0 && rate.is_finite()).collect();
        points.sort_by_key(|point| point.0);
        let (first, last) = (*points.first()?, *points.last()?);
        let mut rate: Vec<f64> = Vec::new();
        for n in 1..=last.0 {
            let above = points.iter().find(|point| point.0 >= n).copied().unwrap_or(last);
            let below = points.iter().rfind(|point| point.0 <= n).copied();
            let drawn = match below {
                None => first.1 * f64::from(n) / f64::from(first.0),
                Some(below) if below.0 == above.0 => above.1,
                Some(below) => {
                    below.1 + (above.1 - below.1) * f64::from(n - below.0) / f64::from(above.0 - below.0)
                }
            };
            rate.push(drawn.max(rate.last().copied().unwrap_or(0.0)));
        }
        Some(Self { rate })
    }

    /// As fast times `factor`.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        Self { rate: self.rate.iter().map(|rate| rate * factor).collect() }
    }

    /// Seconds that a request takes with `n` in flight.
    pub fn latency(&self, n: usize) -> f64 {
        let rate = self.rate.get(n.max(1) - 1).or(self.rate.last()).copied().unwrap_or(0.0);
        n.max(1) as f64 / rate
    }

    fn station(&self, visits: f64) -> Station {
        Station::measured(visits, &self.rate)
    }
}

/// What sessions do for each block that their buffer cache does not hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Sessions at once.
    pub sessions: usize,
    /// Processors.
    pub cores: usize,
    /// Processor time for each read, seconds.
    pub cpu_seconds: f64,
    /// Time for each read in which a session waits for something else, or thinks, seconds.
    pub other_seconds: f64,
}

/// Factors by which a measured device is held to what the run itself showed.
const FIT: (f64, f64) = (0.05, 20.0);

impl Workload {
    /// Reads per second that sessions get done, `hits` of them (0 to 1) from `fast`, the others from `slow`.
    pub fn reads_per_second(&self, slow: &Device, fast: &Device, hits: f64) -> f64 {
        let hits = hits.clamp(0.0, 1.0);
        let stations = [
            Station::servers(
                f64::from(u8::from(self.cpu_seconds > 0.0)),
                self.cores.max(1),
                self.cpu_seconds,
            ),
            slow.station(1.0 - hits),
            fast.station(hits),
        ];
        network_throughput(&stations, self.other_seconds, self.sessions)
    }

    /// The slow device, faster or slower by one factor, so that without hits sessions get `reads_per_second` done, as they did in the run. `None` when no
    /// factor between 0.05 and 20 does that: then the reads are not what held them up.
    pub fn fitted(&self, slow: &Device, reads_per_second: f64) -> Option<Device> {
        let at = |factor: f64| self.reads_per_second(&slow.scaled(factor), slow, 0.0);
        let (mut low, mut high) = FIT;
        if !(at(low) <= reads_per_second && reads_per_second <= at(high)) {
            return None;
        }
        for _ in 0..60 {
            let middle = (low * high).sqrt();
            if at(middle) < reads_per_second { low = middle } else { high = middle }
        }
        Some(slow.scaled((low * high).sqrt()))
    }

    /// How much faster than without a flash cache. `hits` with its interval; `fast_error`: relative standard error of the fast device's rates. The interval
    /// holds both, on the log scale.
    pub fn speed_up(&self, slow: &Device, fast: &Device, hits: &Interval, fast_error: f64) -> Interval {
        let without = self.reads_per_second(slow, fast, 0.0);
        let at = |fast: &Device, hits: f64| (self.reads_per_second(slow, fast, hits) / without).ln();
        let value = at(fast, hits.value);
        let device = at(&fast.scaled(1.0 + 2.0 * fast_error), hits.value) - value;
        let below = (at(fast, hits.low) - value).hypot(device);
        let above = (at(fast, hits.high) - value).hypot(device);
        let (low, high) = ((value - below).exp(), (value + above).exp());
        Interval { value: value.exp(), low, high, level: hits.level, n: hits.n }
    }
}
