//! Short series, and the detector step by step. The scenarios of section 2.3 are in `tests/steady.rs`.

use super::*;
use units::{Rng, Seed};

fn noisy(count: usize, sd: f64, seed: u64, at: impl Fn(f64) -> f64) -> Vec<f64> {
    let mut rng = Rng::new(Seed(seed));
    (0..count).map(|i| at(i as f64) * (sd * rng.normal()).exp()).collect()
}

#[track_caller]
fn check(rates: &[f64], interval: f64, class: Class) -> Assessment {
    let a = assess(rates, interval, 0.03);
    assert_eq!(a.class, class, "{a:?}");
    a
}

#[test]
fn short_visits() {
    let flat = check(&noisy(40, 0.005, 1, |_| 5_000.0), 0.25, Class::Flat);
    assert!(flat.proven && flat.window_start == 0 && (flat.mean / 5_000.0 - 1.0).abs() < 0.01, "{flat:?}");
    check(&noisy(7, 0.005, 1, |_| 5_000.0), 1.0, Class::TooShort);
    check(&[], 1.0, Class::TooShort);
    check(&[0.0; 20], 1.0, Class::TooShort);
    let up = check(&noisy(40, 0.004, 2, |t| if t < 16.0 { 500.0 } else { 1_000.0 }), 0.25, Class::WarmUp);
    assert!(
        up.window_start >= 15 && up.window_start <= 19 && (up.mean / 1_000.0 - 1.0).abs() < 0.02,
        "{up:?}"
    );
    check(&noisy(40, 0.004, 3, |t| if t < 16.0 { 1_500.0 } else { 1_000.0 }), 0.25, Class::Slowdown);
    check(&noisy(20, 0.3, 4, |_| 1_000.0), 0.25, Class::TooShort);
}

#[test]
fn long_series() {
    let flat = check(&noisy(300, 0.01, 5, |_| 1_000.0), 1.0, Class::Flat);
    assert!(flat.proven && flat.period.is_none());
    let drift = check(&noisy(120, 0.002, 6, |t| 1_000.0 * (1.0 - 0.04 * t / 60.0)), 1.0, Class::Drift);
    assert!((-6.0..-2.0).contains(&drift.drift_percent_per_minute) && !drift.proven, "{drift:?}");
    let two = noisy(300, 0.004, 7, |t| {
        if t < 60.0 {
            500.0
        } else if t < 120.0 {
            1_500.0
        } else {
            1_000.0
        }
    });
    check(&two, 1.0, Class::TwoStage);
    let beat = noisy(400, 0.01, 8, |t| if t % 45.0 < 6.0 { 550.0 } else { 1_000.0 });
    let periodic = check(&beat, 1.0, Class::Periodic);
    assert_eq!(periodic.period, Some(45));
}

#[test]
fn a_rate_knows_no_units() {
    let rates = noisy(200, 0.01, 9, |_| 1.0);
    let (a, b) =
        (assess(&rates, 1.0, 0.03), assess(&rates.iter().map(|r| r * 1e6).collect::<Vec<_>>(), 1.0, 0.03));
    assert!(
        (a.mean * 1e6 / b.mean - 1.0).abs() < 1e-9 && a.class == b.class && a.window_start == b.window_start
    );
}

#[test]
fn a_flat_series_is_accepted_after_detect_and_measure() {
    let mut detector = Detector::new(Settings::default());
    let mut history = Vec::new();
    for rate in noisy(200, 0.005, 10, |_| 1_000.0) {
        let state = detector.push(rate, Mechanism::default());
        history.push(state);
        if let State::Accepted(a) = state {
            assert!(a.class == Class::Flat && a.proven, "{a:?}");
            break;
        }
    }
    assert_eq!(history.len(), 120, "60 s to detect, 60 s to measure");
    assert!(matches!(history[60], State::Measuring));
    assert_eq!(detector.push(1.0, Mechanism::default()), detector.state(), "an answer is final");
}

#[test]
fn background_filling_holds_a_flat_series_and_names_itself() {
    let mut detector = Detector::new(Settings::default());
    for (i, rate) in noisy(900, 0.005, 11, |_| 1_000.0).into_iter().enumerate() {
        let share = if i < 200 { 0.6 } else { 0.0 };
        let state =
            detector.push(rate, Mechanism { background_write_share: Some(share), ..Mechanism::default() });
        if (70..200).contains(&i) {
            assert_eq!(state, State::Detecting { held_by: Some(Hold::BackgroundWrites) }, "second {i}");
        }
    }
    let State::Accepted(a) = detector.state() else { panic!("{:?}", detector.state()) };
    assert_eq!(a.class, Class::TwoStage);
}

#[test]
fn gives_up_on_a_drift_and_says_so() {
    let mut detector = Detector::new(Settings { time_max_seconds: 300.0, ..Settings::default() });
    for rate in noisy(400, 0.002, 12, |t| 1_000.0 * (1.0 - 0.04 * t / 60.0)) {
        detector.push(rate, Mechanism::default());
    }
    let State::GaveUp(a) = detector.state() else { panic!("{:?}", detector.state()) };
    assert_eq!(a.class, Class::Drift);
}
