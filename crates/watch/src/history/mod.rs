//! Everything that was seen, within fixed bounds: the newest in full, older times in longer spans.
//!
//! A [`Span`] begins as one look. When there are more rows or spans than the [`Bounds`] allow, the older half is merged two by two, the
//! short ones first: sums of classes, events and devices stay exact, and only the rarest sessions, statements and files of a merged span become
//! "others". So an hour ago is coarser than a minute ago, and the memory of a day is that of some hours.

mod texts;

use crate::class::Class;
use std::collections::BTreeMap;
use std::ops::Range;
pub use texts::TextId;
use texts::Texts;
use units::Nanos;
use waits::Grade;

/// A session of which nothing more is known.
pub const OTHERS: u32 = u32::MAX;

/// What was seen at one moment.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// When, since the history's zero.
    pub t: Nanos,
    /// The time that it stands for: since the look before.
    pub weight: Nanos,
    /// What taking it cost.
    pub cost: Nanos,
    /// Who was active.
    pub active: Vec<Active>,
    /// What the devices did meanwhile.
    pub devices: Vec<Device>,
}

/// A session that was at work.
#[derive(Clone, Debug, Default)]
pub struct Active {
    /// On CPU, or what class it waited in.
    pub class: Class,
    /// What it waited for, in the common vocabulary; empty: on CPU.
    pub event: String,
    /// The same in the server's words, where they differ.
    pub native: Option<String>,
    /// How well the two fit.
    pub grade: Option<Grade>,
    /// Whether it is a user's.
    pub foreground: bool,
    /// Its number.
    pub session: u32,
    /// Its name.
    pub program: String,
    /// Its statement, without values.
    pub statement: Option<String>,
    /// The file that it was at.
    pub file: Option<String>,
}

/// What a device did since the look before: sums, so that longer times are additions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// What it did.
    pub work: Work,
}

/// Sums over a time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Completed reads.
    pub reads: f32,
    /// Completed writes.
    pub writes: f32,
    /// Bytes read and written, MB (10⁶).
    pub megabytes: f32,
    /// Time that reads took, all together, seconds.
    pub read_seconds: f32,
    /// Time that writes took.
    pub write_seconds: f32,
    /// Requests in flight × time, seconds.
    pub in_flight_seconds: f32,
}

impl Work {
    /// Adds the share `share` of `other`.
    pub fn add_share(&mut self, other: &Self, share: f32) {
        self.reads += other.reads * share;
        self.writes += other.writes * share;
        self.megabytes += other.megabytes * share;
        self.read_seconds += other.read_seconds * share;
        self.write_seconds += other.write_seconds * share;
        self.in_flight_seconds += other.in_flight_seconds * share;
    }
}

/// What is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its class.
    pub class: Class,
    /// Whether users' sessions wait.
    pub foreground: bool,
    /// Its name; `CPU` where nobody waits.
    pub name: String,
    /// In the server's words, where they differ.
    pub native: Vec<String>,
    /// How well the two fit, where that is least.
    pub grade: Option<Grade>,
}

/// One thing that a session did in a span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Which session.
    pub session: u32,
    /// [`History::event`].
    pub event: u16,
    /// [`History::text`] of its name.
    pub program: TextId,
    /// [`History::text`]; 0: none.
    pub statement: TextId,
    /// [`History::text`]; 0: none.
    pub file: TextId,
    /// How long, seconds.
    pub seconds: f32,
}

/// A stretch of time.
#[derive(Clone, Debug, Default)]
pub struct Span {
    /// When it began.
    pub from: Nanos,
    /// When it ended.
    pub to: Nanos,
    /// Time in it that was seen, seconds; less than its length where looks are missing.
    pub seen: f32,
    /// Who did what.
    pub rows: Box<[Row]>,
    /// Devices by their number ([`History::devices`]).
    pub devices: Box<[(u16, Work)]>,
}

/// What happened to the watching itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// When.
    pub t: Nanos,
    /// In a line.
    pub text: String,
}

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Rows of all spans, 16 bytes each.
    pub rows: usize,
    /// Spans.
    pub spans: usize,
    /// Rows of a merged span; the shortest become others.
    pub merged_rows: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { rows: 3_000_000, spans: 40_000, merged_rows: 96 }
    }
}

/// Rows of one look: a server with more active sessions than that shows them as others.
const LOOK_ROWS_MAX: usize = 4_000;
/// Words of the server for one event that are told.
const NATIVE_MAX: usize = 6;
const NOTICES_MAX: usize = 100;
/// Merged spans become longer than that only where all are: a column of eight hours is three minutes.
const MERGED_LENGTH: Nanos = Nanos::millis(60_000);
const DEVICES_MAX: usize = 64;

/// What was seen.
#[derive(Debug, Default)]
pub struct History {
    bounds: Bounds,
    spans: Vec<Span>,
    rows: usize,
    thinned: u64,
    events: Vec<Event>,
    event_ids: BTreeMap<(Class, bool, String), u16>,
    texts: Texts,
    devices: Vec<String>,
    notices: Vec<Notice>,
    /// Sum of the costs and number of the looks.
    cost: (Nanos, u64),
}

impl History {
    /// An empty one.
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, ..Self::default() }
    }

    /// Takes a look; they come in the order of time.
    pub fn add(&mut self, look: &Look) {
        let seconds = look.weight.as_secs() as f32;
        // One after the other, also where weights say a little more than the time between looks.
        let before = self.spans.last().map_or(Nanos(0), |span| span.to);
        let mut span = Span {
            from: Nanos(look.t.0.saturating_sub(look.weight.0)).max(before),
            to: look.t.max(before),
            seen: seconds,
            ..Span::default()
        };
        let mut rows = Vec::with_capacity(look.active.len().min(LOOK_ROWS_MAX));
        for active in &look.active {
            let event = self.event_id(active);
            rows.push(Row {
                session: active.session,
                event,
                program: self.texts.id(&active.program),
                statement: active.statement.as_deref().map_or(0, |text| self.texts.id(text)),
                file: active.file.as_deref().map_or(0, |text| self.texts.id(text)),
                seconds,
            });
        }
        span.rows = folded(rows, LOOK_ROWS_MAX);
        let devices = look.devices.iter().filter_map(|d| Some((self.device_id(&d.name)?, d.work)));
        span.devices = devices.collect();
        self.cost = (self.cost.0 + look.cost, self.cost.1 + 1);
        self.rows += span.rows.len();
        self.spans.push(span);
        while self.spans.len() > self.bounds.spans || self.rows > self.bounds.rows {
            if !self.thin() {
                break;
            }
        }
    }

    /// Gives up the looks that end after `t`: better ones come for that time.
    pub fn forget_since(&mut self, t: Nanos) {
        let kept = self.spans.partition_point(|span| span.to <= t);
        let given_up = self.spans.split_off(kept);
        if given_up.is_empty() {
            return;
        }
        self.rows -= given_up.iter().map(|span| span.rows.len()).sum::<usize>();
        self.cost.1 -= given_up.len() as u64;
        // Places change.
        self.thinned += 1;
    }

    /// Notes what happened to the watching.
    pub fn note(&mut self, t: Nanos, text: String) {
        if self.notices.len() == NOTICES_MAX {
            self.notices.remove(0);
        }
        self.notices.push(Notice { t, text });
    }

    /// All spans, oldest first.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Those that touch `from..to`.
    pub fn between(&self, from: Nanos, to: Nanos) -> &[Span] {
        &self.spans[self.range(from, to)]
    }

    /// The same by their places in [`History::spans`], which stay until the next thinning.
    pub fn range(&self, from: Nanos, to: Nanos) -> Range<usize> {
        let first = self.spans.partition_point(|span| span.to <= from);
        let last = self.spans.partition_point(|span| span.from < to);
        first.min(last)..last
    }

    /// How often older spans were merged.
    pub fn thinned(&self) -> u64 {
        self.thinned
    }

    /// When the first and the last look were; none before the first.
    pub fn extent(&self) -> Option<(Nanos, Nanos)> {
        Some((self.spans.first()?.from, self.spans.last()?.to))
    }

    /// What is waited for.
    pub fn event(&self, id: u16) -> &Event {
        &self.events[usize::from(id)]
    }

    /// All that were waited for, by their numbers.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Whose number that is; empty for one that nobody has.
    pub fn text(&self, id: TextId) -> &str {
        self.texts.text(id)
    }

    /// Names of the devices that were seen.
    pub fn devices(&self) -> &[String] {
        &self.devices
    }

    /// The newest notice.
    pub fn notice(&self) -> Option<&Notice> {
        self.notices.last()
    }

    /// All notices, oldest first.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// Mean cost of a look.
    pub fn cost(&self) -> Nanos {
        Nanos(self.cost.0.0 / self.cost.1.max(1))
    }

    /// Number of looks.
    pub fn looks(&self) -> u64 {
        self.cost.1
    }

    /// Rows that are kept.
    pub fn rows(&self) -> usize {
        self.rows
    }

    fn event_id(&mut self, active: &Active) -> u16 {
        let name = if active.event.is_empty() { "CPU".to_owned() } else { active.event.clone() };
        let native = active.native.clone().filter(|native| *native != name);
        let key = (active.class, active.foreground, name);
        if let Some(id) = self.event_ids.get(&key) {
            let event = &mut self.events[usize::from(*id)];
            event.grade = event.grade.max(active.grade);
            let is_new = |native: &String| event.native.len() < NATIVE_MAX && !event.native.contains(native);
            if let Some(native) = native.filter(is_new) {
                event.native.push(native);
            }
            return *id;
        }
        // A server has some hundreds; beyond what fits the last one takes all.
        let id = u16::try_from(self.events.len()).unwrap_or(u16::MAX);
        if id == u16::MAX {
            return id - 1;
        }
        let (class, foreground, name) = key.clone();
        let native = native.into_iter().collect();
        self.events.push(Event { class, foreground, name, native, grade: active.grade });
        self.event_ids.insert(key, id);
        id
    }

    fn device_id(&mut self, name: &str) -> Option<u16> {
        let known = self.devices.iter().position(|device| device == name);
        if known.is_none() && self.devices.len() < DEVICES_MAX {
            self.devices.push(name.to_owned());
            return Some(self.devices.len() as u16 - 1);
        }
        known.map(|at| at as u16)
    }

    /// Merges the older half two by two; whether anything became less. What has become long is left alone as long as there is
    /// something shorter: else the oldest hours would end as one span.
    fn thin(&mut self) -> bool {
        let before = (self.spans.len(), self.rows);
        self.thinned += 1;
        let mut longest = MERGED_LENGTH;
        while (self.spans.len(), self.rows) == before && longest.0 <= u64::MAX / 2 {
            let newer = self.spans.split_off(self.spans.len().div_ceil(2));
            let older = std::mem::take(&mut self.spans);
            self.spans = paired(older, longest, self.bounds.merged_rows);
            self.spans.extend(newer);
            self.rows = self.spans.iter().map(|span| span.rows.len()).sum();
            longest = Nanos(longest.0 * 2);
        }
        (self.spans.len(), self.rows) != before
    }
}

/// Neighbours merged that together are no longer than `longest`.
fn paired(spans: Vec<Span>, longest: Nanos, rows_max: usize) -> Vec<Span> {
    let mut all = Vec::with_capacity(spans.len());
    let mut spans = spans.into_iter().peekable();
    while let Some(first) = spans.next() {
        let from = first.from;
        match spans.next_if(|second| second.to - from <= longest) {
            Some(second) => all.push(first.merged(second, rows_max)),
            None => all.push(first),
        }
    }
    all
}

impl Span {
    /// The share of it that lies in `from..to`, 0–1.
    pub fn share(&self, from: Nanos, to: Nanos) -> f32 {
        let length = self.to.0.saturating_sub(self.from.0).max(1) as f64;
        let inside = self.to.min(to).0.saturating_sub(self.from.max(from).0) as f64;
        (inside / length) as f32
    }

    fn merged(mut self, other: Self, rows_max: usize) -> Self {
        self.to = other.to;
        self.seen += other.seen;
        let mut rows = self.rows.into_vec();
        rows.extend(other.rows);
        self.rows = folded(rows, rows_max);
        let mut devices = self.devices.into_vec();
        for (device, work) in other.devices {
            match devices.iter_mut().find(|(d, _)| *d == device) {
                Some((_, sum)) => sum.add_share(&work, 1.0),
                None => devices.push((device, work)),
            }
        }
        self.devices = devices.into();
        self
    }
}

/// The same rows with equal ones added up; beyond `rows_max` the shortest keep their event alone.
fn folded(rows: Vec<Row>, rows_max: usize) -> Box<[Row]> {
    let mut rows = added(rows);
    if rows.len() > rows_max {
        rows.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        for row in &mut rows[rows_max..] {
            (row.session, row.program) = (OTHERS, texts::OTHERS);
            row.statement = if row.statement == 0 { 0 } else { texts::OTHERS };
            row.file = if row.file == 0 { 0 } else { texts::OTHERS };
        }
        rows = added(rows);
    }
    rows.into()
}

fn added(mut rows: Vec<Row>) -> Vec<Row> {
    let key = |row: &Row| (row.session, row.event, row.program, row.statement, row.file);
    rows.sort_unstable_by_key(key);
    rows.dedup_by(|next, first| {
        let same = key(next) == key(first);
        if same {
            first.seconds += next.seconds;
        }
        same
    });
    rows
}

#[cfg(test)]
mod tests;
