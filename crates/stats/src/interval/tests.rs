//! Golden numbers of sections 4.3 and 5.4, and the laws that every interval obeys.

use super::*;
use units::{Rng, Seed};

const D: [f64; 6] = [0.031, 0.024, 0.040, 0.018, 0.029, 0.035];

fn ones_and_ratios() -> (Vec<f64>, Vec<f64>) {
    (vec![100.0; 6], D.iter().map(|d| 100.0 * d.exp()).collect())
}

#[test]
fn golden_example_of_the_method() {
    let (old, new) = ones_and_ratios();
    for (level, low, high) in [(0.95, 0.021297, 0.037703), (1.0 - 0.0142, 0.017736, 0.041263)] {
        let i = ratio(&old, &new, level).unwrap();
        assert!((i.value.ln() - 0.0295).abs() < 1e-12);
        assert!((i.low.ln() - low).abs() < 1e-6 && (i.high.ln() - high).abs() < 1e-6, "{level}: {i:?}");
    }
    for (g, low, high) in [(1.0, 0.012109, 0.046891), (4.0, 0.014411, 0.044589)] {
        let (l, h) = confidence_sequence(&D, 0.05, g);
        assert!((l - low).abs() < 5e-7 && (h - high).abs() < 5e-7, "g {g}: {l} {h}");
    }
    assert!((e_value(&D, 0.0, 1.0) - 54.901).abs() < 5e-4);
}

#[test]
fn mde_table_of_the_method() {
    let table = [
        (0.005, [1.04, 0.71, 0.58, 0.44, 0.37, 0.30]),
        (0.010, [2.08, 1.42, 1.15, 0.89, 0.75, 0.60]),
        (0.017, [3.54, 2.42, 1.96, 1.51, 1.27, 1.02]),
        (0.040, [8.32, 5.70, 4.61, 3.55, 3.00, 2.39]),
    ];
    for (sd, row) in table {
        for (n, percent) in [4, 6, 8, 12, 16, 24].into_iter().zip(row) {
            let got = 100.0 * mde(sd, n, 0.95, 0.8).ln_1p();
            assert!((got - percent).abs() < 0.006, "sd {sd}, n {n}: {got}, table {percent}");
        }
    }
    assert_eq!(mde(0.01, 1, 0.95, 0.8), f64::INFINITY);
}

#[test]
fn a_ratio_knows_no_units() {
    let (old, new) = ones_and_ratios();
    let a = ratio(&old, &new, 0.95).unwrap();
    let scale = |v: &[f64]| v.iter().map(|x| x * 1e6).collect::<Vec<_>>();
    let b = ratio(&scale(&old), &scale(&new), 0.95).unwrap();
    assert!((a.value - b.value).abs() < 1e-12 && (a.low - b.low).abs() < 1e-12);
    let swapped = ratio(&new, &old, 0.95).unwrap();
    assert!((swapped.low * a.high - 1.0).abs() < 1e-12 && (swapped.value * a.value - 1.0).abs() < 1e-12);
}

#[test]
fn an_interval_contains_its_value_and_a_sequence_is_never_narrower() {
    let mut rng = Rng::new(Seed(2));
    for n in 2..40 {
        let d: Vec<f64> = (0..n).map(|_| 0.01 + 0.02 * rng.normal()).collect();
        let old = vec![1.0; n];
        let new: Vec<f64> = d.iter().map(|d| d.exp()).collect();
        let i = ratio(&old, &new, 0.95).unwrap();
        assert!(i.low <= i.value && i.value <= i.high && i.n == n && i.contains(i.value));
        for g in [0.5, 1.0, 4.0] {
            let (low, high) = confidence_sequence(&d, 0.05, g);
            assert!(low <= i.low.ln() && high >= i.high.ln(), "n {n}, g {g}");
            let inside = e_value(&d, i.value.ln(), g);
            assert!(inside < 20.0, "the mean itself is never rejected");
            if low.is_finite() {
                assert!(
                    (e_value(&d, low, g) - 20.0).abs() < 1e-6,
                    "its end is where the e-value reaches 1/alpha"
                );
            }
        }
    }
}

#[test]
fn a_counter_that_sees_no_noise_keeps_its_resolution() {
    let i = absolute(&[3_000.0; 5], 0.95, 1.0 / 1_500.0).unwrap();
    assert!(i.low < 2_999.0 && i.high > 3_001.0 && (i.value - 3_000.0).abs() < 1e-9, "{i:?}");
    let bare = absolute(&[3_000.0; 5], 0.95, 0.0).unwrap();
    assert!(bare.half_width() < 1e-12);
}

#[test]
fn refuses_what_it_cannot_answer() {
    assert_eq!(absolute(&[1.0], 0.95, 0.0), Err(TooFew::Values { have: 1, need: 2 }));
    assert_eq!(absolute(&[1.0, 0.0], 0.95, 0.0), Err(TooFew::NotPositive { index: 1 }));
    assert_eq!(ratio(&[1.0, 2.0], &[1.0], 0.95), Err(TooFew::Unpaired { old: 2, new: 1 }));
    assert_eq!(ratio(&[1.0, f64::NAN], &[1.0, 1.0], 0.95), Err(TooFew::NotPositive { index: 1 }));
    for error in [
        TooFew::Values { have: 1, need: 2 },
        TooFew::NotPositive { index: 1 },
        TooFew::Unpaired { old: 2, new: 1 },
    ] {
        assert!(error.to_string().len() > 20);
    }
}

#[test]
fn covers_as_often_as_it_says() {
    let mut rng = Rng::new(Seed(3));
    let covered = (0..2_000)
        .filter(|_| {
            let v: Vec<f64> = (0..5).map(|_| (7.0 + 0.05 * rng.normal()).exp()).collect();
            absolute(&v, 0.95, 0.0).unwrap().contains(7f64.exp())
        })
        .count();
    assert!((1_870..=1_930).contains(&covered), "{covered} of 2000");
}

#[test]
fn sign_flips_are_exact_and_reproducible() {
    assert_eq!(sign_flip_p(&[1.0, 2.0, 3.0, 4.0]), 2.0 / 16.0);
    assert_eq!(sign_flip_p(&[1.0, -1.0]), 1.0);
    assert_eq!(sign_flip_p(&[0.0, 0.0]), 1.0);
    assert_eq!(sign_flip_p(&[]), 1.0);
    assert_eq!(sign_flip_p(&D), 2.0 / 64.0);
    let many: Vec<f64> = (0..20).map(|i| f64::from(i) - 4.0).collect();
    let p = sign_flip_p(&many);
    assert!(p == sign_flip_p(&many) && p > 1e-4 && p < 0.01, "{p}");
}

#[test]
fn robust_location_ignores_one_wild_block() {
    assert_eq!(hodges_lehmann(&[1.0, 2.0, 3.0]), 2.0);
    assert!((hodges_lehmann(&[0.01, 0.011, 0.009, 0.010, 0.5]) - 0.0105).abs() < 1e-9);
    assert!(hodges_lehmann(&[]).is_nan());
}

#[test]
fn fieller_matches_the_formula_and_knows_when_it_is_unbounded() {
    // By hand with t(.975, 30) = 2.042272: g = .010427, half = .020423 * sqrt(4.95833).
    let (low, high) = fieller(110.0, 2.0, 100.0, 5.0, 30.0, 0.95).unwrap();
    let t = 2.042_272_456_301_238;
    let g = t * t * 25.0 / 10_000.0;
    let half = t / 100.0 * (4.0 + 1.21 * 25.0 - g * 4.0_f64).sqrt();
    assert!((low - (1.1 - half) / (1.0 - g)).abs() < 1e-9 && (high - (1.1 + half) / (1.0 - g)).abs() < 1e-9);
    assert!(fieller(110.0, 2.0, 100.0, 60.0, 30.0, 0.95).is_none());
}

#[test]
fn forecasts() {
    assert_eq!(blocks_needed(0.06, 4, 0.03), 12);
    assert_eq!(blocks_needed(0.02, 4, 0.03), 0);
    assert_eq!(visit_seconds(10.0, 0.01, 0.0), 120.0);
    assert_eq!(visit_seconds(10.0, 0.0, 0.0), 20.0);
    assert!((visit_seconds(10.0, 4e-3, 1e-4) - 20.0).abs() < 1e-9);
}

#[test]
fn p_of_t_agrees_with_its_interval() {
    // scipy.stats.ttest_1samp(D, 0).pvalue
    assert!((t_p(&D) - 2.488_597_400_517_648_6e-4).abs() < 1e-12, "{}", t_p(&D));
    assert_eq!(t_p(&[0.1]), 1.0);
    assert_eq!(t_p(&[0.0, 0.0]), 1.0);
    assert!(t_p(&[0.1, 0.1, 0.1]) < 1e-12);
}

#[test]
fn a_share_of_a_gain_is_paired() {
    // The part is 0.85 of the whole in every block, whatever the block: exact.
    let whole = [10.0, 14.0, 8.0, 11.0];
    let part = whole.map(|w| 0.85 * w);
    let exact = share(&part, &whole, 0.95).unwrap();
    assert!((exact.value - 0.85).abs() < 1e-12 && exact.high - exact.low < 1e-6, "{exact:?}");
    assert_eq!(share(&part, &[1.0, -1.0, 0.5, -0.5], 0.95), None, "a share of nothing");
    let mut rng = units::Rng::new(units::Seed(4));
    let held = (0..1_000)
        .filter(|_| {
            let whole: Vec<f64> = (0..8).map(|_| 10.0 + rng.normal()).collect();
            let part: Vec<f64> = whole.iter().map(|w| 0.8 * w + 0.7 * rng.normal()).collect();
            share(&part, &whole, 0.95).is_some_and(|i| i.contains(0.8))
        })
        .count();
    assert!((925..=975).contains(&held), "{held} of 1000 intervals hold the truth");
}

#[test]
fn an_unpaired_ratio_is_welchs() {
    // scipy.stats.ttest_ind(log(new), log(old), equal_var=False) on these: difference 0.182321556, df 4.
    let old = [100.0, 110.0, 90.909_090_909_090_9];
    let new = [120.0, 132.0, 109.090_909_090_909_1];
    let r = unpaired(&old, &new, 0.95).unwrap();
    let half = t_quantile(0.975, 4.0) * (2.0f64 / 3.0).sqrt() * 1.1f64.ln();
    assert!((r.value - 1.2).abs() < 1e-9 && ((r.high / r.low).ln() / 2.0 - half).abs() < 1e-9, "{r:?}");
    assert!(unpaired(&[1.0], &new, 0.95).is_err());
    assert!((unpaired(&[5.0, 5.0], &[10.0, 10.0], 0.95).unwrap().low - 2.0).abs() < 1e-12);
    let mut rng = Rng::new(Seed(8));
    let held = (0..1_000)
        .filter(|_| {
            let old: Vec<f64> = (0..4).map(|_| (0.02 * rng.normal()).exp()).collect();
            let new: Vec<f64> = (0..8).map(|_| (0.3 + 0.06 * rng.normal()).exp()).collect();
            unpaired(&old, &new, 0.95).is_ok_and(|i| i.contains(0.3f64.exp()))
        })
        .count();
    assert!((925..=975).contains(&held), "{held} of 1000");
}
