//! Many configurations put in order: who is best, who does not differ, who is how much worse (section 4.7).
//!
//! Every pair is compared over the blocks that hold both, with Holm's correction over all pairs. What a pair's mean is held
//! against is not its own spread alone: four blocks estimate a spread with three degrees of freedom, and after a correction for 21
//! pairs nothing smaller than fifteen standard errors could be seen. [`Field`] takes the spread from all configurations together, and
//! the pair's own, or that of its two configurations, wherever it is larger, so that one noisy configuration neither hides in the crowd nor blurs the others.

mod effect;
mod field;

pub use effect::{Effect, Factorial, Interaction};
pub use field::{Contrast, Field};

use crate::verdict::{Decision, Rule, Verdict};

/// Configurations in order, with the verdict on each pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// Indices of the configurations, best first; those without a value are not in it.
    pub order: Vec<usize>,
    /// Those that are not told apart stand together; best group first.
    pub groups: Vec<Group>,
    /// The verdict on the later against the earlier of each two places in `order`: `(earlier, later, later / earlier)`.
    pub pairs: Vec<(usize, usize, Decision)>,
}

/// Configurations next to each other in the order, none of which is shown to be better than another.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Their indices, best first.
    pub members: Vec<usize>,
    /// Whether each pair is shown to differ by less than the margin; false: at least one pair is not decided.
    pub same: bool,
    /// How many more blocks would decide all its pairs, where one is not decided.
    pub blocks_needed: Option<usize>,
}

impl Ranking {
    /// Puts configurations in order.
    ///
    /// `values`: for each configuration one value per block, the same blocks in the same order; `None` where a visit is missing.
    /// A value that is not positive is a missing one. A configuration that shares fewer than two blocks with another is unknown
    /// against it. `higher`: whether more is better. `rule`: margin, looks and level, as for two configurations.
    pub fn of(values: &[Vec<Option<f64>>], higher: bool, rule: &Rule) -> Self {
        let field = Field::new(values);
        let order = field.order(higher);
        let places: Vec<(usize, usize)> =
            order.iter().enumerate().flat_map(|(i, a)| order[i + 1..].iter().map(|b| (*a, *b))).collect();
        let contrasts: Vec<Contrast> = places.iter().map(|(a, b)| field.pair(*a, *b)).collect();
        let decisions = field::decide_family(&contrasts, higher, rule);
        let pairs: Vec<_> = places.into_iter().zip(decisions).map(|((a, b), d)| (a, b, d)).collect();
        let groups = groups(&order, &pairs);
        Self { order, groups, pairs }
    }

    /// The verdict on `later` against `earlier`, two configurations in their order; `None` when they are not ranked so.
    pub fn pair(&self, earlier: usize, later: usize) -> Option<&Decision> {
        self.pairs.iter().find(|(a, b, _)| (*a, *b) == (earlier, later)).map(|(_, _, d)| d)
    }

    /// The verdict on `index` against the first in the order; `None` for the first itself.
    pub fn to_best(&self, index: usize) -> Option<&Decision> {
        self.pair(*self.order.first()?, index)
    }
}

/// Walks down the order: a configuration joins the group above it unless it is shown to differ from one of its members.
fn groups(order: &[usize], pairs: &[(usize, usize, Decision)]) -> Vec<Group> {
    let decision = |a: usize, b: usize| pairs.iter().find(|p| (p.0, p.1) == (a, b)).map(|p| &p.2);
    let apart = |a: usize, b: usize| {
        decision(a, b).is_some_and(|d| matches!(d.verdict, Verdict::Better | Verdict::Worse))
    };
    let mut tiers: Vec<Vec<usize>> = Vec::new();
    for &index in order {
        match tiers.last_mut() {
            Some(tier) if !tier.iter().any(|member| apart(*member, index)) => tier.push(index),
            _ => tiers.push(vec![index]),
        }
    }
    let group = |members: Vec<usize>| {
        let inside: Vec<&Decision> = members
            .iter()
            .enumerate()
            .flat_map(|(i, a)| members[i + 1..].iter().filter_map(|b| decision(*a, *b)))
            .collect();
        Group {
            same: inside.iter().all(|d| d.verdict == Verdict::Same),
            blocks_needed: inside.iter().filter_map(|d| d.blocks_needed).max(),
            members,
        }
    };
    tiers.into_iter().map(group).collect()
}
