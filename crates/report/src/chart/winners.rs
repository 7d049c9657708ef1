//! The map of who wins where: hit ratio along, read share up, each field coloured and lettered by its winner.

use super::{Anchor, Svg};
use crate::words;

/// A field of the map.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    /// Index of the winner in the legend.
    One(usize),
    /// Some do not differ.
    Same,
    /// Not decided.
    Unknown,
    /// Nothing to compare.
    Nothing,
}

/// What is drawn.
pub struct WinnersChart<'a> {
    /// Hit ratios, ascending.
    pub hits: &'a [f64],
    /// Read shares, ascending.
    pub reads: &'a [f64],
    /// By read share and hit ratio.
    pub fields: Vec<Vec<Field>>,
    /// Names of the winners, in the order of their letters.
    pub names: Vec<&'a str>,
    /// Hit ratio and read share of the user's database.
    pub you: (f64, f64),
    /// What a screen reader says.
    pub description: String,
}

const WIDTH: f64 = 960.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 210.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 54.0;
const ROW: f64 = 24.0;
/// Colours of winners; beyond them letters alone tell.
const COLOURS: usize = 6;

/// Letter of a winner.
fn letter(index: usize) -> char {
    char::from(b'A' + (index % 26) as u8)
}

impl WinnersChart<'_> {
    /// The finished drawing.
    pub fn draw(&self) -> String {
        let foot = TOP + ROW * self.reads.len() as f64;
        let mut svg = Svg::new(WIDTH, foot + BOTTOM);
        let wide = (WIDTH - LEFT - RIGHT) / self.hits.len().max(1) as f64;
        let last = self.reads.len().saturating_sub(1);
        for (row, fields) in self.fields.iter().enumerate() {
            let y = TOP + ROW * (last - row) as f64;
            for (column, field) in fields.iter().enumerate() {
                let at = (LEFT + wide * column as f64, y);
                let (class, text, who) = self.looks(field);
                let tip = format!(
                    "hit ratio {}, reads {}: {who}",
                    words::percent(self.hits[column]),
                    words::percent(self.reads[row])
                );
                svg.rect(&class, at, (wide - 1.0, ROW - 1.0), &tip);
                svg.text("map-letter", (at.0 + wide / 2.0, at.1 + ROW / 2.0 + 4.0), Anchor::Middle, &text);
            }
            svg.text(
                "tick",
                (LEFT - 8.0, y + ROW / 2.0 + 4.0),
                Anchor::End,
                &words::percent(self.reads[row]),
            );
        }
        let every = (self.hits.len() / 9).max(1);
        for (column, hit) in self.hits.iter().enumerate().filter(|(i, _)| i % every == 0) {
            let x = LEFT + wide * (column as f64 + 0.5);
            svg.text("tick", (x, foot + 16.0), Anchor::Middle, &words::percent(*hit));
        }
        svg.text("axis", (LEFT, TOP - 9.0), Anchor::Start, "reads, share of the work");
        let axis = "buffer cache hit ratio (equal steps: equal factors of the misses)";
        svg.text("axis", (LEFT, foot + 36.0), Anchor::Start, axis);
        self.you(&mut svg, wide, foot);
        self.legend(&mut svg);
        svg.finish("Who wins where: hit ratio and read share", &self.description)
    }

    fn looks(&self, field: &Field) -> (String, String, String) {
        match field {
            Field::One(i) => (
                format!("map map-{}", i % COLOURS),
                letter(*i).to_string(),
                format!("{} wins", self.names.get(*i).unwrap_or(&"?")),
            ),
            Field::Same => ("map map-same".into(), "=".into(), "no difference".into()),
            Field::Unknown => ("map map-unknown".into(), "?".into(), "not decided".into()),
            Field::Nothing => ("map map-unknown".into(), String::new(), "not measured".into()),
        }
    }

    /// Where the user's database is: a ring over the field.
    fn you(&self, svg: &mut Svg, wide: f64, foot: f64) {
        let nearest = |all: &[f64], value: f64, scale: &dyn Fn(f64) -> f64| {
            let distance = |i: &usize| (scale(all[*i]) - scale(value)).abs();
            (0..all.len()).min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or(0)
        };
        let column = nearest(self.hits, self.you.0.min(0.9999), &|h| (1.0 - h).max(1e-6).ln());
        let row = nearest(self.reads, self.you.1, &|r| r);
        let x = LEFT + wide * (column as f64 + 0.5);
        let y = foot - ROW * (row as f64 + 0.5);
        svg.dot("map-you", (x - 0.5, y - 0.5), ROW / 2.0, "your database");
    }

    fn legend(&self, svg: &mut Svg) {
        let x = WIDTH - RIGHT + 22.0;
        let mut y = TOP + 4.0;
        let seen = |field: &Field| self.fields.iter().flatten().any(|f| f == field);
        let shown = (0..self.names.len()).map(Field::One).chain([Field::Same, Field::Unknown]).filter(seen);
        for field in shown {
            let (class, text, who) = self.looks(&field);
            svg.rect(&class, (x, y), (22.0, 16.0), "");
            svg.text("map-letter", (x + 11.0, y + 12.0), Anchor::Middle, &text);
            let name: String = who.strip_suffix(" wins").unwrap_or(&who).chars().take(26).collect();
            svg.text("name", (x + 30.0, y + 12.5), Anchor::Start, &name);
            y += 22.0;
        }
        svg.dot("map-you", (x + 11.0, y + 9.0), 8.0, "");
        svg.text("name", (x + 30.0, y + 13.0), Anchor::Start, "your database");
    }
}
