//! What is said of ranked configurations: who does not differ, who is how much slower, what a factor does and where.

use super::compare::{Cell, Comparison, Workload};
use super::sentence::Answer;
use super::{nodes, passes};
use crate::words;
use stats::rank::{Effect, Group};
use stats::verdict::{Decision, Verdict};

/// Groups that are told one by one; what is behind them is counted.
const GROUPS_MAX: usize = 6;
/// Effects of factors that are said at the head of a report; all stand in their own section.
const EFFECTS_MAX: usize = 4;
/// Steadiness is worth a sentence when the least steady has so many times the variation of the steadiest, and at least so much.
const UNSTEADY_RATIO: f64 = 2.0;
const UNSTEADY_MIN: f64 = 0.1;

/// The answer of a comparison of general configurations.
pub fn answer(comparison: &Comparison) -> Option<Answer> {
    // Where files lie, and what a flash cache does, are questions of their own; all else is answered for the mix first.
    if let Some(answer) = scanned_again(comparison) {
        return Some(answer);
    }
    if let Some(answer) = moved(comparison) {
        return Some(answer);
    }
    let routed = nodes::sentences(comparison);
    let ranked = ranking(comparison);
    let Some((headline, rest)) = routed.split_first() else { return ranked };
    let (first, more) = ranked.map(|answer| (answer.headline, answer.more)).unzip();
    let more = rest.iter().cloned().chain(first).chain(more.into_iter().flatten());
    Some(Answer { headline: headline.clone(), more: more.collect() })
}

/// Who stands where, and what the factors do.
fn ranking(comparison: &Comparison) -> Option<Answer> {
    let ranked = comparison.workloads.iter().filter(|w| w.headline && w.ranking.is_some());
    let mix = comparison.mix.as_ref().ok().map(|mix| &mix.workload).filter(|w| w.ranking.is_some());
    let mut told = mix.into_iter().chain(ranked);
    let first = told.next()?;
    let sentence = |w: &Workload| format!("{}: {}.", words::capital(&w.title), of(comparison, w));
    let rest: Vec<&Workload> = told.collect();
    let effects = [first].into_iter().chain(rest.iter().copied()).find_map(|w| {
        let said = effects(comparison, w);
        (!said.is_empty()).then_some(said)
    });
    let effects = effects.into_iter().flatten().take(EFFECTS_MAX);
    // What varies over time is no work of its own. Devices that are told apart are told of for each workload.
    let own = |w: &&Workload| w.name != "mix" && !w.name.ends_with("-variation");
    let most = if comparison.tells_devices_apart() { usize::MAX } else { 1 };
    let measured = [first].into_iter().chain(rest.iter().copied()).filter(own).take(most);
    let asides: Vec<String> =
        measured.flat_map(|w| [bottlenecks(comparison, w), steadiness(comparison, w)]).flatten().collect();
    let sentences = rest.into_iter().map(sentence);
    let more = effects.chain(sentences).chain(asides).collect();
    Some(Answer { headline: sentence(first), more })
}

/// Whether a flash cache pays, then what the second pass of a scan finds in it.
fn scanned_again(comparison: &Comparison) -> Option<Answer> {
    let cached = comparison.passes.iter().filter(|passes| passes.flash);
    let told = cached.flat_map(|passes| passes.sentences(comparison));
    let mut all = passes::pays(comparison).into_iter().chain(told);
    Some(Answer { headline: all.next()?, more: all.collect() }).filter(|_| !comparison.passes.is_empty())
}

/// Which one move pays: of the first workload everything that explains it, of the others the move and its reason.
fn moved(comparison: &Comparison) -> Option<Answer> {
    let mut all = comparison.placements.iter().filter_map(|placement| {
        let title = words::capital(&comparison.workloads[placement.workload].title);
        let mut sentences = placement.sentences(comparison).into_iter();
        let pays = format!("{title}: {}", sentences.next()?);
        Some((pays, sentences.collect::<Vec<_>>()))
    });
    let (headline, mut more) = all.next()?;
    for (pays, reasons) in all {
        more.push(pays);
        more.extend(reasons.into_iter().take(2));
    }
    Some(Answer { headline, more })
}

fn names(comparison: &Comparison, members: &[usize]) -> String {
    words::list(&members.iter().map(|i| comparison.said(*i)).collect::<Vec<_>>())
}

/// `xfs and ext4 do not differ; ext3 is 38 % slower [35 %–41 %]`, without the full stop.
pub fn of(comparison: &Comparison, workload: &Workload) -> String {
    let Some(ranking) = &workload.ranking else { return "nothing to rank".into() };
    let mut parts: Vec<String> = Vec::new();
    for (place, group) in ranking.groups.iter().enumerate().take(GROUPS_MAX) {
        parts.push(match place {
            0 => leading(comparison, group, ranking.groups.len()),
            _ => behind(comparison, workload, group),
        });
    }
    let rest: usize = ranking.groups.iter().skip(GROUPS_MAX).map(|g| g.members.len()).sum();
    if rest > 0 {
        parts.push(format!("{} behind them", words::count(rest, "more configuration")));
    }
    parts.join("; ")
}

fn leading(comparison: &Comparison, group: &Group, groups: usize) -> String {
    let who = names(comparison, &group.members);
    match group.members.as_slice() {
        [_] if groups == 1 => who,
        [_] => format!("{who} is best"),
        _ if group.same => format!("{who} do not differ"),
        _ => format!("{who} are not told apart ({})", would_take(comparison, group.blocks_needed)),
    }
}

/// How long it would take to decide.
pub fn would_take(comparison: &Comparison, blocks: Option<usize>) -> String {
    match blocks {
        Some(blocks) if blocks < 1_000 => format!(
            "about {}, {}, would decide",
            words::count(blocks.max(1), "more block"),
            words::span(comparison.seconds_for(blocks.max(1)))
        ),
        _ => "no affordable number of blocks would decide".into(),
    }
}

fn behind(comparison: &Comparison, workload: &Workload, group: &Group) -> String {
    let who = names(comparison, &group.members);
    let all: Vec<&Decision> = group.members.iter().filter_map(|i| workload.to_best(*i)?.1).collect();
    if !workload.higher_is_better {
        let times = |decision: &&Decision| decision.ratio.value;
        let Some((least, most)) = crate::chart::extent(all.iter().map(times)) else {
            return format!("{who}: not compared with the best");
        };
        let (verb, as_much) = (if group.members.len() == 1 { "has" } else { "have" }, words::ratio(least));
        let to = if least == most { String::new() } else { format!(" to {}", words::ratio(most)) };
        return format!("{who} {verb} {as_much}{to} × as much");
    }
    // Shares that the best is ahead by: estimate, and the ends of the interval, 0.38 for 38 % slower.
    let less = |ratio: f64| 1.0 - workload.goodness(ratio);
    let ends = |d: &&Decision| [less(d.ratio.low).max(0.0), less(d.ratio.high).max(0.0)];
    let values: Vec<f64> = all.iter().map(|d| less(d.ratio.value).max(0.0)).collect();
    let (Some((least, most)), Some((near, far))) =
        (crate::chart::extent(values), crate::chart::extent(all.iter().flat_map(ends)))
    else {
        return format!("{who}: not compared with the best");
    };
    let (least, most, near, far) = (hundredths(least), hundredths(most), hundredths(near), hundredths(far));
    let how_much = if least == most { most } else { format!("{least} to {most}") };
    let verb = if group.members.len() == 1 { "is" } else { "are" };
    format!("{who} {verb} {how_much}\u{a0}% slower [{near}–{far}]")
}

/// A share in percent without its sign: `38`, `4.2`.
fn hundredths(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 9.95 { format!("{percent:.0}") } else { format!("{percent:.1}") }
}

/// Where the bottleneck is: what users' sessions wait for most, where it is not the same under all configurations.
pub fn bottlenecks(comparison: &Comparison, workload: &Workload) -> Option<String> {
    let mut by_event: Vec<(&str, Vec<usize>)> = Vec::new();
    for (index, cell) in workload.cells.iter().enumerate() {
        let Some(top) = cell.spent.as_ref().and_then(|spent| spent.top()) else { continue };
        match by_event.iter_mut().find(|(event, _)| *event == top.name) {
            Some((_, configurations)) => configurations.push(index),
            None => by_event.push((&top.name, vec![index])),
        }
    }
    // Devices that are told apart say where it is, also where everybody waits for the same.
    let apart = comparison.tells_devices_apart();
    if by_event.len() < 2 && !apart {
        return None;
    }
    let under = |i: &usize| match busiest(&workload.cells[*i]).filter(|_| apart) {
        Some(device) => format!("{} ({device})", comparison.said(*i)),
        None => comparison.said(*i),
    };
    let one = |(event, configurations): &(&str, Vec<usize>)| {
        let names = words::list(&configurations.iter().map(under).collect::<Vec<_>>());
        match *event {
            "CPU" => format!("on CPU under {names}"),
            event => format!("in {event} under {names}"),
        }
    };
    let all: Vec<String> = by_event.iter().map(one).collect();
    Some(format!("In {}, sessions spend most of their time {}.", workload.title, words::list(&all)))
}

/// The busiest device of a configuration: `slow device at 98 % of its cap`.
pub fn busiest(cell: &Cell) -> Option<String> {
    let used = cell.devices.iter().filter(|d| d.used()).filter_map(|d| Some((d, d.busy?)));
    let (device, busy) = used.max_by(|a, b| a.1.share.total_cmp(&b.1.share))?;
    let at = if busy.of_cap { "at " } else { "" };
    Some(format!("{} device {at}{}", device.short(), busy.said()))
}

/// The steadiest and the least steady, where they are clearly not alike.
pub fn steadiness(comparison: &Comparison, workload: &Workload) -> Option<String> {
    let all = workload.cells.iter().enumerate().filter_map(|(i, cell)| Some((i, cell.unsteadiness?)));
    let mut all: Vec<(usize, f64)> = all.collect();
    all.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (steady, unsteady) = (all.first()?, all.last()?);
    (unsteady.1 > UNSTEADY_RATIO * steady.1 && unsteady.1 > UNSTEADY_MIN).then(|| {
        format!(
            "{} goes steadiest under {} ({} from slice to slice), least steadily under {} ({}).",
            words::capital(&workload.title),
            comparison.said(steady.0),
            words::percent(steady.1),
            comparison.said(unsteady.0),
            words::percent(unsteady.1)
        )
    })
}

/// What the factors do to a workload: an effect that depends on another factor is told where it is.
pub fn effects(comparison: &Comparison, workload: &Workload) -> Vec<String> {
    let Some(effects) = workload.effects.as_ref().filter(|_| comparison.placements.is_empty()) else {
        return Vec::new();
    };
    let mut said = Vec::new();
    for main in &effects.main {
        let others: Vec<usize> = effects
            .shown()
            .flat_map(|i| [(i.effect, i.other), (i.other, i.effect)])
            .filter(|(effect, _)| *effect == (main.factor, main.level, main.reference))
            .map(|(_, other)| other.0)
            .collect();
        let within: Vec<&Effect> = effects
            .within
            .iter()
            .filter(|e| (e.factor, e.level) == (main.factor, main.level))
            .filter(|e| e.within.is_some_and(|(other, _)| others.contains(&other)))
            .collect();
        match within.is_empty() {
            true if others.is_empty() => said.extend(of_main(comparison, main)),
            true => {}
            false => said.push(of_within(comparison, &within)),
        }
    }
    said
}

/// `setall instead of none: 40 % more [37–43]`.
fn subject(comparison: &Comparison, effect: &Effect) -> String {
    let factor = &comparison.factors[effect.factor];
    format!("{} {} instead of {}", factor.name, factor.levels[effect.level], factor.levels[effect.reference])
}

fn of_main(comparison: &Comparison, effect: &Effect) -> Option<String> {
    let r = &effect.decision.ratio;
    let interval = words::ratio_interval(r.low, r.high);
    let subject = subject(comparison, effect);
    let over = if effect.settings > 1 {
        format!(", on average over {}", words::count(effect.settings, "setting"))
    } else {
        ", in one setting".into()
    };
    match effect.decision.verdict {
        Verdict::Better | Verdict::Worse => {
            Some(format!("{subject}: {} × {interval}{over}.", words::ratio(r.value)))
        }
        Verdict::Same => Some(format!("{subject} makes no difference {interval}{over}.")),
        Verdict::Unknown => None,
    }
}

/// `io setall instead of none helps with fs xfs (1.40 × [1.36–1.44]), not with fs ext3.`
fn of_within(comparison: &Comparison, effects: &[&Effect]) -> String {
    let place = |effect: &Effect| {
        effect.within.map_or_else(String::new, |(other, level)| {
            let factor = &comparison.factors[other];
            format!("{} {}", factor.name, factor.levels[level])
        })
    };
    let with = |verdict: Verdict| -> Vec<String> {
        effects
            .iter()
            .filter(|e| e.decision.verdict == verdict)
            .map(|e| {
                let r = &e.decision.ratio;
                let number =
                    format!("({} × {})", words::ratio(r.value), words::ratio_interval(r.low, r.high));
                match verdict {
                    Verdict::Same | Verdict::Unknown => place(e),
                    _ => format!("{} {number}", place(e)),
                }
            })
            .collect()
    };
    let parts: Vec<String> = [
        (Verdict::Better, "helps with"),
        (Verdict::Worse, "harms with"),
        (Verdict::Same, "makes no difference with"),
        (Verdict::Unknown, "is not decided with"),
    ]
    .into_iter()
    .map(|(verdict, words)| (with(verdict), words))
    .filter(|(places, _)| !places.is_empty())
    .map(|(places, verb)| format!("{verb} {}", words::list(&places)))
    .collect();
    effects.first().map_or_else(String::new, |e| format!("{} {}.", subject(comparison, e), parts.join("; ")))
}
