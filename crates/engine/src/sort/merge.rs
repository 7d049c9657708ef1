//! Runs are read back together: the smallest of their first records is the next.
//!
//! Each run has a window of its stream in memory and, where the queue has a slot for each, the request after it in flight
//! (`direct path read temp`). An extent is given back as soon as it is in the window.

use super::area::head;
use super::spill::{RECORD_HEAD, Run, Spill};
use crate::page::get_u32;
use crate::{Context, Result};
use std::ops::Range;

/// A run being read.
struct Reader {
    run: Run,
    /// The request in flight.
    coming: Option<u32>,
    window: Vec<u8>,
    head: u64,
    key: Range<usize>,
    payload: Range<usize>,
}

impl Reader {
    /// Goes to the next record; `false` at the end.
    fn advance(&mut self, spill: &mut Spill, context: &Context, ahead: bool) -> Result<bool> {
        let mut at = self.payload.end;
        if !self.has(&mut at, RECORD_HEAD, spill, context, ahead)? {
            assert_eq!(at, self.window.len(), "a run ends inside a record");
            return Ok(false);
        }
        let key_bytes = get_u32(&self.window, at) as usize;
        let payload_bytes = get_u32(&self.window, at + 4) as usize;
        let whole = self.has(&mut at, RECORD_HEAD + key_bytes + payload_bytes, spill, context, ahead)?;
        assert!(whole, "a run ends inside a record");
        let key_at = at + RECORD_HEAD;
        self.key = key_at..key_at + key_bytes;
        self.payload = self.key.end..self.key.end + payload_bytes;
        self.head = head(&self.window[self.key.clone()]);
        Ok(true)
    }

    /// Whether `bytes` more are in the window from `at` on, after reading what is needed; the window moves along, and `at` with it.
    fn has(
        &mut self,
        at: &mut usize,
        bytes: usize,
        spill: &mut Spill,
        context: &Context,
        ahead: bool,
    ) -> Result<bool> {
        while self.window.len() - *at < bytes {
            if !self.fill(at, spill, context, ahead)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn fill(&mut self, at: &mut usize, spill: &mut Spill, context: &Context, ahead: bool) -> Result<bool> {
        if self.coming.is_none() {
            self.request(spill, context)?;
        }
        let Some(slot) = self.coming.take() else { return Ok(false) };
        self.window.drain(..*at);
        *at = 0;
        let extent = spill.take(context, slot, &mut self.window)?;
        self.run.pop_front();
        spill.free(extent);
        if ahead {
            self.request(spill, context)?;
        }
        Ok(true)
    }

    /// Begins to read the next extent; it stays in the list until it is in the window.
    fn request(&mut self, spill: &mut Spill, context: &Context) -> Result<()> {
        if let Some(extent) = self.run.front() {
            self.coming = Some(spill.read(context, *extent)?);
        }
        Ok(())
    }
}

/// Several runs as one.
pub(super) struct Merge {
    readers: Vec<Reader>,
    /// Readers that have a record, as a heap: the one with the smallest first.
    heap: Vec<usize>,
    ahead: bool,
    /// The first of the heap was given out: it goes on at the next call.
    given: bool,
}

impl Merge {
    /// Begins to read `runs`, whose equal keys come in the order of the runs. `writes`: whether a slot must stay free for writes.
    ///
    /// # Errors
    /// What a read met.
    pub fn open(spill: &mut Spill, context: &Context, runs: Vec<Run>, writes: bool) -> Result<Self> {
        let ahead = spill.depth() >= runs.len() + usize::from(writes);
        let reader =
            |run| Reader { run, coming: None, window: Vec::new(), head: 0, key: 0..0, payload: 0..0 };
        let readers = runs.into_iter().map(reader).collect();
        let mut merge = Self { readers, heap: Vec::new(), ahead, given: false };
        merge.begin(spill, context)?;
        Ok(merge)
    }

    fn begin(&mut self, spill: &mut Spill, context: &Context) -> Result<()> {
        if self.ahead {
            self.readers.iter_mut().try_for_each(|reader| reader.request(spill, context))?;
        }
        for index in 0..self.readers.len() {
            if self.readers[index].advance(spill, context, self.ahead)? {
                self.heap.push(index);
            }
        }
        for at in (0..self.heap.len() / 2).rev() {
            self.sift_down(at);
        }
        Ok(())
    }

    fn before(&self, a: usize, b: usize) -> bool {
        let (left, right) = (&self.readers[a], &self.readers[b]);
        let order = left.head.cmp(&right.head);
        order
            .then_with(|| left.window[left.key.clone()].cmp(&right.window[right.key.clone()]))
            .then(a.cmp(&b))
            .is_lt()
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            let mut least = at;
            for child in [left, right] {
                if child < self.heap.len() && self.before(self.heap[child], self.heap[least]) {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.heap.swap(at, least);
            at = least;
        }
    }

    /// The next record: key and payload.
    pub fn next(&mut self, spill: &mut Spill, context: &Context) -> Result<Option<(&[u8], &[u8])>> {
        if std::mem::take(&mut self.given) {
            if !self.readers[self.heap[0]].advance(spill, context, self.ahead)? {
                self.heap.swap_remove(0);
            }
            self.sift_down(0);
        }
        let Some(first) = self.heap.first() else { return Ok(None) };
        self.given = true;
        let reader = &self.readers[*first];
        Ok(Some((&reader.window[reader.key.clone()], &reader.window[reader.payload.clone()])))
    }
}
