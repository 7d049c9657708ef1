//! Stacked activity, the line of the CPUs, the time axis with the brush, and the legend, which is the list of classes.

use super::{Pen, Plan, Scene, Theme, bold, colour, dim, short, sign};
use crate::view::List;
use ratatui_core::style::{Color, Modifier, Style};

const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

pub fn draw(scene: &Scene<'_>, plan: &Plan, pen: &mut Pen<'_>) {
    let high = scene.board.top(scene.subject.cpus);
    let area = plan.chart;
    let rows = area.height;
    let row_of = |value: f32| (f32::from(rows) - value / high * f32::from(rows)).floor();
    let limit = scene.subject.cpus.map(row_of).filter(|row| *row >= 0.0 && *row < f32::from(rows));
    let limit = limit.map(|row| row as u16);
    let brushed = scene.board.brush_columns();
    // Nothing was seen between looks: that is no calm. Before the first and after the last there is simply nothing.
    let seen = |column: &Option<Vec<f32>>| column.is_some();
    let (first, last) =
        (scene.board.columns.iter().position(seen), scene.board.columns.iter().rposition(seen));
    let hole = |at: usize| first.is_some_and(|first| at > first) && last.is_some_and(|last| at < last);
    for (at, column) in scene.board.columns.iter().take(usize::from(area.width)).enumerate() {
        let x = area.x + at as u16;
        for row in 0..rows {
            let low = f32::from(rows - 1 - row) / f32::from(rows) * high;
            let is_limit = limit == Some(row);
            let shade = (brushed.contains(&at)).then_some(Color::Indexed(236));
            match column {
                Some(heights) => {
                    cell(
                        scene,
                        pen,
                        (x, area.y + row),
                        heights,
                        (low, high / f32::from(rows)),
                        is_limit,
                        shade,
                    );
                }
                None if is_limit => pen.cell(x, area.y + row, '─', dim()),
                None if hole(at) => pen.cell(x, area.y + row, '·', dim()),
                None => {}
            }
        }
    }
    margin(scene, plan, pen, high, limit);
    axis(scene, plan, pen);
    legend(scene, plan, pen);
}

fn cell(
    scene: &Scene<'_>,
    pen: &mut Pen<'_>,
    (x, y): (u16, u16),
    heights: &[f32],
    (low, size): (f32, f32),
    is_limit: bool,
    shade: Option<Color>,
) {
    let bands = &scene.board.bands;
    let at = |height: f32| {
        let mut sum = 0.0;
        heights.iter().position(|value| {
            sum += value;
            sum > height
        })
    };
    if pen.theme == Theme::Plain {
        let sign = match at(low + size / 2.0) {
            Some(band) => sign(bands[band].paint),
            None => {
                if is_limit {
                    '─'
                } else {
                    ' '
                }
            }
        };
        return pen.cell(x, y, sign, Style::new());
    }
    let empty = shade.unwrap_or(Color::Reset);
    let ground = |band: Option<usize>| band.map_or(empty, |band| colour(bands[band].paint));
    let (below, above) = (at(low + size / 16.0), at(low + size * 15.0 / 16.0));
    if is_limit {
        let style = Style::new().fg(Color::Indexed(196)).bg(ground(at(low + size / 2.0)));
        return pen.cell(x, y, '─', style);
    }
    let Some(band) = below else { return pen.cell(x, y, ' ', Style::new().bg(empty)) };
    if below == above {
        return pen.cell(x, y, '█', Style::new().fg(ground(below)));
    }
    let top: f32 = heights[..=band].iter().sum();
    let eighths = (((top - low) / size * 8.0).round() as usize).clamp(1, 8);
    pen.cell(x, y, EIGHTHS[eighths], Style::new().fg(ground(below)).bg(ground(above)));
}

fn margin(scene: &Scene<'_>, plan: &Plan, pen: &mut Pen<'_>, high: f32, limit: Option<u16>) {
    let area = plan.chart;
    let left = plan.area.x;
    for row in 0..area.height {
        let y = area.y + row;
        let value = f32::from(area.height - row) / f32::from(area.height) * high;
        let label = if limit == Some(row) {
            format!("{:.0} CPUs", scene.subject.cpus.unwrap_or_default())
        } else if row == 0 || row == area.height / 2 {
            short(value)
        } else {
            String::new()
        };
        pen.right(left, y, area.x - left - 1, &label, dim());
        pen.cell(area.x - 1, y, if label.is_empty() { '│' } else { '┤' }, dim());
    }
}

fn axis(scene: &Scene<'_>, plan: &Plan, pen: &mut Pen<'_>) {
    let (x, width, y) = (plan.chart.x, plan.chart.width, plan.axis);
    pen.right(plan.area.x, y, x - plan.area.x - 1, "0", dim());
    pen.cell(x - 1, y, '└', dim());
    let brushed = scene.board.brush_columns();
    for at in 0..width {
        pen.cell(x + at, y, '─', dim());
    }
    let time = |column: u16| {
        let t = scene.board.from.0 + scene.board.column.0 * u64::from(column);
        scene.subject.times.text(units::Nanos(t))
    };
    let count = (width / 20).max(1);
    for n in 0..=count {
        let column = width * n / count;
        let text = time(column);
        let length = text.chars().count() as u16;
        let start = if n == count { width.saturating_sub(length) } else { column };
        pen.text(x + start, y, length, &text, dim());
    }
    for at in brushed {
        pen.cell(x + at as u16, y, '━', Style::new().fg(Color::Indexed(220)).add_modifier(Modifier::BOLD));
    }
    let name = format!("{} shown", scene.view.window_name());
    pen.text(plan.legend.x, y, plan.legend.width, &name, dim());
}

fn legend(scene: &Scene<'_>, plan: &Plan, pen: &mut Pen<'_>) {
    let (list, marked) = scene.view.marked();
    let area = plan.legend;
    let marked = scene.board.list(List::Classes).rows.get(marked).filter(|_| list == List::Classes);
    let bands = scene.board.bands.iter().rev().take(usize::from(area.height)).enumerate();
    for (row, band) in bands {
        let y = area.y + row as u16;
        let is_marked = marked.is_some_and(|entry| band.step == Some(entry.step));
        let style = if is_marked { bold().add_modifier(Modifier::REVERSED) } else { Style::new() };
        let sign = if pen.theme == Theme::Plain { sign(band.paint) } else { '█' };
        pen.cell(area.x, y, sign, Style::new().fg(colour(band.paint)));
        let figure = short(band.mean);
        let taken = pen.right(area.x, y, area.width, &figure, style);
        pen.text(area.x + 2, y, area.width.saturating_sub(taken + 3), &band.name, style);
    }
    if scene.board.bands.is_empty() {
        pen.text(area.x, area.y, area.width, "nobody active", dim());
    }
}
