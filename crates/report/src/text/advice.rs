//! Advice on a flash cache in the terminal: the table of sizes and the drawn curve.

use super::Page;
use super::plot::{Mark, Plot};
use super::style::{left, right};
use crate::chart::Scale;
use crate::model::advice::{Advice, Size, size};
use crate::words;

pub(super) fn report(page: Page, advice: &Advice) -> String {
    if advice.sizes.is_empty() {
        return String::new();
    }
    let mut out = page.title("What each size would do");
    let has_speed = advice.sizes.iter().any(|of| of.speed_up.is_some());
    let mut head =
        format!("{} {} {}", right("flash cache", 11), right("reads served", 12), left("interval", 13));
    if has_speed {
        head.push_str(&format!("{} {}", right("as fast", 7), left("interval", 13)));
    }
    out.push_str(&page.paint.dim(head.trim_end()));
    out.push('\n');
    for (index, of) in advice.sizes.iter().enumerate() {
        let line = row(of);
        let beside = match (Some(index) == advice.choice, Some(index) == advice.enough) {
            (true, _) => " ◆",
            (false, true) => " ▲",
            (false, false) => "",
        };
        let line = format!("{}{beside}", line.trim_end());
        out.push_str(&if Some(index) == advice.choice { page.paint.bold(&line) } else { line });
        out.push('\n');
    }
    out + &drawn(page, advice)
}

fn row(of: &Size) -> String {
    let hits = &of.hits;
    let mut line = format!(
        "{} {} {}",
        right(&size(of.bytes), 11),
        right(&format!("{:.1} %", hits.value * 100.0), 12),
        left(&format!("[{:.1}–{:.1}]", hits.low * 100.0, hits.high * 100.0), 13)
    );
    if let Some(speed_up) = &of.speed_up {
        line.push_str(&format!(
            "{} {}",
            right(&format!("{} ×", words::ratio(speed_up.value)), 7),
            left(&words::ratio_interval(speed_up.low, speed_up.high), 13)
        ));
    }
    line
}

/// Hit ratio against size.
fn drawn(page: Page, advice: &Advice) -> String {
    let [first, .., last] = advice.sizes.as_slice() else { return String::new() };
    let (low, high) = (first.bytes as f64, last.bytes as f64);
    let point = |of: &Size| (of.bytes as f64, of.hits.value);
    let marked = |index: Option<usize>, sign: char| {
        index.map(|index| Mark { at: point(&advice.sizes[index]), sign }).into_iter()
    };
    let plot = Plot {
        lines: vec![advice.sizes.iter().map(point).collect()],
        dotted: vec![advice.lru.clone()],
        guides: Vec::new(),
        levels: Vec::new(),
        marks: marked(advice.enough, '▲').chain(marked(advice.choice, '◆')).collect(),
        x: &|range| Scale::log((low, high), range),
        y: &|range| Scale::linear((0.0, 1.0), range),
        x_labels: advice.sizes.iter().map(|of| (of.bytes as f64, words::plain(&size(of.bytes)))).collect(),
        y_label: &|share| words::plain(&words::percent(share)),
    };
    let mut out = page.title("Reads served, by size of the flash cache");
    out.push_str(&plot.draw(page.width.min(100), 10));
    let legend = format!(
        "line: {}  · LRU (classic)  ◆ most of what can be gained  ▲ nothing more beyond",
        advice.policy
    );
    out + &page.dim_fold(&legend, "          ", 10)
}
