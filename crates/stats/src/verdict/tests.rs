//! The regions of section 5.1, one by one. The promises over many runs are in `tests/verdict.rs`.

use super::*;

fn pairs(d: &[f64]) -> (Vec<f64>, Vec<f64>) {
    (vec![1_000.0; d.len()], d.iter().map(|d| 1_000.0 * d.exp()).collect())
}

fn check(d: &[f64], higher: bool, verdict: Verdict, reason: Reason) -> Decision {
    let (old, new) = pairs(d);
    let decision = decide(&old, &new, higher, &Rule::planned(24));
    assert_eq!((decision.verdict, decision.reason), (verdict, reason), "{d:?}: {decision:?}");
    decision
}

#[test]
fn the_five_reasons() {
    check(&[0.10, 0.11, 0.09, 0.10], true, Verdict::Better, Reason::Material);
    check(&[0.10, 0.11, 0.09, 0.10], false, Verdict::Worse, Reason::Material);
    check(&[-0.10, -0.11, -0.09, -0.10], true, Verdict::Worse, Reason::Material);
    check(&[0.010, 0.011, 0.009, 0.010], true, Verdict::Same, Reason::Small);
    check(&[0.001, -0.002, 0.001, -0.001], true, Verdict::Same, Reason::Equivalent);
    let open = check(&[0.05, -0.04, 0.03, -0.02], true, Verdict::Unknown, Reason::NotEnough);
    assert!(open.blocks_needed.unwrap() > 4, "{open:?}");
    let wild = check(
        &[0.01, 0.012, 0.009, 0.011, 0.010, 0.013, 0.010, 0.9],
        true,
        Verdict::Unknown,
        Reason::OutlierDecides,
    );
    assert_eq!(wild.block_farthest, Some(7));
}

#[test]
fn nothing_is_said_before_the_first_look_nor_of_nothing() {
    check(&[0.5, 0.5, 0.5], true, Verdict::Unknown, Reason::NotEnough);
    check(&[], true, Verdict::Unknown, Reason::NotEnough);
    check(&[0.1], true, Verdict::Unknown, Reason::NotEnough);
    let dead = decide(&[1.0; 4], &[1.0, 0.0, 1.0, 1.0], true, &Rule::planned(8));
    assert_eq!(dead.verdict, Verdict::Unknown);
    assert!(dead.ratio.low == 0.0 && dead.ratio.high == f64::INFINITY);
}

#[test]
fn devices_without_noise_are_the_same() {
    check(&[0.0; 4], true, Verdict::Same, Reason::Equivalent);
    check(&[0.01; 4], true, Verdict::Same, Reason::Small);
    check(&[0.2; 4], true, Verdict::Better, Reason::Material);
}

#[test]
#[should_panic(expected = "pairs of blocks")]
fn unpaired_blocks_are_a_mistake_of_the_caller() {
    decide(&[1.0, 2.0], &[1.0], true, &Rule::planned(8));
}

#[test]
fn the_plan_looks_when_it_says() {
    let looks = |max| Rule::planned(max).looks;
    assert_eq!(looks(24), [4, 6, 8, 12, 16, 24]);
    assert_eq!(looks(10), [4, 6, 8, 10]);
    assert_eq!(looks(4), [4]);
    assert_eq!(looks(3), [3]);
    assert_eq!(looks(0), [2]);
    assert_eq!(looks(100), [4, 6, 8, 12, 16, 24, 36, 54, 81, 100]);
    assert_eq!(looks(10_000).len(), 10);
    assert!(Rule::planned(24).is_look(8) && !Rule::planned(24).is_look(9));
    for (max, level) in [(24, 0.0142), (16, 0.0158), (8, 0.0221), (4, 0.05)] {
        assert_eq!(Rule::planned(max).level_per_look, level, "{max}");
    }
}

#[test]
fn among_many_a_difference_must_pass_holm() {
    let d = [0.0480, 0.0250, 0.0100, 0.0500];
    let (old, new) = pairs(&d);
    let rule = Rule { delta: 0.01, looks: vec![4], level_per_look: 0.05 };
    let alone = decide(&old, &new, true, &rule);
    assert_eq!(alone.verdict, Verdict::Better, "p {}", alone.t_p);
    let others: Vec<Vec<f64>> = std::iter::once(new)
        .chain((0..4).map(|i| pairs(&[0.02, -0.01, 0.01 * f64::from(i), -0.02]).1))
        .collect();
    let decisions = decide_all(&old, &others, true, &rule);
    assert_eq!(decisions[0].verdict, Verdict::Unknown);
    assert!((decisions[0].p_holm.unwrap() - 5.0 * alone.t_p).abs() < 1e-12);
    assert_eq!(decide_all(&old, &others[..1], true, &rule)[0], alone);
}

#[test]
fn words_are_lower_case() {
    let words = [Verdict::Better, Verdict::Worse, Verdict::Same, Verdict::Unknown].map(|v| v.to_string());
    assert_eq!(words, ["better", "worse", "same", "unknown"]);
}
