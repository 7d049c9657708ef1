//! A record as a source: what a run kept of top activity, and of its devices; one that still runs is read again and again.
//!
//! Times are those since the first look. A run stores its looks at sessions when a visit ends, so a comparison grows visit by visit, and a single
//! case appears when its window is over. NFS servers are sampled while it goes: until the sessions come, they are shown alone.

use super::Source;
use super::nodes::Nodes;
use ::record::{AshRow, AshTickRow, CounterRow, DnfsChannelRow, Reader};
use ::watch::class;
use ::watch::draw::{Subject, Times};
use ::watch::history::{Active, Bounds, Device, History, Look, Work};
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use units::{Nanos, clock};

/// How often a running record is read.
const READ_EVERY: Nanos = Nanos::millis(1_000);

/// A record that is looked at.
pub struct Recorded {
    path: PathBuf,
    subject: Subject,
    running: bool,
    /// Time of the first look on the run's clock.
    zero: Option<u64>,
    /// Time of the newest look that was taken.
    taken: u64,
    /// Visits whose looks were taken. They are read once: who watches a run must not disturb it.
    visits: BTreeSet<i64>,
    due: Nanos,
    /// NFS servers.
    nodes: Nodes,
    /// Looks at sessions were taken.
    has_sessions: bool,
}

impl Recorded {
    /// Opens the run of that name, the record at that path, or the newest record in a directory that has top activity.
    ///
    /// # Errors
    /// There is none; it has no top activity and has ended.
    pub fn open(name: &str) -> Result<Self> {
        let folder = Path::new(name);
        if !folder.is_dir() {
            return Self::of(::record::runs::find(name)?);
        }
        let mut all = newest_first(folder)?.into_iter().map(Self::of);
        let newest = all.next().with_context(|| {
            format!("{} holds no record (*.redoubt). See what there is: redoubt report", folder.display())
        })?;
        // A calibration or a trace may be newer than all that had a database.
        newest.or_else(|why| all.find_map(Result::ok).ok_or(why))
    }

    fn of(path: PathBuf) -> Result<Self> {
        let reader = Reader::open(&path)?;
        let experiment = reader.experiment()?;
        let status = reader.status()?;
        let visits = reader.visits()?;
        let has_looks = visits
            .iter()
            .any(|(visit, _)| reader.of_visit::<AshTickRow>(*visit).is_ok_and(|t| !t.is_empty()));
        let running = reader.ending()?.is_none();
        let has_nodes = !reader.sampled::<DnfsChannelRow>(0)?.is_empty();
        if !has_looks && !has_nodes && !running {
            bail!(
                "{} holds no activity of sessions: it is a {} that had no database. redoubt run and redoubt compare (without \
                 --target files) record it; show this one with: redoubt report {}",
                path.display(),
                experiment.kind,
                path.display()
            );
        }
        let facts = reader.facts()?;
        let cpus = facts.iter().find(|f| f.layer == "cpu" && f.name == "allowed");
        let cpus = cpus.and_then(|fact| fact.value.as_deref()).and_then(|text| text.parse().ok());
        let case = experiment.case.unwrap_or_default();
        let subject = Subject {
            title: format!(
                "{} {case}  {}",
                experiment.kind,
                path.file_stem().unwrap_or_default().to_string_lossy()
            ),
            state: status,
            trouble: false,
            cpus,
            no_devices: "the record has no counters of devices".to_owned(),
            times: Times::Since,
            doubts: Vec::new(),
        };
        Ok(Self {
            path,
            subject,
            running,
            zero: None,
            taken: 0,
            visits: BTreeSet::new(),
            due: Nanos(0),
            nodes: Nodes::default(),
            has_sessions: false,
        })
    }

    /// What is there now.
    ///
    /// # Errors
    /// The record cannot be read.
    pub fn history(&mut self) -> Result<History> {
        let mut history = History::new(Bounds::default());
        self.read(&mut history)?;
        self.due = clock::now() + READ_EVERY;
        Ok(history)
    }

    /// Length of what is there now.
    pub fn length(&self) -> Nanos {
        Nanos(self.taken.saturating_sub(self.zero.unwrap_or(self.taken)))
    }

    fn read(&mut self, history: &mut History) -> Result<bool> {
        let reader = Reader::open(&self.path)?;
        let mut ticks: Vec<AshTickRow> = Vec::new();
        let mut rows: BTreeMap<u64, Vec<AshRow>> = BTreeMap::new();
        let running = reader.ending()?.is_none();
        for (visit, about) in reader.visits()? {
            // Of one that is still open looks may be there, and what they saw not yet.
            let is_whole = !running || about.status != "open";
            if is_whole && self.visits.insert(visit) {
                ticks.extend(reader.of_visit::<AshTickRow>(visit)?);
                for row in reader.of_visit::<AshRow>(visit)? {
                    rows.entry(row.t_ns).or_default().push(row);
                }
            }
        }
        ticks.sort_by_key(|tick| tick.t_ns);
        let counters = if ticks.is_empty() { Vec::new() } else { reader.counters()? };
        let news = self.nodes.read(&reader)?;
        let mut devices = Devices::new(counters);
        devices.readings.extend(self.nodes.readings.iter().map(|(name, all)| (name.clone(), all.clone())));
        let seen = ticks.len() + news.len();
        let mut before = Some(self.taken).filter(|&taken| taken > 0);
        if let Some(first) = ticks.first() {
            // Servers were shown alone meanwhile; now come all.
            history.forget_since(Nanos(first.t_ns.saturating_sub(self.zero.unwrap_or(0))));
            before = None;
            self.has_sessions = true;
        }
        if running || !self.has_sessions {
            let since = ticks.last().map_or(self.taken, |tick| tick.t_ns);
            let new = self.nodes.times.iter().copied().filter(|&t| t > since);
            ticks.extend(new.map(|t| AshTickRow { t_ns: t, planned_ns: t, cost_ns: 0, active: 0 }));
        }
        for tick in &ticks {
            let zero =
                *self.zero.get_or_insert_with(|| self.nodes.zero().map_or(tick.t_ns, |t| t.min(tick.t_ns)));
            let active = rows.remove(&tick.t_ns).unwrap_or_default();
            let (from, weight) = weight(&active, before, tick);
            before = Some(tick.t_ns);
            history.add(&Look {
                t: Nanos(tick.t_ns.saturating_sub(zero)),
                weight: Nanos(weight),
                cost: Nanos(tick.cost_ns),
                active: active.iter().filter_map(session).collect(),
                devices: devices.between(from, tick.t_ns),
            });
            self.taken = tick.t_ns;
        }
        let zero = self.zero.unwrap_or(0);
        for (t, text) in news {
            history.note(Nanos(t.saturating_sub(zero)), text);
        }
        self.running = running;
        let mut status = reader.status()?;
        if running && !self.has_sessions {
            status += ": sessions come when their visit is over";
        }
        let changed = status != self.subject.state || !ticks.is_empty() || seen > 0;
        self.subject.state = status;
        Ok(changed)
    }
}

impl Source for Recorded {
    fn take(&mut self, history: &mut History, longest: Nanos) -> bool {
        let now = clock::now();
        let wanted = self.running && now >= self.due;
        if !wanted {
            clock::sleep(longest);
            return false;
        }
        self.due = now + READ_EVERY;
        match self.read(history) {
            Ok(changed) => changed,
            Err(error) => {
                history.note(self.now(), format!("the record cannot be read: {error:#}"));
                self.running = false;
                true
            }
        }
    }

    fn subject(&self) -> &Subject {
        &self.subject
    }

    fn now(&self) -> Nanos {
        self.length()
    }
}

/// The records of a folder.
fn newest_first(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    let records = entries.flatten().map(|entry| entry.path());
    let mut records: Vec<PathBuf> =
        records.filter(|p| p.extension().is_some_and(|e| e == "redoubt")).collect();
    records.sort_by_cached_key(|path| {
        let changed = std::fs::metadata(path).and_then(|about| about.modified()).ok();
        std::cmp::Reverse(changed)
    });
    Ok(records)
}

/// Since when a tick stands, and for how long: what its rows say; without rows, since the tick before, or the one that was planned.
fn weight(active: &[AshRow], before: Option<u64>, tick: &AshTickRow) -> (u64, u64) {
    const USUAL: u64 = 100_000_000;
    let since = before.map(|before| tick.t_ns.saturating_sub(before)).filter(|gap| *gap < 20 * USUAL);
    let weight = active.first().map(|row| row.weight_ns).or(since).unwrap_or(USUAL);
    (tick.t_ns.saturating_sub(weight), weight)
}

fn session(row: &AshRow) -> Option<Active> {
    Some(Active {
        class: class::named(&row.wait_class)?,
        event: row.event.clone().unwrap_or_default(),
        native: None,
        grade: None,
        foreground: row.foreground,
        session: row.session,
        program: row.program.clone(),
        statement: row.statement.clone(),
        file: (row.file_no > 0).then(|| format!("file {}", row.file_no)),
    })
}

/// Counters of devices over time, as sums per second between two readings.
struct Devices {
    /// By device: when, and what was counted.
    readings: BTreeMap<String, BTreeMap<u64, Reading>>,
}

/// Counters: reads, writes, read bytes, written bytes, milliseconds in flight, of reads, of writes; the last two are 0 where they are not told apart.
pub type Reading = [f64; 7];

impl Devices {
    fn new(counters: Vec<CounterRow>) -> Self {
        let mut readings: BTreeMap<String, BTreeMap<u64, Reading>> = BTreeMap::new();
        for row in counters.into_iter().filter(|row| row.layer == "device") {
            let metrics = ["reads", "writes", "read_bytes", "write_bytes", "queue_ms"];
            let Some(at) = metrics.iter().position(|metric| *metric == row.metric) else { continue };
            readings.entry(row.object).or_default().entry(row.t_ns).or_default()[at] = row.value;
        }
        Self { readings }
    }

    /// What each did in that time: its share of the readings around it.
    fn between(&self, from: u64, to: u64) -> Vec<Device> {
        let work = |(name, readings): (&String, &BTreeMap<u64, Reading>)| {
            let (a, old) = readings.range(..=from).next_back()?;
            let (b, new) = readings.range(to..).next()?;
            let share = (to - from) as f64 / (b - a).max(1) as f64;
            let grown = |at: usize| ((new[at] - old[at]).max(0.0) * share) as f32;
            let work = Work {
                reads: grown(0),
                writes: grown(1),
                megabytes: (grown(2) + grown(3)) / 1e6,
                in_flight_seconds: grown(4) / 1e3,
                read_seconds: grown(5) / 1e3,
                write_seconds: grown(6) / 1e3,
            };
            Some(Device { name: name.clone(), work })
        };
        self.readings.iter().filter_map(work).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::record::{Experiment, VisitRow, Writer};
    use ::watch::history::Span;

    const SECOND: u64 = 1_000_000_000;

    /// A case that has begun, and whoever watches it.
    fn begun(directory: &Path) -> (Writer, Recorded) {
        let path = directory.join("grows.redoubt");
        let asked = Experiment { kind: "run".into(), case: Some("commit".into()), ..Experiment::default() };
        let writer = Writer::create(&path, &asked).expect("a record");
        (writer, Recorded::of(path).expect("it runs"))
    }

    fn visit(writer: &mut Writer, start_ns: u64) -> i64 {
        let row = VisitRow {
            block_id: None,
            position: 0,
            configuration_id: None,
            started_utc: "2026-11-21T09:30:00Z".into(),
            start_ns,
        };
        writer.visit(&row).expect("a visit")
    }

    fn tick(t_ns: u64) -> AshTickRow {
        AshTickRow { t_ns, planned_ns: t_ns, cost_ns: 1, active: 1 }
    }

    fn saw(t_ns: u64) -> AshRow {
        AshRow {
            t_ns,
            weight_ns: 100_000_000,
            session: 7,
            foreground: true,
            wait_class: "CPU".into(),
            ..AshRow::default()
        }
    }

    fn looks(recorded: &mut Recorded, history: &mut History) -> (u64, usize) {
        recorded.read(history).expect("it can be read");
        (history.looks(), history.rows())
    }

    /// Looks are taken when their visit is over, with all that they saw, and once.
    #[test]
    fn a_record_that_grows_is_read_visit_by_visit() {
        let directory = tempfile::tempdir().expect("a folder");
        let (mut writer, mut recorded) = begun(directory.path());
        let mut history = recorded.history().expect("nothing yet");
        for (n, start) in [1_000_000_000, 5_000_000_000].into_iter().enumerate() {
            let before = (2 * n as u64, 2 * n);
            let id = visit(&mut writer, start);
            writer.of_visit(id, &[tick(start), tick(start + 100_000_000)]).expect("looks");
            assert_eq!(looks(&mut recorded, &mut history), before, "what they saw may not be there yet");
            writer.of_visit(id, &[saw(start), saw(start + 100_000_000)]).expect("rows");
            writer.end_visit(id, "measured", None).expect("the end");
            for _ in 0..2 {
                assert_eq!(looks(&mut recorded, &mut history), (before.0 + 2, before.1 + 2));
            }
        }
        assert!(recorded.running && recorded.length() == Nanos(4_100_000_000), "{:?}", recorded.length());
    }

    /// NFS servers are seen while a case goes; what was shown of them alone makes way when the sessions come.
    #[test]
    fn servers_are_shown_alone_until_the_sessions_come() {
        let directory = tempfile::tempdir().expect("a folder");
        let (mut writer, mut recorded) = begun(directory.path());
        let mut history = recorded.history().expect("nothing yet");
        let mut beside = writer.beside().expect("another connection");
        let mut sampled = |second: u64| {
            let (address, reads_done) = ("192.0.2.1:2049".into(), 100 * second);
            let row =
                DnfsChannelRow { t_ns: second * SECOND, address, reads_done, ..DnfsChannelRow::default() };
            beside.add(&[row]).expect("a row");
        };
        let reads = |history: &History| -> Vec<(u64, u64)> {
            let of = |span: &Span| span.devices.iter().map(|(_, work)| work.reads as u64).sum();
            history.spans().iter().map(|span| (span.to.0, of(span))).collect()
        };
        (1..=3).for_each(&mut sampled);
        assert_eq!(looks(&mut recorded, &mut history), (3, 0));
        let millis = |t: u64| t * SECOND / 1000;
        assert_eq!(reads(&history)[1..], [(2 * SECOND, 100), (3 * SECOND, 100)]);
        let id = visit(&mut writer, millis(1500));
        let ticks = [millis(1600), millis(1700)];
        writer.of_visit(id, &ticks.map(tick)).expect("looks");
        writer.of_visit(id, &ticks.map(saw)).expect("rows");
        assert_eq!(looks(&mut recorded, &mut history), (3, 0), "the visit is still open");
        writer.end_visit(id, "measured", None).expect("the end");
        assert_eq!(looks(&mut recorded, &mut history), (5, 2));
        let ends: Vec<u64> = reads(&history).into_iter().map(|(t, _)| t).collect();
        assert_eq!(ends, [SECOND, ticks[0], ticks[1], 2 * SECOND, 3 * SECOND]);
        sampled(4);
        assert_eq!(looks(&mut recorded, &mut history), (6, 2));
        writer.finish("finished").expect("the end");
        assert_eq!(looks(&mut recorded, &mut history), (6, 2));
    }

    #[test]
    fn devices_do_their_share() {
        let row = |t_ns, metric: &str, value| CounterRow {
            phase_id: None,
            t_ns,
            layer: "device".into(),
            object: "vda".into(),
            metric: metric.into(),
            value,
        };
        let devices = Devices::new(vec![
            row(0, "reads", 100.0),
            row(1000, "reads", 200.0),
            row(1000, "queue_ms", 500.0),
        ]);
        let half = devices.between(250, 750);
        assert_eq!((half[0].work.reads, half[0].work.in_flight_seconds), (50.0, 0.25));
        assert!(devices.between(900, 1100).is_empty(), "nothing is made up beyond the last reading");
    }
}
