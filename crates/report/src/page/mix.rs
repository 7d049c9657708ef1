//! "Your mix" on the page: who wins, at which hit ratio it pays, who wins where, what was assumed and what moves it.

use super::compare::{TICKS, absolute_tip, axis, level, ratio_cells, row_class};
use crate::chart::break_even::BreakEvenChart;
use crate::chart::cell;
use crate::chart::escape;
use crate::chart::winners::{Field, WinnersChart};
use crate::model::compare::Comparison;
use crate::model::mix::Pays;
use crate::model::sentence;
use crate::model::weighted::Mix;
use crate::words;
use stats::mix::Winner;

/// The section "Your mix".
pub(super) fn section(comparison: &Comparison, mix: &Mix) -> String {
    let workload = &mix.workload;
    let scale = axis(workload);
    let rows: String = (0..workload.cells.len())
        .map(|i| {
            let cell = &workload.cells[i];
            let limit = mix.bottlenecks[i].filter(|_| !cell.withdrawn()).map_or_else(String::new, |part| part.to_string());
            format!(
                "<tr class=\"{}\"><th scope=\"row\">{}</th><td class=\"value\"{}>{}</td>{}<td class=\"text\">{limit}</td></tr>\n",
                row_class(comparison, workload, i),
                escape(&comparison.configurations[i].name),
                absolute_tip(cell),
                level(cell),
                ratio_cells(comparison, workload, i, &scale),
            )
        })
        .collect();
    let table = format!(
        concat!(
            "<div class=\"scroll\"><table class=\"bars\">\n<colgroup><col style=\"width:16%\"><col style=\"width:12%\">",
            "<col style=\"width:28%\"><col style=\"width:16%\"><col style=\"width:12%\"><col style=\"width:16%\"></colgroup>\n",
            "<thead><tr><th></th><th scope=\"col\">transactions/s</th><th class=\"draw\">{}</th><th class=\"text\" scope=\"col\">ratio</th>",
            "<th class=\"text\" scope=\"col\">verdict</th><th class=\"text\" scope=\"col\">limited by</th></tr></thead>\n<tbody>\n{}</tbody></table></div>\n"
        ),
        cell::axis(&scale, cell::INTERVAL_WIDTH, TICKS, words::short),
        rows
    );
    format!(
        "<section class=\"panel\" id=\"w-mix\">\n<h2>Your mix</h2>\n<p class=\"say\">{}.</p>\n{table}</section>\n{}",
        super::sentence(&words::capital(&sentence::of_workload(comparison, workload))),
        break_even(comparison, mix) + &winners(comparison, mix)
    )
}

fn break_even(comparison: &Comparison, mix: &Mix) -> String {
    let here = mix.workload.cells[mix.leader].decision.as_ref().map_or(1.0, |d| d.ratio.value);
    let (leader, baseline) = (comparison.said(mix.leader), comparison.said(comparison.baseline));
    let chart = BreakEvenChart {
        leader: &leader,
        baseline: &baseline,
        curve: mix.curve.iter().map(|(h, i)| (*h, i.value, i.low, i.high)).collect(),
        others: mix
            .others
            .iter()
            .map(|(i, points)| (comparison.configurations[*i].name.as_str(), points.as_slice()))
            .collect(),
        break_even: mix.break_even(),
        you: (mix.inputs.hit_ratio, here),
        delta: mix.delta,
    };
    format!(
        "<section class=\"panel\" id=\"break-even\">\n<h3>{} <small>speed-up over {} against the buffer cache hit \
         ratio</small></h3>\n<figure><div class=\"scroll\">{}</div></figure>\n<div class=\"two\">\n<div>{}</div>\n<div>{}</div>\n</div>\n</section>\n",
        escape(&sentence::when_it_pays(comparison, mix)),
        escape(&baseline),
        chart.draw(),
        assumptions(comparison, mix),
        sensitivity(mix)
    )
}

/// The map of who wins where, and the winners along the user's own lines.
fn winners(comparison: &Comparison, mix: &Mix) -> String {
    let map = &mix.map;
    if !map.decided() {
        let said: String =
            map.sentences(comparison, &mix.inputs).iter().map(|s| super::sentence(s)).collect();
        return format!(
            "<section class=\"panel\" id=\"winners\">\n<h3>Who wins where</h3>\n<p class=\"say\">{said}</p>\n</section>\n"
        );
    }
    // Letters go to those that win somewhere, alone or with others that do not differ; all together are no winner.
    let measured = mix.workload.cells.iter().filter(|cell| cell.not_compared.is_none()).count();
    let set = |winner: &Option<Winner>| -> Option<Vec<usize>> {
        let mut all = match winner {
            Some(Winner::One(i)) => vec![*i],
            Some(Winner::Same(all)) if all.len() < measured => all.clone(),
            _ => return None,
        };
        all.sort_unstable();
        Some(all)
    };
    let mut letters: Vec<Vec<usize>> = map.cells.iter().flatten().filter_map(set).collect();
    letters.sort();
    letters.dedup();
    let field = |winner: &Option<Winner>| match (winner, set(winner)) {
        (_, Some(set)) => letters.iter().position(|l| *l == set).map_or(Field::Nothing, Field::One),
        (Some(Winner::Unknown(_)), _) => Field::Unknown,
        (Some(_), _) => Field::Same,
        (None, _) => Field::Nothing,
    };
    let names: Vec<String> = letters
        .iter()
        .map(|set| match set.as_slice() {
            [one] => comparison.said(*one),
            [one, more @ ..] => format!("{} +{}", comparison.said(*one), more.len()),
            [] => String::new(),
        })
        .collect();
    let said = map.sentences(comparison, &mix.inputs);
    let chart = WinnersChart {
        hits: &map.hits,
        reads: &map.reads,
        fields: map.cells.iter().map(|row| row.iter().map(field).collect()).collect(),
        names: names.iter().map(String::as_str).collect(),
        you: (mix.inputs.hit_ratio, mix.inputs.read_share),
        description: said.join(" "),
    };
    let said: String =
        said.iter().map(|s| format!("<p class=\"say\">{}</p>\n", super::sentence(s))).collect();
    format!(
        "<section class=\"panel\" id=\"winners\">\n<h3>Who wins where <small>by hit ratio and share of reads, everything else as in your \
         mix</small></h3>\n{said}<figure><div class=\"scroll\">{}</div></figure>\n</section>\n",
        chart.draw()
    )
}

fn assumptions(comparison: &Comparison, mix: &Mix) -> String {
    let i = &mix.inputs;
    let mut out = format!(
        "<p class=\"note\">Your mix: {}, reads {} of the work, hit ratio {}. So one transaction makes {} physical reads, {} commits and {} block \
         writes. A closed queueing network of the measured curves (reads, log, block writes, CPU) is solved for each block.</p>\n",
        words::count(i.sessions as usize, "session"),
        words::percent(i.read_share),
        words::percent(i.hit_ratio),
        words::ratio(i.misses()),
        words::ratio(i.commits),
        words::ratio(i.writes())
    );
    for (heading, sentences) in [("Given:", &mix.said), ("Assumed:", &mix.assumptions)] {
        let items: String = sentences.iter().map(|a| format!("<li>{}</li>\n", escape(a))).collect();
        if !items.is_empty() {
            out.push_str(&format!("<p class=\"note\">{heading}</p>\n<ul class=\"note\">\n{items}</ul>\n"));
        }
    }
    let hand = match mix.pays_by_hand {
        Pays::Nowhere => "it pays nowhere".into(),
        Pays::Between { from: None, to: None } => "it always pays".into(),
        Pays::Between { from: None, to: Some(h) } => format!("it pays below {}", words::percent(h)),
        Pays::Between { from: Some(h), to: None } => format!("it pays above {}", words::percent(h)),
        Pays::Between { from: Some(from), to: Some(to) } => {
            format!("it pays between {} and {}", words::percent(from), words::percent(to))
        }
    };
    out.push_str(&format!("<p class=\"note\">By hand, for one session, from latencies alone: {hand}.</p>\n"));
    if let Some(share) = mix.page_cache_break_even {
        out.push_str(&format!(
            "<p class=\"note\">If the page cache caught more than {} of the misses of {}, its reads would be the faster ones.</p>\n",
            words::percent(share),
            escape(&comparison.said(comparison.baseline))
        ));
    }
    out
}

fn sensitivity(mix: &Mix) -> String {
    let rows: String = mix
        .sensitivity
        .iter()
        .map(|s| {
            let flips = if s.flips { " <b>changes the answer</b>" } else { "" };
            format!(
                "<tr><th scope=\"row\">{}{flips}</th><td>{} ×</td><td>{} ×</td></tr>\n",
                escape(s.input),
                words::ratio(s.lower),
                words::ratio(s.higher)
            )
        })
        .collect();
    format!(
        "<table>\n<caption class=\"note\" style=\"text-align:left\">What moves this verdict: speed-up with each input a tenth lower and \
         higher</caption>\n<thead><tr><th></th><th scope=\"col\">−10 %</th><th scope=\"col\">+10 %</th></tr></thead>\n<tbody>\n{rows}</tbody></table>"
    )
}
