//! Bars in the cells of a ranked table: how near a configuration comes to the best one, with its interval.

use super::{Scale, Svg};

/// Height of a row's cell.
const HEIGHT: f64 = 24.0;
/// Width of the cell.
pub const WIDTH: f64 = 300.0;

/// From zero to the largest ratio that is drawn.
pub fn scale(largest: f64) -> Scale {
    Scale::linear((0.0, largest.max(1.0)), (0.0, WIDTH - 16.0))
}

/// A bar up to `ratio` with a whisker over `interval`; `class` colours it, `tip` tells it.
pub fn bar(scale: &Scale, ratio: f64, interval: Option<(f64, f64)>, class: &str, tip: &str) -> String {
    let mut svg = Svg::new(WIDTH, HEIGHT);
    let (zero, one, middle) = (scale.place(0.0), scale.place(1.0), HEIGHT / 2.0);
    svg.rect(class, (zero, 5.0), (scale.place_inside(ratio) - zero, HEIGHT - 10.0), tip);
    svg.line("one", (one, 0.0), (one, HEIGHT));
    if let Some((low, high)) = interval {
        let (from, to) = (scale.place_inside(low), scale.place_inside(high));
        svg.line("rank-whisker", (from, middle), (to, middle));
        for end in [from, to] {
            svg.line("rank-whisker", (end, middle - 4.0), (end, middle + 4.0));
        }
    }
    svg.finish_hidden()
}
