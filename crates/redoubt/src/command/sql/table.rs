//! Results as tables that people can read.
//!
//! The first rows wait until it is known how wide each column is; the others follow in the same widths.

use sql::{Cell, Sink};
use std::io::Write;
use std::ops::ControlFlow;

/// Rows that wait for the widths.
const ROWS_TO_MEASURE: usize = 200;
/// Between two columns.
const GAP: &str = "  ";

/// How a result is shown.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Names of the columns above the rows.
    pub heading: bool,
    /// Longest line, in characters; none when it does not go to a terminal.
    pub width: Option<usize>,
}

/// Shows a result.
pub struct Table<'a> {
    out: &'a mut dyn Write,
    style: Style,
    names: Vec<String>,
    /// Characters of each column; empty as long as rows wait.
    widths: Vec<usize>,
    numeric: Vec<bool>,
    waiting: Vec<Vec<String>>,
    /// Whoever reads has gone.
    broken: bool,
}

impl<'a> Table<'a> {
    /// Shows it to `out`.
    pub fn new(out: &'a mut dyn Write, style: Style) -> Self {
        Self {
            out,
            style,
            names: Vec::new(),
            widths: Vec::new(),
            numeric: Vec::new(),
            waiting: Vec::new(),
            broken: false,
        }
    }

    /// Shows what still waits.
    pub fn end(mut self) {
        if self.widths.is_empty() && !self.waiting.is_empty() {
            self.begin();
        }
        let _ = self.out.flush();
    }

    fn begin(&mut self) {
        let count = |text: &String| text.chars().count();
        let heading = self.style.heading;
        self.widths = self.names.iter().map(|name| if heading { count(name) } else { 0 }).collect();
        for row in &self.waiting {
            for (width, cell) in self.widths.iter_mut().zip(row) {
                *width = count(cell).max(*width);
            }
        }
        if let Some(most) = self.style.width {
            shrink(&mut self.widths, most);
        }
        if heading {
            let names = std::mem::take(&mut self.names);
            self.line(&names);
            let lines: Vec<String> = self.widths.iter().map(|&width| "-".repeat(width)).collect();
            self.line(&lines);
        }
        for row in std::mem::take(&mut self.waiting) {
            self.line(&row);
        }
    }

    fn line(&mut self, cells: &[String]) {
        let mut line = String::new();
        for (at, (cell, &width)) in cells.iter().zip(&self.widths).enumerate() {
            if at > 0 {
                line.push_str(GAP);
            }
            if self.numeric[at] {
                line += &format!("{cell:>width$}");
            } else if self.style.width.is_some() {
                line += &format!("{:<width$}", cut(cell, width));
            } else {
                line += &format!("{cell:<width$}");
            }
        }
        self.broken |= writeln!(self.out, "{}", line.trim_end()).is_err();
    }
}

impl Sink for Table<'_> {
    fn columns(&mut self, names: &[String]) {
        self.names = names.to_vec();
        self.numeric = vec![true; names.len()];
    }

    fn row(&mut self, row: &[Cell<'_>]) -> ControlFlow<()> {
        let cells: Vec<String> = row.iter().map(text).collect();
        if self.widths.is_empty() {
            for (numeric, cell) in self.numeric.iter_mut().zip(row) {
                *numeric &= matches!(cell, Cell::Null | Cell::Integer(_) | Cell::Real(_));
            }
            self.waiting.push(cells);
            if self.waiting.len() == ROWS_TO_MEASURE {
                self.begin();
            }
        } else {
            self.line(&cells);
        }
        if self.broken { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// A value as people read it. Nothing is nothing; line ends would break the table.
fn text(cell: &Cell<'_>) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::Integer(number) => number.to_string(),
        Cell::Real(number) => real(*number),
        Cell::Text(text) => text.trim_end_matches('\n').replace(|c: char| c.is_control(), " "),
        Cell::Blob(bytes) => bytes.iter().map(|byte| format!("{byte:02X}")).collect(),
    }
}

/// Fifteen digits: as many as every number keeps, so 0.1 + 0.2 is 0.3.
fn real(number: f64) -> String {
    let short = format!("{number:.14e}").parse::<f64>().unwrap_or(number);
    // Beyond this, digits would be noughts.
    let plain = short == 0.0 || (1e-7..1e18).contains(&short.abs());
    if plain { short.to_string() } else { format!("{short:e}") }
}

/// The widest columns give way until the line fits, but none below what tells values apart.
fn shrink(widths: &mut [usize], most: usize) {
    const LEAST: usize = 12;
    loop {
        let whole: usize = widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1);
        let Some(widest) = widths.iter_mut().max() else { return };
        if whole <= most || *widest <= LEAST {
            return;
        }
        *widest = (*widest).saturating_sub(whole - most).max(LEAST).max(*widest / 2);
    }
}

/// At most `width` characters; a cut is shown.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(names: &[&str], rows: &[&[Cell<'_>]], style: Style, expected: &str) {
        let mut out = Vec::new();
        let mut table = Table::new(&mut out, style);
        table.columns(&names.iter().map(|&name| name.into()).collect::<Vec<_>>());
        for row in rows {
            assert_eq!(table.row(row), ControlFlow::Continue(()));
        }
        table.end();
        assert_eq!(String::from_utf8(out).expect("text"), expected);
    }

    const PLAIN: Style = Style { heading: true, width: None };

    #[test]
    fn numbers_are_shown_with_the_digits_that_they_keep() {
        let numbers = [0.1 + 0.2, 10.0 / 3.0, 2.0, -0.5, 0.0, 1e300, 1e-9, f64::INFINITY].map(real);
        assert_eq!(numbers, ["0.3", "3.33333333333333", "2", "-0.5", "0", "1e300", "1e-9", "inf"]);
    }

    #[test]
    fn numbers_are_right_and_texts_are_left() {
        check(
            &["NAME", "N"],
            &[
                &[Cell::Text("süß"), Cell::Integer(7)],
                &[Cell::Text("longer"), Cell::Null],
                &[Cell::Null, Cell::Real(1.5)],
            ],
            PLAIN,
            "NAME      N\n------  ---\nsüß       7\nlonger\n        1.5\n",
        );
    }

    #[test]
    fn what_does_not_fit_is_cut_and_line_ends_stay_out() {
        let long = "a\nb".repeat(20);
        let style = Style { heading: false, width: Some(30) };
        check(
            &["A", "B"],
            &[&[Cell::Text(&long), Cell::Blob(&[1, 255])]],
            style,
            "a ba ba ba ba ba ba ba …  01FF\n",
        );
    }

    #[test]
    fn no_rows_show_nothing() {
        check(&["A"], &[], PLAIN, "");
    }

    #[test]
    fn later_rows_keep_the_widths() {
        let mut out = Vec::new();
        let mut table = Table::new(&mut out, Style { heading: false, width: None });
        table.columns(&["A".into()]);
        for _ in 0..ROWS_TO_MEASURE {
            assert!(table.row(&[Cell::Integer(1)]).is_continue());
        }
        assert!(table.row(&[Cell::Integer(12)]).is_continue());
        table.end();
        assert!(String::from_utf8(out).expect("text").ends_with("1\n1\n12\n"));
    }
}
