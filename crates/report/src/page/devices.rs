//! What the devices of each configuration counted, beside what users' sessions waited for; and the rate over time.

use super::compare::level;
use crate::chart::bar::{Part, parts};
use crate::chart::{escape, spark};
use crate::model::compare::{Cell, Comparison, Workload};
use crate::model::devices::DeviceUse;
use crate::words;

/// Width of the bar that says how busy a device was.
const BAR: f64 = 130.0;

pub(super) fn sections(comparison: &Comparison) -> String {
    if !comparison.tells_devices_apart() {
        return String::new();
    }
    let told = || comparison.workloads.iter().filter(|w| w.headline);
    let tables: String = told()
        .filter(|w| w.cells.iter().any(|c| !c.devices.is_empty()))
        .map(|w| table(comparison, w))
        .collect();
    let lines: String = match comparison.placements.is_empty() {
        true => told()
            .filter(|w| w.cells.iter().any(|c| !c.over_time.is_empty()))
            .map(|w| over_time(comparison, w))
            .collect(),
        false => String::new(),
    };
    let over_time = match lines.is_empty() {
        true => String::new(),
        false => format!(
            "<section id=\"steady\">\n<h2>How steady?</h2>\n<p class=\"note\">The rate over time: the windows of all visits side by side, each in ten \
             parts, each row up to its own peak; the line is its mean. Variation: standard deviation over the ten parts of a window, in per cent of \
             the mean; lower is steadier.</p>\n{lines}</section>\n"
        ),
    };
    format!(
        "<section id=\"devices\">\n<h2>Devices and waits</h2>\n<p class=\"note\">What the kernel counted for each device while the configuration was \
         measured. Busy: of the cap, by what came nearest to it (requests or bytes); where there is no cap, the time with something in flight. \
         Beside it what users' sessions waited for.</p>\n{tables}</section>\n{over_time}"
    )
}

fn table(comparison: &Comparison, workload: &Workload) -> String {
    let rows: String = workload.cells.iter().enumerate().map(|(i, cell)| rows(comparison, i, cell)).collect();
    format!(
        "<section class=\"panel\">\n<h3>{}</h3>\n<div class=\"scroll\"><table class=\"devices\">\n<thead><tr><th></th><th scope=\"col\">{}</th><th \
         class=\"text\" scope=\"col\">device</th><th scope=\"col\">reads/s</th><th scope=\"col\">writes/s</th><th scope=\"col\">MB/s read</th><th \
         scope=\"col\">MB/s written</th><th class=\"text\" scope=\"col\" colspan=\"2\">busy</th><th class=\"text\" scope=\"col\">users' sessions wait \
         for</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n</section>\n",
        escape(&words::capital(&workload.title)),
        escape(words::unit(&workload.metric)),
    )
}

fn rows(comparison: &Comparison, index: usize, cell: &Cell) -> String {
    let used = cell.used_devices();
    let span = used.len().max(1);
    let waits: Vec<String> = cell
        .spent
        .iter()
        .flat_map(|spent| spent.foreground.iter().take(2))
        .map(|line| format!("{} {}", escape(&line.name), words::percent(line.share)))
        .collect();
    (0..span)
        .map(|row| {
            let device = used.get(row).map_or_else(|| "<td class=\"text\">–</td><td colspan=\"6\"></td>".to_owned(), |d| cells(d));
            let (head, tail) = match row {
                0 => (
                    format!(
                        "<th scope=\"row\" rowspan=\"{span}\">{}</th><td class=\"value\" rowspan=\"{span}\">{}</td>",
                        escape(&comparison.configurations[index].name),
                        level(cell)
                    ),
                    format!("<td class=\"text because\" rowspan=\"{span}\">{}</td>", waits.join("<br>")),
                ),
                _ => (String::new(), String::new()),
            };
            let class = if row == 0 { "first" } else { "" };
            format!("<tr class=\"{class}\">{head}{device}{tail}</tr>\n")
        })
        .collect()
}

fn cells(device: &DeviceUse) -> String {
    let busy = device.busy.map_or_else(
        || "<td>–</td><td></td>".to_owned(),
        |busy| {
            let part =
                Part { class: "rank-odd".into(), value: busy.share, tip: busy.said(), labels: Vec::new() };
            let of = if busy.of_cap { "of cap" } else { "of time" };
            format!(
                "<td class=\"draw\">{}</td><td class=\"text\">{} <span class=\"interval\">{of}</span></td>",
                parts(BAR, 24.0, &[part], 1.0),
                words::percent(busy.share)
            )
        },
    );
    format!(
        "<td class=\"text\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>{busy}",
        escape(&device.name),
        words::amount(device.reads),
        words::amount(device.writes),
        words::megabytes(device.read_megabytes),
        words::megabytes(device.write_megabytes),
    )
}

fn over_time(comparison: &Comparison, workload: &Workload) -> String {
    let variation = comparison.workload(&format!("{}-variation", workload.name));
    let unit = words::unit(&workload.metric);
    let rows: String = workload
        .cells
        .iter()
        .enumerate()
        .filter(|(_, cell)| !cell.over_time.is_empty())
        .map(|(i, cell)| {
            let varied = variation.map(|w| &w.cells[i]);
            let varies = varied.and_then(|cell| cell.absolute).map_or_else(
                // One block has no interval.
                || varied.map_or_else(|| "–".to_owned(), |cell| format!("{} %", level(cell))),
                |a| {
                    format!(
                        "{} % <span class=\"interval\">[{}–{}]</span>",
                        words::amount(a.value),
                        words::amount(a.low),
                        words::amount(a.high)
                    )
                },
            );
            format!(
                "<tr><th scope=\"row\">{}</th><td class=\"value\">{}</td><td>{varies}</td><td class=\"draw\">{}</td></tr>\n",
                escape(&comparison.configurations[i].name),
                level(cell),
                spark::draw(&cell.over_time, unit)
            )
        })
        .collect();
    format!(
        "<section class=\"panel\">\n<h3>{}</h3>\n<div class=\"scroll\"><table class=\"steady\">\n<thead><tr><th></th><th scope=\"col\">{}</th><th \
         scope=\"col\">variation</th><th class=\"text\" scope=\"col\">over time</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n</section>\n",
        escape(&words::capital(&workload.title)),
        escape(unit),
    )
}
