//! Stacked areas in characters: one sign for each wait class, so that it can be read without colour.

use super::style::{left, right, width};
use crate::model::database::class::Class;
use crate::words;

/// Columns left of the drawing: labels and the axis.
const MARGIN: usize = 8;

/// The sign of a class. Dense ones for the classes that are seen most.
pub fn sign(class: Class) -> char {
    match class {
        Class::Cpu => '█',
        Class::Scheduler => '=',
        Class::UserIo => '▓',
        Class::SystemIo => '▒',
        Class::Concurrency => '#',
        Class::Application => '@',
        Class::Commit => '░',
        Class::Configuration => '%',
        Class::Administrative => '&',
        Class::Network => '~',
        Class::Queueing => '"',
        Class::Cluster => '*',
        Class::Other => '+',
    }
}

/// Colour of a class among the 256 of a terminal, near the ones of the page.
pub fn colour(class: Class) -> u8 {
    match class {
        Class::Cpu => 40,
        Class::Scheduler => 157,
        Class::UserIo => 27,
        Class::SystemIo => 39,
        Class::Concurrency => 124,
        Class::Application => 166,
        Class::Commit => 208,
        Class::Configuration => 137,
        Class::Administrative => 101,
        Class::Network => 180,
        Class::Queueing => 187,
        Class::Cluster => 188,
        Class::Other => 205,
    }
}

/// What is drawn.
pub struct Area<'a> {
    /// `(from, to, one value for each class)`, seconds; holes stay empty.
    pub steps: &'a [(f64, f64, Vec<f64>)],
    /// From the bottom.
    pub classes: &'a [Class],
    /// End of the axis, seconds.
    pub seconds: f64,
    /// CPUs: a level with a line of its own, and its name at the axis, which no area hides.
    pub limit: Option<f64>,
}

impl Area<'_> {
    /// The drawing, `columns` wide with its margin, `rows` high; `paint` wraps a run of one class. Behind each row stands
    /// its line of `legend`, top first.
    pub fn draw(
        &self,
        columns: usize,
        rows: usize,
        legend: &[String],
        paint: &dyn Fn(Class, &str) -> String,
    ) -> String {
        let inner = columns.saturating_sub(MARGIN + 2).max(10);
        let bars: Vec<Vec<f64>> = (0..inner).map(|column| self.at(column, inner)).collect();
        let peak = bars.iter().map(|bar| bar.iter().sum()).fold(0.0, f64::max);
        let high = f64::max(peak, self.limit.filter(|l| *l < 4.0 * peak).unwrap_or(0.0)).max(1e-6);
        let level = |row: usize| (rows - row) as f64 / rows as f64 * high;
        let line = self.limit.map(|l| rows as f64 - l / high * rows as f64).filter(|at| *at >= -0.01);
        let line = line.map(|at| (at.floor().max(0.0) as usize).min(rows - 1));
        let mut out = String::new();
        for row in 0..rows {
            let label = match row {
                0 => words::short(round(level(0))),
                _ if line == Some(row) => "CPUs".to_owned(),
                _ if row == rows / 2 => words::short(round(level(row))),
                _ => String::new(),
            };
            let middle = (level(row) + level(row + 1)) / 2.0;
            let cells: Vec<Option<Class>> = bars.iter().map(|bar| self.seen(bar, middle)).collect();
            let tick = if label.is_empty() { '│' } else { '┤' };
            let drawn = self.row(&cells, line == Some(row), paint);
            let behind = legend.get(row).map_or("", String::as_str);
            let text = format!("{} {tick}{drawn}  {behind}", right(&label, MARGIN - 1));
            out.push_str(text.trim_end());
            out.push('\n');
        }
        out.push_str(&format!("{} └{}\n", right("0", MARGIN - 1), "─".repeat(inner)));
        let end = format!("{} s", words::short(self.seconds.round()));
        let gap = inner.saturating_sub(1 + width(&end));
        out.push_str(&format!("{}0{}{end}\n", " ".repeat(MARGIN + 1), " ".repeat(gap)));
        out
    }

    /// Means of the steps that a column shows.
    fn at(&self, column: usize, columns: usize) -> Vec<f64> {
        let (from, to) = (self.edge(column, columns), self.edge(column + 1, columns));
        let part = |s: &(f64, f64, Vec<f64>)| (s.1.min(to) - s.0.max(from)).max(0.0);
        let time: f64 = self.steps.iter().map(part).sum();
        let mean = |k: usize| self.steps.iter().map(|s| s.2[k] * part(s)).sum::<f64>() / time;
        (0..self.classes.len()).map(|k| if time > 0.0 { mean(k) } else { 0.0 }).collect()
    }

    fn edge(&self, column: usize, columns: usize) -> f64 {
        column as f64 / columns as f64 * self.seconds
    }

    /// The class that a bar has at that height.
    fn seen(&self, bar: &[f64], height: f64) -> Option<Class> {
        let mut sum = 0.0;
        bar.iter().zip(self.classes).find_map(|(value, class)| {
            sum += value;
            (sum > height).then_some(*class)
        })
    }

    fn row(&self, cells: &[Option<Class>], limit: bool, paint: &dyn Fn(Class, &str) -> String) -> String {
        let mut out = String::new();
        for run in cells.chunk_by(|a, b| a == b) {
            let text = |sign: char| sign.to_string().repeat(run.len());
            match run[0] {
                Some(class) => out.push_str(&paint(class, &text(sign(class)))),
                None => out.push_str(&text(if limit { '─' } else { ' ' })),
            }
        }
        out
    }
}

/// Two digits are enough for the axis.
fn round(value: f64) -> f64 {
    let step = 10f64.powi(value.max(1e-9).log10().floor() as i32 - 1);
    (value / step).round() * step
}

/// A bar of `columns` characters in parts of `whole`, each with its own sign.
pub fn bar(parts: &[(char, f64)], whole: f64, columns: usize) -> String {
    let mut out = String::new();
    let (mut sum, mut drawn) = (0.0, 0);
    for (sign, value) in parts {
        sum += value;
        let end = ((sum / whole.max(1e-12) * columns as f64).round() as usize).min(columns);
        out.extend(std::iter::repeat_n(*sign, end - drawn.min(end)));
        drawn = drawn.max(end);
    }
    left(&out, columns)
}

/// Shares as eight heights: waits by length in one short word.
pub fn spark(shares: &[f64]) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let peak = shares.iter().copied().fold(1e-12, f64::max);
    let height = |share: &f64| match *share {
        s if s <= 0.0 => ' ',
        s => HEIGHTS[((s / peak * 8.0).ceil() as usize).clamp(1, 8) - 1],
    };
    shares.iter().map(height).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_bars_and_sparks() {
        let steps = vec![(0.0, 5.0, vec![1.0, 1.0]), (5.0, 10.0, vec![2.0, 0.0])];
        let area =
            Area { steps: &steps, classes: &[Class::Cpu, Class::Commit], seconds: 10.0, limit: Some(3.0) };
        let drawn = area.draw(20, 3, &["legend".into()], &|_, text| text.to_owned());
        assert_eq!(
            drawn,
            "      3 ┤──────────  legend\n      2 ┤░░░░░█████\n        │██████████\n      0 └──────────\n         0     10 s\n"
        );
        assert_eq!(bar(&[('a', 1.0), ('b', 2.0)], 4.0, 8), "aabbbb  ");
        assert_eq!(spark(&[0.0, 0.1, 0.8]), " ▁█");
        let classes: std::collections::BTreeSet<char> = Class::ALL.into_iter().map(sign).collect();
        assert_eq!(classes.len(), Class::ALL.len(), "every class has a sign of its own");
    }
}
