//! A small SVG pen. Colours come from CSS classes, so one drawing serves light, dark and paper.

use std::fmt::Write;

/// Where a text is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Text begins at x.
    Start,
    /// Text is centred on x.
    Middle,
    /// Text ends at x.
    End,
}

/// A drawing in the making. Coordinates are CSS pixels of the drawing's own size.
pub struct Svg {
    body: String,
    width: f64,
    height: f64,
}

/// Text made safe for HTML and SVG, in elements and in attributes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// One decimal is a tenth of a pixel: enough, and keeps the page small. Not-a-number becomes 0, which is visible.
fn n(value: f64) -> String {
    let text = format!("{:.1}", if value.is_finite() { value } else { 0.0 });
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

impl Svg {
    /// An empty drawing.
    pub fn new(width: f64, height: f64) -> Self {
        Self { body: String::new(), width, height }
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let _ = write!(
            self.body,
            r#"<line class="{class}" x1="{}" y1="{}" x2="{}" y2="{}"/>"#,
            n(from.0),
            n(from.1),
            n(to.0),
            n(to.1)
        );
    }

    /// A line through `points`. Fewer than two points draw nothing.
    pub fn path(&mut self, class: &str, points: &[(f64, f64)]) {
        if points.len() >= 2 {
            let _ = write!(self.body, r#"<path class="{class}" d="{}"/>"#, outline(points));
        }
    }

    /// A closed shape through `points`.
    pub fn area(&mut self, class: &str, points: &[(f64, f64)]) {
        if points.len() >= 3 {
            let _ = write!(self.body, r#"<path class="{class}" d="{}Z"/>"#, outline(points));
        }
    }

    /// What areas and rectangles of the class `hatch` are filled with: slanting lines that let the colour beneath through.
    pub fn hatching(&mut self) {
        self.body.push_str(concat!(
            r#"<defs><pattern id="hatching" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">"#,
            r#"<line class="hatch-line" x1="0" y1="0" x2="0" y2="7"/></pattern></defs>"#
        ));
    }

    /// A rectangle that tells `tip` when pointed at; a negative width or height draws nothing.
    pub fn rect(&mut self, class: &str, at: (f64, f64), (width, height): (f64, f64), tip: &str) {
        if width > 0.0 && height > 0.0 {
            let _ = write!(
                self.body,
                r#"<rect class="{class}" x="{}" y="{}" width="{}" height="{}">{}</rect>"#,
                n(at.0),
                n(at.1),
                n(width),
                n(height),
                title(tip)
            );
        }
    }

    /// A dot that tells `tip` when pointed at.
    pub fn dot(&mut self, class: &str, at: (f64, f64), radius: f64, tip: &str) {
        let _ = write!(
            self.body,
            r#"<circle class="{class}" cx="{}" cy="{}" r="{}">{}</circle>"#,
            n(at.0),
            n(at.1),
            n(radius),
            title(tip)
        );
    }

    /// A shape by its corner points, relative to `at`; tells `tip` when pointed at.
    pub fn mark(&mut self, class: &str, at: (f64, f64), corners: &[(f64, f64)], tip: &str) {
        let points: Vec<(f64, f64)> = corners.iter().map(|c| (at.0 + c.0, at.1 + c.1)).collect();
        let _ = write!(self.body, r#"<path class="{class}" d="{}Z">{}</path>"#, outline(&points), title(tip));
    }

    /// A text; `text` is escaped here.
    pub fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = write!(
            self.body,
            r#"<text class="{class}" x="{}" y="{}" text-anchor="{anchor}">{}</text>"#,
            n(at.0),
            n(at.1),
            escape(text)
        );
    }

    /// The finished drawing with what a screen reader says: a title and a description.
    pub fn finish(self, name: &str, description: &str) -> String {
        format!(
            concat!(
                r#"<svg role="img" viewBox="0 0 {w} {h}" width="{w}" height="{h}" aria-label="{name}">"#,
                "<title>{name}</title><desc>{description}</desc>{body}</svg>"
            ),
            w = n(self.width),
            h = n(self.height),
            name = escape(name),
            description = escape(description),
            body = self.body
        )
    }

    /// The finished drawing as decoration of a table row whose cells already say everything.
    pub fn finish_hidden(self) -> String {
        format!(
            r#"<svg aria-hidden="true" viewBox="0 0 {w} {h}" width="{w}" height="{h}">{body}</svg>"#,
            w = n(self.width),
            h = n(self.height),
            body = self.body
        )
    }
}

fn title(tip: &str) -> String {
    if tip.is_empty() { String::new() } else { format!("<title>{}</title>", escape(tip)) }
}

fn outline(points: &[(f64, f64)]) -> String {
    let mut d = String::with_capacity(points.len() * 10);
    for (index, (x, y)) in points.iter().enumerate() {
        let _ = write!(d, "{}{} {}", if index == 0 { 'M' } else { 'L' }, n(*x), n(*y));
    }
    d
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_and_escapes() {
        let mut svg = Svg::new(100.0, 20.0);
        svg.path("c", &[(0.0, 1.0), (2.25, f64::NAN)]);
        svg.text("t", (1.0, 2.0), Anchor::End, "<a & b>");
        svg.rect("r", (0.0, 0.0), (-1.0, 5.0), "");
        let text = svg.finish("x\"y", "what");
        assert_eq!(
            text,
            concat!(
                r#"<svg role="img" viewBox="0 0 100 20" width="100" height="20" aria-label="x&quot;y">"#,
                r#"<title>x&quot;y</title><desc>what</desc><path class="c" d="M0 1L2.2 0"/>"#,
                r#"<text class="t" x="1" y="2" text-anchor="end">&lt;a &amp; b&gt;</text></svg>"#
            )
        );
    }
}
