//! From a record to what people read: a sentence first, then the evidence.
//!
//! [`model`] reads a record and computes everything that is said: figures, verdicts, the weighted mix, doubts. The three
//! outputs only lay it out: [`terminal`] (text, drawn curves), [`html`] (one page that needs nothing else), [`json()`]
//! (for programs). Pure: a record in, a string out. Nothing here reads a clock, writes a file or starts a run.
//!
//! The rule over all sentences: none claims more than its verdict. `unknown` says what it would take to know.
#![forbid(unsafe_code)]

mod chart;
mod json;
pub mod model;
mod page;
mod text;
mod words;

use model::Model;
pub use model::given::Given;
use record::Reader;

/// Why no report could be made.
#[derive(Debug)]
pub enum ReportError {
    /// The record cannot be read.
    Record(record::RecordError),
    /// No record was given.
    Nothing,
    /// No mix could be taken from what was given; the sentence says why.
    Mix(String),
}

impl std::fmt::Display for ReportError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Record(error) => write!(f, "{error}"),
            Self::Mix(why) => write!(f, "{why}"),
            Self::Nothing => {
                write!(f, "no run was given; name one, or `last` for the newest: redoubt report last")
            }
        }
    }
}

impl std::error::Error for ReportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Record(error) => Some(error),
            Self::Nothing | Self::Mix(_) => None,
        }
    }
}

impl From<record::RecordError> for ReportError {
    fn from(error: record::RecordError) -> Self {
        Self::Record(error)
    }
}

/// Every column that the terminal and the page print; `docs/results.md` explains each.
pub const COLUMNS: &[&str] = &[
    "figure",
    "interval",
    "latency",
    "mean",
    "p99",
    "in flight",
    "threads",
    "rate/s",
    "readings",
    "ratio",
    "verdict",
    "limited by",
    "CPU / read",
    "inside submit",
    "done at return",
    "in the device",
    "workers",
    "device reads / read",
    "−10 %",
    "+10 %",
    "rate",
    "unit",
    "AAS",
    "where DB time went",
    "DB time",
    "DB time / op",
    "top event",
    "round",
    "segment",
    "insert, s",
    "insert, MB/s",
    "cold, s",
    "warm, s",
    "count",
    "share",
    "per minute",
    "errors",
    "p50",
    "p99.9",
    "max",
    "event",
    "waits",
    "time, s",
    "% DB time",
    "% activity",
    "seconds",
    "statement",
    "server's word",
    "shown as",
    "grade",
    "whose",
    "% samples",
    "session",
    "process",
    "most in",
    "file",
    "type",
    "reads",
    "writes",
    "requests",
    "MB",
    "small",
    "large",
    "counter",
    "in all",
    "per second",
    "per transaction",
    "rank",
    "configuration",
    "to the best",
    "CV",
    "instead of",
    "settings",
    "moved",
    "share of the gain",
    "device",
    "reads/s",
    "writes/s",
    "MB/s read",
    "MB/s written",
    "busy",
    "users' sessions wait for",
    "variation",
    "over time",
    "flash cache",
    "reads served",
    "as fast",
    "pass",
    "against pass 1",
    "from flash",
    "into flash",
    "skipped",
    "devices",
    "call",
    "size",
    "batch",
    "submit",
    "IOPS",
    "by Little",
    "client CPU",
    "stolen",
    "node",
    "channels",
];

/// The report for a terminal of `width` columns (80 is enough; below 60 is taken as 60), with ANSI colours when `color`.
///
/// One record: sentence, table, drawn curves, doubts. Several: side by side, the first is the old one.
///
/// # Errors
/// [`ReportError::Record`] when a record cannot be read, [`ReportError::Nothing`] for an empty slice.
pub fn terminal(records: &[Reader], width: usize, color: bool) -> Result<String, ReportError> {
    Ok(Reports::read(records, None)?.terminal(width, color))
}

/// The report as one self-contained HTML page: no network, no script that it needs, light, dark and on paper.
///
/// # Errors
/// As [`terminal`].
pub fn html(records: &[Reader]) -> Result<String, ReportError> {
    Ok(Reports::read(records, None)?.html())
}

/// All runs of `folder` as a page that leads to each of them (`run/ID`), and to those that are chosen side by side (`compare?run=ID&run=ID`).
pub fn runs_html(folder: &str, runs: &[record::runs::RunSummary]) -> String {
    page::runs::page(folder, runs)
}

/// The report for programs: the same model as JSON. `docs/results.md` explains the fields.
///
/// # Errors
/// As [`terminal`].
pub fn json(records: &[Reader]) -> Result<String, ReportError> {
    Ok(Reports::read(records, None)?.json())
}

/// What a report is made of, read once: with the user's own mix in place of what the runs were given.
pub struct Reports(Vec<Model>);

impl Reports {
    /// Reads `records`.
    ///
    /// # Errors
    /// As [`terminal`].
    pub fn read(records: &[Reader], given: Option<&Given>) -> Result<Self, ReportError> {
        if records.is_empty() {
            return Err(ReportError::Nothing);
        }
        records.iter().map(|reader| Model::read_with(reader, given)).collect::<Result<_, _>>().map(Self)
    }

    /// As [`terminal`].
    pub fn terminal(&self, width: usize, color: bool) -> String {
        text::report(&self.0, width.clamp(60, 160), color)
    }

    /// As [`html`].
    pub fn html(&self) -> String {
        page::report(&self.0)
    }

    /// As [`json()`].
    pub fn json(&self) -> String {
        json::report(&self.0)
    }
}
