//! From single figures to the user's workload (section 8): break-even by hand, and a small queueing network.
//!
//! The network is fed with the *measured* ramp curves as flow-equivalent servers. Against a discrete-event database it
//! predicted speed-ups within 1.9 % (mean 0.2 %); Amdahl on single-stream latencies was up to 26 % wrong, because it cannot see
//! that a faster log is worth nothing while the read device is saturated.

mod interaction;
mod network;
mod winner;

pub use interaction::{Residence, interacting_throughput};
pub use network::{Station, bottleneck, network_throughput};
pub use winner::{Winner, winner};

/// The buffer hit ratio below which B pays at least `delta` (0.03: 3 %) more transactions than A for one session.
///
/// `r_a_ns`, `r_b_ns`: read latencies. `cpu_and_log_ns`: the rest of a transaction. `gets`: logical reads per transaction.
/// `None`: it never pays that much, at any hit ratio. Source: section 8.2, `h* = 1 − δC / (g [(R_A − R_B) − δR_A])`.
pub fn break_even_hit_ratio(
    r_a_ns: f64,
    r_b_ns: f64,
    cpu_and_log_ns: f64,
    gets: f64,
    delta: f64,
) -> Option<f64> {
    let gain = gets * ((r_a_ns - r_b_ns) - delta * r_a_ns);
    let h = 1.0 - delta * cpu_and_log_ns / gain;
    (gain > 1e-9 * gets * r_a_ns && h > 0.0).then_some(h)
}

/// The hit ratio of the file system cache below which direct I/O (read latency `r_b`) beats buffered I/O (`r_a` on a miss,
/// `r_page_cache` on a hit), all in the same unit. Negative: never; the cache always wins.
pub fn second_level_break_even(r_a: f64, r_b: f64, r_page_cache: f64) -> f64 {
    (r_a - r_b) / (r_a - r_page_cache)
}

/// Seconds of one transaction in one session, no queueing: `cpu_and_log_ns + gets × (1 − hit_ratio) × read`, in nanoseconds.
pub fn transaction_ns(read_ns: f64, cpu_and_log_ns: f64, gets: f64, hit_ratio: f64) -> f64 {
    cpu_and_log_ns + gets * (1.0 - hit_ratio) * read_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn break_even_examples_of_the_method() {
        let h = |a, b, delta| break_even_hit_ratio(a, b, 450.0, 40.0, delta);
        assert!((h(420.0, 355.0, 0.03).unwrap() - 0.993_559).abs() < 1e-6);
        for (a, b, delta, want) in [
            (420.0, 355.0, 0.05, 0.987),
            (355.0, 330.0, 0.03, 0.976),
            (355.0, 330.0, 0.05, 0.922),
            (8_000.0, 7_600.0, 0.03, 0.998),
        ] {
            assert!((h(a, b, delta).unwrap() - want).abs() < 5e-4, "{a} {b} {delta}: {:?}", h(a, b, delta));
        }
        assert_eq!(h(8_000.0, 7_600.0, 0.05), None);
        assert_eq!(h(300.0, 400.0, 0.03), None, "the slower never pays");
        assert_eq!(break_even_hit_ratio(420.0, 355.0, 1e9, 1.0, 0.03), None, "nor where reads do not matter");
    }

    #[test]
    fn at_the_break_even_the_gain_is_delta() {
        let h = break_even_hit_ratio(420.0, 355.0, 450.0, 40.0, 0.03).unwrap();
        let (a, b) = (transaction_ns(420.0, 450.0, 40.0, h), transaction_ns(355.0, 450.0, 40.0, h));
        // The gain is counted as time saved: (T_A − T_B) / T_A.
        assert!(((a - b) / a - 0.03).abs() < 1e-12);
    }

    #[test]
    fn the_page_cache_beats_direct_io_above_16_percent() {
        assert!((second_level_break_even(420.0, 355.0, 15.0) - 0.1605).abs() < 1e-4);
        assert!(second_level_break_even(300.0, 355.0, 15.0) < 0.0);
    }
}
