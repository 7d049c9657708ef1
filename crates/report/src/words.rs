//! Numbers and times as people read them. The one place that rounds; every other file asks here.

use units::Nanos;

/// Holds a number and its unit together when lines are folded.
const NBSP: char = '\u{a0}';

/// A text whose blanks do not break.
pub fn keep(text: &str) -> String {
    text.replace(' ', "\u{a0}")
}

/// The text with ordinary blanks, for terminals and programs.
pub fn plain(text: &str) -> String {
    text.replace(NBSP, " ")
}

/// A rate or another amount with four significant digits and thousands separators: `61,230`, `983`, `35.6`, `4.25`.
pub fn amount(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let size = value.abs();
    if size >= 999.5 {
        let step = 10f64.powi(size.log10().floor() as i32 - 3);
        return thousands((value / step).round() * step);
    }
    match size {
        s if s >= 99.95 => format!("{value:.0}"),
        s if s >= 9.995 => format!("{value:.1}"),
        s if s >= 0.01 || s == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.1e}"),
    }
}

/// Megabytes per second; what is next to nothing beside a device's other traffic (a few blocks in all) is `0`.
pub fn megabytes(value: f64) -> String {
    if value.abs() < 0.05 { "0".to_owned() } else { amount(value) }
}

/// A whole number with thousands separators.
pub fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut out = String::new();
    if value < 0.0 {
        out.push('−');
    }
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// An amount in few characters, for axes: `800`, `1.5k`, `64k`, `2.2M`.
pub fn short(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        v if v >= 999_500_000.0 => (value / 1e9, "G"),
        v if v >= 999_500.0 => (value / 1e6, "M"),
        v if v >= 9_999.5 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let text = match scaled.abs() {
        v if v >= 99.95 || (v.fract() < 0.005 && v >= 1.0) => {
            if unit.is_empty() && v >= 1_000.0 {
                thousands(scaled)
            } else {
                format!("{scaled:.0}")
            }
        }
        v if v >= 9.995 => trim(&format!("{scaled:.1}")),
        _ => trim(&format!("{scaled:.2}")),
    };
    format!("{text}{unit}")
}

/// An amount in few characters that keeps small ones apart: `0.034`, `1.25`, `12.5`, `1,234`, `64k`.
pub fn short_fine(value: f64) -> String {
    match value.abs() {
        v if v >= 99.95 => short(value.round()),
        v if v >= 0.0005 => ratio(value),
        _ => "0".to_owned(),
    }
}

/// An amount for an axis that may reach below one: `0.05`, `2.5`, `64k`.
pub fn short_tick(value: f64) -> String {
    if value.abs() >= 1.0 || value == 0.0 { short(value) } else { trim(&format!("{value:.4}")) }
}

/// An amount in a column of times, some of which are very short: `508`, `1.18`, `0.009`.
pub fn fine(value: f64) -> String {
    if value >= 0.0995 { amount(value) } else { format!("{value:.3}") }
}

/// Average active sessions: `8.47`, `0.03`, `12.5`.
pub fn sessions(value: f64) -> String {
    if value >= 9.995 { amount(value) } else { format!("{value:.2}") }
}

/// A latency rounded to two digits, for the axes of powers of two: `1 ms`, `33 ms`.
pub fn latency_round(ns: f64) -> String {
    let step = 10f64.powi(ns.max(1.0).log10().floor() as i32 - 1);
    latency_short((ns / step).round() * step)
}

fn trim(text: &str) -> String {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text.to_owned()
    }
}

/// A ratio: `13.5`, `1.84`, `0.97`, `0.034`.
pub fn ratio(value: f64) -> String {
    match value {
        v if !v.is_finite() => "–".to_owned(),
        v if v >= 99.95 => thousands(v),
        v if v >= 9.995 => format!("{v:.1}"),
        v if v >= 0.0995 => format!("{v:.2}"),
        v => format!("{v:.3}"),
    }
}

/// `[1.71–1.98]`.
pub fn ratio_interval(low: f64, high: f64) -> String {
    format!("[{}–{}]", ratio(low), ratio(high))
}

/// `[59,800–62,700]`.
pub fn amount_interval(low: f64, high: f64) -> String {
    format!("[{}–{}]", amount(low), amount(high))
}

/// A share as a percentage with enough digits to tell 99.9 from 99.99: `90 %`, `99.3 %`, `99.95 %`.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    let from_end = 100.0 - value;
    let text = match from_end {
        d if (0.0..0.1).contains(&d) => format!("{value:.2}"),
        d if (0.1..10.0).contains(&d) => format!("{value:.1}"),
        _ if value.abs() < 10.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    };
    format!("{}{NBSP}%", trim(&text))
}

/// A share among others, of which some are very small: `86 %`, `< 0.1 %`.
pub fn share(share: f64) -> String {
    if share > 0.0 && share < 0.0005 { format!("<{NBSP}0.1{NBSP}%") } else { percent(share) }
}

/// How much more: `84 % more`, `12 % less`, from ratio 1.5 up `1.84 ×`.
pub fn change(value: f64) -> String {
    let percent = (value - 1.0) * 100.0;
    format!("{}{}{NBSP}%", if percent < 0.0 { "−" } else { "+" }, trim(&decimals(percent.abs())))
}

fn decimals(percent: f64) -> String {
    if percent < 10.0 { format!("{percent:.1}") } else { format!("{percent:.0}") }
}

/// A latency in nanoseconds: microseconds below 10 ms.
pub fn latency(ns: f64) -> String {
    if ns.is_finite() && ns >= 0.0 { keep(&Nanos(ns.round() as u64).to_string()) } else { "–".to_owned() }
}

/// A latency for an axis: `10 µs`, `1 ms`, `2 s`.
pub fn latency_short(ns: f64) -> String {
    let (value, unit) = match ns {
        v if v >= 0.9995e9 => (v / 1e9, "s"),
        v if v >= 0.9995e6 => (v / 1e6, "ms"),
        v if v >= 0.9995e3 => (v / 1e3, "µs"),
        v => (v, "ns"),
    };
    format!("{}{NBSP}{unit}", trim(&format!("{value:.2}")))
}

/// A span a person would say: `40 s`, `4 min`, `2 h`.
pub fn span(seconds: f64) -> String {
    match seconds {
        s if !s.is_finite() => "–".to_owned(),
        s if s < 1.0 => format!("{s:.1}{NBSP}s"),
        s if s < 100.0 => format!("{s:.0}{NBSP}s"),
        s if s < 5_400.0 => format!("{:.0}{NBSP}min", s / 60.0),
        s => format!("{:.1}{NBSP}h", s / 3_600.0),
    }
}

/// `2026-11-21T09:30:00Z` → `2026-11-21 09:30 UTC`; anything else as it is.
pub fn moment(utc: &str) -> String {
    match (utc.get(..10), utc.get(10..11), utc.get(11..16)) {
        (Some(day), Some("T"), Some(time)) => format!("{day} {time} UTC"),
        _ => utc.to_owned(),
    }
}

/// `1 block`, `4 blocks`.
pub fn count(n: usize, one: &str) -> String {
    match n {
        1 => format!("1 {one}"),
        _ if one.ends_with("ch") || one.ends_with("ss") => format!("{} {one}es", thousands(n as f64)),
        _ => format!("{} {one}s", thousands(n as f64)),
    }
}

/// A unit that fits the head of a column.
pub fn unit(unit: &str) -> &str {
    if unit == "transactions/s" { "tx/s" } else { unit }
}

/// `a`, `a and b`, `a, b and c`.
pub fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

/// `run commit`, `calibrate`: the command with its case.
pub fn what(kind: &str, case: Option<&str>) -> String {
    case.map_or_else(|| kind.to_owned(), |case| format!("{kind} {case}"))
}

/// First letter in upper case.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The figure of a footnote: `¹`, `¹²`.
pub fn superscript(n: usize) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    n.to_string().bytes().map(|b| DIGITS[usize::from(b - b'0')]).collect()
}

/// The figures of several footnotes: `¹˒³`.
pub fn superscripts(numbers: &[usize]) -> String {
    numbers.iter().map(|n| superscript(*n)).collect::<Vec<_>>().join("˒")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_four_digits() {
        for (value, text) in [
            (225_981.0, "226,000"),
            (61_234.0, "61,230"),
            (9_973.4, "9,973"),
            (999.6, "1,000"),
            (983.2, "983"),
            (35.63, "35.6"),
            (4.254, "4.25"),
            (0.0, "0.00"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(amount(value), text);
        }
    }

    #[test]
    fn axes_are_short() {
        for (value, text) in [
            (1.0, "1"),
            (2.5, "2.5"),
            (800.0, "800"),
            (5_000.0, "5,000"),
            (10_000.0, "10k"),
            (64_000.0, "64k"),
            (2_200_000.0, "2.2M"),
        ] {
            assert_eq!(short(value), text);
        }
        for (ns, text) in
            [(500.0, "500 ns"), (10_000.0, "10 µs"), (1e6, "1 ms"), (2.5e6, "2.5 ms"), (2e9, "2 s")]
        {
            assert_eq!(plain(&latency_short(ns)), text);
        }
    }

    #[test]
    fn ratios_shares_and_changes() {
        for (value, text) in [(13.47, "13.5"), (1.839, "1.84"), (0.0341, "0.034"), (140.2, "140")] {
            assert_eq!(ratio(value), text);
        }
        for (share, text) in
            [(0.9, "90 %"), (0.993, "99.3 %"), (0.9995, "99.95 %"), (0.05, "5 %"), (1.0, "100 %")]
        {
            assert_eq!(plain(&percent(share)), text);
        }
        for (value, text) in [(1.046, "+4.6 %"), (0.88, "−12 %"), (1.5, "+50 %")] {
            assert_eq!(plain(&change(value)), text);
        }
    }

    #[test]
    fn lists_and_moments() {
        let names = |n: usize| ["a", "b", "c"][..n].iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(list(&names(1)), "a");
        assert_eq!(list(&names(3)), "a, b and c");
        assert_eq!(moment("2026-11-21T09:30:00Z"), "2026-11-21 09:30 UTC");
        assert_eq!(superscript(12), "¹²");
        assert_eq!(count(1, "block"), "1 block");
        assert_eq!(plain(&span(222.0)), "4 min");
    }
}
