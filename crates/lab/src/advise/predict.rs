//! Hit ratio and speed-up of each size, as estimates of the record; the curve of an LRU cache beside them.

use super::Around;
use super::doubts::checks;
use super::references::Input;
use crate::LabError;
use crate::bench::Bench;
use record::EstimateRow;
use record::json::json;
use stats::interval::Interval;
use stats::mrc::miniature::{Policy, flash_hit_ratio};
use stats::mrc::{Curve, Event, References, Shards};
use units::Bytes;

/// The first half of the references fills the cache, the second is counted.
pub const WARM: f64 = 0.5;
/// Points of the drawn curve.
const DRAWN: usize = 64;
/// The smallest flash cache that is looked at.
const SIZE_MIN: u64 = 1 << 20;

/// What a flash cache of one size would do.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Its size.
    pub bytes: Bytes,
    /// Share of the buffer cache's misses that it serves.
    pub hits: Interval,
    /// The workload's speed with it over without; none where no device is known.
    pub speed_up: Option<Interval>,
}

/// Sizes around the bytes that were read: from a thirty-second of them to all.
pub fn sizes(references: &References, block: Bytes) -> Vec<Bytes> {
    let all = ((references.blocks() * block.0 as f64) as u64).next_power_of_two();
    let mut sizes: Vec<u64> = [1, 2, 4, 8, 12, 16, 24, 32].map(|part| (all / 32 * part).max(SIZE_MIN)).into();
    sizes.dedup();
    sizes.into_iter().map(Bytes).collect()
}

/// Each size by miniature simulation, and by the network where `around` tells what is around it.
pub fn points(
    references: &References,
    policy: Policy,
    block: Bytes,
    sizes: &[Bytes],
    around: Option<&Around>,
) -> Vec<Point> {
    let point = |bytes: &Bytes| {
        let hits = flash_hit_ratio(references, policy, bytes.0 / block.0, WARM)?;
        let speed_up = around.map(|a| a.workload.speed_up(&a.slow, &a.fast, &hits, a.error));
        Some(Point { bytes: *bytes, hits, speed_up })
    };
    sizes.iter().filter_map(point).collect()
}

/// An LRU victim cache at all sizes, counted as [`points`] counts.
fn curve(references: &References) -> Curve {
    let mut shards = Shards::fixed_rate(references.seed, references.rate);
    let counted_from = (references.len() as f64 * WARM) as usize;
    let mut reads = 0;
    for (index, reference) in references.iter().enumerate() {
        if index == counted_from {
            shards.count_from_here();
        }
        reads += u64::from(index >= counted_from && reference.event == Event::Read);
        shards.victim(reference);
    }
    let all = reads as f64 / references.overweight() / references.rate;
    shards.curve(Some(all.round() as u64))
}

/// What is to be predicted.
pub(super) struct Asked<'a> {
    pub input: &'a Input,
    pub policy: Policy,
    pub sizes: &'a [Bytes],
}

impl Asked<'_> {
    /// Computes and writes down.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn store(&self, around: Option<&Around>, bench: &mut Bench) -> Result<(), LabError> {
        let (references, block) = (&self.input.references, self.input.block);
        for point in points(references, self.policy, block, self.sizes, around) {
            let bytes = point.bytes;
            let row = |metric: &str, label: &str, unit: &str, interval: &Interval| EstimateRow {
                metric: format!("{metric}_{}", bytes.0),
                label: format!("{label} of {bytes}"),
                value: interval.value,
                low: Some(interval.low),
                high: Some(interval.high),
                level: Some(interval.level),
                n: interval.n as u64,
                unit: unit.into(),
                ..EstimateRow::default()
            };
            bench.writer.estimate(&row(
                "flash_hit_ratio",
                "hit ratio, flash cache",
                "of reads",
                &point.hits,
            ))?;
            if let Some(speed_up) = &point.speed_up {
                bench.writer.estimate(&row("flash_speed_up", "speed-up, flash cache", "times", speed_up))?;
            }
        }
        for check in checks(references, around) {
            bench.writer.check(&check)?;
        }
        let (curve, largest) = (curve(references), self.sizes.iter().map(|s| s.0).max().unwrap_or(SIZE_MIN));
        let smallest = self.sizes.iter().map(|s| s.0).min().unwrap_or(SIZE_MIN);
        let ratio = (largest as f64 / smallest as f64).powf(1.0 / (DRAWN - 1) as f64);
        let drawn: Vec<_> = (0..DRAWN)
            .map(|step| smallest as f64 * ratio.powi(step as i32))
            .map(|bytes| json!([bytes.round(), curve.hit_ratio(bytes as u64 / block.0)]))
            .collect();
        bench.writer.event("lru_curve", &json!({ "points": drawn }))?;
        Ok(())
    }
}
