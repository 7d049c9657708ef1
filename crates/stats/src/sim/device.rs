//! Devices: a true curve, an environment that moves it, the counting noise of finite samples, a transient after each change.

use crate::search::{Reading, Target};
use std::convert::Infallible;
use units::{Rng, Seed};

/// Length of an interval, seconds.
const INTERVAL: f64 = 0.25;
/// Most requests in flight of every simulated device.
const N_MAX: u32 = 1024;

/// A shape of the curve "operations per second over requests in flight".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Device {
    /// 12,500/s alone, a plateau of 780,000/s.
    NvmePlateau,
    /// Four cores: the peak of 214,000/s at 15, 5,000/s at 80. The case that ruined a calibration.
    CpuCollapse,
    /// A broad maximum at 70, then retrograde (universal scalability law).
    UslRetro,
    /// A disk: 80/s alone, 219/s at 32, slowly falling.
    HddNcq,
    /// A hard limit of 16,000/s.
    CloudCap,
    /// A local maximum at 16, the true one at 110.
    NfsTwoHump,
    /// A sharp peak at 6.
    NarrowPeak,
    /// Many threads on two cores: a maximum at 8, half of it only at several dozen, a long way down. Not among
    /// [`Device::ALL`].
    Oversubscribed,
}

impl Device {
    /// The seven of the method's acceptance test.
    pub const ALL: [Self; 7] = [
        Self::NvmePlateau,
        Self::CpuCollapse,
        Self::UslRetro,
        Self::HddNcq,
        Self::CloudCap,
        Self::NfsTwoHump,
        Self::NarrowPeak,
    ];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NvmePlateau => "nvme_plateau",
            Self::CpuCollapse => "cpu_collapse",
            Self::UslRetro => "usl_retro",
            Self::HddNcq => "hdd_ncq",
            Self::CloudCap => "cloud_cap",
            Self::NfsTwoHump => "nfs_two_hump",
            Self::NarrowPeak => "narrow_peak",
            Self::Oversubscribed => "oversubscribed",
        }
    }

    /// True operations per second with `n` in flight, `n >= 1`.
    pub fn rate(self, n: f64) -> f64 {
        // A smooth min(n × alone, most).
        let smooth =
            |alone: f64, most: f64, soft: f64| ((n * alone).powf(-soft) + most.powf(-soft)).powf(-1.0 / soft);
        let beyond =
            |knee: f64, scale: f64, power: f64| 1.0 / (1.0 + ((n - knee).max(0.0) / scale).powf(power));
        match self {
            Self::NvmePlateau => smooth(12_500.0, 780e3, 3.0),
            Self::CpuCollapse => smooth(20_500.0, 232e3, 4.0) * beyond(14.0, 10.0, 2.0),
            Self::UslRetro => 10_000.0 * n / (1.0 + 0.02 * (n - 1.0) + 0.0002 * n * (n - 1.0)),
            Self::HddNcq => {
                80.0 * n.min(32.0).powf(0.29) * if n > 48.0 { (48.0 / n).powf(0.022) } else { 1.0 }
            }
            Self::CloudCap => smooth(1_050.0, 16_000.0, 12.0),
            Self::NfsTwoHump => {
                let dip = 1.0 - 0.16 * (-((n / 32.0).ln() / 0.35).powi(2)).exp();
                smooth(2_100.0, 33.5e3, 4.0) * dip * beyond(110.0, 260.0, 1.5)
            }
            Self::NarrowPeak => smooth(30_000.0, 175e3, 10.0) * beyond(6.0, 4.0, 1.2),
            Self::Oversubscribed => smooth(9_000.0, 60e3, 4.0) * beyond(8.0, 60.0, 1.0),
        }
    }
}

/// An environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Noise {
    /// A laboratory: 0.3 % slow, 0.7 % fast.
    Quiet,
    /// A server of one's own: 1 % slow, 2 % fast, a stall each minute.
    Typical,
    /// A shared array: 3 % slow, 5 % fast, two stalls each minute, a neighbour who takes 10 % on and off.
    Shared,
    /// Typical, and 2 % slower each minute.
    Drifting,
}

impl Noise {
    /// All four.
    pub const ALL: [Self; 4] = [Self::Quiet, Self::Typical, Self::Shared, Self::Drifting];
}

struct Parameters {
    slow_sd: f64,
    slow_seconds: f64,
    fast_sd: f64,
    fast_seconds: f64,
    stalls_per_second: f64,
    stall_seconds: f64,
    neighbour_share: f64,
    neighbour_seconds: f64,
    trend_per_minute: f64,
    count_variation: f64,
}

impl Noise {
    const fn parameters(self) -> Parameters {
        let typical = Parameters {
            slow_sd: 0.010,
            slow_seconds: 300.0,
            fast_sd: 0.020,
            fast_seconds: 2.0,
            stalls_per_second: 1.0 / 60.0,
            stall_seconds: 0.5,
            neighbour_share: 0.0,
            neighbour_seconds: 60.0,
            trend_per_minute: 0.0,
            count_variation: 1.0,
        };
        match self {
            Self::Typical => typical,
            Self::Quiet => Parameters {
                slow_sd: 0.003,
                fast_sd: 0.007,
                fast_seconds: 1.5,
                stalls_per_second: 0.0,
                ..typical
            },
            Self::Shared => Parameters {
                slow_sd: 0.030,
                slow_seconds: 200.0,
                fast_sd: 0.050,
                stalls_per_second: 1.0 / 30.0,
                stall_seconds: 0.7,
                neighbour_share: 0.10,
                count_variation: 1.5,
                ..typical
            },
            Self::Drifting => Parameters { trend_per_minute: -0.02, ..typical },
        }
    }
}

/// A simulated device in a simulated environment. Mean latency obeys Little's law exactly.
pub struct SimDevice {
    device: Device,
    noise: Parameters,
    rng: Rng,
    clock: f64,
    slow: f64,
    fast: f64,
    neighbour: bool,
    stall_left: f64,
    /// What is really in flight: follows a change with a time constant of half a second.
    in_flight: f64,
}

impl SimDevice {
    /// A device that has just been switched on.
    pub fn new(device: Device, noise: Noise, seed: Seed) -> Self {
        let (noise, mut rng) = (noise.parameters(), Rng::new(seed));
        let (slow, fast) = (noise.slow_sd * rng.normal(), noise.fast_sd * rng.normal());
        let neighbour = rng.unit() < 0.5;
        Self { device, noise, rng, clock: 0.0, slow, fast, neighbour, stall_left: 0.0, in_flight: 1.0 }
    }

    /// The smallest n that gives the true maximum, and the operations per second there.
    pub fn true_max(&self) -> (u32, f64) {
        (1..=N_MAX)
            .map(|n| (n, self.true_rate(n)))
            .fold((1, 0.0), |best, at| if at.1 > best.1 { at } else { best })
    }

    /// True operations per second for n = 1 ..= 1024; index 0 is n = 1.
    pub fn true_curve(&self) -> Vec<f64> {
        (1..=N_MAX).map(|n| self.true_rate(n)).collect()
    }

    /// True operations per second with `n` in flight.
    pub fn true_rate(&self, n: u32) -> f64 {
        self.device.rate(f64::from(n.clamp(1, N_MAX)))
    }

    /// One interval with `n` in flight: operations per second.
    fn step(&mut self, n: u32) -> f64 {
        const SETTLE_SECONDS: f64 = 0.5;
        let p = &self.noise;
        let memory = |seconds: f64| (-INTERVAL / seconds).exp();
        let walk = |x: f64, sd: f64, a: f64, z: f64| a * x + (1.0 - a * a).sqrt() * sd * z;
        self.slow = walk(self.slow, p.slow_sd, memory(p.slow_seconds), self.rng.normal());
        self.fast = walk(self.fast, p.fast_sd, memory(p.fast_seconds), self.rng.normal());
        if p.neighbour_share > 0.0 && self.rng.unit() < INTERVAL / p.neighbour_seconds {
            self.neighbour = !self.neighbour;
        }
        if self.stall_left <= 0.0 && self.rng.unit() < p.stalls_per_second * INTERVAL {
            self.stall_left = self.rng.exponential(p.stall_seconds);
        }
        let stalled = self.stall_left.min(INTERVAL) / INTERVAL;
        self.stall_left = (self.stall_left - INTERVAL).max(0.0);
        let target = f64::from(n.clamp(1, N_MAX));
        self.in_flight = target + (self.in_flight - target) * memory(SETTLE_SECONDS);
        let mut environment = (self.slow + self.fast + p.trend_per_minute * self.clock / 60.0).exp();
        if self.neighbour {
            environment *= 1.0 - p.neighbour_share;
        }
        let mean = self.device.rate(self.in_flight.max(1.0)) * environment * INTERVAL * (1.0 - 0.9 * stalled);
        let counted = mean + 0.5 * p.count_variation * mean.max(1e-9).sqrt() * self.rng.normal();
        self.clock += INTERVAL;
        counted.max(0.0) / INTERVAL
    }

    fn run(&mut self, n: u32, seconds: f64) -> Vec<f64> {
        let steps = (seconds / INTERVAL).round() as usize;
        (0..steps).map(|_| self.step(n)).collect()
    }
}

impl Target for SimDevice {
    type Error = Infallible;

    fn read(&mut self, n: u32, settle_seconds: f64, seconds: f64) -> Result<Reading, Infallible> {
        let started = self.clock;
        self.run(n, settle_seconds);
        let rates = self.run(n, seconds.max(INTERVAL));
        let latency_mean_ns = f64::from(n) * rates.len() as f64 / rates.iter().sum::<f64>().max(1e-9) * 1e9;
        Ok(Reading { rates, latency_mean_ns, seconds: self.clock - started, errors: 0 })
    }

    fn elapsed_seconds(&self) -> f64 {
        self.clock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_those_of_the_method() {
        // numpy: simdev.curve(name)[1:], first index of the maximum, and the value there.
        for (device, n, rate) in [
            (Device::CpuCollapse, 15, 214_137.6),
            (Device::UslRetro, 70, 209_205.0),
            (Device::HddNcq, 32, 218.566),
            (Device::NfsTwoHump, 110, 33_496.3),
            (Device::NarrowPeak, 6, 165_433.3),
        ] {
            let (at, most) = SimDevice::new(device, Noise::Quiet, Seed(1)).true_max();
            assert!(at == n && (most / rate - 1.0).abs() < 1e-5, "{device:?}: {most} at {at}");
        }
        let collapse = SimDevice::new(Device::CpuCollapse, Noise::Quiet, Seed(1));
        assert!((4_000.0..6_000.0).contains(&collapse.true_rate(80)));
    }

    #[test]
    fn the_same_seed_gives_the_same_device() {
        let run = |s| SimDevice::new(Device::UslRetro, Noise::Shared, Seed(s)).run(8, 5.0);
        assert_eq!(run(4), run(4));
        assert_ne!(run(4), run(5));
    }

    #[test]
    fn readings_obey_littles_law_and_count_their_time() {
        let mut device = SimDevice::new(Device::NvmePlateau, Noise::Typical, Seed(2));
        let Ok(reading) = device.read(32, 1.0, 3.0);
        let mean = crate::sample::mean(&reading.rates);
        assert!((reading.latency_mean_ns * mean / 1e9 - 32.0).abs() < 1e-9);
        assert!((reading.seconds - 4.0).abs() < 1e-9 && (device.elapsed_seconds() - 4.0).abs() < 1e-9);
        assert_eq!(reading.rates.len(), 12);
    }
}
