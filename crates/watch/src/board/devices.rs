//! Block devices on the same axis as the activity above them.

use super::columns::{Column, add_work};
use crate::history::{History, Work};
use units::Nanos;

/// A device over time.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceBoard {
    /// Its name.
    pub name: String,
    /// One for each column: `(requests/s, MB/s, mean latency in ms, in flight)`; none: not seen.
    pub columns: Vec<Option<Rates>>,
    /// Over the brush.
    pub brush: Rates,
}

/// Rates of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Reads per second.
    pub reads: f32,
    /// Writes per second.
    pub writes: f32,
    /// MB/s, both.
    pub megabytes: f32,
    /// Mean time of a read, queue included, ms; none without reads.
    pub read_ms: Option<f32>,
    /// Mean time of a write.
    pub write_ms: Option<f32>,
    /// Mean requests in flight.
    pub in_flight: f32,
    /// Mean time of a request of either kind, by Little's law, where the two are not told apart.
    pub mean_ms: Option<f32>,
}

impl Rates {
    fn of(work: &Work, seconds: f32) -> Self {
        let per = |sum: f32| if seconds > 0.0 { sum / seconds } else { 0.0 };
        let ms = |time: f32, count: f32| (count > 0.0).then(|| time / count * 1e3);
        Self {
            reads: per(work.reads),
            writes: per(work.writes),
            megabytes: per(work.megabytes),
            read_ms: ms(work.read_seconds, work.reads),
            write_ms: ms(work.write_seconds, work.writes),
            in_flight: per(work.in_flight_seconds),
            mean_ms: ms(work.in_flight_seconds, work.reads + work.writes)
                .filter(|_| work.read_seconds + work.write_seconds <= 0.0),
        }
    }

    /// The slower of the two.
    pub fn worst_ms(&self) -> Option<f32> {
        self.mean_ms.or_else(|| self.read_ms.into_iter().chain(self.write_ms).reduce(f32::max))
    }
}

/// All of them, the busiest first.
pub fn devices(history: &History, columns: &[&Column], brush: (Nanos, Nanos)) -> Vec<DeviceBoard> {
    let mut brushed = Vec::new();
    for span in history.between(brush.0, brush.1) {
        let share = span.share(brush.0, brush.1);
        for (device, work) in &span.devices {
            add_work(&mut brushed, *device, work, span.seen, share);
        }
    }
    let rates = |sums: &[(u16, Work, f32)], number: u16| {
        let (_, work, seen) = sums.iter().find(|(device, ..)| *device == number)?;
        (*seen > 0.0).then(|| Rates::of(work, *seen))
    };
    let board = |(number, name): (u16, &String)| DeviceBoard {
        name: name.clone(),
        columns: columns.iter().map(|column| rates(&column.devices, number)).collect(),
        brush: rates(&brushed, number).unwrap_or_default(),
    };
    let mut all: Vec<DeviceBoard> = (0..).zip(history.devices()).map(board).collect();
    // By what they did in the whole window: the order stays while the brush moves.
    let busy =
        |device: &DeviceBoard| device.columns.iter().flatten().map(|r| r.reads + r.writes).sum::<f32>();
    all.sort_by(|a, b| busy(b).total_cmp(&busy(a)));
    all
}
