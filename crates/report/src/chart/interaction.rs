//! Two factors at once: a line for each level of the one over the levels of the other. Parallel lines: no interaction.

use super::{Anchor, Scale, Svg, extent};
use crate::words;

/// Value, low and high at each level of the factor along the axis; none where nothing was measured.
pub type Levels = Vec<Option<(f64, f64, f64)>>;

/// What is drawn.
pub struct InteractionChart<'a> {
    /// Name of the factor along the axis.
    pub factor: &'a str,
    /// Its levels.
    pub levels: &'a [String],
    /// Name of the other factor.
    pub other: &'a str,
    /// Its levels, each with value, low and high at each level of the first.
    pub lines: Vec<(&'a str, Levels)>,
    /// Unit of the values.
    pub unit: &'a str,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 270.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 170.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 44.0;
/// Styles of lines, told apart by colour, dashes and the shape of their points.
const STYLES: usize = 6;

impl InteractionChart<'_> {
    /// The finished drawing.
    pub fn draw(&self) -> String {
        let mut svg = Svg::new(WIDTH, HEIGHT);
        let ends = self.lines.iter().flat_map(|(_, points)| points.iter().flatten().flat_map(|p| [p.1, p.2]));
        let (_, high) = extent(ends).unwrap_or((0.0, 1.0));
        let y = Scale::linear((0.0, high * 1.05), (HEIGHT - BOTTOM, TOP));
        let step = (WIDTH - LEFT - RIGHT) / self.levels.len().max(1) as f64;
        let x = |index: usize| LEFT + step * (index as f64 + 0.5);
        for tick in y.ticks(5) {
            svg.line("guide", (LEFT, y.place(tick)), (WIDTH - RIGHT, y.place(tick)));
            svg.text("tick", (LEFT - 8.0, y.place(tick) + 4.0), Anchor::End, &words::short(tick));
        }
        svg.text("axis", (LEFT, TOP - 10.0), Anchor::Start, self.unit);
        let room = (step / 6.4) as usize;
        for (index, level) in self.levels.iter().enumerate() {
            let text: String = match level.chars().count() > room.max(4) {
                true => level.chars().take(room.max(4) - 1).chain(['…']).collect(),
                false => level.clone(),
            };
            svg.text("tick", (x(index), HEIGHT - BOTTOM + 17.0), Anchor::Middle, &text);
        }
        svg.text("axis", (LEFT, HEIGHT - 8.0), Anchor::Start, self.factor);
        for (style, (name, points)) in self.lines.iter().enumerate() {
            self.line(&mut svg, style % STYLES, name, points, &x, &y);
        }
        self.names(&mut svg, &x, &y);
        let name = format!("{} by {} and {}", self.unit, self.factor, self.other);
        svg.finish(&name, &self.description())
    }

    fn line(
        &self,
        svg: &mut Svg,
        style: usize,
        name: &str,
        points: &[Option<(f64, f64, f64)>],
        x: &dyn Fn(usize) -> f64,
        y: &Scale,
    ) {
        // Intervals of several lines at the same level stand beside each other.
        let aside = |line: usize| (line as f64 - (self.lines.len() as f64 - 1.0) / 2.0) * 5.0;
        let at = |index: usize| x(index) + aside(style);
        let known: Vec<(f64, f64)> =
            points.iter().enumerate().filter_map(|(i, p)| Some((at(i), y.place((*p)?.0)))).collect();
        svg.path(&format!("inter inter-{style}"), &known);
        for (index, point) in points.iter().enumerate() {
            let Some((value, low, high)) = *point else { continue };
            let place = (at(index), y.place(value));
            svg.line(
                &format!("inter-whisker inter-{style}"),
                (place.0, y.place(low)),
                (place.0, y.place(high)),
            );
            let tip = format!("{name}, {}: {} {}", self.levels[index], words::amount(value), self.unit);
            let class = format!("inter-dot inter-{style}");
            match style % 4 {
                0 => svg.dot(&class, place, 4.2, &tip),
                1 => svg.mark(&class, place, &[(-4.0, -4.0), (4.0, -4.0), (4.0, 4.0), (-4.0, 4.0)], &tip),
                2 => svg.mark(&class, place, &[(0.0, -5.0), (5.0, 4.0), (-5.0, 4.0)], &tip),
                _ => svg.mark(&class, place, &[(0.0, -5.2), (5.2, 0.0), (0.0, 5.2), (-5.2, 0.0)], &tip),
            }
        }
    }

    /// Names at the right end of the lines, moved apart where they would touch.
    fn names(&self, svg: &mut Svg, x: &dyn Fn(usize) -> f64, y: &Scale) {
        let last = x(self.levels.len().saturating_sub(1)) + 24.0;
        let end =
            |points: &[Option<(f64, f64, f64)>]| points.iter().rev().flatten().next().map(|p| y.place(p.0));
        let mut ends: Vec<(f64, usize, &str)> = self
            .lines
            .iter()
            .enumerate()
            .filter_map(|(i, (name, points))| Some((end(points)?, i, *name)))
            .collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut free = TOP;
        for (place, style, name) in ends {
            let place = (place + 4.0).max(free).min(HEIGHT - 4.0);
            free = place + 15.0;
            svg.text(&format!("name inter-{}", style % STYLES), (last, place), Anchor::Start, name);
        }
    }

    fn description(&self) -> String {
        let line = |(name, points): &(&str, Levels)| {
            let at = |(i, p): (usize, &Option<(f64, f64, f64)>)| {
                Some(format!("{} {}", self.levels[i], words::amount((*p)?.0)))
            };
            let all: Vec<String> = points.iter().enumerate().filter_map(at).collect();
            format!("{} {name}: {}", self.other, all.join(", "))
        };
        self.lines.iter().map(line).collect::<Vec<_>>().join("; ")
    }
}
