//! What sorts need of the instance: temp files, their space, a queue, statistics.

use crate::files::DataFile;
use crate::files::control::TablespaceKind;
use crate::files::iostat::Transfer;
use crate::instance::Core;
use crate::page::PageId;
use crate::statistics::Statistic;
use crate::{Context, Result};
use io::sim::Disk;
use io::{Api, Queue};
use std::path::PathBuf;
use std::sync::Arc;
use units::Nanos;

/// A temp file.
pub(super) struct TempFile {
    pub number: u16,
    pub path: PathBuf,
    pub disk: Arc<dyn Disk>,
}

/// A transfer that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Io {
    pub write: bool,
    pub blocks: u64,
    pub bytes: u64,
    pub elapsed: Nanos,
    pub good: bool,
}

/// Where sorts spill. In the engine that is [`Core`]; the tests have memory.
pub(super) trait Scratch: Send {
    fn block_bytes(&self) -> usize;
    fn now(&self) -> Nanos;
    fn temp_files(&self) -> Result<Vec<TempFile>>;
    /// A queue over files, of `depth` slots where requests are asynchronous, else of one.
    fn open_queue(&self, depth: u32, slot_bytes: u32, files: &[TempFile]) -> Result<Box<dyn Queue>>;
    /// Neighbouring blocks of a temp file.
    fn allocate(&self, context: &Context, blocks: u32) -> Result<PageId>;
    fn free(&self, first: PageId, blocks: u32);
    /// Notes a transfer that has ended.
    fn note(&self, context: &Context, file: u16, io: &Io);
}

impl Scratch for Arc<Core> {
    fn block_bytes(&self) -> usize {
        self.files.block_bytes() as usize
    }
    fn now(&self) -> Nanos {
        self.environment.clock.now()
    }
    fn temp_files(&self) -> Result<Vec<TempFile>> {
        let files = self.files.all().into_iter().filter(|file| file.kind == TablespaceKind::Temporary);
        let temp = |file: Arc<DataFile>| {
            Ok(TempFile { number: file.number, path: file.path.clone(), disk: file.disk()? })
        };
        files.map(temp).collect()
    }
    fn open_queue(&self, depth: u32, slot_bytes: u32, files: &[TempFile]) -> Result<Box<dyn Queue>> {
        let disks: Vec<_> = files.iter().map(|file| file.disk.clone()).collect();
        let asynchronous = self.parameters.io_mode().asynchronous();
        let (api, depth) = if asynchronous { (self.parameters.api(), depth) } else { (Api::Threads, 1) };
        Ok(self.environment.storage.open_queue(api, depth, slot_bytes, &disks)?)
    }
    fn allocate(&self, context: &Context, blocks: u32) -> Result<PageId> {
        self.temp.allocate(self, context, blocks)
    }
    fn free(&self, first: PageId, blocks: u32) {
        self.temp.free(first, blocks);
    }
    fn note(&self, context: &Context, file: u16, io: &Io) {
        let statistics = self.files.get(file).map(|file| &file.statistics);
        if !io.good {
            statistics.inspect(|file| file.note_error());
            return;
        }
        let transfer = if io.write { Transfer::Write } else { Transfer::ReadAsync };
        statistics.inspect(|file| file.note(transfer, io.bytes, io.elapsed));
        let [blocks, direct, temporary, requests, bytes] = if io.write {
            [
                Statistic::PhysicalWrites,
                Statistic::PhysicalWritesDirect,
                Statistic::PhysicalWritesDirectTemporary,
                Statistic::PhysicalWriteIoRequests,
                Statistic::PhysicalWriteBytes,
            ]
        } else {
            [
                Statistic::PhysicalReads,
                Statistic::PhysicalReadsDirect,
                Statistic::PhysicalReadsDirectTemporary,
                Statistic::PhysicalReadIoRequests,
                Statistic::PhysicalReadBytes,
            ]
        };
        [blocks, direct, temporary].into_iter().for_each(|statistic| context.count(statistic, io.blocks));
        context.count(requests, 1);
        context.count(bytes, io.bytes);
    }
}
