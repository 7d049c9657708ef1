//! Bars that stand in the cells of a table: one bar in parts, and waits by length in powers of two.

use super::{Anchor, Scale, Svg};

/// Height of a row's bar.
const HEIGHT: f64 = 24.0;
/// Width of a cell with waits by length.
pub const BUCKETS_WIDTH: f64 = 150.0;
/// Blank at both ends of the lengths, so that end ticks can be labelled.
const MARGIN: f64 = 10.0;

/// One part of a bar.
pub struct Part {
    /// CSS class of its fill.
    pub class: String,
    /// Its size, in the unit of the whole.
    pub value: f64,
    /// For the tooltip.
    pub tip: String,
    /// Written into it: the first that there is room for.
    pub labels: Vec<String>,
}

/// A bar in parts, `whole` being the full width; at least a sliver of each part is seen.
pub fn parts(width: f64, height: f64, parts: &[Part], whole: f64) -> String {
    let mut svg = Svg::new(width, height);
    let pad = if height > HEIGHT { 2.0 } else { 5.0 };
    let mut left = 0.0;
    for part in parts.iter().filter(|part| part.value > 0.0) {
        let wide = (part.value / whole.max(1e-12) * width).min(width - left).max(0.0);
        // The gap between two parts is taken from the part, so that the bar keeps its length.
        svg.rect(&part.class, (left, pad), ((wide - 1.0).max(0.4), height - 2.0 * pad), &part.tip);
        let fits = |label: &&String| label.chars().count() as f64 * 6.6 + 10.0 < wide;
        if let Some(label) = part.labels.iter().find(fits) {
            svg.text("inside", (left + wide / 2.0, height / 2.0 + 4.0), Anchor::Middle, label);
        }
        left += wide;
    }
    svg.finish_hidden()
}

/// The axis of lengths: buckets `first` to `last`, in the middle of which each bar stands.
pub fn bucket_scale(first: usize, last: usize) -> Scale {
    Scale::linear((first as f64 - 0.5, last as f64 + 0.5), (MARGIN, BUCKETS_WIDTH - MARGIN))
}

/// Labels at the upper bounds of some buckets.
pub fn bucket_axis(scale: &Scale, first: usize, last: usize, label: impl Fn(usize) -> String) -> String {
    let mut svg = Svg::new(BUCKETS_WIDTH, 18.0);
    let mut free = 0.0;
    for bucket in guides(first, last) {
        let (x, text) = (scale.place(bucket as f64 + 0.5), label(bucket));
        let half = text.chars().count() as f64 * 3.1;
        let middle = x.clamp(half, BUCKETS_WIDTH - half);
        if middle - half < free {
            continue;
        }
        free = middle + half + 5.0;
        svg.text("tick", (middle, 11.0), Anchor::Middle, &text);
        svg.line("tickmark", (x, 14.0), (x, 18.0));
    }
    svg.finish_hidden()
}

/// Every so many buckets there is a label: three or four in all.
fn guides(first: usize, last: usize) -> impl Iterator<Item = usize> {
    let every = ((last - first) / 3).max(1);
    (first..=last).filter(move |bucket| (bucket - first) % every == every / 2)
}

/// Waits by length: a bar for each bucket, as high as its share of the waits is of the largest share.
pub fn buckets(
    scale: &Scale,
    (first, last): (usize, usize),
    shares: &[f64],
    class: &str,
    tips: &[String],
) -> String {
    let mut svg = Svg::new(BUCKETS_WIDTH, HEIGHT);
    for bucket in guides(first, last) {
        let x = scale.place(bucket as f64 + 0.5);
        svg.line("guide", (x, 0.0), (x, HEIGHT));
    }
    let peak = shares.iter().copied().fold(1e-12, f64::max);
    let wide = (scale.place(1.0) - scale.place(0.0) - 1.0).max(1.0);
    for (bucket, share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
        let high = ((HEIGHT - 4.0) * share / peak).max(0.7);
        let left = scale.place(bucket as f64) - wide / 2.0;
        let tip = tips.get(bucket).map_or("", String::as_str);
        svg.rect(class, (left, HEIGHT - 1.0 - high), (wide, high), tip);
    }
    svg.line("base", (0.0, HEIGHT - 1.0), (BUCKETS_WIDTH, HEIGHT - 1.0));
    svg.finish_hidden()
}
