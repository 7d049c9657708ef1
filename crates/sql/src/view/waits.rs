//! Rows of the views that show waits: sessions, totals, histograms, active session history.

use super::{number, text};
use engine::{Row, Value};
use units::Nanos;
use waits::ash::{Sample, Tick};
use waits::{Doing, Event, EventTotals, Registry, SessionKind, SessionState, bucket_micros};

/// The same moment on the registry's clock and on the wall's, so that a sample gets a date.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// On the registry's clock.
    pub clock: Nanos,
    /// Seconds since 1970-01-01 UTC.
    pub unix_seconds: u64,
}

impl Moment {
    /// The date of an earlier moment.
    fn date(self, at: Nanos) -> Value {
        // Back from now; the clock never goes back, so this does not become negative.
        let ago = (self.clock - at).0 / 1_000_000_000;
        text(crate::function::sysdate(self.unix_seconds.saturating_sub(ago), 0.0))
    }
}

/// `v$event_name`.
pub fn event_name() -> Vec<Row> {
    Event::ALL
        .into_iter()
        .map(|event| {
            let info = event.info();
            let [p1, p2, p3] = info.parameters.map(text);
            vec![
                number(event.number()),
                number(event.id()),
                text(info.name),
                p1,
                p2,
                p3,
                text(info.class.name()),
                text(info.name),
            ]
        })
        .collect()
}

/// `v$session`.
pub fn session(registry: &Registry) -> Vec<Row> {
    let row = |s: SessionState| {
        let waited = waited(&s);
        let event = s.doing.event().or(s.last_event);
        let mut row = vec![
            number(s.sid),
            number(s.serial),
            text(if s.active { "ACTIVE" } else { "INACTIVE" }),
            text(if s.kind == SessionKind::Foreground { "USER" } else { "BACKGROUND" }),
            text(&*s.program),
            s.sql.map_or(Value::Null, |id| text(id.to_string())),
            event.map_or(Value::Null, |e| number(e.number())),
            event.map_or(Value::Null, |e| text(e.name())),
        ];
        row.extend(parameters(event, s.parameters));
        row.push(event.map_or(Value::Null, |e| text(e.class().name())));
        row.extend(waited);
        row.push(s.blocker.map_or(Value::Null, number));
        row
    };
    registry.sessions().into_iter().map(row).collect()
}

/// `v$session_wait`.
pub fn session_wait(registry: &Registry) -> Vec<Row> {
    let row = |s: SessionState| {
        let event = s.doing.event().or(s.last_event);
        let mut row = vec![number(s.sid), event.map_or(Value::Null, |e| text(e.name()))];
        row.extend(parameters(event, s.parameters));
        row.push(event.map_or(Value::Null, |e| text(e.class().name())));
        row.extend(waited(&s));
        row
    };
    registry.sessions().into_iter().map(row).collect()
}

/// `v$system_event`. Hundredths of a second as Oracle has them: TIME_WAITED whole, averages with two digits.
pub fn system_event(registry: &Registry) -> Vec<Row> {
    let totals = registry.totals();
    let row = |event: Event| {
        let all = totals.event(event);
        let foreground = totals.foreground.event(event);
        let mut row = vec![text(event.name()), number(all.waits), number(all.timeouts)];
        row.extend(times(&all));
        row.push(number(foreground.waits));
        row.extend(times(foreground));
        row.extend([number(event.id()), text(event.class().name())]);
        (all.waits > 0).then_some(row)
    };
    Event::ALL.into_iter().filter_map(row).collect()
}

/// TIME_WAITED, AVERAGE_WAIT, TIME_WAITED_MICRO.
fn times(totals: &EventTotals) -> [Value; 3] {
    let centi = totals.waited.0 as f64 / 1e7;
    let average = if totals.waits == 0 { 0.0 } else { (centi / totals.waits as f64 * 100.0).round() / 100.0 };
    [number(centi.round() as u64), Value::Real(average), number(totals.waited.0 / 1_000)]
}

/// `v$event_histogram_micro`: for each event the buckets up to its slowest wait, empty ones between included.
pub fn event_histogram_micro(registry: &Registry) -> Vec<Row> {
    let totals = registry.totals();
    let mut rows = Vec::new();
    for event in Event::ALL {
        let histogram = totals.event(event).histogram;
        let buckets = histogram.iter().rposition(|&waits| waits > 0).map_or(0, |last| last + 1);
        for (bucket, &waits) in histogram.iter().enumerate().take(buckets) {
            let micros = bucket_micros(bucket);
            rows.push(vec![
                number(event.number()),
                text(event.name()),
                number(micros),
                number(waits),
                text(span(micros)),
            ]);
        }
    }
    rows
}

/// WAIT_TIME_FORMAT: the bound in words. Oracle rounds down to the unit.
fn span(micros: u64) -> String {
    if micros == u64::MAX {
        return "longer".into();
    }
    let units =
        [(3_600_000_000, "hour"), (60_000_000, "minute"), (1_000_000, "second"), (1_000, "millisecond")];
    let (number, unit) = units
        .iter()
        .find(|(length, _)| micros >= *length)
        .map_or((micros, "microsecond"), |&(length, name)| (micros / length, name));
    format!("{number} {unit}{}", if number == 1 { "" } else { "s" })
}

/// `v$active_session_history`, oldest first.
pub fn active_session_history<'t>(ticks: impl IntoIterator<Item = &'t Tick>, moment: Moment) -> Vec<Row> {
    ticks
        .into_iter()
        .flat_map(|tick| tick.rows.iter().map(move |sample| ash_row(tick, sample, moment)))
        .collect()
}

fn ash_row(tick: &Tick, sample: &Sample, moment: Moment) -> Row {
    let event = sample.event();
    let (file, block) = sample.file_block.unzip();
    let mut row = vec![
        number(tick.id),
        moment.date(tick.real),
        number(tick.weight.0 / 1_000),
        number(sample.sid),
        number(sample.serial),
        text(sample.kind.name()),
        sample.sql.map_or(Value::Null, |id| text(id.to_string())),
        text(sample.doing.name()),
        event.map_or(Value::Null, |e| text(e.name())),
        event.map_or(Value::Null, |e| number(e.number())),
    ];
    row.extend(parameters(event, sample.parameters));
    // WAIT_TIME is 0 while waiting, as in Oracle; on the processor it is the last wait's, which a sample does not keep.
    let wait_time = if sample.doing == Doing::OnCpu { Value::Null } else { Value::Integer(0) };
    row.extend([
        event.map_or(Value::Null, |e| text(e.class().name())),
        wait_time,
        number(sample.time_waited.map_or(0, |waited| waited.0 / 1_000)),
        sample.blocker.map_or(Value::Null, number),
        file.map_or(Value::Null, number),
        block.map_or(Value::Null, number),
        text(&*sample.program),
        if sample.xid == 0 { Value::Null } else { text(format!("{:016X}", sample.xid)) },
    ]);
    row
}

/// WAIT_TIME_MICRO and STATE: of the wait that goes on, or of the last one.
fn waited(session: &SessionState) -> [Value; 2] {
    match session.doing {
        Doing::Waiting(_) => [number(session.for_now.0 / 1_000), text("WAITING")],
        Doing::OnCpu => [number(session.last_waited.0 / 1_000), text("WAITED KNOWN TIME")],
    }
}

/// P1TEXT, P1, … P3.
fn parameters(event: Option<Event>, values: [u64; 3]) -> impl Iterator<Item = Value> {
    let names = event.map_or([""; 3], |event| event.info().parameters);
    names.into_iter().zip(values).flat_map(|(name, value)| [text(name), number(value)])
}
