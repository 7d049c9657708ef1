//! The break-even curve: speed-up against buffer cache hit ratio, with the point above which it no longer pays.

use super::{Anchor, Scale, Svg, extent};
use crate::words;

/// What is drawn.
pub struct BreakEvenChart<'a> {
    /// Name of the configuration whose gain it is.
    pub leader: &'a str,
    /// Name of the baseline.
    pub baseline: &'a str,
    /// Hit ratio, speed-up, low, high.
    pub curve: Vec<(f64, f64, f64, f64)>,
    /// The other configurations: name, hit ratio and speed-up.
    pub others: Vec<(&'a str, &'a [(f64, f64)])>,
    /// Where it begins or ceases to pay.
    pub break_even: Vec<f64>,
    /// Hit ratio and speed-up of the user's database.
    pub you: (f64, f64),
    /// Margin that pays, 0.03.
    pub delta: f64,
}

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 330.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 54.0;

impl BreakEvenChart<'_> {
    /// The finished drawing.
    pub fn draw(&self) -> String {
        let mut svg = Svg::new(WIDTH, HEIGHT);
        // Equal steps are equal factors of the miss ratio: 90 to 99 % is as wide as 0 to 90 %.
        let misses = |h: f64| 1.0 / (1.0 - h);
        let last = self.curve.last().map_or(0.999, |c| c.0);
        let x = Scale::log((1.0, misses(last)), (LEFT, WIDTH - RIGHT));
        let lines = self.others.iter().flat_map(|o| o.1.iter().map(|p| p.1));
        let ends =
            self.curve.iter().flat_map(|c| [c.2, c.3]).chain(lines).chain([0.97, 1.0 + self.delta * 2.0]);
        let (low, high) = extent(ends.filter(|v| *v > 0.05 && *v < 100.0)).unwrap_or((0.9, 2.0));
        let y = Scale::log((low * 0.98, high * 1.02), (HEIGHT - BOTTOM, TOP));
        self.axes(&mut svg, &x, &y, &misses);
        for (name, points) in &self.others {
            let line: Vec<_> =
                points.iter().map(|(h, s)| (x.place(misses(*h)), y.place_inside(*s))).collect();
            svg.path("other", &line);
            if let Some(end) = line.first() {
                svg.dot("ghost", *end, 4.0, &format!("{name}: {} × at 0 %", words::ratio(points[0].1)));
            }
        }
        let at = |h: f64, s: f64| (x.place(misses(h)), y.place_inside(s));
        let mut band: Vec<_> = self.curve.iter().map(|c| at(c.0, c.3)).collect();
        band.extend(self.curve.iter().rev().map(|c| at(c.0, c.2)));
        svg.area("band", &band);
        svg.path("leader", &self.curve.iter().map(|c| at(c.0, c.1)).collect::<Vec<_>>());
        self.marks(&mut svg, &x, &y, &misses);
        self.names(&mut svg, &y);
        svg.finish(
            &format!("Speed-up of {} over {} against hit ratio", self.leader, self.baseline),
            &self.description(),
        )
    }

    fn axes(&self, svg: &mut Svg, x: &Scale, y: &Scale, misses: &dyn Fn(f64) -> f64) {
        let foot = HEIGHT - BOTTOM;
        for h in [0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999] {
            if x.contains(misses(h)) {
                let at = x.place(misses(h));
                svg.line("guide", (at, TOP), (at, foot));
                svg.text("tick", (at, foot + 16.0), Anchor::Middle, &words::percent(h));
            }
        }
        svg.text(
            "axis",
            (LEFT, foot + 34.0),
            Anchor::Start,
            "buffer cache hit ratio (equal steps: equal factors of the misses)",
        );
        for tick in y.ticks(6) {
            svg.line("guide", (LEFT, y.place(tick)), (WIDTH - RIGHT, y.place(tick)));
            svg.text(
                "tick",
                (LEFT - 8.0, y.place(tick) + 4.0),
                Anchor::End,
                &format!("{} ×", words::ratio(tick)),
            );
        }
        svg.line("one", (LEFT, y.place(1.0)), (WIDTH - RIGHT, y.place(1.0)));
        let margin = y.place(1.0 + self.delta);
        svg.line("margin", (LEFT, margin), (WIDTH - RIGHT, margin));
    }

    fn marks(&self, svg: &mut Svg, x: &Scale, y: &Scale, misses: &dyn Fn(f64) -> f64) {
        let foot = HEIGHT - BOTTOM;
        let (hit, speed) = self.you;
        let you = (x.place_inside(misses(hit)), y.place_inside(speed));
        svg.line("drop", you, (you.0, foot));
        svg.dot("you", you, 5.5, &format!("your {}: {} ×", words::percent(hit), words::ratio(speed)));
        // Labels lean away from each other where the two points are close.
        let place = |h: f64| (x.place_inside(misses(h)), y.place(1.0 + self.delta));
        let close_behind = |at: f64| at > you.0 && at - you.0 < 170.0;
        let crowded = self.break_even.iter().any(|h| close_behind(place(*h).0));
        let (side, shift) = match crowded || you.0 > WIDTH - RIGHT - 150.0 {
            true => (Anchor::End, -10.0),
            false => (Anchor::Start, 10.0),
        };
        let text = format!("you: {} → {} ×", words::percent(hit), words::ratio(speed));
        svg.text("label", (you.0 + shift, you.1 - 9.0), side, &text);
        for h in self.break_even.iter().copied() {
            let at = place(h);
            let text = format!("break-even {}", words::percent(h));
            svg.line("drop", at, (at.0, foot));
            svg.mark("even", at, &[(0.0, -7.0), (7.0, 0.0), (0.0, 7.0), (-7.0, 0.0)], &text);
            let (to, side) = match (at.0 - you.0).abs() < 170.0 {
                true if at.0 > you.0 => ((at.0 + 10.0, at.1 - 9.0), Anchor::Start),
                true => ((at.0 - 9.0, at.1 + 18.0), Anchor::End),
                false => ((at.0, at.1 - 13.0), Anchor::Middle),
            };
            svg.text("label", to, side, &text);
        }
    }

    /// Names at the right end of the lines, moved apart where they would touch.
    fn names(&self, svg: &mut Svg, y: &Scale) {
        let at = WIDTH - RIGHT + 8.0;
        let mut ends: Vec<(f64, String, &str)> = vec![
            (y.place(1.0), self.baseline.to_owned(), "name"),
            (y.place(1.0 + self.delta), format!("+{} pays", words::percent(self.delta)), "name-margin"),
        ];
        if let Some(last) = self.curve.last() {
            ends.push((y.place_inside(last.1), self.leader.to_owned(), "name-leader"));
        }
        ends.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut free = f64::INFINITY;
        for (place, text, class) in ends {
            let place = (place + 4.0).min(free - 15.0);
            free = place;
            svg.text(class, (at, place), Anchor::Start, &text);
        }
        if !self.others.is_empty() {
            svg.text("name-other", (at, free - 22.0), Anchor::Start, "thin: the others");
        }
    }

    fn description(&self) -> String {
        let points: Vec<String> = self.break_even.iter().map(|h| words::percent(*h)).collect();
        let margin = words::percent(self.delta);
        let even = if points.is_empty() {
            format!("it does not cross the margin of {margin}")
        } else {
            format!("it crosses the margin of {margin} at {}", words::list(&points))
        };
        format!("At your {} it is {} ×; {even}.", words::percent(self.you.0), words::ratio(self.you.1))
    }
}
