//! Plots in characters: an interval on one line, a curve over several.

use super::canvas::Canvas;
use super::style::{left, right, width};
use crate::chart::Scale;

/// One interval with its mark, on a line of `columns` characters; `one` is where the baseline runs.
pub fn interval(scale: &Scale, columns: usize, low: f64, value: f64, high: f64, mark: char) -> String {
    let column = |v: f64| (scale.place_inside(v).round() as usize).min(columns - 1);
    let mut cells = vec![' '; columns];
    cells[column(1.0)] = '│';
    let (from, to) = (column(low), column(high));
    if from < to {
        for cell in &mut cells[from..=to] {
            *cell = '─';
        }
        cells[from] = if scale.contains(low) { '├' } else { '‹' };
        cells[to] = if scale.contains(high) { '┤' } else { '›' };
    }
    if from < column(1.0) && column(1.0) < to {
        cells[column(1.0)] = '┼';
    }
    cells[column(value)] = mark;
    cells.into_iter().collect()
}

/// Labels of `scale` above a line of intervals.
pub fn ticks(scale: &Scale, columns: usize, label: impl Fn(f64) -> String) -> String {
    let places = scale
        .ticks((columns / 7).max(2))
        .into_iter()
        .map(|v| (scale.place_inside(v).round() as usize, label(v)));
    labels(columns, places)
}

/// Texts centred on their columns; what would touch its neighbour is left out.
fn labels(columns: usize, places: impl Iterator<Item = (usize, String)>) -> String {
    let mut cells = vec![' '; columns];
    let mut free = 0;
    for (column, text) in places {
        let long = width(&text);
        if long > columns {
            continue;
        }
        let from = column.saturating_sub(long / 2).min(columns - long);
        if from < free {
            continue;
        }
        for (cell, letter) in cells[from..].iter_mut().zip(text.chars()) {
            *cell = letter;
        }
        free = from + long + 1;
    }
    cells.into_iter().collect()
}

/// A mark in a plot.
pub struct Mark {
    /// Where.
    pub at: (f64, f64),
    /// How it looks.
    pub sign: char,
}

/// A plot of several lines of text.
pub struct Plot<'a> {
    /// Lines as points in the units of the axes; each is drawn through its points.
    pub lines: Vec<Vec<(f64, f64)>>,
    /// Lines of single dots.
    pub dotted: Vec<Vec<(f64, f64)>>,
    /// Vertical guides.
    pub guides: Vec<f64>,
    /// Horizontal guides.
    pub levels: Vec<f64>,
    /// Marks over the lines.
    pub marks: Vec<Mark>,
    /// Domain of x, and how it is scaled: `(from, to)` to a scale over dots.
    pub x: &'a dyn Fn((f64, f64)) -> Scale,
    /// The same for y; its range runs from bottom to top.
    pub y: &'a dyn Fn((f64, f64)) -> Scale,
    /// Labels of x: value and text.
    pub x_labels: Vec<(f64, String)>,
    /// Text of a value of y.
    pub y_label: &'a dyn Fn(f64) -> String,
}

impl Plot<'_> {
    /// The plot in `columns` × `rows` characters, axes included, each line ended.
    pub fn draw(&self, columns: usize, rows: usize) -> String {
        const MARGIN: usize = 8;
        let inner = columns.saturating_sub(MARGIN + 2).max(10);
        let mut canvas = Canvas::new(inner, rows);
        let (right_end, bottom) = ((canvas.width() - 1) as f64, (canvas.height() - 1) as f64);
        let (x, y) = ((self.x)((0.0, right_end)), (self.y)((bottom, 0.0)));
        for level in &self.levels {
            canvas.dotted_row(y.place_inside(*level));
        }
        for guide in &self.guides {
            canvas.dotted_column(x.place_inside(*guide));
        }
        let place = |p: &(f64, f64)| (x.place_inside(p.0), y.place_inside(p.1));
        for line in &self.lines {
            for pair in line.windows(2) {
                canvas.line(place(&pair[0]), place(&pair[1]));
            }
        }
        for point in self.dotted.iter().flatten() {
            let (px, py) = place(point);
            canvas.mark(px, py, '·');
        }
        for mark in &self.marks {
            let (px, py) = place(&mark.at);
            canvas.mark(px, py, mark.sign);
        }
        let mut left_labels = vec![String::new(); rows];
        for tick in y.ticks(rows / 2) {
            let row = (y.place_inside(tick).round() as usize / 4).min(rows - 1);
            left_labels[row] = (self.y_label)(tick);
        }
        let mut out = String::new();
        for (label, row) in left_labels.iter().zip(canvas.rows()) {
            let tick = if label.is_empty() { '│' } else { '┤' };
            out.push_str(format!("{} {tick}{row}", right(label, MARGIN)).trim_end());
            out.push('\n');
        }
        out.push_str(&format!("{} └{}\n", " ".repeat(MARGIN), "─".repeat(inner)));
        let places =
            self.x_labels.iter().map(|(v, text)| (x.place_inside(*v).round() as usize / 2, text.clone()));
        out.push_str(format!("{}  {}", " ".repeat(MARGIN), labels(inner, places)).trim_end());
        out.push('\n');
        out
    }

    /// A further row of texts under the x axis, with a name in the margin.
    pub fn row_beneath(&self, columns: usize, name: &str, texts: &[(f64, String)]) -> String {
        const MARGIN: usize = 8;
        let inner = columns.saturating_sub(MARGIN + 2).max(10);
        let x = (self.x)((0.0, (inner * 2 - 1) as f64));
        let places = texts.iter().map(|(v, text)| (x.place_inside(*v).round() as usize / 2, text.clone()));
        format!("{}\n", format!("{}  {}", left(name, MARGIN), labels(inner, places)).trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_keep_their_place() {
        let scale = Scale::log((0.5, 2.0), (0.0, 20.0));
        assert_eq!(interval(&scale, 21, 1.2, 1.4, 1.6, '▲'), "          │  ├─▲─┤   ");
        assert_eq!(interval(&scale, 21, 0.1, 1.4, 9.0, '?'), "‹─────────┼────?────›");
        assert_eq!(interval(&scale, 21, 1.0, 1.0, 1.0, '='), "          =          ");
        assert_eq!(ticks(&scale, 21, |v| v.to_string()), "0.5       1         2");
    }
}
