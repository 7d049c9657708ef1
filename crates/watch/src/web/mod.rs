//! The same board for a browser: as JSON, and the page that draws it.
//!
//! The page holds what the user chose and sends it as a query ([`view`]); it gets boards ([`board`]) as server-sent events. Who
//! serves them is not here.

use crate::board::{Board, Entry, Paint, Rates};
use crate::class;
use crate::draw::{Subject, Times};
use crate::history::History;
use crate::view::{Step, View};
use std::fmt::Write;
use units::Nanos;

/// The page; its style and its script are in it.
pub const PAGE: &str = include_str!("page.html");

/// Columns of time that a page gets.
pub const COLUMNS: usize = 150;
/// Lines of each list.
const LINES_MAX: usize = 12;
const DEVICES_MAX: usize = 3;
/// Nobody asks for later than that, a hundred years: sums of times stay far from their end.
const TIME_MAX_MS: u64 = 100 * 366 * 86_400 * 1_000;
/// Nor for more steps: there are five kinds, and one within itself says nothing new.
const STEPS_MAX: usize = 16;

/// What a page's query asks for: `window=2&end=MS&from=MS&to=MS&drill=c6-e3&background=1`; what it leaves out is live.
pub fn view(query: &str) -> View {
    let value = |name: &str| {
        query.split('&').filter_map(|pair| pair.split_once('=')).find(|(n, _)| *n == name).map(|(_, v)| v)
    };
    let time = |name: &str| value(name).and_then(|v| v.parse().ok()).map(ms);
    let drill = value("drill").unwrap_or_default().split('-').filter_map(step).take(STEPS_MAX).collect();
    View::asked(
        value("window").and_then(|v| v.parse().ok()),
        time("end"),
        time("from").zip(time("to")),
        drill,
        value("background") == Some("1"),
    )
}

fn ms(value: u64) -> Nanos {
    Nanos::millis(value.min(TIME_MAX_MS))
}

/// A step as one word.
fn code(step: Step) -> String {
    match step {
        Step::Class(class) => format!("c{}", class::index(class)),
        Step::Event(id) => format!("e{id}"),
        Step::Session(number, program) => format!("s{number}.{program}"),
        Step::Statement(id) => format!("q{id}"),
        Step::File(id) => format!("f{id}"),
    }
}

fn step(word: &str) -> Option<Step> {
    let mut characters = word.chars();
    let kind = characters.next()?;
    let rest = characters.as_str();
    Some(match kind {
        'c' => Step::Class(*class::ALL.get(rest.parse::<usize>().ok()?)?),
        'e' => Step::Event(rest.parse().ok()?),
        's' => {
            let (number, program) = rest.split_once('.')?;
            Step::Session(number.parse().ok()?, program.parse().ok()?)
        }
        'q' => Step::Statement(rest.parse().ok()?),
        'f' => Step::File(rest.parse().ok()?),
        _ => return None,
    })
}

/// Everything that the page draws. Times are milliseconds of the history's time.
pub fn board(board: &Board, subject: &Subject, history: &History, view: &View) -> String {
    let at = |t: Nanos| (t.0 / 1_000_000).to_string();
    let zero = match subject.times {
        Times::Utc(zero) => (zero * 1000).to_string(),
        Times::Since => "null".into(),
    };
    let notices = history.notices().iter().rev().take(5);
    let bands = board.bands.iter().map(|band| {
        let paint = match band.paint {
            Paint::Class(class) => format!("c{}", class::index(class)),
            Paint::Event(n) => format!("v{n}"),
        };
        let step = band.step.map_or("null".into(), |step| text(&code(step)));
        let (name, mean) = (text(&band.name), number(band.mean));
        object(&[("name", name), ("paint", text(&paint)), ("mean", mean), ("step", step)])
    });
    let columns = board.columns.iter().map(|column| match column {
        Some(heights) => array(heights.iter().map(|height| number(*height))),
        None => "null".into(),
    });
    let lists = board.lists.iter().zip(crate::view::List::ALL).map(|(top, list)| {
        let rows = array(top.rows.iter().take(LINES_MAX).map(entry));
        object(&[("name", text(list.name())), ("empty", text(top.empty)), ("rows", rows)])
    });
    let devices = board.devices.iter().take(DEVICES_MAX).map(|device| {
        let columns = device.columns.iter().map(|r| r.as_ref().map_or("null".into(), rates));
        object(&[("name", text(&device.name)), ("columns", array(columns)), ("brush", rates(&device.brush))])
    });
    let path = board.path.iter().zip(view.drill());
    let path = path.map(|(words, step)| array([text(&code(*step)), text(words)]));
    object(&[
        ("title", text(&subject.title)),
        ("state", text(&subject.state)),
        ("trouble", subject.trouble.to_string()),
        ("cpus", subject.cpus.map_or("null".into(), number)),
        ("high", number(board.top(subject.cpus))),
        ("noDevices", text(&subject.no_devices)),
        ("doubts", array(subject.doubts.iter().map(|doubt| text(doubt)))),
        ("notices", array(notices.map(|notice| array([at(notice.t), text(&notice.text)])))),
        ("zero", zero),
        ("from", at(board.from)),
        ("to", at(board.to)),
        ("first", at(board.first)),
        ("last", at(board.last)),
        ("column", number(board.column.0 as f32 / 1e6)),
        ("brush", array([at(board.brush.0), at(board.brush.1)])),
        ("window", text(view.window_name())),
        ("live", view.end().is_none().to_string()),
        ("mean", number(board.mean)),
        ("onCpu", number(board.on_cpu)),
        ("cost", text(&history.cost().to_string())),
        ("path", array(path)),
        ("bands", array(bands)),
        ("columns", array(columns)),
        ("lists", array(lists)),
        ("devices", array(devices)),
    ])
}

/// `[name, beside, mean, share, step, [[class, mean], …]]`
fn entry(entry: &Entry) -> String {
    let parts = entry.classes.iter().enumerate().filter(|(_, mean)| **mean > 0.0);
    let parts = parts.map(|(class, mean)| array([class.to_string(), number(*mean)]));
    array([
        text(&entry.name),
        text(&entry.beside),
        number(entry.mean),
        number(entry.share),
        text(&code(entry.step)),
        array(parts),
    ])
}

/// `[reads/s, writes/s, MB/s, worst ms or null, in flight]`
fn rates(rates: &Rates) -> String {
    array([
        number(rates.reads),
        number(rates.writes),
        number(rates.megabytes),
        rates.worst_ms().map_or("null".into(), number),
        number(rates.in_flight),
    ])
}

fn number(value: f32) -> String {
    if value.is_finite() { format!("{value:.3}") } else { "null".into() }
}

fn array(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(","))
}

fn object(fields: &[(&str, String)]) -> String {
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", fields.join(","))
}

/// A JSON string; `<` is written as a number, so that it may stand in a page.
fn text(value: &str) -> String {
    let mut out = String::from("\"");
    for c in value.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() || c == '<' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use waits::WaitClass;

    #[test]
    fn queries_are_views() {
        let asked =
            view("window=3&end=60000&from=10000&to=20000&drill=c6-e3-s17.4-q9-f2-zz-c99&background=1");
        assert_eq!(asked.window(), Nanos::secs(900.0));
        assert_eq!(asked.end(), Some(Nanos::secs(60.0)));
        assert_eq!(asked.brush(Nanos(0)), (Nanos::secs(10.0), Nanos::secs(20.0)));
        let steps = asked.drill();
        assert_eq!(steps[0], Step::Class(Some(WaitClass::Commit)));
        assert_eq!(steps.iter().map(|s| code(*s)).collect::<Vec<_>>().join("-"), "c6-e3-s17.4-q9-f2");
        assert!(asked.background());
        assert_eq!(view(""), View::default());
        assert_eq!(view("window=99").window(), View::default().window());
    }

    /// Whatever is asked for, there is a board of it.
    #[test]
    fn nonsense_is_a_view_as_well() {
        let most = u64::MAX;
        let history = History::new(crate::history::Bounds::default());
        for query in [
            format!("end={most}&from=0&to={most}&window=8"),
            format!("end=0&from={most}&to={most}"),
            format!("window=-1&end=1e9&from=5&to=4&drill={}", "q1-".repeat(5_000)),
            "drill=e65535-s4294967295.65535-q65535-f65535-c10&background=1".into(),
            "=&&&=end&drill=-&drill=\u{fffd}%00".into(),
        ] {
            let asked = view(&query);
            assert!(asked.drill().len() <= STEPS_MAX);
            let board = Board::of(&history, &asked, COLUMNS, Nanos(0));
            assert_eq!(board.columns.len(), COLUMNS, "{query}");
        }
    }

    #[test]
    fn texts_are_safe() {
        assert_eq!(text("a\"b\\c\n</script>"), "\"a\\\"b\\\\c\\u000a\\u003c/script>\"");
        assert_eq!(number(f32::NAN), "null");
    }
}
