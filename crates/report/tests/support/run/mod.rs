//! Runs of the embedded database: one configuration, one visit, everything that the database itself saw.

mod works;

use super::{Busy, check, counters, experiment, facts, latencies, place, rng};
use record::json::{Value, json};
use record::{
    AshRow, AshTickRow, BufferStateRow, ConfigurationRow, Experiment, IntervalRow, PhaseRow, Reader,
    RedoStateRow, StatisticRow, VisitRow, WaitEventRow, Writer,
};
use std::path::Path;
use units::Rng;
use works::{Source, Work, files, works};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// What to make up.
pub struct Story {
    pub seed: u64,
    /// `commit`, `order-entry`, `growth`, `random-read`, `scan`.
    pub case: &'static str,
    /// Every wait is counted but this share, which gets lost.
    pub lost: f64,
    /// The database counted this many times as long as the window.
    pub longer: f64,
    /// The sampler did not run for a fifth of the time.
    pub blind: bool,
    /// All rates times this.
    pub speed: f64,
    /// An integrity rule failed.
    pub lie: bool,
    /// What the scheduler counted, in shares of DB time: CPU inside waits, and time on the run queue outside of them.
    pub scheduled: Option<(f64, f64)>,
}

impl Default for Story {
    fn default() -> Self {
        Self {
            seed: 3,
            case: "commit",
            lost: 0.0,
            longer: 1.0,
            blind: false,
            speed: 1.0,
            lie: false,
            scheduled: None,
        }
    }
}

/// Writes the story's record and opens it.
pub fn record(directory: &Path, name: &str, story: &Story) -> Reader {
    let path = place(directory, name);
    let asked = Experiment {
        case: Some(story.case.into()),
        command: format!("redoubt run {} /data --io setall", story.case),
        ..experiment("run", "/data")
    };
    let mut writer = Writer::create(&path, &asked).expect("create");
    facts(&mut writer, "vda", "ext4");
    writer
        .plan(&json!({ "data_bytes": 2u64 << 30, "block_bytes": 8192, "sessions": 10, "think": "none",
                       "durability": "O_DSYNC on every file" }))
        .expect("plan");
    let levels =
        vec![("io".into(), "setall".into(), "easy".into()), ("api".into(), "io_uring".into(), "easy".into())];
    let configuration = ConfigurationRow { name: "setall io_uring".into(), is_baseline: true, levels };
    let configuration = writer.configuration(&configuration).expect("configuration");
    let start_ns = 20 * SECOND;
    let visit_id = writer
        .visit(&VisitRow {
            block_id: None,
            position: 0,
            configuration_id: Some(configuration),
            started_utc: "2026-11-21T09:30:20Z".into(),
            start_ns,
        })
        .expect("visit");
    let mut scene = Scene {
        writer,
        rng: rng(story.seed),
        visit_id,
        now: start_ns,
        lsn: 40 << 20,
        checkpoint: 36 << 20,
        sequence: 7,
    };
    let mut busy = Vec::new();
    for (index, work) in works(story.case).iter().enumerate() {
        busy.push(scene.play(story, work, index == 0));
        scene.now += if story.case == "scan" { 0 } else { 300 * MS };
    }
    if story.case == "growth" {
        scene.rounds();
    }
    if story.case == "scan" {
        scene.now += 30 * SECOND;
    }
    let Scene { mut writer, now, .. } = scene;
    writer.end_visit(visit_id, "measured", None).expect("end");
    counters(&mut writer, "vda", &busy, now + SECOND);
    checks(&mut writer, story);
    writer.finish("finished").expect("finish");
    drop(writer);
    Reader::open(&path).expect("open")
}

fn checks(writer: &mut Writer, story: &Story) {
    let status = if story.lie { "fail" } else { "pass" };
    let evidence = if story.lie { "9 of 100,000 rows are missing." } else { "All rows are there." };
    check(
        writer,
        ("run", None, ""),
        ("D2", "rows hold what was written", "integrity", status),
        (None, "none missing", evidence),
    );
    check(
        writer,
        ("run", None, ""),
        ("S1", "size against caches", "context", "warn"),
        (Some(0.08), "file / memory", "The database is 2 GiB, memory 24 GiB: it fits into memory."),
    );
}

struct Scene {
    writer: Writer,
    rng: Rng,
    visit_id: i64,
    now: u64,
    lsn: u64,
    checkpoint: u64,
    sequence: u64,
}

/// Bytes of one redo group, and how many there are.
const GROUP: u64 = 64 << 20;
const GROUPS: u64 = 3;

impl Scene {
    /// Plays one workload: the phase, what the database counted, what was sampled.
    fn play(&mut self, story: &Story, work: &Work, headline: bool) -> Busy {
        let json = json!({ "title": work.title, "question": "", "metric": work.metric, "higher_is_better": true,
                           "sessions": work.sessions, "headline": headline });
        let workload_id = self.writer.workload(work.name, &json).expect("workload");
        let rate = work.rate * story.speed;
        let per_second = match work.metric {
            "MB/s" => rate * 1e6 / work.op_bytes as f64,
            "tx/min" => rate / 60.0,
            _ => rate,
        };
        let ops = per_second * work.seconds;
        let mean_ns = f64::from(work.sessions) * work.seconds * 1e9 / ops;
        let end_ns = self.now + (work.seconds * 1e9) as u64;
        let phase = self.phase(work, workload_id, rate, (ops, mean_ns), end_ns);
        let busy = Busy {
            phase,
            from: self.now,
            to: end_ns,
            ops: if work.reads_s > work.writes_s { work.reads_s } else { work.writes_s / 3.1 } * work.seconds,
            bytes: f64::max(work.reads_s * work.read_bytes as f64, work.writes_s * 8192.0) * work.seconds,
            reads: work.reads_s > work.writes_s,
            in_flight: f64::from(work.sessions) * 0.6,
            dirty: false,
        };
        if story.case == "scan" {
            self.passes(work);
            if !headline {
                return busy;
            }
        }
        self.counted(story, work, phase, ops);
        self.sampled(story, work);
        self.memory(work);
        // Scans take turns: all of them have the time of the first.
        self.now += if story.case == "scan" { 0 } else { (work.seconds * 1e9) as u64 };
        busy
    }

    /// The phase with intervals of a tenth of a second and all latencies, by kind.
    fn phase(
        &mut self,
        work: &Work,
        workload_id: i64,
        rate: f64,
        (ops, mean_ns): (f64, f64),
        end_ns: u64,
    ) -> i64 {
        let row = PhaseRow {
            visit_id: self.visit_id,
            workload_id,
            kind: "measure".into(),
            threads: work.sessions,
            in_flight: work.sessions,
            start_ns: self.now,
            end_ns,
            ops: ops as u64,
            bytes: ops as u64 * work.op_bytes,
            latency_sum_ns: (mean_ns * ops) as u64,
            seconds: work.seconds,
            rate,
            metric: work.metric.into(),
            steady_class: Some("flat".into()),
            proof: Some("O_RDWR|O_DSYNC|O_DIRECT".into()),
            ..PhaseRow::default()
        };
        let phase = self.writer.phase(&row).expect("phase");
        let slices = if work.kinds[0].0 == "scan" { 0 } else { (work.seconds * 10.0) as u64 };
        let mut rows: Vec<IntervalRow> = Vec::new();
        for i in 0..slices {
            let wave = 1.0 + 0.04 * (i as f64 / 120.0 * std::f64::consts::TAU).sin();
            for (name, share, times) in &work.kinds {
                let here = ops / slices as f64 * share * wave * (1.0 + 0.06 * self.rng.normal());
                let here = (here + self.rng.unit()).max(0.0) as u64;
                let (t_ns, lat_sum_ns) = (self.now + i * 100 * MS, (mean_ns * times * here as f64) as u64);
                let lat_max_ns = (mean_ns * times * 4.0) as u64;
                rows.push(IntervalRow {
                    t_ns,
                    op_class: (*name).into(),
                    ops: here,
                    bytes: here * work.op_bytes,
                    lat_sum_ns,
                    lat_max_ns,
                    errors: 0,
                });
            }
            // Kinds beside the whole, which stands under the workload's name.
            if let [.., _, last] = &rows[rows.len() - work.kinds.len()..] {
                let of_slice = rows.iter().rev().take(work.kinds.len());
                let sum = of_slice.fold((0, 0), |sum, row| (sum.0 + row.ops, sum.1 + row.bytes));
                let op_class = work.name.to_owned();
                rows.push(IntervalRow { op_class, ops: sum.0, bytes: sum.1, ..last.clone() });
            }
        }
        self.writer.intervals(phase, &rows).expect("intervals");
        for (name, share, times) in &work.kinds {
            let histogram = latencies(&mut self.rng, mean_ns * times, (ops * share) as u64, 0.5);
            self.writer.histogram(phase, name, &histogram.encode()).expect("histogram");
        }
        phase
    }

    fn counted(&mut self, story: &Story, work: &Work, phase: i64, ops: f64) {
        let db_time = f64::from(work.sessions) * work.seconds * 1e9 * 0.985 * story.longer;
        let mut rows: Vec<WaitEventRow> = Vec::new();
        for source in &work.waits {
            let kept = 1.0 - story.lost;
            rows.push(waited(&mut self.rng, true, *source, db_time * kept));
        }
        let sync = rows.iter().find(|r| r.event == "log file sync").cloned();
        if let Some(sync) = sync {
            for (part, share) in [("queue", 0.21), ("write", 0.71), ("wake-up", 0.08)] {
                let mean = sync.time_ns as f64 / sync.waits.unwrap_or(1) as f64 / 1e3 * share;
                let name: &'static str = Box::leak(format!("log file sync: {part}").into_boxed_str());
                rows.push(waited(&mut self.rng, true, (name, "Commit", share, mean), sync.time_ns as f64));
            }
        }
        let mut elapsed = 0.0;
        for (_, source) in &work.background {
            elapsed += work.seconds * 1e9 * source.2 * 1.1;
            let row = waited(&mut self.rng, false, *source, work.seconds * 1e9);
            match rows.iter_mut().find(|r| !r.foreground && r.event == row.event) {
                Some(sum) => {
                    sum.waits = sum.waits.zip(row.waits).map(|(a, b)| a + b);
                    sum.time_ns += row.time_ns;
                    sum.histogram_micro.iter_mut().zip(&row.histogram_micro).for_each(|(a, b)| *a += b);
                }
                None => rows.push(row),
            }
        }
        rows.push(WaitEventRow {
            wait_class: "Idle".into(),
            event: "rdbms ipc message".into(),
            time_ns: 1 << 40,
            waits: Some(9),
            ..rows[0].clone()
        });
        self.writer.of_phase(phase, &rows).expect("waits");
        let waited: f64 = work.waits.iter().map(|w| w.2).sum();
        let seconds = work.seconds;
        let commits = if work.redo_mb_s > 0.0 && work.metric != "MB/s" { ops } else { 1.0 };
        let (inside, queued) = story.scheduled.unwrap_or_default();
        let mut statistics = vec![
            ("time", "DB time", db_time),
            ("time", "DB CPU", db_time * (1.0 - waited + inside - queued)),
            ("time", "background elapsed time", elapsed),
            ("time", "background cpu time", elapsed * 0.1 / 1.1),
            ("system", "session logical reads", ops * 31.0 + work.reads_s * seconds * 8.0),
            ("system", "physical reads", work.reads_s * seconds * (work.read_bytes / 8192) as f64),
            ("system", "physical reads cache", work.reads_s * seconds),
            ("system", "physical read IO requests", work.reads_s * seconds),
            ("system", "physical writes", work.writes_s * seconds),
            ("system", "physical write IO requests", work.writes_s * seconds / 3.1),
            ("system", "redo size", work.redo_mb_s * 1e6 * seconds),
            ("system", "redo writes", commits / 4.6),
            ("system", "redo synch writes", commits),
            ("system", "user commits", commits),
            ("system", "table fetch by rowid", ops * 12.0),
            ("system", "leaf node splits", ops / 90.0),
        ];
        if story.scheduled.is_some() {
            statistics.push(("time", "OS Wait-cpu (latency) time", db_time * queued));
        }
        let row = |(class, name, value): &(&str, &str, f64)| StatisticRow {
            class: (*class).into(),
            name: (*name).into(),
            value: value.round(),
        };
        self.writer.of_phase(phase, &statistics.iter().map(row).collect::<Vec<_>>()).expect("statistics");
        self.writer.of_phase(phase, &files(work)).expect("files");
    }

    /// Samples every 100 ms. Every twelve seconds a checkpoint makes reads and commits slower for a while.
    fn sampled(&mut self, story: &Story, work: &Work) {
        let (mut ticks, mut rows) = (Vec::new(), Vec::new());
        let mut before = self.now;
        let ticks_planned = (work.seconds * 10.0) as u64;
        for i in 1..=ticks_planned {
            let planned_ns = self.now + i * 100 * MS;
            let gone = story.blind && i > ticks_planned * 2 / 5 && i < ticks_planned * 3 / 5;
            if gone {
                continue;
            }
            let t_ns = planned_ns + self.rng.below(3 * MS);
            let weight_ns = t_ns - before;
            before = t_ns;
            let wave = 1.0 + 0.12 * (i as f64 / 120.0 * std::f64::consts::TAU).sin();
            let from = rows.len();
            for session in 0..work.sessions {
                if let Some(row) = self.session(work, session, wave) {
                    rows.push(AshRow { t_ns, weight_ns, ..row });
                }
            }
            for (program, source) in &work.background {
                if self.rng.unit() < source.2 {
                    let waiting = self.rng.unit() < 0.9;
                    rows.push(AshRow {
                        t_ns,
                        weight_ns,
                        session: 100,
                        program: (*program).into(),
                        event: waiting.then(|| source.0.into()),
                        wait_class: if waiting { source.1 } else { "CPU" }.into(),
                        ..AshRow::default()
                    });
                }
            }
            let active = (rows.len() - from) as u32;
            ticks.push(AshTickRow { t_ns, planned_ns, cost_ns: 40_000, active });
        }
        self.writer.of_visit(self.visit_id, &ticks).expect("ticks");
        self.writer.of_visit(self.visit_id, &rows).expect("ash");
    }

    fn session(&mut self, work: &Work, session: u32, wave: f64) -> Option<AshRow> {
        if self.rng.unit() > 0.985 {
            return None;
        }
        let mut at = self.rng.unit();
        let kinds = self.rng.unit();
        let mut below = 0.0;
        let kind = work.kinds.iter().find(|kind| {
            below += kind.1;
            kinds < below
        });
        let mut row = AshRow {
            session,
            foreground: true,
            program: format!("{} {session}", work.name),
            wait_class: "CPU".into(),
            statement: kind.map(|kind| kind.0.to_owned()),
            ..AshRow::default()
        };
        for (index, (event, class, share, _)) in work.waits.iter().enumerate() {
            // What one gains the other loses, so that the means stay as counted.
            let share = share * if index == 0 { 2.0 - wave } else { 1.0 };
            if at < share {
                row.event = Some((*event).into());
                row.wait_class = (*class).into();
                return Some(row);
            }
            at -= share;
        }
        Some(row)
    }

    /// Buffers and redo every 250 ms.
    fn memory(&mut self, work: &Work) {
        const FRAMES: f64 = 65_536.0;
        let (mut buffers, mut redo) = (Vec::new(), Vec::new());
        for i in 0..(work.seconds * 4.0) as u64 {
            let t_ns = self.now + i * 250 * MS;
            let step = (work.redo_mb_s * 1e6 / 4.0 * (0.8 + 0.4 * self.rng.unit())) as u64;
            self.lsn += step;
            let behind = self.lsn - self.checkpoint;
            if behind > GROUP * 3 / 2 || i % 13 == 0 {
                self.checkpoint += behind / 3;
            }
            self.sequence = 7 + (self.lsn - (40 << 20)) / GROUP;
            let dirty = (FRAMES * 0.6).min((self.lsn - self.checkpoint) as f64 / 2_600.0).floor();
            let filled = (FRAMES * (0.2 + i as f64 / 40.0)).min(FRAMES - 300.0);
            let xcur = (filled - dirty).max(0.0).floor();
            let read = if work.reads_s > 0.0 { self.rng.below(24) as f64 } else { 0.0 };
            let states =
                [("free", FRAMES - dirty - xcur - read), ("xcur", xcur), ("dirty", dirty), ("read", read)];
            buffers.extend(states.map(|(state, n)| BufferStateRow {
                t_ns,
                state: state.into(),
                buffers: n as u64,
            }));
            redo.push(RedoStateRow {
                t_ns,
                current_group: 1 + (self.sequence % GROUPS) as u32,
                sequence: self.sequence,
                tail_lsn: self.lsn,
                durable_lsn: self.lsn - step / 3,
                checkpoint_lsn: self.checkpoint,
                active_groups: ((self.lsn - self.checkpoint) / GROUP) as u32,
                redo_bytes: GROUP * GROUPS,
            });
        }
        self.writer.of_visit(self.visit_id, &buffers).expect("buffers");
        self.writer.of_visit(self.visit_id, &redo).expect("redo");
    }

    fn passes(&mut self, work: &Work) {
        for pass in 1..=9u32 {
            let bytes = work.op_bytes as f64;
            let seconds = bytes / 1e6 / work.rate * (1.0 + 0.03 * self.rng.normal());
            let way = work.name.strip_prefix("scan ").expect("a way");
            let row = json!({ "way": way, "pass": pass, "seconds": seconds, "bytes": bytes });
            self.writer.event("scan", &row).expect("event");
        }
    }

    fn rounds(&mut self) {
        let mut bytes = 220u64 << 20;
        for round in 1..=5u64 {
            let added = bytes;
            bytes *= 2;
            let insert_s = added as f64 / 1e6 / (98.0 - round as f64 * 2.0);
            let cold_s = bytes as f64 / 1e6 / 640.0;
            let warm_s: Vec<f64> =
                (0..4).map(|i| bytes as f64 / 1e6 / (1_900.0 + f64::from(i) * 20.0)).collect();
            let row: Value = json!({ "round": round, "insert_s": insert_s, "insert_mb_s": added as f64 / 1e6 / insert_s,
                                     "cold_s": cold_s, "warm_s": warm_s, "segment_bytes": bytes });
            self.writer.event("round", &row).expect("event");
        }
    }
}

/// What a database counts in a phase of a comparison: one wait that takes what CPU leaves, and lost ones.
pub fn told(
    writer: &mut Writer,
    rng: &mut Rng,
    phase: i64,
    source: (&'static str, &'static str),
    time: &Told,
) {
    let whole = f64::from(time.sessions) * time.seconds * 1e9;
    let cpu = (time.cpu_ns_per_op * time.ops / whole).min(0.9);
    let mean_us = (whole * (1.0 - cpu) / time.ops / 1e3).max(1.0);
    let share = (1.0 - cpu) * (1.0 - time.lost);
    let seen = whole * time.looked.unwrap_or(1.0);
    let mut rows = vec![
        waited(rng, true, (source.0, source.1, share * 0.97, mean_us), seen),
        waited(rng, true, ("buffer busy waits", "Concurrency", share * 0.03, 60.0), seen),
    ];
    let row = |class: &str, name: &str, value| StatisticRow { class: class.into(), name: name.into(), value };
    let mut statistics = vec![row("time", "DB time", seen), row("time", "DB CPU", seen * cpu)];
    if time.looked.is_some() {
        rows.push(waited(rng, false, ("log file parallel write", "System I/O", BACKGROUND, 100.0), whole));
        for row in &mut rows {
            (row.waits, row.histogram_micro) = (None, Vec::new());
        }
        statistics.push(row("time", "background cpu time", 0.0));
        statistics.push(row("sampled", "looks", time.seconds * 10.0));
    }
    writer.of_phase(phase, &rows).expect("waits");
    writer.of_phase(phase, &statistics).expect("statistics");
}

/// Time of background processes where looks tell of it, a share of the users' time.
pub const BACKGROUND: f64 = 0.07;

/// Of a phase of a comparison.
pub struct Told {
    pub seconds: f64,
    pub sessions: u32,
    pub ops: f64,
    pub cpu_ns_per_op: f64,
    pub lost: f64,
    /// A server, which counts nothing: of the users' time looks saw this share.
    pub looked: Option<f64>,
}

/// Waits of one event that add up to its share of `whole` nanoseconds, log-normal around their mean.
fn waited(
    rng: &mut Rng,
    foreground: bool,
    (event, class, share, mean_us): Source,
    whole: f64,
) -> WaitEventRow {
    let waits = (whole * share / (mean_us * 1e3)).max(1.0);
    let mut histogram_micro = vec![0u64; 34];
    let draws = (waits as u64).clamp(1, 3_000);
    for draw in 0..draws {
        let tail = if rng.unit() < 0.01 { 7.0 } else { 1.0 };
        let us = mean_us * (0.5 * rng.normal() - 0.125).exp() * tail;
        let bucket = (us.max(0.5).log2().floor() as i32 + 1).clamp(0, 33) as usize;
        let waits = waits as u64;
        histogram_micro[bucket] += waits * (draw + 1) / draws - waits * draw / draws;
    }
    WaitEventRow {
        foreground,
        event: event.into(),
        wait_class: class.into(),
        waits: Some(histogram_micro.iter().sum()),
        timeouts: 0,
        time_ns: (whole * share) as u64,
        histogram_micro,
    }
}
