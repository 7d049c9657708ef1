//! Advice on a flash cache: sizes, what they would serve, and what that would be worth.

use super::evidence::Evidence;
use super::sentence::Answer;
use crate::words;
use record::json::Value;
use units::Bytes;

/// An estimate with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// One size.
#[derive(Clone, Debug, PartialEq)]
pub struct Size {
    /// Of the flash cache.
    pub bytes: u64,
    /// Share of the buffer cache's misses that it would serve, 0 to 1.
    pub hits: Estimate,
    /// The workload's speed over that without it.
    pub speed_up: Option<Estimate>,
}

/// One of the two devices.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// Where it is, or what was stated of it.
    pub name: String,
    /// Time of a read alone, nanoseconds.
    pub latency_ns: f64,
    /// With all sessions reading.
    pub loaded_ns: f64,
}

/// What a flash cache would be worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// `run order-entry`, or the file of a trace.
    pub source: String,
    /// `db_flash_cache_policy`.
    pub policy: String,
    /// Smallest first.
    pub sizes: Vec<Size>,
    /// The one to name: the smallest that brings nine tenths of what the best brings; none when none serves anything.
    pub choice: Option<usize>,
    /// From here on nothing more is gained.
    pub enough: Option<usize>,
    /// An LRU cache at many sizes: bytes and hit ratio.
    pub lru: Vec<(f64, f64)>,
    /// Where the data files are, and where the flash cache would be.
    pub devices: Option<(Device, Device)>,
    /// Why the slow device was not held to the run.
    pub unfitted: Option<String>,
    /// Sessions.
    pub sessions: u64,
    /// Bytes of the buffer cache above; 0 where none is known.
    pub cache_bytes: u64,
    /// Reads that were looked at, and the share of blocks that was kept.
    pub reads: f64,
    /// Share of blocks that was kept.
    pub sampled: f64,
    /// Bytes of different blocks that were read.
    pub distinct_bytes: f64,
}

/// A flash cache below this hit ratio is not worth its writes.
const HITS_MIN: f64 = 0.02;
/// Within a point of the best, nothing more is gained.
const NOTHING_MORE: f64 = 0.01;
/// The size that is named brings this much of what the best brings.
const MOST: f64 = 0.9;

impl Advice {
    /// Of a record of `advise`.
    pub fn read(evidence: &Evidence) -> Option<Self> {
        let plan = &evidence.plan;
        if evidence.experiment.kind != "advise" || plan.is_null() {
            return None;
        }
        let sizes = sizes(evidence);
        let number = |name: &str| plan[name].as_f64().unwrap_or(f64::NAN);
        let text = |name: &str| plan[name].as_str().unwrap_or_default().to_owned();
        let best = sizes.iter().map(|size| size.hits.value).fold(0.0, f64::max);
        let first = |least: f64| sizes.iter().position(|size| size.hits.value >= least);
        let enough = first(best - NOTHING_MORE).filter(|_| best >= HITS_MIN);
        let choice = first(best * MOST).filter(|_| best >= HITS_MIN);
        let event =
            |kind: &str| evidence.events.iter().rfind(|event| event.kind == kind).map(|event| &event.json);
        let point = |point: &Value| Some((point[0].as_f64()?, point[1].as_f64()?));
        let lru = event("lru_curve").and_then(|json| json["points"].as_array());
        let around = event("workload");
        let device = |which: &str| {
            let around = around?;
            let ns = |name: String| around[name.as_str()].as_f64().map(|seconds| seconds * 1e9);
            Some(Device {
                name: text(which),
                latency_ns: ns(format!("{which}_read_seconds"))?,
                loaded_ns: ns(format!("{which}_read_seconds_loaded"))?,
            })
        };
        Some(Self {
            source: text("source"),
            policy: text("policy"),
            choice,
            enough,
            lru: lru.into_iter().flatten().filter_map(point).collect(),
            devices: device("slow").zip(device("fast")),
            unfitted: around.and_then(|json| json["unfitted"].as_str()).map(str::to_owned),
            sessions: plan["sessions"].as_u64().unwrap_or(0),
            cache_bytes: plan["cache_bytes"].as_u64().unwrap_or(0),
            reads: number("reads"),
            sampled: number("sampled_share"),
            distinct_bytes: number("read_bytes_distinct"),
            sizes,
        })
    }
}

fn sizes(evidence: &Evidence) -> Vec<Size> {
    let of = |metric: &str, bytes: u64| {
        let name = format!("{metric}_{bytes}");
        let row = evidence.estimates.iter().find(|row| row.metric == name)?;
        Some(Estimate {
            value: row.value,
            low: row.low.unwrap_or(row.value),
            high: row.high.unwrap_or(row.value),
        })
    };
    let mut all: Vec<u64> = evidence
        .estimates
        .iter()
        .filter_map(|row| row.metric.strip_prefix("flash_hit_ratio_")?.parse().ok())
        .collect();
    all.sort_unstable();
    all.dedup();
    let size = |bytes: u64| {
        Some(Size { bytes, hits: of("flash_hit_ratio", bytes)?, speed_up: of("flash_speed_up", bytes) })
    };
    all.into_iter().filter_map(size).collect()
}

/// `71 % [68–74]`.
pub fn share(estimate: &Estimate) -> String {
    let number = |share: f64| format!("{:.0}", share * 100.0);
    format!(
        "{} [{}–{}]",
        words::keep(&format!("{} %", number(estimate.value))),
        number(estimate.low),
        number(estimate.high)
    )
}

/// `2.1 × [1.8–2.4]`.
pub fn times(estimate: &Estimate) -> String {
    format!(
        "{} {}",
        words::keep(&format!("{} ×", words::ratio(estimate.value))),
        words::ratio_interval(estimate.low, estimate.high)
    )
}

/// A size as it is said.
pub fn size(bytes: u64) -> String {
    words::keep(&Bytes(bytes).to_string())
}

/// What is said first.
pub fn answer(advice: &Advice) -> Answer {
    let reads = match advice.cache_bytes {
        0 => "reads".to_owned(),
        bytes => format!("reads that a buffer cache of {} leaves", size(bytes)),
    };
    let Some(choice) = advice.choice.and_then(|choice| advice.sizes.get(choice)) else {
        let Some(largest) = advice.sizes.last() else {
            return Answer {
                headline: "This record holds no prediction: the run ended before it.".into(),
                more: Vec::new(),
            };
        };
        return Answer {
            headline: format!(
                "A flash cache would not help: even one of {} would serve {} of the {reads}.",
                size(largest.bytes),
                share(&largest.hits)
            ),
            more: basis(advice),
        };
    };
    let faster = choice.speed_up.as_ref().map_or_else(String::new, |speed_up| {
        if speed_up.low <= 1.0 && speed_up.value < 1.02 {
            " and not make this faster".to_owned()
        } else {
            format!(" and make this {} as fast", times(speed_up))
        }
    });
    let mut headline = format!(
        "A flash cache of {} would serve {} of the {reads}{faster}",
        size(choice.bytes),
        share(&choice.hits)
    );
    if let Some(enough) = advice.enough.and_then(|index| advice.sizes.get(index)) {
        let last = advice.sizes.last().is_some_and(|last| last.bytes == enough.bytes);
        if !last {
            headline.push_str(&format!("; beyond {} nothing more is gained", size(enough.bytes)));
        }
    }
    headline.push('.');
    let mut more = Vec::new();
    if let Some((slow, fast)) = &advice.devices {
        let place = |device: &Device| {
            let loaded = if device.loaded_ns > device.latency_ns * 1.05 {
                format!("; {} with all sessions reading", words::latency(device.loaded_ns))
            } else {
                String::new()
            };
            format!("({}{loaded})", device.name)
        };
        more.push(format!(
            "A read takes {} where the data files are {} and {} where the flash cache would be {}.",
            words::latency(slow.latency_ns),
            place(slow),
            words::latency(fast.latency_ns),
            place(fast)
        ));
    } else {
        more.push(
            "How much faster that is depends on the devices: add --fast DIR, or what its data sheet says of a read, --fast 90us."
                .into(),
        );
    }
    more.extend(basis(advice));
    Answer { headline, more }
}

/// On what it rests.
fn basis(advice: &Advice) -> Vec<String> {
    let sampled = if advice.sampled < 1.0 {
        format!(" ({} of the blocks were followed)", words::percent(advice.sampled))
    } else {
        String::new()
    };
    let mut more = vec![format!(
        "From {} reads of {}{sampled}: the first half fills the simulated cache, the second is counted; {} of different blocks in all, policy {}.",
        words::amount(advice.reads),
        advice.source,
        size(advice.distinct_bytes as u64 >> 13 << 13),
        advice.policy
    )];
    more.extend(advice.unfitted.as_ref().map(|why| format!("{}.", words::capital(why))));
    more
}
