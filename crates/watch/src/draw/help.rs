//! What the keys do and what the signs mean, over everything else.

use super::{Pen, Scene, Style, bold};
use ratatui_core::layout::Rect;

const KEYS: [(&str, &str); 12] = [
    ("space", "stop the picture, and go on; what happens is still kept"),
    ("← →", "move the brush: the time that the lists are about"),
    ("shift ← →", "make the brush shorter or longer; a: all that is shown"),
    ("PgUp PgDn", "back in time, and on; Home: the beginning; End: now"),
    ("+ -", "less or more time in the picture: 1 min to 8 h"),
    ("tab", "next list: classes (beside the chart), events, sessions …"),
    ("↑ ↓ enter", "mark a line, and see what lies within it"),
    ("esc", "out again; at the top: back to now"),
    ("b", "background processes, too"),
    ("d", "next device"),
    ("q", "quit"),
    ("any key", "closes this"),
];

const WORDS: [&str; 3] = [
    "active = mean sessions at work; share = of all that is shown.",
    "CPU = no wait that the server tells: mostly a processor.",
    "≈ close to that event, ? concluded from something else.",
];

pub fn draw(scene: &Scene<'_>, area: Rect, pen: &mut Pen<'_>) {
    let cost = format!("{} looks; each took {}.", scene.history.looks(), scene.history.cost());
    let width = area.width.saturating_sub(4).min(78);
    let words = WORDS.iter().map(|text| (*text).to_owned()).chain([cost]);
    let words: Vec<String> =
        words.chain(scene.subject.doubts.iter().cloned()).flat_map(|t| wrapped(&t, width - 4)).collect();
    let height = (KEYS.len() + words.len() + 3).min(usize::from(area.height)) as u16;
    let (x, y) = (area.x + (area.width - width) / 2, area.y + (area.height - height) / 2);
    let area = Rect::new(x, y, width, height);
    pen.blank(area);
    frame(area, pen);
    let inner = width - 4;
    for (n, (key, does)) in KEYS.iter().enumerate() {
        let y = area.y + 1 + n as u16;
        if y + 1 < area.bottom() {
            pen.text(area.x + 2, y, 10, key, bold());
            pen.text(area.x + 13, y, inner.saturating_sub(11), does, Style::new());
        }
    }
    for (n, text) in words.iter().enumerate() {
        let y = area.y + 2 + (KEYS.len() + n) as u16;
        if y + 1 < area.bottom() {
            pen.text(area.x + 2, y, inner, text, Style::new());
        }
    }
}

fn frame(area: Rect, pen: &mut Pen<'_>) {
    let (right, bottom) = (area.right() - 1, area.bottom() - 1);
    for x in area.left()..area.right() {
        pen.cell(x, area.top(), '─', Style::new());
        pen.cell(x, bottom, '─', Style::new());
    }
    for y in area.top()..area.bottom() {
        pen.cell(area.left(), y, '│', Style::new());
        pen.cell(right, y, '│', Style::new());
    }
    for (x, y, sign) in [
        (area.left(), area.top(), '┌'),
        (right, area.top(), '┐'),
        (area.left(), bottom, '└'),
        (right, bottom, '┘'),
    ] {
        pen.cell(x, y, sign, Style::new());
    }
}

/// Lines of at most `width`.
fn wrapped(text: &str, width: u16) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        let fits = lines[last].chars().count() + word.chars().count() < usize::from(width);
        match (lines[last].is_empty(), fits) {
            (true, _) => lines[last] = word.to_owned(),
            (false, true) => lines[last] = format!("{} {word}", lines[last]),
            (false, false) => lines.push(word.to_owned()),
        }
    }
    lines
}
