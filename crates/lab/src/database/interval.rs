//! What was counted between two moments: by the database (waits, time, statistics, files), by the scheduler for the
//! sessions' threads, and by the machine (devices, processors).
//!
//! Both moments are edges of the measured window ([`super::drive`]), so that nothing before or after is in it: neither the
//! time to settle nor the creation of tables nor the check at the end.

use crate::LabError;
use crate::evidence::Delta;
use crate::server::counters::{self, Counted};
use crate::server::{Connection, Kind};
use engine::Instance;
use engine::files::FileType;
use engine::instance::{FileIoRow, SysstatRow};
use host::counters::{Schedule, Snapshot, Thread, Watch};
use record::{FileStatRow, StatisticRow, WaitEventRow, Writer};
use units::Nanos;
use waits::{BothTotals, Event, Part, SessionKind, TimeModel, Totals};

/// All counters at one moment.
pub struct Moment {
    database: Counters,
    machine: Snapshot,
}

/// What the database counted.
enum Counters {
    /// Ours: everything.
    Engine(Box<Engine>),
    /// A server: under its own names.
    Server(Counted),
}

struct Engine {
    totals: BothTotals,
    foreground: TimeModel,
    background: TimeModel,
    statistics: Vec<SysstatRow>,
    files: Vec<FileIoRow>,
    /// Of the sessions' threads together; none where the kernel does not count.
    schedule: Option<Schedule>,
}

/// Two moments of the same database and the same sessions.
pub struct Interval {
    /// The earlier.
    pub before: Moment,
    /// The later.
    pub after: Moment,
}

/// I/O of the database's files between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileDelta {
    /// Requests to read.
    pub reads: u64,
    /// Their bytes.
    pub read_bytes: u64,
    /// Requests to write, redo included.
    pub writes: u64,
    /// Their bytes.
    pub write_bytes: u64,
}

/// Where the time of users' sessions went between two moments.
#[derive(Clone, Debug, Default)]
pub struct DbTime {
    /// DB time per time: sessions that were active on average.
    pub active: f64,
    /// Share of DB time that no wait accounts for, 0 to 1: on a processor, or wanting one.
    pub cpu: f64,
    /// Each wait's share of DB time, 0 to 1, the greatest first.
    pub waits: Vec<(Event, f64)>,
}

impl Moment {
    /// Now. `threads`: those of the sessions, all alive; `watch`: the devices below.
    pub fn of(instance: &Instance, threads: &[Thread], watch: &Watch) -> Self {
        let waits = &instance.core.waits;
        let mut schedule = Some(Schedule::default());
        for thread in threads {
            schedule = schedule.zip(thread.schedule()).map(|(mut sum, thread)| {
                sum.add(&thread);
                sum
            });
        }
        let engine = Engine {
            totals: waits.totals_so_far(),
            foreground: waits.time_model(SessionKind::Foreground),
            background: waits.time_model(SessionKind::Background),
            statistics: instance.sysstat(),
            files: instance.file_io(),
            schedule,
        };
        Self { database: Counters::Engine(Box::new(engine)), machine: host::counters::snapshot(watch) }
    }

    /// Now, of a server. One that does not answer has counted nothing: whoever works with it says why.
    pub fn of_server(kind: Kind, connection: &mut dyn Connection, watch: &Watch) -> Self {
        let counted = counters::read(kind, connection).unwrap_or_default();
        Self { database: Counters::Server(counted), machine: host::counters::snapshot(watch) }
    }

    /// Now, of a database that cannot be asked.
    pub fn uncounted(watch: &Watch) -> Self {
        Self { database: Counters::Server(Counted::new()), machine: host::counters::snapshot(watch) }
    }

    /// From then until now.
    pub fn until_now(self, instance: &Instance, threads: &[Thread], watch: &Watch) -> Interval {
        Interval { before: self, after: Self::of(instance, threads, watch) }
    }
}

impl Interval {
    /// The machine at both moments.
    pub fn snapshots(&self) -> (&Snapshot, &Snapshot) {
        (&self.before.machine, &self.after.machine)
    }

    /// The machine's side.
    pub fn machine(&self) -> Delta {
        Delta::between(&self.before.machine, &self.after.machine)
    }

    /// Both moments, where the database is ours.
    fn engines(&self) -> Option<(&Engine, &Engine)> {
        match (&self.before.database, &self.after.database) {
            (Counters::Engine(before), Counters::Engine(after)) => Some((before, after)),
            _ => None,
        }
    }

    /// I/O of all files of the database together; none where it does not say. A flash cache may lie on another device, and is not among them.
    pub fn files(&self) -> Option<FileDelta> {
        let (before, after) = self.engines()?;
        let mut sum = FileDelta::default();
        for row in file_rows(before, after).iter().filter(|row| row.file_type != FileType::Flash.name()) {
            sum.reads += row.small_reads + row.large_reads;
            sum.read_bytes += row.small_read_bytes + row.large_read_bytes;
            sum.writes += row.small_writes + row.large_writes;
            sum.write_bytes += row.small_write_bytes + row.large_write_bytes;
        }
        Some(sum)
    }

    /// What a statistic of `v$sysstat` grew by; 0 for one that did not, or is none.
    pub fn grown(&self, name: &str) -> f64 {
        let rows = self.statistic_rows();
        rows.iter().find(|row| row.class == "system" && row.name == name).map_or(0.0, |row| row.value)
    }

    /// Where users' sessions spent their time; nothing where the database does not count it.
    pub fn db_time(&self) -> DbTime {
        let Some((before, after)) = self.engines() else { return DbTime::default() };
        let spent = after.foreground.since(&before.foreground);
        let share = |time: Nanos| time.0 as f64 / spent.elapsed.0.max(1) as f64;
        let totals = after.totals.foreground.since(&before.totals.foreground);
        let busy = totals.seen().filter(|(event, _)| !event.is_idle());
        let mut each: Vec<_> = busy.map(|(event, totals)| (event, share(totals.waited))).collect();
        each.sort_by(|a, b| b.1.total_cmp(&a.1));
        let elapsed = (self.after.machine.t - self.before.machine.t).as_secs().max(1e-9);
        DbTime { active: spent.elapsed.as_secs() / elapsed, cpu: share(spent.cpu()), waits: each }
    }

    /// Writes it down as rows of `phase`.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn store(&self, phase: i64, writer: &mut Writer) -> Result<(), LabError> {
        if let Some((before, after)) = self.engines() {
            writer.of_phase(phase, &self.wait_rows())?;
            writer.of_phase(phase, &file_rows(before, after))?;
        }
        writer.of_phase(phase, &self.statistic_rows())?;
        Ok(())
    }

    /// What sessions and processes waited for; nothing where the database does not count it.
    pub(crate) fn wait_rows(&self) -> Vec<WaitEventRow> {
        let Some((before, after)) = self.engines() else { return Vec::new() };
        let totals = after.totals.since(&before.totals);
        let mut rows = wait_rows(true, &totals.foreground);
        rows.extend(wait_rows(false, &totals.background));
        rows
    }

    pub(crate) fn statistic_rows(&self) -> Vec<StatisticRow> {
        let row = |class: &str, name: &str, value: f64| StatisticRow {
            class: class.to_owned(),
            name: name.to_owned(),
            value,
        };
        match (&self.before.database, &self.after.database) {
            (Counters::Engine(before), Counters::Engine(after)) => engine_rows(before, after),
            (Counters::Server(before), Counters::Server(after)) => counters::since(before, after)
                .iter()
                .map(|(name, grown)| row("system", name, *grown))
                .collect(),
            _ => Vec::new(),
        }
    }
}

fn engine_rows(before: &Engine, after: &Engine) -> Vec<StatisticRow> {
    let row = |class: &str, name: &str, value: u64| StatisticRow {
        class: class.to_owned(),
        name: name.to_owned(),
        value: value as f64,
    };
    let users = after.foreground.since(&before.foreground);
    let others = after.background.since(&before.background);
    let mut rows = vec![
        row("time", "DB time", users.elapsed.0),
        row("time", "background elapsed time", others.elapsed.0),
        // No wait accounts for it; whose thread it was is not known, as others do the log writer's work too.
        row("time", "background cpu time", others.cpu().0),
    ];
    match before.schedule.zip(after.schedule) {
        Some((before, after)) => {
            let spent = after.since(&before);
            rows.push(row("time", "DB CPU", spent.cpu.0));
            rows.push(row("time", "OS Wait-cpu (latency) time", spent.delay.0));
        }
        None => rows.push(row("time", "DB CPU", users.cpu().0)),
    }
    for (after, before) in after.statistics.iter().zip(&before.statistics) {
        if after.value > before.value {
            rows.push(row("system", after.name, after.value - before.value));
        }
    }
    rows
}

fn file_rows(before: &Engine, after: &Engine) -> Vec<FileStatRow> {
    let same =
        |a: &FileIoRow, b: &FileIoRow| (a.number, a.file_type, &a.path) == (b.number, b.file_type, &b.path);
    let rows = after.files.iter().map(|now| {
        let before = before.files.iter().find(|row| same(row, now)).map(|row| row.io);
        let (a, b) = (before.unwrap_or_default(), &now.io);
        FileStatRow {
            file_no: u32::from(now.number),
            path: now.path.as_ref().map(|path| path.display().to_string()).unwrap_or_default(),
            file_type: now.file_type.name().to_owned(),
            small_reads: b.small_read.requests - a.small_read.requests,
            small_read_bytes: b.small_read.bytes - a.small_read.bytes,
            small_read_ns: (b.small_read.time - a.small_read.time).0,
            large_reads: b.large_read.requests - a.large_read.requests,
            large_read_bytes: b.large_read.bytes - a.large_read.bytes,
            large_read_ns: (b.large_read.time - a.large_read.time).0,
            small_writes: b.small_write.requests - a.small_write.requests,
            small_write_bytes: b.small_write.bytes - a.small_write.bytes,
            small_write_ns: (b.small_write.time - a.small_write.time).0,
            large_writes: b.large_write.requests - a.large_write.requests,
            large_write_bytes: b.large_write.bytes - a.large_write.bytes,
            large_write_ns: (b.large_write.time - a.large_write.time).0,
        }
    });
    rows.collect()
}

fn wait_rows(foreground: bool, totals: &Totals) -> Vec<WaitEventRow> {
    let row = |event: String, class: &str, t: &waits::EventTotals| WaitEventRow {
        foreground,
        event,
        wait_class: class.to_owned(),
        waits: Some(t.waits),
        timeouts: t.timeouts,
        time_ns: t.waited.0,
        histogram_micro: t.histogram.to_vec(),
    };
    let mut rows: Vec<_> = totals
        .seen()
        .filter(|(event, _)| !event.is_idle())
        .map(|(event, t)| row(event.name().to_owned(), event.class().name(), t))
        .collect();
    for part in Part::ALL {
        let t = totals.part(part);
        if t.waits > 0 {
            rows.push(row(format!("log file sync: {}", part.name()), "Commit", t));
        }
    }
    rows
}
