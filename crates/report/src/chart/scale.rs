//! Scales: from a value to a place on the paper, and where to put the ticks.

/// Straight or logarithmic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Equal steps for equal differences.
    Linear,
    /// Equal steps for equal ratios; the domain must be positive.
    Log,
}

/// Maps `domain` to `range` (paper units; may run backwards, as the y axis of SVG does).
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    kind: Kind,
    domain: (f64, f64),
    range: (f64, f64),
}

impl Scale {
    /// A straight scale. An empty domain is widened, so that one single value still has a place.
    pub fn linear(domain: (f64, f64), range: (f64, f64)) -> Self {
        let (low, high) = domain;
        let domain = if high > low { domain } else { (low - 0.5, low + 0.5) };
        Self { kind: Kind::Linear, domain, range }
    }

    /// A logarithmic scale. Values at or below zero are placed at the low end.
    pub fn log(domain: (f64, f64), range: (f64, f64)) -> Self {
        let low = if domain.0 > 0.0 { domain.0 } else { 1e-9 };
        let high = if domain.1 > low { domain.1 } else { low * 1.25 };
        let low = if domain.1 > low { low } else { low / 1.25 };
        Self { kind: Kind::Log, domain: (low, high), range }
    }

    fn share(&self, value: f64) -> f64 {
        let (low, high) = self.domain;
        match self.kind {
            Kind::Linear => (value - low) / (high - low),
            Kind::Log => (value.max(low * 1e-3) / low).ln() / (high / low).ln(),
        }
    }

    /// Place of `value`, also beyond the ends.
    pub fn place(&self, value: f64) -> f64 {
        self.range.0 + self.share(value) * (self.range.1 - self.range.0)
    }

    /// Place of `value`, not beyond the ends.
    pub fn place_inside(&self, value: f64) -> f64 {
        self.range.0 + self.share(value).clamp(0.0, 1.0) * (self.range.1 - self.range.0)
    }

    /// Whether `value` lies within the domain.
    pub fn contains(&self, value: f64) -> bool {
        value >= self.domain.0 && value <= self.domain.1
    }

    /// Round values to label, at most about `wanted`.
    pub fn ticks(&self, wanted: usize) -> Vec<f64> {
        match self.kind {
            Kind::Linear => linear_ticks(self.domain, wanted),
            // Over less than a factor of three, round steps are more use than 1-2-5.
            Kind::Log if self.domain.1 < 3.0 * self.domain.0 => linear_ticks(self.domain, wanted),
            Kind::Log => log_ticks(self.domain, wanted),
        }
    }
}

/// Multiples of 1, 2 or 5 × 10ⁿ inside the domain.
fn linear_ticks((low, high): (f64, f64), wanted: usize) -> Vec<f64> {
    let rough = (high - low) / wanted.max(1) as f64;
    let ten = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].iter().map(|m| m * ten).find(|s| *s >= rough * 0.999).unwrap_or(ten);
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|i| i as f64 * step).collect()
}

/// The densest of 1-2-3-5-7, 1-2-5, 1-3 per decade, or whole decades, that keeps to about `wanted` labels.
fn log_ticks((low, high): (f64, f64), wanted: usize) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let inside = |steps: &[f64], every: i32| -> Vec<f64> {
        (first..=last)
            .filter(|decade| decade.rem_euclid(every) == 0)
            .flat_map(|decade| steps.iter().map(move |m| m * 10f64.powi(decade)))
            .filter(|v| *v >= low * 0.999_999 && *v <= high * 1.000_001)
            .collect()
    };
    let choices: [(&[f64], i32); 6] = [
        (&[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0], 1),
        (&[1.0, 2.0, 3.0, 5.0], 1),
        (&[1.0, 2.0, 5.0], 1),
        (&[1.0, 3.0], 1),
        (&[1.0], 1),
        (&[1.0], 2),
    ];
    let mut best = Vec::new();
    for (steps, every) in choices {
        let ticks = inside(steps, every);
        best = ticks;
        if best.len() <= wanted.max(2) {
            break;
        }
    }
    if best.is_empty() { vec![low, high] } else { best }
}

/// Lowest and highest of the finite `values`; `None` when there are none.
pub fn extent(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    values.into_iter().filter(|v| v.is_finite()).fold(None, |span, v| match span {
        None => Some((v, v)),
        Some((low, high)) => Some((f64::min(low, v), f64::max(high, v))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_ticks() {
        let x = Scale::linear((0.0, 10.0), (100.0, 200.0));
        assert_eq!(x.place(5.0), 150.0);
        assert_eq!(x.place_inside(20.0), 200.0);
        assert_eq!(x.ticks(5), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        let y = Scale::log((1.0, 1_000.0), (300.0, 0.0));
        assert!((y.place(10.0) - 200.0).abs() < 1e-9);
        assert_eq!(y.ticks(4), [1.0, 10.0, 100.0, 1_000.0]);
        assert_eq!(Scale::log((0.5, 4.0), (0.0, 1.0)).ticks(4), [0.5, 1.0, 2.0, 3.0]);
        let narrow: Vec<String> =
            Scale::log((0.9, 1.5), (0.0, 1.0)).ticks(4).iter().map(|v| format!("{v:.3}")).collect();
        assert_eq!(narrow, ["1.000", "1.200", "1.400"]);
    }

    #[test]
    fn one_value_still_has_a_place() {
        assert!(Scale::linear((3.0, 3.0), (0.0, 10.0)).place(3.0).is_finite());
        assert!(Scale::log((3.0, 3.0), (0.0, 10.0)).place(3.0).is_finite());
        assert_eq!(extent([f64::NAN, 2.0, 1.0]), Some((1.0, 2.0)));
        assert_eq!(extent([]), None);
    }
}
