//! What an NFS server gave over each version, and what that took of the client: from the events `nfs`, means over the trials.

use super::compare::Comparison;
use super::evidence::Evidence;

/// A mean latency that is off from what Little's law makes of rate and requests in flight by more than this is no latency of those requests.
const LITTLE_MAX: f64 = 0.1;

/// One workload over one version.
#[derive(Clone, Debug, PartialEq)]
pub struct Reads {
    /// Index of the configuration.
    pub configuration: usize,
    /// Index of the workload.
    pub workload: usize,
    /// Operations per second.
    pub rate: f64,
    /// Mean latency by our own clock, nanoseconds.
    pub latency_ns: f64,
    /// Requests that were kept in flight.
    pub in_flight: f64,
    /// Share of this machine's processor time that this program took, 0 to 1.
    pub client_cpu: Option<f64>,
    /// Share that the hypervisor took away, 0 to 1.
    pub steal: Option<f64>,
}

impl Reads {
    /// Requests in flight as Little's law has them: rate × latency.
    pub fn little(&self) -> f64 {
        self.rate * self.latency_ns * 1e-9
    }

    /// Whether rate, latency and requests in flight are of the same requests.
    pub fn holds_together(&self) -> bool {
        (self.little() / self.in_flight - 1.0).abs() <= LITTLE_MAX
    }
}

/// Those of a comparison; none where no version of NFS was compared.
pub fn read(evidence: &Evidence, comparison: &Comparison) -> Vec<Reads> {
    let events = evidence.events.iter().filter(|event| event.kind == "nfs");
    events
        .filter_map(|event| {
            let (text, number) = (|key: &str| event.json[key].as_str(), |key: &str| event.json[key].as_f64());
            let named = text("configuration")?;
            Some(Reads {
                configuration: comparison.configurations.iter().position(|c| c.name == named)?,
                workload: comparison
                    .workloads
                    .iter()
                    .position(|w| Some(w.name.as_str()) == text("workload"))?,
                rate: number("ops_per_second")?,
                latency_ns: number("latency_mean_ns")?,
                in_flight: number("in_flight")?,
                client_cpu: number("client_cpu_share"),
                steal: number("steal_share"),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of the article: its last latency was not one of its requests.
    #[test]
    fn a_latency_of_other_requests_is_seen() {
        let reads = |rate, latency_us: f64| Reads {
            configuration: 0,
            workload: 0,
            rate,
            latency_ns: latency_us * 1e3,
            in_flight: 9.6,
            client_cpu: None,
            steal: None,
        };
        assert!(reads(27_066.0, 355.0).holds_together());
        assert!(!reads(25_547.0, 20.0).holds_together());
    }
}
