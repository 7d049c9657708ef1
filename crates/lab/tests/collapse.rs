//! The collapse beyond the knee, on simulated devices: knee, collapse and maximum keep their order, whatever the chance.
//!
//! The real one, on a FUSE file system whose workers trample each other, is in the binary's end-to-end tests, where the
//! sentence that names it can be read.
#![forbid(unsafe_code)]

use stats::search::{Plan, Stage, maximum};
use stats::sim::{Device, Noise, SimDevice};
use units::Seed;

/// A search on `device`, for each of ten seeds.
fn check(device: Device, plan: &Plan, collapses: bool) {
    let mut named = 0;
    for seed in 0..10 {
        let mut target = SimDevice::new(device, Noise::Typical, Seed(seed));
        let Ok(found) = maximum(&mut target, plan, Seed(seed).part(1), &mut |_| ());
        let name = device.name();
        let (true_n, true_rate) = target.true_max();
        assert!(
            found.rate_confirmed > 0.85 * true_rate,
            "{name}, seed {seed}: {} of {true_rate}",
            found.rate_confirmed
        );
        if let Some(knee) = found.n_knee {
            assert!(
                knee <= found.n_best.max(true_n),
                "{name}, seed {seed}: the knee {knee} lies beyond {}",
                found.n_best
            );
        }
        if let Some(collapse) = &found.collapse {
            named += 1;
            assert!(collapse.share_of_max < 0.6, "{name}, seed {seed}: {collapse:?}");
            if collapses {
                assert!(
                    collapse.n > found.n_best,
                    "{name}, seed {seed}: {collapse:?} before the maximum {}",
                    found.n_best
                );
                let end = found.points.iter().filter(|p| p.stage == Stage::Bracket).map(|p| p.n).max();
                assert!(
                    end.is_some_and(|n| n <= 16 * collapse.n),
                    "{name}: the ramp stops once it has collapsed: {end:?}"
                );
            }
        }
    }
    if collapses {
        assert_eq!(named, 10, "{}: a collapse was overlooked", device.name());
    } else {
        assert!(named <= 1, "{}: {named} of 10 searches saw a collapse where there is none", device.name());
    }
}

/// The device on which a calibration reported 5,058 at 80 processes, where 219,893 were to be had.
#[test]
fn a_collapse_is_always_named() {
    for plan in [Plan::quick(), Plan::standard(), Plan::thorough()] {
        check(Device::CpuCollapse, &plan, true);
    }
    check(Device::Oversubscribed, &Plan::standard(), true);
}

#[test]
fn a_plateau_is_no_collapse() {
    for device in [Device::NvmePlateau, Device::CloudCap, Device::HddNcq] {
        check(device, &Plan::standard(), false);
    }
}
