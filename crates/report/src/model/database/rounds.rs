//! What is repeated. Growth, round by round: the table doubles itself and is counted, once cold and then from the caches;
//! and the passes of a scan.

use crate::model::evidence::Evidence;
use record::json::Value;

/// All rounds of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Rounds {
    /// In order.
    pub rounds: Vec<Round>,
}

/// One round.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// From 1.
    pub number: u64,
    /// Insert and commit, seconds.
    pub insert_s: f64,
    /// Its rate, MB/s.
    pub insert_mb_s: Option<f64>,
    /// First count after the caches were emptied, seconds.
    pub cold_s: Option<f64>,
    /// The counts after it, seconds each.
    pub warm_s: Vec<f64>,
    /// Size of the segment after the insert.
    pub segment_bytes: Option<f64>,
}

impl Round {
    /// Mean of the warm counts, seconds.
    pub fn warm_mean_s(&self) -> Option<f64> {
        (!self.warm_s.is_empty()).then(|| self.warm_s.iter().sum::<f64>() / self.warm_s.len() as f64)
    }

    /// The segment read in `seconds`, MB/s.
    pub fn scan_mb_s(&self, seconds: Option<f64>) -> Option<f64> {
        Some(self.segment_bytes? / 1e6 / seconds.filter(|s| *s > 0.0)?)
    }
}

impl Rounds {
    /// From the events of kind `round`; none when there are none.
    pub fn read(evidence: &Evidence) -> Option<Self> {
        let events = evidence.events.iter().filter(|event| event.kind == "round");
        let rounds: Vec<Round> = events.filter_map(|event| round(&event.json)).collect();
        (!rounds.is_empty()).then_some(Self { rounds })
    }

    /// Rate of each insert, MB/s.
    pub fn insert_rates(&self) -> Vec<f64> {
        self.rounds.iter().filter_map(|r| r.insert_mb_s).collect()
    }

    /// MB/s at which `seconds` of counts, one over each round's table, went through them.
    pub fn scan_mb_s(&self, seconds: f64) -> f64 {
        self.rounds.iter().filter_map(|r| r.segment_bytes).sum::<f64>() / 1e6 / seconds
    }

    /// Seconds of all inserts.
    pub fn insert_s(&self) -> f64 {
        self.rounds.iter().map(|r| r.insert_s).sum()
    }

    /// Seconds of all cold counts.
    pub fn cold_s(&self) -> f64 {
        self.rounds.iter().filter_map(|r| r.cold_s).sum()
    }

    /// Seconds of all warm counts, each round's mean: what one warm pass over all rounds takes.
    pub fn warm_s(&self) -> f64 {
        self.rounds.iter().filter_map(Round::warm_mean_s).sum()
    }

    /// Size of the table at the end.
    pub fn bytes(&self) -> Option<f64> {
        self.rounds.last().and_then(|r| r.segment_bytes)
    }
}

/// Rates of the passes of a scan, MB/s, from the events of kind `scan`: the workload `scan WAY` is the way's.
pub fn passes(evidence: &Evidence, workload: &str) -> Vec<f64> {
    let way = workload.strip_prefix("scan ").unwrap_or_default();
    let events = evidence.events.iter().filter(|e| e.kind == "scan" && e.json["way"].as_str() == Some(way));
    events.filter_map(|e| Some(e.json["bytes"].as_f64()? / 1e6 / e.json["seconds"].as_f64()?)).collect()
}

fn round(json: &Value) -> Option<Round> {
    Some(Round {
        number: json["round"].as_u64()?,
        insert_s: json["insert_s"].as_f64()?,
        insert_mb_s: json["insert_mb_s"].as_f64(),
        cold_s: json["cold_s"].as_f64(),
        warm_s: json["warm_s"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect(),
        segment_bytes: json["segment_bytes"].as_f64(),
    })
}
