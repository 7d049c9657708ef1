//! The run on one time axis: what was being done on top, beneath it one lane for each quantity.

use super::{Anchor, Scale, Svg, extent};
use crate::words;

/// A named stretch in a row of its own.
pub struct Stretch<'a> {
    /// Begin, seconds.
    pub from: f64,
    /// End, seconds.
    pub to: f64,
    /// Row.
    pub row: usize,
    /// For the tooltip.
    pub name: &'a str,
}

/// A step of a line: from and to, seconds, and the value.
pub type Step = (f64, f64, f64);

/// One quantity.
pub struct LaneChart<'a> {
    /// What.
    pub title: &'a str,
    /// Unit.
    pub unit: &'a str,
    /// Name and `(from, to, value)` of each line, at most two.
    pub lines: Vec<(&'a str, Vec<Step>)>,
}

/// What is drawn.
pub struct TimeChart<'a> {
    /// End of the axis, seconds.
    pub seconds: f64,
    /// Names of the rows.
    pub rows: &'a [String],
    /// What was done when.
    pub stretches: Vec<Stretch<'a>>,
    /// The lanes, top first.
    pub lanes: Vec<LaneChart<'a>>,
}

const WIDTH: f64 = 960.0;
const LEFT: f64 = 184.0;
const RIGHT: f64 = 16.0;
const ROW: f64 = 13.0;
const LANE: f64 = 54.0;
const GAP: f64 = 12.0;
const FOOT: f64 = 34.0;

impl TimeChart<'_> {
    /// The finished drawing.
    pub fn draw(&self) -> String {
        let rows = self.rows.len() as f64 * ROW;
        let lanes_from = rows + GAP + 4.0;
        let foot = lanes_from + self.lanes.len() as f64 * (LANE + GAP);
        let mut svg = Svg::new(WIDTH, foot + FOOT);
        let x = Scale::linear((0.0, self.seconds.max(0.001)), (LEFT, WIDTH - RIGHT));
        for tick in x.ticks(10) {
            svg.line("guide", (x.place(tick), 0.0), (x.place(tick), foot));
            svg.text("tick", (x.place(tick), foot + 14.0), Anchor::Middle, &format!("{tick:.0}"));
        }
        svg.text("axis", (WIDTH - RIGHT, foot + 30.0), Anchor::End, "seconds");
        for (index, name) in self.rows.iter().enumerate() {
            let y = (index + 1) as f64 * ROW - 3.0;
            svg.text("tick", (LEFT - 8.0, y), Anchor::End, name);
        }
        for s in &self.stretches {
            let width = (x.place(s.to) - x.place(s.from)).max(0.8);
            svg.rect("stretch", (x.place(s.from), s.row as f64 * ROW + 2.0), (width, ROW - 4.0), s.name);
        }
        for (index, lane) in self.lanes.iter().enumerate() {
            lane.draw(&mut svg, &x, lanes_from + index as f64 * (LANE + GAP));
        }
        let titles: Vec<&str> = self.lanes.iter().map(|l| l.title).collect();
        svg.finish(
            "Time lines of the run",
            &format!("Over {} s: {}.", self.seconds.round(), titles.join(", ")),
        )
    }
}

impl LaneChart<'_> {
    /// Whether the values of the first line spread over so much that only a log axis shows them all.
    fn is_wide(&self) -> bool {
        let mut values: Vec<f64> = self
            .lines
            .first()
            .map(|l| l.1.iter().map(|s| s.2).filter(|v| *v > 0.0).collect())
            .unwrap_or_default();
        values.sort_by(f64::total_cmp);
        let at = |share: f64| values.get((values.len() as f64 * share) as usize).copied();
        at(0.25).zip(values.last().copied()).is_some_and(|(quarter, high)| high > 60.0 * quarter)
    }

    fn draw(&self, svg: &mut Svg, x: &Scale, top: f64) {
        let foot = top + LANE;
        let high =
            extent(self.lines.iter().flat_map(|l| l.1.iter().map(|s| s.2))).map_or(1.0, |e| e.1).max(1e-9);
        // Work of very different kinds (cached reads beside commits) would leave the slower ones flat on the floor.
        let wide = self.is_wide();
        let range = (foot, top + 3.0);
        let y = if wide { Scale::log((high * 1e-3, high), range) } else { Scale::linear((0.0, high), range) };
        svg.line("base", (LEFT, foot), (WIDTH - RIGHT, foot));
        svg.text("lane", (LEFT - 8.0, top + 12.0), Anchor::End, self.title);
        let axis = if wide { ", log" } else { "" };
        let peak = format!("peak {} {}{axis}", words::short(high), self.unit);
        svg.text("tick", (LEFT - 8.0, top + 26.0), Anchor::End, &peak);
        let mut from = LEFT - 8.0;
        for (index, (name, steps)) in self.lines.iter().enumerate() {
            let class = if index == 0 { "first" } else { "second" };
            for run in runs(steps) {
                let mut line = Vec::new();
                for (from, to, value) in run {
                    line.push((x.place(*from), y.place_inside(*value)));
                    line.push((x.place(*to), y.place_inside(*value)));
                }
                if index == 0
                    && let (Some(first), Some(last)) = (line.first().copied(), line.last().copied())
                {
                    let mut area = line.clone();
                    area.push((last.0, foot));
                    area.push((first.0, foot));
                    svg.area("fill", &area);
                }
                svg.path(&format!("line-{class}"), &line);
            }
            if self.lines.len() > 1 {
                let mark = if index == 0 { "━" } else { "┅" };
                svg.text(
                    &format!("name-{class}"),
                    (from, top + 41.0),
                    Anchor::End,
                    &format!("{mark} {name}"),
                );
                from -= (name.chars().count() + 3) as f64 * 6.2 + 6.0;
            }
        }
    }
}

/// Stretches without holes.
fn runs(steps: &[Step]) -> Vec<&[Step]> {
    let mut all = Vec::new();
    let mut begin = 0;
    for index in 1..=steps.len() {
        let hole = index == steps.len()
            || steps[index].0 - steps[index - 1].1 > 0.6 * (steps[index].1 - steps[index].0).max(0.05);
        if hole {
            all.push(&steps[begin..index]);
            begin = index;
        }
    }
    all
}
