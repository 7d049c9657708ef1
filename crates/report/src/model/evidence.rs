//! Everything that a record holds, read once. The only file here that asks a [`Reader`].

use super::given::Given;
use crate::ReportError;
use record::json::Value;
use record::{
    AshRow, AshTickRow, BlockRow, BufferStateRow, CheckRow, ConfigurationRow, CounterRow, CurvePointRow,
    EstimateRow, EventRow, Experiment, FactRow, FileStatRow, HistogramRow, IntervalRow, NativeWaitRow,
    PhaseOwned, PhaseRow, Reader, RedoStateRow, StatisticRow, Visit, VisitOwned, WaitEventRow, WorkloadRow,
};
use std::collections::HashMap;

/// A record in memory: its rows as they are, with their ids.
pub struct Evidence {
    /// What was run.
    pub experiment: Experiment,
    /// How it ended.
    pub status: String,
    /// Name of the record's file.
    pub name: String,
    /// About the machine.
    pub facts: Vec<FactRow>,
    /// The plan before the first visit; `Null` when there is none.
    pub plan: Value,
    /// Its hash.
    pub plan_sha256: Option<String>,
    /// What was compared.
    pub configurations: Vec<(i64, ConfigurationRow)>,
    /// What was done.
    pub workloads: Vec<(i64, WorkloadRow)>,
    /// Block rows by id.
    pub blocks: HashMap<i64, BlockRow>,
    /// Visits by id.
    pub visits: HashMap<i64, Visit>,
    /// Phases in order.
    pub phases: Vec<(i64, PhaseRow)>,
    /// Intervals of each phase in order.
    pub intervals: HashMap<i64, Vec<IntervalRow>>,
    /// Histograms of each phase.
    pub histograms: HashMap<i64, Vec<HistogramRow>>,
    /// Counters over the whole run.
    pub counters: Vec<CounterRow>,
    /// Counters of the devices beneath a configuration at both edges of each phase.
    pub places: HashMap<i64, Vec<CounterRow>>,
    /// Points of the load → latency curves.
    pub curve_points: Vec<CurvePointRow>,
    /// Rules that were applied.
    pub checks: Vec<CheckRow>,
    /// Figures.
    pub estimates: Vec<EstimateRow>,
    /// What happened.
    pub events: Vec<EventRow>,
    /// What the database waited for in each phase.
    pub waits: HashMap<i64, Vec<WaitEventRow>>,
    /// What its counters grew by in each phase.
    pub statistics: HashMap<i64, Vec<StatisticRow>>,
    /// What its files saw in each phase.
    pub files: HashMap<i64, Vec<FileStatRow>>,
    /// Active sessions; read of runs alone, as are the three below: a comparison is told by its exact counters.
    pub ash: Vec<AshRow>,
    /// Ticks of the sampler.
    pub ticks: Vec<AshTickRow>,
    /// What a real server called its waits, and what they were taken for.
    pub native: Vec<NativeWaitRow>,
    /// Buffers by state; read of case `flash` too.
    pub buffers: Vec<BufferStateRow>,
    /// The redo log.
    pub redo: Vec<RedoStateRow>,
    /// What our own NFS client saw.
    pub dnfs: super::dnfs::Rows,
    /// The user's own mix, where one was given with the report.
    pub given: Option<Given>,
}

impl Evidence {
    /// Reads all of `reader`.
    ///
    /// # Errors
    /// [`ReportError::Record`].
    pub fn read(reader: &Reader) -> Result<Self, ReportError> {
        let plan = reader.plan()?;
        let name =
            reader.path().file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let experiment = reader.experiment()?;
        let visits = reader.visits()?;
        let (beneath, counters): (Vec<CounterRow>, Vec<CounterRow>) =
            reader.counters()?.into_iter().partition(|row| row.layer == "place");
        let places = by_phase(beneath.into_iter().filter_map(|row| Some((row.phase_id?, row))).collect());
        let sampled: Vec<i64> = match experiment.kind.as_str() {
            "run" => visits.iter().map(|(id, _)| *id).collect(),
            _ => Vec::new(),
        };
        let watched: Vec<i64> = match experiment.case.as_deref() {
            Some("flash") => visits.iter().map(|(id, _)| *id).collect(),
            _ => sampled.clone(),
        };
        let events = reader.events()?;
        let visits = match experiment.kind.as_str() {
            "compare" => without_spoiled(visits, &events),
            _ => visits,
        };
        Ok(Self {
            experiment,
            status: reader.status()?,
            name,
            facts: reader.facts()?,
            plan_sha256: plan.as_ref().map(|plan| plan.sha256.clone()),
            plan: plan.map_or(Value::Null, |plan| plan.json),
            configurations: reader.configurations()?,
            workloads: reader.workloads()?,
            blocks: reader.blocks()?.into_iter().collect(),
            visits: visits.into_iter().collect(),
            phases: reader.phases()?,
            intervals: by_phase(reader.all_intervals()?),
            histograms: by_phase(reader.histograms()?),
            counters,
            places,
            curve_points: reader.curve_points()?,
            checks: reader.checks()?,
            estimates: reader.estimates()?,
            events,
            waits: of_phases(reader)?,
            statistics: of_phases(reader)?,
            files: of_phases(reader)?,
            ash: of_visits(reader, &sampled)?,
            ticks: of_visits(reader, &sampled)?,
            native: of_visits(reader, &sampled)?,
            buffers: of_visits(reader, &watched)?,
            redo: of_visits(reader, &sampled)?,
            dnfs: super::dnfs::Rows::read(reader)?,
            given: None,
        })
    }

    /// The value of a fact, where it is known.
    pub fn fact(&self, layer: &str, name: &str) -> Option<&str> {
        self.facts.iter().find(|f| f.layer == layer && f.name == name).and_then(|f| f.value.as_deref())
    }

    /// The record's JSON of the last event of `kind`.
    pub fn event(&self, kind: &str) -> Option<&Value> {
        self.events.iter().rfind(|event| event.kind == kind).map(|event| &event.json)
    }

    /// Intervals of a phase that count each operation once: where a phase has intervals under its workload's name and by
    /// kind of transaction beside them, those under the name hold all.
    pub fn whole_intervals(&self, phase: i64) -> impl Iterator<Item = &IntervalRow> {
        let workload = self.phases.iter().find(|(id, _)| *id == phase);
        let name = workload.map_or("", |(_, row)| self.workload_name(row.workload_id));
        let rows = self.intervals.get(&phase).map_or(&[][..], Vec::as_slice);
        let named = rows.iter().any(|row| row.op_class == name);
        rows.iter().filter(move |row| !named || row.op_class == name)
    }

    /// Name of a workload.
    pub fn workload_name(&self, id: i64) -> &str {
        self.workloads.iter().find(|(i, _)| *i == id).map_or("", |(_, row)| row.name.as_str())
    }

    /// From the first to the last thing that was measured, nanoseconds of the run's clock.
    pub fn span_ns(&self) -> Option<(u64, u64)> {
        let phases = self.phases.iter().flat_map(|(_, p)| [p.start_ns, p.end_ns]);
        let counters = self.counters.iter().map(|c| c.t_ns);
        phases.chain(counters).fold(None, |span, t| match span {
            None => Some((t, t)),
            Some((low, high)) => Some((low.min(t), high.max(t))),
        })
    }
}

/// Rows gathered by the id before them, each in the order of the record.
fn by_phase<T>(rows: Vec<(i64, T)>) -> HashMap<i64, Vec<T>> {
    let mut all: HashMap<i64, Vec<T>> = HashMap::new();
    for (phase, row) in rows {
        all.entry(phase).or_default().push(row);
    }
    all
}

fn of_phases<T: PhaseOwned>(reader: &Reader) -> Result<HashMap<i64, Vec<T>>, ReportError> {
    Ok(by_phase(reader.of_phases()?))
}

fn of_visits<T: VisitOwned>(reader: &Reader, visits: &[i64]) -> Result<Vec<T>, ReportError> {
    let mut all = Vec::new();
    for visit in visits {
        all.extend(reader.of_visit(*visit)?);
    }
    Ok(all)
}

/// Visits that began between two readings of a disk's counters between which one of errors rose do not count: nobody knows which of their
/// requests were retried. The record keeps them as they ended.
fn without_spoiled(mut visits: Vec<(i64, Visit)>, events: &[EventRow]) -> Vec<(i64, Visit)> {
    for event in events.iter().filter(|event| event.kind == "disk_errors") {
        let at = |key: &str| event.json.get(key).and_then(Value::as_u64);
        let (Some(since), Some(until)) = (at("since_ns"), at("until_ns")) else { continue };
        let what = event.json.get("what").and_then(Value::as_str).unwrap_or("a disk counted errors");
        let measured = visits.iter_mut().map(|(_, visit)| visit).filter(|visit| visit.status == "measured");
        for visit in measured.filter(|visit| (since..until).contains(&visit.start_ns)) {
            visit.status = "dropped".into();
            visit.drop_reason = Some(what.to_owned());
        }
    }
    visits
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::json::json;

    #[test]
    fn visits_between_two_readings_of_a_disk_that_counted_errors_do_not_count() {
        let visit = |start_ns, status: &str| Visit { start_ns, status: status.into(), ..Visit::default() };
        let visits = [(5, "measured"), (10, "measured"), (19, "failed"), (20, "measured")];
        let visits = (1..).zip(visits.map(|(start, status)| visit(start, status))).collect();
        let what = "media errors of nvme0n1 rose from 0 to 2";
        let event = |kind: &str| EventRow {
            kind: kind.into(),
            json: json!({ "since_ns": 10, "until_ns": 20, "what": what }),
            ..EventRow::default()
        };
        let kept = without_spoiled(visits, &[event("disk_errors"), event("time")]);
        let statuses: Vec<_> = kept.iter().map(|(_, visit)| visit.status.as_str()).collect();
        assert_eq!(statuses, ["measured", "dropped", "failed", "measured"]);
        assert_eq!(kept[1].1.drop_reason.as_deref(), Some(what));
    }
}
