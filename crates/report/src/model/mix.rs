//! The weighted verdict's arithmetic: from measured rates to transactions per second, for any hit ratio.
//!
//! A transaction gets `gets` blocks, to read or to change them. Gets that miss the buffer cache go to station READ (a
//! block must be in the cache before it is changed, and the hit ratio counts both), commits to LOG, blocks that leave
//! the cache changed to WRITE, everything else to CPU. The stations serve at the rates that were measured
//! (flow-equivalent servers), and the closed network of all sessions is solved by Buzen's convolution.
//!
//! How many blocks are written? A change of a cached block costs no write of its own: the block is written once when it
//! leaves the cache, and it comes and leaves once per miss. So without better knowledge a transaction writes
//! `gets · (1 − read_share) · (1 − hit_ratio)` blocks; one write per change would let block writes decide every verdict
//! at every hit ratio, which no database shows. The real number (physical writes / transactions) may be given.
//!
//! Pure: numbers in, numbers out. Which numbers of a record go in is decided in `model::weighted`.
//!
//! Source: docs/method.md, section 8.

use stats::mix::{Station, bottleneck, network_throughput};

/// The user's workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inputs {
    /// Share of reads among the gets, 0 to 1; the rest change the block.
    pub read_share: f64,
    /// Share of the gets that the buffer cache serves, 0 to 1.
    pub hit_ratio: f64,
    /// Share of the misses that the page cache serves where the mode uses it, 0 to 1.
    pub page_cache_hit_ratio: f64,
    /// Blocks that one transaction gets.
    pub gets: f64,
    /// Blocks written for one transaction, where it is known; `None`: those that leave the cache changed.
    pub block_writes: Option<f64>,
    /// Commits of one transaction.
    pub commits: f64,
    /// CPU time of one get, nanoseconds.
    pub cpu_per_get_ns: f64,
    /// Cores that serve CPU time.
    pub cores: u32,
    /// Sessions that work at once, without think time.
    pub sessions: u32,
}

/// What one configuration did in one block, per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Cold reads: by one session where measured, and by how many sessions the second value is.
    pub read: Curve,
    /// Commits, likewise.
    pub commit: Option<Curve>,
    /// Durable block writes per second with all writers.
    pub write: Option<f64>,
    /// CPU time of one physical read, one commit, one block write, nanoseconds; 0 where unknown.
    pub cpu_ns: [f64; 3],
    /// Time of one read that the page cache serves; `None` where the mode bypasses it.
    pub page_cache_ns: Option<f64>,
}

/// Rate against requests in flight, known at one or two points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Curve {
    /// Per second with one session.
    pub one: Option<f64>,
    /// Per second with `sessions` sessions.
    pub many: f64,
    /// Sessions of `many`.
    pub sessions: u32,
}

/// The parts of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The CPU.
    Cpu,
    /// Reads from the data file.
    Read,
    /// The log writer.
    Log,
    /// Writing changed blocks.
    Write,
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Cpu => "the CPU",
            Self::Read => "reads",
            Self::Log => "the log",
            Self::Write => "block writes",
        })
    }
}

impl Curve {
    /// Rate for 0 to `n_max` in flight: log-log interpolation between the two points, constant beyond the second.
    /// With one point only, in proportion to the requests in flight up to it (latency does not change).
    pub fn rates(&self, n_max: u32) -> Vec<f64> {
        let many_at = f64::from(self.sessions.max(1));
        let one = self.one.unwrap_or(self.many / many_at);
        let slope = if self.sessions > 1 { (self.many / one).ln() / many_at.ln() } else { 0.0 };
        let mut rates = vec![0.0];
        for n in 1..=n_max {
            rates.push(if n >= self.sessions { self.many } else { one * f64::from(n).powf(slope) });
        }
        rates
    }
}

impl Inputs {
    /// Physical reads of one transaction when the page cache serves none.
    pub fn misses(&self) -> f64 {
        self.gets * (1.0 - self.hit_ratio)
    }

    /// Blocks written for one transaction.
    pub fn writes(&self) -> f64 {
        self.block_writes.unwrap_or_else(|| self.misses() * (1.0 - self.read_share))
    }

    /// The same workload with another hit ratio.
    pub fn at(&self, hit_ratio: f64) -> Self {
        Self { hit_ratio, ..*self }
    }

    /// Stations that a transaction visits, with their parts; those that it never visits are left out.
    fn stations(&self, m: &Measured) -> (Vec<Part>, Vec<Station>) {
        let n = self.sessions.max(1);
        let second_level = if m.page_cache_ns.is_some() { self.page_cache_hit_ratio } else { 0.0 };
        let reads = self.misses() * (1.0 - second_level);
        let from_page_cache = self.misses() * second_level;
        let [cpu_read, cpu_commit, cpu_write] = m.cpu_ns;
        let cpu_ns = self.gets * self.cpu_per_get_ns
            + reads * cpu_read
            + from_page_cache * m.page_cache_ns.unwrap_or(0.0)
            + self.commits * cpu_commit
            + self.writes() * cpu_write;
        let cpu = (0..=n).map(|k| f64::from(k.min(self.cores.max(1))) * 1e9 / cpu_ns.max(1.0)).collect();
        let mut all = vec![(Part::Cpu, 1.0, cpu), (Part::Read, reads, m.read.rates(n))];
        if let Some(commit) = m.commit {
            all.push((Part::Log, self.commits, commit.rates(n)));
        }
        if let Some(write) = m.write {
            // Database writers work behind the sessions' backs: they hold a transaction up only when they cannot keep
            // up. One queue with the measured throughput says just that, and is exact where one lock lets one through.
            all.push((
                Part::Write,
                self.writes(),
                (0..=n).map(|k| if k == 0 { 0.0 } else { write }).collect(),
            ));
        }
        all.into_iter()
            .filter(|(_, visits, _)| *visits > 1e-12)
            .map(|(part, visits, rate)| (part, Station { visits, rate }))
            .unzip()
    }

    /// Transactions per second of all sessions, by Buzen's convolution over the measured curves.
    pub fn throughput(&self, m: &Measured) -> f64 {
        network_throughput(&self.stations(m).1, 0.0, self.sessions.max(1) as usize)
    }

    /// The part that limits it.
    pub fn bottleneck(&self, m: &Measured) -> Part {
        let (parts, stations) = self.stations(m);
        parts[bottleneck(&stations, 0.0, self.sessions.max(1) as usize)]
    }

    /// Time of one transaction by hand, nanoseconds: one session, no waiting for others.
    ///
    /// T = gets · cpu + misses · R + commits · C + writes · W, each at the latency of one session.
    pub fn by_hand_ns(&self, m: &Measured) -> f64 {
        let alone = |curve: &Curve| 1e9 / curve.one.unwrap_or(curve.many / f64::from(curve.sessions.max(1)));
        self.gets * self.cpu_per_get_ns
            + self.misses() * alone(&m.read)
            + m.commit.as_ref().map_or(0.0, |c| self.commits * alone(c))
            + m.write.map_or(0.0, |w| self.writes() * 1e9 / w)
    }
}

/// At which hit ratios it pays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pays {
    /// At none.
    Nowhere,
    /// From and to; `None` is the end of the curve.
    Between {
        /// Above this one.
        from: Option<f64>,
        /// Below this one.
        to: Option<f64>,
    },
}

/// The stretch of hit ratios in which the speed-up reaches `threshold`: the one that holds `hit`, where the user's database
/// is, else the nearest.
///
/// `curve`: hit ratio and speed-up, ascending. Between two points both the speed-up and the miss ratio are taken as straight
/// on log scales; with 70 points a crossing is right to about 0.2 % of the misses.
pub fn where_it_pays(curve: &[(f64, f64)], threshold: f64, hit: f64) -> Pays {
    let mut stretches: Vec<(Option<f64>, Option<f64>)> = Vec::new();
    let mut open = curve.first().filter(|p| p.1 >= threshold).map(|_| None);
    for pair in curve.windows(2) {
        match (pair[0].1 >= threshold, pair[1].1 >= threshold) {
            (false, true) => open = Some(Some(crossing(pair[0], pair[1], threshold))),
            (true, false) => {
                stretches.push((open.take().flatten(), Some(crossing(pair[0], pair[1], threshold))));
            }
            _ => {}
        }
    }
    if let Some(from) = open {
        stretches.push((from, None));
    }
    let outside = |(from, to): &(Option<f64>, Option<f64>)| {
        let misses = |h: f64| (1.0 - h).ln();
        let below = from.map_or(0.0, |from| misses(hit) - misses(from));
        let above = to.map_or(0.0, |to| misses(to) - misses(hit));
        below.max(above).max(0.0)
    };
    let nearest = stretches.into_iter().min_by(|a, b| outside(a).total_cmp(&outside(b)));
    nearest.map_or(Pays::Nowhere, |(from, to)| Pays::Between { from, to })
}

fn crossing(a: (f64, f64), b: (f64, f64), threshold: f64) -> f64 {
    let share = (a.1 / threshold).ln() / (a.1 / b.1).ln();
    let (from, to) = ((1.0 - a.0).ln(), (1.0 - b.0).ln());
    1.0 - (from + share.clamp(0.0, 1.0) * (to - from)).exp()
}

/// `steps + 1` hit ratios from 0 to `hit_max`, equal steps on the logarithm of the miss ratio: the upper end, where
/// databases live, is not squeezed into a corner. `hit` is one of them.
pub fn hits(steps: usize, hit_max: f64, hit: f64) -> Vec<f64> {
    let span = (1.0 - hit_max).ln();
    let mut all: Vec<f64> = (0..=steps).map(|i| 1.0 - (span * i as f64 / steps as f64).exp()).collect();
    if hit <= hit_max {
        all.push(hit);
        all.sort_by(f64::total_cmp);
        all.dedup_by(|a, b| (*a - *b).abs() < 1e-9);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs() -> Inputs {
        Inputs {
            read_share: 1.0,
            hit_ratio: 0.9,
            page_cache_hit_ratio: 0.0,
            gets: 40.0,
            block_writes: None,
            commits: 0.0,
            cpu_per_get_ns: 1e6,
            cores: 1,
            sessions: 1,
        }
    }

    fn measured(read_one: f64) -> Measured {
        let read = Curve { one: Some(read_one), many: read_one * 8.0, sessions: 8 };
        Measured { read, commit: None, write: None, cpu_ns: [0.0; 3], page_cache_ns: None }
    }

    #[test]
    fn one_session_is_the_sum_of_its_times() {
        // 40 ms of CPU and 4 misses of 10 ms each: 80 ms.
        assert!((inputs().throughput(&measured(100.0)) - 12.5).abs() < 1e-9);
        assert!((inputs().by_hand_ns(&measured(100.0)) - 80e6).abs() < 1.0);
    }

    #[test]
    fn many_sessions_are_bound_by_the_slowest_part() {
        let crowd = Inputs { sessions: 64, cores: 64, ..inputs() };
        // Reads saturate at 800/s with 8 in flight; 4 reads a transaction: 200 transactions a second at most.
        let rate = crowd.throughput(&measured(100.0));
        assert!(rate < 200.0 + 1e-9 && rate > 190.0, "{rate}");
        assert_eq!(crowd.bottleneck(&measured(100.0)), Part::Read);
        let cached = Inputs { hit_ratio: 0.9999, cores: 1, ..crowd };
        assert_eq!(cached.bottleneck(&measured(100.0)), Part::Cpu);
    }

    #[test]
    fn curves_pass_through_their_points() {
        let rates = Curve { one: Some(100.0), many: 800.0, sessions: 8 }.rates(10);
        assert_eq!((rates[0], rates[1], rates[8], rates[10]), (0.0, 100.0, 800.0, 800.0));
        assert!((rates[4] - 400.0).abs() < 1e-9);
        let flat = Curve { one: None, many: 800.0, sessions: 8 }.rates(8);
        assert!((flat[2] - 200.0).abs() < 1e-9);
    }

    #[test]
    fn break_even_agrees_with_the_closed_form() {
        // One session: (C + g(1-h)R_a) / (C + g(1-h)R_b) = 1.03 has the solution of docs/method.md, 8.2 (up to the
        // definition of the gain, which there is relative to B's time and here to A's).
        let (r_a, r_b, c, gets) = (420e3, 355e3, 450e3, 40.0);
        let speed = |h: f64| (c + gets * (1.0 - h) * r_a) / (c + gets * (1.0 - h) * r_b);
        let exact = 1.0 - 0.03 * c / (gets * (r_a - 1.03 * r_b));
        let curve = |speed: &dyn Fn(f64) -> f64| -> Vec<(f64, f64)> {
            hits(72, 0.9999, 0.9).into_iter().map(|h| (h, speed(h))).collect()
        };
        let Pays::Between { from: None, to: Some(h) } = where_it_pays(&curve(&speed), 1.03, 0.9) else {
            panic!("falls through the margin once")
        };
        assert!(((1.0 - h) / (1.0 - exact) - 1.0).abs() < 2e-3, "{h} {exact}");
        assert_eq!(where_it_pays(&curve(&|_| 1.01), 1.03, 0.9), Pays::Nowhere);
        assert_eq!(where_it_pays(&curve(&|_| 1.5), 1.03, 0.9), Pays::Between { from: None, to: None });
        // A faster log with slower reads pays where there are few reads.
        let Pays::Between { from: Some(from), to: None } = where_it_pays(&curve(&|h| 0.5 + h), 1.03, 0.9)
        else {
            panic!("rises through the margin once")
        };
        assert!((from - 0.53).abs() < 0.01, "{from}");
        // Of two stretches, the one at the user's hit ratio.
        let twice = [(0.0, 1.2), (0.5, 1.0), (0.8, 1.0), (0.9, 1.2), (0.95, 1.2), (0.99, 1.0)];
        for (hit, left) in [(0.1, true), (0.55, true), (0.79, false), (0.92, false), (0.999, false)] {
            let Pays::Between { from, to: Some(_) } = where_it_pays(&twice, 1.03, hit) else {
                panic!("{hit}")
            };
            assert_eq!(from.is_none(), left, "{hit}");
        }
    }

    #[test]
    fn a_page_cache_helps_only_who_uses_it() {
        let second = Inputs { page_cache_hit_ratio: 0.5, ..inputs() };
        let direct = measured(100.0);
        let cached = Measured { page_cache_ns: Some(15e3), ..direct };
        assert!((second.throughput(&direct) - inputs().throughput(&direct)).abs() < 1e-9);
        assert!(second.throughput(&cached) > 1.3 * second.throughput(&direct));
    }
}
