//! What the last completed write of each block left in a data file: the note that a later reading is held against.
//!
//! A block says of itself whether it is whole (checksum) and where it belongs (address). Whether it is the *newest* it cannot say: a
//! write that was acknowledged and never arrived leaves an older block that is right in every other way. With `_verify_writes` each
//! completed write leaves a note here, 12 bytes for each block that was ever written (LSN and checksum, in chunks of 512 blocks: 0.15 % of
//! files of 8 KiB blocks), and whoever reads the block, during the run or at its end ([`super::read_back`]), compares.
//!
//! Without the parameter there is no [`WriteNotes`], and a write looks at one `Option`.

use crate::page::{self, Lsn};
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// Blocks of one chunk.
const CHUNK: usize = 512;

/// What a block was when it was last written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// Its LSN.
    pub lsn: Lsn,
    /// Its checksum.
    pub checksum: u32,
}

impl Note {
    /// Of a sealed page.
    pub fn of(page: &[u8]) -> Self {
        Self { lsn: page::lsn(page), checksum: page::checksum(page) }
    }
}

/// Two arrays, as a pair would be padded to 16 bytes. LSN 0 is no note: redo begins later.
struct Chunk {
    lsns: [u64; CHUNK],
    checksums: [u32; CHUNK],
}

/// The notes of one file.
#[derive(Default)]
pub struct WriteNotes {
    chunks: Mutex<BTreeMap<u32, Box<Chunk>>>,
}

impl WriteNotes {
    /// The write of this page has completed.
    pub fn written(&self, block: u32, page: &[u8]) {
        let (chunk, at) = place(block);
        let note = Note::of(page);
        let mut chunks = self.chunks.lock();
        let chunk = chunks
            .entry(chunk)
            .or_insert_with(|| Box::new(Chunk { lsns: [0; CHUNK], checksums: [0; CHUNK] }));
        (chunk.lsns[at], chunk.checksums[at]) = (note.lsn.0, note.checksum);
    }

    /// A write of this block has failed: until it is written again nobody knows what is there.
    pub fn unknown(&self, block: u32) {
        let (chunk, at) = place(block);
        if let Some(chunk) = self.chunks.lock().get_mut(&chunk) {
            chunk.lsns[at] = 0;
        }
    }

    /// What was last written there; none when nothing was since the file was opened.
    pub fn of(&self, block: u32) -> Option<Note> {
        let (chunk, at) = place(block);
        let chunks = self.chunks.lock();
        let chunk = chunks.get(&chunk)?;
        let note = Note { lsn: Lsn(chunk.lsns[at]), checksum: chunk.checksums[at] };
        (note.lsn.0 > 0).then_some(note)
    }

    /// Blocks with a note, ascending, from `first` on, at most `most`.
    pub fn blocks(&self, first: u32, most: usize) -> Vec<u32> {
        let chunks = self.chunks.lock();
        let (chunk, _) = place(first);
        let noted = chunks.range(chunk..).flat_map(|(number, chunk)| {
            let numbered = (number * CHUNK as u32..).zip(&chunk.lsns);
            numbered.filter(|(_, lsn)| **lsn > 0).map(|(block, _)| block)
        });
        noted.filter(|block| *block >= first).take(most).collect()
    }

    /// How many blocks have one.
    pub fn count(&self) -> u64 {
        let chunks = self.chunks.lock();
        chunks.values().map(|chunk| chunk.lsns.iter().filter(|lsn| **lsn > 0).count() as u64).sum()
    }

    /// A page just read, whole and at its address: (expected, found) when it is older than what was last written there. A newer one is
    /// right: its write may be completing now.
    ///
    /// # Errors
    /// It is older.
    pub fn check(&self, block: u32, page: &[u8]) -> std::result::Result<(), (String, String)> {
        match self.of(block) {
            Some(note) if page::lsn(page) < note.lsn => Err(older(note, page)),
            _ => Ok(()),
        }
    }
}

/// Words for a page that is not as new as its note.
pub(super) fn older(note: Note, page: &[u8]) -> (String, String) {
    let found = match page::lsn(page) {
        Lsn(0) if page.iter().all(|byte| *byte == 0) => "zeroes".to_owned(),
        lsn => format!("LSN {}", lsn.0),
    };
    (format!("LSN {}, which was written last", note.lsn.0), found)
}

fn place(block: u32) -> (u32, usize) {
    (block / CHUNK as u32, block as usize % CHUNK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{PageId, PageKind};

    fn sealed(block: u32, lsn: u64) -> Vec<u8> {
        let mut page = vec![0; 2048];
        page::format(&mut page, PageId { file: 1, block }, PageKind::Heap, 7);
        page::set_lsn(&mut page, Lsn(lsn));
        page::seal(&mut page);
        page
    }

    #[test]
    fn notes_are_kept_overwritten_and_taken_back() {
        let notes = WriteNotes::default();
        assert_eq!((notes.of(3), notes.count()), (None, 0));
        for block in [3, 511, 512, 5000] {
            notes.written(block, &sealed(block, 70_000));
        }
        notes.written(511, &sealed(511, 80_000));
        assert_eq!(notes.of(511), Some(Note::of(&sealed(511, 80_000))));
        assert_eq!((notes.blocks(0, 9), notes.blocks(4, 2)), (vec![3, 511, 512, 5000], vec![511, 512]));
        notes.unknown(512);
        notes.unknown(9999);
        assert_eq!((notes.of(512), notes.count()), (None, 3));
    }

    #[test]
    fn only_older_pages_are_wrong() {
        let notes = WriteNotes::default();
        notes.written(3, &sealed(3, 70_000));
        assert_eq!(notes.check(4, &sealed(4, 1)), Ok(()), "nothing is known of it");
        assert_eq!(notes.check(3, &sealed(3, 70_000)), Ok(()));
        assert_eq!(notes.check(3, &sealed(3, 70_001)), Ok(()), "its write is about to complete");
        let (expected, found) = notes.check(3, &sealed(3, 69_999)).unwrap_err();
        assert!(expected.contains("LSN 70000") && found == "LSN 69999", "{expected}, {found}");
        assert_eq!(notes.check(3, &[0; 2048]).unwrap_err().1, "zeroes");
    }

    #[test]
    fn a_block_costs_twelve_bytes() {
        assert_eq!(size_of::<Chunk>(), 12 * CHUNK);
    }
}
