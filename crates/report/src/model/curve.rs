//! Load → latency curves of a calibration, with knee, maximum and collapse.

use super::compare::geometric_mean;
use super::evidence::Evidence;
use crate::chart::extent;
use crate::words;
use record::json::Value;

/// One curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// `random read 8 KiB`.
    pub series: String,
    /// One point for each number of requests in flight, ascending.
    pub points: Vec<Point>,
    /// Requests in flight at the confirmed maximum.
    pub best: Option<u32>,
    /// Smallest number with 97 % of it.
    pub knee: Option<u32>,
    /// Xmax / X(1): as how many parallel servers the device acts.
    pub saturation: Option<f64>,
    /// Most rate for its latency: largest X²/N.
    pub power: Option<u32>,
    /// The search stopped at its bracket: the maximum may be higher.
    pub lower_bound: bool,
    /// Why the level cannot be trusted, where the environment moved.
    pub unstable: Option<String>,
    /// Points far beyond the knee, visited on purpose.
    pub beyond: Vec<Point>,
    /// How those requests were issued.
    pub beyond_name: Option<String>,
    /// What happens there.
    pub collapse: Option<Collapse>,
}

/// All readings at one number of requests in flight.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Requests in flight.
    pub n: u32,
    /// Threads that kept them there.
    pub threads: u32,
    /// Per second, geometric mean of the readings.
    pub rate: f64,
    /// Mean latency, nanoseconds, geometric mean of the readings.
    pub latency_ns: f64,
    /// Lowest and highest reading, per second.
    pub spread: (f64, f64),
    /// How many readings.
    pub readings: usize,
    /// Stages in which it was visited.
    pub stages: Vec<String>,
}

/// Less for more.
#[derive(Clone, Debug, PartialEq)]
pub struct Collapse {
    /// Requests in flight.
    pub n: u32,
    /// Threads, where each kept one request in flight.
    pub threads: Option<u32>,
    /// Per second there.
    pub rate: f64,
    /// Of the maximum.
    pub share_of_max: f64,
    /// Below half of the maximum; a milder loss otherwise.
    pub collapse: bool,
    /// What happened, in a sentence.
    pub sentence: String,
}

/// Stage of points that are visited on purpose where nobody should work.
const BEYOND: &str = "beyond";
/// Stage of the probe that picks API and threads.
const PROBE: &str = "probe";

impl Curve {
    /// All curves of the record, in order of appearance; what lies beyond joins the first.
    pub fn read_all(evidence: &Evidence) -> Vec<Self> {
        let mut series: Vec<&str> = Vec::new();
        for point in evidence.curve_points.iter().filter(|p| p.stage != PROBE) {
            if !series.contains(&point.series.as_str()) {
                series.push(&point.series);
            }
        }
        let only_beyond =
            |name: &&str| evidence.curve_points.iter().all(|p| p.series != *name || p.stage == BEYOND);
        let (beyond, main): (Vec<&str>, Vec<&str>) = series.into_iter().partition(only_beyond);
        let mut curves: Vec<Self> = main.iter().map(|name| Self::read(evidence, name)).collect();
        match curves.first_mut() {
            Some(first) => {
                first.beyond = beyond.iter().flat_map(|name| points(evidence, name)).collect();
                first.beyond_name = beyond.first().map(|name| (*name).to_owned());
                first.collapse = collapse(evidence);
            }
            None => curves.extend(beyond.iter().map(|name| Self::read(evidence, name))),
        }
        curves
    }

    fn read(evidence: &Evidence, series: &str) -> Self {
        let points = points(evidence, series);
        let knee =
            evidence.events.iter().rfind(|e| e.kind == "knee" && e.json["series"].as_str() == Some(series));
        let told = |key: &str| knee.and_then(|e| e.json[key].as_u64()).map(|n| n as u32);
        let mut rows = evidence.curve_points.iter().filter(|p| p.series == series);
        let confirmed = rows.rfind(|p| p.stage == "confirm").map(|p| p.n);
        let top = points.iter().max_by(|a, b| a.rate.total_cmp(&b.rate)).map(|p| p.n);
        Self {
            series: series.to_owned(),
            best: told("n_best").or(confirmed).or(top),
            knee: told("n_knee"),
            saturation: knee.and_then(|e| e.json["n_saturation"].as_f64()),
            power: told("n_power"),
            lower_bound: knee.and_then(|e| e.json["lower_bound_only"].as_bool()).unwrap_or(false),
            unstable: knee.and_then(|e| e.json["unstable"].as_str()).map(str::to_owned),
            beyond: Vec::new(),
            beyond_name: None,
            collapse: None,
            points,
        }
    }

    /// The point at `n`.
    pub fn at(&self, n: u32) -> Option<&Point> {
        self.points.iter().find(|p| p.n == n)
    }

    /// The rate at `n`: measured, or on the straight line in log-log between its neighbours.
    pub fn rate_at(&self, n: u32) -> Option<f64> {
        if let Some(exact) = self.at(n) {
            return Some(exact.rate);
        }
        let pair = self.points.windows(2).find(|pair| pair[0].n < n && pair[1].n > n)?;
        let ratio = |a: u32, b: u32| (f64::from(a) / f64::from(b)).ln();
        let share = ratio(n, pair[0].n) / ratio(pair[1].n, pair[0].n);
        Some(pair[0].rate * (pair[1].rate / pair[0].rate).powf(share))
    }
}

/// All readings of a series, one point for each number of requests in flight.
fn points(evidence: &Evidence, series: &str) -> Vec<Point> {
    let rows =
        || evidence.curve_points.iter().filter(|p| p.series == series && p.rate > 0.0 && p.stage != PROBE);
    let mut numbers: Vec<u32> = rows().map(|p| p.n).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let point = |n: u32| {
        let at: Vec<_> = rows().filter(|p| p.n == n).collect();
        let rates: Vec<f64> = at.iter().map(|p| p.rate).collect();
        let latencies: Vec<f64> = at.iter().map(|p| p.latency_mean_ns).filter(|v| *v > 0.0).collect();
        let mut stages: Vec<String> = at.iter().map(|p| p.stage.clone()).collect();
        stages.dedup();
        Point {
            n,
            threads: at.iter().map(|p| p.threads).max().unwrap_or(n),
            rate: geometric_mean(&rates),
            latency_ns: if latencies.is_empty() { f64::NAN } else { geometric_mean(&latencies) },
            spread: extent(rates.iter().copied()).unwrap_or((0.0, 0.0)),
            readings: at.len(),
            stages,
        }
    };
    numbers.into_iter().map(point).collect()
}

/// The event `collapse`, or the milder `loss_beyond_knee`.
fn collapse(evidence: &Evidence) -> Option<Collapse> {
    let kinds = ["collapse", "loss_beyond_knee"];
    let event = evidence.events.iter().rfind(|e| kinds.contains(&e.kind.as_str()))?;
    let json = &event.json;
    let number = |key: &str| json[key].as_f64();
    let threads = json["threads"].as_u64().map(|n| n as u32);
    let (n, rate, share_of_max) = (json["n"].as_u64()? as u32, number("rate")?, number("share_of_max")?);
    let collapse = event.kind == "collapse";
    let sentence = json["sentence"]
        .as_str()
        .map_or_else(|| sentence(json, n, threads, rate, share_of_max), str::to_owned);
    Some(Collapse { n, threads, rate, share_of_max, collapse, sentence })
}

/// What was seen, then what the machine looked like meanwhile.
fn sentence(json: &Value, n: u32, threads: Option<u32>, rate: f64, share: f64) -> String {
    let cores = json["cores"].as_u64();
    let who = match (threads, cores) {
        (Some(threads), Some(cores)) => {
            format!("With {threads} threads on {}", words::count(cores as usize, "core"))
        }
        (Some(threads), None) => format!("With {threads} threads"),
        (None, _) => format!("With {n} requests in flight"),
    };
    let mut meanwhile = Vec::new();
    if let Some(load) = json["load_average"].as_f64() {
        meanwhile.push(format!("load average {load:.0}"));
    }
    if let Some(busy) = json["cpu_busy_share"].as_f64() {
        meanwhile.push(format!("CPU {} busy", words::percent(busy)));
    }
    let meanwhile = if meanwhile.is_empty() { String::new() } else { format!(" ({})", meanwhile.join(", ")) };
    let fall = if share < 0.5 { "collapses" } else { "falls" };
    format!(
        "{who} the rate {fall} to {} a second, {} of the maximum{meanwhile}.",
        words::amount(rate),
        words::percent(share)
    )
}
