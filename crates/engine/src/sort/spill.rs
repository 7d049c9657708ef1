//! The part of a sort that lies in temp files: runs of records, and the requests that write and read them.
//!
//! A run is a stream of records cut into extents of one request each. Each block has the header of a page and is checked when
//! it is read back.
//!
//! ```text
//! block   0       24        26  32
//!         header  used u16  0   the stream's next `used` bytes
//! record  key bytes u32 │ payload bytes u32 │ key │ payload
//! ```
//! Writes are handed over and not waited for until a slot is needed (`direct path write temp`). Nothing is made durable: no
//! sort outlives the instance.

use super::scratch::{Io, Scratch, TempFile};
use crate::page::{self, HEADER_BYTES, PageId, PageKind};
use crate::{Context, EngineError, Result};
use io::{Action, Completion, Queue, Request};
use std::collections::{BTreeMap, VecDeque};
use units::Nanos;
use waits::Event;

const USED_AT: usize = 24;
pub(super) const RECORD_HEAD: usize = 8;

/// Neighbouring blocks of a temp file, written and read by one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub first: PageId,
    /// Blocks that hold something.
    pub used: u32,
}

/// Sorted records in temp files, first extent first.
pub(super) type Run = VecDeque<Extent>;

/// What a slot of the queue is busy with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Free,
    Writing(Extent, Nanos),
    Reading(Extent, Nanos),
    /// Read, and not looked at yet.
    Ready(Extent),
}

/// The extents of one sort. What was not given back before is on drop.
struct Held {
    scratch: Box<dyn Scratch>,
    extents: BTreeMap<PageId, u32>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.extents.iter().for_each(|(first, blocks)| self.scratch.free(*first, *blocks));
    }
}

/// Requests of one sort to the temp files, and its space in them.
pub(super) struct Spill {
    /// Before `held`, so that it is dropped first and has nothing in flight any more: a late write to an extent that was given
    /// back would destroy another sort's run.
    queue: Box<dyn Queue>,
    held: Held,
    /// By the index that requests name.
    files: Vec<TempFile>,
    uses: Vec<Use>,
    done: Vec<Completion>,
    block_bytes: usize,
    /// Blocks of one request.
    blocks: u32,
}

impl Spill {
    /// Opens a queue of about `depth` requests of `io_bytes` over the temp files of now.
    pub fn open(scratch: Box<dyn Scratch>, io_bytes: usize, depth: u32) -> Result<Self> {
        let block_bytes = scratch.block_bytes();
        let blocks = (io_bytes / block_bytes).max(1);
        let files = scratch.temp_files()?;
        let queue = scratch.open_queue(depth, (blocks * block_bytes) as u32, &files)?;
        let uses = vec![Use::Free; queue.depth() as usize];
        let held = Held { scratch, extents: BTreeMap::new() };
        Ok(Self { queue, held, files, uses, done: Vec::new(), block_bytes, blocks: blocks as u32 })
    }

    /// Requests that may be in flight.
    pub fn depth(&self) -> usize {
        self.uses.len()
    }

    /// Content of a full request.
    fn request_bytes(&self) -> usize {
        self.blocks as usize * self.block_bytes
    }

    fn file(&self, extent: &Extent) -> usize {
        let known = self.files.iter().position(|file| file.number == extent.first.file);
        known.expect("an extent of a file of this sort")
    }

    /// Space for one request.
    fn allocate(&mut self, context: &Context) -> Result<Extent> {
        let first = self.held.scratch.allocate(context, self.blocks)?;
        self.held.extents.insert(first, self.blocks);
        let extent = Extent { first, used: 0 };
        if self.files.iter().any(|file| file.number == first.file) {
            return Ok(extent);
        }
        self.free(extent);
        Err(EngineError::TablespaceFull {
            tablespace: "TEMP".into(),
            object: "a sort".into(),
            cause: format!("file {} was added after the sort had begun; run the statement again", first.file),
        })
    }

    /// Gives an extent back before the sort ends.
    pub fn free(&mut self, extent: Extent) {
        if let Some(blocks) = self.held.extents.remove(&extent.first) {
            self.held.scratch.free(extent.first, blocks);
        }
    }

    /// A slot that is free, after waiting for a write where none is.
    fn free_slot(&mut self, context: &Context) -> Result<u32> {
        loop {
            if let Some(slot) = self.uses.iter().position(|slot| *slot == Use::Free) {
                return Ok(slot as u32);
            }
            let oldest = self.uses.iter().find_map(|slot| match slot {
                Use::Writing(extent, _) => Some(*extent),
                _ => None,
            });
            self.reap(context, Event::DirectPathWriteTemp, &oldest.expect("a slot for writes"))?;
        }
    }

    /// Writes `blocks`, which is sealed, to an extent.
    fn write(&mut self, context: &Context, extent: Extent, blocks: &[u8]) -> Result<()> {
        let slot = self.free_slot(context)?;
        self.queue.buffer_mut(slot)[..blocks.len()].copy_from_slice(blocks);
        self.hand_over(context, slot, Use::Writing(extent, self.held.scratch.now()), extent, Action::Write)
    }

    fn hand_over(
        &mut self,
        context: &Context,
        slot: u32,
        becomes: Use,
        extent: Extent,
        action: Action,
    ) -> Result<()> {
        let request = Request {
            file: self.file(&extent) as u32,
            offset: u64::from(extent.first.block) * self.block_bytes as u64,
            bytes: extent.used * self.block_bytes as u32,
            action,
        };
        self.queue.stage(slot, request);
        self.uses[slot as usize] = becomes;
        if self.queue.depth() > 1 {
            self.queue.submit()?;
            return Ok(());
        }
        // One slot is a synchronous call: it does its work inside submit, and that is the wait.
        let event = match action {
            Action::Write => Event::DirectPathWriteTemp,
            _ => Event::DirectPathReadTemp,
        };
        self.reap(context, event, &extent)
    }

    /// Submits, waits for a completion, and takes all that are there.
    fn reap(&mut self, context: &Context, event: Event, waiting_for: &Extent) -> Result<()> {
        let PageId { file, block } = waiting_for.first;
        let wait = context.slot.enter(event, file.into(), block.into(), waiting_for.used.into());
        let reaped = self.queue.submit_and_reap(1, &mut self.done);
        drop(wait);
        reaped?;
        let now = self.held.scratch.now();
        let mut result = Ok(());
        for Completion { slot, outcome } in std::mem::take(&mut self.done) {
            let slot_use = &mut self.uses[slot as usize];
            let (extent, since, call) = match *slot_use {
                Use::Writing(extent, since) => (extent, since, "write"),
                Use::Reading(extent, since) => (extent, since, "read"),
                Use::Free | Use::Ready(_) => {
                    unreachable!("a completion of slot {slot}, which is not in flight")
                }
            };
            *slot_use = if call == "write" { Use::Free } else { Use::Ready(extent) };
            let file = &self.files[self.file(&extent)];
            let bytes = extent.used * self.block_bytes as u32;
            let offset = u64::from(extent.first.block) * self.block_bytes as u64;
            let ended = outcome.check(&file.path, call, offset, bytes);
            let io = Io {
                write: call == "write",
                blocks: extent.used.into(),
                bytes: bytes.into(),
                elapsed: now - since,
                good: ended.is_ok(),
            };
            self.held.scratch.note(context, file.number, &io);
            result = result.and(ended);
        }
        Ok(result?)
    }

    /// Waits for all writes.
    pub fn drain(&mut self, context: &Context) -> Result<()> {
        while let Some(Use::Writing(extent, _)) =
            self.uses.iter().find(|slot| matches!(slot, Use::Writing(..))).copied()
        {
            self.reap(context, Event::DirectPathWriteTemp, &extent)?;
        }
        Ok(())
    }

    /// Begins to read an extent.
    pub fn read(&mut self, context: &Context, extent: Extent) -> Result<u32> {
        let slot = self.free_slot(context)?;
        self.hand_over(context, slot, Use::Reading(extent, self.held.scratch.now()), extent, Action::Read)?;
        Ok(slot)
    }

    /// Waits until an extent is read and appends its part of the stream to `stream`; the slot is free then.
    ///
    /// # Errors
    /// What the read met; [`EngineError::CorruptBlock`].
    pub fn take(&mut self, context: &Context, slot: u32, stream: &mut Vec<u8>) -> Result<Extent> {
        let extent = loop {
            match self.uses[slot as usize] {
                Use::Ready(extent) => break extent,
                Use::Reading(extent, _) => self.reap(context, Event::DirectPathReadTemp, &extent)?,
                Use::Free | Use::Writing(..) => unreachable!("slot {slot} was not given to a read"),
            }
        };
        self.uses[slot as usize] = Use::Free;
        let blocks = self.queue.buffer(slot).chunks_exact(self.block_bytes).take(extent.used as usize);
        for (block, page) in (extent.first.block..).zip(blocks) {
            let id = PageId { block, ..extent.first };
            let used = usize::from(page::get_u16(page, USED_AT));
            let sound = page::check(page, id).and_then(|()| match page::kind(page) {
                Some(PageKind::Temp) => Ok(()),
                kind => Err(("a block of a sort".into(), format!("{kind:?}"))),
            });
            if let Err((expected, found)) = sound {
                let path = self.files[self.file(&extent)].path.clone();
                return Err(EngineError::CorruptBlock { id, path, expected, found });
            }
            stream.extend_from_slice(&page[HEADER_BYTES..HEADER_BYTES + used]);
        }
        Ok(extent)
    }
}

/// Writes one run.
pub(super) struct RunWriter {
    run: Run,
    extent: Option<Extent>,
    buffer: Vec<u8>,
    /// Where the next byte goes in the buffer.
    at: usize,
}

impl RunWriter {
    pub fn new(spill: &Spill) -> Self {
        Self { run: Run::new(), extent: None, buffer: vec![0; spill.request_bytes()], at: 0 }
    }

    pub fn push(&mut self, spill: &mut Spill, context: &Context, key: &[u8], payload: &[u8]) -> Result<()> {
        let mut head = [0; RECORD_HEAD];
        head[..4].copy_from_slice(&(key.len() as u32).to_le_bytes());
        head[4..].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        [&head, key, payload].into_iter().try_for_each(|bytes| self.append(spill, context, bytes))
    }

    fn append(&mut self, spill: &mut Spill, context: &Context, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            if self.at.is_multiple_of(spill.block_bytes) {
                self.begin_block(spill, context)?;
            }
            let block_end = self.at.next_multiple_of(spill.block_bytes);
            let (now, later) = bytes.split_at(bytes.len().min(block_end - self.at));
            self.buffer[self.at..self.at + now.len()].copy_from_slice(now);
            self.at += now.len();
            bytes = later;
        }
        Ok(())
    }

    /// At the end of a block: begins the next, of a new extent where this one is full.
    fn begin_block(&mut self, spill: &mut Spill, context: &Context) -> Result<()> {
        if self.at == self.buffer.len() {
            self.flush(spill, context)?;
        }
        let extent = match &mut self.extent {
            Some(extent) => extent,
            None => self.extent.insert(spill.allocate(context)?),
        };
        let id = PageId { block: extent.first.block + extent.used, ..extent.first };
        extent.used += 1;
        page::format(&mut self.buffer[self.at..self.at + spill.block_bytes], id, PageKind::Temp, 0);
        self.at += HEADER_BYTES;
        Ok(())
    }

    fn flush(&mut self, spill: &mut Spill, context: &Context) -> Result<()> {
        let Some(extent) = self.extent.take() else { return Ok(()) };
        self.run.push_back(extent);
        let bytes = extent.used as usize * spill.block_bytes;
        for (index, block) in self.buffer[..bytes].chunks_exact_mut(spill.block_bytes).enumerate() {
            let end = self.at.min((index + 1) * spill.block_bytes);
            let used = end - index * spill.block_bytes - HEADER_BYTES;
            block[USED_AT..USED_AT + 2].copy_from_slice(&(used as u16).to_le_bytes());
            page::seal(block);
        }
        self.at = 0;
        spill.write(context, extent, &self.buffer[..bytes])
    }

    /// The whole run; its last writes may still be in flight.
    pub fn finish(mut self, spill: &mut Spill, context: &Context) -> Result<Run> {
        self.flush(spill, context)?;
        Ok(self.run)
    }
}
