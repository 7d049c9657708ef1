//! A rate over time in the cell of a table: windows side by side, each row up to its own peak, the mean as a line.

use super::{Scale, Svg};
use crate::words;

/// Width of the cell.
pub const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 40.0;
/// Between two windows: time passed that was not measured.
const GAP: f64 = 3.0;

/// `windows`: rates in order of time, at least one; `unit` is for the tooltips.
pub fn draw(windows: &[Vec<f64>], unit: &str) -> String {
    let mut svg = Svg::new(WIDTH, HEIGHT);
    let all: Vec<f64> = windows.iter().flatten().copied().collect();
    let peak = all.iter().copied().fold(1e-9, f64::max);
    let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
    let y = Scale::linear((0.0, peak), (HEIGHT - 1.0, 2.0));
    let wide = (WIDTH - GAP * windows.len().saturating_sub(1) as f64) / all.len().max(1) as f64;
    let mut left = 0.0;
    for window in windows {
        let begin = left;
        let mut line = Vec::new();
        for rate in window {
            let top = y.place(*rate);
            line.extend([(left, top), (left + wide, top)]);
            left += wide;
        }
        let mut area = line.clone();
        area.extend([(left, HEIGHT - 1.0), (begin, HEIGHT - 1.0)]);
        svg.area("fill", &area);
        svg.path("line-first", &line);
        let level = window.iter().sum::<f64>() / window.len().max(1) as f64;
        svg.rect("hit", (begin, 0.0), (left - begin, HEIGHT), &format!("{} {unit}", words::amount(level)));
        left += GAP;
    }
    svg.line("base", (0.0, HEIGHT - 1.0), (WIDTH, HEIGHT - 1.0));
    svg.line("one", (0.0, y.place(mean)), (WIDTH, y.place(mean)));
    svg.finish_hidden()
}
