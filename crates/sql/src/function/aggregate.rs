//! Functions over many rows that SQLite is built without: MEDIAN, STDDEV, VARIANCE.

use engine::Value;

/// The numbers of a group; what is no number is not among them.
#[derive(Clone, Debug, Default)]
pub struct Numbers(Vec<f64>);

impl Numbers {
    /// One more.
    pub fn push(&mut self, value: &Value) {
        match value {
            Value::Integer(number) => self.0.push(*number as f64),
            Value::Real(number) => self.0.push(*number),
            _ => {}
        }
    }

    /// MEDIAN: the middle one, or half way between the two in the middle.
    pub fn median(mut self) -> Option<f64> {
        self.0.sort_by(f64::total_cmp);
        let (low, high) = (self.0.get((self.0.len().max(1) - 1) / 2)?, self.0.get(self.0.len() / 2)?);
        Some((low + high) / 2.0)
    }

    /// VARIANCE of a sample; of one number 0, as Oracle has it.
    pub fn variance(&self) -> Option<f64> {
        let count = self.0.len() as f64;
        match self.0.len() {
            0 => None,
            1 => Some(0.0),
            _ => {
                let mean = self.0.iter().sum::<f64>() / count;
                Some(self.0.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / (count - 1.0))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_spread() {
        let numbers = |values: &[i64]| {
            let mut numbers = Numbers::default();
            values.iter().for_each(|&value| numbers.push(&Value::Integer(value)));
            numbers.push(&Value::Null);
            numbers
        };
        assert_eq!(numbers(&[3, 1, 2]).median(), Some(2.0));
        assert_eq!(numbers(&[4, 1, 2, 3]).median(), Some(2.5));
        assert_eq!(numbers(&[]).median(), None);
        assert_eq!(numbers(&[2, 4, 4, 4, 5, 5, 7, 9]).variance().map(|v| (v * 7.0).round()), Some(32.0));
        assert_eq!((numbers(&[5]).variance(), numbers(&[]).variance()), (Some(0.0), None));
    }
}
