//! A machine as it tells Prometheus of itself (node_exporter): processor time by kind, bytes by network interface.

use super::Counters;
use crate::LabError;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Longest that an answer may take.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// Longest answer.
const ANSWER_BYTES_MAX: u64 = 16 << 20;
/// Where node_exporter answers, unless the address says something else.
const PATH: &str = "/metrics";

/// `A=http://10.0.0.1:9100`, as it is typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// What the node is called in tables.
    pub name: String,
    /// Where it answers.
    pub url: String,
}

impl FromStr for Named {
    type Err = String;

    /// # Errors
    /// What was seen, and what to type.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            format!(
                "{text:?} {why}; type a name, = and where its node_exporter answers: A=http://10.0.0.1:9100"
            )
        };
        let (name, url) = text.split_once('=').ok_or_else(|| wrong("has no name"))?;
        let (name, url) = (name.trim(), url.trim().trim_end_matches('/'));
        if name.is_empty() || name.chars().count() > 16 {
            return Err(wrong("has no name of 1 to 16 letters"));
        }
        let Some(rest) = url.strip_prefix("http://").filter(|rest| !rest.is_empty()) else {
            return Err(wrong("is no address that begins with http://"));
        };
        let url = if rest.contains('/') { url.to_owned() } else { format!("{url}{PATH}") };
        Ok(Self { name: name.to_owned(), url })
    }
}

/// A node that answered.
#[derive(Clone)]
pub struct Exporter {
    pub(super) name: String,
    url: String,
    agent: ureq::Agent,
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.url)
    }
}

impl Exporter {
    /// Asks it once.
    ///
    /// # Errors
    /// [`LabError::Target`]: nobody answers there, or not with what a node_exporter says.
    pub fn open(named: Named) -> Result<Self, LabError> {
        let config = ureq::Agent::config_builder().timeout_global(Some(ANSWER_MAX)).proxy(None).build();
        let exporter = Self { name: named.name, url: named.url, agent: config.into() };
        exporter.counters().map(|_| exporter)
    }

    pub(super) fn counters(&self) -> Result<Counters, LabError> {
        let wrong = |seen: String| {
            LabError::Target(format!(
                "node {} at {}: {seen}. Does a Prometheus node_exporter answer there? Try: curl {}",
                self.name, self.url, self.url
            ))
        };
        let mut answer = self.agent.get(&self.url).call().map_err(|error| wrong(error.to_string()))?;
        let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string();
        let text = body.map_err(|error| wrong(error.to_string()))?;
        read(&text).ok_or_else(|| wrong("no line of its answer is node_cpu_seconds_total".into()))
    }
}

/// The counters in what a node_exporter says; none without processor times.
fn read(text: &str) -> Option<Counters> {
    let mut counters = Counters::default();
    for line in text.lines() {
        let Some((series, value)) = line.rsplit_once(' ') else { continue };
        let Ok(value) = value.parse::<f64>() else { continue };
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        match name {
            "node_cpu_seconds_total" => {
                counters.processor_seconds += value;
                // Waiting for a disk is no work, and what the hypervisor took was nobody's here.
                if !["idle", "iowait", "steal"].iter().any(|mode| label(labels, "mode") == Some(*mode)) {
                    counters.cpu_seconds += value;
                }
            }
            _ if label(labels, "device") == Some("lo") => {}
            "node_network_transmit_bytes_total" => counters.sent += value as u64,
            "node_network_receive_bytes_total" => counters.received += value as u64,
            _ => {}
        }
    }
    (counters.processor_seconds > 0.0).then_some(counters)
}

/// The value of `name` in `cpu="0",mode="idle"}`.
fn label<'t>(labels: &'t str, name: &str) -> Option<&'t str> {
    let mut pairs = labels.trim_end_matches('}').split(',').filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = r#"# HELP node_cpu_seconds_total Seconds the CPUs spent in each mode.
# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu="0",mode="idle"} 80.5
node_cpu_seconds_total{cpu="0",mode="iowait"} 1.5
node_cpu_seconds_total{cpu="0",mode="user"} 10
node_cpu_seconds_total{cpu="1",mode="system"} 7.5
node_cpu_seconds_total{cpu="1",mode="steal"} 0.5
node_network_receive_bytes_total{device="eth0"} 1.5e+06
node_network_receive_bytes_total{device="lo"} 9e+09
node_network_transmit_bytes_total{device="eth0"} 2e+06
"#;

    #[test]
    fn an_answer_is_processor_time_and_bytes() {
        let expected = Counters {
            cpu_seconds: 17.5,
            processor_seconds: 100.0,
            sent: 2_000_000,
            received: 1_500_000,
            transfers: None,
        };
        assert_eq!(read(ANSWER), Some(expected));
        assert_eq!(read("<html>It works</html>"), None);
        assert_eq!(read(""), None);
    }

    #[test]
    fn a_node_is_a_name_and_an_address() {
        let named = |text: &str| text.parse::<Named>().map(|named| (named.name, named.url));
        let expected = Ok(("A".to_owned(), "http://10.0.0.1:9100/metrics".to_owned()));
        assert_eq!(named("A=http://10.0.0.1:9100"), expected);
        assert_eq!(named("A=http://10.0.0.1:9100/"), expected);
        assert_eq!(named("b=http://x/y").map(|(_, url)| url), Ok("http://x/y".into()));
        for text in ["http://10.0.0.1:9100", "A=10.0.0.1:9100", "=http://x", "A=https://x", "A=http://"] {
            let error = named(text).expect_err(text);
            assert!(error.contains("A=http://10.0.0.1:9100"), "{error}");
        }
    }
}
