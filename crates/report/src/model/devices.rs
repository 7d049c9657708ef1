//! What each device beneath a configuration counted while it was measured: the slow one and the fast one apart.

use super::compare::Cell;
use super::evidence::Evidence;
use crate::words;
use record::CounterRow;
use std::collections::BTreeMap;

/// Below so many requests per second a device had nothing to do …
pub const IDLE: f64 = 5.0;
/// … and the slow and the fast one, of which it is worth knowing that they idle, below so many.
const IDLE_NAMED: f64 = 0.5;

/// One device, or the devices beneath one place together, over some windows.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceUse {
    /// For people: `slow (throttled:hdd-7200)`, `fast (here)`, or the place as it was typed.
    pub name: String,
    /// Reads per second.
    pub reads: f64,
    /// Writes per second; the kernel counts a flush as one.
    pub writes: f64,
    /// 10⁶ bytes read per second.
    pub read_megabytes: f64,
    /// 10⁶ bytes written per second.
    pub write_megabytes: f64,
    /// How busy it was, 0–1.
    pub busy: Option<Busy>,
}

/// How busy a device was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Busy {
    /// 0–1.
    pub share: f64,
    /// Of its cap, by what comes nearest to it: requests or bytes, reads or writes. Else of the time, as the kernel counted it.
    pub of_cap: bool,
}

impl DeviceUse {
    /// `slow` of `slow (throttled:hdd-7200)`.
    pub fn short(&self) -> &str {
        self.name.split_once(" (").map_or(&self.name, |(short, _)| short)
    }

    /// Whether anything went on there.
    pub fn used(&self) -> bool {
        let least = if self.short() == self.name { IDLE } else { IDLE_NAMED };
        self.reads + self.writes >= least
    }
}

impl Cell {
    /// The devices that had something to do, the slow one first: where the trouble is.
    pub fn used_devices(&self) -> Vec<&DeviceUse> {
        let mut used: Vec<&DeviceUse> = self.devices.iter().filter(|d| d.used()).collect();
        used.sort_by_key(|d| d.short() != "slow");
        used
    }
}

/// Highest rates that are let through, of reads and of writes each; of writes apart where they have rates of their own.
#[derive(Clone, Copy, Default)]
struct Cap {
    iops: Option<f64>,
    bytes_per_second: Option<f64>,
    write_iops: Option<f64>,
    write_bytes_per_second: Option<f64>,
}

/// Growth of the counters of one place.
#[derive(Default)]
struct Grown {
    seconds: f64,
    metrics: BTreeMap<String, f64>,
}

/// The devices that were counted in `phases`, in the order of their names: busy, then idle ones.
pub fn of(evidence: &Evidence, phases: &[i64]) -> Vec<DeviceUse> {
    let mut places: BTreeMap<&str, Grown> = BTreeMap::new();
    for rows in phases.iter().filter_map(|id| evidence.places.get(id)) {
        let mut ends: BTreeMap<(&str, &str), (&CounterRow, &CounterRow)> = BTreeMap::new();
        for row in rows {
            let (first, last) = ends.entry((&row.object, &row.metric)).or_insert((row, row));
            if row.t_ns < first.t_ns {
                *first = row;
            }
            if row.t_ns > last.t_ns {
                *last = row;
            }
        }
        for ((place, metric), (first, last)) in ends {
            let grown = places.entry(place).or_default();
            *grown.metrics.entry(metric.to_owned()).or_default() += (last.value - first.value).max(0.0);
            if metric == "reads" {
                grown.seconds += (last.t_ns - first.t_ns) as f64 / 1e9;
            }
        }
    }
    places.iter().map(|(place, grown)| grown.used(evidence, place)).collect()
}

impl Grown {
    fn used(&self, evidence: &Evidence, place: &str) -> DeviceUse {
        let rate = |metric: &str| self.metrics.get(metric).copied().unwrap_or(0.0) / self.seconds.max(1e-9);
        let cap = cap(evidence, place);
        let shares = [
            ("reads", cap.iops),
            ("writes", cap.write_iops.or(cap.iops)),
            ("read_bytes", cap.bytes_per_second),
            ("write_bytes", cap.write_bytes_per_second.or(cap.bytes_per_second)),
        ];
        let of_cap =
            shares.iter().filter_map(|(metric, most)| Some(rate(metric) / (*most)?)).reduce(f64::max);
        let of_time = self.metrics.contains_key("busy_ms").then(|| rate("busy_ms") / 1e3);
        let share = of_cap.or(of_time).map(|share| Busy { share: share.min(1.0), of_cap: of_cap.is_some() });
        DeviceUse {
            name: name(evidence, place),
            reads: rate("reads"),
            writes: rate("writes"),
            read_megabytes: rate("read_bytes") / 1e6,
            write_megabytes: rate("write_bytes") / 1e6,
            busy: share,
        }
    }
}

/// The cap of a place, as it was noted for the first visit that had it.
fn cap(evidence: &Evidence, place: &str) -> Cap {
    let noted = evidence.events.iter().find(|e| e.kind == "place" && e.json["place"] == place);
    noted.map_or_else(Cap::default, |event| Cap {
        iops: event.json["iops_max"].as_f64(),
        bytes_per_second: event.json["bytes_per_second_max"].as_f64(),
        write_iops: event.json["write_iops_max"].as_f64(),
        write_bytes_per_second: event.json["write_bytes_per_second_max"].as_f64(),
    })
}

/// What the plan calls it.
fn name(evidence: &Evidence, place: &str) -> String {
    let called = ["slow", "fast"].into_iter().find(|word| evidence.plan[*word] == place);
    called.map_or_else(|| place.to_owned(), |word| format!("{word} ({place})"))
}

impl Busy {
    /// `97 % of its cap`, `busy 12 % of the time`.
    pub fn said(self) -> String {
        match self.of_cap {
            true => format!("{} of its cap", words::percent(self.share)),
            false => format!("busy {} of the time", words::percent(self.share)),
        }
    }
}
