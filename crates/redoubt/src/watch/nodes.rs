//! NFS servers of a record as devices: what our own client sent to each of them, over time.
//!
//! A node is an address; its channels count since they were made, and have a row where something has changed.

use super::record::Reading;
use ::record::{DnfsChannelRow, DnfsMoveRow, Reader, RecordError};
use std::collections::{BTreeMap, HashMap};
use units::Nanos;

/// Time between two samples, nanoseconds.
const SAMPLE_NS: u64 = 1_000_000_000;

/// What was read so far.
#[derive(Default)]
pub struct Nodes {
    /// Numbers of the last rows that were read.
    channels_read: i64,
    moves_read: i64,
    /// By mount and channel: the node, what it counted, whether it was down.
    channels: HashMap<(u32, u32), (String, Reading, bool)>,
    /// By node: when, and what all of its channels counted.
    pub readings: BTreeMap<String, BTreeMap<u64, Reading>>,
    /// Instants at which something was sampled.
    pub times: Vec<u64>,
}

impl Nodes {
    /// Reads what is new; the result is what is to be told of it: when, and what.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn read(&mut self, reader: &Reader) -> Result<Vec<(u64, String)>, RecordError> {
        let mut news = Vec::new();
        let rows: Vec<(i64, DnfsChannelRow)> = reader.sampled(self.channels_read)?;
        for together in rows.chunk_by(|(_, a), (_, b)| a.t_ns == b.t_ns) {
            let t = together[0].1.t_ns;
            // Nothing has changed until a sample before this one.
            if self.times.last().is_some_and(|&last| t > last + SAMPLE_NS * 3 / 2) {
                self.sum(t - SAMPLE_NS);
            }
            for (id, row) in together {
                self.channels_read = *id;
                let down = row.state == "DOWN";
                let before =
                    self.channels.insert((row.mount, row.channel), (node(&row.address), reading(row), down));
                let was_down = before.is_some_and(|(_, _, down)| down);
                if down != was_down {
                    let state = if down { "DOWN" } else { "UP again" };
                    news.push((t, format!("NFS: channel {} to {} is {state}", row.channel, row.address)));
                }
            }
            self.sum(t);
        }
        let moves: Vec<(i64, DnfsMoveRow)> = reader.sampled(self.moves_read)?;
        for (id, row) in moves {
            self.moves_read = id;
            let (from, to) = (node(&row.old_nodes), node(&row.new_nodes));
            let waited = Nanos(row.stall_ns);
            news.push((
                row.t_ns,
                format!(
                    "NFS: {} moved from {from} to {to} ({}), requests waited {waited}",
                    row.path, row.cause
                ),
            ));
        }
        news.sort();
        Ok(news)
    }

    /// When the first sample began.
    pub fn zero(&self) -> Option<u64> {
        self.times.first().map(|t| t.saturating_sub(SAMPLE_NS))
    }

    /// All nodes as they are at `t`.
    fn sum(&mut self, t: u64) {
        let mut sums: BTreeMap<&str, Reading> = BTreeMap::new();
        for (node, reading, _) in self.channels.values() {
            let sum = sums.entry(node).or_default();
            sum.iter_mut().zip(reading).for_each(|(sum, more)| *sum += more);
        }
        for (node, sum) in sums {
            let readings = self.readings.entry(node.to_owned()).or_default();
            // What a node did before it was first seen began with nothing.
            if readings.is_empty() {
                readings.insert(t.saturating_sub(SAMPLE_NS), Reading::default());
            }
            readings.insert(t, sum);
        }
        self.times.push(t);
    }
}

/// The address without its port: all nodes of a cluster have the same.
fn node(address: &str) -> String {
    address.rsplit_once(':').map_or(address, |(ip, _)| ip).to_owned()
}

fn reading(row: &DnfsChannelRow) -> Reading {
    let (read_ms, write_ms) = (row.read_ns as f64 / 1e6, row.write_ns as f64 / 1e6);
    [
        row.reads_done as f64,
        row.writes_done as f64,
        row.read_bytes as f64,
        row.written_bytes as f64,
        read_ms + write_ms,
        read_ms,
        write_ms,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::record::{Experiment, Writer};

    #[test]
    fn channels_of_a_node_are_summed_and_idle_times_stay_idle() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.redoubt");
        let writer = Writer::create(&path, &Experiment::default()).expect("a record");
        let mut beside = writer.beside().expect("another connection");
        let row = |second: u64, channel, reads_done, state: &str| DnfsChannelRow {
            t_ns: second * SAMPLE_NS,
            channel,
            address: "192.0.2.1:2049".into(),
            state: state.into(),
            reads_done,
            read_ns: reads_done * 1_000_000,
            ..DnfsChannelRow::default()
        };
        beside.add(&[row(1, 0, 10, "UP"), row(1, 1, 20, "UP")]).expect("rows");
        let reader = Reader::open(&path).expect("it can be read");
        let mut nodes = Nodes::default();
        assert_eq!(nodes.read(&reader).expect("rows"), []);
        beside.add(&[row(9, 1, 50, "DOWN"), row(10, 1, 50, "UP")]).expect("rows");
        let news = nodes.read(&reader).expect("rows");
        assert_eq!(news.iter().map(|(t, _)| t / SAMPLE_NS).collect::<Vec<_>>(), [9, 10]);
        assert!(news[0].1.ends_with("is DOWN") && news[1].1.ends_with("is UP again"), "{news:?}");
        let reads: Vec<_> =
            nodes.readings["192.0.2.1"].iter().map(|(t, it)| (t / SAMPLE_NS, it[0], it[5])).collect();
        let expected = [(0, 0.0, 0.0), (1, 30.0, 30.0), (8, 30.0, 30.0), (9, 60.0, 60.0), (10, 60.0, 60.0)];
        assert_eq!(reads, expected);
        assert_eq!(nodes.read(&reader).expect("nothing new"), []);
    }
}
