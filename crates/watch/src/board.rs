//! What follows from history and view, in numbers: stacks over time, top lists of the brush, devices on the same axis.

use crate::class::{self, COUNT, Class};
use crate::history::{Event, History, OTHERS, Row, Span, Work};
use crate::view::{List, Step, View};
use std::collections::HashMap;
use units::Nanos;
use waits::Grade;

/// Lines of a list that are kept.
const TOP_MAX: usize = 60;
/// Events of a drilled chart that are told apart.
const BANDS_MAX: usize = 7;
/// A column of which less than this share was seen stays empty.
const SEEN_MIN: f32 = 0.01;

/// One colour of the chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// Its name.
    pub name: String,
    /// Its class, for colours; the number among the events where those are drawn.
    pub paint: Paint,
    /// Mean active sessions in the brush.
    pub mean: f32,
}

/// What a band is painted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// As its class.
    Class(Class),
    /// As the n-th of the events.
    Event(usize),
}

/// A line of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// What stands behind it: the server's word for an event, a session's number.
    pub beside: String,
    /// Mean active sessions.
    pub mean: f32,
    /// Share of all that is shown, 0–1.
    pub share: f32,
    /// Mean by class.
    pub classes: [f32; COUNT],
    /// Where Enter leads.
    pub step: Step,
}

/// A list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Top {
    /// Most active first.
    pub rows: Vec<Entry>,
    /// Why it is empty, in a few words.
    pub empty: &'static str,
}

/// A device over time.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceBoard {
    /// Its name.
    pub name: String,
    /// One for each column: `(requests/s, MB/s, mean latency in ms, in flight)`; none: not seen.
    pub columns: Vec<Option<Rates>>,
    /// Over the brush.
    pub brush: Rates,
}

/// Rates of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Reads per second.
    pub reads: f32,
    /// Writes per second.
    pub writes: f32,
    /// MB/s, both.
    pub megabytes: f32,
    /// Mean time of a read, queue included, ms; none without reads.
    pub read_ms: Option<f32>,
    /// Mean time of a write.
    pub write_ms: Option<f32>,
    /// Mean requests in flight.
    pub in_flight: f32,
    /// Mean time of a request of either kind, by Little's law, where the two are not told apart.
    pub mean_ms: Option<f32>,
}

impl Rates {
    fn of(work: &Work, seconds: f32) -> Self {
        let per = |sum: f32| if seconds > 0.0 { sum / seconds } else { 0.0 };
        let ms = |time: f32, count: f32| (count > 0.0).then(|| time / count * 1e3);
        Self {
            reads: per(work.reads),
            writes: per(work.writes),
            megabytes: per(work.megabytes),
            read_ms: ms(work.read_seconds, work.reads),
            write_ms: ms(work.write_seconds, work.writes),
            in_flight: per(work.in_flight_seconds),
            mean_ms: ms(work.in_flight_seconds, work.reads + work.writes)
                .filter(|_| work.read_seconds + work.write_seconds <= 0.0),
        }
    }

    /// The slower of the two.
    pub fn worst_ms(&self) -> Option<f32> {
        self.mean_ms.or_else(|| self.read_ms.into_iter().chain(self.write_ms).reduce(f32::max))
    }
}

/// Everything that is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Board {
    /// The window.
    pub from: Nanos,
    /// Its end.
    pub to: Nanos,
    /// What there is to see: beginning.
    pub first: Nanos,
    /// And end.
    pub last: Nanos,
    /// Length of a column.
    pub column: Nanos,
    /// What the lists are about.
    pub brush: (Nanos, Nanos),
    /// Colours of the chart, from the bottom; those that occur.
    pub bands: Vec<Band>,
    /// For each column active sessions by band; none: nothing was seen.
    pub columns: Vec<Option<Vec<f32>>>,
    /// Mean active sessions in the brush.
    pub mean: f32,
    /// Of these on CPU.
    pub on_cpu: f32,
    /// Lists in the order of [`List::ALL`].
    pub lists: [Top; 5],
    /// Busiest first.
    pub devices: Vec<DeviceBoard>,
    /// The steps in words.
    pub path: Vec<String>,
}

impl Board {
    /// Of what `view` shows in `columns` columns, when the present is `now`.
    pub fn of(history: &History, view: &View, columns: usize, now: Nanos) -> Self {
        let columns = columns.max(1);
        let (first, last) = history.extent().unwrap_or((now, now));
        let last = last.max(now);
        let column = Nanos((view.window().0 / columns as u64).max(1));
        let end = view.end().unwrap_or(now);
        // On whole columns, so that the picture moves and does not shimmer.
        let to = Nanos(end.0.div_ceil(column.0) * column.0);
        let from = Nanos(to.0.saturating_sub(column.0 * columns as u64));
        let brush = view.brush(now);
        let filter = Filter { history, steps: view.drill(), background: view.background() };
        let lists = filter.lists(brush);
        let axis = Axis { from, column, columns };
        let (bands, stacks) = filter.stacks(&axis, &lists);
        let on_cpu = lists.0[0].rows.iter().map(|row| row.classes[0]).sum();
        Self {
            from,
            to,
            first,
            last,
            column,
            brush,
            bands,
            columns: stacks,
            mean: lists.1,
            on_cpu,
            lists: lists.0,
            devices: devices(history, &axis, brush),
            path: view.drill().iter().map(|step| words(history, *step)).collect(),
        }
    }

    /// One of the lists.
    pub fn list(&self, list: List) -> &Top {
        let at = List::ALL.iter().position(|l| *l == list).unwrap_or(0);
        &self.lists[at]
    }

    /// Highest stack.
    pub fn peak(&self) -> f32 {
        self.columns.iter().flatten().map(|column| column.iter().sum()).fold(0.0, f32::max)
    }

    /// Columns of the brush.
    pub fn brush_columns(&self) -> std::ops::Range<usize> {
        let at = |t: Nanos| t.0.saturating_sub(self.from.0) as f64 / self.column.0 as f64;
        let first = at(self.brush.0).floor() as usize;
        first.min(self.columns.len())..(at(self.brush.1).ceil() as usize).min(self.columns.len())
    }
}

fn words(history: &History, step: Step) -> String {
    match step {
        Step::Class(class) => class::name(class).to_owned(),
        Step::Event(id) => history.events().get(usize::from(id)).map_or_else(String::new, |e| e.name.clone()),
        Step::Session(number, program) => session_name(history.text(program), number),
        Step::Statement(id) | Step::File(id) => history.text(id).to_owned(),
    }
}

fn session_name(program: &str, number: u32) -> String {
    if number == OTHERS { "(others)".to_owned() } else { format!("{number} {program}") }
}

/// Columns of equal length.
struct Axis {
    from: Nanos,
    column: Nanos,
    columns: usize,
}

impl Axis {
    fn end(&self) -> Nanos {
        Nanos(self.from.0 + self.column.0 * self.columns as u64)
    }

    /// Columns that `span` lies in, each with the share of the span that does.
    fn shares(&self, span: &Span) -> impl Iterator<Item = (usize, f32)> {
        let length = span.to.0.saturating_sub(span.from.0).max(1) as f64;
        let number = |t: u64| (t.saturating_sub(self.from.0) / self.column.0) as usize;
        let last = number(span.to.0.saturating_sub(1)).min(self.columns.saturating_sub(1));
        let (from, to) = (span.from.0, span.to.0);
        let (begin, column) = (self.from.0, self.column.0);
        (number(from)..=last).map(move |at| {
            let left = begin + column * at as u64;
            let overlap = (left + column).min(to).saturating_sub(left.max(from));
            (at, (overlap as f64 / length) as f32)
        })
    }
}

struct Filter<'a> {
    history: &'a History,
    steps: &'a [Step],
    background: bool,
}

#[derive(Default)]
struct Sum {
    seconds: f32,
    classes: [f32; COUNT],
}

impl Sum {
    fn add(&mut self, class: usize, seconds: f32) {
        self.seconds += seconds;
        self.classes[class] += seconds;
    }
}

impl Filter<'_> {
    fn lets(&self, row: &Row, event: &Event) -> bool {
        (self.background || event.foreground)
            && self.steps.iter().all(|step| match *step {
                Step::Class(class) => event.class == class,
                Step::Event(id) => row.event == id,
                Step::Session(number, program) => row.session == number && row.program == program,
                Step::Statement(id) => row.statement == id,
                Step::File(id) => row.file == id,
            })
    }

    fn rows<'s>(&'s self, span: &'s Span) -> impl Iterator<Item = (&'s Row, &'s Event)> {
        let all = span.rows.iter().map(|row| (row, self.history.event(row.event)));
        all.filter(|(row, event)| self.lets(row, event))
    }

    /// The lists, and mean active sessions.
    fn lists(&self, (from, to): (Nanos, Nanos)) -> ([Top; 5], f32) {
        let mut seen = 0.0f32;
        let mut classes = Sum::default();
        let mut events: HashMap<u16, Sum> = HashMap::new();
        let mut sessions: HashMap<(u32, u16), Sum> = HashMap::new();
        let mut statements: HashMap<u16, Sum> = HashMap::new();
        let mut files: HashMap<u16, Sum> = HashMap::new();
        for span in self.history.between(from, to) {
            let length = span.to.0.saturating_sub(span.from.0).max(1) as f64;
            let inside = span.to.min(to).0.saturating_sub(span.from.max(from).0) as f64;
            let share = (inside / length) as f32;
            seen += span.seen * share;
            for (row, event) in self.rows(span) {
                let (class, seconds) = (class::index(event.class), row.seconds * share);
                classes.add(class, seconds);
                events.entry(row.event).or_default().add(class, seconds);
                sessions.entry((row.session, row.program)).or_default().add(class, seconds);
                if row.statement != 0 {
                    statements.entry(row.statement).or_default().add(class, seconds);
                }
                if row.file != 0 {
                    files.entry(row.file).or_default().add(class, seconds);
                }
            }
        }
        let scale = Scale { seen, whole: classes.seconds };
        let text = |id: u16| (self.history.text(id).to_owned(), String::new());
        let lists = [
            scale.classes(&classes),
            scale.top(events, |id| (event_words(self.history.event(id)), Step::Event(id))),
            scale.top(sessions, |(number, program)| {
                let name = session_name(self.history.text(program), number);
                ((name, String::new()), Step::Session(number, program))
            }),
            scale.top(statements, |id| (text(id), Step::Statement(id))),
            scale.top(files, |id| (text(id), Step::File(id))),
        ];
        (lists, scale.mean(classes.seconds))
    }

    /// Bands of the chart and their heights.
    fn stacks(&self, axis: &Axis, lists: &([Top; 5], f32)) -> (Vec<Band>, Vec<Option<Vec<f32>>>) {
        let by_event = self.steps.iter().any(|step| matches!(step, Step::Class(_) | Step::Event(_)));
        if by_event {
            return self.event_stacks(axis, &lists.0[1]);
        }
        let spans = self.history.between(axis.from, axis.end());
        let sums = summed(axis, spans, COUNT, |span, heights| {
            if self.steps.is_empty() {
                for (class, height) in heights.iter_mut().enumerate() {
                    *height = span.class(class, self.background);
                }
            } else {
                self.rows(span).for_each(|(row, event)| heights[class::index(event.class)] += row.seconds);
            }
        });
        let occurs = |class: &usize| sums.iter().flatten().any(|column| column[*class] > 0.0);
        let kept: Vec<usize> = (0..COUNT).filter(occurs).collect();
        let listed = |class: Class| lists.0[0].rows.iter().find(|row| row.step == Step::Class(class));
        let band = |class: &usize| {
            let class = class::ALL[*class];
            let mean = listed(class).map_or(0.0, |row| row.mean);
            Band { name: class::name(class).to_owned(), paint: Paint::Class(class), mean }
        };
        let bands = kept.iter().map(band).collect();
        let narrowed = |column: Vec<f32>| kept.iter().map(|class| column[*class]).collect();
        (bands, sums.into_iter().map(|column| column.map(narrowed)).collect())
    }

    fn event_stacks(&self, axis: &Axis, events: &Top) -> (Vec<Band>, Vec<Option<Vec<f32>>>) {
        let spans = self.history.between(axis.from, axis.end());
        let id = |row: &Entry| match row.step {
            Step::Event(id) => Some(id),
            _ => None,
        };
        let known: Vec<u16> = events.rows.iter().filter_map(id).take(BANDS_MAX).collect();
        let sums = summed(axis, spans, known.len() + 1, |span, heights| {
            for (row, _) in self.rows(span) {
                let at = known.iter().position(|id| *id == row.event).unwrap_or(known.len());
                heights[at] += row.seconds;
            }
        });
        let mean =
            |id: u16| events.rows.iter().find(|row| row.step == Step::Event(id)).map_or(0.0, |r| r.mean);
        let mut bands: Vec<Band> = known
            .iter()
            .enumerate()
            .map(|(at, id)| Band {
                name: self.history.event(*id).name.clone(),
                paint: Paint::Event(at),
                mean: mean(*id),
            })
            .collect();
        let rest = events.rows.iter().skip(known.len()).map(|row| row.mean).sum();
        bands.push(Band { name: "other events".into(), paint: Paint::Event(BANDS_MAX), mean: rest });
        (bands, sums)
    }
}

/// An event's name with how well it fits, and the server's word.
fn event_words(event: &Event) -> (String, String) {
    let mark = match event.grade {
        Some(Grade::Approximate) => " ≈",
        Some(Grade::Inferred) => " ?",
        _ => "",
    };
    (format!("{}{mark}", event.name), event.native.join(", "))
}

/// Mean heights of each column; none where nothing was seen.
fn summed(
    axis: &Axis,
    spans: &[Span],
    bands: usize,
    fill: impl Fn(&Span, &mut [f32]),
) -> Vec<Option<Vec<f32>>> {
    let mut sums = vec![vec![0.0f32; bands]; axis.columns];
    let mut seen = vec![0.0f32; axis.columns];
    let mut heights = vec![0.0f32; bands];
    for span in spans {
        heights.fill(0.0);
        fill(span, &mut heights);
        for (at, share) in axis.shares(span) {
            seen[at] += span.seen * share;
            sums[at].iter_mut().zip(&heights).for_each(|(sum, height)| *sum += height * share);
        }
    }
    let least = axis.column.as_secs() as f32 * SEEN_MIN;
    let mean = |(sums, seen): (Vec<f32>, f32)| {
        (seen > least).then(|| sums.into_iter().map(|sum| sum / seen).collect())
    };
    sums.into_iter().zip(seen).map(mean).collect()
}

/// What sums are told in.
struct Scale {
    seen: f32,
    whole: f32,
}

impl Scale {
    fn mean(&self, seconds: f32) -> f32 {
        if self.seen > 0.0 { seconds / self.seen } else { 0.0 }
    }

    fn entry(&self, (name, beside): (String, String), sum: &Sum, step: Step) -> Entry {
        let share = if self.whole > 0.0 { sum.seconds / self.whole } else { 0.0 };
        let classes = sum.classes.map(|seconds| self.mean(seconds));
        Entry { name, beside, mean: self.mean(sum.seconds), share, classes, step }
    }

    /// All classes that occur, from the top of the chart.
    fn classes(&self, sum: &Sum) -> Top {
        let entry = |(at, seconds): (usize, &f32)| {
            let class = class::ALL[at];
            let mut alone = Sum::default();
            alone.add(at, *seconds);
            self.entry((class::name(class).to_owned(), String::new()), &alone, Step::Class(class))
        };
        let occurring = sum.classes.iter().enumerate().rev().filter(|(_, seconds)| **seconds > 0.0);
        Top { rows: occurring.map(entry).collect(), empty: "nobody was active" }
    }

    fn top<K: Copy>(&self, sums: HashMap<K, Sum>, words: impl Fn(K) -> ((String, String), Step)) -> Top {
        let empty = if self.seen <= 0.0 {
            "nothing was seen here"
        } else if self.whole > 0.0 {
            "the server tells none"
        } else {
            "nobody was active"
        };
        let mut rows: Vec<Entry> = sums
            .into_iter()
            .map(|(key, sum)| {
                let (name, step) = words(key);
                self.entry(name, &sum, step)
            })
            .collect();
        rows.sort_by(|a, b| b.mean.total_cmp(&a.mean).then_with(|| a.name.cmp(&b.name)));
        rows.truncate(TOP_MAX);
        Top { rows, empty }
    }
}

fn devices(history: &History, axis: &Axis, brush: (Nanos, Nanos)) -> Vec<DeviceBoard> {
    let count = history.devices().len();
    let mut sums = vec![vec![(Work::default(), 0.0f32); axis.columns]; count];
    for span in history.between(axis.from, axis.end()) {
        for (device, work) in &span.devices {
            for (at, share) in axis.shares(span) {
                let (sum, seen) = &mut sums[usize::from(*device)][at];
                sum.add_share(work, share);
                *seen += span.seen * share;
            }
        }
    }
    let mut all: Vec<DeviceBoard> = Vec::new();
    for (number, columns) in sums.into_iter().enumerate() {
        let (mut work, mut seen) = (Work::default(), 0.0);
        for span in history.between(brush.0, brush.1) {
            for (_, of) in span.devices.iter().filter(|(device, _)| usize::from(*device) == number) {
                work.add_share(of, 1.0);
                seen += span.seen;
            }
        }
        let rates = |(work, seen): (Work, f32)| (seen > 0.0).then(|| Rates::of(&work, seen));
        let columns = columns.into_iter().map(rates).collect();
        let name = history.devices()[number].clone();
        all.push(DeviceBoard { name, columns, brush: Rates::of(&work, seen) });
    }
    // By what they did in the whole window: the order stays while the brush moves.
    let busy =
        |device: &DeviceBoard| device.columns.iter().flatten().map(|r| r.reads + r.writes).sum::<f32>();
    all.sort_by(|a, b| busy(b).total_cmp(&busy(a)));
    all
}
