//! Data of one node: pieces of files, in memory.

use nfs::Status;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// Data is kept in pieces of this size; what was never written takes no memory. Stripe units are multiples of it.
pub(crate) const PIECE_BYTES: u64 = 64 << 10;

/// Locks of this crate guard maps that are whole between any two statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

type Pieces = HashMap<u64, Box<[u8]>>;

/// Most bytes that a restart takes away of a file; what is older was stable by itself.
const UNSTABLE_BYTES_MAX: u64 = 64 << 20;

/// A file's part on one node.
#[derive(Default)]
struct Blob {
    pieces: Pieces,
    /// What was there before writes that nobody committed, by first byte; without overlaps.
    before: BTreeMap<u64, Box<[u8]>>,
    before_bytes: u64,
}

/// What one node keeps of all files.
pub(crate) struct Store {
    blobs: Mutex<HashMap<u64, Arc<RwLock<Blob>>>>,
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

    fn blob(&self, file: u64) -> Arc<RwLock<Blob>> {
        lock(&self.blobs).entry(file).or_default().clone()
    }

    /// Only who writes makes one: what is asked for takes no memory.
    fn existing(&self, file: u64) -> Option<Arc<RwLock<Blob>>> {
        lock(&self.blobs).get(&file).cloned()
    }

    /// Appends `bytes` bytes at `offset` to `out`; what was never written is zeroes.
    pub(crate) fn read(&self, file: u64, offset: u64, bytes: usize, out: &mut Vec<u8>) {
        let Some(blob) = self.existing(file) else { return out.resize(out.len() + bytes, 0) };
        let blob = blob.read().unwrap_or_else(PoisonError::into_inner);
        read(&blob.pieces, offset, offset + bytes as u64, out);
    }

    /// Whether nothing of `file` is here at `offset` or behind it.
    pub(crate) fn ends_before(&self, file: u64, offset: u64) -> bool {
        let Some(blob) = self.existing(file) else { return true };
        let blob = blob.read().unwrap_or_else(PoisonError::into_inner);
        let index = offset / PIECE_BYTES;
        !blob.pieces.contains_key(&index) && blob.pieces.keys().all(|&other| other < index)
    }

    /// Writes `data` at `offset`; what is not `stable`, a restart takes away until it is committed.
    pub(crate) fn write(&self, file: u64, offset: u64, data: &[u8], stable: bool) -> Result<(), Status> {
        if data.is_empty() {
            return Ok(());
        }
        let blob = self.blob(file);
        let mut blob = blob.write().unwrap_or_else(PoisonError::into_inner);
        if stable {
            blob.settle(offset, offset + data.len() as u64);
        } else {
            blob.remember(offset, offset + data.len() as u64);
        }
        self.put_in(&mut blob.pieces, offset, data)
    }

    fn put_in(&self, pieces: &mut Pieces, offset: u64, data: &[u8]) -> Result<(), Status> {
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

    /// All of `file` is stable now.
    pub(crate) fn commit(&self, file: u64) {
        let Some(blob) = self.existing(file) else { return };
        blob.write().unwrap_or_else(PoisonError::into_inner).settle(0, u64::MAX);
    }

    /// As after a restart: what was not committed is as it was before.
    pub(crate) fn lose(&self) {
        let blobs: Vec<_> = lock(&self.blobs).values().cloned().collect();
        for blob in blobs {
            let mut blob = blob.write().unwrap_or_else(PoisonError::into_inner);
            let before = std::mem::take(&mut blob.before);
            blob.before_bytes = 0;
            for (offset, data) in before {
                // Its pieces are there: they were written.
                let _ = self.put_in(&mut blob.pieces, offset, &data);
            }
        }
    }

    /// Forgets what is beyond `size`.
    pub(crate) fn truncate(&self, file: u64, size: u64) {
        let Some(blob) = self.existing(file) else { return };
        let mut blob = blob.write().unwrap_or_else(PoisonError::into_inner);
        blob.settle(size, u64::MAX);
        let pieces = &mut blob.pieces;
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
        let mut blob = blob.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *blob).pieces
    }

    /// Takes in pieces of `file` that another node had.
    pub(crate) fn put(&self, file: u64, more: impl Iterator<Item = (u64, Box<[u8]>)>) {
        self.blob(file).write().unwrap_or_else(PoisonError::into_inner).pieces.extend(more);
    }

    /// Removes `file`.
    pub(crate) fn remove(&self, file: u64) {
        self.budget.give(self.take(file).len());
    }
}

fn read(pieces: &Pieces, offset: u64, end: u64, out: &mut Vec<u8>) {
    let mut at = offset;
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

impl Blob {
    /// First byte and end of what is remembered and touches `from..to`, the last first.
    fn touched(&self, from: u64, to: u64) -> Vec<(u64, u64)> {
        let ends = self.before.range(..to).rev().map(|(&at, data)| (at, at + data.len() as u64));
        ends.take_while(|&(_, end)| end > from).collect()
    }

    /// Remembers what is there, unless something older is remembered.
    fn remember(&mut self, from: u64, to: u64) {
        if self.before_bytes > UNSTABLE_BYTES_MAX {
            self.settle(0, u64::MAX);
        }
        let mut end = to;
        let touched = self.touched(from, to);
        for (start, stop) in touched.into_iter().chain([(from, from)]) {
            if stop < end {
                let at = stop.max(from);
                let mut data = Vec::with_capacity((end - at) as usize);
                read(&self.pieces, at, end, &mut data);
                self.before_bytes += data.len() as u64;
                self.before.insert(at, data.into());
            }
            end = start;
        }
    }

    /// What is in `from..to` stays.
    fn settle(&mut self, from: u64, to: u64) {
        for (start, stop) in self.touched(from, to) {
            let Some(data) = self.before.remove(&start) else { continue };
            self.before_bytes -= data.len() as u64;
            for (at, part) in [
                (start, data.get(..from.saturating_sub(start) as usize)),
                (to, data.get((to.min(stop) - start) as usize..)),
            ] {
                if let Some(part) = part.filter(|part| !part.is_empty()) {
                    self.before_bytes += part.len() as u64;
                    self.before.insert(at, part.into());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_takes_away_what_was_not_committed() {
        let budget = Arc::new(Budget { bytes_max: 4 * PIECE_BYTES, used: AtomicU64::new(0) });
        let store = Store::new(budget);
        let content = |bytes| {
            let mut out = Vec::new();
            store.read(1, 0, bytes, &mut out);
            String::from_utf8(out).expect("letters")
        };
        store.write(1, 0, b"..........", true).expect("there is room");
        store.write(1, 2, b"aaaa", false).expect("there is room");
        store.write(1, 4, b"bbbb", false).expect("there is room");
        store.write(1, 5, b"S", true).expect("there is room");
        assert_eq!(content(10), "..aabSbb..");
        store.lose();
        assert_eq!(content(10), ".....S....");
        store.write(1, 0, b"ccc", false).expect("there is room");
        store.commit(1);
        store.write(1, 2, b"dd", false).expect("there is room");
        store.write(1, 0, b"eeeeee", false).expect("there is room");
        store.lose();
        assert_eq!(content(10), "ccc..S....");
    }

    #[test]
    fn what_is_written_is_read_and_what_is_cut_off_is_zeroes() {
        let budget = Arc::new(Budget { bytes_max: 4 * PIECE_BYTES, used: AtomicU64::new(0) });
        let store = Store::new(budget.clone());
        store.write(1, PIECE_BYTES - 3, b"abcdef", true).expect("there is room");
        let mut out = Vec::new();
        store.read(1, PIECE_BYTES - 4, 8, &mut out);
        assert_eq!(out, b"\0abcdef\0");
        store.truncate(1, PIECE_BYTES - 2);
        out.clear();
        store.read(1, PIECE_BYTES - 4, 8, &mut out);
        assert_eq!(out, b"\0a\0\0\0\0\0\0");
        assert_eq!(budget.used.load(Ordering::Relaxed), PIECE_BYTES);
        let full = store.write(1, 2 * PIECE_BYTES, &vec![1; 4 * PIECE_BYTES as usize], true);
        assert_eq!(full, Err(Status::NOSPC), "memory has a bound");
        store.remove(1);
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }
}
