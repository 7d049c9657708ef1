//! The buffer cache: frames of pages, second chance with touch counts, database writers, checkpoint.
//!
//! Start with [`BufferCache::read`] and [`BufferCache::write_latch`] (`read`), then `frames` (the map and the books), `latch` (what is
//! latched and how a change marks it), `victim` (who is replaced), `prefetch` and `direct_read` (many at once), `database_writer`
//! (how a page gets to disk), `writers` (who asks for that), `checkpoint`, `doublewrite` (torn pages), `headers` (`v$bh`),
//! `references` (what a flash cache would see).
//! What the cache needs of the rest of the instance is the trait [`Site`].

mod checkpoint;
mod database_writer;
mod direct_read;
mod doublewrite;
mod frames;
mod headers;
mod latch;
mod prefetch;
mod queues;
mod read;
mod references;
mod site;
#[cfg(test)]
pub(crate) mod tests;
mod victim;
mod writers;

pub use checkpoint::checkpointer;
pub use direct_read::DirectRead;
pub use doublewrite::DoublewriteFile;
pub use headers::{BufferHeader, BufferStates, BufferStatus};
pub use latch::{PageRead, PageWrite};
pub use references::ReferenceLog;
pub use site::Site;
pub(crate) use site::inline;
pub use writers::database_writers;

use crate::files::control::State;
use crate::flash::{FlashCache, FlashConfig, FlashUse, Stamp};
use crate::instance::Foundation;
use crate::page::{Lsn, PageId};
use crate::parameter::Parameter;
use crate::{EngineError, Result};
use doublewrite::Doublewrite;
use frames::Frames;
use io::{Access, Api, Buffer, IoMode};
use latch::{Content, Latch};
use parking_lot::{Mutex, RwLock};
use queues::QueuePool;
use std::collections::BTreeMap;
use std::sync::Arc;
use units::Nanos;
use victim::Clock;
use writers::Writers;

/// Requests in flight of one prefetch: the knee of good devices.
const PREFETCH_DEPTH: u32 = 32;
/// Neighbours are written together up to so many bytes.
const WRITE_BYTES_MAX: usize = 128 << 10;
/// Name of the doublewrite file in the database's directory.
pub(crate) const DOUBLEWRITE_NAME: &str = "doublewrite.dbf";
/// Blocks that may wait for the flash cache, as a share of the frames …
const STAGED_SHARE: usize = 16;
/// … no more, and no fewer than the policy wants.
const STAGED_MAX: usize = 1024;
/// Fewer frames than this, and a few sessions that split an index would use them all up.
const FRAMES_MIN: usize = 16;

/// How the blocks of an object are treated: `BUFFER_POOL DEFAULT | KEEP | RECYCLE` of its table or index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pool {
    /// Second chance with touch counts.
    #[default]
    Default,
    /// Replaced only when nothing else can be.
    Keep,
    /// Replaced first.
    Recycle,
}

/// What protects against blocks that were half written when the power went: `torn_page_protection`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TornPageProtection {
    /// The first change of a page after it was read or written carries the whole page in redo.
    Redo,
    /// Pages go to a doublewrite file before they go home.
    Doublewrite,
    /// The device writes a block whole or not at all (`RWF_ATOMIC`).
    Atomic,
    /// Nothing: for file systems and devices that promise it by themselves.
    Off,
}

/// What a cache is made with.
#[derive(Clone, Debug)]
pub struct CacheConfig {
    /// `db_block_size`, bytes.
    pub block_bytes: usize,
    /// Blocks in the cache: `db_cache_size` / `db_block_size`.
    pub frames: usize,
    /// `filesystemio_options`.
    pub mode: IoMode,
    /// Who carries asynchronous requests.
    pub api: Api,
    /// `db_writer_processes`.
    pub writers: u32,
    /// Requests in flight of one database writer.
    pub writes_max: u32,
    /// `torn_page_protection`.
    pub torn_page_protection: TornPageProtection,
    /// Where the doublewrite file is, or is to be made; needed for [`TornPageProtection::Doublewrite`].
    pub doublewrite: Option<DoublewriteFile>,
    /// The second level.
    pub flash: Option<FlashConfig>,
}

impl CacheConfig {
    /// Defaults for so many frames of so many bytes: synchronous, through the page cache, full images in redo.
    pub fn new(block_bytes: usize, frames: usize) -> Self {
        Self {
            block_bytes,
            frames,
            mode: IoMode::None,
            api: Api::Threads,
            writers: 1,
            writes_max: 64,
            torn_page_protection: TornPageProtection::Redo,
            doublewrite: None,
            flash: None,
        }
    }

    /// As the parameters say.
    fn of(foundation: &Foundation) -> Result<Self> {
        let parameters = &foundation.parameters;
        let number = |parameter| u32::try_from(parameters.number(parameter)).unwrap_or(u32::MAX);
        let block_bytes = parameters.block_bytes() as usize;
        let frames = parameters.number(Parameter::CacheSize) / block_bytes as u64;
        let protection = match parameters.choice(Parameter::TornPageProtection) {
            "redo" => TornPageProtection::Redo,
            "doublewrite" => TornPageProtection::Doublewrite,
            "atomic" => TornPageProtection::Atomic,
            _ => TornPageProtection::Off,
        };
        Ok(Self {
            mode: parameters.io_mode(),
            api: parameters.api(),
            writers: number(Parameter::WriterProcesses),
            writes_max: number(Parameter::WritesMax),
            torn_page_protection: protection,
            doublewrite: Some(DoublewriteFile {
                path: foundation.directory.join(DOUBLEWRITE_NAME),
                database_id: foundation.control.content().database_id,
            }),
            flash: flash_config(foundation, frames as usize)?,
            ..Self::new(block_bytes, frames as usize)
        })
    }
}

/// As the parameters and the control file say; none without `db_flash_cache_file` and `db_flash_cache_size`.
fn flash_config(foundation: &Foundation, frames: usize) -> Result<Option<FlashConfig>> {
    let (parameters, content) = (&foundation.parameters, foundation.control.content());
    let files: Vec<_> = parameters.flash_files(&foundation.directory)?;
    let stamp =
        Stamp { database_id: content.database_id, opens: content.opens, checkpoint: content.checkpoint };
    Ok((!files.is_empty()).then(|| FlashConfig {
        files,
        policy: parameters.flash_policy(),
        database_id: content.database_id,
        clean: (content.state == State::Clean).then_some(stamp),
        timeout: Nanos::millis(parameters.number(Parameter::FlashCacheTimeout)),
        staged: (frames / STAGED_SHARE).clamp(parameters.flash_policy().staged_min(frames), STAGED_MAX),
        api: parameters.api(),
    }))
}

/// All frames of the instance, and who takes care of them.
pub struct BufferCache {
    block_bytes: usize,
    mode: IoMode,
    api: Api,
    frames: Arc<Frames>,
    /// The second level, for all of the engine.
    pub(crate) flash: Option<Arc<FlashCache>>,
    latches: Arc<[Latch]>,
    clock: Clock,
    writers: Writers,
    blocks_per_write: usize,
    writer_pool: QueuePool,
    prefetch_pool: QueuePool,
    direct_pool: Mutex<Option<Arc<QueuePool>>>,
    /// Open when it is in use.
    doublewrite: Option<Doublewrite>,
    doublewrite_file: Option<DoublewriteFile>,
    checkpoint_noted: Mutex<Lsn>,
    /// Pages that recovery met damaged.
    damaged: Mutex<BTreeMap<PageId, EngineError>>,
}

impl BufferCache {
    /// Frames as the parameters say, all free.
    ///
    /// # Errors
    /// No memory, a parameter that does not fit (`torn_page_protection = atomic`).
    pub fn new(foundation: &Foundation) -> Result<Self> {
        Self::with(&*foundation.environment.storage, &CacheConfig::of(foundation)?)
    }

    /// Takes the memory, resident from now on, and opens the doublewrite file where it is used.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with(storage: &dyn io::Storage, config: &CacheConfig) -> Result<Self> {
        let CacheConfig { block_bytes, mode, api, writers, .. } = *config;
        let doublewrite = open_protection(storage, config)?;
        let count = config.frames.max(FRAMES_MIN);
        let flash = match &config.flash {
            None => None,
            Some(flash) => {
                // A block that is lost here is at home: no write need be durable.
                let access = Access { dsync: false, ..Access::for_mode(mode, true) };
                Some(Arc::new(FlashCache::open(storage, flash, block_bytes, access)?))
            }
        };
        let frames = Frames::new(count, config.torn_page_protection == TornPageProtection::Redo);
        let frames = Arc::new(frames.with_flash(flash.clone()));
        let buffers = Buffer::many(count, block_bytes)?;
        let latch = |(index, bytes)| Arc::new(RwLock::new(Content { bytes, frames: frames.clone(), index }));
        let blocks_per_write = (WRITE_BYTES_MAX / block_bytes).max(1);
        Ok(Self {
            block_bytes,
            mode,
            api,
            latches: (0..).zip(buffers).map(latch).collect(),
            frames,
            flash,
            clock: Clock::new(count),
            writers: Writers::new(writers, mode.one_writer_per_file()),
            blocks_per_write,
            writer_pool: QueuePool::new(mode, api, config.writes_max, blocks_per_write * block_bytes),
            prefetch_pool: QueuePool::new(mode, api, PREFETCH_DEPTH, block_bytes),
            direct_pool: Mutex::default(),
            doublewrite,
            doublewrite_file: config.doublewrite.clone(),
            checkpoint_noted: Mutex::default(),
            damaged: Mutex::default(),
        })
    }

    /// Bytes of a block.
    pub fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// Blocks that it can hold.
    pub fn frame_count(&self) -> usize {
        self.frames.count()
    }

    /// Sets how the blocks of an object are treated.
    pub fn set_pool(&self, object: u32, pool: Pool) {
        self.frames.set_pool(object, pool);
    }

    /// The second level; none without `db_flash_cache_file`.
    pub fn flash(&self) -> Option<&FlashCache> {
        self.flash.as_deref()
    }

    /// Sets how the blocks of an object are treated in the flash cache.
    pub fn set_flash_use(&self, object: u32, usage: FlashUse) {
        if let Some(flash) = &self.flash {
            flash.set_use(object, usage);
        }
    }

    /// What a flash cache below would see, when it is asked for.
    pub fn references(&self) -> &ReferenceLog {
        &self.frames.references
    }

    /// Whether the page is cached now: for reports and for the choice between ways to read, no promise.
    pub fn is_cached(&self, id: PageId) -> bool {
        self.frames.find(id).is_some()
    }
}

/// # Errors
/// `atomic`, always for now: crate io does not know `RWF_ATOMIC`; and what the doublewrite file met.
fn open_protection(storage: &dyn io::Storage, config: &CacheConfig) -> Result<Option<Doublewrite>> {
    match config.torn_page_protection {
        TornPageProtection::Redo | TornPageProtection::Off => Ok(None),
        TornPageProtection::Atomic => Err(EngineError::Invalid(
            "torn_page_protection = atomic needs atomic writes (RWF_ATOMIC) of the device, which are not used here; set it to redo or doublewrite".to_owned(),
        )),
        TornPageProtection::Doublewrite => {
            let file = config.doublewrite.as_ref().ok_or_else(|| {
                EngineError::Invalid("torn_page_protection = doublewrite needs a place for its file".to_owned())
            })?;
            let (access, block_bytes, writers) =
                (Access::for_mode(config.mode, true), config.block_bytes, config.writers);
            match Doublewrite::open(storage, file, access, block_bytes, writers)? {
                Some(open) => Ok(Some(open)),
                None => Doublewrite::create(storage, file, access, block_bytes, writers).map(Some),
            }
        }
    }
}
