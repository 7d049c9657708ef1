//! The log against crashes, faults and hostile bytes, over disks in memory.

mod crash;
mod formats;
mod groups;
mod instance;
mod threads;

use super::record::{self, Form};
use super::room::Urge;
use super::*;
use crate::context::{Background, Environment};
use crate::files::control::{FileState, MemberRecord};
use crate::page::{self, PageId, PageKind};
use crate::statistics::Statistics;
use io::sim::{CrashDisk, Disk, Promises};
use io::{Access, Api, IoError, Outcome, Queue, Storage};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use units::{Rng, Seed};
use waits::SessionKind;

/// Bytes of a page in these tests.
const PAGE: usize = 512;
/// Bytes of a log block.
const BLOCK: u32 = 512;
const DATABASE: u64 = 0x1234_5678_9abc_def0;

/// What goes wrong in a storage, and when.
#[derive(Default)]
struct Trouble {
    /// Writes left until one fails; below 0 never.
    writes_left: i64,
    /// Only writes to a file whose name has this in it count.
    of: String,
}

/// Files in memory that all crash together; what is opened with `dsync` is durable when written.
#[derive(Default)]
struct Memory {
    files: Mutex<BTreeMap<PathBuf, Arc<CrashDisk>>>,
    trouble: Mutex<Option<Trouble>>,
    /// Of each file named here, this write (from 0) fails, and only this one.
    single: Mutex<Vec<(String, i64)>>,
    /// How long a write takes, microseconds: long enough for sessions to queue behind it.
    write_us: AtomicU64,
}

impl Memory {
    fn crash(&self, seed: Seed) {
        for (index, disk) in self.files.lock().values().enumerate() {
            disk.crash(seed.part(index as u64));
        }
    }

    /// The `writes`-th write from now on fails, and all after it, of files whose name has `of` in it.
    fn fail_after(&self, writes: i64, of: &str) {
        *self.trouble.lock() = Some(Trouble { writes_left: writes, of: of.to_owned() });
    }

    fn fail_nth(&self, writes: &[(&str, i64)]) {
        *self.single.lock() = writes.iter().map(|(path, nth)| ((*path).to_owned(), *nth)).collect();
    }

    fn disk(&self, path: &str) -> Arc<CrashDisk> {
        self.files.lock()[Path::new(path)].clone()
    }
}

/// One file of a [`Memory`], as opened.
struct Opened {
    memory: Arc<Memory>,
    path: PathBuf,
    disk: Arc<CrashDisk>,
}

impl Disk for Opened {
    fn bytes(&self) -> u64 {
        self.disk.bytes()
    }
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Outcome {
        self.disk.read_at(buffer, offset)
    }
    fn write_at(&self, data: &[u8], offset: u64) -> Outcome {
        match self.memory.write_us.load(Ordering::Relaxed) {
            0 => {}
            us => std::thread::sleep(std::time::Duration::from_micros(us)),
        }
        for (path, left) in &mut *self.memory.single.lock() {
            if self.path == Path::new(path) {
                *left -= 1;
                if *left == -1 {
                    return Outcome::Errno(5);
                }
            }
        }
        if let Some(trouble) = &mut *self.memory.trouble.lock()
            && self.path.to_string_lossy().contains(&trouble.of)
        {
            trouble.writes_left -= 1;
            if trouble.writes_left < 0 {
                // Torn on its way: some of it may arrive, at the crash that follows.
                let _ = self.disk.write_at(data, offset);
                return Outcome::Errno(5);
            }
        }
        self.disk.write_at_dsync(data, offset)
    }
    fn sync(&self) -> Outcome {
        self.disk.sync()
    }
}

/// The handle that the log gets.
struct Shared(Arc<Memory>);

impl Storage for Shared {
    fn create(&self, path: &Path, bytes: u64, access: Access) -> std::result::Result<Arc<dyn Disk>, IoError> {
        let taken = self.0.files.lock().contains_key(path);
        if taken {
            return Err(IoError::Exists { path: path.to_path_buf() });
        }
        let disk = Arc::new(CrashDisk::new(bytes, Promises::default()));
        self.0.files.lock().insert(path.to_path_buf(), disk);
        self.open(path, access)
    }
    fn open(&self, path: &Path, access: Access) -> std::result::Result<Arc<dyn Disk>, IoError> {
        assert!(access.dsync, "redo files are durable when written");
        let disk = self.0.files.lock().get(path).cloned();
        let disk = disk.ok_or_else(|| IoError::NoSuchFile { path: path.to_path_buf() })?;
        Ok(Arc::new(Opened { memory: self.0.clone(), path: path.to_path_buf(), disk }))
    }
    fn remove(&self, path: &Path) -> std::result::Result<(), IoError> {
        let removed = self.0.files.lock().remove(path);
        removed.map(|_| ()).ok_or_else(|| IoError::NoSuchFile { path: path.to_path_buf() })
    }
    fn is_device(&self, _: &Path) -> bool {
        false
    }
    fn lock(&self, _: &Path) -> std::result::Result<io::StorageLock, IoError> {
        unreachable!("the instance's")
    }
    fn exists(&self, path: &Path) -> bool {
        self.0.files.lock().contains_key(path)
    }
    fn extend(&self, _: &Path, _: u64, _: u64) -> std::result::Result<(), IoError> {
        unreachable!("redo files do not grow")
    }
    fn replace(&self, _: &Path, _: &[u8]) -> std::result::Result<(), IoError> {
        unreachable!("the keeper's")
    }
    fn read(&self, _: &Path) -> std::result::Result<Vec<u8>, IoError> {
        unreachable!("the keeper's")
    }
    fn append_line(&self, _: &Path, _: &str) {
        unreachable!("the keeper's")
    }
    fn create_directory(&self, _: &Path) -> std::result::Result<(), IoError> {
        unreachable!("the instance's")
    }
    fn list(&self, _: &Path) -> std::result::Result<Vec<PathBuf>, IoError> {
        unreachable!("the instance's")
    }
    fn open_queue(
        &self,
        _: Api,
        _: u32,
        _: u32,
        _: &[Arc<dyn Disk>],
    ) -> std::result::Result<Box<dyn Queue>, IoError> {
        unreachable!("the log writer writes itself")
    }
}

/// The control file and the alert log.
#[derive(Default)]
struct Control {
    groups: Mutex<Vec<GroupRecord>>,
    checkpoint: Mutex<Lsn>,
    alerts: Mutex<Vec<String>>,
    refuses: AtomicBool,
}

impl Keeper for Control {
    fn keep(&self, _: &Context, groups: &[GroupRecord]) -> Result<()> {
        if self.refuses.load(Ordering::Relaxed) {
            return Err(crate::EngineError::Invalid("the control file cannot be written".into()));
        }
        *self.groups.lock() = groups.to_vec();
        Ok(())
    }
    fn switched(&self, _: &Context, ended: LogRecord) {
        self.alerts.lock().push(format!("switched after {}", ended.sequence));
    }
    fn failure(&self) -> Option<String> {
        None
    }
    fn crashed(&self, why: &str) {
        self.alerts.lock().push(format!("crashed: {why}"));
    }
    fn alert(&self, line: &str) {
        self.alerts.lock().push(line.to_owned());
    }
}

/// A database without anything but redo and pages.
struct Bed {
    memory: Arc<Memory>,
    control: Arc<Control>,
    environment: Environment,
    waits: Arc<waits::Registry>,
    statistics: Arc<Statistics>,
    buffer: u64,
}

impl Bed {
    /// `groups` groups of `members` members of `bytes` bytes, log blocks of 512.
    fn new(background: Background, groups: u32, members: u32, bytes: u64) -> Self {
        let memory: Arc<Memory> = Arc::default();
        let clock = match background {
            Background::Inline => Clock::steps(),
            Background::Threads => Clock::Real,
        };
        let storage: Arc<dyn Storage> = Arc::new(Shared(memory.clone()));
        let environment = Environment { storage, clock: clock.clone(), background, seed: Seed(1) };
        let bed = Self {
            memory,
            control: Arc::default(),
            environment,
            waits: waits::Registry::new(clock, 64),
            statistics: Statistics::new(),
            buffer: bytes / 4,
        };
        let member = |path: &PathBuf| MemberRecord { state: FileState::Online, path: path.clone() };
        let record = |number| GroupRecord {
            number,
            bytes,
            members: bed.spec(number, members, bytes).members.iter().map(member).collect(),
        };
        let records: Vec<GroupRecord> = (1..=groups).map(record).collect();
        create_files(&*bed.environment.storage, ACCESS, DATABASE, BLOCK, &records).unwrap();
        *bed.control.groups.lock() = records;
        *bed.control.checkpoint.lock() = FIRST_LSN;
        bed
    }

    fn spec(&self, group: u32, members: u32, bytes: u64) -> GroupSpec {
        let member = |n| format!("/redo{group}{}", char::from(b'a' + n as u8)).into();
        GroupSpec { bytes, members: (0..members).map(member).collect() }
    }

    fn context(&self) -> Context {
        let slot = self.waits.register(SessionKind::Foreground, "test");
        Context { session: slot.sid(), slot, counters: self.statistics.counters() }
    }

    fn try_open(&self) -> Result<RedoLog> {
        let options = RedoOptions {
            database: DATABASE,
            buffer_bytes: self.buffer,
            access: ACCESS,
            checkpoint: *self.control.checkpoint.lock(),
            block: BLOCK,
            groups: self.control.groups.lock().clone(),
            statistics: Arc::default(),
        };
        RedoLog::over(&self.environment, options, self.control.clone(), self.context())
    }

    /// Opens and recovers into `pages`, which are those on disk.
    fn open(&self, pages: &Table, clean: bool) -> Result<(RedoLog, Recovered)> {
        let log = self.try_open()?;
        let context = self.context();
        let recovered = {
            let log = &log;
            let mut urge = |_| self.checkpoint(log, pages);
            log.recover_into(&context, pages, clean, &mut urge)?
        };
        Ok((log, recovered))
    }

    /// All pages go to disk, then the control file says so, then the log.
    fn checkpoint(&self, log: &RedoLog, pages: &Table) -> Result<bool> {
        // The position is read before the pages are written, so it may lie before the end.
        let (restart, tail) = (log.restart_lsn(), log.tail_lsn());
        log.sync(&self.context(), tail)?;
        pages.write_all();
        // Any position up to the end is a right one to begin at, if not a quick one.
        let reached = if tail.0 % 3 == 0 { tail } else { restart };
        let reached = reached.max(*self.control.checkpoint.lock());
        *self.control.checkpoint.lock() = reached;
        log.note_checkpoint(reached);
        Ok(true)
    }
}

const ACCESS: Access = Access { read: true, write: true, direct: false, dsync: true };

/// Pages in memory and on disk.
#[derive(Default)]
struct Table {
    cached: Mutex<BTreeMap<PageId, Vec<u8>>>,
    disk: Mutex<BTreeMap<PageId, Vec<u8>>>,
}

impl Table {
    fn write_all(&self) {
        *self.disk.lock() = self.cached.lock().clone();
    }

    /// Some of what is in memory reaches the disk, as database writers would have it; only what is durable in the log.
    fn write_some(&self, durable: Lsn, rng: &mut Rng) {
        for (id, page) in self.cached.lock().iter() {
            if rng.below(3) == 0 && page::lsn(page) <= durable {
                self.disk.lock().insert(*id, page.clone());
            }
        }
    }

    fn crash(&self) {
        *self.cached.lock() = self.disk.lock().clone();
    }

    fn content(&self) -> BTreeMap<PageId, Vec<u8>> {
        self.cached.lock().clone()
    }
}

impl Pages for Table {
    fn batch_bytes(&self) -> usize {
        // Fewer than a chunk may have, more than most have, all that a group has.
        [512, 6_000, 40_000, 1 << 20][self.disk.lock().len() % 4]
    }
    fn exists(&self, id: PageId) -> bool {
        id.file != 9
    }
    fn prefetch(&self, ids: &[PageId]) -> Result<()> {
        assert!(ids.is_sorted(), "reads go in the order of addresses");
        Ok(())
    }
    fn change(
        &self,
        id: PageId,
        whole: bool,
        _since: Lsn,
        change: &mut dyn FnMut(&mut [u8]) -> Result<bool>,
    ) -> Result<()> {
        let mut cached = self.cached.lock();
        let page = cached.entry(id).or_insert_with(|| vec![0; PAGE]);
        if whole {
            // What a frame held before is not to be relied on.
            page.fill(0xa5);
        }
        change(page)?;
        // In memory the checksum means nothing.
        page[..4].fill(0);
        Ok(())
    }
}

/// One random change of up to three pages of `pages`: its record, with the edits already made. What `Change` does.
fn random_change(
    rng: &mut Rng,
    pages: &mut BTreeMap<PageId, Vec<u8>>,
    block_max: u32,
) -> (Vec<u8>, Vec<PageId>) {
    let (mut out, mut ids) = (Vec::new(), Vec::new());
    record::begin_record(&mut out);
    for _ in 0..=rng.below(3) {
        let id = PageId { file: 1 + rng.below(2) as u16, block: rng.below(u64::from(block_max)) as u32 };
        if ids.contains(&id) {
            continue;
        }
        ids.push(id);
        let fresh = !pages.contains_key(&id) || rng.below(10) == 0;
        let page = pages.entry(id).or_insert_with(|| vec![0; PAGE]);
        let kept = page::lsn(page);
        if fresh {
            page::format(page, id, PageKind::Heap, 7);
            page::set_lsn(page, kept);
        }
        let mut edits = Vec::new();
        (0..rng.below(5)).for_each(|_| random_edit(rng, page, &mut edits));
        match rng.below(4) {
            0 if !fresh => record::push_image(&mut out, id, page),
            _ => {
                let form = if fresh { Form::Format } else { Form::Edits };
                record::push_part(&mut out, id, form, page[4], page::object(page), [&edits[..]].into_iter());
            }
        }
    }
    record::end_record(&mut out);
    (out, ids)
}

fn random_edit(rng: &mut Rng, page: &mut [u8], edits: &mut Vec<u8>) {
    let span = |rng: &mut Rng| {
        let at = record::EDITABLE_FROM + rng.below((PAGE - record::EDITABLE_FROM) as u64) as usize;
        (at, rng.below((PAGE - at) as u64 + 1) as usize)
    };
    let (at, length) = span(rng);
    match rng.below(3) {
        0 => {
            let data: Vec<u8> = (0..length.min(40)).map(|_| rng.next_u64() as u8).collect();
            page[at..at + data.len()].copy_from_slice(&data);
            record::push_write(edits, at, &data);
        }
        1 => {
            let room = PAGE - length - record::EDITABLE_FROM;
            let to = record::EDITABLE_FROM + rng.below(room as u64 + 1) as usize;
            page.copy_within(at..at + length, to);
            record::push_copy(edits, at, length, to);
        }
        _ => {
            let byte = rng.below(2) as u8 * 0x5a;
            page[at..at + length].fill(byte);
            record::push_fill(edits, at, length, byte);
        }
    }
}

/// Makes one random change of `pages` durable or not; its end. `None` when the log has failed.
fn change(log: &RedoLog, context: &Context, rng: &mut Rng, pages: &Table, urge: Urge<'_>) -> Option<Lsn> {
    let most = record::RECORD_HEADER + 3 * (record::PART_HEADER + PAGE + 300);
    let reservation = log.reserve_waiting(context, most, urge).ok()?;
    let mut cached = pages.cached.lock();
    let (record, ids) = random_change(rng, &mut cached, 40);
    let end = log.append(reservation, &record);
    for id in ids {
        page::set_lsn(cached.get_mut(&id).unwrap(), end);
    }
    Some(end)
}
