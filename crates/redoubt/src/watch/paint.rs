//! Cells that changed, as a terminal takes them.

use crossterm::cursor::MoveTo;
use crossterm::style::{
    Attribute, Color as Ink, Print, SetAttribute, SetBackgroundColor, SetForegroundColor,
};
use crossterm::{queue, terminal};
use ratatui_core::buffer::Buffer;
use ratatui_core::style::{Color, Modifier};
use std::io::{self, Write};

/// Writes what differs between `old` and `new`, in one piece.
pub fn paint(out: &mut impl Write, old: &Buffer, new: &Buffer) -> io::Result<()> {
    queue!(out, terminal::BeginSynchronizedUpdate)?;
    let mut style = None;
    let mut next = None;
    for (x, y, cell) in old.diff(new) {
        if next != Some((x, y)) {
            queue!(out, MoveTo(x, y))?;
        }
        let wanted = (cell.fg, cell.bg, cell.modifier);
        if style != Some(wanted) {
            queue!(out, SetAttribute(Attribute::Reset))?;
            ink(out, cell.fg, SetForegroundColor)?;
            ink(out, cell.bg, SetBackgroundColor)?;
            if cell.modifier.contains(Modifier::BOLD) {
                queue!(out, SetAttribute(Attribute::Bold))?;
            }
            if cell.modifier.contains(Modifier::REVERSED) {
                queue!(out, SetAttribute(Attribute::Reverse))?;
            }
            style = Some(wanted);
        }
        queue!(out, Print(cell.symbol()))?;
        next = Some((x + 1, y));
    }
    queue!(out, SetAttribute(Attribute::Reset), terminal::EndSynchronizedUpdate)?;
    out.flush()
}

fn ink<C: crossterm::Command>(
    out: &mut impl Write,
    colour: Color,
    command: impl Fn(Ink) -> C,
) -> io::Result<()> {
    match colour {
        Color::Indexed(number) => queue!(out, command(Ink::AnsiValue(number))),
        _ => Ok(()),
    }
}
