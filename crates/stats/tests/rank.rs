//! The promises of a ranking, kept over many simulated fields: equal configurations, planted differences, missing visits, factors.

use stats::rank::{Factorial, Ranking};
use stats::sim::{Environment, NoisyPair};
use stats::verdict::{Rule, Verdict};
use units::{Rng, Seed};

/// One look, at the end.
fn rule(blocks: usize) -> Rule {
    Rule { delta: 0.03, looks: vec![blocks], level_per_look: 0.05 }
}

/// Values by configuration and block, with the environment of the method.
fn field(effects: &[f64], blocks: usize, seed: Seed) -> Vec<Vec<Option<f64>>> {
    let mut field = NoisyPair::many(Environment::TYPICAL, effects, seed);
    let by_block: Vec<Vec<f64>> = (0..blocks).map(|_| field.block()).collect();
    (0..effects.len()).map(|k| by_block.iter().map(|block| Some(block[k])).collect()).collect()
}

/// Values with independent noise, each configuration with its own: `sd[k]`.
fn noisy(sd: &[f64], blocks: usize, seed: Seed) -> Vec<Vec<Option<f64>>> {
    let mut rng = Rng::new(seed);
    let mut values = vec![Vec::new(); sd.len()];
    for _ in 0..blocks {
        let hour = 0.05 * rng.normal();
        for (row, sd) in values.iter_mut().zip(sd) {
            row.push(Some((hour + sd * rng.normal()).exp()));
        }
    }
    values
}

fn tells_apart(ranking: &Ranking) -> bool {
    ranking.pairs.iter().any(|(_, _, d)| d.p_holm.is_some_and(|p| p <= 0.05))
}

#[test]
fn equal_configurations_are_told_apart_in_at_most_five_of_a_hundred_fields() {
    for (k, blocks) in [(3, 4), (7, 4), (7, 8), (12, 4), (12, 8)] {
        let wrong = (0..400)
            .filter(|seed| {
                tells_apart(&Ranking::of(&field(&vec![0.0; k], blocks, Seed(*seed)), true, &rule(blocks)))
            })
            .count();
        assert!(wrong <= 20, "{k} configurations, {blocks} blocks: {wrong} of 400 fields");
    }
}

/// The pooled spread alone would call 15 % of such fields different (12 % to 23 % with 7 and 12 configurations).
#[test]
fn nor_where_one_configuration_is_much_noisier_than_the_others() {
    for (k, blocks, times) in [(7, 4, 3.0), (7, 4, 6.0), (12, 8, 6.0), (7, 8, 3.0)] {
        let mut sd = vec![0.012; k];
        sd[k - 1] *= times;
        let wrong = (0..600)
            .filter(|seed| {
                tells_apart(&Ranking::of(&noisy(&sd, blocks, Seed(7_000 + seed)), true, &rule(blocks)))
            })
            .count();
        // 5 % and two standard errors of 600 trials.
        assert!(
            wrong <= 41,
            "{k} configurations, {blocks} blocks, {times} × the noise: {wrong} of 600 fields"
        );
    }
}

/// Seven configurations, one of them 5 % slower, four blocks: with each pair's own spread alone a fourth would be found.
#[test]
fn four_blocks_find_five_percent_among_seven() {
    let sd = [0.012; 7];
    let mut found = 0;
    for seed in 0..200 {
        let mut values = noisy(&sd, 4, Seed(90_000 + seed));
        values[2].iter_mut().flatten().for_each(|v| *v *= 0.95);
        let ranking = Ranking::of(&values, true, &rule(4));
        found += ranking.pairs.iter().filter(|(_, b, d)| *b == 2 && d.verdict == Verdict::Worse).count();
    }
    assert!(found >= 900, "{found} of 1200 pairs");
}

#[test]
fn groups_say_who_does_not_differ_and_who_is_behind() {
    // xfs, ext4, btrfs, ext3, as in the article: two lead, one is a little behind, one is far behind.
    let values = field(&[0.0, 0.0, -0.12, -0.38], 16, Seed(5));
    let ranking = Ranking::of(&values, true, &rule(16));
    let members: Vec<Vec<usize>> = ranking.groups.iter().map(|g| g.members.clone()).collect();
    assert!(members[0].len() == 2 && members[0].contains(&0) && members[0].contains(&1), "{members:?}");
    assert_eq!(members[1..], [vec![2], vec![3]]);
    let ratio = ranking.to_best(3).expect("ranked").ratio;
    assert!(ratio.contains(0.62) && ratio.half_width() < 0.05, "{ratio:?}");
    assert!(ranking.to_best(ranking.order[0]).is_none());
    let times: Vec<Vec<Option<f64>>> =
        values.iter().map(|row| row.iter().map(|v| v.map(|v| 1.0 / v)).collect()).collect();
    assert_eq!(Ranking::of(&times, false, &rule(16)).order, ranking.order, "lower is better for times");
}

#[test]
fn missing_visits_cost_precision_and_not_truth() {
    let mut covered = 0;
    for seed in 0..200 {
        let mut values = field(&[0.0, -0.10, -0.20, 0.05], 8, Seed(400 + seed));
        let mut rng = Rng::new(Seed(seed));
        for row in &mut values {
            row[(rng.next_u64() % 8) as usize] = None;
        }
        values[3][0] = Some(0.0);
        let ranking = Ranking::of(&values, true, &rule(8));
        assert_eq!(ranking.order.len(), 4);
        covered += usize::from(ranking.pair(0, 2).is_some_and(|d| d.ratio.contains(0.8)));
    }
    assert!(covered >= 186, "{covered} of 200 intervals hold the truth");
    // A configuration that was never measured is not ranked; one that shares a single block is unknown.
    let values = vec![
        vec![Some(1.0), Some(1.1), Some(1.2), Some(1.0)],
        vec![None; 4],
        vec![Some(2.0), None, None, None],
    ];
    let ranking = Ranking::of(&values, true, &rule(4));
    assert_eq!(ranking.order, [2, 0]);
    assert_eq!(ranking.pairs[0].2.verdict, Verdict::Unknown);
    assert!(Ranking::of(&[], true, &rule(4)).order.is_empty());
}

#[test]
fn what_is_unknown_says_what_it_would_take() {
    let values = field(&[0.0, 0.02, 0.04], 4, Seed(11));
    let ranking = Ranking::of(&values, true, &rule(4));
    let group = &ranking.groups[0];
    assert!(group.members.len() > 1 && !group.same, "{ranking:?}");
    assert!(group.blocks_needed.is_some_and(|n| (1..200).contains(&n)), "{:?}", group.blocks_needed);
}

/// Two file systems × three modes: `setall` helps on xfs by 40 %, not on ext3.
#[test]
fn an_effect_that_depends_on_another_factor_is_found_where_it_is() {
    let levels: Vec<Vec<usize>> = (0..6).map(|i| vec![i / 3, i % 3]).collect();
    let effects = [0.0, 0.0, 0.40, -0.30, -0.30, -0.30];
    let (mut right, mut false_alarms) = (0, 0);
    for seed in 0..100 {
        let values = field(&effects, 6, Seed(3_000 + seed));
        let design = Factorial { levels: &levels, values: &values };
        let within = design.effects_within(1, 0, &[0, 0], true, &rule(6));
        let verdict = |l: usize, at: usize| {
            let found = within.iter().find(|e| e.level == l && e.within == Some((0, at))).expect("asked");
            (found.decision.verdict, found.decision.ratio)
        };
        let (on_xfs, ratio) = verdict(2, 0);
        right += u32::from(on_xfs == Verdict::Better && ratio.contains(1.4));
        let interactions = design.interactions(&[0, 0], true, &rule(6));
        assert_eq!(interactions.len(), 2);
        let of = |l: usize| interactions.iter().find(|i| i.other.1 == l).expect("asked").decision.verdict;
        assert_eq!(of(2), Verdict::Worse, "the effect is smaller on ext3");
        false_alarms += u32::from(matches!(of(1), Verdict::Better | Verdict::Worse));
        let main = design.main_effects(&[0, 0], true, &rule(6));
        assert_eq!(main.len(), 3);
        assert_eq!((main[0].factor, main[0].settings), (0, 3));
    }
    assert!(right >= 90 && false_alarms <= 5, "{right} of 100 found, {false_alarms} false interactions");
}

#[test]
fn main_effects_of_a_design_with_a_hole_use_the_settings_that_have_both() {
    let levels = vec![vec![0, 0], vec![0, 1], vec![1, 0], vec![1, 1]];
    let mut values = field(&[0.0, 0.10, 0.20, 0.32], 8, Seed(1));
    values[3] = vec![None; 8];
    let main = Factorial { levels: &levels, values: &values }.main_effects(&[0, 0], true, &rule(8));
    let settings: Vec<(usize, usize)> = main.iter().map(|e| (e.factor, e.settings)).collect();
    assert_eq!(settings, [(0, 1), (1, 1)]);
    assert!(main[0].decision.ratio.contains(1.2), "{:?}", main[0].decision.ratio);
}

#[test]
fn equal_cells_of_a_factorial_show_an_effect_in_five_percent() {
    let levels: Vec<Vec<usize>> = (0..8).map(|i| vec![i / 4, i / 2 % 2, i % 2]).collect();
    let wrong = (0..400)
        .filter(|seed| {
            let values = field(&[0.0; 8], 6, Seed(20_000 + seed));
            let design = Factorial { levels: &levels, values: &values };
            let main = design.main_effects(&[0, 0, 0], true, &rule(6));
            main.iter().any(|e| e.decision.p_holm.is_some_and(|p| p <= 0.05))
        })
        .count();
    assert!(wrong <= 28, "{wrong} of 400");
}
