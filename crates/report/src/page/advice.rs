//! Advice on a flash cache on the page: the curve, and the numbers behind it.

use crate::chart::escape;
use crate::chart::sizes::{At, SizesChart};
use crate::model::advice::{Advice, Estimate, Size, size};
use crate::words;

pub(super) fn sections(advice: &Advice) -> String {
    if advice.sizes.is_empty() {
        return String::new();
    }
    let at = |of: &Size, estimate: &Estimate| At {
        bytes: of.bytes as f64,
        value: estimate.value,
        interval: (estimate.low, estimate.high),
    };
    let speed_up = |of: &Size| of.speed_up.as_ref().map(|estimate| at(of, estimate));
    let chart = SizesChart {
        hits: advice.sizes.iter().map(|of| at(of, &of.hits)).collect(),
        speed_ups: advice.sizes.iter().filter_map(speed_up).collect(),
        lru: &advice.lru,
        policy: &advice.policy,
        choice: advice.choice.map(|index| advice.sizes[index].bytes as f64),
    };
    format!(
        "<section id=\"sizes\">\n<h2>What each size would do</h2>\n<figure><div class=\"scroll\">{}</div>\n<figcaption>Bars are 95 % \
         intervals: another choice of blocks, another stretch of the run, and the noise of the devices. The broken line is an LRU cache that holds \
         only what the buffer cache does not. What is predicted holds for a workload like this one, once the cache is \
         warm.</figcaption></figure>\n{}</section>\n",
        chart.draw(),
        table(advice)
    )
}

fn table(advice: &Advice) -> String {
    let row = |(index, of): (usize, &Size)| {
        let speed_up = of.speed_up.as_ref();
        let interval = |text: Option<String>| text.unwrap_or_default();
        let beside = match (Some(index) == advice.choice, Some(index) == advice.enough) {
            (true, true) => "all that can be gained",
            (true, false) => "nine tenths of the reads that can be served",
            (false, true) => "nothing more is gained beyond",
            (false, false) => "",
        };
        format!(
            "<tr><th scope=\"row\">{}</th><td class=\"value\">{}</td><td class=\"text\">[{:.1}–{:.1}]</td><td class=\"value\">{}</td><td \
             class=\"text\">{}</td><td class=\"text\">{}</td></tr>\n",
            escape(&size(of.bytes)),
            words::keep(&format!("{:.1} %", of.hits.value * 100.0)),
            of.hits.low * 100.0,
            of.hits.high * 100.0,
            interval(speed_up.map(|s| words::keep(&format!("{} ×", words::ratio(s.value))))),
            interval(speed_up.map(|s| words::ratio_interval(s.low, s.high))),
            escape(beside),
        )
    };
    let rows: String = advice.sizes.iter().enumerate().map(row).collect();
    format!(
        "<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">flash cache</th><th scope=\"col\">reads served</th><th class=\"text\" \
         scope=\"col\">interval</th><th scope=\"col\">as fast</th><th class=\"text\" scope=\"col\">interval</th><th \
         class=\"text\"></th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n"
    )
}
