//! Who wins at one point of the map, and where along a line the winner changes.

use crate::interval;
use crate::sample;
use crate::special::t_quantile;
use crate::verdict::Rule;

/// Who is best at one point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Winner {
    /// This one, and every other is shown to be worse.
    One(usize),
    /// These differ by less than the margin from the leader, every other is shown to be worse; the leader is the first.
    Same(Vec<usize>),
    /// At least one other is neither shown to be worse nor shown to be as good; the leader is the first.
    Unknown(Vec<usize>),
}

/// Who has the highest rate. `values`: for each candidate one rate per block, the same blocks in the same order; a candidate whose length
/// differs from the most, or with a value that is not positive, is left out. `None` when fewer than two are left.
///
/// The leader is held against each other one by Student's t over block log ratios at the look's level divided by the number of
/// others (Bonferroni): a map asks at many points, so its lines are drawn only where they are sure.
pub fn winner(values: &[Vec<f64>], rule: &Rule) -> Option<Winner> {
    let blocks = values.iter().map(Vec::len).max().unwrap_or(0);
    let fit = |v: &Vec<f64>| v.len() == blocks && v.iter().all(|x| *x > 0.0 && x.is_finite());
    let alive: Vec<usize> = (0..values.len()).filter(|i| fit(&values[*i])).collect();
    let mean = |i: &usize| sample::mean(&values[*i].iter().map(|x| x.ln()).collect::<Vec<_>>());
    let leader = alive.iter().copied().max_by(|a, b| mean(a).total_cmp(&mean(b)))?;
    if alive.len() < 2 || blocks < 2 {
        return None;
    }
    let strict = rule.level_per_look / (alive.len() - 1) as f64;
    let (mut same, mut open) = (vec![leader], Vec::new());
    for other in alive.into_iter().filter(|i| *i != leader) {
        let Ok(d) = interval::log_ratios(&values[other], &values[leader]) else { continue };
        let ahead = sample::mean(&d);
        let half = t_quantile(1.0 - rule.level_per_look, (blocks - 1) as f64) * sample::deviation(&d)
            / (blocks as f64).sqrt();
        if ahead + half < rule.delta.ln_1p() {
            same.push(other);
        } else if interval::t_p(&d) > strict {
            open.push(other);
        }
    }
    Some(match (open.is_empty(), same.as_slice()) {
        (true, [only]) => Winner::One(*only),
        (true, _) => Winner::Same(same),
        (false, _) => {
            same.extend(open);
            Winner::Unknown(same)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wins_some_are_as_good_and_some_are_not_decided() {
        let rule = Rule::planned(6);
        let noise = [0.01, -0.012, 0.008, -0.004, 0.002, -0.004];
        let at = |level: f64, s: f64| noise.iter().map(|n| level * (1.0 + s * n)).collect::<Vec<f64>>();
        let of = |values: &[Vec<f64>]| winner(values, &rule);
        assert_eq!(of(&[at(100.0, 1.0), at(120.0, -1.0)]), Some(Winner::One(1)));
        assert_eq!(of(&[at(100.0, 1.0), at(100.1, 1.2), at(80.0, 1.0)]), Some(Winner::Same(vec![1, 0])));
        assert_eq!(of(&[at(100.0, 1.0), at(102.5, -8.0)]), Some(Winner::Unknown(vec![1, 0])));
        assert_eq!(of(&[at(100.0, 1.0), vec![]]), None);
        assert_eq!(of(&[at(100.0, 1.0), vec![0.0; 6], at(90.0, 1.0)]), Some(Winner::One(0)));
        assert_eq!(of(&[]), None);
    }
}
