//! Factorial designs: what each factor does on average, whether its effect depends on another, and where.
//!
//! Everything is a contrast over blocks, so that drift between blocks cancels as in a pair. Main effects and interactions are two
//! families, each with Holm's correction. An effect is averaged over the settings of the other factors that have both of its levels.

use super::field::{Contrast, Field, decide_family};
use crate::verdict::{Decision, Rule};

/// Configurations as points of a factor space.
pub struct Factorial<'a> {
    /// For each configuration the index of its level in each factor.
    pub levels: &'a [Vec<usize>],
    /// For each configuration one value per block, `None` where a visit is missing.
    pub values: &'a [Vec<Option<f64>>],
}

/// What a level does against the factor's reference.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// The factor.
    pub factor: usize,
    /// Its level.
    pub level: usize,
    /// The level that it is held against.
    pub reference: usize,
    /// Where: factor and level that were held; none for the effect on average.
    pub within: Option<(usize, usize)>,
    /// Over how many settings of the other factors it is averaged.
    pub settings: usize,
    /// Ratio level / reference and the verdict.
    pub decision: Decision,
}

/// How an effect differs between two levels of another factor.
#[derive(Clone, Debug, PartialEq)]
pub struct Interaction {
    /// Factor, level and reference of the effect.
    pub effect: (usize, usize, usize),
    /// The other factor, its level, and the level that this is held against.
    pub other: (usize, usize, usize),
    /// Ratio of the two effects: 1 means that the one factor does not care about the other.
    pub decision: Decision,
}

type Weights = Vec<(usize, f64)>;
/// Factor, level and where it is held, as asked.
type Wanted = (usize, usize, Option<(usize, usize)>);
/// An effect and the other factor, each as factor, level and reference, with the contrast of the two.
type Found = ((usize, usize, usize), (usize, usize, usize), Contrast);

impl Factorial<'_> {
    /// Main effects of every factor with two levels or more, each level against `reference` (one level for each factor).
    pub fn main_effects(&self, reference: &[usize], higher: bool, rule: &Rule) -> Vec<Effect> {
        let wanted: Vec<_> = self.contrasts_of(reference).map(|(f, l)| (f, l, None)).collect();
        self.effects(wanted, reference, higher, rule)
    }

    /// The effect of each level of `factor` within each level of `other`.
    pub fn effects_within(
        &self,
        factor: usize,
        other: usize,
        reference: &[usize],
        higher: bool,
        rule: &Rule,
    ) -> Vec<Effect> {
        let wanted = self
            .contrasts_of(reference)
            .filter(|(f, _)| *f == factor)
            .flat_map(|(f, l)| self.levels_of(other).into_iter().map(move |g| (f, l, Some((other, g)))))
            .collect();
        self.effects(wanted, reference, higher, rule)
    }

    /// Two-factor interactions: how each effect differs between a level of another factor and its reference. Each pair of factors
    /// once, in their order.
    pub fn interactions(&self, reference: &[usize], higher: bool, rule: &Rule) -> Vec<Interaction> {
        let field = Field::new(self.values);
        let mut found: Vec<Found> = Vec::new();
        for (f, l) in self.contrasts_of(reference) {
            for (g, m) in self.contrasts_of(reference).filter(|(g, _)| *g > f) {
                let at = |within: usize| self.weights(f, l, reference[f], Some((g, within)));
                let (Some((here, _)), Some((there, _))) = (at(m), at(reference[g])) else { continue };
                let mut weights: Weights = here;
                weights.extend(there.into_iter().map(|(i, w)| (i, -w)));
                found.push(((f, l, reference[f]), (g, m, reference[g]), field.contrast(&weights)));
            }
        }
        let contrasts: Vec<Contrast> = found.iter().map(|f| f.2.clone()).collect();
        let decisions = decide_family(&contrasts, higher, rule);
        found
            .into_iter()
            .zip(decisions)
            .map(|((effect, other, _), decision)| Interaction { effect, other, decision })
            .collect()
    }

    fn effects(&self, wanted: Vec<Wanted>, reference: &[usize], higher: bool, rule: &Rule) -> Vec<Effect> {
        let field = Field::new(self.values);
        let found: Vec<_> = wanted
            .into_iter()
            .filter_map(|(f, l, within)| {
                let (weights, settings) = self.weights(f, l, reference[f], within)?;
                Some((f, l, within, settings, field.contrast(&weights)))
            })
            .collect();
        let contrasts: Vec<Contrast> = found.iter().map(|f| f.4.clone()).collect();
        let decisions = decide_family(&contrasts, higher, rule);
        found
            .into_iter()
            .zip(decisions)
            .map(|((factor, level, within, settings, _), decision)| Effect {
                factor,
                level,
                reference: reference[factor],
                within,
                settings,
                decision,
            })
            .collect()
    }

    /// Every factor with every level but its reference.
    fn contrasts_of(&self, reference: &[usize]) -> impl Iterator<Item = (usize, usize)> {
        let all: Vec<(usize, usize)> = (0..reference.len())
            .flat_map(|f| self.levels_of(f).into_iter().map(move |l| (f, l)))
            .filter(|(f, l)| *l != reference[*f])
            .collect();
        all.into_iter()
    }

    /// Levels of a factor that configurations have, ascending.
    fn levels_of(&self, factor: usize) -> Vec<usize> {
        let mut all: Vec<usize> = self.levels.iter().map(|levels| levels[factor]).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Weights of `level − reference` of `factor`, averaged over the settings of the other factors in which both were measured, and
    /// how many those are; `None` when there is none.
    fn weights(
        &self,
        factor: usize,
        level: usize,
        reference: usize,
        within: Option<(usize, usize)>,
    ) -> Option<(Weights, usize)> {
        let measured = |i: &usize| self.values[*i].iter().flatten().any(|v| *v > 0.0);
        let held = |i: &usize| within.is_none_or(|(other, at)| self.levels[*i][other] == at);
        let alike = |a: usize, b: usize| {
            let pairs = self.levels[a].iter().zip(&self.levels[b]).enumerate();
            pairs.filter(|(f, _)| *f != factor).all(|(_, (a, b))| a == b)
        };
        let with = |l: usize| {
            (0..self.levels.len()).filter(move |i| self.levels[*i][factor] == l).filter(held).filter(measured)
        };
        let pairs: Vec<(usize, usize)> = with(level)
            .filter_map(|new| with(reference).find(|old| alike(new, *old)).map(|old| (old, new)))
            .collect();
        let share = 1.0 / pairs.len().max(1) as f64;
        let weights = pairs.iter().flat_map(|(old, new)| [(*old, -share), (*new, share)]).collect();
        (!pairs.is_empty()).then_some((weights, pairs.len()))
    }
}
