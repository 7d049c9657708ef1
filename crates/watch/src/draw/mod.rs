//! A board on the cells of a terminal.
//!
//! Start with [`draw`]. [`Plan`] says where what goes at each size; `chart`, `devices`, `lists` and `help` fill their parts. Colours are
//! never the only sign: bands lie in the order of the legend, and without colours each class has a sign of its own.

mod chart;
mod devices;
mod help;
mod lists;
mod plan;

pub use plan::Plan;

use crate::board::{Board, Paint};
use crate::class;
use crate::history::History;
use crate::view::View;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};
use units::Nanos;

/// Whether there are colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// 256 colours.
    Colour,
    /// Signs alone (`NO_COLOR`).
    Plain,
}

/// What times are told in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// Time of day, UTC; zero of the history in seconds since 1970.
    Utc(u64),
    /// Since the beginning.
    Since,
}

impl Times {
    /// What stands behind a range of times.
    fn zone(self) -> &'static str {
        match self {
            Self::Utc(_) => " UTC",
            Self::Since => "",
        }
    }

    /// `12:03:41`, or `3:41` since the beginning.
    pub fn text(self, t: Nanos) -> String {
        match self {
            Self::Utc(zero) => {
                let seconds = (zero + t.0 / 1_000_000_000) % 86_400;
                format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
            }
            Self::Since => {
                let seconds = t.0 / 1_000_000_000;
                match seconds / 3600 {
                    0 => format!("{}:{:02}", seconds / 60, seconds % 60),
                    hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
                }
            }
        }
    }
}

/// What is watched, and how it goes.
#[derive(Clone, Debug)]
pub struct Subject {
    /// What: the server's address and version, or the record's name.
    pub title: String,
    /// `live`, `finished`, `server gone` ….
    pub state: String,
    /// Whether the state is a trouble.
    pub trouble: bool,
    /// CPUs of the server's machine; none: not known.
    pub cpus: Option<f32>,
    /// Why there are no devices; empty: there are.
    pub no_devices: String,
    /// Time that the newest look may lie back before the present is a hole.
    pub times: Times,
    /// What the reader should know of these figures; shown with the help.
    pub doubts: Vec<String>,
}

/// Everything on the screen.
pub struct Scene<'a> {
    /// What is watched.
    pub subject: &'a Subject,
    /// What was seen.
    pub history: &'a History,
    /// What the user chose.
    pub view: &'a View,
    /// What follows from both; made for [`Plan::columns`].
    pub board: &'a Board,
    /// Colours or not.
    pub theme: Theme,
}

/// Smallest screen.
pub const LEAST: (u16, u16) = (60, 16);

/// Draws all of it.
pub fn draw(scene: &Scene<'_>, buffer: &mut Buffer) {
    let area = buffer.area;
    // A console without a size says 0 × 0.
    if area.is_empty() {
        return;
    }
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let text = format!("redoubt watch needs {} × {} characters", LEAST.0, LEAST.1);
        Pen { buffer, theme: scene.theme }.text(area.x, area.y, area.width, &text, Style::new());
        return;
    }
    let plan = Plan::of(area, scene.board.devices.len());
    let mut pen = Pen { buffer, theme: scene.theme };
    heading(scene, &plan, &mut pen);
    chart::draw(scene, &plan, &mut pen);
    devices::draw(scene, &plan, &mut pen);
    lists::draw(scene, &plan, &mut pen);
    if scene.view.help() {
        help::draw(scene, area, &mut pen);
    }
}

fn heading(scene: &Scene<'_>, plan: &Plan, pen: &mut Pen<'_>) {
    let (board, subject, width) = (scene.board, scene.subject, plan.area.width);
    let (x, y) = (plan.area.x, plan.area.y);
    let state = match scene.view.end() {
        Some(end) if !subject.trouble => format!("paused at {}; End: now", subject.times.text(end)),
        _ => subject.state.clone(),
    };
    let style = if subject.trouble { pen.warning() } else { Style::new() };
    let taken = pen.right(x, y, width, &state, style);
    pen.text(x, y, width.saturating_sub(taken + 2), &subject.title, bold());
    let (from, to) = board.brush;
    let time = |t| subject.times.text(t);
    let who = if scene.view.background() { " with background" } else { "" };
    let numbers = format!(
        "{}–{}{}  {} active{who}: {} on CPU, {} wait",
        time(from),
        time(to),
        subject.times.zone(),
        short(board.mean),
        short(board.on_cpu),
        short((board.mean - board.on_cpu).max(0.0))
    );
    let taken = pen.right(x, y + 1, width, &numbers, Style::new());
    let room = width.saturating_sub(taken + 2);
    pen.text(x, y + 1, room, &path(&board.path, usize::from(room)), bold());
    let bottom = plan.keys;
    let newest = scene
        .history
        .notice()
        .filter(|notice| scene.history.extent().is_none_or(|(_, last)| notice.t + Nanos::secs(30.0) > last));
    match newest {
        Some(notice) => {
            let text = format!("{} {}", time(notice.t), notice.text);
            pen.text(x, bottom, width, &text, pen.warning());
        }
        None => {
            let keys = "space pause ←→ brush +- zoom tab list ↑↓ enter drill esc back ? help q quit";
            pen.text(x, bottom, width, keys, dim());
        }
    }
}

/// The steps in `room` columns; where there are too many, the last ones.
fn path(steps: &[String], room: usize) -> String {
    let whole = |from: usize| {
        let left_out = (from > 0).then_some("…");
        let words = steps[from..].iter().map(String::as_str);
        ["All"].into_iter().chain(left_out).chain(words).collect::<Vec<_>>().join(" ▸ ")
    };
    let fits = (0..steps.len()).map(whole).find(|path| path.chars().count() <= room);
    fits.unwrap_or_else(|| whole(steps.len().saturating_sub(1)))
}

/// Writes within the screen.
struct Pen<'a> {
    buffer: &'a mut Buffer,
    theme: Theme,
}

impl Pen<'_> {
    /// Text, cut with `…` where it does not fit `width`; the columns that it takes.
    fn text(&mut self, x: u16, y: u16, width: u16, text: &str, style: Style) -> u16 {
        let width = usize::from(width);
        let count = text.chars().count();
        let text = if count > width {
            let head: String = text.chars().take(width.saturating_sub(1)).collect();
            if width == 0 { String::new() } else { format!("{head}…") }
        } else {
            text.to_owned()
        };
        if !text.is_empty() {
            let safe: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            self.buffer.set_stringn(x, y, safe, width, self.tone(style));
        }
        count.min(width) as u16
    }

    /// The same at the right end.
    fn right(&mut self, x: u16, y: u16, width: u16, text: &str, style: Style) -> u16 {
        let taken = (text.chars().count() as u16).min(width);
        self.text(x + width - taken, y, taken, text, style)
    }

    /// One cell.
    fn cell(&mut self, x: u16, y: u16, sign: char, style: Style) {
        let style = self.tone(style);
        if let Some(cell) = self.buffer.cell_mut((x, y)) {
            cell.set_char(sign).set_style(style);
        }
    }

    /// What stays of a style without colours.
    fn tone(&self, style: Style) -> Style {
        match self.theme {
            Theme::Colour => style,
            Theme::Plain => Style { fg: None, bg: None, ..style },
        }
    }

    fn warning(&self) -> Style {
        Style::new().fg(Color::Indexed(214)).add_modifier(Modifier::BOLD)
    }

    fn blank(&mut self, area: Rect) {
        for y in area.top()..area.bottom() {
            for x in area.left()..area.right() {
                if let Some(cell) = self.buffer.cell_mut((x, y)) {
                    cell.reset();
                }
            }
        }
    }
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn dim() -> Style {
    Style::new().fg(Color::Indexed(245))
}

fn colour(paint: Paint) -> Color {
    Color::Indexed(match paint {
        Paint::Class(class) => class::colour(class),
        Paint::Event(at) => class::EVENT_COLOURS[at % class::EVENT_COLOURS.len()],
    })
}

fn sign(paint: Paint) -> char {
    match paint {
        Paint::Class(class) => class::sign(class),
        Paint::Event(at) => class::EVENT_SIGNS[at % class::EVENT_SIGNS.len()],
    }
}

/// Two or three digits: `0.04`, `3.2`, `41`, `1.2k`.
fn short(value: f32) -> String {
    match value {
        v if v < 0.005 => "0".to_owned(),
        v if v < 0.1 => format!("{v:.2}"),
        v if v < 10.0 => format!("{v:.1}"),
        v if v < 1_000.0 => format!("{v:.0}"),
        v if v < 100_000.0 => format!("{:.1}k", v / 1e3),
        v => format!("{:.0}k", v / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        for (value, text) in
            [(0.0, "0"), (0.04, "0.04"), (3.25, "3.2"), (41.4, "41"), (1234.0, "1.2k"), (123456.0, "123k")]
        {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn a_long_path_keeps_its_end() {
        let steps = ["Commit", "log file sync", "17 pgbench"].map(str::to_owned);
        assert_eq!(path(&[], 3), "All");
        assert_eq!(path(&steps[..1], 20), "All ▸ Commit");
        assert_eq!(path(&steps, 60), "All ▸ Commit ▸ log file sync ▸ 17 pgbench");
        assert_eq!(path(&steps, 25), "All ▸ … ▸ 17 pgbench");
    }

    #[test]
    fn times_of_day_and_since() {
        assert_eq!(Times::Utc(86_400 + 3_661).text(Nanos::secs(2.0)), "01:01:03");
        assert_eq!(Times::Since.text(Nanos::secs(221.0)), "3:41");
        assert_eq!(Times::Since.text(Nanos::secs(3_821.0)), "1:03:41");
    }
}
