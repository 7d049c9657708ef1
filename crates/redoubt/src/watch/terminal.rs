//! The terminal: keys in, screen out, and as it was afterwards, whatever happens.

use super::{Source, paint};
use crate::stop;
use ::watch::board::{Board, Boards};
use ::watch::draw::{self, Plan, Scene, Theme};
use ::watch::history::History;
use ::watch::view::{Asked, Key, View};
use anyhow::{Context, Result, bail};
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::{cursor, execute, terminal};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use units::Nanos;

/// How long a key may wait for its effect.
const KEYS_EVERY: Nanos = Nanos::millis(50);
/// The picture moves on at least so often, also when nothing new was seen.
const DRAW_EVERY: Nanos = Nanos::millis(1_000);

/// Whether there is a terminal to draw on.
///
/// # Errors
/// There is none: with what to type instead.
pub fn check() -> Result<()> {
    if io::stdin().is_terminal() && io::stdout().is_terminal() {
        return Ok(());
    }
    bail!(
        "watch draws on a terminal, and there is none here (input or output goes elsewhere). Type it in a terminal; over ssh: \
         ssh -t HOST redoubt watch …; or have it in a browser: redoubt watch … --web"
    )
}

/// Shows `source` until the user quits.
///
/// # Errors
/// The terminal fails.
pub fn run(mut source: impl Source, history: History, view: View) -> Result<ExitCode> {
    let stop = stop::on_signal()?;
    let theme = match std::env::var_os("NO_COLOR") {
        Some(value) if !value.is_empty() => Theme::Plain,
        _ => Theme::Colour,
    };
    let guard = Guard::enter()?;
    let mut screen = Screen { theme, shown: None, history, boards: Boards::default(), view };
    let mut drawn = None;
    while !stop.load(Ordering::Relaxed) {
        let news = source.take(&mut screen.history, KEYS_EVERY);
        let mut keys = false;
        if is_gone() {
            break;
        }
        while event::poll(Nanos(0).duration()).context("the terminal does not answer")? {
            let event = event::read().context("the terminal does not answer")?;
            keys = true;
            if screen.follow(&event, &source)? == Asked::Quit {
                return Ok(ExitCode::SUCCESS);
            }
        }
        let due = drawn.is_none_or(|drawn| source.now() - drawn >= DRAW_EVERY);
        if news || keys || due {
            screen.draw(&source)?;
            drawn = Some(source.now());
        }
    }
    drop(guard);
    Ok(ExitCode::from(stop::INTERRUPTED))
}

/// Whether the window was closed, or the line cut: who asks such a terminal for keys is never answered.
fn is_gone() -> bool {
    let stdin = io::stdin();
    let mut asked = [PollFd::new(&stdin, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut asked, Some(&at_once)).is_ok() && asked[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

struct Screen {
    theme: Theme,
    shown: Option<Buffer>,
    history: History,
    boards: Boards,
    view: View,
}

impl Screen {
    fn follow(&mut self, event: &Event, source: &impl Source) -> Result<Asked> {
        match event {
            Event::Resize(..) => {
                self.shown = None;
                Ok(Asked::Nothing)
            }
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
                    return Ok(Asked::Quit);
                }
                let Some(key) = translated(*key) else { return Ok(Asked::Nothing) };
                let board = self.board(source, size()?);
                Ok(self.view.press(key, &board))
            }
            _ => Ok(Asked::Nothing),
        }
    }

    fn board(&mut self, source: &impl Source, area: Rect) -> Board {
        self.boards.board(&self.history, &self.view, Plan::columns(area), source.now())
    }

    fn draw(&mut self, source: &impl Source) -> Result<()> {
        let area = size()?;
        let mut buffer = Buffer::empty(area);
        let board = self.board(source, area);
        let scene = Scene {
            subject: source.subject(),
            history: &self.history,
            view: &self.view,
            board: &board,
            theme: self.theme,
        };
        draw::draw(&scene, &mut buffer);
        let mut out = io::stdout().lock();
        let old = match self.shown.take().filter(|shown| shown.area == area) {
            Some(shown) => shown,
            None => {
                execute!(out, terminal::Clear(terminal::ClearType::All))?;
                Buffer::empty(area)
            }
        };
        let mut bytes = Vec::new();
        paint::paint(&mut bytes, &old, &buffer)?;
        out.write_all(&bytes).and_then(|()| out.flush()).context("the terminal does not take the picture")?;
        self.shown = Some(buffer);
        Ok(())
    }
}

fn size() -> Result<Rect> {
    let (width, height) = terminal::size().context("the terminal does not tell its size")?;
    Ok(Rect::new(0, 0, width, height))
}

fn translated(key: KeyEvent) -> Option<Key> {
    let shift = key.modifiers.contains(KeyModifiers::SHIFT);
    Some(match key.code {
        KeyCode::Left => Key::Left { shift },
        KeyCode::Right => Key::Right { shift },
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc | KeyCode::Backspace => Key::Back,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Char(c) => Key::Letter(c),
        _ => return None,
    })
}

/// The terminal in our hands; as it was when this is dropped, and before a panic says what happened.
struct Guard;

impl Guard {
    fn enter() -> Result<Self> {
        terminal::enable_raw_mode().context("this terminal cannot be drawn on")?;
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
        execute!(io::stdout(), terminal::EnterAlternateScreen, cursor::Hide)?;
        Ok(Self)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    // Cleared first: a screen that grew meanwhile would leave its new part behind (tmux).
    let clear = terminal::Clear(terminal::ClearType::All);
    let _ = execute!(io::stdout(), clear, cursor::Show, terminal::LeaveAlternateScreen);
    let _ = terminal::disable_raw_mode();
}
