//! Throughput of a closed network by Buzen's convolution, with load-dependent stations.
//!
//! `G = f₁ * f₂ * …` with `f(n) = Π v/µ(k)`, think time as a delay station `Zⁿ/n!`; throughput is `G(N−1) / G(N)`.
//! Source: Buzen 1973, CACM 16; Chandy, Herzog & Woo 1975 (flow-equivalent server). The load-dependent mean-value recursion
//! is *not* used: near saturation it is numerically unstable and returned a speed-up of 2.53 where 1.22 was true.
//!
//! Kept in logarithms: 1000 parallel servers make `f` grow like e¹⁰⁰⁰, which no constant rescaling keeps inside a double at
//! both ends. That costs an exponential per term, some milliseconds at N = 1024; a map of who wins where solves tens of thousands of
//! small networks, so where one rescaling does fit (`f(n) βⁿ`, which divides the throughput by β) plain products are summed.

/// A place where transactions queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Station {
    /// Visits per transaction.
    pub visits: f64,
    /// Completions per second with n present: `rate[n]`, n = 0 ..= N (`rate[0]` is ignored); the last value holds beyond.
    pub rate: Vec<f64>,
}

impl Station {
    /// From a measured curve whose index 0 is n = 1, as [`crate::search::curve`] gives it.
    pub fn measured(visits: f64, curve: &[f64]) -> Self {
        let mut rate = vec![0.0];
        rate.extend_from_slice(curve);
        Self { visits, rate }
    }

    /// `servers` alike, each serving in `seconds`: a CPU with cores.
    pub fn servers(visits: f64, servers: usize, seconds: f64) -> Self {
        Self { visits, rate: (0..=servers).map(|n| n as f64 / seconds).collect() }
    }

    fn rate_at(&self, n: usize) -> f64 {
        self.rate.get(n).or(self.rate.last()).copied().unwrap_or(0.0)
    }

    /// ln f(n) for n = 0 ..= `n_max`.
    fn log_products(&self, n_max: usize) -> Vec<f64> {
        let mut log = vec![0.0; n_max + 1];
        for n in 1..=n_max {
            log[n] = log[n - 1] + (self.visits / self.rate_at(n)).ln();
        }
        log
    }
}

/// `ln Σ exp(a[k] + b[n−k])` for each n.
fn convolve(a: &[f64], b: &[f64]) -> Vec<f64> {
    (0..a.len())
        .map(|n| {
            let terms = || (0..=n).map(|k| a[k] + b[n - k]);
            let top = terms().fold(f64::NEG_INFINITY, f64::max);
            if top == f64::NEG_INFINITY {
                top
            } else {
                top + terms().map(|t| (t - top).exp()).sum::<f64>().ln()
            }
        })
        .collect()
}

/// Transactions per second of `n` sessions that think for `think_seconds` between transactions.
///
/// Stations that are not visited do not count. 0 for no sessions, or when a visited station does not work at all; infinite
/// when nothing takes any time.
pub fn network_throughput(stations: &[Station], think_seconds: f64, n: usize) -> f64 {
    if n == 0 {
        return 0.0;
    }
    let visited = stations.iter().filter(|s| s.visits > 0.0);
    if visited.clone().any(|s| (1..=n).any(|k| s.rate_at(k) <= 0.0)) {
        return 0.0;
    }
    let mut stations: Vec<Vec<f64>> = visited.map(|station| station.log_products(n)).collect();
    // With no think time the delay station is empty: f(0) = 1 and nothing else.
    if think_seconds > 0.0 {
        let mut thinking = vec![0.0; n + 1];
        for k in 1..=n {
            thinking[k] = thinking[k - 1] + (think_seconds / k as f64).ln();
        }
        stations.push(thinking);
    }
    if let Some(throughput) = plain(&stations, n) {
        return throughput;
    }
    let mut g = vec![f64::NEG_INFINITY; n + 1];
    g[0] = 0.0;
    for station in &stations {
        g = convolve(&g, station);
    }
    (g[n - 1] - g[n]).exp()
}

/// Largest exponent, up or down, of a term that plain products may have: sums of them and of their products stay finite, and what is
/// lost below is nothing beside the largest.
const EXPONENT_MAX: f64 = 100.0;

/// The same with plain products; `None` where no single rescaling keeps all terms inside a double.
fn plain(stations: &[Vec<f64>], n: usize) -> Option<f64> {
    // The slowest station grows fastest: divided by its growth, every term is at most about 1.
    let growth = stations.iter().map(|log| log[n] / n as f64).fold(f64::NEG_INFINITY, f64::max);
    let mut g = vec![0.0; n + 1];
    g[0] = 1.0;
    let mut next = vec![0.0; n + 1];
    for log in stations {
        let mut scaled = vec![0.0; n + 1];
        for (k, term) in scaled.iter_mut().enumerate() {
            let exponent = log[k] - growth * k as f64;
            if exponent > EXPONENT_MAX {
                return None;
            }
            *term = exponent.exp();
        }
        for (m, sum) in next.iter_mut().enumerate() {
            *sum = (0..=m).map(|k| g[k] * scaled[m - k]).sum();
        }
        std::mem::swap(&mut g, &mut next);
    }
    let throughput = g[n - 1] / g[n] * (-growth).exp();
    (throughput.is_finite() && throughput > 0.0 && g[n] > 1e-280).then_some(throughput)
}

/// Index of the station that is busiest with `n` sessions: the one whose speed-up would help most. 0 when there are none.
pub fn bottleneck(stations: &[Station], think_seconds: f64, n: usize) -> usize {
    let throughput = network_throughput(stations, think_seconds, n);
    let busy = |s: &Station| {
        let most = (1..=n.max(1)).map(|k| s.rate_at(k)).fold(0.0, f64::max);
        if s.visits > 0.0 { throughput * s.visits / most } else { 0.0 }
    };
    (0..stations.len()).max_by(|a, b| busy(&stations[*a]).total_cmp(&busy(&stations[*b]))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database(cpu: f64, reads: f64) -> Vec<Station> {
        let log = |n: usize| match n {
            0 => 0.0,
            1 => 1.0 / 180e-6,
            n => n as f64 / 270e-6,
        };
        vec![
            Station::servers(1.0, 8, cpu),
            Station::servers(reads, 24, 330e-6),
            Station { visits: 1.0, rate: (0..=64).map(log).collect() },
        ]
    }

    #[test]
    fn golden_number_of_the_method() {
        let x = network_throughput(&database(1e-3, 4.0), 0.0, 32);
        assert!((x - 7_998.083_469).abs() < 1e-5, "{x}");
    }

    #[test]
    fn light_load_is_sessions_over_time_and_heavy_load_the_slowest_station() {
        let stations = database(1e-3, 4.0);
        let alone = 1e-3 + 4.0 * 330e-6 + 180e-6;
        assert!((network_throughput(&stations, 0.0, 1) * alone - 1.0).abs() < 1e-12);
        assert!((network_throughput(&stations, 10.0, 1) * (alone + 10.0) - 1.0).abs() < 1e-12);
        let slow_reads = database(1e-3, 40.0);
        let limit = 24.0 / 330e-6 / 40.0;
        let x = network_throughput(&slow_reads, 0.0, 1024);
        assert!(x <= limit * (1.0 + 1e-9) && x > 0.9999 * limit, "{x} of {limit}");
        assert_eq!((bottleneck(&slow_reads, 0.0, 64), bottleneck(&stations, 0.0, 64)), (1, 0));
    }

    #[test]
    fn more_sessions_never_do_less_where_no_station_does() {
        let stations = database(1e-3, 4.0);
        let x: Vec<f64> = (1..80).map(|n| network_throughput(&stations, 0.001, n)).collect();
        assert!(x.windows(2).all(|w| w[1] >= w[0] * (1.0 - 1e-12)));
    }

    #[test]
    fn a_thousand_servers_and_long_thinking_stay_finite() {
        let wide = [Station::servers(1.0, 1024, 1e-3), Station::servers(3.0, 1024, 1e-3)];
        let x = network_throughput(&wide, 0.0, 1024);
        assert!((x * 4e-3 / 1024.0 - 1.0).abs() < 1e-9, "a delay-like network: {x}");
        let think = network_throughput(&database(1e-3, 4.0), 1_000.0, 1024);
        assert!((think - 1024.0 / 1_000.0).abs() < 0.01, "{think}");
    }

    #[test]
    fn plain_products_and_logarithms_agree() {
        let by_logarithms = |stations: &[Station], think: f64, n: usize| {
            let mut g = vec![f64::NEG_INFINITY; n + 1];
            g[0] = 0.0;
            for k in 1..=n {
                g[k] = g[k - 1] + (think / k as f64).ln();
            }
            let g = stations.iter().fold(g, |g, s| convolve(&g, &s.log_products(n)));
            (g[n - 1] - g[n]).exp()
        };
        for (cpu, reads, think, n) in
            [(1e-3, 4.0, 0.0, 1), (1e-3, 4.0, 0.0, 10), (1e-6, 40.0, 1e-4, 32), (1e-1, 0.01, 0.0, 64)]
        {
            let stations = database(cpu, reads);
            let logs: Vec<Vec<f64>> = stations.iter().map(|s| s.log_products(n)).collect();
            assert!(think > 0.0 || plain(&logs, n).is_some(), "a small network needs no logarithms");
            let (a, b) = (network_throughput(&stations, think, n), by_logarithms(&stations, think, n));
            assert!((a / b - 1.0).abs() < 1e-10, "{a} and {b}");
        }
    }

    #[test]
    fn what_is_not_there_does_not_count() {
        let mut stations = database(1e-3, 4.0);
        let before = network_throughput(&stations, 0.0, 8);
        stations.push(Station { visits: 0.0, rate: vec![] });
        assert_eq!(network_throughput(&stations, 0.0, 8), before);
        stations.push(Station { visits: 1.0, rate: vec![0.0] });
        assert_eq!(network_throughput(&stations, 0.0, 8), 0.0);
        assert_eq!(network_throughput(&stations, 0.0, 0), 0.0);
        assert_eq!(bottleneck(&[], 0.0, 8), 0);
    }

    #[test]
    fn a_measured_curve_becomes_a_station() {
        let station = Station::measured(2.0, &[100.0, 180.0]);
        assert_eq!((station.rate_at(1), station.rate_at(2), station.rate_at(9)), (100.0, 180.0, 180.0));
    }
}
