//! How fast a place answers reads of single blocks, with one, two, four … in flight.

use super::must_be_directory;
use crate::LabError;
use crate::bench::Bench;
use crate::control::Control;
use crate::load::{self, LoadSpec, Pattern};
use crate::target::make_file;
use io::{Access, Api, File};
use record::CurvePointRow;
use stats::mrc::gain::Device;
use stats::sample;
use std::path::PathBuf;
use std::str::FromStr;
use units::{Bytes, Nanos};

/// Our own file: large enough that a drive's own cache does not answer for it, small enough to be written soon.
const FILE_BYTES: Bytes = Bytes::mib(512);
const FILE_MIN: Bytes = Bytes::mib(64);
const FILE_ID: u64 = 77;
/// For each number in flight.
const SETTLE: Nanos = Nanos::millis(300);
const MEASURE: Nanos = Nanos::millis(1_500);
const SLICE: Nanos = Nanos::millis(250);
/// About what a place takes.
pub(super) const SECONDS: f64 = 15.0;
/// More in flight than this says nothing new.
const IN_FLIGHT_MAX: u32 = 64;
const THREADS: u32 = 2;

/// Storage that is there, or what its data sheet says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A directory on it, in which we make a file of our own.
    Directory(PathBuf),
    /// A read takes so long, however many are in flight.
    Latency(Nanos),
}

impl FromStr for Place {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let scale = match unit.trim() {
            "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            _ => return Ok(Self::Directory(text.into())),
        };
        match number.parse::<f64>() {
            Ok(number) if number > 0.0 && number.is_finite() => {
                Ok(Self::Latency(Nanos((number * scale) as u64)))
            }
            _ => Err(format!("{text:?} is neither a directory nor the time of a read, such as 90us or 5ms")),
        }
    }
}

/// A device with the doubt of its rates.
pub struct Measured {
    /// Its rates.
    pub device: Device,
    /// Relative standard error, 0 where it was stated.
    pub error: f64,
}

impl Place {
    /// As people read it.
    pub fn name(&self) -> String {
        match self {
            Self::Directory(path) => path.display().to_string(),
            Self::Latency(_) => "as stated".into(),
        }
    }

    /// # Errors
    /// When the directory is none.
    pub fn check(&self) -> Result<(), LabError> {
        match self {
            Self::Directory(path) => must_be_directory(path),
            Self::Latency(_) => Ok(()),
        }
    }

    /// Reads of `block` bytes with up to `sessions` in flight; each point goes into the record.
    ///
    /// # Errors
    /// What storage refused; [`LabError::Cancelled`].
    pub fn measure(
        &self,
        series: &str,
        block: Bytes,
        sessions: u32,
        bench: &mut Bench,
        control: &mut Control<'_>,
    ) -> Result<Measured, LabError> {
        let in_flight = ladder(sessions);
        let rows = match self {
            Self::Latency(nanos) => {
                let rate = |n: u32| f64::from(n) / nanos.as_secs();
                let row = |n: &u32| point(series, *n, "stated", rate(*n), nanos.0 as f64, 0.0, 0.0);
                in_flight.iter().map(row).collect()
            }
            Self::Directory(parent) => {
                let workspace = bench.new_workspace(parent)?;
                let path = workspace.list("reads.dbf")?;
                let rows = read(&path, series, block, &in_flight, bench, control);
                bench.remove(&workspace)?;
                rows?
            }
        };
        for row in &rows {
            bench.writer.curve_point(row)?;
        }
        let points: Vec<(u32, f64)> = rows.iter().map(|row| (row.n, row.rate)).collect();
        let device = Device::measured(&points).ok_or_else(|| {
            LabError::Target(format!(
                "{}: no read was answered in {MEASURE}; is the device alive?",
                self.name()
            ))
        })?;
        let slices = MEASURE.as_secs() / SLICE.as_secs();
        let errors: Vec<f64> = rows.iter().map(|row| row.sd / row.rate.max(1e-9) / slices.sqrt()).collect();
        Ok(Measured { device, error: sample::mean(&errors) })
    }
}

/// 1, 2, 4 … and the number of sessions.
fn ladder(sessions: u32) -> Vec<u32> {
    let most = sessions.clamp(1, IN_FLIGHT_MAX);
    let mut all: Vec<u32> = (0..).map(|power| 1 << power).take_while(|n| *n < most).collect();
    all.push(most);
    all
}

fn read(
    path: &std::path::Path,
    series: &str,
    block: Bytes,
    in_flight: &[u32],
    bench: &Bench,
    control: &mut Control<'_>,
) -> Result<Vec<CurvePointRow>, LabError> {
    let parent = path.parent().unwrap_or(path);
    let free = io::prepare::free_space(parent)?;
    let bytes = FILE_BYTES.0.min(free / 2) >> 20 << 20;
    if bytes < FILE_MIN.0 {
        return Err(LabError::Target(format!(
            "{} has {} free; measuring its reads takes a file of {FILE_MIN} and leaves half of the space alone. Free some \
             space, or state the time of a read instead, such as 90us.",
            parent.display(),
            Bytes(free)
        )));
    }
    bench.step(control, &format!("{series} device: writing a file to read"));
    make_file(path, bytes, block.0 as u32, FILE_ID, bench.seed.part(1), control, &mut |_, _| {})?;
    let opened = |direct| Access { read: true, write: false, direct, dsync: false };
    let direct = File::open(path, opened(true)).and_then(|file| file.probe_direct().map(|()| file)).is_ok();
    if !direct {
        control.progress.say(&format!(
            "{}: no direct I/O here, so the page cache answers for the device",
            parent.display()
        ));
    }
    let api = [Api::IoUring, Api::Libaio].into_iter().find(|api| api.available().is_ok());
    let mut rows = Vec::new();
    for n in in_flight.iter().copied() {
        bench.step(control, &format!("{series} device: reads, {n} in flight"));
        let spec = LoadSpec {
            api: api.filter(|_| direct).unwrap_or(Api::Threads),
            access: opened(direct),
            paths: vec![path.to_owned()],
            threads: THREADS,
            in_flight: n,
            pattern: Pattern::RandomRead,
            block_bytes: block.0 as u32,
            span: 0..bytes,
            batch_min: 1,
            verify_every: 0,
            notes: None,
            file_id: FILE_ID,
            seed: bench.seed.part(u64::from(n)),
            interval: SLICE,
            pin_cores: false,
            settle: SETTLE,
            measure: MEASURE,
            lock_writes: false,
        };
        let measured = load::run(&spec, control.cancel)?;
        if let Some(error) = &measured.first_error {
            return Err(LabError::Target(format!("{}: a read failed: {error}", path.display())));
        }
        let seconds = (measured.ended - measured.started).as_secs().max(1e-9);
        let rates: Vec<f64> = measured.slices.iter().map(|s| s.ops as f64 / s.seconds.max(1e-9)).collect();
        let latency = measured.histogram.mean();
        let deviation = sample::variance(&rates).sqrt();
        rows.push(point(series, n, "measured", measured.ops as f64 / seconds, latency, deviation, seconds));
    }
    Ok(rows)
}

fn point(series: &str, n: u32, stage: &str, rate: f64, latency: f64, sd: f64, seconds: f64) -> CurvePointRow {
    let threads = n.min(THREADS);
    CurvePointRow {
        series: series.into(),
        n,
        threads,
        depth: n.div_ceil(threads),
        stage: stage.into(),
        round: 0,
        rate,
        latency_mean_ns: latency,
        sd,
        seconds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_directory_or_a_latency() {
        let place = |text: &str| text.parse::<Place>();
        assert_eq!(place("90us"), Ok(Place::Latency(Nanos(90_000))));
        assert_eq!(place("5ms"), Ok(Place::Latency(Nanos(5_000_000))));
        assert_eq!(place("0.1 ms"), Ok(Place::Latency(Nanos(100_000))));
        assert_eq!(place("/ssd"), Ok(Place::Directory("/ssd".into())));
        assert_eq!(place("90"), Ok(Place::Directory("90".into())));
        assert!(place("0us").is_err() && place("ms").is_err());
    }

    #[test]
    fn as_many_in_flight_as_there_are_sessions() {
        assert_eq!(ladder(10), [1, 2, 4, 8, 10]);
        assert_eq!(ladder(1), [1]);
        assert_eq!(ladder(1_000).last(), Some(&64));
    }
}
