//! What the user chose to see, and what each key changes.
//!
//! Time: the *window* is what the chart spans; it follows the present, or stands (paused, back in time). The *brush* is the part of it
//! that the lists are about. Drill: steps from a class to a statement; each one narrows chart and lists.

use crate::board::Board;
use crate::class::Class;
use crate::history::TextId;
use units::Nanos;

/// Lengths of the window, seconds, with their names.
pub const WINDOWS: [(u64, &str); 9] = [
    (60, "1 min"),
    (120, "2 min"),
    (300, "5 min"),
    (900, "15 min"),
    (1_800, "30 min"),
    (3_600, "1 h"),
    (7_200, "2 h"),
    (14_400, "4 h"),
    (28_800, "8 h"),
];
const WINDOW_FIRST: usize = 2;
/// Share of the window that the lists are about at first.
const BRUSH_SHARE: u64 = 5;

/// A narrowing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// To one class.
    Class(Class),
    /// To one event.
    Event(u16),
    /// To one session: its number and its name.
    Session(u32, TextId),
    /// To one statement.
    Statement(TextId),
    /// To one file.
    File(TextId),
}

/// The lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// Classes: the legend beside the chart.
    Classes,
    /// Top events.
    Events,
    /// Top sessions.
    Sessions,
    /// Top statements.
    Statements,
    /// Top files.
    Files,
}

impl List {
    /// All, in the order of the tabulator.
    pub const ALL: [Self; 5] = [Self::Classes, Self::Events, Self::Sessions, Self::Statements, Self::Files];

    /// Its heading.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Classes => "Classes",
            Self::Events => "Events",
            Self::Sessions => "Sessions",
            Self::Statements => "Statements",
            Self::Files => "Files",
        }
    }

    fn beside(self, by: usize) -> Self {
        let at = Self::ALL.iter().position(|list| *list == self).unwrap_or(0);
        Self::ALL[(at + by) % Self::ALL.len()]
    }
}

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Arrows; with shift the brush grows or shrinks.
    Left {
        /// Shift is held.
        shift: bool,
    },
    /// See [`Key::Left`].
    Right {
        /// Shift is held.
        shift: bool,
    },
    /// Arrow.
    Up,
    /// Arrow.
    Down,
    /// A window back.
    PageUp,
    /// A window on.
    PageDown,
    /// To the beginning.
    Home,
    /// To the present.
    End,
    /// Into what is marked.
    Enter,
    /// Out again.
    Back,
    /// Next list.
    Tab,
    /// List before.
    BackTab,
    /// A letter.
    Letter(char),
}

/// What a key asks for beyond the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Nothing.
    Nothing,
    /// The end.
    Quit,
}

/// What is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    window: usize,
    end: Option<Nanos>,
    brush: Option<(Nanos, Nanos)>,
    drill: Vec<Step>,
    list: List,
    marked: usize,
    background: bool,
    device: usize,
    help: bool,
}

impl Default for View {
    fn default() -> Self {
        Self {
            window: WINDOW_FIRST,
            end: None,
            brush: None,
            drill: Vec::new(),
            list: List::Events,
            marked: 0,
            background: false,
            device: 0,
            help: false,
        }
    }
}

impl View {
    /// A view whose window holds `length`, as a finished record is opened.
    pub fn of_length(length: Nanos) -> Self {
        let fits = WINDOWS.iter().position(|(seconds, _)| *seconds as f64 >= length.as_secs());
        Self { window: fits.unwrap_or(WINDOWS.len() - 1), ..Self::default() }
    }

    /// What a page asks for; what is none is as at first.
    pub fn asked(
        window: Option<usize>,
        end: Option<Nanos>,
        brush: Option<(Nanos, Nanos)>,
        drill: Vec<Step>,
        background: bool,
    ) -> Self {
        let window = window.filter(|window| *window < WINDOWS.len()).unwrap_or(WINDOW_FIRST);
        let brush = brush.filter(|(from, to)| from < to);
        Self { window, end, brush, drill, background, ..Self::default() }
    }

    /// Length of the window.
    pub fn window(&self) -> Nanos {
        Nanos::millis(WINDOWS[self.window].0 * 1_000)
    }

    /// Its place in [`WINDOWS`].
    pub fn window_number(&self) -> usize {
        self.window
    }

    /// Its name.
    pub fn window_name(&self) -> &'static str {
        WINDOWS[self.window].1
    }

    /// End of the window; none: the present.
    pub fn end(&self) -> Option<Nanos> {
        self.end
    }

    /// What the lists are about, when the present is `now`.
    pub fn brush(&self, now: Nanos) -> (Nanos, Nanos) {
        self.brush.unwrap_or_else(|| {
            let end = self.end.unwrap_or(now);
            (Nanos(end.0.saturating_sub(self.window().0 / BRUSH_SHARE)), end)
        })
    }

    /// The steps taken.
    pub fn drill(&self) -> &[Step] {
        &self.drill
    }

    /// The list that the arrows move in, and the line.
    pub fn marked(&self) -> (List, usize) {
        (self.list, self.marked)
    }

    /// Whether background processes are shown, too.
    pub fn background(&self) -> bool {
        self.background
    }

    /// Which device is shown first.
    pub fn device(&self) -> usize {
        self.device
    }

    /// Whether the keys are explained.
    pub fn help(&self) -> bool {
        self.help
    }

    /// Takes the first `count` steps back, as a click on one of them does.
    pub fn climb(&mut self, count: usize) {
        self.drill.truncate(count);
        self.marked = 0;
    }

    /// Follows a key; `board`: what is shown now.
    pub fn press(&mut self, key: Key, board: &Board) -> Asked {
        if self.help {
            self.help = false;
            return match key {
                Key::Letter('q') => Asked::Quit,
                _ => Asked::Nothing,
            };
        }
        match key {
            Key::Letter('q') => return Asked::Quit,
            Key::Letter('?' | 'h') => self.help = true,
            Key::Letter(' ') => self.pause(board),
            Key::Letter('b') => self.background = !self.background,
            Key::Letter('d') => self.device = (self.device + 1) % board.devices.len().max(1),
            Key::Letter('+') => self.zoom(self.window.saturating_sub(1), board),
            Key::Letter('-') => self.zoom((self.window + 1).min(WINDOWS.len() - 1), board),
            Key::Letter('a') => self.brush_to(board, (board.from, board.to)),
            Key::Letter(_) => {}
            Key::Left { shift } => self.move_brush(board, -1, shift),
            Key::Right { shift } => self.move_brush(board, 1, shift),
            Key::PageUp => self.turn(board, false),
            Key::PageDown => self.turn(board, true),
            Key::Home => self.go_to(board, board.first + self.window()),
            Key::End => (self.end, self.brush) = (None, None),
            Key::Up => self.marked = self.marked.min(self.last(board)).saturating_sub(1),
            Key::Down => self.marked = (self.marked + 1).min(self.last(board)),
            Key::Tab => self.focus(1),
            Key::BackTab => self.focus(List::ALL.len() - 1),
            Key::Enter => self.enter(board),
            Key::Back => {
                if self.drill.pop().is_some() {
                    self.marked = 0;
                } else {
                    (self.end, self.brush) = (None, None);
                }
            }
        }
        Asked::Nothing
    }

    fn last(&self, board: &Board) -> usize {
        board.list(self.list).rows.len().saturating_sub(1)
    }

    fn focus(&mut self, by: usize) {
        (self.list, self.marked) = (self.list.beside(by), 0);
    }

    fn enter(&mut self, board: &Board) {
        let Some(row) = board.list(self.list).rows.get(self.marked) else { return };
        if self.drill.contains(&row.step) {
            return;
        }
        self.drill.push(row.step);
        self.focus(if self.list == List::Files { 0 } else { 1 });
    }

    fn pause(&mut self, board: &Board) {
        (self.end, self.brush) = match self.end {
            None => (Some(board.to), Some(board.brush)),
            Some(_) => (None, None),
        };
    }

    /// The window keeps its middle, where it stands.
    fn zoom(&mut self, window: usize, board: &Board) {
        let old = self.window();
        self.window = window;
        if let Some(end) = self.end {
            let middle = end.0.saturating_sub(old.0 / 2);
            self.go_to(board, Nanos(middle + self.window().0 / 2));
        }
        if self.end.is_none() {
            self.brush = None;
        }
    }

    /// The whole brush, or its end alone, by `columns`; beyond the edge the window follows.
    fn move_brush(&mut self, board: &Board, columns: i64, grow: bool) {
        let by = board.column.0 as i64 * columns;
        let moved = |at: Nanos| Nanos(at.0.saturating_add_signed(by));
        let (from, to) = board.brush;
        let (from, to) = if grow {
            let least = board.column;
            if moved(to).0 >= from.0 + least.0 { (from, moved(to)) } else { (moved(from), to) }
        } else {
            (moved(from), moved(to))
        };
        let length = Nanos(to.0.saturating_sub(from.0));
        if to > board.last {
            return;
        }
        let from = Nanos(from.0.max(board.first.0.saturating_sub(board.column.0)));
        self.brush_to(board, (from, Nanos(from.0 + length.0)));
    }

    fn brush_to(&mut self, board: &Board, (from, to): (Nanos, Nanos)) {
        self.brush = Some((from, to));
        let end = self.end.unwrap_or(board.to);
        let begin = Nanos(end.0.saturating_sub(self.window().0));
        self.end = Some(if to > end {
            to
        } else if from < begin {
            Nanos(from.0 + self.window().0)
        } else {
            end
        });
    }

    /// Half a window back or on.
    fn turn(&mut self, board: &Board, on: bool) {
        let half = self.window().0 / 2;
        let end = if on { board.to.0 + half } else { board.to.0.saturating_sub(half) };
        if on && end >= board.last.0 {
            (self.end, self.brush) = (None, None);
        } else {
            self.go_to(board, Nanos(end));
        }
    }

    /// Lets the window end there, or as near as there is something to show; the brush comes along.
    fn go_to(&mut self, board: &Board, end: Nanos) {
        let least = Nanos((board.first.0 + self.window().0).min(board.last.0));
        let end = end.clamp(least, board.last.max(least));
        let length = Nanos(board.brush.1.0.saturating_sub(board.brush.0.0).min(self.window().0));
        (self.end, self.brush) = (Some(end), Some((Nanos(end.0.saturating_sub(length.0)), end)));
    }
}
