//! Data of one node: pieces of files, in memory.

use nfs::Status;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// Data is kept in pieces of this size; what was never written takes no memory. Stripe units are multiples of it.
pub(crate) const PIECE_BYTES: u64 = 64 << 10;

/// Locks of this crate guard maps that are whole between any two statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

type Pieces = HashMap<u64, Box<[u8]>>;

/// What one node keeps of all files.
pub(crate) struct Store {
    blobs: Mutex<HashMap<u64, Arc<RwLock<Pieces>>>>,
    /// Of the whole cluster.
    budget: Arc<Budget>,
}

/// Memory that data may take.
pub(crate) struct Budget {
    pub(crate) bytes_max: u64,
    pub(crate) used: AtomicU64,
}

impl Budget {
    fn take(&self) -> Result<(), Status> {
        let before = self.used.fetch_add(PIECE_BYTES, Ordering::Relaxed);
        if before + PIECE_BYTES > self.bytes_max {
            self.give(1);
            return Err(Status::NOSPC);
        }
        Ok(())
    }

    fn give(&self, pieces: usize) {
        self.used.fetch_sub(pieces as u64 * PIECE_BYTES, Ordering::Relaxed);
    }
}

impl Store {
    pub(crate) fn new(budget: Arc<Budget>) -> Self {
        Self { blobs: Mutex::default(), budget }
    }

    fn blob(&self, file: u64) -> Arc<RwLock<Pieces>> {
        lock(&self.blobs).entry(file).or_default().clone()
    }

    /// Appends `bytes` bytes at `offset` to `out`; what was never written is zeroes.
    pub(crate) fn read(&self, file: u64, offset: u64, bytes: usize, out: &mut Vec<u8>) {
        let blob = self.blob(file);
        let pieces = blob.read().unwrap_or_else(PoisonError::into_inner);
        let (mut at, end) = (offset, offset + bytes as u64);
        while at < end {
            let within = (at % PIECE_BYTES) as usize;
            let now = (PIECE_BYTES as usize - within).min((end - at) as usize);
            match pieces.get(&(at / PIECE_BYTES)) {
                Some(piece) => out.extend_from_slice(&piece[within..within + now]),
                None => out.resize(out.len() + now, 0),
            }
            at += now as u64;
        }
    }

    /// Writes `data` at `offset`.
    pub(crate) fn write(&self, file: u64, offset: u64, data: &[u8]) -> Result<(), Status> {
        let blob = self.blob(file);
        let mut pieces = blob.write().unwrap_or_else(PoisonError::into_inner);
        let (mut at, mut rest) = (offset, data);
        while !rest.is_empty() {
            let within = (at % PIECE_BYTES) as usize;
            let (now, later) = rest.split_at(rest.len().min(PIECE_BYTES as usize - within));
            let piece = match pieces.entry(at / PIECE_BYTES) {
                std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::hash_map::Entry::Vacant(entry) => {
                    self.budget.take()?;
                    entry.insert(vec![0; PIECE_BYTES as usize].into_boxed_slice())
                }
            };
            piece[within..within + now.len()].copy_from_slice(now);
            at += now.len() as u64;
            rest = later;
        }
        Ok(())
    }

    /// Forgets what is beyond `size`.
    pub(crate) fn truncate(&self, file: u64, size: u64) {
        let blob = self.blob(file);
        let mut pieces = blob.write().unwrap_or_else(PoisonError::into_inner);
        let before = pieces.len();
        pieces.retain(|&index, _| index * PIECE_BYTES < size);
        self.budget.give(before - pieces.len());
        if let Some(last) = pieces.get_mut(&(size / PIECE_BYTES)) {
            last[(size % PIECE_BYTES) as usize..].fill(0);
        }
    }

    /// Gives all of `file` away.
    pub(crate) fn take(&self, file: u64) -> Pieces {
        let Some(blob) = lock(&self.blobs).remove(&file) else { return Pieces::new() };
        let mut pieces = blob.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut pieces)
    }

    /// Takes in pieces of `file` that another node had.
    pub(crate) fn put(&self, file: u64, more: impl Iterator<Item = (u64, Box<[u8]>)>) {
        self.blob(file).write().unwrap_or_else(PoisonError::into_inner).extend(more);
    }

    /// Removes `file`.
    pub(crate) fn remove(&self, file: u64) {
        self.budget.give(self.take(file).len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_is_cut_off_is_zeroes() {
        let budget = Arc::new(Budget { bytes_max: 4 * PIECE_BYTES, used: AtomicU64::new(0) });
        let store = Store::new(budget.clone());
        store.write(1, PIECE_BYTES - 3, b"abcdef").expect("there is room");
        let mut out = Vec::new();
        store.read(1, PIECE_BYTES - 4, 8, &mut out);
        assert_eq!(out, b"\0abcdef\0");
        store.truncate(1, PIECE_BYTES - 2);
        out.clear();
        store.read(1, PIECE_BYTES - 4, 8, &mut out);
        assert_eq!(out, b"\0a\0\0\0\0\0\0");
        assert_eq!(budget.used.load(Ordering::Relaxed), PIECE_BYTES);
        let full = store.write(1, 2 * PIECE_BYTES, &vec![1; 4 * PIECE_BYTES as usize]);
        assert_eq!(full, Err(Status::NOSPC), "memory has a bound");
        store.remove(1);
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }
}
