//! Which blocks of the temp files are taken: in memory only, because nothing in them outlives the instance.

use crate::files::admin::Growth;
use crate::files::control::TablespaceKind;
use crate::instance::Core;
use crate::page::PageId;
use crate::{Context, EngineError, Result};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use waits::Event;

/// `name|mode` of the enqueue `SS` in exclusive mode, as Oracle packs it.
const ENQUEUE_SS: u64 = (b'S' as u64) << 24 | (b'S' as u64) << 16 | 6;

/// The free blocks of one file, as runs: first block and length, no two of them neighbours.
#[derive(Debug, Default)]
struct FreeRuns {
    runs: BTreeMap<u32, u32>,
    /// Blocks that are known of; the file may have become longer since.
    known: u32,
}

impl FreeRuns {
    /// Takes in the blocks that the file has gained. Block 0 is its header.
    fn notice(&mut self, blocks: u32) {
        let known = self.known.max(1);
        if blocks > known {
            self.give_back(known, blocks - known);
            self.known = blocks;
        }
    }

    fn take(&mut self, blocks: u32) -> Option<u32> {
        let (&first, &length) = self.runs.iter().find(|(_, length)| **length >= blocks)?;
        self.runs.remove(&first);
        if length > blocks {
            self.runs.insert(first + blocks, length - blocks);
        }
        Some(first)
    }

    fn give_back(&mut self, mut first: u32, mut blocks: u32) {
        if let Some(after) = self.runs.remove(&(first + blocks)) {
            blocks += after;
        }
        if let Some((&before, &length)) = self.runs.range(..first).next_back() {
            assert!(before + length <= first, "blocks from {first} on are given back twice");
            if before + length == first {
                (first, blocks) = (before, blocks + length);
            }
        }
        self.runs.insert(first, blocks);
    }

    fn used(&self) -> u64 {
        let free: u64 = self.runs.values().map(|blocks| u64::from(*blocks)).sum();
        u64::from(self.known.saturating_sub(1)) - free
    }
}

/// The space of all temp files.
#[derive(Debug, Default)]
pub struct TempSpace {
    files: Mutex<BTreeMap<u16, FreeRuns>>,
}

impl TempSpace {
    /// Takes `blocks` neighbouring blocks of a temp file, makes a file longer when it must, and gives the first one.
    ///
    /// # Errors
    /// [`EngineError::TablespaceFull`], what storage says.
    pub fn allocate(&self, core: &Core, context: &Context, blocks: u32) -> Result<PageId> {
        loop {
            if let Some(first) = self.take(core, context, blocks) {
                return Ok(first);
            }
            if let Some(cause) = Self::grow(core, context, blocks)? {
                let content = core.control.content();
                let temp = content.tablespaces.iter().find(|t| t.kind == TablespaceKind::Temporary);
                let tablespace = temp.map_or_else(|| "TEMP".into(), |temp| temp.name.clone());
                return Err(EngineError::TablespaceFull { tablespace, object: "a sort".into(), cause });
            }
        }
    }

    fn take(&self, core: &Core, context: &Context, blocks: u32) -> Option<PageId> {
        let mut known = self.files.try_lock().unwrap_or_else(|| {
            let _wait = context.slot.enter(Event::EnqSsContention, ENQUEUE_SS, 0, 0);
            self.files.lock()
        });
        core.files.all().iter().filter(|file| file.kind == TablespaceKind::Temporary).find_map(|file| {
            let runs = known.entry(file.number).or_default();
            runs.notice(file.blocks());
            runs.take(blocks).map(|block| PageId { file: file.number, block })
        })
    }

    /// Makes one of the files longer; without a latch, as this writes zeroes. The result is why none can be.
    fn grow(core: &Core, context: &Context, blocks: u32) -> Result<Option<String>> {
        let mut cause = "there is no temp file".into();
        for file in core.files.all().iter().filter(|file| file.kind == TablespaceKind::Temporary) {
            match core.grow_file(context, file.number, file.blocks().saturating_add(blocks))? {
                Growth::Grown(_) => return Ok(None),
                Growth::Stuck(words) => cause = words,
            }
        }
        Ok(Some(cause))
    }

    /// Gives blocks back.
    ///
    /// # Panics
    /// When they are free already.
    pub fn free(&self, first: PageId, blocks: u32) {
        self.files.lock().entry(first.file).or_default().give_back(first.block, blocks);
    }

    /// Blocks in use, of all files.
    pub fn used_blocks(&self) -> u64 {
        self.files.lock().values().map(FreeRuns::used).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_cut_and_joined_again() {
        let mut runs = FreeRuns::default();
        runs.notice(101);
        let [a, b, c] = [40, 40, 20].map(|blocks| runs.take(blocks).expect("there is room"));
        assert_eq!((a, b, c, runs.take(1), runs.used()), (1, 41, 81, None, 100));
        runs.give_back(a, 40);
        runs.give_back(c, 20);
        assert_eq!(runs.take(41), None, "two runs with a hole between");
        runs.give_back(b, 40);
        assert_eq!(runs.runs, BTreeMap::from([(1, 100)]));
        runs.notice(201);
        assert_eq!((runs.take(200), runs.used()), (Some(1), 200));
    }

    #[test]
    #[should_panic(expected = "twice")]
    fn blocks_are_given_back_once() {
        let mut runs = FreeRuns::default();
        runs.notice(50);
        runs.give_back(10, 5);
    }
}
