//! Plain files of stamped blocks: which generation the last completed write left in each, and whether it is there.

use super::{Verification, Wrong};
use crate::LabError;
use io::stamp::{self, Stamp};
use io::{Access, Buffer, File, Outcome};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use units::clock;

/// Bytes of one read.
const READ_BYTES: usize = 1 << 20;
/// Blocks that are described one by one; all are counted.
const TOLD_MAX: usize = 100;
/// Nothing is known of what is there.
const UNKNOWN: u64 = u64::MAX;

/// The generations of one file, 8 bytes for each block. Two writes of one block are never in flight together (loads deal blocks from
/// one deck), so the last that completed is what is there.
pub struct Generations {
    file_id: u64,
    block_bytes: u32,
    generations: Box<[AtomicU64]>,
}

impl std::fmt::Debug for Generations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Generations({} blocks)", self.generations.len())
    }
}

impl Generations {
    /// Nothing is known of the blocks of a file of `bytes` yet.
    pub fn new(file_id: u64, block_bytes: u32, bytes: u64) -> Self {
        let blocks = bytes / u64::from(block_bytes);
        Self { file_id, block_bytes, generations: (0..blocks).map(|_| AtomicU64::new(UNKNOWN)).collect() }
    }

    /// The write of the block at `offset` has completed.
    #[inline]
    pub fn written(&self, offset: u64, generation: u64) {
        if let Some(note) = self.generations.get((offset / u64::from(self.block_bytes)) as usize) {
            note.store(generation, Ordering::Relaxed);
        }
    }

    /// The write of the block at `offset` has failed: nobody knows what is there.
    pub fn unknown(&self, offset: u64) {
        self.written(offset, UNKNOWN);
    }

    /// All blocks of the first `bytes` were written with one generation.
    pub fn all_written(&self, bytes: u64, generation: u64) {
        let blocks = (bytes / u64::from(self.block_bytes)) as usize;
        self.generations.iter().take(blocks).for_each(|note| note.store(generation, Ordering::Relaxed));
    }

    /// The file is made anew.
    pub fn forget(&self) {
        self.generations.iter().for_each(|note| note.store(UNKNOWN, Ordering::Relaxed));
    }

    /// Reads every block that was written since the last time past the caches, and compares. `go_on` may stop it.
    ///
    /// # Errors
    /// The file cannot be opened. A read that fails is a finding.
    pub fn read_back(&self, path: &Path, go_on: &dyn Fn() -> bool) -> Result<Verification, LabError> {
        let mut seen = Verification::default();
        let noted = |note: &AtomicU64| note.load(Ordering::Relaxed) != UNKNOWN;
        if !self.generations.iter().any(noted) {
            return Ok(seen);
        }
        let began = clock::now();
        let access = Access { read: true, write: false, direct: true, dsync: false };
        let file = match File::open(path, access).and_then(|file| file.probe_direct().map(|()| file)) {
            Ok(file) => file,
            Err(_) => {
                let plain = File::open(path, Access { direct: false, ..access })?;
                if plain.drop_cache().is_err() {
                    seen.cached.push(path.to_owned());
                }
                plain
            }
        };
        let mut buffer = Buffer::new(READ_BYTES)?;
        let per_read = READ_BYTES / self.block_bytes as usize;
        for (index, notes) in self.generations.chunks(per_read).enumerate() {
            if !notes.iter().any(noted) {
                continue;
            }
            if !go_on() {
                seen.stopped = true;
                break;
            }
            let offset = (index * per_read) as u64 * u64::from(self.block_bytes);
            let bytes = notes.len() * self.block_bytes as usize;
            let outcome = file.read_at(&mut buffer[..bytes], offset);
            seen.bytes += bytes as u64;
            let blocks = buffer[..bytes].chunks_exact(self.block_bytes as usize);
            for (at, (note, block)) in
                (offset..).step_by(self.block_bytes as usize).zip(notes.iter().zip(blocks))
            {
                let note = note.swap(UNKNOWN, Ordering::Relaxed);
                if note != UNKNOWN {
                    self.judge(path, &file, outcome, (at, note), block, &mut seen);
                }
            }
        }
        seen.elapsed = clock::now() - began;
        Ok(seen)
    }

    /// One block, as it was read with others; read alone once more when it is not right.
    fn judge(
        &self,
        path: &Path,
        file: &File,
        outcome: Outcome,
        (offset, note): (u64, u64),
        block: &[u8],
        seen: &mut Verification,
    ) {
        seen.blocks += 1;
        let first = outcome.is_full().then(|| self.look(offset, note, block));
        if first == Some(None) {
            return;
        }
        let Ok(mut again) = Buffer::new(self.block_bytes as usize) else { return };
        let alone = file.read_at(&mut again, offset);
        let second = alone.is_full().then(|| self.look(offset, note, &again));
        let (kind, expected, found) = match (first.flatten(), second) {
            (None, Some(None)) => return,
            (Some((_, expected, found)), Some(None)) => {
                ("stale", expected, format!("{found}, and the right one on a second reading"))
            }
            (Some(words), _) | (None, Some(Some(words))) => words,
            (None, None) => {
                ("unreadable", "a block that can be read".to_owned(), format!("{alone:?} at offset {offset}"))
            }
        };
        seen.wrong += 1;
        if seen.told.len() < TOLD_MAX {
            let block = offset / u64::from(self.block_bytes);
            seen.told.push(Wrong { file: path.to_owned(), block, kind: kind.into(), expected, found });
        }
    }

    /// How it is wrong, with expected and found.
    fn look(&self, offset: u64, note: u64, block: &[u8]) -> Option<(&'static str, String, String)> {
        let expected = format!("generation {note}, which was written last");
        match stamp::verify(block, self.file_id, offset, None) {
            Ok(Stamp { generation, .. }) if generation == note => None,
            Ok(Stamp { generation, .. }) => Some(("lost", expected, format!("generation {generation}"))),
            Err(wrong) => {
                let kind = match wrong {
                    stamp::Wrong::Misdirected { .. } => "misdirected",
                    stamp::Wrong::Zeroes | stamp::Wrong::Stale { .. } => "lost",
                    stamp::Wrong::NotOurs => "foreign",
                    stamp::Wrong::Torn | stamp::Wrong::Longer { .. } => "torn",
                };
                Some((kind, expected, wrong.to_string()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{self, LoadSpec, Pattern};
    use io::Api;
    use io::stamp::Stamper;
    use std::os::unix::fs::FileExt;
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use units::{Nanos, Seed};

    const BLOCK: u32 = 8192;
    const BYTES: u64 = 8 << 20;

    /// A file that a load has written some blocks of, at random, many in flight.
    fn written(folder: &Path) -> (PathBuf, Arc<Generations>) {
        let path = folder.join("data");
        let access = Access { read: true, write: true, direct: false, dsync: true };
        let file = File::create_new(&path, access).unwrap();
        io::prepare::write_stamped(&file, BYTES, BLOCK, 7, Seed(1), &mut |_, _| true).unwrap();
        let notes = Arc::new(Generations::new(7, BLOCK, BYTES));
        let spec = LoadSpec {
            api: Api::Threads,
            access,
            paths: vec![path.clone()],
            threads: 4,
            in_flight: 4,
            pattern: Pattern::RandomWrite,
            block_bytes: BLOCK,
            span: 0..BYTES,
            batch_min: 1,
            verify_every: 0,
            notes: Some(notes.clone()),
            file_id: 7,
            seed: Seed(2),
            interval: Nanos::millis(50),
            pin_cores: false,
            settle: Nanos::millis(10),
            measure: Nanos::millis(200),
            lock_writes: false,
        };
        assert!(load::run(&spec, &AtomicBool::new(false)).unwrap().ops > 10);
        (path, notes)
    }

    #[test]
    fn what_a_load_wrote_is_there_and_each_wrong_block_has_its_name() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let (path, notes) = written(folder.path());
        let known = |n: &Generations| -> Vec<u64> {
            let notes = (0..).zip(&n.generations).filter(|(_, g)| g.load(Ordering::Relaxed) != UNKNOWN);
            notes.map(|(block, _)| block * u64::from(BLOCK)).collect()
        };
        let blocks = known(&notes);
        let seen = notes.read_back(&path, &|| true).unwrap();
        assert_eq!((seen.blocks, seen.wrong, seen.stopped), (blocks.len() as u64, 0, false), "{seen:?}");
        assert_eq!(notes.read_back(&path, &|| true).unwrap().blocks, 0, "nothing was written since");

        let (stamper, raw) =
            (Stamper::new(Seed(3)), std::fs::File::options().read(true).write(true).open(&path));
        let raw = raw.unwrap();
        let mut block = vec![0; BLOCK as usize];
        let mut put = |at: usize, stamp: Option<Stamp>| {
            block.fill(0);
            if let Some(stamp) = stamp {
                stamper.fill(&mut block, stamp);
            }
            raw.write_all_at(&block, blocks[at]).unwrap();
        };
        let stamp = |offset, generation| Some(Stamp { file_id: 7, offset, generation });
        put(0, stamp(blocks[0], 1));
        put(1, stamp(blocks[5], 9));
        put(2, None);
        raw.write_all_at(b"flipped", blocks[3] + 5000).unwrap();
        blocks.iter().take(5).for_each(|offset| notes.written(*offset, 9));
        put(4, stamp(blocks[4], 9));
        raw.sync_all().unwrap();
        let seen = notes.read_back(&path, &|| true).unwrap();
        let kinds: Vec<_> = seen.told.iter().map(|wrong| wrong.kind.as_str()).collect();
        assert_eq!(kinds, ["lost", "misdirected", "lost", "torn"], "{seen:?}");
        let words = seen.told[0].to_string();
        let block = format!("block {}: lost: expected generation 9", blocks[0] / u64::from(BLOCK));
        assert!(words.contains(&block) && words.ends_with("found generation 1"), "{words}");
    }
}
