//! Top events, sessions, statements and files of the brush, as many side by side as fit.

use super::{Pen, Plan, Scene, Theme, bold, colour, dim, short, sign};
use crate::board::{Entry, Paint, Top};
use crate::class;
use crate::view::List;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Modifier, Style};

/// Columns of a bar.
const BAR: u16 = 8;
/// Columns behind a name: mean and share.
const FIGURES: u16 = 12;

pub fn draw(scene: &Scene<'_>, plan: &Plan, pen: &mut Pen<'_>) {
    let shown = shown(plan.area.width, scene.view.marked().0);
    let count = shown.len() as u16;
    let width = (plan.area.width + 1) / count - 1;
    for (n, list) in shown.into_iter().enumerate() {
        let x = plan.lists.x + n as u16 * (width + 1);
        let wide = if n as u16 == count - 1 { plan.area.right() - x } else { width };
        let area = Rect::new(x, plan.lists.y, wide, plan.lists.height);
        draw_list(scene, list, area, pen);
    }
}

/// Events always; with little room the others take turns.
fn shown(width: u16, focused: List) -> Vec<List> {
    let others = [List::Sessions, List::Statements, List::Files];
    match width {
        0..100 if others.contains(&focused) => vec![List::Events, focused],
        0..100 => vec![List::Events, List::Statements],
        100..160 if focused == List::Files => vec![List::Events, List::Sessions, List::Files],
        100..160 => vec![List::Events, List::Sessions, List::Statements],
        _ => vec![List::Events, List::Sessions, List::Statements, List::Files],
    }
}

fn draw_list(scene: &Scene<'_>, list: List, area: Rect, pen: &mut Pen<'_>) {
    let (focused, marked) = scene.view.marked();
    let is_focused = focused == list;
    let top = scene.board.list(list);
    let heading = if is_focused { bold().add_modifier(Modifier::REVERSED) } else { bold() };
    let title = if is_focused { format!("▶ {}", list.name()) } else { format!("  {}", list.name()) };
    let taken = pen.text(area.x, area.y, area.width, &title, heading);
    if area.width > taken + FIGURES + 2 {
        pen.right(area.x, area.y, area.width, "active share", dim());
    }
    if top.rows.is_empty() {
        pen.text(area.x + 2, area.y + 1, area.width.saturating_sub(2), top.empty, dim());
        return;
    }
    let rows = usize::from(area.height.saturating_sub(1));
    let marked = marked.min(top.rows.len() - 1);
    let first = if is_focused { (marked + 1).saturating_sub(rows) } else { 0 };
    for (n, entry) in top.rows.iter().skip(first).take(rows).enumerate() {
        let line = Rect::new(area.x, area.y + 1 + n as u16, area.width, 1);
        draw_entry(entry, top, line, is_focused && first + n == marked, pen);
    }
}

fn draw_entry(entry: &Entry, top: &Top, area: Rect, is_marked: bool, pen: &mut Pen<'_>) {
    let style = if is_marked { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
    let bar = if area.width >= 44 { BAR } else { 0 };
    let name = area.width.saturating_sub(FIGURES + 3 + bar + u16::from(bar > 0));
    pen.cell(area.x, area.y, if is_marked { '▶' } else { ' ' }, Style::new());
    let taken = pen.text(area.x + 2, area.y, name, &entry.name, style);
    if !entry.beside.is_empty() && name > taken + 4 {
        pen.text(area.x + 3 + taken, area.y, name - taken - 1, &entry.beside, dim());
    }
    if bar > 0 {
        let most = top.rows[0].mean.max(1e-9);
        draw_bar(entry, most, (area.right() - FIGURES - 1 - bar, area.y), pen);
    }
    let figures = format!("{:>6} {:>3.0} %", short(entry.mean), entry.share * 100.0);
    pen.right(area.x, area.y, area.width, &figures, style);
}

/// Its parts by class, the longest bar for the first line.
fn draw_bar(entry: &Entry, most: f32, (x, y): (u16, u16), pen: &mut Pen<'_>) {
    let mut sum = 0.0;
    let mut drawn = 0;
    for (at, value) in entry.classes.iter().enumerate() {
        sum += value;
        let end = ((sum / most * f32::from(BAR)).round() as u16).min(BAR);
        let paint = Paint::Class(class::ALL[at]);
        let sign = if pen.theme == Theme::Plain { sign(paint) } else { '█' };
        for column in drawn..end {
            pen.cell(x + column, y, sign, Style::new().fg(colour(paint)));
        }
        drawn = drawn.max(end);
    }
}
