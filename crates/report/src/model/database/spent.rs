//! Where DB time went: exact waits of some phases beside the time model, and whether the two agree. Of a server in a comparison the
//! clients' time is known, and samples tell how it divides.
//!
//! Shares are of DB time, never of waits alone, and AAS (average active sessions) stands beside them. Users' sessions and
//! background processes are kept apart: the same write is waited for by both, so their sum would count it twice.

use super::buckets::Buckets;
use super::class::Class;
use crate::model::evidence::Evidence;
use record::WaitEventRow;
use std::collections::BTreeMap;
use waits::{Event, Part};

/// Waits and CPU may miss DB time by this share.
pub const TOLERANCE: f64 = 0.05;

/// What times of a server are; how well each of its own words fits, a run of it lists.
pub const SAMPLED: &str = "A server does not count what its sessions wait for: DB time is the time that clients waited for answers, and ten looks \
     a second at all sessions say how it divides. What MariaDB shows of a commit's wait is inferred.";

/// Time on the run queue, as statistics of the operating system are called.
const RUN_QUEUE: &str = "OS Wait-cpu (latency) time";

/// Time of users' sessions and of background processes over some phases.
#[derive(Clone, Debug, PartialEq)]
pub struct Spent {
    /// Length of the phases together, seconds.
    pub seconds: f64,
    /// Time inside users' calls, nanoseconds.
    pub db_time_ns: f64,
    /// Of which on CPU, and in no wait.
    pub cpu_ns: f64,
    /// CPU that the sessions used inside waits: system calls for their own I/O, going to sleep and waking. The wait has that time.
    pub cpu_inside_waits_ns: f64,
    /// What users' sessions did, longest first; CPU is one of the lines.
    pub foreground: Vec<EventLine>,
    /// What background processes did, longest first; CPU is one of the lines.
    pub background: Vec<EventLine>,
    /// Looks at the sessions that all of it was concluded from; none where the database counted it.
    pub looks: Option<f64>,
    /// `log file sync` in parts, in the order in which they happen; empty when nobody waited for it.
    pub sync: Vec<EventLine>,
}

/// One event, or CPU, or waiting for one.
#[derive(Clone, Debug, PartialEq)]
pub struct EventLine {
    /// Its name.
    pub name: String,
    /// Its class.
    pub class: Class,
    /// Waits that ended; none for CPU, for waiting for one, and where samples tell of the time alone.
    pub waits: Option<u64>,
    /// Those that ended because a time ran out.
    pub timeouts: u64,
    /// Time of all of them, nanoseconds.
    pub time_ns: f64,
    /// Of DB time for users' sessions, of elapsed time for background processes, 0–1.
    pub share: f64,
    /// Average active sessions in it.
    pub aas: f64,
    /// Waits by length.
    pub buckets: Buckets,
}

impl EventLine {
    /// Mean length of a wait, nanoseconds.
    pub fn mean_ns(&self) -> Option<f64> {
        self.waits.filter(|waits| *waits > 0).map(|waits| self.time_ns / waits as f64)
    }

    /// What the catalogue says of it; none for CPU and for events of other databases.
    pub fn means(&self) -> Option<&'static str> {
        Event::named(&self.name).map(|event| event.info().means)
    }
}

impl Spent {
    /// Of `phases`; none where the database was not asked.
    pub fn of(evidence: &Evidence, phases: &[i64]) -> Option<Self> {
        let rows = || phases.iter().filter_map(|id| evidence.waits.get(id)).flatten();
        let statistic = |class: &str, name: &str| -> Option<f64> {
            let of_phases = phases.iter().filter_map(|id| evidence.statistics.get(id)).flatten();
            let mut values = of_phases.filter(|s| s.class == class && s.name == name).map(|s| s.value);
            values.next().map(|first| first + values.sum::<f64>())
        };
        // Looks tell shares; how long it took all together, the clients know better.
        let looks = statistic("sampled", "looks");
        let of_phases = || evidence.phases.iter().filter(|(id, _)| phases.contains(id));
        let clients_ns: f64 = of_phases().map(|(_, p)| p.latency_sum_ns as f64).sum();
        let sampled_ns = looks.and_then(|_| statistic("time", "DB time")).filter(|ns| *ns > 0.0);
        let scale = sampled_ns.filter(|_| clients_ns > 0.0).map_or(1.0, |ns| clients_ns / ns);
        let scale = |of_users: bool| if of_users { scale } else { 1.0 };
        let time = |name: &str| statistic("time", name).map(|ns| ns * scale(name.starts_with("DB ")));
        if rows().next().is_none() && time("DB time").is_none() {
            return None;
        }
        let seconds: f64 = of_phases().map(|(_, p)| p.end_ns.saturating_sub(p.start_ns) as f64 / 1e9).sum();
        let part = |row: &WaitEventRow| row.event.starts_with("log file sync: ");
        let total = |foreground: bool| -> f64 {
            let of_kind = rows().filter(|r| r.foreground == foreground && !part(r));
            of_kind
                .filter(|r| Class::named(&r.wait_class).is_some())
                .map(|r| r.time_ns as f64 * scale(foreground))
                .sum()
        };
        // Without a time model the waits are all that is known of the time.
        let all_cpu_ns = time("DB CPU").unwrap_or(0.0);
        let db_time_ns = time("DB time").unwrap_or_else(|| total(true) + all_cpu_ns);
        // The scheduler counts a thread's CPU and its time on the run queue whether or not the session says that it waits. What a
        // wait has is its: only the rest of DB time is there for either.
        let queued = time(RUN_QUEUE);
        let left_ns = (db_time_ns - total(true)).max(0.0);
        let cpu_ns = if queued.is_some() { all_cpu_ns.min(left_ns) } else { all_cpu_ns };
        let queue_ns = queued.unwrap_or(0.0).min(left_ns - cpu_ns.min(left_ns));
        let background_cpu_ns = time("background cpu time").unwrap_or(0.0);
        let background_ns =
            time("background elapsed time").unwrap_or_else(|| total(false) + background_cpu_ns);
        let lines = |foreground: bool, off_wait: (f64, f64), whole: f64| {
            let of_kind = rows().filter(|r| r.foreground == foreground && !part(r));
            sorted(of_kind, off_wait, (whole, seconds), scale(foreground))
        };
        let parts = rows().filter(|r| r.foreground && part(r));
        let mut sync = sorted(parts, (0.0, 0.0), (db_time_ns, seconds), 1.0);
        let order = |line: &EventLine| Part::ALL.iter().position(|p| line.name.ends_with(p.name()));
        sync.sort_by_key(|line| order(line));
        Some(Self {
            seconds,
            db_time_ns,
            cpu_ns,
            cpu_inside_waits_ns: all_cpu_ns - cpu_ns,
            foreground: lines(true, (cpu_ns, queue_ns), db_time_ns),
            background: lines(false, (background_cpu_ns, 0.0), background_ns),
            looks,
            sync,
        })
    }

    /// Average active sessions: DB time a second.
    pub fn aas(&self) -> f64 {
        if self.seconds > 0.0 { self.db_time_ns / 1e9 / self.seconds } else { 0.0 }
    }

    /// Time of users' sessions by class, from the bottom of the chart; nanoseconds.
    pub fn classes(&self) -> Vec<(Class, f64)> {
        by_class(&self.foreground)
    }

    /// What took most of the users' time; CPU may be it.
    pub fn top(&self) -> Option<&EventLine> {
        self.foreground.first().filter(|line| line.time_ns > 0.0)
    }

    /// The event of that name.
    pub fn event(&self, name: &str) -> Option<&EventLine> {
        self.foreground.iter().find(|line| line.name == name)
    }

    /// (waits + CPU) / DB time: 1 when every moment is accounted for. None without DB time.
    pub fn accounted(&self) -> Option<f64> {
        let sum: f64 = self.foreground.iter().map(|line| line.time_ns).sum();
        (self.db_time_ns > 0.0).then(|| sum / self.db_time_ns)
    }
}

/// Sums by class, from the bottom of the chart.
pub fn by_class(lines: &[EventLine]) -> Vec<(Class, f64)> {
    let mut sums: BTreeMap<Class, f64> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.time_ns > 0.0) {
        *sums.entry(line.class).or_default() += line.time_ns;
    }
    sums.into_iter().collect()
}

fn sorted<'r>(
    rows: impl Iterator<Item = &'r WaitEventRow>,
    (cpu_ns, queue_ns): (f64, f64),
    (whole_ns, seconds): (f64, f64),
    scale: f64,
) -> Vec<EventLine> {
    let mut lines: Vec<EventLine> = Vec::new();
    let line = |name: &str, class, waits| EventLine {
        name: name.to_owned(),
        class,
        waits,
        timeouts: 0,
        time_ns: 0.0,
        share: 0.0,
        aas: 0.0,
        buckets: Buckets::default(),
    };
    if cpu_ns > 0.0 {
        lines.push(EventLine { time_ns: cpu_ns, ..line("CPU", Class::Cpu, None) });
    }
    if queue_ns > 0.0 {
        lines.push(EventLine { time_ns: queue_ns, ..line("waiting for a CPU", Class::Scheduler, None) });
    }
    for row in rows {
        let Some(class) = Class::named(&row.wait_class) else { continue };
        let known = lines.iter().position(|l| l.class == class && l.name == row.event);
        let index = known.unwrap_or_else(|| {
            lines.push(line(&row.event, class, Some(0)));
            lines.len() - 1
        });
        let sum = &mut lines[index];
        sum.waits = sum.waits.zip(row.waits).map(|(sum, waits)| sum + waits);
        sum.timeouts += row.timeouts;
        sum.time_ns += row.time_ns as f64 * scale;
        sum.buckets.add(&row.histogram_micro);
    }
    for line in &mut lines {
        line.share = if whole_ns > 0.0 { line.time_ns / whole_ns } else { 0.0 };
        line.aas = if seconds > 0.0 { line.time_ns / 1e9 / seconds } else { 0.0 };
    }
    lines.sort_by(|a, b| b.time_ns.total_cmp(&a.time_ns));
    lines
}
