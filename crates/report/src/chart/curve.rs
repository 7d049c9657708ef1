//! The load → latency curve: left the rate against requests in flight, right the latency against the rate (the hockey
//! stick), both log-log, with knee, maximum and collapse marked by shape and word.

use super::{Anchor, Scale, Svg, extent};
use crate::words;

/// One reading.
#[derive(Clone, Copy)]
pub struct At {
    /// Requests in flight.
    pub n: f64,
    /// Per second.
    pub rate: f64,
    /// Lowest and highest reading.
    pub spread: (f64, f64),
    /// Mean latency, nanoseconds.
    pub latency_ns: f64,
}

/// What is drawn.
pub struct CurveChart<'a> {
    /// `random reads of 8 KiB`.
    pub title: &'a str,
    /// The curve.
    pub points: Vec<At>,
    /// Points far beyond, by another way of issuing.
    pub beyond: Vec<At>,
    /// Name of that way.
    pub beyond_name: Option<&'a str>,
    /// Requests in flight and rate at the knee, where it is not the maximum itself.
    pub knee: Option<(f64, f64)>,
    /// The same of the maximum.
    pub best: Option<(f64, f64)>,
    /// Requests in flight and rate where it collapsed, and the word for it.
    pub collapse: Option<(f64, f64, &'a str)>,
}

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 360.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 50.0;
/// Left and right panel, from and to.
const PANELS: [(f64, f64); 2] = [(58.0, 452.0), (548.0, 930.0)];

const DIAMOND: [(f64, f64); 4] = [(0.0, -8.0), (8.0, 0.0), (0.0, 8.0), (-8.0, 0.0)];
const TRIANGLE: [(f64, f64); 3] = [(0.0, -8.0), (8.0, 6.5), (-8.0, 6.5)];
const CROSS: [(f64, f64); 12] = [
    (-2.0, 0.0),
    (-7.0, -5.0),
    (-5.0, -7.0),
    (0.0, -2.0),
    (5.0, -7.0),
    (7.0, -5.0),
    (2.0, 0.0),
    (7.0, 5.0),
    (5.0, 7.0),
    (0.0, 2.0),
    (-5.0, 7.0),
    (-7.0, 5.0),
];

impl CurveChart<'_> {
    /// The finished drawing; empty when there is nothing to draw.
    pub fn draw(&self) -> String {
        let all = || self.points.iter().chain(&self.beyond);
        let (Some(n), Some(rate), Some(latency)) = (
            extent(all().map(|p| p.n)),
            extent(all().flat_map(|p| [p.rate, p.spread.0, p.spread.1])),
            extent(all().map(|p| p.latency_ns)),
        ) else {
            return String::new();
        };
        let mut svg = Svg::new(WIDTH, HEIGHT);
        let foot = HEIGHT - BOTTOM;
        let wide = |(low, high): (f64, f64)| (low * 0.88, high * 1.14);
        let rates = wide(rate);
        self.left(&mut svg, &Scale::log(wide(n), PANELS[0]), &Scale::log(rates, (foot, TOP)));
        self.right(&mut svg, &Scale::log(rates, PANELS[1]), &Scale::log(wide(latency), (foot, TOP)));
        svg.finish(&format!("Load and latency: {}", self.title), &self.description())
    }

    fn left(&self, svg: &mut Svg, x: &Scale, y: &Scale) {
        let foot = HEIGHT - BOTTOM;
        svg.text("axis", (PANELS[0].0, 12.0), Anchor::Start, "rate, per second");
        for tick in (0..14).map(|e| f64::from(1u32 << e)).filter(|n| x.contains(*n)) {
            svg.line("guide", (x.place(tick), TOP), (x.place(tick), foot));
            svg.text("tick", (x.place(tick), foot + 16.0), Anchor::Middle, &format!("{tick:.0}"));
        }
        svg.text(
            "axis",
            (f64::midpoint(PANELS[0].0, PANELS[0].1), foot + 36.0),
            Anchor::Middle,
            "requests in flight",
        );
        for tick in y.ticks(6) {
            svg.line("guide", (PANELS[0].0, y.place(tick)), (PANELS[0].1, y.place(tick)));
            svg.text("tick", (PANELS[0].0 - 7.0, y.place(tick) + 4.0), Anchor::End, &words::short(tick));
        }
        let place = |p: &At| (x.place(p.n), y.place(p.rate));
        for p in self.points.iter().filter(|p| p.spread.0 < p.spread.1) {
            svg.line("spread", (x.place(p.n), y.place(p.spread.0)), (x.place(p.n), y.place(p.spread.1)));
        }
        self.lines(svg, &place);
        self.marks(svg, &|n, rate| (x.place(n), y.place(rate)), true);
    }

    fn right(&self, svg: &mut Svg, x: &Scale, y: &Scale) {
        let foot = HEIGHT - BOTTOM;
        svg.text("axis", (PANELS[1].0, 12.0), Anchor::Start, "mean latency");
        let mut free = f64::NEG_INFINITY;
        for tick in x.ticks(7) {
            let at = x.place(tick);
            svg.line("guide", (at, TOP), (at, foot));
            if at > free {
                svg.text("tick", (at, foot + 16.0), Anchor::Middle, &words::short(tick));
                free = at + 36.0;
            }
        }
        svg.text(
            "axis",
            (f64::midpoint(PANELS[1].0, PANELS[1].1), foot + 36.0),
            Anchor::Middle,
            "rate, per second",
        );
        for tick in y.ticks(6) {
            svg.line("guide", (PANELS[1].0, y.place(tick)), (PANELS[1].1, y.place(tick)));
            svg.text(
                "tick",
                (PANELS[1].0 - 7.0, y.place(tick) + 4.0),
                Anchor::End,
                &words::latency_short(tick),
            );
        }
        let place = |p: &At| (x.place(p.rate), y.place(p.latency_ns));
        self.lines(svg, &place);
        // Little's law places a point of known rate and number in flight: R = N / X.
        self.marks(svg, &|n, rate| (x.place(rate), y.place(n * 1e9 / rate)), false);
    }

    fn lines(&self, svg: &mut Svg, place: &dyn Fn(&At) -> (f64, f64)) {
        let tip = |p: &At| {
            format!("{:.0} in flight: {}/s, {}", p.n, words::amount(p.rate), words::latency(p.latency_ns))
        };
        svg.path("beyond", &self.beyond.iter().map(place).collect::<Vec<_>>());
        for p in &self.beyond {
            svg.dot("beyond-dot", place(p), 3.2, &tip(p));
        }
        svg.path("curve", &self.points.iter().map(place).collect::<Vec<_>>());
        for p in &self.points {
            svg.dot("curve-dot", place(p), 3.2, &tip(p));
        }
        if let (Some(last), Some(name)) = (self.beyond.first(), self.beyond_name) {
            let at = place(last);
            svg.text("name-beyond", (at.0 + 2.0, at.1 + 20.0), Anchor::Start, name);
        }
    }

    fn marks(&self, svg: &mut Svg, at: &dyn Fn(f64, f64) -> (f64, f64), left: bool) {
        let foot = HEIGHT - BOTTOM;
        if let Some((n, rate)) = self.knee {
            let spot = at(n, rate);
            if left {
                svg.line("drop", spot, (spot.0, foot));
            }
            svg.mark("knee", spot, &DIAMOND, &format!("knee: {n:.0} in flight"));
            let to = if left { (spot.0 - 6.0, spot.1 - 12.0) } else { (spot.0 - 12.0, spot.1 + 4.0) };
            svg.text("label", to, Anchor::End, &format!("knee {n:.0}"));
        }
        if let Some((n, rate)) = self.best {
            let spot = at(n, rate);
            svg.mark("maximum", spot, &TRIANGLE, &format!("maximum: {n:.0} in flight"));
            let room = left && spot.0 + 90.0 < PANELS[0].1;
            let to = if room { (spot.0 + 8.0, spot.1 - 12.0) } else { (spot.0 - 12.0, spot.1 - 8.0) };
            let side = if room { Anchor::Start } else { Anchor::End };
            svg.text("label", to, side, &format!("maximum {n:.0}"));
        }
        if let Some((n, rate, word)) = self.collapse {
            let spot = at(n, rate);
            svg.mark(
                "collapse",
                spot,
                &CROSS,
                &format!("{word}: {n:.0} in flight, {}/s", words::amount(rate)),
            );
            let (to, side) = if left {
                ((spot.0 - 12.0, spot.1 + 5.0), Anchor::End)
            } else {
                ((spot.0 + 12.0, spot.1 + 4.0), Anchor::Start)
            };
            svg.text("label-worse", to, side, &format!("{word} at {n:.0}"));
        }
    }

    fn description(&self) -> String {
        let text: Vec<String> = self
            .points
            .iter()
            .map(|p| {
                format!("{:.0} in flight {}/s {}", p.n, words::amount(p.rate), words::latency(p.latency_ns))
            })
            .collect();
        format!("Points: {}.", text.join("; "))
    }
}
