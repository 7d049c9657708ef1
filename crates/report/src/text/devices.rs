//! What the devices of each configuration counted, beside what users' sessions waited for, in the terminal.

use super::Page;
use super::style::{cut, left, right, width};
use crate::model::compare::{Comparison, Workload};
use crate::words;

/// Columns of configurations' names, of devices' and of a number.
const NAMES: usize = 24;
const DEVICE: usize = 8;
const NUMBER: usize = 8;

pub(super) fn report(page: Page, comparison: &Comparison) -> String {
    if !comparison.tells_devices_apart() {
        return String::new();
    }
    let names = comparison.configurations.iter().map(|c| width(&c.name)).max().unwrap_or(8).clamp(8, NAMES);
    let numbers: String =
        ["reads/s", "writes/s", "MB/s", "busy"].map(|head| right(head, NUMBER + 1)).concat();
    let head = format!("{} {}{numbers}  waits", left("", names), left("device", DEVICE));
    let mut out = page.title("Devices and waits") + &page.paint.dim(&head) + "\n";
    for workload in comparison.workloads.iter().filter(|w| w.headline) {
        out.push_str(&table(page, comparison, workload, names));
    }
    out
}

fn table(page: Page, comparison: &Comparison, workload: &Workload, names: usize) -> String {
    if workload.cells.iter().all(|cell| cell.devices.is_empty()) {
        return String::new();
    }
    let mut out = format!("{}\n", page.paint.dim(&words::capital(&workload.title)));
    for (configuration, cell) in comparison.configurations.iter().zip(&workload.cells) {
        let top = cell.spent.as_ref().and_then(|spent| spent.top());
        let waits = top.map_or_else(String::new, |top| format!("{} {}", top.name, words::percent(top.share)));
        for (row, device) in cell.used_devices().into_iter().enumerate() {
            let (name, waits) =
                if row == 0 { (configuration.name.as_str(), waits.as_str()) } else { ("", "") };
            let numbers = [
                words::amount(device.reads),
                words::amount(device.writes),
                words::megabytes(device.read_megabytes + device.write_megabytes),
                device.busy.map_or_else(|| "–".into(), |busy| words::percent(busy.share)),
            ]
            .map(|number| right(&number, NUMBER + 1))
            .concat();
            let line = format!(
                "{} {}{numbers}  {waits}",
                left(&cut(name, names), names),
                left(&cut(device.short(), DEVICE), DEVICE),
            );
            out.push_str(cut(&line, page.width).trim_end());
            out.push('\n');
        }
    }
    out
}
