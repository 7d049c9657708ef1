//! A table scanned again and again, with and without a flash cache: what each pass found, and the caches over time.

use crate::chart::escape;
use crate::chart::strips::{Stretch, Strips};
use crate::model::compare::Comparison;
use crate::model::database::activity::Bands;
use crate::model::passes::{PASSES, Pass, Passes};
use crate::words;

/// Steps of a drawing.
const CELLS: usize = 400;

pub(super) fn sections(comparison: &Comparison) -> String {
    if comparison.passes.is_empty() {
        return String::new();
    }
    let rows: String = comparison.passes.iter().map(|passes| rows(comparison, passes)).collect();
    let drawn: Vec<&Passes> = comparison.passes.iter().filter(|p| p.flash && p.states.is_some()).collect();
    let seconds =
        drawn.iter().filter_map(|p| p.states.as_ref()?.passes.last()).map(|p| p.1).fold(0.0, f64::max);
    let pictures: String = drawn.into_iter().map(|passes| picture(comparison, passes, seconds)).collect();
    format!(
        "<section id=\"passes\">\n<h2>The second pass</h2>\n<p class=\"note\">A table that the buffer cache does not hold is scanned three times. Means \
         over the visits; shares are of the blocks that the buffer cache did not have. MB are 10⁶ bytes, as the kernel counted them for each \
         device.</p>\n<div class=\"scroll\"><table class=\"devices\">\n<thead><tr><th></th><th class=\"text\" scope=\"col\">pass</th><th \
         scope=\"col\">time, s</th><th class=\"text\" scope=\"col\">against pass 1</th><th scope=\"col\">from flash</th><th scope=\"col\">into \
         flash</th><th class=\"text\" scope=\"col\">skipped</th><th class=\"text\" scope=\"col\">devices</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n\
         {pictures}</section>\n"
    )
}

fn rows(comparison: &Comparison, passes: &Passes) -> String {
    let name = escape(&comparison.configurations[passes.configuration].name);
    let span = passes.passes.len();
    let row = |(index, pass): (usize, &Pass)| {
        let head = match index {
            0 => format!("<th scope=\"row\" rowspan=\"{span}\">{name}</th>"),
            _ => String::new(),
        };
        let ratio = [None, passes.second.as_ref(), passes.third.as_ref()][index];
        let ratio = ratio.map_or_else(String::new, |r| {
            format!(
                "{} × <span class=\"interval\">{}</span>",
                words::ratio(r.value),
                words::ratio_interval(r.low, r.high)
            )
        });
        let class = if index == 0 { "first" } else { "" };
        format!(
            "<tr class=\"{class}\">{head}<td class=\"text\">{}</td><td>{}</td><td class=\"text\">{ratio}</td><td>{}</td><td>{}</td><td \
             class=\"text\">{}</td><td class=\"text because\">{}</td></tr>\n",
            index + 1,
            words::fine(pass.seconds),
            share(passes, pass.hits, pass.from_flash()),
            share(passes, pass.inserts, pass.into_flash()),
            skipped(pass),
            devices(comparison, passes, index),
        )
    };
    passes.passes.iter().enumerate().map(row).collect()
}

/// `61 %`, with the blocks when pointed at; nothing where there is no flash cache.
fn share(passes: &Passes, count: f64, share: f64) -> String {
    match passes.flash {
        true => {
            format!("<span title=\"{} blocks\">{}</span>", words::thousands(count), words::percent(share))
        }
        false => String::new(),
    }
}

fn skipped(pass: &Pass) -> String {
    let one = |(reason, count): &(String, f64)| {
        format!("{} {}", words::percent(count / pass.blocks.max(1.0)), escape(reason))
    };
    pass.skips.iter().filter(|(_, count)| *count >= 0.5).map(one).collect::<Vec<_>>().join("<br>")
}

fn devices(comparison: &Comparison, passes: &Passes, pass: usize) -> String {
    let cell = comparison.workload(PASSES[pass]).map(|w| &w.cells[passes.configuration]);
    let one = |d: &crate::model::devices::DeviceUse| {
        let busy = d.busy.map_or_else(String::new, |busy| format!(", {}", busy.said()));
        format!(
            "{}: {} MB/s read, {} written{busy}",
            escape(d.short()),
            words::megabytes(d.read_megabytes),
            words::megabytes(d.write_megabytes)
        )
    };
    cell.map_or_else(String::new, |cell| {
        cell.used_devices().into_iter().map(one).collect::<Vec<_>>().join("<br>")
    })
}

/// The blocks of both caches by state, with the passes above.
fn picture(comparison: &Comparison, passes: &Passes, seconds: f64) -> String {
    let Some(states) = &passes.states else { return String::new() };
    let bands = Bands { keys: states.bands.keys.clone(), steps: states.bands.coarser(CELLS) };
    let rows: Vec<String> = (1..=states.passes.len()).map(|n| format!("pass {n}")).collect();
    let stretch =
        |(row, (from, to)): (usize, &(f64, f64))| Stretch { from: *from, to: *to, row, name: &rows[row] };
    let name = comparison.said(passes.configuration);
    let title = format!("Blocks by state, {name}");
    let drawn = Strips {
        name: &title,
        seconds,
        rows: &rows,
        stretches: states.passes.iter().enumerate().map(stretch).collect(),
        strips: vec![super::run::buffer_strip(&title, &bands)],
    };
    format!(
        "<figure><div class=\"scroll\">{}</div>\n<figcaption>The buffer cache, and the flash cache above it, during the three passes of one visit; \
         <b>flashcur</b>: blocks in the flash cache, <b>flashfree</b>: room in it.</figcaption></figure>\n",
        drawn.draw()
    )
}
