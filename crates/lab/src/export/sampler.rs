//! What is seen of the exports in use, once a second, written into the record beside the run: servers, channels, files, calls, moves.

use super::{Mounted, in_use};
use crate::LabError;
use nfs::{Cause, ChannelCounters, FileFacts, LayoutFacts, Mount};
use record::{
    Beside, DnfsChannelRow, DnfsFileRow, DnfsMoveRow, DnfsServerRow, DnfsStatRow, RecordError, Writer,
};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use units::{Nanos, clock};

/// How often.
const SAMPLE_EVERY: Nanos = Nanos::millis(1_000);

/// Mounts that are remembered until the next sample, where nobody samples.
const LEFT_MAX: usize = 64;

/// What mounts did that ended between two samples.
static LEFT: Mutex<Vec<Sample>> = Mutex::new(Vec::new());

/// A thread that samples while a run goes. Ended by [`ExportSampler::stop`].
pub struct ExportSampler {
    stop: mpsc::Sender<()>,
    thread: Option<JoinHandle<Result<(), RecordError>>>,
}

impl ExportSampler {
    /// Begins to sample into the record of `writer`.
    ///
    /// # Errors
    /// [`LabError::Record`]; [`LabError::Workload`]: no thread can be had.
    pub fn start(writer: &Writer) -> Result<Self, LabError> {
        let mut beside = writer.beside()?;
        let (stop, stopped) = mpsc::channel();
        let look = move || {
            let mut known = Known::default();
            loop {
                let over =
                    !matches!(stopped.recv_timeout(SAMPLE_EVERY.duration()), Err(RecvTimeoutError::Timeout));
                for sample in samples() {
                    known.write(sample, &mut beside)?;
                }
                if over {
                    return Ok(());
                }
            }
        };
        let thread = std::thread::Builder::new().name("nfs sampler".into()).spawn(look);
        let thread = thread.map_err(|error| LabError::Workload {
            workload: "nfs sampler",
            reason: format!(
                "the system gives no thread: {error}. Look at ulimit -u and at pids.max of the control group"
            ),
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Takes the last sample, and ends.
    ///
    /// # Errors
    /// What could not be written.
    pub fn stop(mut self) -> Result<(), RecordError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), RecordError> {
        let _ = self.stop.send(());
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            // Ended before, or it panicked and has said so.
            Some(Err(_)) | None => Ok(()),
        }
    }
}

impl Drop for ExportSampler {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// A mount is about to end: what it did until now is kept for whoever samples.
pub(super) fn leave(mounted: &Mounted) {
    let Some(storage) = mounted.storage.upgrade() else { return };
    let sample = Sample::of(mounted.number, storage.mount());
    let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
    if left.len() < LEFT_MAX {
        left.push(sample);
    }
}

/// A mount as it is now.
struct Sample {
    mount: u32,
    t_ns: u64,
    server: DnfsServerRow,
    channels: Vec<ChannelCounters>,
    files: Vec<FileFacts>,
    calls: BTreeMap<&'static str, u64>,
    moves: Vec<nfs::Followed>,
}

fn samples() -> Vec<Sample> {
    let mut all = std::mem::take(&mut *LEFT.lock().unwrap_or_else(PoisonError::into_inner));
    all.extend(in_use().iter().map(|(number, storage)| Sample::of(*number, storage.mount())));
    all
}

impl Sample {
    fn of(number: u32, mount: &Mount) -> Self {
        let (target, (read_max, write_max), t_ns) = (mount.target(), mount.transfer_max(), clock::now().0);
        let server = DnfsServerRow {
            t_ns,
            mount: number,
            server: target.server.clone(),
            export: target.export.clone(),
            mount_port: target.mount_port.map(u32::from),
            port: target.port.into(),
            version: target.version.title().into(),
            read_max: read_max.into(),
            write_max: write_max.into(),
            paths: list(&target.paths),
        };
        Self {
            mount: number,
            t_ns,
            server,
            channels: mount.channels(),
            files: mount.files(),
            calls: mount.calls(),
            moves: mount.followed(),
        }
    }
}

fn list<T: Display>(all: &[T]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// What is in the record already, by mount.
#[derive(Default)]
struct Known(HashMap<u32, Written>);

#[derive(Default)]
struct Written {
    server: Option<DnfsServerRow>,
    channels: HashMap<u32, ChannelCounters>,
    files: HashMap<String, FileFacts>,
    calls: BTreeMap<&'static str, u64>,
    /// Until when moves are there.
    moved: Nanos,
}

impl Known {
    fn write(&mut self, sample: Sample, beside: &mut Beside) -> Result<(), RecordError> {
        let Sample { mount, t_ns, server, channels, files, calls, moves } = sample;
        let known = self.0.entry(mount).or_default();
        if known.server.is_none() {
            beside.add(std::slice::from_ref(&server))?;
            known.server = Some(server);
        }
        let is_new = |channel: &&ChannelCounters| known.channels.get(&channel.id) != Some(*channel);
        let rows: Vec<_> = channels.iter().filter(is_new).map(|it| channel_row(t_ns, mount, it)).collect();
        beside.add(&rows)?;
        known.channels.extend(channels.into_iter().map(|channel| (channel.id, channel)));
        let rows: Vec<_> = files
            .iter()
            .filter(|file| known.files.get(&file.path).is_none_or(|old| !is_like(old, file)))
            .map(|file| file_row(t_ns, mount, file))
            .collect();
        beside.add(&rows)?;
        known.files.extend(files.into_iter().map(|file| (file.path.clone(), file)));
        let rows: Vec<_> = calls
            .iter()
            .filter(|&(name, count)| known.calls.get(name) != Some(count))
            .map(|(name, &calls)| DnfsStatRow { t_ns, mount, operation: (*name).into(), calls })
            .collect();
        beside.add(&rows)?;
        known.calls = calls;
        let new: Vec<_> = moves.iter().filter(|moved| moved.at > known.moved).collect();
        beside.add(&new.iter().map(|moved| move_row(mount, moved)).collect::<Vec<_>>())?;
        known.moved = new.last().map_or(known.moved, |moved| moved.at);
        Ok(())
    }
}

/// A layout that was looked at and found right is nothing new.
fn is_like(old: &FileFacts, new: &FileFacts) -> bool {
    let still = |file: &FileFacts| FileFacts {
        layout: file.layout.clone().map(|layout| LayoutFacts { sure: Nanos(0), ..layout }),
        ..file.clone()
    };
    still(old) == still(new)
}

fn channel_row(t_ns: u64, mount: u32, it: &ChannelCounters) -> DnfsChannelRow {
    DnfsChannelRow {
        t_ns,
        mount,
        channel: it.id,
        worker: it.worker,
        worker_name: it.worker_name.clone(),
        address: it.address.to_string(),
        local: it.local.map(|local| local.ip().to_string()),
        local_port: it.local.map(|local| local.port().into()),
        data_server: it.data_server,
        state: it.state.name().into(),
        reads: it.reads,
        writes: it.writes,
        commits: it.commits,
        receives: it.receives,
        replays: it.replays,
        reconnects: it.reconnects,
        read_bytes: it.read_bytes,
        written_bytes: it.written_bytes,
        reads_done: it.read_times.count,
        read_ns: it.read_times.sum.0,
        read_max_ns: it.read_times.max.0,
        writes_done: it.write_times.count,
        write_ns: it.write_times.sum.0,
        write_max_ns: it.write_times.max.0,
        stalls: it.stalls.count,
        stall_ns: it.stalls.sum.0,
        stall_max_ns: it.stalls.max.0,
    }
}

fn file_row(t_ns: u64, mount: u32, file: &FileFacts) -> DnfsFileRow {
    let layout = file.layout.as_ref();
    DnfsFileRow {
        t_ns,
        mount,
        path: file.path.clone(),
        bytes: file.size,
        layout: layout.map(|layout| layout.kind.name().into()),
        nodes: layout.map(|layout| list(&layout.nodes)).unwrap_or_default(),
        since_ns: layout.map(|layout| layout.since.0),
        recalls: file.recalls,
        refreshes: file.refreshes,
        doubts: file.doubts,
        moves: file.moves,
    }
}

fn move_row(mount: u32, moved: &nfs::Followed) -> DnfsMoveRow {
    let cause = match moved.cause {
        Cause::Recall => "recall",
        Cause::Notification => "notification",
        Cause::DataServer => "data server",
        Cause::Flags => "flags",
        Cause::Refresh => "refresh",
    };
    DnfsMoveRow {
        t_ns: moved.at.0,
        mount,
        path: moved.path.clone(),
        cause: cause.into(),
        old_nodes: list(&moved.from),
        new_nodes: list(&moved.to),
        stall_ns: moved.stall.0,
        unsure_bytes: moved.unsure_bytes,
    }
}
