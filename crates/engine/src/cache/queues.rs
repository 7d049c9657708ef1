//! Queues over the data files: opened for many files at once, opened anew when a file was added, kept for the next caller.

use super::BufferCache;
use super::site::Site;
use crate::Result;
use crate::files::DataFile;
use crate::page::PageId;
use io::{Api, IoMode, Queue};
use parking_lot::Mutex;
use std::sync::Arc;

/// Queues that are kept of each kind; more are closed after use.
const KEPT_MAX: usize = 32;
/// With the API `threads` each slot is a thread.
const THREADS_MAX: u32 = 8;

/// A queue, and which request index is which file.
pub(super) struct FileQueue {
    pub queue: Box<dyn Queue>,
    /// Sorted by number; the index is the one that requests name.
    files: Vec<Arc<DataFile>>,
    /// Who used it last: a ring belongs to a thread, and a session mostly stays on one.
    session: u32,
}

impl FileQueue {
    /// Index and file of a page. None when the queue is older than the file.
    pub fn file(&self, id: PageId) -> Option<(u32, &Arc<DataFile>)> {
        let index = self.files.binary_search_by_key(&id.file, |file| file.number).ok()?;
        Some((index as u32, &self.files[index]))
    }

    /// Index of a file of the flash cache: they come after the data files.
    pub fn flash_file(&self, number: u32) -> u32 {
        self.files.len() as u32 + number
    }

    /// Whether it has the files of now, all of them and no other: one that was dropped is to be let go.
    pub fn is_current(&self, site: &dyn Site) -> bool {
        let now = site.files().all();
        now.len() == self.files.len() && now.iter().zip(&self.files).all(|(a, b)| Arc::ptr_eq(a, b))
    }
}

/// Queues of one shape, kept for the next caller.
pub(super) struct QueuePool {
    api: Api,
    depth: u32,
    /// Requests at once that were asked for.
    wanted: u32,
    slot_bytes: usize,
    kept: Mutex<Vec<FileQueue>>,
}

impl QueuePool {
    /// `depth` requests at once, each of at most `slot_bytes`. With a synchronous mode one request at a time, on the
    /// calling thread.
    pub fn new(mode: IoMode, api: Api, wanted: u32, slot_bytes: usize) -> Self {
        let (api, depth) = match (mode.asynchronous(), api) {
            (false, _) => (Api::Threads, 1),
            (true, Api::Threads) => (api, wanted.min(THREADS_MAX)),
            (true, api) => (api, wanted),
        };
        Self { api, depth, wanted, slot_bytes, kept: Mutex::default() }
    }

    pub fn depth(&self) -> u32 {
        self.depth
    }

    pub fn slot_bytes(&self) -> u32 {
        self.slot_bytes as u32
    }

    /// A queue over all files; the one that the session had last where possible.
    ///
    /// # Errors
    /// When none can be opened.
    pub fn borrow(&self, site: &dyn Site, session: u32) -> Result<FileQueue> {
        let kept = {
            let mut kept = self.kept.lock();
            let mine = kept.iter().position(|queue| queue.session == session);
            mine.or(kept.len().checked_sub(1)).map(|index| kept.swap_remove(index))
        };
        match kept {
            Some(queue) if queue.is_current(site) => Ok(FileQueue { session, ..queue }),
            _ => self.open(site, session),
        }
    }

    fn open(&self, site: &dyn Site, session: u32) -> Result<FileQueue> {
        let mut files = site.files().all();
        // One that is dropped at this moment is left out.
        files.retain(|file| file.disk().is_ok());
        let mut disks = files.iter().map(|file| file.disk()).collect::<Result<Vec<_>>>()?;
        disks.extend(site.cache().flash().into_iter().flat_map(|flash| flash.disks()));
        let storage = &site.environment().storage;
        let queue = storage.open_queue(self.api, self.depth, self.slot_bytes as u32, &disks)?;
        Ok(FileQueue { queue, files, session })
    }

    /// Takes a queue back. One that has requests in flight is closed instead, which waits for them.
    pub fn give_back(&self, queue: FileQueue) {
        let mut kept = self.kept.lock();
        if kept.len() < KEPT_MAX && queue.queue.in_flight() == 0 {
            kept.push(queue);
        }
    }
}

impl BufferCache {
    /// What [`super::DirectRead`] uses, made anew when the parameters changed.
    pub(super) fn direct_pool(&self, site: &dyn Site) -> Arc<QueuePool> {
        let depth = site.direct_read_depth();
        let slot_bytes = site.multiblock_read_count() as usize * self.block_bytes;
        let mut pool = self.direct_pool.lock();
        match &*pool {
            Some(pool) if pool.slot_bytes == slot_bytes && pool.wanted == depth => pool.clone(),
            _ => pool.insert(Arc::new(QueuePool::new(self.mode, self.api, depth, slot_bytes))).clone(),
        }
    }
}
