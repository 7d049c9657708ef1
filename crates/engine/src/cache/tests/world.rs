//! A small world around a cache: files in memory that fail and tear on request, a log that is only a number, writers inline
//! or on threads. It watches what must never happen: a page on its way to disk before its redo.

use crate::cache::{BufferCache, CacheConfig, PageWrite, Site};
use crate::context::{Background, Environment};
use crate::files::FileSet;
use crate::files::control::{FileRecord, FileState, TablespaceKind};
use crate::flash::{FlashConfig, Policy, Stamp};
use crate::page::{self, Lsn, PageId, PageKind};
use crate::statistics::{Statistic, Statistics};
use crate::{Context, EngineError, Result};
use io::sim::{Disk, SimQueue};
use io::{Access, Api, IoError, Outcome, Queue, Storage, StorageLock};
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use units::{Clock, Nanos, Seed};
use waits::{Registry, SessionKind};

pub const BLOCK: usize = 2048;
pub const EIO: i32 = 5;
/// Where a page of these tests keeps its number, and its complement, at the end.
pub const VALUE_AT: usize = 100;
/// Redo of one change.
const RECORD_BYTES: u64 = 100;

/// What a memory disk does wrong, and what it has seen.
#[derive(Default)]
pub struct Faults {
    pub reads: AtomicU64,
    pub writes: AtomicU64,
    /// Offsets whose reads fail.
    pub bad_reads: Mutex<BTreeSet<u64>>,
    /// Offsets whose writes fail (a write that begins there or goes across).
    pub bad_writes: Mutex<BTreeSet<u64>>,
    /// How many of the next transfers succeed; u64::MAX for all.
    pub good_calls: AtomicU64,
    /// Whether the one after them alone fails, or all.
    pub only_one: AtomicBool,
    pub fired: AtomicBool,
    /// The redo that is durable; no page beyond may be written.
    pub durable: AtomicU64,
    pub too_early: Mutex<Vec<String>>,
    /// Sum of the writes in flight to one place: two at once are a bug.
    busy: Mutex<BTreeSet<(PathBuf, u64)>>,
    pub collisions: AtomicU64,
    /// Each transfer takes so many yields, so that others get in between.
    pub slow: AtomicU64,
    /// What the flash cache's device does: see [`FlashFault`].
    pub flash: Mutex<FlashFault>,
}

/// How a flash device goes wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlashFault {
    #[default]
    None,
    /// Reads end with `EIO`.
    Reads,
    /// Writes end with `EIO`.
    Writes,
    /// Reads give what is one block further on.
    Misdirected,
    /// Reads give a block with a flipped bit.
    Rotten,
    /// Transfers are short.
    Short,
}

impl Faults {
    fn strikes(&self) -> bool {
        let left = self.good_calls.load(Ordering::Relaxed);
        if left == u64::MAX {
            return false;
        }
        if left > 0 {
            self.good_calls.store(left - 1, Ordering::Relaxed);
            return false;
        }
        self.fired.store(true, Ordering::Relaxed);
        if self.only_one.load(Ordering::Relaxed) {
            self.good_calls.store(u64::MAX, Ordering::Relaxed);
        }
        true
    }
}

pub struct MemoryDisk {
    path: PathBuf,
    bytes: Mutex<Vec<u8>>,
    faults: Arc<Faults>,
    /// Data files are watched, the doublewrite file is not.
    watched: bool,
}

impl MemoryDisk {
    fn blocks_of(&self, data: &[u8], offset: u64) -> Vec<u64> {
        (0..data.len() as u64).step_by(BLOCK).map(|at| offset + at).collect()
    }

    fn is_flash(&self) -> bool {
        self.path.to_string_lossy().contains("flash")
    }

    fn dawdle(&self) {
        for _ in 0..self.faults.slow.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
    }

    /// In two halves, so that whoever reads meanwhile may see a mixture.
    fn put(&self, data: &[u8], offset: u64) -> Outcome {
        if self.bytes() < offset + data.len() as u64 {
            return Outcome::Errno(28);
        }
        let (first, second) = data.split_at(data.len() / BLOCK / 2 * BLOCK + BLOCK / 2);
        for (half, at) in [(first, offset as usize), (second, offset as usize + first.len())] {
            self.dawdle();
            self.bytes.lock()[at..at + half.len()].copy_from_slice(half);
        }
        Outcome::Full
    }

    fn watch(&self, data: &[u8], offset: u64) {
        let durable = self.faults.durable.load(Ordering::SeqCst);
        for (index, block) in data.chunks(BLOCK).enumerate() {
            if block.len() == BLOCK && page::lsn(block).0 > durable {
                let text = format!(
                    "{:?} block {}: LSN {:?}, durable {durable}",
                    self.path,
                    offset / BLOCK as u64 + index as u64,
                    page::lsn(block)
                );
                self.faults.too_early.lock().push(text);
            }
        }
    }
}

impl Disk for MemoryDisk {
    fn bytes(&self) -> u64 {
        self.bytes.lock().len() as u64
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Outcome {
        let flash = if self.is_flash() { *self.faults.flash.lock() } else { FlashFault::None };
        match flash {
            FlashFault::Reads => return Outcome::Errno(EIO),
            FlashFault::Short => return Outcome::Short(512),
            _ => {}
        }
        let offset = if flash == FlashFault::Misdirected { offset + BLOCK as u64 } else { offset };
        self.faults.reads.fetch_add(u64::from(!self.is_flash()), Ordering::Relaxed);
        let bad = self.faults.bad_reads.lock().range(offset..offset + buffer.len() as u64).next().is_some();
        if self.watched && bad || self.faults.strikes() {
            return Outcome::Errno(EIO);
        }
        self.dawdle();
        let bytes = self.bytes.lock();
        let start = (offset as usize).min(bytes.len());
        let length = buffer.len().min(bytes.len() - start);
        buffer[..length].copy_from_slice(&bytes[start..start + length]);
        if flash == FlashFault::Rotten {
            buffer[length / 2] ^= 4;
        }
        Outcome::from_result(length as i64, buffer.len() as u32)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> Outcome {
        if self.is_flash() && *self.faults.flash.lock() == FlashFault::Writes {
            return Outcome::Errno(EIO);
        }
        self.faults.writes.fetch_add(1, Ordering::Relaxed);
        let bad = self.faults.bad_writes.lock().range(offset..offset + data.len() as u64).next().is_some();
        if self.watched && bad || self.faults.strikes() {
            return Outcome::Errno(EIO);
        }
        let blocks = self.blocks_of(data, offset);
        if self.watched {
            self.watch(data, offset);
            let mut busy = self.faults.busy.lock();
            for block in &blocks {
                if !busy.insert((self.path.clone(), *block)) {
                    self.faults.collisions.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        let outcome = self.put(data, offset);
        if self.watched {
            let mut busy = self.faults.busy.lock();
            for block in &blocks {
                busy.remove(&(self.path.clone(), *block));
            }
        }
        outcome
    }

    fn sync(&self) -> Outcome {
        Outcome::Full
    }
}

/// Files in memory, all durable at once.
pub struct MemoryStorage {
    files: Mutex<BTreeMap<PathBuf, Arc<MemoryDisk>>>,
    pub faults: Arc<Faults>,
    queues: AtomicU64,
}

impl MemoryStorage {
    pub fn new() -> Arc<Self> {
        let faults = Faults { good_calls: AtomicU64::new(u64::MAX), ..Faults::default() };
        Arc::new(Self { files: Mutex::default(), faults: Arc::new(faults), queues: AtomicU64::new(0) })
    }

    pub fn disk(&self, path: &Path) -> Arc<MemoryDisk> {
        self.files.lock()[path].clone()
    }

    /// Changes bytes behind everybody's back.
    pub fn damage(&self, path: &Path, offset: u64, change: impl FnOnce(&mut [u8])) {
        change(&mut self.disk(path).bytes.lock()[offset as usize..]);
    }
}

impl Storage for MemoryStorage {
    fn create(&self, path: &Path, bytes: u64, _: Access) -> std::result::Result<Arc<dyn Disk>, IoError> {
        let name = path.to_string_lossy();
        let watched = !name.contains("doublewrite") && !name.contains("flash");
        let bytes = Mutex::new(vec![0; bytes as usize]);
        let disk = Arc::new(MemoryDisk { path: path.into(), bytes, faults: self.faults.clone(), watched });
        assert!(self.files.lock().insert(path.into(), disk.clone()).is_none(), "{path:?} exists");
        Ok(disk)
    }
    fn open(&self, path: &Path, _: Access) -> std::result::Result<Arc<dyn Disk>, IoError> {
        Ok(self.disk(path))
    }
    fn extend(&self, path: &Path, _: u64, to: u64) -> std::result::Result<(), IoError> {
        self.disk(path).bytes.lock().resize(to as usize, 0);
        Ok(())
    }
    fn remove(&self, path: &Path) -> std::result::Result<(), IoError> {
        self.files.lock().remove(path);
        Ok(())
    }
    fn replace(&self, _: &Path, _: &[u8]) -> std::result::Result<(), IoError> {
        panic!("no small files here")
    }
    fn read(&self, _: &Path) -> std::result::Result<Vec<u8>, IoError> {
        panic!("no small files here")
    }
    fn append_line(&self, _: &Path, _: &str) {}
    fn exists(&self, path: &Path) -> bool {
        self.files.lock().contains_key(path)
    }
    fn is_device(&self, _: &Path) -> bool {
        false
    }
    fn lock(&self, _: &Path) -> std::result::Result<StorageLock, IoError> {
        panic!("nothing is locked here")
    }
    fn create_directory(&self, _: &Path) -> std::result::Result<(), IoError> {
        Ok(())
    }
    fn list(&self, _: &Path) -> std::result::Result<Vec<PathBuf>, IoError> {
        Ok(self.files.lock().keys().cloned().collect())
    }
    fn open_queue(
        &self,
        _: Api,
        depth: u32,
        buffer_bytes: u32,
        files: &[Arc<dyn Disk>],
    ) -> std::result::Result<Box<dyn Queue>, IoError> {
        let seed = Seed(self.queues.fetch_add(1, Ordering::Relaxed));
        Ok(Box::new(SimQueue::new(depth, buffer_bytes, files.to_vec(), seed)?))
    }
}

/// The instance around the cache under test.
pub struct World {
    pub storage: Arc<MemoryStorage>,
    environment: Environment,
    files: FileSet,
    pub cache: BufferCache,
    pub registry: Arc<Registry>,
    pub statistics: Arc<Statistics>,
    tail: AtomicU64,
    /// All records of each page: begin and end.
    history: Mutex<BTreeMap<PageId, Vec<(Lsn, Lsn)>>>,
    pub noted: AtomicU64,
    pub wanted: AtomicU64,
    pub checkpoint_target: AtomicU64,
    pub crashed: Mutex<Option<String>>,
    pub alerts: Mutex<Vec<String>>,
    writers: Vec<Mutex<Context>>,
    posted: Mutex<bool>,
    bell: Condvar,
    stopping: AtomicBool,
}

/// A cache of `frames` over files of so many blocks.
pub fn world(config: &CacheConfig, background: Background, file_blocks: &[u32]) -> Arc<World> {
    world_on(MemoryStorage::new(), config, background, file_blocks)
}

/// On storage that was there before: files that exist are opened.
pub fn world_on(
    storage: Arc<MemoryStorage>,
    config: &CacheConfig,
    background: Background,
    file_blocks: &[u32],
) -> Arc<World> {
    let clock = if background == Background::Inline { Clock::steps() } else { Clock::Real };
    let environment =
        Environment { storage: storage.clone(), clock: clock.clone(), background, seed: Seed(1) };
    let files = FileSet::new(storage.clone(), Access::for_mode(config.mode, true), BLOCK as u32);
    for (index, blocks) in file_blocks.iter().enumerate() {
        let record = record(index as u16 + 1, *blocks);
        let made = if storage.exists(&record.path) {
            files.open(&record, TablespaceKind::Permanent, 1)
        } else {
            files.create(&record, TablespaceKind::Permanent, 1)
        };
        made.unwrap();
    }
    let registry = Registry::new(clock, 64);
    let statistics = Statistics::new();
    let cache = BufferCache::with(&*storage, config).unwrap();
    let writers = (0..cache.writer_count())
        .map(|number| {
            Mutex::new(context(&registry, &statistics, SessionKind::Background, &format!("dbw{number}")))
        })
        .collect();
    Arc::new(World {
        storage,
        environment,
        files,
        cache,
        registry,
        statistics,
        tail: AtomicU64::new(1_000),
        history: Mutex::default(),
        noted: AtomicU64::new(0),
        wanted: AtomicU64::new(0),
        checkpoint_target: AtomicU64::new(20_000),
        crashed: Mutex::default(),
        alerts: Mutex::default(),
        writers,
        posted: Mutex::default(),
        bell: Condvar::new(),
        stopping: AtomicBool::new(false),
    })
}

pub fn config(frames: usize) -> CacheConfig {
    CacheConfig::new(BLOCK, frames)
}

/// The same with a flash cache of so many bytes in each of two files, on the shutdown that is named, if any.
pub fn with_flash(config: CacheConfig, policy: Policy, bytes: u64, clean: Option<Stamp>) -> CacheConfig {
    let files = [1, 2].map(|number| (PathBuf::from(format!("/memory/flash{number}")), bytes));
    let flash = FlashConfig {
        files: files.to_vec(),
        policy,
        database_id: 1,
        clean,
        timeout: Nanos::millis(100_000),
        staged: 32,
        api: Api::Threads,
    };
    CacheConfig { flash: Some(flash), ..config }
}

pub fn path(file: u16) -> PathBuf {
    format!("/memory/file{file}.dbf").into()
}

pub fn page(block: u32) -> PageId {
    PageId { file: 1, block }
}

fn record(number: u16, blocks: u32) -> FileRecord {
    FileRecord {
        number,
        tablespace: 0,
        temporary: false,
        state: FileState::Online,
        blocks,
        next_blocks: 0,
        max_blocks: blocks,
        created: Lsn(0),
        path: path(number),
    }
}

fn context(
    registry: &Arc<Registry>,
    statistics: &Arc<Statistics>,
    kind: SessionKind,
    program: &str,
) -> Context {
    let slot = registry.register(kind, program);
    Context { session: slot.sid(), slot, counters: statistics.counters() }
}

impl World {
    pub fn context(&self) -> Context {
        context(&self.registry, &self.statistics, SessionKind::Foreground, "user")
    }

    pub fn count(&self, statistic: Statistic) -> u64 {
        self.statistics.value(statistic)
    }

    /// Appends a record for a page that is being changed; the caller drops the latch.
    pub fn log(&self, page: &mut PageWrite) -> Lsn {
        page.mark_dirty(self.redo_tail());
        let begin = {
            let mut history = self.history.lock();
            let begin = Lsn(self.tail.fetch_add(RECORD_BYTES, Ordering::SeqCst));
            history.entry(page.id()).or_default().push((begin, Lsn(begin.0 + RECORD_BYTES)));
            begin
        };
        let end = Lsn(begin.0 + RECORD_BYTES);
        page.set_lsn(end);
        end
    }

    /// Sets the number in a page, formatting it when it never was. Returns the LSN.
    pub fn set(&self, context: &Context, id: PageId, value: u64) -> Result<Lsn> {
        let mut page = self.cache.write_latch(self, context, id)?;
        Ok(self.set_in(&mut page, value))
    }

    pub fn set_in(&self, page: &mut PageWrite, value: u64) -> Lsn {
        let id = page.id();
        if page::page_id(page.bytes()) != id {
            page::format(page.bytes_mut(), id, PageKind::Heap, u32::from(id.file) * 10 + id.block % 2);
            page.note_image();
        }
        put(page.bytes_mut(), value);
        self.log(page)
    }

    pub fn get(&self, context: &Context, id: PageId) -> Result<u64> {
        let page = self.cache.read(self, context, id)?;
        Ok(value(&page, id))
    }

    /// What the disk has.
    pub fn on_disk(&self, id: PageId) -> u64 {
        let mut bytes = vec![0; BLOCK];
        let offset = u64::from(id.block) * BLOCK as u64;
        bytes.copy_from_slice(&self.storage.disk(&path(id.file)).bytes.lock()[offset as usize..][..BLOCK]);
        page::check(&bytes, id).unwrap();
        value(&bytes, id)
    }

    /// The data files have all redo before `checkpoint`.
    pub fn assert_covered(&self, checkpoint: Lsn) {
        let history = self.history.lock().clone();
        for (id, records) in history {
            let Some((_, needed)) = records.iter().rev().find(|(begin, _)| *begin < checkpoint) else {
                continue;
            };
            let offset = u64::from(id.block) * BLOCK as u64;
            let disk = self.storage.disk(&path(id.file));
            let found = page::lsn(&disk.bytes.lock()[offset as usize..][..BLOCK]);
            assert!(
                found >= *needed,
                "{id}: the disk has {found:?}, the checkpoint {checkpoint:?} claims {needed:?}"
            );
        }
    }

    /// Nothing that must never happen has happened.
    pub fn assert_sound(&self) {
        assert_eq!(*self.storage.faults.too_early.lock(), Vec::<String>::new());
        assert_eq!(self.storage.faults.collisions.load(Ordering::Relaxed), 0, "two writes of a page at once");
    }

    /// Runs the writers on threads while `body` runs.
    pub fn with_threads<T>(self: &Arc<Self>, body: impl FnOnce() -> T) -> T {
        std::thread::scope(|scope| {
            for number in 0..self.cache.writer_count() {
                scope.spawn(move || self.run_writer(number));
            }
            if let Some(flash) = self.cache.flash() {
                scope.spawn(move || {
                    let context = self.context();
                    while !self.stopping.load(Ordering::Acquire) {
                        if !flash.turn(self, &context) {
                            std::thread::sleep(std::time::Duration::from_micros(200));
                        }
                    }
                });
            }
            // Also when the body panics: a test that fails should not hang.
            let _stop = Stop(self);
            body()
        })
    }

    fn run_writer(&self, number: u32) {
        let context = self.writers[number as usize].lock();
        while !self.stopping.load(Ordering::Acquire) {
            match self.cache.writer_step(self, &context, number) {
                Ok((true, _)) => {}
                Ok((false, idle)) => {
                    let mut posted = self.posted.lock();
                    if !*posted {
                        self.bell
                            .wait_for(&mut posted, idle.duration().min(std::time::Duration::from_millis(5)));
                    }
                    *posted = false;
                }
                Err(EngineError::Crashed(_)) => return,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

struct Stop<'a>(&'a World);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.stopping.store(true, Ordering::Release);
        self.0.bell.notify_all();
    }
}

/// Writes a number into a page so that a mixture of two versions is seen.
pub fn put(bytes: &mut [u8], value: u64) {
    bytes[VALUE_AT..VALUE_AT + 8].copy_from_slice(&value.to_le_bytes());
    let end = bytes.len();
    bytes[end - 8..].copy_from_slice(&(!value).to_le_bytes());
}

/// The number in a page; 0 in one that was never written.
pub fn value(bytes: &[u8], id: PageId) -> u64 {
    if page::page_id(bytes) == PageId::NONE {
        assert!(bytes.iter().all(|b| *b == 0), "{id} is neither ours nor blank");
        return 0;
    }
    assert_eq!(page::page_id(bytes), id);
    let value = page::get_u64(bytes, VALUE_AT);
    assert_eq!(page::get_u64(bytes, bytes.len() - 8), !value, "{id} is a mixture of two versions");
    value
}

impl Site for World {
    fn environment(&self) -> &Environment {
        &self.environment
    }
    fn cache(&self) -> &BufferCache {
        &self.cache
    }
    fn files(&self) -> &FileSet {
        &self.files
    }
    fn multiblock_read_count(&self) -> u32 {
        8
    }
    fn direct_read_depth(&self) -> u32 {
        4
    }
    fn checkpoint_target_bytes(&self) -> u64 {
        self.checkpoint_target.load(Ordering::Relaxed)
    }
    fn redo_tail(&self) -> Lsn {
        Lsn(self.tail.load(Ordering::SeqCst))
    }
    fn redo_flush(&self, _: &Context, lsn: Lsn) -> Result<()> {
        self.alive()?;
        assert!(lsn <= self.redo_tail(), "redo that does not exist is asked for");
        self.storage.faults.durable.fetch_max(lsn.0, Ordering::SeqCst);
        Ok(())
    }
    fn checkpoint_wanted(&self) -> Option<Lsn> {
        match self.wanted.load(Ordering::SeqCst) {
            0 => None,
            wanted => Some(Lsn(wanted)),
        }
    }
    fn checkpoint_reached(&self, _: &Context, lsn: Lsn) -> Result<()> {
        let before = self.noted.swap(lsn.0, Ordering::SeqCst);
        assert!(before <= lsn.0, "the checkpoint went back");
        Ok(())
    }
    fn post_writers(&self) {
        *self.posted.lock() = true;
        self.bell.notify_all();
    }
    fn post_flash_writer(&self) {}
    fn post_checkpointer(&self) -> bool {
        false
    }
    fn step_writers(&self) -> Result<bool> {
        let mut moved = false;
        for (number, context) in self.writers.iter().enumerate() {
            let Some(context) = context.try_lock() else { continue };
            moved |= self.cache.writer_step(self, &context, number as u32)?.0;
        }
        Ok(moved)
    }
    fn alert(&self, line: &str) {
        self.alerts.lock().push(line.to_owned());
    }
    fn crash(&self, why: &str) {
        self.crashed.lock().get_or_insert_with(|| why.to_owned());
        self.cache.wake_all();
    }
    fn alive(&self) -> Result<()> {
        match &*self.crashed.lock() {
            None => Ok(()),
            Some(why) => Err(EngineError::Crashed(why.clone())),
        }
    }
}
