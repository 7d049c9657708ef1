//! Tests of the parent module, on real files.

use super::*;
use io::File;
use io::stamp::verify;
use io::{Completion, Outcome, Queue, Request, prepare};
use std::path::Path;
use std::sync::atomic::AtomicU32;
use tempfile::TempDir;

const BLOCK: u32 = 8192;
const BLOCKS: u64 = 512;
const FILE_ID: u64 = 77;
const CACHED: Access = Access { read: true, write: true, direct: false, dsync: false };

/// A load that is complete but for its files.
pub(super) fn spec() -> LoadSpec {
    LoadSpec {
        api: Api::Threads,
        access: Access { write: false, ..CACHED },
        paths: Vec::new(),
        threads: 1,
        in_flight: 1,
        pattern: Pattern::RandomRead,
        block_bytes: BLOCK,
        span: 0..BLOCKS * u64::from(BLOCK),
        batch_min: 1,
        verify_every: 3,
        notes: None,
        file_id: FILE_ID,
        seed: Seed(1),
        interval: Nanos::millis(10),
        pin_cores: false,
        settle: Nanos::millis(5),
        measure: Nanos::millis(60),
        lock_writes: false,
    }
}

fn folder() -> TempDir {
    let mut parent = std::env::temp_dir();
    if prepare::file_system(&parent).unwrap() == "tmpfs" {
        parent = "/var/tmp".into();
    }
    tempfile::Builder::new().prefix("redoubt-io-").tempdir_in(parent).unwrap()
}

fn stamped(folder: &TempDir, name: &str, file_id: u64) -> PathBuf {
    let path = folder.path().join(name);
    let file = File::create_new(&path, CACHED).unwrap();
    prepare::write_stamped(&file, BLOCKS * u64::from(BLOCK), BLOCK, file_id, Seed(2), &mut |_, _| true)
        .unwrap();
    path
}

fn go(spec: &LoadSpec) -> Measured {
    measured(spec, |spec| run(spec, &AtomicBool::new(false)).unwrap())
}

/// With a window long enough that a worker came to its first verification in it: on a busy machine a short one
/// may pass without.
fn measured(spec: &LoadSpec, run: impl Fn(&LoadSpec) -> Measured) -> Measured {
    let mut spec = spec.clone();
    let enough = u64::from(spec.threads) * u64::from(spec.verify_every.max(1));
    loop {
        let measured = run(&spec);
        if measured.ops >= enough || measured.errors > 0 || spec.measure > Nanos::secs(10.0) {
            return measured;
        }
        spec.measure += spec.measure;
    }
}

/// The figures must agree with each other, whatever the storage did.
fn consistent(measured: &Measured, spec: &LoadSpec) {
    let name = format!("{} {:?} {} in flight", spec.api, spec.pattern, spec.in_flight);
    assert_eq!((measured.errors, &measured.first_error), (0, &None), "{name}");
    assert_eq!((measured.wrong_count, measured.wrong.len()), (0, 0), "{name}: {:?}", measured.wrong);
    assert!(measured.ops > 0, "{name}");
    assert_eq!(measured.histogram.count(), measured.ops, "{name}: every latency is recorded");
    assert_eq!(
        measured.histogram.sum(),
        measured.slices.iter().map(|s| s.latency_sum_ns).sum::<u64>(),
        "{name}"
    );
    assert_eq!(
        measured.histogram.max(),
        measured.slices.iter().map(|s| s.latency_max_ns).max().unwrap(),
        "{name}"
    );
    assert_eq!(measured.bytes, measured.ops * u64::from(spec.block_bytes), "{name}");
    // At least what was asked for: `measured` takes longer where nothing ended.
    let window = measured.ended - measured.started;
    assert!(window >= spec.measure, "{name}: {window}");
    assert_eq!(measured.slices.len() as u64, window.0 / spec.interval.0, "{name}");
    let mean = measured.in_flight_mean;
    assert!(mean > 0.0 && mean <= f64::from(spec.in_flight) + 1e-9, "{name}: {mean} in flight");
    assert!(measured.cpu_user_ns + measured.cpu_system_ns > 0, "{name}");
}

#[test]
fn every_api_and_pattern_is_measured_and_verified() {
    let folder = folder();
    let path = stamped(&folder, "file", FILE_ID);
    for api in Api::ALL {
        for (threads, in_flight) in [(1, 1), (2, 8), (8, 3)] {
            for direct in [false, true] {
                for pattern in [Pattern::RandomRead, Pattern::RandomReadOnce, Pattern::SequentialRead] {
                    let access = Access { direct, write: false, ..CACHED };
                    let paths = vec![path.clone()];
                    let spec = LoadSpec { api, threads, in_flight, pattern, access, paths, ..spec() };
                    let measured = go(&spec);
                    consistent(&measured, &spec);
                    assert!(measured.verified > 0);
                    assert_eq!(
                        measured.flags_in_force,
                        if direct { "O_RDONLY|O_DIRECT" } else { "O_RDONLY" }
                    );
                    assert!(!measured.queue.is_empty());
                }
            }
        }
    }
}

#[test]
fn writes_are_stamped_and_rise() {
    let folder = folder();
    for api in Api::ALL {
        for pattern in [Pattern::RandomWrite, Pattern::SequentialWrite] {
            let path = stamped(&folder, &format!("{api} {pattern:?}"), FILE_ID);
            let access = Access { direct: true, ..CACHED };
            let spec = LoadSpec {
                api,
                pattern,
                access,
                threads: 2,
                in_flight: 4,
                paths: vec![path.clone()],
                ..spec()
            };
            consistent(&go(&spec), &spec);
            let after_one = generations(&path);
            assert!(after_one.iter().any(|&generation| generation > 0), "{api} {pattern:?}");
            go(&spec);
            let after_two = generations(&path);
            let pairs = after_one.iter().zip(&after_two);
            assert!(pairs.clone().all(|(one, two)| two >= one) && pairs.clone().any(|(one, two)| two > one));
        }
    }
}

fn generations(path: &Path) -> Vec<u64> {
    let file = File::open(path, CACHED).unwrap();
    let mut block = vec![0; BLOCK as usize];
    let mut generation = |offset| {
        assert_eq!(file.read_at(&mut block, offset), Outcome::Full);
        verify(&block, FILE_ID, offset, None)
            .unwrap_or_else(|wrong| panic!("offset {offset}: {wrong}"))
            .generation
    };
    (0..BLOCKS).map(|index| generation(index * u64::from(BLOCK))).collect()
}

#[test]
fn several_files_are_used_each_with_its_own_stamps() {
    let folder = folder();
    let paths = vec![stamped(&folder, "one", FILE_ID), stamped(&folder, "two", FILE_ID + 1)];
    let spec = LoadSpec { api: Api::IoUring, in_flight: 4, paths, ..spec() };
    let measured = go(&spec);
    consistent(&measured, &spec);
    let swapped = LoadSpec { paths: spec.paths.iter().rev().cloned().collect(), ..spec };
    let measured = go(&swapped);
    assert_eq!(measured.wrong_count, measured.verified);
    assert!(measured.wrong[0].contains("misdirected") && measured.wrong.len() <= 5, "{:?}", measured.wrong);
}

#[test]
fn a_damaged_block_is_found() {
    let folder = folder();
    let path = stamped(&folder, "file", FILE_ID);
    let file = File::open(&path, CACHED).unwrap();
    assert_eq!(file.write_at(&[0; BLOCK as usize], 3 * u64::from(BLOCK)), Outcome::Full);
    let span = 0..4 * u64::from(BLOCK);
    let measured = go(&LoadSpec { paths: vec![path], span, verify_every: 1, ..spec() });
    assert!(measured.wrong_count > 0 && measured.wrong_count < measured.verified);
    assert!(measured.wrong[0].contains("offset 24576: zeroes"), "{:?}", measured.wrong);
}

#[test]
fn a_file_that_ends_too_early_ends_the_run_with_words() {
    let folder = folder();
    let path = stamped(&folder, "file", FILE_ID);
    for api in Api::ALL {
        let beyond = BLOCKS * u64::from(BLOCK);
        let (paths, span) = (vec![path.clone()], beyond..2 * beyond);
        let began = clock::now();
        let measured = go(&LoadSpec { api, paths, span, in_flight: 2, measure: Nanos::secs(20.0), ..spec() });
        assert!(clock::now() - began < Nanos::secs(10.0), "{api}: a thousand failures in a row are enough");
        assert_eq!(measured.ops, 0);
        let words = measured.first_error.unwrap_or_default();
        assert!(words.contains("transferred 0 of 8192 bytes"), "{api}: {words}");
    }
}

/// A queue that knows how many like it have requests in flight right now.
struct Watched<'a> {
    queue: Box<dyn Queue>,
    busy: &'a AtomicU32,
    most: &'a AtomicU32,
}

impl Queue for Watched<'_> {
    fn depth(&self) -> u32 {
        self.queue.depth()
    }
    fn in_flight(&self) -> u32 {
        self.queue.in_flight()
    }
    fn buffer(&self, slot: u32) -> &[u8] {
        self.queue.buffer(slot)
    }
    fn buffer_mut(&mut self, slot: u32) -> &mut [u8] {
        self.queue.buffer_mut(slot)
    }
    fn stage(&mut self, slot: u32, request: Request) {
        self.queue.stage(slot, request);
    }
    fn submit(&mut self) -> Result<u32, IoError> {
        self.queue.submit()
    }
    fn reap(&mut self, min: u32, done: &mut Vec<Completion>) -> Result<(), IoError> {
        self.queue.reap(min, done)
    }
    fn submit_and_reap(&mut self, min: u32, done: &mut Vec<Completion>) -> Result<(), IoError> {
        self.most.fetch_max(self.busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::yield_now();
        let result = self.queue.submit_and_reap(min, done);
        self.busy.fetch_sub(1, Ordering::SeqCst);
        result
    }
    fn counters(&self) -> QueueCounters {
        self.queue.counters()
    }
    fn describe(&self) -> String {
        self.queue.describe()
    }
}

#[test]
fn one_writer_at_a_time_means_one_per_file() {
    let folder = folder();
    let paths = [stamped(&folder, "one", FILE_ID), stamped(&folder, "two", FILE_ID + 1)];
    let base = LoadSpec { pattern: Pattern::RandomWrite, access: CACHED, threads: 4, in_flight: 8, ..spec() };
    for (lock_writes, files, expected) in [(true, 1, 1..=1), (true, 2, 1..=2), (false, 1, 2..=4)] {
        let spec = LoadSpec { lock_writes, paths: paths[..files].to_vec(), ..base.clone() };
        let (busy, most) = (AtomicU32::new(0), AtomicU32::new(0));
        let watch = |queue| Box::new(Watched { queue, busy: &busy, most: &most }) as Box<dyn Queue + '_>;
        let measured = measured(&spec, |spec| run_with(spec, &AtomicBool::new(false), &watch).unwrap());
        assert_eq!((measured.errors, measured.ops > 0), (0, true));
        let most = most.load(Ordering::SeqCst);
        assert!(expected.contains(&most), "{most} writers at once, lock {lock_writes}, {files} files");
    }
}

#[test]
fn cancel_is_noticed() {
    let folder = folder();
    let paths = vec![stamped(&folder, "file", FILE_ID)];
    let spec = LoadSpec { paths, measure: Nanos::secs(30.0), ..spec() };
    let cancel = AtomicBool::new(false);
    let (result, took) = std::thread::scope(|scope| {
        let load = scope.spawn(|| run(&spec, &cancel));
        clock::sleep(Nanos::millis(50));
        let raised = clock::now();
        cancel.store(true, Ordering::Relaxed);
        let result = load.join().unwrap();
        (result, clock::now() - raised)
    });
    assert!(matches!(result, Err(LoadError::Cancelled)));
    // 100 ms are promised; a busy machine may be late to run us at all, but not by the 30 s of the window.
    assert!(took < Nanos::secs(10.0), "{took}");
}

#[test]
fn what_cannot_be_run_is_refused() {
    let folder = folder();
    let good = LoadSpec { paths: vec![stamped(&folder, "file", FILE_ID)], ..spec() };
    for (words, bad) in [
        ("no file", LoadSpec { paths: Vec::new(), ..good.clone() }),
        ("nothing would be in flight", LoadSpec { in_flight: 0, ..good.clone() }),
        ("single block", LoadSpec { span: 0..8191, ..good.clone() }),
        ("single block", LoadSpec { block_bytes: 0, ..good.clone() }),
        ("empty", LoadSpec { measure: Nanos(0), ..good.clone() }),
        ("opened for reading", LoadSpec { pattern: Pattern::RandomWrite, ..good.clone() }),
        ("too small to be verified", LoadSpec { block_bytes: 8, ..good.clone() }),
        ("no such file", LoadSpec { paths: vec!["/no/such/file".into()], ..good.clone() }),
    ] {
        let error = run(&bad, &AtomicBool::new(false)).unwrap_err().to_string();
        assert!(error.contains(words), "{words}: {error}");
    }
}

#[test]
fn a_batch_of_any_size_is_awaited() {
    let folder = folder();
    let paths = vec![stamped(&folder, "file", FILE_ID)];
    for api in [Api::Libaio, Api::IoUring] {
        for batch_min in [0, 1, 4, 100] {
            let access = Access { direct: true, write: false, ..CACHED };
            let spec = LoadSpec { api, access, batch_min, in_flight: 16, paths: paths.clone(), ..spec() };
            consistent(&go(&spec), &spec);
        }
    }
}
