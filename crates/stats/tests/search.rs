//! The search on simulated devices: the operating point within 3 %, collapses named, latency limits met, knees found.

use stats::search::{self, Found, LatencyBound, Plan, Point, Stage};
use stats::sim::{self, Device, Noise, SimDevice};
use units::Seed;

fn search(device: Device, noise: Noise, plan: &Plan, seed: u64) -> (Found, SimDevice) {
    let mut target = SimDevice::new(device, noise, Seed(seed));
    let Ok(found) = search::maximum(&mut target, plan, Seed(seed).part(7), &mut |_| ());
    (found, target)
}

/// The promise: 95 % within 3 % in typical noise. The share here is over 7 devices × 50 seeds.
#[test]
fn finds_the_operating_point_in_typical_noise() {
    let mut shares = Vec::new();
    for device in Device::ALL {
        let plan = Plan { knee: false, beyond: false, ..Plan::thorough() };
        let result = sim::acceptance_of(device, Noise::Typical, 50, &plan);
        assert!(result.within_3_percent >= 0.90, "{device:?}: {result:?}");
        assert!(
            result.seconds < if device == Device::HddNcq { 320.0 } else { 200.0 },
            "{device:?}: {result:?}"
        );
        shares.push(result.within_3_percent);
    }
    assert!(shares.iter().sum::<f64>() / 7.0 >= 0.95, "{shares:?}");
}

#[test]
fn finds_it_in_every_environment() {
    for (noise, least) in [(Noise::Quiet, 0.99), (Noise::Drifting, 0.94), (Noise::Shared, 0.85)] {
        let share = sim::acceptance(20, noise);
        assert!(share >= least, "{noise:?}: {share}");
    }
}

#[test]
fn the_standard_plan_keeps_the_promise_in_half_the_time() {
    for device in Device::ALL {
        let result = sim::acceptance_of(device, Noise::Typical, 40, &Plan::standard());
        assert!(result.within_3_percent >= 0.90, "{device:?}: {result:?}");
        assert!(
            result.seconds < if device == Device::HddNcq { 150.0 } else { 100.0 },
            "{device:?}: {result:?}"
        );
    }
}

#[test]
fn the_quick_plan_is_quick_and_calls_itself_a_lower_bound() {
    for device in Device::ALL {
        let (found, target) = search(device, Noise::Typical, &Plan::quick(), 5);
        assert!(found.lower_bound_only && found.seconds < 45.0, "{device:?}: {} s", found.seconds);
        assert!(target.true_rate(found.n_best) > 0.70 * target.true_max().1, "{device:?}: {}", found.n_best);
    }
}

/// The case of the ruined calibration: 4 cores, 80 workers, 5,058 instead of 219,893 operations per second.
#[test]
fn a_collapse_is_named_and_never_reported_as_the_maximum() {
    for device in [Device::CpuCollapse, Device::NarrowPeak, Device::Oversubscribed] {
        for plan in [Plan::quick(), Plan::standard(), Plan::thorough()] {
            for seed in 0..15 {
                let (found, target) = search(device, Noise::Typical, &plan, seed);
                let share = target.true_rate(found.n_best) / target.true_max().1;
                assert!(
                    share > 0.70,
                    "{device:?}, seed {seed}: {} gives {share} of the maximum",
                    found.n_best
                );
                let collapse = found.collapse.expect("a collapse must be named");
                assert!(collapse.n > found.n_best && collapse.share_of_max < 0.5, "{device:?}: {collapse:?}");
                let truly = target.true_rate(collapse.n) / target.true_max().1;
                assert!(truly < 0.6, "{device:?}: named at {} where {truly} is left", collapse.n);
            }
        }
    }
}

#[test]
fn no_collapse_is_invented() {
    for device in [Device::NvmePlateau, Device::CloudCap, Device::HddNcq] {
        for seed in 0..20 {
            let (found, _) = search(device, Noise::Typical, &Plan::standard(), seed);
            assert_eq!(found.collapse, None, "{device:?}, seed {seed}");
        }
    }
}

/// The ramp stops at the collapse: the machine is not driven further into it.
#[test]
fn never_pushes_on_into_a_collapse() {
    let (found, _) = search(Device::CpuCollapse, Noise::Typical, &Plan::thorough(), 1);
    let most = found.points.iter().map(|p| p.n).max().unwrap();
    assert_eq!(most, 32, "peak at 15, half of it gone at 32");
}

#[test]
fn the_knee_holds_the_level() {
    for device in Device::ALL {
        let result = sim::acceptance_of(device, Noise::Typical, 20, &Plan::thorough());
        assert!(result.knee_holds >= 0.90, "{device:?}: {result:?}");
        let standard = sim::acceptance_of(device, Noise::Typical, 20, &Plan::standard());
        assert!(standard.knee_holds >= 0.85, "{device:?}: {standard:?}");
    }
    for (device, low, high) in
        [(Device::CpuCollapse, 12, 15), (Device::UslRetro, 42, 62), (Device::CloudCap, 15, 20)]
    {
        for seed in 0..5 {
            let (found, _) = search(device, Noise::Quiet, &Plan::thorough(), seed);
            let knee = found.n_knee.unwrap();
            assert!((low..=high).contains(&knee), "{device:?}: {knee}");
        }
    }
}

#[test]
fn the_reported_maximum_is_fresh_data() {
    let (found, target) = search(Device::UslRetro, Noise::Typical, &Plan::thorough(), 3);
    let confirm: Vec<&Point> = found.points.iter().filter(|p| p.stage == Stage::Confirm).collect();
    let last = confirm.last().unwrap();
    assert_eq!((last.n, last.rate), (found.n_best, found.rate_confirmed));
    assert_eq!(found.confirm_rates.len(), 120, "30 s in quarters of a second");
    assert!((found.rate_confirmed / target.true_max().1 - 1.0).abs() < 0.08);
    assert!((found.n_saturation - 20.9).abs() < 2.5, "{}", found.n_saturation);
    assert!((found.latency_ns * found.rate_confirmed / 1e9 / f64::from(found.n_best) - 1.0).abs() < 0.01);
    assert!((16..=40).contains(&found.n_power), "{}", found.n_power);
}

#[test]
fn the_same_seed_repeats_the_search_and_every_point_is_told() {
    let run = || {
        let mut told = Vec::new();
        let mut target = SimDevice::new(Device::NfsTwoHump, Noise::Typical, Seed(4));
        let Ok(found) =
            search::maximum(&mut target, &Plan::standard(), Seed(5), &mut |p| told.push(p.clone()));
        assert_eq!(told, found.points);
        assert!((found.points.iter().map(|p| p.seconds).sum::<f64>() - found.seconds).abs() < 1e-6);
        found
    };
    assert_eq!(run(), run());
}

/// A CPU hog that arrives after the race: the confirmation must see it, or 18,000 is printed for 57,000.
#[test]
fn an_environment_that_changes_is_named() {
    struct Hogged(SimDevice, f64);
    impl search::Target for Hogged {
        type Error = std::convert::Infallible;
        fn read(&mut self, n: u32, settle: f64, seconds: f64) -> Result<search::Reading, Self::Error> {
            let mut reading = self.0.read(n, settle, seconds)?;
            if self.0.elapsed_seconds() > self.1 {
                reading.rates.iter_mut().for_each(|r| *r *= 0.3);
                reading.latency_mean_ns /= 0.3;
            }
            Ok(reading)
        }
        fn elapsed_seconds(&self) -> f64 {
            self.0.elapsed_seconds()
        }
    }
    let plan = Plan { knee: false, ..Plan::standard() };
    let calm = search(Device::UslRetro, Noise::Quiet, &plan, 6).0;
    assert_eq!(calm.environment_unstable, None);
    let confirm_at =
        calm.points.iter().take_while(|p| p.stage != Stage::Confirm).map(|p| p.seconds).sum::<f64>();
    let mut target = Hogged(SimDevice::new(Device::UslRetro, Noise::Quiet, Seed(6)), confirm_at + 0.1);
    let Ok(found) = search::maximum(&mut target, &plan, Seed(6).part(7), &mut |_| ());
    let why = found.environment_unstable.expect("the guard must fire");
    assert!(why.contains("apart"), "{why}");
    assert_eq!(found.points.iter().filter(|p| p.stage == Stage::Confirm).count(), 2, "it is repeated once");
}

/// The promise of section 6.4 on mean latency: within 5 % of the true rate at the limit in 97–100 % of runs.
#[test]
fn latency_limits_are_met() {
    for (device, limit_ns) in [
        (Device::NvmePlateau, 120e3),
        (Device::UslRetro, 200e3),
        (Device::CloudCap, 2e6),
        (Device::HddNcq, 50e6),
        (Device::NfsTwoHump, 1.2e6),
    ] {
        let (mut close, runs) = (0, 40);
        for seed in 0..runs {
            let mut target = SimDevice::new(device, Noise::Typical, Seed(seed));
            let passes = |n: &u32| f64::from(*n) / target.true_rate(*n) * 1e9 <= limit_ns;
            let true_n = (1..=1024).take_while(passes).last().unwrap();
            let true_rate = target.true_rate(true_n);
            let Ok(bound) = search::within_latency(
                &mut target,
                &Plan::thorough(),
                limit_ns,
                &[],
                Seed(seed),
                &mut |_| (),
            );
            let LatencyBound::Met { n, latency_ns, .. } = bound else { panic!("{device:?}: {bound:?}") };
            assert!(latency_ns <= 1.011 * limit_ns, "{device:?}: {latency_ns}");
            close += u64::from((target.true_rate(n) / true_rate - 1.0).abs() <= 0.05);
        }
        assert!(close * 100 >= runs * 95, "{device:?}: {close} of {runs}");
    }
}

#[test]
fn a_limit_that_one_request_breaks_is_said_so_and_the_ramp_is_reused() {
    let mut target = SimDevice::new(Device::HddNcq, Noise::Typical, Seed(1));
    let Ok(bound) = search::within_latency(&mut target, &Plan::standard(), 5e6, &[], Seed(1), &mut |_| ());
    let LatencyBound::NotMetByOne { latency_ns } = bound else { panic!("{bound:?}") };
    assert!((10e6..15e6).contains(&latency_ns), "{latency_ns}");

    let (found, mut target) = search(Device::NvmePlateau, Noise::Typical, &Plan::standard(), 2);
    let before = search::Target::elapsed_seconds(&target);
    let Ok(bound) =
        search::within_latency(&mut target, &Plan::standard(), 120e3, &found.points, Seed(2), &mut |_| ());
    let spent = search::Target::elapsed_seconds(&target) - before;
    assert!(matches!(bound, LatencyBound::Met { n: 70..=90, .. }), "{bound:?}");
    assert!(spent < 40.0, "{spent} s with the ramp known");
    let Ok(all) =
        search::within_latency(&mut target, &Plan::standard(), 1e12, &found.points, Seed(2), &mut |_| ());
    assert!(
        matches!(all, LatencyBound::Met { .. }),
        "a limit that never binds gives what was measured: {all:?}"
    );
}

#[test]
fn errors_of_the_target_end_the_search() {
    struct Broken(u32);
    impl search::Target for Broken {
        type Error = &'static str;
        fn read(&mut self, n: u32, _: f64, _: f64) -> Result<search::Reading, &'static str> {
            if n > self.0 {
                Err("EIO")
            } else {
                Ok(search::Reading { rates: vec![100.0 * f64::from(n); 4], ..Default::default() })
            }
        }
        fn elapsed_seconds(&self) -> f64 {
            0.0
        }
    }
    let mut told = 0;
    let result = search::maximum(&mut Broken(4), &Plan::quick(), Seed(1), &mut |_| told += 1);
    assert_eq!((result, told), (Err("EIO"), 3));
}

#[test]
fn failing_requests_stop_the_ramp_and_the_result_is_a_lower_bound() {
    struct Failing;
    impl search::Target for Failing {
        type Error = std::convert::Infallible;
        fn read(&mut self, n: u32, _: f64, seconds: f64) -> Result<search::Reading, Self::Error> {
            Ok(search::Reading {
                rates: vec![100.0 * f64::from(n); 8],
                latency_mean_ns: 1e7,
                seconds,
                errors: u64::from(n >= 16),
            })
        }
        fn elapsed_seconds(&self) -> f64 {
            0.0
        }
    }
    let Ok(found) = search::maximum(&mut Failing, &Plan::standard(), Seed(1), &mut |_| ());
    assert!(found.lower_bound_only && found.points.iter().all(|p| p.n <= 16), "{found:?}");
}
