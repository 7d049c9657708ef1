//! What the database shows over time while it works: active sessions, buffers, redo. Its exact counters are in [`super::interval`].

use crate::LabError;
use engine::redo::GroupStatus;
use engine::{Core, Instance};
use record::{AshRow, AshTickRow, BufferStateRow, RedoStateRow, Writer};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use units::{Nanos, clock};
use waits::SessionKind;
use waits::ash::{Reader, Sampler, Tick};

/// How often buffers and redo are looked at.
const LOOK_EVERY: Nanos = Nanos::millis(250);
/// How often active sessions are sampled: runs are short, so ten times as often as Oracle does.
const SAMPLE_EVERY: Nanos = Nanos::millis(100);
/// Samples that are kept until they are taken down.
const SAMPLES_MAX: usize = 1 << 20;

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
        Self::every(instance, LOOK_EVERY)
    }

    /// The same, at buffers and redo `often`.
    pub fn every(instance: &Instance, often: Nanos) -> Self {
        let core = instance.core.clone();
        let sampler = Sampler::start(&core.waits, SAMPLE_EVERY, SAMPLES_MAX);
        let reader = sampler.reader();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (stop, stopped) = mpsc::channel();
        let (shelf, watched) = (seen.clone(), core.clone());
        let look = move || {
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(often.duration()) {
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
            ("flashfree", states.flashfree),
        ];
        for (state, buffers) in named.into_iter().filter(|(state, n)| *n > 0 || !state.starts_with("flash")) {
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
