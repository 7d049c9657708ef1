//! Records sorted by key bytes, in memory or by merging runs from temp files.

use super::area::{AREA_BYTES_MAX, Area};
use super::merge::Merge;
use super::scratch::Scratch;
use super::spill::{Run, RunWriter, Spill};
use crate::instance::Core;
use crate::parameter::Parameter;
use crate::statistics::Statistic;
use crate::{Context, Result};
use std::sync::Arc;

/// Bytes of one request to temp, at least and at most.
const IO_BYTES: std::ops::RangeInclusive<usize> = 64 << 10..=1 << 20;
/// Runs that are merged at once, at least.
const MERGE_MIN: usize = 3;

enum State {
    Collecting,
    /// The next record of the area.
    Memory(usize),
    Merging(Merge),
}

/// Collects records, sorts them by their keys, gives them back. Equal keys come in the order in which they were pushed.
///
/// Memory: `area_bytes` while records come; with temp files a quarter of it more for requests in flight. When the runs are
/// read, half of it.
pub(super) struct RecordSorter {
    area: Area,
    area_bytes: usize,
    /// Until the first spill takes it along.
    scratch: Option<Box<dyn Scratch>>,
    spill: Option<Spill>,
    runs: Vec<Run>,
    state: State,
    count: u64,
}

impl RecordSorter {
    pub fn new(core: &Arc<Core>) -> Self {
        let area_bytes = core.parameters.number(Parameter::SortAreaSize) as usize;
        Self::over(Box::new(core.clone()), area_bytes)
    }

    pub fn over(scratch: Box<dyn Scratch>, area_bytes: usize) -> Self {
        Self {
            area: Area::default(),
            area_bytes: area_bytes.min(AREA_BYTES_MAX),
            scratch: Some(scratch),
            spill: None,
            runs: Vec::new(),
            state: State::Collecting,
            count: 0,
        }
    }

    /// Takes a record.
    ///
    /// # Panics
    /// After the first [`RecordSorter::next`].
    pub fn push(&mut self, context: &Context, key: &[u8], payload: &[u8]) -> Result<()> {
        assert!(matches!(self.state, State::Collecting), "a push to a sort that is being read");
        if self.area.bytes_with(key, payload) > self.area_bytes && self.area.count() > 0 {
            self.spill_area(context)?;
        }
        self.area.push(key, payload);
        self.count += 1;
        Ok(())
    }

    /// The next record: key and payload.
    pub fn next(&mut self, context: &Context) -> Result<Option<(&[u8], &[u8])>> {
        if matches!(self.state, State::Collecting) {
            self.finish(context)?;
        }
        match &mut self.state {
            State::Memory(next) if *next < self.area.count() => {
                *next += 1;
                Ok(Some(self.area.record(*next - 1)))
            }
            State::Merging(merge) => {
                merge.next(self.spill.as_mut().expect("runs are in temp files"), context)
            }
            State::Memory(_) | State::Collecting => Ok(None),
        }
    }

    fn io_bytes(&self) -> usize {
        (self.area_bytes / 64).clamp(*IO_BYTES.start(), *IO_BYTES.end())
    }

    fn spill_area(&mut self, context: &Context) -> Result<()> {
        if let Some(scratch) = self.scratch.take() {
            let io_bytes = self.io_bytes();
            let depth = (self.area_bytes / 4 / io_bytes).clamp(MERGE_MIN + 1, 64);
            self.spill = Some(Spill::open(scratch, io_bytes, depth as u32)?);
        }
        let spill = self.spill.as_mut().expect("it was opened");
        self.area.sort();
        let mut writer = RunWriter::new(spill);
        for index in 0..self.area.count() {
            let (key, payload) = self.area.record(index);
            writer.push(spill, context, key, payload)?;
        }
        self.runs.push(writer.finish(spill, context)?);
        self.area.clear();
        Ok(())
    }

    fn finish(&mut self, context: &Context) -> Result<()> {
        context.count(Statistic::SortsRows, self.count);
        if self.runs.is_empty() {
            context.count(Statistic::SortsMemory, 1);
            self.area.sort();
            self.state = State::Memory(0);
            return Ok(());
        }
        context.count(Statistic::SortsDisk, 1);
        self.spill_area(context)?;
        self.area = Area::default();
        self.reduce(context)?;
        let runs = std::mem::take(&mut self.runs);
        let spill = self.spill.as_mut().expect("runs are in temp files");
        self.state = State::Merging(Merge::open(spill, context, runs, false)?);
        Ok(())
    }

    /// Merges neighbouring runs until so few are left that one merge reads them all. Only as many as needed at a time, so that
    /// records are read and written again as seldom as possible; round after round through all runs, so that they stay alike.
    fn reduce(&mut self, context: &Context) -> Result<()> {
        let windows = self.area_bytes / 2 / self.io_bytes();
        let spill = self.spill.as_mut().expect("runs are in temp files");
        spill.drain(context)?;
        // One slot is for the writes of the merge. With one slot in all nothing is read ahead, and memory is the limit.
        let at_once = if spill.depth() > 1 { spill.depth() - 1 } else { windows }.max(MERGE_MIN);
        let mut from = 0;
        while self.runs.len() > at_once {
            if from + 2 > self.runs.len() {
                from = 0;
            }
            let wanted = at_once.min(self.runs.len() - at_once + 1);
            let some = from..(from + wanted).min(self.runs.len());
            let mut merge = Merge::open(spill, context, self.runs.drain(some).collect(), true)?;
            let mut writer = RunWriter::new(spill);
            while let Some((key, payload)) = merge.next(spill, context)? {
                writer.push(spill, context, key, payload)?;
            }
            self.runs.insert(from, writer.finish(spill, context)?);
            spill.drain(context)?;
            from += 1;
        }
        Ok(())
    }
}
