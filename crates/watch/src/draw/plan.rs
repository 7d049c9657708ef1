//! Where what goes.

use ratatui_core::layout::Rect;

/// Columns left of chart and devices: figures and the axis.
const MARGIN: u16 = 7;
/// Rows of a device: requests, MB/s, latency, in flight.
pub const DEVICE_ROWS: u16 = 4;

/// Places on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Everything.
    pub area: Rect,
    /// Columns of time.
    pub chart: Rect,
    /// Right of the chart.
    pub legend: Rect,
    /// Row of the time axis.
    pub axis: u16,
    /// Sparklines on the same columns.
    pub devices: Rect,
    /// Top lists.
    pub lists: Rect,
    /// Row of the keys.
    pub keys: u16,
}

impl Plan {
    /// On `area`, with that many devices to show.
    pub fn of(area: Rect, devices: usize) -> Self {
        let legend = if area.width < 120 { 22 } else { 32 };
        let shown = match area.height {
            0..=31 => 1,
            32..=44 => 2,
            _ => 3,
        };
        let device_rows = if area.height < 22 { 2 } else { DEVICE_ROWS * devices.clamp(1, shown) as u16 };
        // Heading, axis and keys take four.
        let rest = area.height.saturating_sub(4 + device_rows);
        let lists = (rest * 9 / 20).max(4);
        let chart = rest.saturating_sub(lists);
        let (x, width) = (area.x + MARGIN, area.width.saturating_sub(MARGIN + legend));
        let top = area.y + 2;
        Self {
            area,
            chart: Rect::new(x, top, width, chart),
            legend: Rect::new(x + width + 1, top, legend.saturating_sub(1), chart),
            axis: top + chart,
            devices: Rect::new(x, top + chart + 1, width, device_rows),
            lists: Rect::new(area.x, top + chart + 1 + device_rows, area.width, lists),
            keys: (area.y + area.height).saturating_sub(1),
        }
    }

    /// How many columns of time there are.
    pub fn columns(area: Rect) -> usize {
        usize::from(Self::of(area, 1).chart.width)
    }
}
