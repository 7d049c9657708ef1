//! Block devices as sparklines, column by column beneath the chart.

use super::{Pen, Plan, Scene, dim, plan::DEVICE_ROWS, short};
use crate::board::{DeviceBoard, Rates};
use ratatui_core::style::{Color, Style};

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// What a line shows.
struct Line {
    value: fn(&Rates) -> Option<f32>,
    words: fn(&Rates) -> String,
    /// The scale goes at least up to this.
    least: f32,
    colour: u8,
}

const LINES: [Line; DEVICE_ROWS as usize] = [
    Line {
        value: |r| Some(r.reads + r.writes),
        words: |r| format!("{} r/s  {} w/s", short(r.reads), short(r.writes)),
        least: 10.0,
        colour: 39,
    },
    Line {
        value: |r| Some(r.megabytes),
        words: |r| format!("{} MB/s", short(r.megabytes)),
        least: 1.0,
        colour: 80,
    },
    Line {
        value: Rates::worst_ms,
        words: |r| match (r.read_ms, r.write_ms) {
            _ if r.mean_ms.is_some() => format!("{} ms/request", short(r.mean_ms.unwrap_or_default())),
            (None, None) => "no requests".to_owned(),
            (Some(read), None) => format!("{} ms/read", short(read)),
            (None, Some(write)) => format!("{} ms/write", short(write)),
            (Some(read), Some(write)) => format!("{} ms/r  {} ms/w", short(read), short(write)),
        },
        least: 1.0,
        colour: 208,
    },
    Line {
        value: |r| Some(r.in_flight),
        words: |r| format!("{} in flight", short(r.in_flight)),
        least: 1.0,
        colour: 141,
    },
];

pub fn draw(scene: &Scene<'_>, plan: &Plan, pen: &mut Pen<'_>) {
    let area = plan.devices;
    let devices = &scene.board.devices;
    if devices.is_empty() {
        let why = &scene.subject.no_devices;
        let why = if why.is_empty() { "no device did anything yet" } else { why };
        let width = plan.area.right().saturating_sub(area.x);
        pen.text(area.x, area.y, width, why, dim());
        return;
    }
    // At small sizes a device has two lines: requests and latency.
    let lines: &[usize] = if area.height < DEVICE_ROWS { &[0, 2] } else { &[0, 1, 2, 3] };
    let shown = usize::from(area.height) / lines.len();
    let order = (0..devices.len()).map(|n| &devices[(scene.view.device() + n) % devices.len()]);
    for (n, device) in order.take(shown).enumerate() {
        for (m, line) in lines.iter().enumerate() {
            let y = area.y + (n * lines.len() + m) as u16;
            sparkline(plan, pen, device, &LINES[*line], y, m == 0);
        }
    }
}

/// A name, or its end where it is longer than `room`: addresses of servers differ there.
fn ending(name: &str, room: u16) -> String {
    let (count, room) = (name.chars().count(), usize::from(room));
    if count <= room {
        return name.to_owned();
    }
    std::iter::once('…').chain(name.chars().skip(count + 1 - room)).collect()
}

fn sparkline(plan: &Plan, pen: &mut Pen<'_>, device: &DeviceBoard, line: &Line, y: u16, first: bool) {
    let values: Vec<Option<f32>> = device.columns.iter().map(|r| r.as_ref().and_then(line.value)).collect();
    let high = values.iter().flatten().copied().fold(line.least, f32::max);
    let (x, left) = (plan.devices.x, plan.area.x);
    let room = x - left - 1;
    let label = if first { ending(&device.name, room) } else { short(high) };
    pen.right(left, y, room, &label, if first { super::bold() } else { dim() });
    pen.cell(x - 1, y, '│', dim());
    for (at, value) in values.iter().take(usize::from(plan.devices.width)).enumerate() {
        let Some(value) = value.filter(|value| *value > 0.0) else { continue };
        let level = ((value / high * 8.0).ceil() as usize).clamp(1, 8);
        pen.cell(x + at as u16, y, BARS[level - 1], Style::new().fg(Color::Indexed(line.colour)));
    }
    pen.text(plan.legend.x, y, plan.legend.width, &(line.words)(&device.brush), Style::new());
}
