//! The user's own mix as it was given: typed, read from an AWR report or a table of metrics, or taken from a run.
//!
//! What a mix needs: logical reads of a transaction, the share of them that read and do not change, how many the buffer cache serves,
//! commits, block writes, and how many sessions work at once. What the source does not say stays open, and is assumed with a word.

use crate::ReportError;
use crate::words;
use record::{Reader, StatisticRow};
use std::collections::BTreeMap;

/// What is known of a mix, by the names that a record's plan uses (`read_share`, `hit_ratio`, `gets_per_transaction` …).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Given {
    values: BTreeMap<&'static str, f64>,
    /// Where it came from, and what was read there, in sentences.
    pub said: Vec<String>,
}

/// A metric of a database, as rates per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Metric {
    Logical,
    Changes,
    Reads,
    Writes,
    Redo,
    Transactions,
    Commits,
    Rollbacks,
    BufferHit,
    Active,
}

pub(super) type Rates = BTreeMap<Metric, f64>;

impl Given {
    /// As typed; `None` for what was not.
    ///
    /// # Errors
    /// The sentence that says which number is out of range.
    pub fn typed(
        read_share: Option<f64>,
        hit_ratio: Option<f64>,
        commits: Option<f64>,
    ) -> Result<Self, String> {
        let mut given = Self::default();
        for (key, flag, value, most) in [
            ("read_share", "--read-share", read_share, 1.0),
            ("hit_ratio", "--hit-ratio", hit_ratio, 1.0),
            ("commits_per_transaction", "--commits-per-tx", commits, 1e6),
        ] {
            let Some(value) = value else { continue };
            if !(0.0..=most).contains(&value) {
                return Err(format!("{flag} {value} is out of range; type a number from 0 to {most}"));
            }
            given.values.insert(key, value);
        }
        Ok(given)
    }

    /// From the text or the HTML of an AWR report (Oracle 10g and later), or from a table `metric,value per second`.
    ///
    /// # Errors
    /// The sentence that says what was missing, and what is needed.
    pub fn awr(text: &str) -> Result<Self, String> {
        let plain =
            if text.contains("<td") || text.contains("<TD") { without_tags(text) } else { text.to_owned() };
        let is_report = plain.contains("Load Profile") || plain.contains("Instance Activity");
        let rates = if is_report { report_rates(&plain) } else { table_rates(&plain) };
        Self::of_rates(&rates, if is_report { "The AWR report" } else { "The table" })
    }

    /// From the counters that a run of the embedded database left.
    ///
    /// # Errors
    /// [`ReportError::Record`] when it cannot be read, [`ReportError::Mix`] when it holds no such counters.
    pub fn of_run(reader: &Reader) -> Result<Self, ReportError> {
        let phases: BTreeMap<i64, (f64, f64)> = reader
            .phases()?
            .into_iter()
            .filter(|(_, p)| p.kind == "measure")
            .map(|(id, p)| (id, (p.seconds, f64::from(p.threads))))
            .collect();
        let rows: Vec<(i64, StatisticRow)> = reader.of_phases()?;
        let mut sums: Rates = BTreeMap::new();
        let mut seen: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
        for (phase, row) in rows.into_iter().filter(|(_, row)| row.class == "system") {
            if let (Some(metric), Some(phase_of)) = (Metric::named(&row.name), phases.get(&phase)) {
                *sums.entry(metric).or_default() += row.value;
                seen.insert(phase, *phase_of);
            }
        }
        let seconds: f64 = seen.values().map(|p| p.0).sum();
        sums.values_mut().for_each(|sum| *sum /= seconds.max(1e-9));
        let sessions = seen.values().map(|p| p.1).fold(0.0, f64::max);
        if sessions > 0.0 {
            sums.insert(Metric::Active, sessions);
        }
        let name = reader.path().file_stem().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        Self::of_rates(&sums, &format!("Run {name}")).map_err(ReportError::Mix)
    }

    /// This, and from `other` what this does not say.
    pub fn or(mut self, other: Self) -> Self {
        for (key, value) in other.values {
            self.values.entry(key).or_insert(value);
        }
        self.said.extend(other.said);
        self
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// A value by its name in the plan.
    pub fn get(&self, key: &str) -> Option<f64> {
        self.values.get(key).copied()
    }

    /// All values with their names in the plan.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, f64)> + '_ {
        self.values.iter().map(|(key, value)| (*key, *value))
    }

    pub(super) fn of_rates(rates: &Rates, source: &str) -> Result<Self, String> {
        let rate = |metric: Metric| rates.get(&metric).copied().filter(|v| *v >= 0.0 && v.is_finite());
        let positive = |metric: Metric| rate(metric).filter(|v| *v > 0.0);
        // A transaction ends with a commit or a rollback.
        let ended: f64 = [Metric::Commits, Metric::Rollbacks].into_iter().filter_map(positive).sum();
        let transactions = positive(Metric::Transactions).or(Some(ended).filter(|n| *n > 0.0));
        let (Some(logical), Some(transactions)) = (positive(Metric::Logical), transactions) else {
            let seen: Vec<String> = rates.keys().map(|m| m.said().to_owned()).collect();
            let seen = if seen.is_empty() { "nothing".into() } else { words::list(&seen) };
            return Err(format!(
                "{source} does not say logical reads and transactions per second (read: {seen}). Give the text or HTML of an AWR report with its \
                 Load Profile, or a table with lines such as `logical reads,45678` and `transactions,227`"
            ));
        };
        let mut given = Self::default();
        let mut set = |key: &'static str, value: Option<f64>| {
            if let Some(value) = value {
                given.values.insert(key, value);
            }
        };
        let missed = rate(Metric::Reads).map(|reads| 1.0 - reads / logical);
        set("hit_ratio", rate(Metric::BufferHit).or(missed).map(|h| h.clamp(0.0, 1.0)));
        set("read_share", rate(Metric::Changes).map(|c| (1.0 - c / logical).clamp(0.0, 1.0)));
        set("gets_per_transaction", Some(logical / transactions));
        set("commits_per_transaction", rate(Metric::Commits).map(|c| (c / transactions).min(1.0)));
        set("block_writes_per_transaction", rate(Metric::Writes).map(|w| w / transactions));
        set("sessions", rate(Metric::Active).map(|n| n.round().max(1.0)));
        let read: Vec<String> = rates
            .iter()
            .map(|(metric, value)| format!("{} {}", metric.said(), metric.shown(*value)))
            .collect();
        given.said.push(format!("{source} says: {}.", words::list(&read)));
        if rate(Metric::BufferHit).is_none() && missed.is_some() {
            given.said.push(
                "Its hit ratio is 1 − physical / logical reads, so direct path reads count as misses.".into(),
            );
        }
        Ok(given)
    }
}

impl Metric {
    /// By the name that AWR, v$sysstat or a person gives it.
    pub(super) fn named(name: &str) -> Option<Self> {
        let lower = name.to_lowercase();
        let bare = lower.split('(').next().unwrap_or_default();
        let clean: Vec<&str> = bare.trim_matches([' ', ':', '"', '%']).split_whitespace().collect();
        Some(match clean.join(" ").trim_end_matches('s') {
            "logical read" | "session logical read" => Self::Logical,
            "block change" | "db block change" => Self::Changes,
            "physical read" => Self::Reads,
            "physical write" => Self::Writes,
            "redo size" => Self::Redo,
            "transaction" => Self::Transactions,
            "user commit" => Self::Commits,
            "user rollback" => Self::Rollbacks,
            "buffer hit" => Self::BufferHit,
            "active session" | "aa" => Self::Active,
            _ => return None,
        })
    }

    fn said(self) -> &'static str {
        match self {
            Self::Logical => "logical reads",
            Self::Changes => "block changes",
            Self::Reads => "physical reads",
            Self::Writes => "physical writes",
            Self::Redo => "redo",
            Self::Transactions => "transactions",
            Self::Commits => "user commits",
            Self::Rollbacks => "user rollbacks",
            Self::BufferHit => "buffer hit",
            Self::Active => "active sessions",
        }
    }

    fn shown(self, value: f64) -> String {
        match self {
            Self::Redo => format!("{} MB/s", words::amount(value / 1e6)),
            Self::BufferHit => words::percent(value),
            Self::Active => words::amount(value),
            _ => format!("{}/s", words::amount(value)),
        }
    }
}

/// Numbers of a line: `45,678.9`, `201.0`; a word ends them.
fn numbers(text: &str) -> Vec<f64> {
    text.split_whitespace().map_while(number).collect()
}

fn number(text: &str) -> Option<f64> {
    let text = text.trim_matches('"').replace(',', "");
    text.parse().ok().filter(|v: &f64| v.is_finite())
}

/// Load profile (`label: per second  per transaction`), efficiency (`Buffer Hit %: 97.3`) and instance activity (`label  total  per second
/// per transaction`) of a report. What the load profile says goes before the activity.
fn report_rates(text: &str) -> Rates {
    let (mut rates, mut activity) = (Rates::new(), Rates::new());
    for line in text.lines() {
        // Efficiency has two columns: each label ends at its colon.
        let mut rest = line;
        while let Some((label, after)) = rest.split_once(':') {
            // Behind the numbers of the first column begins the label of the second.
            let begin = label.rfind(|c: char| c.is_ascii_digit()).map_or(0, |at| at + 1);
            let name = label[begin..].trim();
            let values = numbers(after);
            let metric = match name.to_lowercase() {
                name if name.starts_with("db time(s)") => Some(Metric::Active),
                name if name.starts_with("buffer hit")
                    || name.split_whitespace().eq(["buffer", "hit", "%"]) =>
                {
                    Some(Metric::BufferHit)
                }
                name => Metric::named(&name),
            };
            if let (Some(metric), Some(value)) = (metric, values.first()) {
                let value = if metric == Metric::BufferHit { value / 100.0 } else { *value };
                rates.entry(metric).or_insert(value);
            }
            rest = after;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let first = words.iter().position(|word| number(word).is_some()).unwrap_or(words.len());
        let values: Vec<f64> = words[first..].iter().map_while(|word| number(word)).collect();
        if let (Some(metric), [_, per_second, _]) =
            (Metric::named(&words[..first].join(" ")), values.as_slice())
        {
            activity.entry(metric).or_insert(*per_second);
        }
    }
    for (metric, value) in activity {
        rates.entry(metric).or_insert(value);
    }
    rates
}

/// `metric,value` with a comma, a semicolon or a tab between, one a line; a heading and unknown metrics are skipped.
fn table_rates(text: &str) -> Rates {
    let mut rates = Rates::new();
    for line in text.lines() {
        let Some((name, rest)) = line.split_once([',', ';', '\t']) else { continue };
        let cell = match rest.trim().strip_prefix('"') {
            Some(quoted) => quoted.split('"').next().unwrap_or_default(),
            None => rest.split([',', ';', '\t']).next().unwrap_or_default(),
        };
        if let (Some(metric), Some(value)) = (Metric::named(name), number(cell.trim())) {
            let share = metric == Metric::BufferHit && value > 1.0;
            rates.entry(metric).or_insert(if share { value / 100.0 } else { value });
        }
    }
    rates
}

/// The text of an HTML report: a line for each row of its tables.
fn without_tags(html: &str) -> String {
    let mut out = String::with_capacity(html.len() / 2);
    let mut rest = html;
    while let Some((text, tag)) = rest.split_once('<') {
        out.push_str(text);
        let (name, after) = tag.split_once('>').unwrap_or((tag, ""));
        out.push_str(if name.eq_ignore_ascii_case("/tr") || name.eq_ignore_ascii_case("/h3") {
            "\n"
        } else {
            " "
        });
        rest = after;
    }
    out.push_str(rest);
    // Rows may be broken over lines in the source: those line ends are blanks, the others are rows.
    let rows = out.replace("&#160;", " ").replace("&nbsp;", " ");
    rows.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "\
WORKLOAD REPOSITORY report for

              Snap Id      Snap Time      Sessions Curs/Sess
            --------- ------------------- -------- ---------
Begin Snap:      1201 21-Nov-26 09:00:12        84       2.1
  End Snap:      1202 21-Nov-26 10:00:10        86       2.2
   Elapsed:               59.97 (mins)
   DB Time:              239.88 (mins)

Load Profile                    Per Second   Per Transaction  Per Exec  Per Call
~~~~~~~~~~~~~~~            ---------------   --------------- --------- ---------
             DB Time(s):               4.0               0.0      0.00      0.01
              DB CPU(s):               0.9               0.0      0.00      0.00
      Redo size (bytes):       1,234,567.8           5,432.1
  Logical read (blocks):          45,678.9             201.0
          Block changes:           8,765.4              38.6
 Physical read (blocks):           1,234.5               5.4
Physical write (blocks):             456.7               2.0
             User calls:             512.0               2.3
           Transactions:             227.3

Instance Efficiency Percentages (Target 100%)
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
            Buffer Nowait %:  100.00       Redo NoWait %:   99.99
            Buffer  Hit   %:   97.31    In-memory Sort %:  100.00

Instance Activity Stats
Statistic                                     Total     per Second     per Trans
-------------------------------- ------------------ -------------- -------------
user commits                                810,000          225.1           1.0
user rollbacks                                7,900            2.2           0.0
";

    fn near(given: &Given, key: &str, want: f64) {
        let got = given.get(key).unwrap_or(f64::NAN);
        assert!((got / want - 1.0).abs() < 1e-3, "{key}: {got}, not {want}");
    }

    #[test]
    fn an_awr_report_is_read_as_it_is_printed() {
        let given = Given::awr(REPORT).expect("a report");
        near(&given, "hit_ratio", 0.9731);
        near(&given, "read_share", 1.0 - 8_765.4 / 45_678.9);
        near(&given, "gets_per_transaction", 45_678.9 / 227.3);
        near(&given, "commits_per_transaction", 225.1 / 227.3);
        near(&given, "block_writes_per_transaction", 456.7 / 227.3);
        near(&given, "sessions", 4.0);
        let said = given.said.join(" ").replace('\u{a0}', " ");
        for part in ["logical reads 45,680/s", "redo 1.23 MB/s", "transactions 227/s", "buffer hit 97.3 %"] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }

    #[test]
    fn older_names_html_and_tables_say_the_same() {
        let old = REPORT
            .replace("Logical read (blocks):", "        Logical reads:")
            .replace("Physical read (blocks):", "        Physical reads:")
            .replace("Redo size (bytes):", "        Redo size:")
            .replace("            Buffer  Hit   %:   97.31    ", "");
        let given = Given::awr(&old).expect("10g");
        near(&given, "hit_ratio", 1.0 - 1_234.5 / 45_678.9);
        assert!(given.said.len() == 2, "the hit ratio was computed: {:?}", given.said);
        let html = "<h3>Load Profile</h3><table><tr><td>Logical read (blocks):</td><td align=\"right\">45,678.9</td>\
                    <td>201.0</td></tr>\n<tr><td>Physical read (blocks):</td><td>1,234.5</td><td>5.4</td></tr>\
                    <tr><td>Transactions:</td><td>227.3</td><td>&#160;</td></tr></table>";
        near(&Given::awr(html).expect("html"), "gets_per_transaction", 45_678.9 / 227.3);
        let table = "metric,per second\nlogical reads,\"45,678.9\"\nphysical reads;1234.5\ntransactions\t227.3\nbuffer hit,97.31\n";
        let given = Given::awr(table).expect("table");
        near(&given, "hit_ratio", 0.9731);
        near(&given, "gets_per_transaction", 45_678.9 / 227.3);
    }

    #[test]
    fn commits_and_rollbacks_are_transactions_where_nobody_counted_them() {
        let table = "session logical reads,42000\nuser commits,300\nuser rollbacks,50\n";
        let given = Given::awr(table).expect("statistics of v$sysstat");
        near(&given, "gets_per_transaction", 120.0);
        near(&given, "commits_per_transaction", 300.0 / 350.0);
        assert!(Given::awr("logical reads,42000\nuser calls,12\n").is_err());
    }

    #[test]
    fn what_is_missing_is_said() {
        let why = Given::awr("Load Profile\n  Transactions:   12.0\n").expect_err("no logical reads");
        assert!(why.contains("logical reads") && why.contains("read: transactions"), "{why}");
        assert!(Given::awr("").is_err());
        assert!(Given::typed(Some(1.2), None, None).is_err());
        let typed = Given::typed(None, Some(0.98), Some(2.0)).expect("in range");
        let both = typed.or(Given::awr(REPORT).expect("a report"));
        near(&both, "hit_ratio", 0.98);
        near(&both, "gets_per_transaction", 201.0);
    }
}
