//! Ranked configurations on the page: heat map, ranked bars, what the factors do.

use super::compare::{anchor, level, sign};
use super::marks;
use crate::chart::cell;
use crate::chart::interaction::InteractionChart;
use crate::chart::{escape, ranked};
use crate::model::compare::{Comparison, Workload};
use crate::model::factors::Effects;
use crate::model::ranked as said;
use crate::words;
use stats::interval;
use stats::rank::{Group, Ranking};
use stats::verdict::{Decision, Verdict};

/// A cell at this share of the best or above is in the first step of the heat map, and so on.
const STEPS: [(f64, &str); 7] = [
    (0.97, "within 3 %"),
    (0.9, "to 0.9"),
    (0.75, "to 0.75"),
    (0.6, "to 0.6"),
    (0.4, "to 0.4"),
    (0.2, "to 0.2"),
    (0.0, "below"),
];
/// Levels along the axis of an interaction plot, and lines in it, that can still be read.
const PLOT_LEVELS_MAX: usize = 10;
const PLOT_LINES_MAX: usize = 6;

pub(super) fn sections(comparison: &Comparison) -> String {
    let mut out = heat_map(comparison);
    out.push_str("<section id=\"ranks\">\n<h2>Ranked</h2>\n<p class=\"note\">Bars: ratio to the best with its interval over blocks (paired). Groups are \
                  read from above: inside one, nobody is shown to be better than another. Words are corrected for the number of pairs, intervals are \
                  those of the pair alone. CV: how unsteady the rate is from slice to slice.</p>\n");
    for workload in told(comparison) {
        out.push_str(&bars(comparison, workload));
    }
    out.push_str("</section>\n");
    out + &effects(comparison)
}

/// The mix, then workloads of the first page.
fn told(comparison: &Comparison) -> impl Iterator<Item = &Workload> {
    let mix = comparison.mix.as_ref().ok().map(|mix| &mix.workload);
    let all = mix.into_iter().chain(comparison.workloads.iter().filter(|w| w.headline));
    all.filter(|w| w.ranking.is_some())
}

/// Step of the heat map for a share of the best.
fn step(share: f64) -> usize {
    STEPS.iter().position(|(least, _)| share >= *least).unwrap_or(STEPS.len() - 1)
}

fn heat_map(comparison: &Comparison) -> String {
    let mix = comparison.mix.as_ref().ok().map(|mix| &mix.workload);
    let workloads: Vec<&Workload> = mix.into_iter().chain(&comparison.workloads).collect();
    let heads: String = workloads
        .iter()
        .map(|w| {
            let title = if w.name == "mix" { "your mix" } else { &w.title };
            format!("<th scope=\"col\"><a href=\"#{}\">{}</a></th>", anchor(w), escape(title))
        })
        .collect();
    let rows: String = (0..comparison.configurations.len())
        .map(|i| {
            let cells: String = workloads.iter().map(|w| heat(comparison, w, i)).collect();
            format!(
                "<tr><th scope=\"row\"><a href=\"#c-{i}\">{}</a></th>{cells}</tr>\n",
                escape(&comparison.configurations[i].name)
            )
        })
        .collect();
    let legend: String = STEPS
        .iter()
        .enumerate()
        .map(|(i, (_, text))| format!("<li><i class=\"heat heat-{i}\"></i>{text}</li>"))
        .collect();
    format!(
        "<section id=\"overview\">\n<h2>Ratio to the best of each workload</h2>\n<ul class=\"legend\">{legend}<li>● best, = shown to be as \
         good, ? not decided against the best</li></ul>\n<div class=\"scroll\"><table class=\"heat\">\n<thead><tr><th></th>{heads}</tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div>\n</section>\n"
    )
}

fn heat(comparison: &Comparison, workload: &Workload, index: usize) -> String {
    let cell = &workload.cells[index];
    let Some((ratio, decision)) = workload.to_best(index) else {
        let why = cell.not_compared.clone().or_else(|| workload.undecided.clone()).unwrap_or_default();
        let text = if cell.withdrawn() { "withdrawn" } else { "–" };
        return format!("<td class=\"none\" title=\"{}\">{text}{}</td>", escape(&why), marks(&cell.marks));
    };
    let (mark, class) = match decision.map(|d| d.verdict) {
        None => ("● ", " best"),
        Some(Verdict::Same) => ("= ", ""),
        Some(Verdict::Unknown) => ("? ", ""),
        Some(_) => ("", ""),
    };
    let tip = decision.map_or_else(
        || format!("{}, {}: the best", comparison.configurations[index].name, workload.title),
        |d| {
            let interval = words::ratio_interval(d.ratio.low, d.ratio.high);
            let name = &comparison.configurations[index].name;
            format!(
                "{name}, {}: {} {interval} of the best ({})",
                workload.title,
                words::ratio(ratio),
                d.reason
            )
        },
    );
    format!(
        "<td class=\"heat-{}{class}\" title=\"{}\">{mark}{}{}</td>",
        step(workload.goodness(ratio)),
        escape(&tip),
        words::ratio(ratio),
        marks(&cell.marks)
    )
}

fn bars(comparison: &Comparison, workload: &Workload) -> String {
    let Some(ranking) = &workload.ranking else { return String::new() };
    let ends = ranking.order.iter().filter_map(|i| workload.to_best(*i)?.1);
    let largest = ends.map(|d| d.ratio.high.min(2.0 * d.ratio.value)).fold(1.0, f64::max);
    let scale = ranked::scale(largest * 1.02);
    let mut rows = String::new();
    let mut place = 0;
    for (tier, group) in ranking.groups.iter().enumerate() {
        if group.members.len() > 1 {
            rows.push_str(&format!(
                "<tr class=\"tier\"><th colspan=\"7\" scope=\"rowgroup\">{}</th></tr>\n",
                escape(&about(comparison, group))
            ));
        }
        for index in &group.members {
            place += 1;
            rows.push_str(&row(comparison, workload, *index, place, tier, &scale));
        }
    }
    let title = if workload.name == "mix" { "Your mix".into() } else { words::capital(&workload.title) };
    format!(
        concat!(
            "<section class=\"panel\" id=\"rank-{id}\">\n<h3>{title}</h3>\n<p class=\"say\">{say}.</p>\n<div class=\"scroll\"><table ",
            "class=\"bars ranked\">\n<colgroup><col style=\"width:5%\"><col style=\"width:22%\"><col style=\"width:9%\"><col style=\"width:27%\">",
            "<col style=\"width:17%\"><col style=\"width:12%\"><col style=\"width:8%\"></colgroup>\n<thead><tr><th scope=\"col\">rank</th><th ",
            "class=\"text\" scope=\"col\">configuration</th><th scope=\"col\">{metric}</th><th class=\"draw\">{axis}</th><th class=\"text\" scope=\"col\">",
            "to the best</th><th class=\"text\" scope=\"col\">verdict</th><th scope=\"col\">CV</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n",
            "{pairs}</section>\n"
        ),
        id = anchor(workload),
        title = escape(&title),
        say = super::sentence(&said::of(comparison, workload)),
        metric = escape(words::unit(&workload.metric)),
        axis = cell::axis(&scale, ranked::WIDTH, 5, words::short),
        rows = rows,
        pairs = pairs(comparison, ranking),
    )
}

/// What holds inside a group of several.
fn about(comparison: &Comparison, group: &Group) -> String {
    if group.same {
        format!("do not differ by {} or more", words::percent(comparison.rule.delta))
    } else {
        format!("not told apart; {}", said::would_take(comparison, group.blocks_needed))
    }
}

fn row(
    comparison: &Comparison,
    workload: &Workload,
    index: usize,
    place: usize,
    tier: usize,
    scale: &crate::chart::Scale,
) -> String {
    let cell = &workload.cells[index];
    let (ratio, decision) = workload.to_best(index).unwrap_or((f64::NAN, None));
    let class = if tier.is_multiple_of(2) { "rank-odd" } else { "rank-even" };
    let text = decision.map_or_else(
        || "1".to_owned(),
        |d| format!("{} {}", words::ratio(ratio), words::ratio_interval(d.ratio.low, d.ratio.high)),
    );
    let verdict = decision.map_or_else(|| "best".to_owned(), word);
    let interval = decision.map(|d| (d.ratio.low, d.ratio.high));
    format!(
        "<tr><td>{place}</td><th class=\"text\" scope=\"row\" title=\"{name}\">{name}</th><td class=\"value\">{}</td><td class=\"draw\">{}</td><td \
         class=\"text\">{text}</td><td class=\"text\">{verdict}{}</td><td>{}</td></tr>\n",
        level(cell),
        ranked::bar(scale, ratio, interval, class, &text),
        marks(&cell.marks),
        cell.unsteadiness.map_or_else(|| "–".into(), words::percent),
        name = escape(&comparison.configurations[index].name),
    )
}

fn word(decision: &Decision) -> String {
    let title = match (decision.verdict, decision.blocks_needed) {
        (Verdict::Unknown, Some(blocks)) if blocks < 1_000 => {
            format!("about {} would decide", words::count(blocks.max(1), "more block"))
        }
        _ => decision.reason.to_string(),
    };
    let verdict = decision.verdict;
    format!(
        "<span class=\"v-{}\" title=\"{}\">{} {verdict}</span>",
        cell::class(verdict),
        escape(&title),
        sign(verdict)
    )
}

/// Every pair: the later of the order against the earlier.
fn pairs(comparison: &Comparison, ranking: &Ranking) -> String {
    if ranking.order.len() < 3 {
        return String::new();
    }
    let heads: String = ranking
        .order
        .iter()
        .enumerate()
        .map(|(i, c)| {
            format!(
                "<th scope=\"col\" title=\"{}\">{}</th>",
                escape(&comparison.configurations[*c].name),
                i + 1
            )
        })
        .collect();
    let rows: String = ranking
        .order
        .iter()
        .enumerate()
        .map(|(i, later)| {
            let cells: String = ranking
                .order
                .iter()
                .enumerate()
                .map(|(j, earlier)| match ranking.pair(*earlier, *later) {
                    Some(d) if j < i => {
                        format!("<td title=\"{}\">{}</td>", escape(&pair_tip(d)), sign(d.verdict))
                    }
                    _ => "<td></td>".into(),
                })
                .collect();
            format!(
                "<tr><th scope=\"row\">{} {}</th>{cells}</tr>\n",
                i + 1,
                escape(&comparison.configurations[*later].name)
            )
        })
        .collect();
    format!(
        "<details><summary>Every pair: the row against the column</summary><div class=\"scroll\"><table class=\"pairs\" \
         style=\"width:auto\">\n<thead><tr><th></th>{heads}</tr></thead>\n<tbody>\n{rows}</tbody></table></div></details>\n"
    )
}

fn pair_tip(d: &Decision) -> String {
    let p = d.p_holm.map_or_else(String::new, |p| format!(", p {p:.3} after correction"));
    format!(
        "{} × {} ({}{p})",
        words::ratio(d.ratio.value),
        words::ratio_interval(d.ratio.low, d.ratio.high),
        d.reason
    )
}

fn effects(comparison: &Comparison) -> String {
    let of: Vec<(&Workload, &Effects)> = comparison
        .workloads
        .iter()
        .filter(|w| w.headline && comparison.placements.is_empty())
        .filter_map(|w| Some((w, w.effects.as_ref()?)))
        .collect();
    if of.is_empty() {
        return String::new();
    }
    let panels: String = of.iter().map(|(w, e)| effect_panel(comparison, w, e)).collect();
    format!(
        "<section id=\"effects\">\n<h2>What each factor does</h2>\n<p class=\"note\">A level against the baseline's, averaged over the settings of the \
         other factors that have both. Lines that run side by side: the one factor does not care about the other.</p>\n{panels}</section>\n"
    )
}

fn effect_panel(comparison: &Comparison, workload: &Workload, effects: &Effects) -> String {
    let rows: String = effects
        .main
        .iter()
        .map(|e| {
            let factor = &comparison.factors[e.factor];
            let r = &e.decision.ratio;
            format!(
                "<tr><th scope=\"row\">{} {}</th><td class=\"text\">{}</td><td class=\"text\">{} {}</td><td class=\"text\">{}</td><td>{}</td></tr>\n",
                escape(&factor.name),
                escape(&factor.levels[e.level]),
                escape(&factor.levels[e.reference]),
                words::ratio(r.value),
                words::ratio_interval(r.low, r.high),
                word(&e.decision),
                e.settings,
            )
        })
        .collect();
    let said: String = said::effects(comparison, workload)
        .iter()
        .map(|text| format!("<p class=\"say\">{}</p>\n", super::sentence(text)))
        .collect();
    format!(
        "<section class=\"panel\">\n<h3>{}</h3>\n{said}<div class=\"scroll\"><table>\n<thead><tr><th></th><th class=\"text\" scope=\"col\">instead \
         of</th><th class=\"text\" scope=\"col\">ratio</th><th class=\"text\" scope=\"col\">verdict</th><th scope=\"col\">settings</th></tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div>\n{}</section>\n",
        escape(&words::capital(&workload.title)),
        plots(comparison, workload)
    )
}

/// A plot for each pair of factors that few enough levels allow.
fn plots(comparison: &Comparison, workload: &Workload) -> String {
    let points = comparison.points();
    let values = workload.values();
    let count = comparison.factors.len();
    let pairs = (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b)));
    pairs
        .map(|(a, b)| {
            // The factor with more levels runs along the axis.
            let wide = comparison.factors[a].levels.len() >= comparison.factors[b].levels.len();
            if wide { (a, b) } else { (b, a) }
        })
        .filter(|(a, b)| {
            let levels = |f: usize| comparison.factors[f].levels.len();
            levels(*a) <= PLOT_LEVELS_MAX && levels(*b) <= PLOT_LINES_MAX
        })
        .map(|(a, b)| {
            let (along, other) = (&comparison.factors[a], &comparison.factors[b]);
            let at = |x: usize, line: usize| -> Option<(f64, f64, f64)> {
                let of: Vec<usize> =
                    (0..points.len()).filter(|i| points[*i][a] == x && points[*i][b] == line).collect();
                let blocks = values.first().map_or(0, Vec::len);
                let mean = |block: usize| -> Option<f64> {
                    let logs: Option<Vec<f64>> = of.iter().map(|i| values[*i][block].map(f64::ln)).collect();
                    logs.filter(|l| !l.is_empty()).map(|l| stats::sample::mean(&l).exp())
                };
                let known: Vec<f64> = (0..blocks).filter_map(mean).collect();
                let i = interval::absolute(&known, 0.95, 0.0).ok()?;
                Some((i.value, i.low, i.high.min(2.0 * i.value)))
            };
            let lines = other
                .levels
                .iter()
                .enumerate()
                .map(|(line, name)| (name.as_str(), (0..along.levels.len()).map(|x| at(x, line)).collect()))
                .collect();
            let chart = InteractionChart {
                factor: &along.name,
                levels: &along.levels,
                other: &other.name,
                lines,
                unit: words::unit(&workload.metric),
            };
            format!("<figure class=\"narrow\"><div class=\"scroll\">{}</div></figure>\n", chart.draw())
        })
        .collect()
}
