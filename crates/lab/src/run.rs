//! One case under one configuration, with all that the database saw: `redoubt run`.
//!
//! The journey of [`run`]: make a database in a workspace of ours → fill it (not measured) → open it with the configuration →
//! play the case while sessions, buffers and redo are sampled → take down waits, statistics and files → shut down, remove.

mod ground;

use crate::bench::{Bench, Finished, Purpose};
use crate::compare::configuration::Configuration;
use crate::control::Control;
use crate::database::drive::{self, Pace, Performance};
use crate::database::evidence::Observer;
use crate::database::interval::{Interval, Moment};
use crate::database::order_entry::{self, Scale, Think};
use crate::database::random_read::{self, Shape};
use crate::database::{Flash, Sizes, commit, growth, scan};
use crate::evidence::{check_row, interval_row, trial_row};
use crate::factor::{Factor, FileClass, Setup, Storage};
use crate::stage::Proof;
use crate::workload::Trial;
use crate::{LabError, advise, compare, export, server, verify};
use engine::{AlterSystem, Instance, Session};
use host::counters::{Thread, Watch};
use record::json::{Value, json};
use record::{ConfigurationRow, PhaseRow, VisitRow};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;
use units::{Bytes, Nanos, Seed, clock};

/// A case that can be run by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// A table doubles itself, and is counted cold and warm.
    Growth,
    /// Sessions insert and commit row by row.
    Commit,
    /// Five kinds of transactions of a wholesale supplier.
    OrderEntry,
    /// Tables scanned in three ways.
    Scan,
    /// Single rows by address, from a table that the cache does not hold.
    RandomRead,
}

impl Case {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Growth, Self::Commit, Self::OrderEntry, Self::Scan, Self::RandomRead];

    /// As it is typed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Growth => "growth",
            Self::Commit => "commit",
            Self::OrderEntry => "order-entry",
            Self::Scan => "scan",
            Self::RandomRead => "random-read",
        }
    }

    /// The question that it answers.
    pub const fn question(self) -> &'static str {
        match self {
            Self::Growth => "How fast does a table grow, and how fast is it counted, cold and warm?",
            Self::Commit => "How many rows per second can sessions insert when each row is committed?",
            Self::OrderEntry => {
                "How many business transactions per minute does this storage carry, and how long do they take?"
            }
            Self::Scan => {
                "How fast is a large table scanned past the cache, into the cache, and from the cache?"
            }
            Self::RandomRead => {
                "How many single blocks per second does the database read that its cache does not hold?"
            }
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Case {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(Self::name).join(", ");
        Self::ALL
            .into_iter()
            .find(|case| case.name() == text)
            .ok_or_else(|| format!("{text:?} is not a case; type one of: {}", names()))
    }
}

/// What a case runs on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// The embedded database.
    #[default]
    Engine,
    /// A private server of a real database.
    Server {
        /// Which product.
        kind: server::Kind,
        /// The folder of its programs; none: found.
        programs: Option<PathBuf>,
    },
    /// A server that was there before.
    Existing {
        /// The way to it.
        address: Box<server::url::Address>,
        /// The user lets us make a schema of our own.
        allow_writes: bool,
    },
}

/// What the user asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which case.
    pub case: Case,
    /// On what.
    pub target: Target,
    /// The directory on the storage in question.
    pub directory: PathBuf,
    /// Length of the measured window, seconds; cases with a fixed amount of work (growth, scan) take what they need.
    pub seconds: f64,
    /// Concurrent sessions.
    pub sessions: u32,
    /// I/O mode and API.
    pub configuration: Configuration,
    /// Size relative to the article or specification: 1 is theirs.
    pub scale: f64,
    /// Buffer cache; `None`: chosen so that the data does not fit.
    pub cache: Option<Bytes>,
    /// Database block.
    pub block: Bytes,
    /// Size of a redo group.
    pub redo: Bytes,
    /// Transactions per second over all sessions; `None`: a closed loop.
    pub rate: Option<f64>,
    /// How long users think, in `order-entry`.
    pub think: Think,
    /// Where a flash cache lies, its size and what is let in, as levels of `place.flash`, `flash_size`, `flash_policy`.
    pub flash: Setup,
    /// Parameters of the database, by name.
    pub parameters: Vec<(String, String)>,
    /// The longest that a server may say nothing.
    pub patience: Nanos,
    /// Read back at the end what was written.
    pub verify: bool,
    /// Keep block references, for `redoubt advise flash`.
    pub references: bool,
    /// Where chance comes from.
    pub seed: Seed,
    /// The command as typed.
    pub command: String,
    /// Where the record goes; `None`: the usual place.
    pub record_path: Option<PathBuf>,
}

impl Options {
    /// What its configuration is called: on an export the version of NFS, as no mode and no API of the kernel has a part in it.
    pub(crate) fn name(&self) -> String {
        export::version(&self.directory)
            .map_or_else(|| self.configuration.name(), |version| version.title().to_owned())
    }
}

/// Slice of the time lines.
pub(crate) const SLICE: Nanos = Nanos::millis(250);
/// Fewest scans of each way.
pub(crate) const SCANS_MIN: usize = 3;
/// Block references kept in memory, 8 bytes each.
const REFERENCES_MAX: usize = 1 << 20;
/// Before the window, not measured.
pub(crate) const SETTLE: Nanos = Nanos::millis(500);
/// Table of `random-read` at scale 1.
const RANDOM_READ_BYTES: u64 = 8 << 30;
/// Table of `scan` at scale 1.
const SCAN_BYTES: u64 = 3_840 << 20;
/// Warehouses of `order-entry` at scale 1, each about 100 MiB: the 30 GB of the study.
const WAREHOUSES: f64 = 300.0;

/// Runs the case; returns where the record is.
///
/// # Errors
/// What made the run impossible; its record says the same. Ctrl-C is no error.
pub fn run(options: &Options, control: &mut Control<'_>) -> Result<Finished, LabError> {
    check(options)?;
    let plan = Plan::of(options)?;
    // Before anything of ours is made: does it answer, and does it take writes?
    let existing = match &options.target {
        Target::Existing { address, .. } => Some((address, server::visitor::look(address)?)),
        _ => None,
    };
    let directory = existing.as_ref().and_then(|(_, facts)| facts.data.clone());
    let directory = directory.unwrap_or_else(|| options.directory.clone());
    control.progress.say(&format!(
        "{}: {} of data{}",
        options.case,
        plan.data,
        match existing {
            Some(_) => ".".to_owned(),
            None => format!(
                ", cache {}, in a directory of our own in {}, removed at the end.",
                plan.sizes.cache,
                options.directory.display()
            ),
        }
    ));
    if options.verify {
        control.progress.say(&verify::price(plan.sizes.total(), "at the end"));
    }
    let purpose = Purpose {
        kind: "run",
        case: Some(options.case.name()),
        command: options.command.clone(),
        seed: options.seed,
        budget_seconds: options.seconds,
        record_path: options.record_path.clone(),
        workspace_in: existing.is_none().then(|| options.directory.clone()),
        is_server_ours: false,
    };
    let mut bench = Bench::open(&directory, purpose)?;
    let result = match &options.target {
        Target::Engine => ground::measure(options, &plan, &mut bench, control),
        Target::Server { kind, programs } => {
            server::run::measure(options, *kind, programs.as_deref(), &plan, &mut bench, control)
        }
        Target::Existing { .. } => match &existing {
            Some((address, facts)) => {
                server::visitor::measure(options, address, facts, &plan, &mut bench, control)
            }
            None => Ok(()),
        },
    };
    bench.finish(result)
}

fn check(options: &Options) -> Result<(), LabError> {
    let refuse = |text: String| Err(LabError::Target(text));
    if !(0.5..=86_400.0).contains(&options.seconds) {
        return refuse(format!("--minutes {} is out of range; type 0.01 to 1440", options.seconds / 60.0));
    }
    if !(options.scale > 0.0 && options.scale <= 100.0) {
        return refuse(format!(
            "--scale {} is out of range; type a number above 0, up to 100",
            options.scale
        ));
    }
    if options.rate.is_some_and(|rate| !(rate > 0.0 && rate.is_finite())) {
        return refuse("--rate is transactions per second; type a number above 0".into());
    }
    if options.references && options.target != Target::Engine {
        return refuse(
            "--references come from the embedded database; leave --target out, or import a trace of the server's reads: \
             redoubt advise flash --trace FILE"
                .into(),
        );
    }
    if options.verify && options.target != Target::Engine {
        return refuse(
            "--verify is of the embedded database, which knows what it wrote where: leave --target out, or --verify".into(),
        );
    }
    if options.flash.flash().is_some() && options.target != Target::Engine {
        return refuse("--flash is of the embedded database: leave --target out, or --flash".into());
    }
    if export::is_export(&options.directory) && matches!(options.target, Target::Server { .. }) {
        return refuse(
            "a database server writes through the kernel: mount the export and give the directory with --dir. On an export itself runs the \
             embedded database: leave --target out"
                .into(),
        );
    }
    if let Target::Existing { address, allow_writes } = &options.target {
        server::visitor::check(options, address, *allow_writes)?;
    }
    crate::workload::commit::check_sessions(options.sessions)
}

/// Sizes that follow from the options.
pub(crate) struct Plan {
    pub(crate) sizes: Sizes,
    /// What the case works on.
    pub(crate) data: Bytes,
    pub(crate) order_entry: Scale,
}

impl Plan {
    fn of(options: &Options) -> Result<Self, LabError> {
        let scaled = |bytes: u64| ((bytes as f64 * options.scale) as u64).max(4 << 20);
        let warehouses = (WAREHOUSES * options.scale).round() as i64;
        let order_entry = if warehouses >= 1 {
            Scale::spec(warehouses)
        } else {
            Scale::small(((WAREHOUSES * 10.0 * options.scale).round() as i64).max(1))
        };
        let cache_for = |data: u64| options.cache.unwrap_or(Bytes((data / 4).clamp(16 << 20, 512 << 20)));
        // What is worked on, and what the files will grow to.
        let (data, files) = match options.case {
            Case::Growth => {
                let first = scaled(growth::ARTICLE_BYTES);
                (first, first + first * (1 << growth::ROUNDS) * 13 / 10)
            }
            Case::Commit => (0, 64 << 20),
            Case::OrderEntry => (order_entry.bytes(), order_entry.bytes() * 3 / 2),
            Case::Scan => {
                let bytes = scaled(SCAN_BYTES);
                (bytes, (bytes + scan::cached_bytes(bytes, cache_for(bytes))) * 13 / 10)
            }
            Case::RandomRead => (scaled(RANDOM_READ_BYTES), scaled(RANDOM_READ_BYTES) * 11 / 10),
        };
        let sizes = Sizes {
            block: options.block,
            cache: cache_for(data),
            data: Bytes(files.clamp(32 << 20, 1 << 30)),
            undo: Bytes::mib(64),
            redo: options.redo,
            redo_groups: 3,
            flash: options
                .flash
                .flash()
                .map_or(Bytes(0), |_| options.flash.flash_size.unwrap_or(Bytes(files))),
        };
        // What lies elsewhere needs no room here.
        let elsewhere = options.flash.flash().is_some_and(|place| *place != Storage::Here);
        let flash = if elsewhere { sizes.flash.0 } else { 0 };
        let needed = files.max(sizes.data.0) + sizes.total().0 - sizes.data.0 - flash;
        let free = export::free_space(&options.directory)?;
        if needed as f64 > free as f64 * 0.8 {
            return Err(LabError::Target(format!(
                "{} has {} free; this run needs {} and leaves at least a fifth of the space alone. Free some space, give \
                 another directory with --dir, or type a smaller --scale than {}.",
                options.directory.display(),
                Bytes(free),
                Bytes(needed),
                options.scale
            )));
        }
        Ok(Self { sizes, data: Bytes(data), order_entry })
    }
}

/// A run while the instance is up.
struct Stay<'a> {
    options: &'a Options,
    plan: &'a Plan,
    instance: &'a Instance,
    /// The flash cache that was asked for.
    flash: Option<&'a Flash>,
}

impl Stay<'_> {
    fn visit(&self, proofs: &[Proof], bench: &mut Bench, control: &mut Control<'_>) -> Result<(), LabError> {
        let flash = &self.options.flash;
        let of_flash = [Factor::Place(FileClass::Flash), Factor::FlashSize, Factor::FlashPolicy];
        let of_flash = flash.flash().map(|_| flash.levels(&of_flash)).unwrap_or_default();
        let of_flash = of_flash.into_iter().map(|(f, level)| (f.to_string(), level, f.cost().to_string()));
        let name = self.options.name();
        let of_way = match export::version(&self.options.directory) {
            Some(version) => vec![("nfs".into(), version.to_string(), "medium".into())],
            None => vec![
                ("io".into(), self.options.configuration.mode.to_string(), "easy".into()),
                ("api".into(), self.options.configuration.api.to_string(), "easy".into()),
            ],
        };
        let configuration = bench.writer.configuration(&ConfigurationRow {
            name: name.clone(),
            is_baseline: true,
            levels: of_flash.chain(of_way).collect(),
        })?;
        bench.step(control, "filling the database");
        let prepared = self.prepare(control.cancel)?;
        compare::stop_if_cancelled(control)?;
        let visit = bench.writer.visit(&VisitRow {
            block_id: None,
            position: 0,
            configuration_id: Some(configuration),
            started_utc: clock::utc(),
            start_ns: clock::now().0,
        })?;
        for Proof { what, value } in proofs {
            bench.writer.event(
                "proof",
                &json!({ "visit": visit, "configuration": name, "what": what, "value": value }),
            )?;
        }
        let mut observer = Observer::start(self.instance);
        let references = self.instance.core.cache.references();
        if self.options.references {
            references.start(self.options.seed.part(9).0, REFERENCES_MAX);
        }
        let began = clock::now();
        let result = self.play(prepared, visit, bench, control);
        if let Some(kept) = references.stop() {
            let source = format!("run {}", self.options.case);
            let sizes = &self.plan.sizes;
            bench.writer.references(&advise::references::row(source, sizes.block, sizes.cache, &kept))?;
        }
        observer.store(visit, &mut bench.writer)?;
        drop(observer);
        // One that gave up is told, and the run goes on as the sessions do.
        if let Some(check) = self.flash.map(|flash| flash.stayed_on(self.instance, began)) {
            bench.writer.check(&check_row("visit", Some(visit), &self.options.case.to_string(), &check))?;
        }
        match &result {
            Ok(()) => bench.end_visit(visit, "measured", None)?,
            Err(LabError::Cancelled) => bench.end_visit(visit, "dropped", Some("stopped on request"))?,
            Err(error) => bench.end_visit(visit, "failed", Some(&error.to_string()))?,
        }
        result
    }

    /// Fills the database; what the case needs to know of it afterwards.
    fn prepare(&self, cancel: &AtomicBool) -> Result<Prepared, LabError> {
        let (options, plan) = (self.options, self.plan);
        let mut session = self.instance.session("prepare")?;
        let seed = options.seed.part(7);
        let prepared = match options.case {
            Case::Growth => {
                growth::prepare(&mut session, plan.data.0, seed, cancel)?;
                Prepared::Nothing
            }
            Case::Commit => Prepared::Nothing,
            Case::OrderEntry => {
                order_entry::prepare(&mut session, plan.order_entry, seed, cancel)?;
                Prepared::Nothing
            }
            Case::Scan => {
                Prepared::Scan(scan::prepare(&mut session, plan.data.0, plan.sizes.cache, seed, cancel)?)
            }
            Case::RandomRead => {
                random_read::prepare(
                    &mut session,
                    plan.data.0 / plan.sizes.block.0,
                    plan.sizes.block,
                    seed,
                    cancel,
                )?;
                Prepared::Rows(random_read::open(&mut session)?)
            }
        };
        session.alter_system(&AlterSystem::Checkpoint)?;
        session.alter_system(&AlterSystem::FlushBufferCache)?;
        session.alter_system(&AlterSystem::FlushFlashCache)?;
        Ok(prepared)
    }

    fn play(
        &self,
        prepared: Prepared,
        visit: i64,
        bench: &mut Bench,
        control: &mut Control<'_>,
    ) -> Result<(), LabError> {
        match (self.options.case, prepared) {
            (Case::Growth, _) => self.growth(visit, bench, control),
            (Case::Scan, Prepared::Scan(rows)) => self.scan(rows, visit, bench, control),
            (case, prepared) => {
                bench.set_forecast(bench.elapsed_seconds() + self.options.seconds + 2.0);
                bench.step(control, &format!("{case}, {} sessions", self.options.sessions));
                let watch = bench.watch();
                let performance = self.timed(case, &prepared, &watch, control)?;
                self.store_performance(visit, case, &performance, bench)
            }
        }
    }

    fn timed(
        &self,
        case: Case,
        prepared: &Prepared,
        watch: &Watch,
        control: &Control<'_>,
    ) -> Result<Performance, LabError> {
        let options = self.options;
        let terms = drive::Terms {
            settle: SETTLE,
            measure: Nanos::secs(options.seconds),
            slice: SLICE,
            pace: options.rate.map_or(Pace::Closed, |rate| Pace::Open { rate }),
            seed: options.seed.part(8),
            cancel: control.cancel,
            watch,
        };
        match (case, prepared) {
            (Case::OrderEntry, _) => {
                order_entry::run(self.instance, options.sessions, options.think, true, terms)
            }
            (Case::RandomRead, Prepared::Rows(rows)) => {
                let shape = Shape { sessions: options.sessions, batch: 1, span: 0..rows.count() };
                random_read::run(self.instance, rows, &shape, terms)
            }
            _ => commit::run(self.instance, options.sessions, terms),
        }
    }

    fn store_performance(
        &self,
        visit: i64,
        case: Case,
        performance: &Performance,
        bench: &mut Bench,
    ) -> Result<(), LabError> {
        let (classes, metric): (&[&str], &str) = match case {
            Case::OrderEntry => (&order_entry::CLASSES, "tx/min"),
            Case::RandomRead => (&random_read::CLASSES, "reads/s"),
            _ => (&commit::CLASSES, "commits/s"),
        };
        let trial = &performance.trial;
        let rate = if metric == "tx/min" { trial.rate() * 60.0 } else { trial.rate() };
        let sessions = self.options.sessions;
        let phase =
            self.phase(visit, case.name(), trial, rate, metric, sessions, &performance.interval, bench)?;
        let intervals: Vec<_> = trial.slices.iter().map(|slice| interval_row(case.name(), slice)).collect();
        bench.writer.intervals(phase, &intervals)?;
        for (class, trial) in classes.iter().zip(&performance.classes) {
            bench.writer.histogram(phase, class, &trial.histogram.encode())?;
            if classes.len() > 1 {
                let rows: Vec<_> = trial.slices.iter().map(|s| interval_row(class, s)).collect();
                bench.writer.intervals(phase, &rows)?;
            }
        }
        self.conclude(phase, case.name(), &performance.interval, bench)
    }

    fn growth(&self, visit: i64, bench: &mut Bench, control: &mut Control<'_>) -> Result<(), LabError> {
        let mut session = self.instance.session("growth")?;
        let (at, began) = (clock::now(), self.moment(bench));
        let grown = growth::run(&mut session, growth::ROUNDS, control.cancel, &mut |what| {
            control.progress.step(what, bench.elapsed_seconds(), 0.0);
        })?;
        let interval = began.until_now(self.instance, &[Thread::this()], &bench.watch());
        let last = grown.rounds.last().map_or(grown.first_bytes, |round| round.segment_bytes);
        let inserting: Nanos = grown.rounds.iter().fold(Nanos(0), |sum, round| sum + round.insert);
        let bytes = last - grown.first_bytes;
        let inserts: Vec<_> = grown.rounds.iter().map(|round| round.insert).collect();
        let trial = Trial::whole(at..clock::now(), &inserts, bytes);
        store_rounds(&grown, bench)?;
        let rate = bytes as f64 / 1e6 / inserting.as_secs().max(1e-9);
        let phase = self.phase(visit, "growth", &trial, rate, "MB/s", 1, &interval, bench)?;
        bench.writer.histogram(phase, "insert", &trial.histogram.encode())?;
        self.conclude(phase, "growth", &interval, bench)
    }

    fn scan(
        &self,
        rows: scan::Rows,
        visit: i64,
        bench: &mut Bench,
        control: &mut Control<'_>,
    ) -> Result<(), LabError> {
        let mut session = self.instance.session("scan")?;
        bench.set_forecast(bench.elapsed_seconds() + self.options.seconds);
        for way in scan::Way::ALL {
            self.scan_by(way, rows, &mut session, visit, bench, control)?;
        }
        Ok(())
    }

    /// All passes of one way, one after the other: its waits, files and device counters are its own.
    fn scan_by(
        &self,
        way: scan::Way,
        rows: scan::Rows,
        session: &mut Session,
        visit: i64,
        bench: &mut Bench,
        control: &mut Control<'_>,
    ) -> Result<(), LabError> {
        scan::warm(session, way, rows, control.cancel)?;
        let (at, began) = (clock::now(), self.moment(bench));
        let until = at + Nanos::secs(self.options.seconds / scan::Way::ALL.len() as f64);
        let mut scans: Vec<scan::Scanned> = Vec::new();
        while scans.len() < SCANS_MIN || clock::now() < until {
            let pass = scans.len() + 1;
            bench.step(control, &format!("scan {way}, {pass}"));
            let scanned = scan::run(session, way, rows, control.cancel)?;
            bench.writer.event(
                "scan",
                &json!({ "way": way.to_string(), "pass": pass, "seconds": scanned.elapsed.as_secs(),
                         "bytes": scanned.bytes, "rows": scanned.rows }),
            )?;
            scans.push(scanned);
        }
        let interval = began.until_now(self.instance, &[Thread::this()], &bench.watch());
        let bytes: u64 = scans.iter().map(|s| s.bytes).sum();
        let elapsed = scans.iter().fold(Nanos(0), |sum, s| sum + s.elapsed);
        let latencies: Vec<_> = scans.iter().map(|scan| scan.elapsed).collect();
        let trial = Trial::whole(at..clock::now(), &latencies, bytes);
        let rate = bytes as f64 / 1e6 / elapsed.as_secs().max(1e-9);
        let name = format!("scan {way}");
        let phase = self.phase(visit, &name, &trial, rate, "MB/s", 1, &interval, bench)?;
        bench.writer.histogram(phase, "scan", &trial.histogram.encode())?;
        self.conclude(phase, &name, &interval, bench)
    }

    /// The counters now, of a case that one session runs: this thread.
    fn moment(&self, bench: &Bench) -> Moment {
        Moment::of(self.instance, &[Thread::this()], &bench.watch())
    }

    #[expect(clippy::too_many_arguments, reason = "one row of the record, filled in one place")]
    fn phase(
        &self,
        visit: i64,
        name: &str,
        trial: &Trial,
        rate: f64,
        metric: &str,
        sessions: u32,
        interval: &Interval,
        bench: &mut Bench,
    ) -> Result<i64, LabError> {
        let about: Value = json!({ "title": name, "question": self.options.case.question(), "metric": metric,
                                   "higher_is_better": true, "sessions": sessions, "headline": true });
        let workload = bench.writer.workload(name, &about)?;
        let (delta, files) = (interval.machine(), interval.files().unwrap_or_default());
        let steady = (trial.slices.len() >= 4)
            .then(|| stats::steady::assess(&trial.slice_rates(), 0.1, crate::DELTA).class.to_string());
        Ok(bench.writer.phase(&PhaseRow {
            threads: sessions,
            in_flight: sessions,
            rate,
            metric: metric.into(),
            steady_class: steady,
            requests: Some(files.reads + files.writes),
            device_ops: delta.device_reads.zip(delta.device_writes).map(|(r, w)| r + w),
            device_bytes: delta.device_read_bytes.zip(delta.device_write_bytes).map(|(r, w)| r + w),
            ..trial_row(visit, workload, trial)
        })?)
    }

    /// Waits, statistics, files and doubts of a phase.
    fn conclude(
        &self,
        phase: i64,
        name: &str,
        interval: &Interval,
        bench: &mut Bench,
    ) -> Result<(), LabError> {
        interval.store(phase, &mut bench.writer)?;
        for check in crate::evidence::machine_checks(&interval.machine()) {
            bench.writer.check(&check_row("phase", Some(phase), name, &check))?;
        }
        Ok(())
    }
}

/// Writes the rounds of `growth` down as events.
///
/// # Errors
/// When the record cannot be written.
pub(crate) fn store_rounds(grown: &growth::Growth, bench: &mut Bench) -> Result<(), LabError> {
    for round in &grown.rounds {
        let seconds = |spans: &[Nanos]| spans.iter().map(|n| n.as_secs()).collect::<Vec<_>>();
        let added = bytes_of(grown, round.number);
        bench.writer.event(
            "round",
            &json!({ "round": round.number, "insert_s": round.insert.as_secs(), "rows": round.rows,
                     "insert_mb_s": added as f64 / 1e6 / round.insert.as_secs().max(1e-9),
                     "cold_s": round.counts[0].as_secs(), "warm_s": seconds(&round.counts[1..]),
                     "segment_bytes": round.segment_bytes }),
        )?;
    }
    bench
        .writer
        .event("create", &json!({ "seconds": grown.create.as_secs(), "segment_bytes": grown.first_bytes }))?;
    Ok(())
}

/// Bytes that a round added.
fn bytes_of(grown: &growth::Growth, round: u32) -> u64 {
    let before = match round {
        1 => grown.first_bytes,
        _ => grown.rounds[round as usize - 2].segment_bytes,
    };
    grown.rounds[round as usize - 1].segment_bytes - before
}

/// What [`Stay::prepare`] left for the case.
enum Prepared {
    Nothing,
    Scan(scan::Rows),
    Rows(random_read::Rows),
}
