//! Ratios against a peer with their spread, and the goals that they must meet: the last lines of a benchmark.
#![allow(dead_code, reason = "each benchmark uses its part")]

use std::process::ExitCode;

/// What is asked of a value.
#[derive(Clone, Copy)]
pub enum Aim {
    AtLeast(f64),
    AtMost(f64),
    /// Printed because it helps to understand the others.
    Told,
}

impl Aim {
    fn met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
            Self::Told => true,
        }
    }

    fn words(self, value: f64) -> String {
        let verdict = if self.met(value) { "met" } else { "MISSED" };
        match self {
            Self::AtLeast(least) => format!("goal >= {least:.2}: {verdict}"),
            Self::AtMost(most) => format!("goal <= {most:.2}: {verdict}"),
            Self::Told => String::new(),
        }
    }
}

/// Collects lines, prints them last.
#[derive(Default)]
pub struct Goals {
    lines: Vec<String>,
    missed: usize,
}

impl Goals {
    /// One value per alternating round: its median is judged.
    pub fn rounds(&mut self, what: &str, values: &[f64], aim: Aim) {
        let value = median(values);
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let spread = format!("{value:>8.3}  (min {low:.3}, max {high:.3}, {} rounds)", values.len());
        self.line(what, &spread, value, aim);
    }

    /// A single value, with whatever should be read beside it.
    pub fn value(&mut self, what: &str, value: f64, beside: &str, aim: Aim) {
        self.line(what, &format!("{value:>8.3}  {beside}"), value, aim);
    }

    fn line(&mut self, what: &str, numbers: &str, value: f64, aim: Aim) {
        self.missed += usize::from(!aim.met(value));
        self.lines.push(format!("{what:<66} {numbers:<46} {}", aim.words(value)).trim_end().to_owned());
    }

    /// Prints all lines. `measured`: goals count; else this was a rehearsal on tiny sizes, and only running through counts.
    pub fn conclude(self, measured: bool) -> ExitCode {
        if !measured {
            println!("a rehearsal on tiny sizes: it ran through, {} goals were not judged", self.lines.len());
            return ExitCode::SUCCESS;
        }
        if self.lines.is_empty() {
            println!("nothing was measured: no part of this benchmark has that name");
            return ExitCode::FAILURE;
        }
        println!();
        for line in &self.lines {
            println!("{line}");
        }
        match self.missed {
            0 => {
                println!("all goals met");
                ExitCode::SUCCESS
            }
            missed => {
                println!("{missed} goals MISSED");
                ExitCode::FAILURE
            }
        }
    }
}

/// The middle value; the mean of the two in the middle when there is no single one.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 0 => (sorted[half - 1] + sorted[half]) / 2.0,
        _ => sorted[half],
    }
}
