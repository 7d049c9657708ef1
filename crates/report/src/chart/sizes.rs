//! Hit ratio and speed-up against the size of a cache: intervals, the line through them, and an LRU cache beside them.

use super::{Anchor, Scale, Svg, extent};
use crate::words;

/// One size with its estimate and interval.
#[derive(Clone, Copy)]
pub struct At {
    /// Size, bytes.
    pub bytes: f64,
    /// Estimate.
    pub value: f64,
    /// Interval.
    pub interval: (f64, f64),
}

/// What is drawn; one panel for each quantity.
pub struct SizesChart<'a> {
    /// Hit ratios, 0 to 1.
    pub hits: Vec<At>,
    /// Speed-ups; none: no second panel.
    pub speed_ups: Vec<At>,
    /// An LRU cache at many sizes.
    pub lru: &'a [(f64, f64)],
    /// Name of the policy.
    pub policy: &'a str,
    /// The size that is named in the sentence.
    pub choice: Option<f64>,
}

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 330.0;
const TOP: f64 = 28.0;
const FOOT: f64 = HEIGHT - 50.0;
const PANELS: [(f64, f64); 2] = [(58.0, 452.0), (548.0, 930.0)];
const WIDE: (f64, f64) = (58.0, 930.0);

impl SizesChart<'_> {
    /// The finished drawing; empty when there is nothing to draw.
    pub fn draw(&self) -> String {
        let Some((low, high)) = extent(self.hits.iter().map(|at| at.bytes)) else { return String::new() };
        let sizes = (low * 0.9, high * 1.12);
        let mut svg = Svg::new(WIDTH, HEIGHT);
        let both = !self.speed_ups.is_empty();
        let first = if both { PANELS[0] } else { WIDE };
        let (x, y) = (Scale::log(sizes, first), Scale::linear((0.0, 1.0), (FOOT, TOP)));
        frame(&mut svg, first, &x, &y, "reads served", &self.hits, &words::percent);
        svg.path("beyond", &self.lru.iter().map(|p| (x.place_inside(p.0), y.place(p.1))).collect::<Vec<_>>());
        self.panel(&mut svg, &x, &y, &self.hits, &words::percent);
        self.names(&mut svg, first.1);
        if both {
            let top = self.speed_ups.iter().map(|at| at.interval.1).fold(1.0, f64::max);
            let (x, y) = (Scale::log(sizes, PANELS[1]), Scale::linear((0.0, top * 1.08), (FOOT, TOP)));
            let times = |value: f64| format!("{} ×", words::short_tick(value));
            frame(&mut svg, PANELS[1], &x, &y, "as fast as without", &self.speed_ups, &times);
            svg.line("one", (PANELS[1].0, y.place(1.0)), (PANELS[1].1, y.place(1.0)));
            self.panel(&mut svg, &x, &y, &self.speed_ups, &|value| format!("{} ×", words::ratio(value)));
        }
        svg.finish("Reads served and speed-up against the size of the flash cache", &self.description())
    }

    fn panel(&self, svg: &mut Svg, x: &Scale, y: &Scale, all: &[At], said: &dyn Fn(f64) -> String) {
        let place = |at: &At| (x.place(at.bytes), y.place(at.value));
        if let Some(chosen) = all.iter().find(|at| Some(at.bytes) == self.choice) {
            svg.line("drop", place(chosen), (x.place(chosen.bytes), FOOT));
        }
        for at in all {
            let (low, high) = at.interval;
            svg.line("spread", (x.place(at.bytes), y.place(low)), (x.place(at.bytes), y.place(high)));
        }
        svg.path("curve", &all.iter().map(place).collect::<Vec<_>>());
        for at in all {
            let (low, high) = at.interval;
            let tip = format!("{}: {} [{}–{}]", size(at.bytes), said(at.value), said(low), said(high));
            svg.dot("curve-dot", place(at), if Some(at.bytes) == self.choice { 5.5 } else { 3.5 }, &tip);
        }
    }

    /// Which line is which, above the drawing at its right end.
    fn names(&self, svg: &mut Svg, right: f64) {
        const LRU: f64 = 62.0;
        let beside = if self.lru.is_empty() { 0.0 } else { LRU };
        svg.text("name-leader", (right - beside, 14.0), Anchor::End, &format!("● {}", self.policy));
        if !self.lru.is_empty() {
            svg.text("name-beyond", (right, 14.0), Anchor::End, "– – LRU");
        }
    }

    fn description(&self) -> String {
        let text = |at: &At| format!("{} {}", size(at.bytes), words::percent(at.value));
        let hits: Vec<String> = self.hits.iter().map(text).collect();
        let text = |at: &At| format!("{} {} ×", size(at.bytes), words::ratio(at.value));
        let speed_ups: Vec<String> = self.speed_ups.iter().map(text).collect();
        let speed_ups =
            if speed_ups.is_empty() { String::new() } else { format!(" As fast: {}.", speed_ups.join("; ")) };
        format!("Reads served: {}.{speed_ups}", hits.join("; "))
    }
}

fn frame(
    svg: &mut Svg,
    panel: (f64, f64),
    x: &Scale,
    y: &Scale,
    name: &str,
    all: &[At],
    said: &dyn Fn(f64) -> String,
) {
    svg.text("axis", (panel.0, 14.0), Anchor::Start, name);
    for tick in y.ticks(5) {
        svg.line("guide", (panel.0, y.place(tick)), (panel.1, y.place(tick)));
        svg.text("tick", (panel.0 - 7.0, y.place(tick) + 4.0), Anchor::End, &said(tick));
    }
    let mut free = f64::NEG_INFINITY;
    for at in all {
        let place = x.place(at.bytes);
        svg.line("guide", (place, TOP), (place, FOOT));
        if place > free {
            svg.text("tick", (place, FOOT + 16.0), Anchor::Middle, &size(at.bytes));
            free = place + 58.0;
        }
    }
    svg.text(
        "axis",
        (f64::midpoint(panel.0, panel.1), FOOT + 38.0),
        Anchor::Middle,
        "size of the flash cache",
    );
}

fn size(bytes: f64) -> String {
    units::Bytes(bytes as u64).to_string()
}
