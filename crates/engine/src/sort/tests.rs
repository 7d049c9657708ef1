//! Sorts against the standard library's, with temp files in memory that fail on purpose.

use super::scratch::{Io, Scratch, TempFile};
use super::*;
use crate::page::PageId;
use crate::statistics::{Statistic, Statistics};
use crate::value::Value;
use crate::{EngineError, btree};
use io::sim::{Disk, SimQueue};
use io::{Outcome, Queue};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use units::{Clock, Nanos, Rng, Seed};
use waits::{Event, Registry, SessionKind};

const BLOCK: usize = 2048;
const FILE: u16 = 7;
const ENOSPC: i32 = 28;

/// A temp file in memory.
#[derive(Default)]
struct Temp {
    bytes: Mutex<Vec<u8>>,
    /// Calls that may come before one fails; negative is never.
    fail_in: AtomicI64,
    blocks_max: AtomicU64,
    used: Mutex<BTreeSet<u32>>,
    most_used: AtomicU64,
    slots: u32,
    transfers: Mutex<Vec<Io>>,
}

impl Temp {
    fn new(slots: u32) -> Arc<Self> {
        Arc::new(Self {
            fail_in: AtomicI64::new(-1),
            blocks_max: AtomicU64::new(1 << 20),
            slots,
            ..Self::default()
        })
    }

    fn fails(&self) -> bool {
        self.fail_in.load(Ordering::Relaxed) >= 0 && self.fail_in.fetch_sub(1, Ordering::Relaxed) == 0
    }
}

impl Disk for Temp {
    fn bytes(&self) -> u64 {
        self.bytes.lock().len() as u64
    }
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Outcome {
        if self.fails() {
            return Outcome::Errno(5);
        }
        buffer.copy_from_slice(&self.bytes.lock()[offset as usize..][..buffer.len()]);
        Outcome::Full
    }
    fn write_at(&self, data: &[u8], offset: u64) -> Outcome {
        if self.fails() {
            return Outcome::Errno(ENOSPC);
        }
        let mut bytes = self.bytes.lock();
        let end = offset as usize + data.len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[offset as usize..end].copy_from_slice(data);
        Outcome::Full
    }
    fn sync(&self) -> Outcome {
        panic!("nobody needs a durable sort")
    }
}

impl Scratch for Arc<Temp> {
    fn block_bytes(&self) -> usize {
        BLOCK
    }
    fn now(&self) -> Nanos {
        Nanos(0)
    }
    fn temp_files(&self) -> Result<Vec<TempFile>> {
        Ok(vec![TempFile { number: FILE, path: "/temp".into(), disk: self.clone() }])
    }
    fn open_queue(&self, depth: u32, slot_bytes: u32, files: &[TempFile]) -> Result<Box<dyn Queue>> {
        assert_eq!(files.len(), 1);
        let depth = depth.min(self.slots);
        Ok(Box::new(SimQueue::new(depth, slot_bytes, vec![self.clone()], Seed(depth.into()))?))
    }
    fn allocate(&self, _: &Context, blocks: u32) -> Result<PageId> {
        let mut used = self.used.lock();
        let block = (1..).step_by(blocks as usize).find(|block| !used.contains(block)).expect("endless");
        if self.fails() || u64::from(block + blocks) > self.blocks_max.load(Ordering::Relaxed) {
            return Err(EngineError::TablespaceFull {
                tablespace: "TEMP".into(),
                object: "a sort".into(),
                cause: "on purpose".into(),
            });
        }
        used.insert(block);
        self.most_used.fetch_max(used.len() as u64, Ordering::Relaxed);
        Ok(PageId { file: FILE, block })
    }
    fn free(&self, first: PageId, _: u32) {
        assert!(self.used.lock().remove(&first.block), "{first} is given back twice");
    }
    fn note(&self, _: &Context, file: u16, io: &Io) {
        assert_eq!(file, FILE);
        self.transfers.lock().push(*io);
    }
}

fn context() -> (Context, Arc<Registry>, Arc<Statistics>) {
    let waits = Registry::new(Clock::steps(), 4);
    let statistics = Statistics::new();
    let slot = waits.register(SessionKind::Foreground, "test");
    (Context { session: slot.sid(), slot, counters: statistics.counters() }, waits, statistics)
}

fn sorter(temp: &Arc<Temp>, area_bytes: usize, keys: &[SortKey]) -> Sorter {
    Sorter::over(RecordSorter::over(Box::new(temp.clone()), area_bytes), keys)
}

fn by(column: usize, descending: bool) -> SortKey {
    SortKey { column, descending }
}

fn any_row(rng: &mut Rng, number: u64) -> Row {
    let text: String = (0..rng.below(120)).map(|_| char::from(b'a' + rng.below(3) as u8)).collect();
    let first = match rng.below(6) {
        0 => Value::Null,
        1 => Value::Real(rng.below(100) as f64 / 4.0),
        2 => Value::Blob(vec![rng.below(3) as u8; rng.below(4) as usize]),
        3 => Value::Text(text[..text.len().min(2)].into()),
        _ => Value::Integer(rng.below(100) as i64),
    };
    vec![first, Value::Text(text), Value::Integer(number as i64)]
}

/// In the order of the encoded values, column by column, NULL last; a stable sort.
fn sorted(mut rows: Vec<Row>, keys: &[SortKey]) -> Vec<Row> {
    rows.sort_by(|a, b| {
        let orders = keys.iter().map(|key| {
            let [a, b] = [a, b].map(|row| btree::encode_key(&row[key.column..=key.column]));
            if key.descending { b.cmp(&a) } else { a.cmp(&b) }
        });
        orders.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
    });
    rows
}

fn sort(sorter: &mut Sorter, context: &Context, rows: &[Row]) -> Result<Vec<Row>> {
    rows.iter().try_for_each(|row| sorter.push(context, row.clone()))?;
    let mut found = Vec::new();
    while let Some(row) = sorter.next(context)? {
        found.push(row);
    }
    assert!(sorter.next(context)?.is_none(), "the end stays the end");
    Ok(found)
}

#[test]
fn rows_come_in_order_whatever_the_area() {
    let (context, _, statistics) = context();
    let keys = [by(0, true), by(1, false)];
    for (seed, count, area_bytes, slots, spills) in [
        (1, 0, 1 << 16, 8, false),
        (2, 500, 1 << 20, 8, false),
        (3, 3_000, 1 << 16, 8, true),
        (4, 3_000, 1 << 16, 1, true),
        (5, 20_000, 1 << 16, 64, true),
        (6, 20_000, 1 << 16, 1, true),
        (7, 20_000, 1 << 19, 64, true),
    ] {
        let mut rng = Rng::new(Seed(seed));
        let rows: Vec<_> = (0..count).map(|number| any_row(&mut rng, number)).collect();
        let temp = Temp::new(slots);
        let (before_memory, before_disk) =
            (statistics.value(Statistic::SortsMemory), statistics.value(Statistic::SortsDisk));
        let mut sorter = sorter(&temp, area_bytes, &keys);
        let found = sort(&mut sorter, &context, &rows).expect("nothing fails");
        assert!(found == sorted(rows, &keys), "seed {seed}");
        assert_eq!(temp.used.lock().len(), 0, "what is read is given back");
        assert_eq!(temp.transfers.lock().is_empty(), !spills, "seed {seed}");
        let counted = (
            statistics.value(Statistic::SortsMemory) - before_memory,
            statistics.value(Statistic::SortsDisk) - before_disk,
        );
        assert_eq!(counted, (u64::from(!spills), u64::from(spills)));
    }
}

#[test]
fn rows_longer_than_a_block_or_the_area_are_sorted_too() {
    let (context, waits, _) = context();
    let mut rng = Rng::new(Seed(9));
    let rows: Vec<Row> = (0..60)
        .map(|number| {
            let long = [10, 3_000, 70_000, 200_000][rng.below(4) as usize];
            vec![Value::Blob(vec![rng.below(250) as u8; long]), Value::Integer(number)]
        })
        .collect();
    for slots in [1, 16] {
        let temp = Temp::new(slots);
        let keys = [by(0, false)];
        let found = sort(&mut sorter(&temp, 1 << 16, &keys), &context, &rows).expect("nothing fails");
        assert!(found == sorted(rows.clone(), &keys));
    }
    let totals = waits.totals().foreground;
    for event in [Event::DirectPathWriteTemp, Event::DirectPathReadTemp] {
        assert!(totals.event(event).waits > 0, "{event:?}");
    }
}

/// A record is written again only when there are more runs than one merge can read, and then not by much more often.
#[test]
fn merges_are_few() {
    let (context, ..) = context();
    let temp = Temp::new(64);
    let mut rng = Rng::new(Seed(3));
    let rows: Vec<_> = (0..16_000).map(|number| any_row(&mut rng, number)).collect();
    // Some 25 runs of 64 KiB; three slots for reading.
    sort(&mut sorter(&temp, 1 << 16, &[by(0, false)]), &context, &rows).expect("nothing fails");
    let written =
        |write| temp.transfers.lock().iter().filter(|io| io.write == write).map(|io| io.bytes).sum::<u64>();
    assert_eq!(written(true), written(false));
    let records: usize = rows.iter().map(|row| 60 + btree::encode_key(&row[1..2]).len()).sum();
    let passes = written(true) as f64 / records as f64;
    assert!((1.0..4.5).contains(&passes), "{passes}");
}

#[test]
fn an_abandoned_sort_gives_its_space_back() {
    let (context, ..) = context();
    let mut rng = Rng::new(Seed(4));
    for (slots, read) in [(1, 0), (16, 0), (1, 100), (16, 100)] {
        let temp = Temp::new(slots);
        let mut sorter = sorter(&temp, 1 << 16, &[by(1, false)]);
        (0..4_000)
            .for_each(|number| sorter.push(&context, any_row(&mut rng, number)).expect("nothing fails"));
        assert!(!temp.used.lock().is_empty());
        (0..read).for_each(|_| assert!(sorter.next(&context).expect("nothing fails").is_some()));
        drop(sorter);
        assert_eq!(temp.used.lock().len(), 0);
    }
}

#[test]
fn every_failure_is_told_and_leaves_nothing() {
    let (context, ..) = context();
    let mut rng = Rng::new(Seed(5));
    let rows: Vec<_> = (0..3_000).map(|number| any_row(&mut rng, number)).collect();
    let keys = [by(1, true)];
    let wanted = sorted(rows.clone(), &keys);
    for slots in [1, 16] {
        let mut failures = 0;
        loop {
            let temp = Temp::new(slots);
            temp.fail_in.store(failures, Ordering::Relaxed);
            let result = sort(&mut sorter(&temp, 1 << 16, &keys), &context, &rows);
            assert_eq!(temp.used.lock().len(), 0);
            if temp.fail_in.load(Ordering::Relaxed) >= 0 {
                assert!(result.expect("nothing failed") == wanted);
                break;
            }
            let error = result.expect_err("a call failed");
            assert!(matches!(error, EngineError::Io(_) | EngineError::TablespaceFull { .. }), "{error}");
            failures += 1;
        }
        assert!(failures > 20, "{failures}");
    }
}

#[test]
fn a_full_temp_and_a_damaged_block_are_errors() {
    let (context, ..) = context();
    let mut rng = Rng::new(Seed(6));
    let rows: Vec<_> = (0..3_000).map(|number| any_row(&mut rng, number)).collect();
    let keys = [by(1, false)];
    let temp = Temp::new(16);
    temp.blocks_max.store(100, Ordering::Relaxed);
    let full = sort(&mut sorter(&temp, 1 << 16, &keys), &context, &rows);
    assert!(matches!(full, Err(EngineError::TablespaceFull { .. })));
    let temp = Temp::new(16);
    let mut damaged = sorter(&temp, 1 << 16, &keys);
    rows.iter().for_each(|row| damaged.push(&context, row.clone()).expect("nothing fails"));
    // Whatever was written so far; some of it may still be under way.
    temp.bytes.lock().iter_mut().skip(BLOCK).step_by(BLOCK).for_each(|byte| *byte ^= 1);
    let error = std::iter::from_fn(|| damaged.next(&context).transpose()).find_map(|row| row.err());
    assert!(matches!(error, Some(EngineError::CorruptBlock { .. })), "{error:?}");
}

#[test]
fn entries_come_in_the_order_of_an_index() {
    let (context, ..) = context();
    let mut rng = Rng::new(Seed(8));
    let temp = Temp::new(16);
    let mut sorter =
        EntrySorter { records: RecordSorter::over(Box::new(temp.clone()), 1 << 16), key: Vec::new() };
    let mut entries = Vec::new();
    for _ in 0..8_000 {
        let file = 1 + rng.below(0x7FFE) as u16;
        let row = RowId { page: PageId { file, block: rng.next_u64() as u32 }, slot: rng.below(300) as u16 };
        let value = match rng.below(3) {
            0 => Value::Real(rng.below(40) as f64 / 4.0),
            1 => Value::Text(["", "a", "a\0", "a\0b"][rng.below(4) as usize].into()),
            _ => Value::Integer(rng.below(10) as i64),
        };
        let key = btree::encode_key(&[value]);
        sorter.push(&context, &key, row).expect("nothing fails");
        entries.push((key, row));
    }
    entries.sort();
    let found: Vec<_> = std::iter::from_fn(|| sorter.next(&context).transpose())
        .map(|entry| entry.expect("nothing fails"))
        .collect();
    assert!(found == entries);
    assert!(temp.most_used.load(Ordering::Relaxed) > 0);
}
