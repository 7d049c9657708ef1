//! Making or opening what is calibrated, and what must be known of it first.

use super::Options;
use super::subject::{DATA_FILE_ID, Subject, Work};
use crate::LabError;
use crate::bench::Bench;
use crate::control::Control;
use crate::export;
use crate::target::{Target, make_file};
use io::{Access, File, IoError};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use units::{Bytes, Nanos};

/// Our own file when the user names no size.
const SIZE_DEFAULT: Bytes = Bytes::gib(1);
/// Smallest span that random reads of 1 MiB spread over.
const SIZE_MIN: Bytes = Bytes::mib(64);
const REDO_BYTES: u64 = 64 << 20;
const FREE_SHARE_MAX: f64 = 0.8;
/// Redo is written in whole pages, as the page cache would have to anyway; larger where direct I/O needs it.
const LOG_BLOCK_BYTES: u32 = 4096;
/// What is read again and again to learn how fast a cached page is.
const CACHED_BYTES: u64 = 256 << 10;

/// Size of the file that we make in a directory; foreseen against the free space. `None` for files and devices.
pub fn choose_size(options: &Options) -> Result<Option<Bytes>, LabError> {
    let block = options.block.0;
    if !block.is_power_of_two() || !(512..=65536).contains(&block) {
        return Err(LabError::Target(format!(
            "--block {} is not a block size; type 4k, 8k, 16k …",
            options.block
        )));
    }
    let (Target::Directory(_) | Target::Export(_)) = &options.target else { return Ok(None) };
    let free = export::free_space(options.target.path())?;
    let room = ((free as f64 * FREE_SHARE_MAX) as u64).saturating_sub(REDO_BYTES);
    let size = options.size.unwrap_or(Bytes(SIZE_DEFAULT.0.min(room).max(SIZE_MIN.0)));
    if size < SIZE_MIN {
        return Err(LabError::Target(format!("--size {size} is too small; type at least {SIZE_MIN}.")));
    }
    if size.0 > room {
        return Err(LabError::Target(format!(
            "{} has {} free; this run needs {} and leaves at least a fifth of the space alone. Free some space, give another \
             directory, or type a smaller --size.",
            options.target.path().display(),
            Bytes(free),
            Bytes(size.0 + REDO_BYTES)
        )));
    }
    Ok(Some(Bytes(size.0 - size.0 % (1 << 20))))
}

/// Makes or opens the subject.
pub fn subject(
    options: &Options,
    size: Option<Bytes>,
    bench: &mut Bench,
    control: &mut Control<'_>,
) -> Result<Subject, LabError> {
    let block_bytes = options.block.0 as u32;
    match &options.target {
        Target::Directory(_) | Target::Export(_) => {
            let size = size.expect("a directory has a size").0;
            control.progress.say(&format!(
                "{} of test data in a directory of our own in {}, removed at the end.",
                Bytes(size + REDO_BYTES),
                options.target.path().display()
            ));
            let (data, redo) = (bench.new_file("data.dbf")?, bench.new_file("redo.log")?);
            write(&data, size, block_bytes, DATA_FILE_ID, bench, control)?;
            write(&redo, REDO_BYTES, 4096, crate::workload::commit::REDO_FILE_ID, bench, control)?;
            let (direct, log_block_bytes) = direct(&data, true, block_bytes, control)?;
            let redo = Some((redo, 0..REDO_BYTES));
            Ok(Subject { data, span: 0..size, redo, stamped: true, direct, block_bytes, log_block_bytes })
        }
        Target::File(path) | Target::Device { path, destroy: false } => {
            let (direct, log_block_bytes) = direct(path, false, block_bytes, control)?;
            let bytes =
                File::open(path, Access { read: true, write: false, direct: false, dsync: false })?.size()?;
            let end = options.size.map_or(bytes, |s| s.0.min(bytes));
            let end = end - end % u64::from(super::LARGE_BYTES);
            if end < SIZE_MIN.0 {
                return Err(LabError::Target(format!(
                    "{} holds {}; random reads need at least {SIZE_MIN}. Give a larger file, or its directory.",
                    path.display(),
                    Bytes(bytes)
                )));
            }
            Ok(Subject {
                data: path.clone(),
                span: 0..end,
                redo: None,
                stamped: false,
                direct,
                block_bytes,
                log_block_bytes,
            })
        }
        Target::Device { path, destroy: true } => {
            destroyed_device(path, options, block_bytes, bench, control)
        }
    }
}

/// A device whose content the user gave up: stamped data in front, redo behind it.
fn destroyed_device(
    path: &Path,
    options: &Options,
    block_bytes: u32,
    bench: &mut Bench,
    control: &mut Control<'_>,
) -> Result<Subject, LabError> {
    let (direct, log_block_bytes) = direct(path, true, block_bytes, control)?;
    let file = File::open(path, Access { read: true, write: true, direct, dsync: false })?;
    let bytes = file.size()?;
    let wanted = options.size.unwrap_or(SIZE_DEFAULT).0.min(bytes.saturating_sub(REDO_BYTES));
    let end = wanted - wanted % u64::from(super::LARGE_BYTES);
    if end < SIZE_MIN.0 {
        return Err(LabError::Target(format!(
            "{} holds {}; a calibration needs at least {}.",
            path.display(),
            Bytes(bytes),
            Bytes(SIZE_MIN.0 + REDO_BYTES)
        )));
    }
    let whole = end + REDO_BYTES;
    let seed = bench.seed;
    let written =
        io::prepare::write_stamped(&file, whole, block_bytes, DATA_FILE_ID, seed, &mut |done, total| {
            bench.step(control, &format!("overwriting {} of {}", Bytes(done), Bytes(total)));
            !control.cancelled()
        });
    if control.cancelled() {
        return Err(LabError::Cancelled);
    }
    written?;
    let redo = Some((path.to_owned(), end..whole));
    Ok(Subject {
        data: path.to_owned(),
        span: 0..end,
        redo,
        stamped: true,
        direct,
        block_bytes,
        log_block_bytes,
    })
}

fn write(
    path: &Path,
    bytes: u64,
    block_bytes: u32,
    file_id: u64,
    bench: &mut Bench,
    control: &mut Control<'_>,
) -> Result<(), LabError> {
    let seed = bench.seed;
    make_file(path, bytes, block_bytes, file_id, seed, control, &mut |control, done| {
        bench.step(control, &format!("writing {} of {} test data", Bytes(done), Bytes(bytes)));
    })
}

/// Whether direct I/O really works here, and the log block that it needs.
fn direct(
    path: &Path,
    write: bool,
    block_bytes: u32,
    control: &mut Control<'_>,
) -> Result<(bool, u32), LabError> {
    if export::is_export(path) {
        return Ok((true, LOG_BLOCK_BYTES));
    }
    let opened =
        File::open(path, Access { read: true, write, direct: true, dsync: false }).and_then(|file| {
            file.probe_direct()?;
            Ok(file.alignment().length)
        });
    match opened {
        Ok(length) if !block_bytes.is_multiple_of(length) => Err(LabError::Target(format!(
            "direct I/O on {} works in units of {length} bytes, and --block {} is not a multiple; type --block {}",
            path.display(),
            Bytes(u64::from(block_bytes)),
            Bytes(u64::from(length))
        ))),
        Ok(length) => Ok((true, length.max(LOG_BLOCK_BYTES))),
        Err(error @ (IoError::DirectRefusedAtOpen { .. } | IoError::DirectRefusedAtTransfer { .. })) => {
            control.progress.say(&error.to_string());
            Ok((false, LOG_BLOCK_BYTES))
        }
        Err(error) => Err(error.into()),
    }
}

/// Latency of one read that the page cache serves, ns; `None` when it cannot be measured.
pub fn page_cache_read_ns(subject: &Subject) -> Option<f64> {
    if subject.is_remote() {
        return None;
    }
    let small = Subject { span: 0..CACHED_BYTES, direct: false, stamped: false, ..subject.clone() };
    // Read once before: otherwise a slow disk would pass for a slow page cache.
    let access = Access { read: true, write: false, direct: false, dsync: false };
    let file = File::open(&small.data, access).ok()?;
    if file.read_at(&mut vec![0; CACHED_BYTES as usize], 0) != io::Outcome::Full {
        return None;
    }
    let work = Work::Read { bytes: subject.block_bytes, in_flight: 1, shape: subject.each_its_thread(1) };
    let trial = small
        .run(work, Nanos::millis(20), Nanos::millis(100), units::Seed(1), &AtomicBool::new(false))
        .ok()?;
    (trial.ops > 0).then(|| trial.histogram.quantile(0.5) as f64)
}
