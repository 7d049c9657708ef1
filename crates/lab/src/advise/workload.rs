//! What sessions did around each read that went to storage, as the record of their run has it.

use super::Around;
use super::place::Measured;
use crate::LabError;
use crate::database::interval::Interval;
use record::{Reader, StatisticRow, WaitEventRow};
use stats::mrc::gain::Workload;

/// Waits for reads that a flash cache could serve.
const READ_WAITS: [&str; 4] =
    ["db file sequential read", "db file scattered read", "db file parallel read", "read by other session"];

/// Classes of waits for another session. He reads: they become shorter as his reads do, and meanwhile there is a session less.
const CONTENTION: [&str; 2] = ["Application", "Concurrency"];

fn is_read(row: &WaitEventRow) -> bool {
    READ_WAITS.contains(&row.event.as_str())
}

fn is_contention(row: &WaitEventRow) -> bool {
    !is_read(row) && CONTENTION.contains(&row.wait_class.as_str())
}

/// Sessions and their time for each read request, without the read itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// Sessions at once that do not wait for each other.
    pub sessions: u32,
    /// Processors of this machine.
    pub cores: u32,
    /// Read requests per second of all sessions; none where nothing was measured.
    pub reads_per_second: Option<f64>,
    /// Processor time for each request, seconds.
    pub cpu_seconds: f64,
    /// Other waits and pauses for each request, seconds.
    pub other_seconds: f64,
}

/// Counts blocks that came from a flash cache.
const FLASH_HITS: &str = "physical read flash cache hits";

fn sum(rows: &[StatisticRow], class: &str, name: &str) -> f64 {
    rows.iter().filter(|row| row.class == class && row.name == name).map(|row| row.value).sum()
}

fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
}

impl Observed {
    /// Sessions that do nothing but read.
    pub fn of_trace(sessions: u32) -> Self {
        Self { sessions, cores: cores(), reads_per_second: None, cpu_seconds: 0.0, other_seconds: 0.0 }
    }

    /// From all measured phases of a run.
    ///
    /// # Errors
    /// A record that cannot be read, or has no phases; a run that had a flash cache already.
    pub fn of_run(reader: &Reader) -> Result<Self, LabError> {
        let phases = reader.phases()?;
        let rows = |rows: Vec<(i64, StatisticRow)>| rows.into_iter().map(|(_, row)| row).collect::<Vec<_>>();
        let statistics = rows(reader.of_phases()?);
        let waits: Vec<_> = reader.of_phases::<WaitEventRow>()?.into_iter().map(|(_, row)| row).collect();
        let refuse = |why: &str| LabError::Target(format!("{}: {why}", reader.path().display()));
        if sum(&statistics, "system", FLASH_HITS) > 0.0 {
            return Err(refuse(
                "this run had a flash cache already; repeat it without db_flash_cache_file, with --references",
            ));
        }
        let sessions = phases.iter().map(|(_, phase)| phase.threads).max().unwrap_or(0);
        let seconds = phases.iter().map(|(_, phase)| phase.seconds).sum();
        let whole = phases.iter().map(|(_, phase)| phase.seconds * f64::from(phase.threads)).sum();
        Self::of(sessions, seconds, whole, &statistics, &waits)
            .ok_or_else(|| refuse("nothing was measured in this run; did it end before its time?"))
    }

    /// Of a window in which so many sessions played. `None` when nothing was read.
    pub fn of_interval(interval: &Interval, sessions: u32, seconds: f64) -> Option<Self> {
        let whole = seconds * f64::from(sessions);
        Self::of(sessions, seconds, whole, &interval.statistic_rows(), &interval.wait_rows())
    }

    /// `whole`: time of all sessions together, seconds.
    fn of(
        sessions: u32,
        seconds: f64,
        whole: f64,
        statistics: &[StatisticRow],
        waits: &[WaitEventRow],
    ) -> Option<Self> {
        let requests = sum(statistics, "system", "physical read IO requests").min(sum(
            statistics,
            "system",
            "physical reads cache",
        ));
        if sessions == 0 || requests <= 0.0 {
            return None;
        }
        let cpu = sum(statistics, "time", "DB CPU") / 1e9;
        let spent = |wanted: &dyn Fn(&WaitEventRow) -> bool| -> f64 {
            waits.iter().filter(|row| row.foreground && wanted(row)).map(|row| row.time_ns as f64 / 1e9).sum()
        };
        let contention = spent(&is_contention);
        let waiting = spent(&|row| !is_read(row) && !is_contention(row));
        let pausing = (whole - sum(statistics, "time", "DB time") / 1e9).max(0.0);
        let at_work = f64::from(sessions) * (1.0 - contention / whole.max(1e-9));
        Some(Self {
            sessions: (at_work.round() as u32).clamp(1, sessions),
            cores: cores(),
            reads_per_second: Some(requests / seconds.max(1e-9)),
            cpu_seconds: cpu / requests,
            other_seconds: (waiting + pausing) / requests,
        })
    }

    /// Between two devices; the slow one is held to what the run showed.
    pub fn around(&self, slow: &Measured, fast: &Measured) -> Around {
        let workload = Workload {
            sessions: self.sessions as usize,
            cores: self.cores as usize,
            cpu_seconds: self.cpu_seconds,
            other_seconds: self.other_seconds,
        };
        let error = slow.error.hypot(fast.error);
        let (fast, measured) = (fast.device.clone(), &slow.device);
        let fitted = self.reads_per_second.map(|rate| workload.fitted(measured, rate));
        let unfitted = match (&fitted, self.reads_per_second) {
            (Some(None), Some(rate)) => Some(format!(
                "reads do not explain the run's {rate:.0} reads a second; the slow device is taken as it was measured"
            )),
            _ => None,
        };
        let fitted = fitted.flatten();
        let fit = fitted.as_ref().map(|fitted| measured.latency(1) / fitted.latency(1));
        Around { workload, slow: fitted.unwrap_or_else(|| measured.clone()), fast, error, fit, unfitted }
    }
}
