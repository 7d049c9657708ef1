//! Strips over one time axis: stacked areas and lines above each other, legends at the right in the order of the drawing.
//!
//! All strips of a page have the same margins, so what happens above happens beneath. Pointing at a moment tells its values;
//! the same numbers stand in the table behind the drawing.

use super::{Anchor, Scale, Svg, extent};
use crate::words;

/// Width of the drawing.
pub const WIDTH: f64 = 1000.0;
const LEFT: f64 = 48.0;
const RIGHT: f64 = 178.0;
const ROW: f64 = 14.0;
/// Above a strip: its title.
const HEAD: f64 = 34.0;
const FOOT: f64 = 34.0;
/// Height of a line of the legend.
const LINE: f64 = 17.0;
/// A name is written into its area where the area is this high.
const NAME_HEIGHT: f64 = 20.0;
/// Above this number of marks only their heads are drawn.
const MARKS_WITH_LINES: usize = 24;
/// Moments that can be pointed at.
const TIPS: usize = 120;

/// A step: from and to, seconds, and one value for each layer.
pub type Step = (f64, f64, Vec<f64>);

/// A step of a line: from and to, seconds, and its value.
pub type Point = (f64, f64, f64);

/// A named stretch above the strips.
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

/// One layer of a stack, or one line.
pub struct Layer<'a> {
    /// Its name in the legend.
    pub name: &'a str,
    /// Its CSS class: colour of the fill, or of the line.
    pub class: &'a str,
    /// A value beside the name, or nothing.
    pub value: String,
    /// Whether it is concluded rather than seen: its area is hatched.
    pub hatched: bool,
}

/// What a strip shows.
pub enum Content<'a> {
    /// Areas on top of each other, the first at the bottom.
    Stack {
        /// From the bottom.
        layers: Vec<Layer<'a>>,
        /// In order; a hole between two is a hole in the drawing.
        steps: &'a [Step],
    },
    /// Lines; beneath the first one the area is filled.
    Lines {
        /// The name of each, and what it runs through.
        lines: Vec<(Layer<'a>, Vec<Point>)>,
    },
}

/// One quantity over time.
pub struct Strip<'a> {
    /// What.
    pub title: &'a str,
    /// Unit of the axis.
    pub unit: &'a str,
    /// Height of the drawing area.
    pub height: f64,
    /// What is drawn.
    pub content: Content<'a>,
    /// A level with its name: the number of CPUs, the size of the redo.
    pub limit: Option<(f64, &'a str)>,
    /// Moments that are marked on this strip: seconds and what happened.
    pub marks: Vec<(f64, String)>,
}

/// Strips over one axis.
pub struct Strips<'a> {
    /// What a screen reader says first.
    pub name: &'a str,
    /// End of the axis, seconds.
    pub seconds: f64,
    /// Names of the rows of stretches.
    pub rows: &'a [String],
    /// What was done when.
    pub stretches: Vec<Stretch<'a>>,
    /// From top to bottom.
    pub strips: Vec<Strip<'a>>,
}

impl Strips<'_> {
    /// The finished drawing.
    pub fn draw(&self) -> String {
        let rows = if self.rows.is_empty() { 0.0 } else { self.rows.len() as f64 * ROW + 6.0 };
        let heights = self.strips.iter().map(|strip| HEAD + strip.tall());
        let foot = rows + heights.sum::<f64>();
        let mut svg = Svg::new(WIDTH, foot + FOOT);
        let x = Scale::linear((0.0, self.seconds.max(0.001)), (LEFT, WIDTH - RIGHT));
        self.what_was_done(&mut svg, &x);
        let mut top = rows;
        for strip in &self.strips {
            let area = (top + HEAD, top + HEAD + strip.height);
            for tick in x.ticks(9) {
                svg.line("guide", (x.place(tick), area.0), (x.place(tick), area.1));
            }
            svg.text("strip", (0.0, area.0 - 8.0), Anchor::Start, &strip.heading());
            strip.draw(&mut svg, &x, area);
            top += HEAD + strip.tall();
        }
        let base = top - self.strips.last().map_or(0.0, |s| s.tall() - s.height);
        for tick in x.ticks(9) {
            svg.text("tick", (x.place(tick), base + 15.0), Anchor::Middle, &words::short(tick));
        }
        svg.text("axis", (WIDTH - RIGHT + 10.0, base + 15.0), Anchor::Start, "seconds");
        let titles: Vec<&str> = self.strips.iter().map(|strip| strip.title).collect();
        svg.finish(self.name, &format!("Over {} s: {}.", self.seconds.round(), titles.join(", ")))
    }

    fn what_was_done(&self, svg: &mut Svg, x: &Scale) {
        for (index, name) in self.rows.iter().enumerate() {
            let y = (index + 1) as f64 * ROW - 3.0;
            svg.text("tick", (WIDTH - RIGHT + 10.0, y), Anchor::Start, name);
        }
        for s in &self.stretches {
            let width = (x.place(s.to) - x.place(s.from)).max(0.8);
            svg.rect("stretch", (x.place(s.from), s.row as f64 * ROW + 2.0), (width, ROW - 5.0), s.name);
        }
    }
}

impl Strip<'_> {
    fn heading(&self) -> String {
        if self.unit.is_empty() { self.title.to_owned() } else { format!("{}, {}", self.title, self.unit) }
    }

    /// With the legend, which may be longer than the drawing is high.
    fn tall(&self) -> f64 {
        let entries = match &self.content {
            Content::Stack { layers, .. } => layers.len(),
            Content::Lines { lines } if lines.len() > 1 => lines.len(),
            Content::Lines { .. } => 0,
        };
        self.height.max((entries + usize::from(self.limit.is_some())) as f64 * LINE - 4.0)
    }

    fn highest(&self) -> f64 {
        let drawn = match &self.content {
            Content::Stack { steps, .. } => extent(steps.iter().map(|s| s.2.iter().sum())),
            Content::Lines { lines } => extent(lines.iter().flat_map(|l| l.1.iter().map(|s| s.2))),
        };
        let drawn = drawn.map_or(0.0, |e| e.1);
        // A level far above everything would press the drawing flat; then it is only named.
        let limit = self.limit.map(|l| l.0).filter(|l| *l < 4.0 * drawn);
        drawn.max(limit.unwrap_or(0.0)).max(1e-6)
    }

    fn draw(&self, svg: &mut Svg, x: &Scale, (top, foot): (f64, f64)) {
        let high = self.highest();
        let y = Scale::linear((0.0, high * 1.02), (foot, top));
        for tick in y.ticks(if foot - top > 120.0 { 5 } else { 3 }) {
            svg.line("guide", (LEFT, y.place(tick)), (WIDTH - RIGHT, y.place(tick)));
            svg.text("tick", (LEFT - 6.0, y.place(tick) + 4.0), Anchor::End, &words::short_tick(tick));
        }
        match &self.content {
            Content::Stack { layers, steps } => stack(svg, (x, &y), layers, steps),
            Content::Lines { lines } => {
                for (index, (layer, steps)) in lines.iter().enumerate() {
                    line(svg, (x, &y), layer, steps, index == 0);
                }
            }
        }
        svg.line("base", (LEFT, foot), (WIDTH - RIGHT, foot));
        if let Some((level, _)) = self.limit.filter(|l| l.0 <= high) {
            svg.line("limit", (LEFT, y.place(level)), (WIDTH - RIGHT, y.place(level)));
        }
        for (at, what) in &self.marks {
            // Many lines hide what they should explain; their heads stay.
            let end = if self.marks.len() > MARKS_WITH_LINES { top + 4.0 } else { foot };
            svg.line("moment", (x.place(*at), top), (x.place(*at), end));
            svg.mark("moment-head", (x.place(*at), top), &[(-4.0, -6.0), (4.0, -6.0), (0.0, 0.0)], what);
        }
        self.legend(svg, top);
        self.tips(svg, x, (top, foot));
    }

    /// At the right, the topmost layer on top.
    fn legend(&self, svg: &mut Svg, top: f64) {
        let left = WIDTH - RIGHT + 10.0;
        let mut at = top + 9.0;
        let mut entry = |svg: &mut Svg, layer: &Layer<'_>, area: bool| {
            if area {
                svg.rect(&format!("swatch {}", layer.class), (left, at - 9.0), (10.0, 10.0), "");
                if layer.hatched {
                    svg.rect("swatch hatch", (left, at - 9.0), (10.0, 10.0), "");
                }
            } else {
                svg.line(layer.class, (left - 1.0, at - 4.0), (left + 12.0, at - 4.0));
            }
            svg.text("legend", (left + 17.0, at), Anchor::Start, layer.name);
            svg.text("legend-value", (WIDTH, at), Anchor::End, &layer.value);
            at += LINE;
        };
        match &self.content {
            Content::Stack { layers, .. } => layers.iter().rev().for_each(|layer| entry(svg, layer, true)),
            Content::Lines { lines } if lines.len() > 1 => {
                lines.iter().for_each(|(layer, _)| entry(svg, layer, false));
            }
            Content::Lines { .. } => {}
        }
        if let Some((level, name)) = self.limit {
            let value = words::short(level);
            entry(svg, &Layer { name, class: "limit", value, hatched: false }, false);
        }
    }

    /// Columns that tell their values when pointed at.
    fn tips(&self, svg: &mut Svg, x: &Scale, (top, foot): (f64, f64)) {
        let mut tell = |from: f64, to: f64, values: Vec<String>| {
            let (left, right) = (x.place(from), x.place(to));
            let text = format!("{}–{} s\n{}", words::ratio(from), words::ratio(to), values.join("\n"));
            svg.rect("hit", (left, top), (right - left, foot - top), &text);
        };
        match &self.content {
            Content::Stack { layers, steps } => {
                for part in steps.chunks(steps.len().div_ceil(TIPS).max(1)) {
                    let mean = |k: usize| part.iter().map(|s| s.2[k]).sum::<f64>() / part.len() as f64;
                    let named = (0..layers.len()).rev().map(|k| (layers[k].name, mean(k)));
                    let shown = named.filter(|(_, value)| *value > 0.0);
                    let values = shown.map(|(name, value)| format!("{name} {}", words::short_fine(value)));
                    tell(part[0].0, part[part.len() - 1].1, values.collect());
                }
            }
            Content::Lines { lines } => {
                let Some((_, first)) = lines.first() else { return };
                for part in first.chunks(first.len().div_ceil(TIPS).max(1)) {
                    let (from, to) = (part[0].0, part[part.len() - 1].1);
                    let value = |steps: &[Point]| {
                        let inside: Vec<f64> =
                            steps.iter().filter(|s| s.0 < to && s.1 > from).map(|s| s.2).collect();
                        inside.iter().sum::<f64>() / inside.len().max(1) as f64
                    };
                    let one = |(layer, steps): &(Layer<'_>, Vec<Point>)| {
                        format!("{} {}", layer.name, words::short_fine(value(steps)))
                    };
                    tell(from, to, lines.iter().map(one).collect());
                }
            }
        }
    }
}

/// Areas with a thin line of paper between them, and their names where they are high enough.
fn stack(svg: &mut Svg, (x, y): (&Scale, &Scale), layers: &[Layer<'_>], steps: &[Step]) {
    if layers.iter().any(|layer| layer.hatched) {
        svg.hatching();
    }
    for run in runs(steps) {
        let mut below: Vec<f64> = vec![0.0; run.len()];
        for (index, layer) in layers.iter().enumerate() {
            let above: Vec<f64> = below.iter().zip(run).map(|(sum, step)| sum + step.2[index]).collect();
            let mut outline = edge(run, &above, x, y);
            let top = outline.clone();
            outline.extend(edge(run, &below, x, y).into_iter().rev());
            svg.area(layer.class, &outline);
            if layer.hatched {
                svg.area("hatch", &outline);
            }
            svg.path("seam", &top);
            below = above;
        }
    }
    for (index, layer) in layers.iter().enumerate() {
        if let Some((px, py)) = place_of_name(steps, index, x, y, layer.name.chars().count() as f64 * 6.4) {
            svg.text("inside", (px, py + 4.0), Anchor::Middle, layer.name);
        }
    }
}

/// The upper edge of a layer, through the middle of each step; the ends are drawn out to the ends of the run.
fn edge(run: &[Step], level: &[f64], x: &Scale, y: &Scale) -> Vec<(f64, f64)> {
    let mut points = Vec::with_capacity(run.len() + 2);
    let (Some(first), Some(last)) = (run.first(), run.last()) else { return points };
    points.push((x.place(first.0), y.place(level[0])));
    points.extend(run.iter().zip(level).map(|(s, v)| (x.place((s.0 + s.1) / 2.0), y.place(*v))));
    points.push((x.place(last.1), y.place(level[level.len() - 1])));
    points
}

/// The middle of the place where a layer is highest over the width of its name.
fn place_of_name(steps: &[Step], layer: usize, x: &Scale, y: &Scale, width: f64) -> Option<(f64, f64)> {
    let room = |from: usize| -> Option<(f64, f64, f64)> {
        let left = x.place(steps[from].0);
        let part = steps[from..].iter().take_while(|s| x.place(s.0) < left + width);
        let (mut floor, mut roof, mut end) = (f64::INFINITY, f64::NEG_INFINITY, left);
        for step in part {
            if x.place(step.0) > end + 2.0 {
                return None;
            }
            let below: f64 = step.2[..layer].iter().sum();
            floor = floor.min(y.place(below));
            roof = roof.max(y.place(below + step.2[layer]));
            end = x.place(step.1);
        }
        (end >= left + width).then_some((floor - roof, left + width / 2.0, (floor + roof) / 2.0))
    };
    let best = (0..steps.len()).filter_map(room).max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= NAME_HEIGHT).then_some((best.1, best.2))
}

fn line(svg: &mut Svg, (x, y): (&Scale, &Scale), layer: &Layer<'_>, steps: &[Point], filled: bool) {
    for run in runs(steps) {
        let points: Vec<(f64, f64)> = run
            .iter()
            .flat_map(|s| [(x.place(s.0), y.place_inside(s.2)), (x.place(s.1), y.place_inside(s.2))])
            .collect();
        if let (true, Some(first), Some(last)) = (filled, points.first(), points.last()) {
            let foot = y.place(0.0);
            let mut area = points.clone();
            area.extend([(last.0, foot), (first.0, foot)]);
            svg.area("fill", &area);
        }
        svg.path(layer.class, &points);
    }
}

/// Something with a beginning and an end.
trait Timed {
    fn from(&self) -> f64;
    fn to(&self) -> f64;
}

impl<V> Timed for (f64, f64, V) {
    fn from(&self) -> f64 {
        self.0
    }

    fn to(&self) -> f64 {
        self.1
    }
}

/// Stretches without holes.
fn runs<T: Timed>(steps: &[T]) -> Vec<&[T]> {
    let mut all = Vec::new();
    let mut begin = 0;
    for index in 1..=steps.len() {
        let hole = index == steps.len() || {
            let (before, after) = (&steps[index - 1], &steps[index]);
            after.from() - before.to() > 0.6 * (after.to() - after.from()).max(0.05)
        };
        if hole && begin < index {
            all.push(&steps[begin..index]);
            begin = index;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_end_a_run() {
        let steps = [(0.0, 1.0, 1.0), (1.0, 2.0, 1.0), (4.0, 5.0, 1.0)];
        let lengths: Vec<usize> = runs(&steps).iter().map(|run| run.len()).collect();
        assert_eq!(lengths, [2, 1]);
        assert!(runs::<Point>(&[]).is_empty());
    }

    #[test]
    fn the_legend_has_the_order_of_the_drawing() {
        let layer = |name, class| Layer { name, class, value: String::new(), hatched: false };
        let steps: Vec<Step> = (0..4).map(|i| (f64::from(i), f64::from(i + 1), vec![1.0, 2.0])).collect();
        let strip = Strip {
            title: "t",
            unit: "",
            height: 100.0,
            content: Content::Stack { layers: vec![layer("low", "a"), layer("high", "b")], steps: &steps },
            limit: Some((2.0, "CPUs")),
            marks: Vec::new(),
        };
        let strips =
            Strips { name: "n", seconds: 4.0, rows: &[], stretches: Vec::new(), strips: vec![strip] };
        let drawn = strips.draw();
        let place = |text: &str| drawn.rfind(text).unwrap_or_else(|| panic!("{text} in {drawn}"));
        assert!(place(">high</text>") < place(">low</text>") && place(">low</text>") < place(">CPUs</text>"));
        assert!(drawn.contains("class=\"limit\"") && drawn.contains("high 2"));
    }
}
