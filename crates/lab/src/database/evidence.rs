//! What the database itself saw: waits, statistics and files of a phase; sessions, buffers and redo over time.

use crate::LabError;
use engine::instance::{IostatRow, SysstatRow};
use engine::redo::GroupStatus;
use engine::{Core, Instance};
use record::{
    AshRow, AshTickRow, BufferStateRow, FileStatRow, RedoStateRow, StatisticRow, WaitEventRow, Writer,
};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use units::{Nanos, clock};
use waits::ash::{Reader, Sampler, Tick};
use waits::{BothTotals, Event, Part, SessionKind, TimeModel, Totals};

/// How often buffers and redo are looked at.
const LOOK_EVERY: Nanos = Nanos::millis(250);
/// How often active sessions are sampled: runs are short, so ten times as often as Oracle does.
const SAMPLE_EVERY: Nanos = Nanos::millis(100);
/// Samples that are kept until they are taken down.
const SAMPLES_MAX: usize = 1 << 20;

/// The counters at one moment.
pub struct Before {
    at: Nanos,
    totals: BothTotals,
    foreground: TimeModel,
    background: TimeModel,
    statistics: Vec<SysstatRow>,
    files: Vec<IostatRow>,
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
#[derive(Clone, Debug)]
pub struct DbTime {
    /// DB time per time: sessions that were active on average.
    pub active: f64,
    /// Share of DB time that no wait accounts for, 0 to 1: on a processor, or wanting one.
    pub cpu: f64,
    /// Each wait's share of DB time, 0 to 1, the greatest first.
    pub waits: Vec<(Event, f64)>,
}

impl Before {
    /// Takes them down.
    pub fn of(instance: &Instance) -> Self {
        let waits = &instance.core.waits;
        Self {
            at: clock::now(),
            totals: waits.totals(),
            foreground: waits.time_model(SessionKind::Foreground),
            background: waits.time_model(SessionKind::Background),
            statistics: instance.sysstat(),
            files: instance.iostat_file(),
        }
    }

    /// I/O since then.
    pub fn files_since(&self, instance: &Instance) -> FileDelta {
        let mut sum = FileDelta::default();
        for row in self.file_rows(instance) {
            sum.reads += row.small_reads + row.large_reads;
            sum.read_bytes += row.small_read_bytes + row.large_read_bytes;
            sum.writes += row.small_writes + row.large_writes;
            sum.write_bytes += row.small_write_bytes + row.large_write_bytes;
        }
        sum
    }

    /// Where users' sessions spent their time since then.
    pub fn db_time(&self, instance: &Instance) -> DbTime {
        let waits = &instance.core.waits;
        let spent = waits.time_model(SessionKind::Foreground).since(&self.foreground);
        let share = |time: Nanos| time.0 as f64 / spent.elapsed.0.max(1) as f64;
        let totals = waits.totals().foreground.since(&self.totals.foreground);
        let busy = totals.seen().filter(|(event, _)| !event.is_idle());
        let mut each: Vec<_> = busy.map(|(event, totals)| (event, share(totals.waited))).collect();
        each.sort_by(|a, b| b.1.total_cmp(&a.1));
        let elapsed = (clock::now() - self.at).as_secs().max(1e-9);
        DbTime { active: spent.elapsed.as_secs() / elapsed, cpu: share(spent.cpu()), waits: each }
    }

    /// Writes what happened since then, as rows of `phase`.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn store(&self, instance: &Instance, phase: i64, writer: &mut Writer) -> Result<(), LabError> {
        let now = Self::of(instance);
        let mut rows = wait_rows(true, &now.totals.foreground.since(&self.totals.foreground));
        rows.extend(wait_rows(false, &now.totals.background.since(&self.totals.background)));
        writer.of_phase(phase, &rows)?;
        writer.of_phase(phase, &self.statistic_rows(&now))?;
        writer.of_phase(phase, &self.file_rows(instance))?;
        Ok(())
    }

    fn statistic_rows(&self, now: &Self) -> Vec<StatisticRow> {
        let row = |class: &str, name: &str, value: f64| StatisticRow {
            class: class.to_owned(),
            name: name.to_owned(),
            value,
        };
        let time = |name: &str, now: Nanos, before: Nanos| row("time", name, (now - before).0 as f64);
        let mut rows = vec![
            time("DB time", now.foreground.elapsed, self.foreground.elapsed),
            time("DB CPU", now.foreground.cpu(), self.foreground.cpu()),
            time("background elapsed time", now.background.elapsed, self.background.elapsed),
            time("background cpu time", now.background.cpu(), self.background.cpu()),
        ];
        for (now, before) in now.statistics.iter().zip(&self.statistics) {
            if now.value > before.value {
                rows.push(row("system", now.name, (now.value - before.value) as f64));
            }
        }
        rows
    }

    fn file_rows(&self, instance: &Instance) -> Vec<FileStatRow> {
        let paths: Vec<(u16, String)> = instance
            .datafile()
            .into_iter()
            .map(|f| (f.number, f.name))
            .chain(instance.tempfile().into_iter().map(|f| (f.number, f.name)))
            .map(|(number, path)| (number, path.display().to_string()))
            .collect();
        let same = |a: &IostatRow, b: &IostatRow| a.number == b.number && a.file_type == b.file_type;
        let mut rows = Vec::new();
        for now in instance.iostat_file() {
            let before = self.files.iter().find(|row| same(row, &now)).map(|row| row.io).unwrap_or_default();
            let path = paths.iter().find(|(number, _)| *number == now.number && now.number > 0);
            let (a, b) = (&before, &now.io);
            rows.push(FileStatRow {
                file_no: u32::from(now.number),
                path: path.map(|(_, path)| path.clone()).unwrap_or_default(),
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
            });
        }
        rows
    }
}

fn wait_rows(foreground: bool, totals: &Totals) -> Vec<WaitEventRow> {
    let row = |event: String, class: &str, t: &waits::EventTotals| WaitEventRow {
        foreground,
        event,
        wait_class: class.to_owned(),
        waits: t.waits,
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

/// Looks at an instance while it works.
pub struct Observer {
    core: Arc<Core>,
    sampler: Sampler,
    reader: Reader,
    seen: Arc<Mutex<Seen>>,
    stop: mpsc::Sender<()>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Seen {
    buffers: Vec<BufferStateRow>,
    redo: Vec<RedoStateRow>,
}

impl Observer {
    /// Begins to look.
    pub fn start(instance: &Instance) -> Self {
        let core = instance.core.clone();
        let sampler = Sampler::start(&core.waits, SAMPLE_EVERY, SAMPLES_MAX);
        let reader = sampler.reader();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (stop, stopped) = mpsc::channel();
        let (shelf, watched) = (seen.clone(), core.clone());
        let look = move || {
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(LOOK_EVERY.duration()) {
                shelf.lock().unwrap_or_else(PoisonError::into_inner).look(&watched);
            }
        };
        let thread = std::thread::Builder::new().name("observer".into()).spawn(look).ok();
        Self { core, sampler, reader, seen, stop, thread }
    }

    /// Writes what was seen since the last call, as rows of `visit`.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn store(&mut self, visit: i64, writer: &mut Writer) -> Result<(), LabError> {
        let drained = self.sampler.drain(&mut self.reader);
        let ticks: Vec<_> = drained.ticks.iter().map(|tick| tick_row(tick)).collect();
        let samples: Vec<_> = drained.ticks.iter().flat_map(|tick| sample_rows(tick, &self.core)).collect();
        let seen = std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner));
        writer.of_visit(visit, &ticks)?;
        writer.of_visit(visit, &samples)?;
        writer.of_visit(visit, &seen.buffers)?;
        writer.of_visit(visit, &seen.redo)?;
        Ok(())
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        let _ = self.stop.send(());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Seen {
    fn look(&mut self, core: &Core) {
        let t_ns = clock::now().0;
        let states = core.cache.states();
        // A dirty buffer is current too: the bands of the picture must not count it twice.
        let clean = states.xcur.saturating_sub(states.dirty);
        let named = [
            ("free", states.free),
            ("xcur", clean),
            ("dirty", states.dirty),
            ("read", states.read),
            ("flashcur", states.flashcur),
        ];
        for (state, buffers) in named.into_iter().filter(|(state, n)| *n > 0 || *state != "flashcur") {
            self.buffers.push(BufferStateRow { t_ns, state: state.to_owned(), buffers });
        }
        let groups = core.redo.log();
        let Some(current) = groups.iter().find(|g| g.status == GroupStatus::Current) else { return };
        self.redo.push(RedoStateRow {
            t_ns,
            current_group: current.group,
            sequence: u64::from(current.sequence),
            tail_lsn: core.redo.tail_lsn().0,
            durable_lsn: core.redo.durable_lsn().0,
            checkpoint_lsn: core.control.content().checkpoint.0,
            active_groups: groups.iter().filter(|g| g.status == GroupStatus::Active).count() as u32,
            redo_bytes: groups.iter().map(|g| g.bytes).sum(),
        });
    }
}

fn tick_row(tick: &Tick) -> AshTickRow {
    AshTickRow {
        t_ns: tick.real.0,
        planned_ns: tick.planned.0,
        cost_ns: tick.cost.0,
        active: tick.rows.len() as u32,
    }
}

fn sample_rows(tick: &Tick, core: &Core) -> Vec<AshRow> {
    let text = |id: waits::TextId| core.waits.text(id).map(|text| text.to_string());
    tick.rows
        .iter()
        .map(|sample| {
            let (file, block) = sample.file_block.unwrap_or_default();
            AshRow {
                t_ns: tick.real.0,
                weight_ns: tick.weight.0,
                session: sample.sid,
                foreground: sample.kind == SessionKind::Foreground,
                program: sample.program.to_string(),
                event: sample.event().map(|event| event.name().to_owned()),
                wait_class: sample.event().map_or("CPU", |event| event.class().name()).to_owned(),
                p1: sample.parameters[0],
                p2: sample.parameters[1],
                p3: sample.parameters[2],
                file_no: file as u32,
                block_no: block as u32,
                statement: sample.action.or(sample.sql).and_then(text),
                blocking_session: sample.blocker,
            }
        })
        .collect()
}
