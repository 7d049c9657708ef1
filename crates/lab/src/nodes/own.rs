//! A cluster of our own, for whoever has no storage with several nodes at hand: nodes A and B in this process, data in memory.

use super::Counters;
use crate::LabError;
use nfs::Url;
use nfslab::{Cluster, ClusterOptions, Moved, Tell};
use units::Bytes;

/// How many nodes.
pub const COUNT: usize = 2;
/// The only volume; it begins on node A.
const VOLUME: &str = "data";
/// Most of it, and share of the memory that nobody uses.
const DATA_MAX: Bytes = Bytes::gib(4);
const MEMORY_SHARE_MAX: u64 = 2;

/// Node A, which is mounted, and node B.
pub struct OwnCluster {
    cluster: Cluster,
}

impl OwnCluster {
    /// Starts both nodes.
    ///
    /// # Errors
    /// [`LabError::Target`]: addresses or threads that cannot be had.
    pub fn start() -> Result<Self, LabError> {
        let memory = host::facts::memory_available().unwrap_or(DATA_MAX.0);
        let cluster = Cluster::start(ClusterOptions {
            nodes: COUNT,
            volumes: vec![(VOLUME.into(), vec![0])],
            bytes_max: DATA_MAX.0.min(memory / MEMORY_SHARE_MAX),
            ..ClusterOptions::default()
        });
        Ok(Self { cluster: cluster.map_err(|error| LabError::Target(error.to_string()))? })
    }

    /// Where its volume is, by node A.
    ///
    /// # Errors
    /// [`LabError::Target`]: a bug.
    pub fn url(&self) -> Result<Url, LabError> {
        let address = self.cluster.address(0);
        let text = format!("nfs://{address}/{VOLUME}?mountport={}", address.port());
        text.parse().map_err(|error: nfs::UrlError| LabError::Target(error.to_string()))
    }

    /// The node that keeps the data.
    pub fn holder(&self) -> usize {
        self.cluster.nodes_of(VOLUME).ok().and_then(|nodes| nodes.first().copied()).unwrap_or(0)
    }

    /// Gives all data to `node`; whoever has a layout is told.
    ///
    /// # Errors
    /// [`LabError::Target`]: there is no such node.
    pub fn move_to(&self, node: usize) -> Result<Moved, LabError> {
        let moved = self.cluster.move_to(VOLUME, &[node], Tell::Recall);
        moved.map_err(|error| LabError::Target(error.to_string()))
    }

    pub(super) fn names(&self) -> Vec<String> {
        (0..COUNT).map(name).collect()
    }

    pub(super) fn counters(&self) -> Vec<Counters> {
        let counters = (0..COUNT).map(|node| self.cluster.counters(node));
        counters
            .map(|it| Counters {
                cpu_seconds: it.cpu.as_secs(),
                processor_seconds: 0.0,
                sent: it.bytes_read,
                received: it.bytes_written,
                transfers: Some((it.reads + it.writes, it.forwarded)),
            })
            .collect()
    }
}

/// A for the first, and on.
pub fn name(node: usize) -> String {
    char::from(b'A' + node as u8).to_string()
}
