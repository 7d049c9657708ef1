//! Where a server's sessions spent a phase, by samples: the same rows that the embedded database counts exactly.

use crate::LabError;
use record::{AshRow, StatisticRow, WaitEventRow, Writer};
use std::collections::BTreeMap;

/// Sums of what was seen in one phase. An event has time and no number of waits: a look sees that somebody waits, not how often.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampled {
    waits: Vec<WaitEventRow>,
    statistics: Vec<StatisticRow>,
}

impl Sampled {
    /// Of `looks` looks, and all that they saw; nothing of none.
    pub(super) fn of<'r>(looks: usize, seen: impl Iterator<Item = &'r AshRow>) -> Self {
        if looks == 0 {
            return Self::default();
        }
        let mut events: BTreeMap<(bool, &str, &str), u64> = BTreeMap::new();
        let (mut users, mut users_cpu, mut others_cpu) = (0, 0, 0);
        for row in seen {
            users += if row.foreground { row.weight_ns } else { 0 };
            match (&row.event, row.foreground) {
                (Some(event), foreground) => {
                    *events.entry((foreground, event, &row.wait_class)).or_default() += row.weight_ns;
                }
                (None, true) => users_cpu += row.weight_ns,
                (None, false) => others_cpu += row.weight_ns,
            }
        }
        let statistic = |class: &str, name: &str, value: f64| StatisticRow {
            class: class.to_owned(),
            name: name.to_owned(),
            value,
        };
        Self {
            waits: events
                .into_iter()
                .map(|((foreground, event, class), time_ns)| WaitEventRow {
                    foreground,
                    event: event.to_owned(),
                    wait_class: class.to_owned(),
                    waits: None,
                    timeouts: 0,
                    time_ns,
                    histogram_micro: Vec::new(),
                })
                .collect(),
            statistics: vec![
                statistic("time", "DB time", users as f64),
                statistic("time", "DB CPU", users_cpu as f64),
                statistic("time", "background cpu time", others_cpu as f64),
                statistic("sampled", "looks", looks as f64),
            ],
        }
    }

    /// Writes it down as rows of `phase`.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn store(&self, phase: i64, writer: &mut Writer) -> Result<(), LabError> {
        writer.of_phase(phase, &self.waits)?;
        writer.of_phase(phase, &self.statistics)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(foreground: bool, event: Option<&str>, weight_ns: u64) -> AshRow {
        AshRow {
            t_ns: 0,
            weight_ns,
            session: 1,
            foreground,
            program: String::new(),
            event: event.map(str::to_owned),
            wait_class: if event.is_some() { "Commit" } else { "CPU" }.into(),
            p1: 0,
            p2: 0,
            p3: 0,
            file_no: 0,
            block_no: 0,
            statement: None,
            blocking_session: None,
        }
    }

    #[test]
    fn time_is_summed_by_event_and_side() {
        let rows = [
            row(true, Some("log file sync"), 100),
            row(true, Some("log file sync"), 110),
            row(true, None, 90),
            row(false, Some("log file sync"), 7),
            row(false, None, 5),
        ];
        let sampled = Sampled::of(2, rows.iter());
        let waits: Vec<_> = sampled.waits.iter().map(|w| (w.foreground, w.time_ns, w.waits)).collect();
        assert_eq!(waits, [(false, 7, None), (true, 210, None)]);
        let values: Vec<_> = sampled.statistics.iter().map(|s| (s.name.as_str(), s.value)).collect();
        let expected = [("DB time", 300.0), ("DB CPU", 90.0), ("background cpu time", 5.0), ("looks", 2.0)];
        assert_eq!(values, expected);
        assert_eq!(Sampled::of(0, rows.iter()), Sampled::default(), "nobody looked");
    }
}
