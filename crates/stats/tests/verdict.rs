//! The promises of a verdict, kept over many simulated comparisons: A against A, planted effects, many configurations.

use stats::interval;
use stats::sample;
use stats::sim::{Environment, NoisyPair};
use stats::verdict::{Decision, Rule, Verdict, best_set, decide, decide_all};
use units::Seed;

/// A comparison as a run does it: looks where planned, ends when decided.
fn compare(environment: Environment, effect: f64, seed: Seed, rule: &Rule) -> (Decision, usize) {
    let mut pair = NoisyPair::new(environment, effect, seed);
    let (mut old, mut new) = (Vec::new(), Vec::new());
    loop {
        let (o, n) = pair.blocks(1);
        old.extend(o);
        new.extend(n);
        if rule.is_look(old.len()) {
            let decision = decide(&old, &new, true, rule);
            if decision.verdict != Verdict::Unknown || Some(&old.len()) == rule.looks.last() {
                return (decision, old.len());
            }
        }
    }
}

/// Counts of better, worse, same, unknown.
fn tally(environment: Environment, effect: f64, runs: u64, rule: &Rule) -> [u32; 4] {
    let mut counts = [0; 4];
    for seed in 0..runs {
        counts[compare(environment, effect, Seed(1_000 + seed), rule).0.verdict as usize] += 1;
    }
    counts
}

#[test]
fn a_hundred_comparisons_of_identical_configurations_call_at_most_five_different() {
    for environment in [Environment::QUIET, Environment::TYPICAL, Environment::TREND] {
        for max_blocks in [4, 8, 24] {
            let [better, worse, same, unknown] = tally(environment, 0.0, 100, &Rule::planned(max_blocks));
            let seen = format!("{better} better, {worse} worse, {same} same, {unknown} unknown");
            assert!(better + worse <= 5, "{environment:?}, {max_blocks} blocks: {seen}");
        }
    }
}

/// Over 2,000 runs, so that the promise itself is tested and not the luck of a hundred: on a shared array nearly every
/// difference that is called at all is a material one, so five of a hundred is there the expectation and not a bound. Counted are
/// intervals that exclude "no difference", material or small; 129 is 5 % and three standard errors.
#[test]
fn identical_configurations_show_any_difference_in_five_percent() {
    for environment in [Environment::QUIET, Environment::TYPICAL, Environment::SHARED] {
        for max_blocks in [4, 24] {
            let rule = Rule::planned(max_blocks);
            let different = |seed: &u64| {
                let (decision, _) = compare(environment, 0.0, Seed(50_000 + seed), &rule);
                !decision.ratio.contains(1.0)
            };
            let count = (0..2_000).filter(different).count();
            assert!(
                count <= 129,
                "{environment:?}, {max_blocks} blocks: {count} of 2000 intervals exclude 1"
            );
        }
    }
}

#[test]
fn a_planted_five_percent_is_found_with_the_promised_power() {
    // What 24 blocks promise: the smallest effect found with 80 % power is 0.3 %, 1.0 %, 2.4 % at these spreads (section 4.3).
    for (environment, sd) in
        [(Environment::QUIET, 0.0045), (Environment::TYPICAL, 0.017), (Environment::SHARED, 0.04)]
    {
        assert!(
            interval::mde(sd, 24, 1.0 - 0.0142, 0.8) < 0.05,
            "five percent is within the promise at {sd}"
        );
        let [better, worse, ..] = tally(environment, 0.05, 100, &Rule::planned(24));
        assert!(better >= 80 && worse == 0, "{environment:?}: {better} of 100 found, {worse} reversed");
    }
    // Four blocks promise 80 % at 1 % only on a quiet machine.
    let [better, ..] = tally(Environment::QUIET, 0.05, 100, &Rule::planned(4));
    assert!(better >= 95, "{better}");
}

/// The minimum detectable effect is honest: at that effect, a single look at the end finds 80 %, give or take.
#[test]
fn the_minimum_detectable_effect_is_what_it_says() {
    let sd = 0.0169;
    for blocks in [8, 16] {
        let rule = Rule { delta: 0.001, looks: vec![blocks], level_per_look: 0.05 };
        let effect = interval::mde(sd, blocks, 0.95, 0.8);
        let found = (0..400)
            .filter(|seed| {
                let (old, new) =
                    NoisyPair::new(Environment::TYPICAL, effect, Seed(9_000 + seed)).blocks(blocks);
                !decide(&old, &new, true, &rule).ratio.contains(1.0)
            })
            .count();
        assert!((290..=360).contains(&found), "{blocks} blocks, effect {effect}: {found} of 400");
    }
}

#[test]
fn a_clear_difference_is_decided_at_the_first_look() {
    for seed in 0..50 {
        let (decision, blocks) = compare(Environment::TYPICAL, -0.30, Seed(seed), &Rule::planned(24));
        assert_eq!((decision.verdict, blocks), (Verdict::Worse, 4), "{decision:?}");
    }
}

#[test]
fn what_is_unknown_forecasts_its_price_about_right() {
    let rule = Rule::planned(8);
    let mut errors = Vec::new();
    for seed in 0..60 {
        let (decision, blocks) = compare(Environment::SHARED, 0.03, Seed(300 + seed), &rule);
        if let Some(more) = decision.blocks_needed {
            errors.push((blocks + more) as f64);
        }
    }
    let forecast = sample::median(&errors);
    assert!(
        errors.len() > 20 && (10.0..60.0).contains(&forecast),
        "{} unknown, {forecast} blocks",
        errors.len()
    );
}

#[test]
fn twelve_identical_configurations_show_a_difference_in_at_most_five_percent() {
    let rule = Rule { delta: 0.03, looks: vec![8], level_per_look: 0.05 };
    let (mut holm, mut raw) = (0, 0);
    for seed in 0..400 {
        let mut field = NoisyPair::many(Environment::TYPICAL, &[0.0; 12], Seed(seed));
        let blocks: Vec<Vec<f64>> = (0..8).map(|_| field.block()).collect();
        let column = |k: usize| blocks.iter().map(|b| b[k]).collect::<Vec<f64>>();
        let others: Vec<Vec<f64>> = (1..12).map(column).collect();
        let decisions = decide_all(&column(0), &others, true, &rule);
        holm += u32::from(decisions.iter().any(|d| d.p_holm.unwrap() <= 0.05));
        raw += u32::from(decisions.iter().any(|d| d.t_p <= 0.05));
    }
    assert!(holm <= 30, "{holm} of 400 with Holm");
    assert!(raw >= 80, "{raw} of 400 without: the test can tell");
}

#[test]
fn the_best_of_twelve_is_in_the_set_and_the_set_is_small() {
    let effects: Vec<f64> = (0..12).map(|i| 0.01 * f64::from(i) - if i < 11 { 0.02 } else { 0.0 }).collect();
    let (mut held, mut sizes) = (0, Vec::new());
    for seed in 0..60 {
        let mut field = NoisyPair::many(Environment::TYPICAL, &effects, Seed(seed));
        let blocks: Vec<Vec<f64>> = (0..8).map(|_| field.block()).collect();
        let values: Vec<Vec<f64>> = (0..12).map(|k| blocks.iter().map(|b| b[k]).collect()).collect();
        let set = best_set(&values, true, &Rule::planned(24));
        held += u32::from(set.contains(&11));
        sizes.push(set.len() as f64);
    }
    assert!(held >= 59 && sample::mean(&sizes) < 4.0, "{held} of 60, {} on average", sample::mean(&sizes));
}

/// Naive use of the same data: seconds as replicates, or peeking, would break the promise. This is why there is a method.
#[test]
fn peeking_after_every_block_breaks_the_promise() {
    let wrong = (0..300)
        .filter(|seed| {
            let mut pair = NoisyPair::new(Environment::SHARED, 0.0, Seed(*seed));
            let (old, new) = pair.blocks(24);
            (3..=24).any(|n| !interval::ratio(&old[..n], &new[..n], 0.95).unwrap().contains(1.0))
        })
        .count();
    assert!(wrong > 45, "{wrong} of 300: peeking is harmful, or the simulation is not");
}

#[test]
fn the_confidence_sequence_may_be_looked_at_always() {
    let wrong = (0..400)
        .filter(|seed| {
            let (old, new) = NoisyPair::new(Environment::TYPICAL, 0.0, Seed(*seed)).blocks(40);
            let d = interval::log_ratios(&old, &new).unwrap();
            (2..=40).any(|n| {
                let (low, high) = interval::confidence_sequence(&d[..n], 0.05, 1.0);
                low > 0.0 || high < 0.0
            })
        })
        .count();
    assert!(wrong <= 20, "{wrong} of 400");
}
