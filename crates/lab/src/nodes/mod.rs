//! The storage nodes behind an export: what each used and did while something was measured, in its own words.
//!
//! The database's side alone does not show what a wrong way costs: that two nodes work where one would do. A node is asked before and
//! after ([`Nodes::read`]); the difference is its [`Use`].

mod exporter;
mod own;

pub use exporter::{Exporter, Named};
pub use own::{COUNT, OwnCluster, name};

use crate::LabError;
use std::fmt;
use std::sync::Arc;
use units::{Nanos, clock};

/// Who can be asked.
#[derive(Clone, Default)]
pub enum Nodes {
    /// Nobody.
    #[default]
    Unknown,
    /// The nodes of a cluster in this process: ours to move data on, too.
    Own(Arc<OwnCluster>),
    /// Machines, by what they tell Prometheus.
    Exporters(Arc<Vec<Exporter>>),
}

impl fmt::Debug for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("unknown"),
            Self::Own(_) => f.write_str("own cluster"),
            Self::Exporters(exporters) => f.debug_list().entries(exporters.iter()).finish(),
        }
    }
}

/// Counters of one node since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counters {
    /// Processor time that it used, seconds.
    cpu_seconds: f64,
    /// Processor time that there was: of all processors of a machine, of one for a node of our cluster.
    processor_seconds: f64,
    /// Bytes that it sent to and received from others.
    sent: u64,
    received: u64,
    /// Clients' reads and writes, and those of them that it passed on; of our own cluster.
    transfers: Option<(u64, u64)>,
}

/// What all nodes had counted at one time.
#[derive(Clone, Debug)]
pub struct Reading {
    at: Nanos,
    nodes: Vec<Counters>,
}

/// What one node used and did between two readings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Use {
    /// `A` …
    pub name: String,
    /// Processor time that it used, seconds.
    pub cpu_seconds: f64,
    /// Processor time that there was, seconds.
    pub processor_seconds: f64,
    /// Bytes that it sent.
    pub sent: u64,
    /// Bytes that it received.
    pub received: u64,
    /// Clients' reads and writes, and those of them that it passed on to another node; none: it does not say.
    pub transfers: Option<(u64, u64)>,
    /// Time between the readings, seconds.
    pub seconds: f64,
}

impl Nodes {
    /// The cluster that is ours to move data on.
    pub fn own(&self) -> Option<&OwnCluster> {
        match self {
            Self::Own(cluster) => Some(cluster),
            Self::Unknown | Self::Exporters(_) => None,
        }
    }

    /// Asks all of them; none when nobody can be asked.
    ///
    /// # Errors
    /// [`LabError::Target`]: one does not answer, or not what a node says.
    pub fn read(&self) -> Result<Option<Reading>, LabError> {
        let nodes = match self {
            Self::Unknown => return Ok(None),
            Self::Own(cluster) => cluster.counters(),
            Self::Exporters(exporters) => {
                exporters.iter().map(Exporter::counters).collect::<Result<_, _>>()?
            }
        };
        Ok(Some(Reading { at: clock::now(), nodes }))
    }

    /// What each did since `before`.
    ///
    /// # Errors
    /// As [`Nodes::read`].
    pub fn since(&self, before: Option<&Reading>) -> Result<Vec<Use>, LabError> {
        let (Some(before), Some(after)) = (before, self.read()?) else { return Ok(Vec::new()) };
        let seconds = (after.at - before.at).as_secs();
        let names = self.names();
        let each = names.into_iter().zip(before.nodes.iter().zip(&after.nodes));
        Ok(each.map(|(name, (old, new))| used(name, old, new, seconds)).collect())
    }

    fn names(&self) -> Vec<String> {
        match self {
            Self::Unknown => Vec::new(),
            Self::Own(cluster) => cluster.names(),
            Self::Exporters(exporters) => exporters.iter().map(|exporter| exporter.name.clone()).collect(),
        }
    }

    /// What the shares of processor time are of.
    pub fn processors(&self) -> &'static str {
        match self {
            Self::Own(_) => "one processor",
            Self::Unknown | Self::Exporters(_) => "its processors",
        }
    }
}

/// A node that was started anew in between begins at zero again: it says nothing then.
fn used(name: String, old: &Counters, new: &Counters, seconds: f64) -> Use {
    let used = (new.cpu_seconds - old.cpu_seconds).max(0.0);
    let (cpu_seconds, processor_seconds) = match new.processor_seconds - old.processor_seconds {
        // Sums over many counters do not end in the same digit.
        of_machine if of_machine > 0.0 => (used.min(of_machine), of_machine),
        _ => (used, seconds),
    };
    Use {
        name,
        cpu_seconds,
        processor_seconds,
        sent: new.sent.saturating_sub(old.sent),
        received: new.received.saturating_sub(old.received),
        transfers: new.transfers.zip(old.transfers).map(|((all, passed), (all_before, passed_before))| {
            (all.saturating_sub(all_before), passed.saturating_sub(passed_before))
        }),
        seconds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_processors_that_there_were() {
        let of = |cpu_seconds, processor_seconds, all, passed| Counters {
            cpu_seconds,
            processor_seconds,
            sent: 10 * all,
            received: all,
            transfers: Some((all, passed)),
        };
        let first = used("A".into(), &of(1.0, 40.0, 100, 10), &of(3.0, 48.0, 300, 110), 2.0);
        assert_eq!(
            (first.cpu_seconds, first.processor_seconds, first.sent, first.transfers),
            (2.0, 8.0, 2_000, Some((200, 100)))
        );
        // Threads of ours have no processors of their own: shares are of one.
        let second = used("A".into(), &of(0.0, 0.0, 0, 0), &of(1.0, 0.0, 50, 0), 2.0);
        assert_eq!((second.cpu_seconds, second.processor_seconds), (1.0, 2.0));
    }
}
