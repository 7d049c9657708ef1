//! Configurations put side by side: which I/O mode, file system, scheduler, placement … should this database use?
//!
//! The journey of [`run`]: choose the configurations that can be had ([`design`]) → make what stands for the whole run
//! (`ground`) → pilot: what does a visit cost, how noisy is it (`pilot`)? → plan, stored before the first visit ([`plan`]) →
//! randomised blocks, each visiting every configuration (`blocks`) → checks over all trials of a configuration
//! (`conclude`). The verdict itself is computed from the record. [`preview`] goes as far as the plan and changes nothing.

mod blocks;
pub mod case;
mod conclude;
pub mod configuration;
mod database;
pub mod design;
mod devices;
mod embedded;
pub mod experiment;
mod fallen;
mod ground;
mod nodes;
mod noise;
mod options;
mod pilot;
pub mod plan;
pub mod preview;
mod proof;
mod served;
mod stay;
pub mod visit;
pub mod workloads;

pub use case::Case;
pub use options::{Mix, Options, TargetKind};

use crate::LabError;
use crate::bench::{Bench, Finished, Purpose};
use crate::control::Control;
use crate::export;
use crate::factor::Setup;
use crate::stage::{self, Stage};
use design::{Design, LeftOut};
use embedded::Embedded;
use ground::{Contents, Ground, Scene};
use io::{Access, File};
use plan::Plan;
use record::json::json;
use stay::{Stay, Terms};
use units::{Bytes, Nanos};

/// Size of the data file when the user names none.
const SIZE_DEFAULT: Bytes = Bytes::gib(1);
/// The same for a database, whose table has to be inserted row by row.
const SIZE_DEFAULT_ENGINE: Bytes = Bytes::mib(256);
/// The same where every visit makes everything anew.
const SIZE_DEFAULT_FRESH: Bytes = Bytes::mib(64);
/// Smallest data file that says anything: cold reads must not run out of unread blocks at once.
const SIZE_MIN: Bytes = Bytes::mib(64);
const REDO_BYTES: Bytes = Bytes::mib(64);
/// A file to try open flags on.
const PROBE_BYTES: Bytes = Bytes::mib(1);
/// Hot region of `read-cached`.
const CACHED_BYTES: Bytes = Bytes::mib(32);
/// Share of the free space that a run may fill.
const FREE_SHARE_MAX: f64 = 0.8;
/// What growth may write per visit, as a share of the data file.
const GROWTH_SHARE: u64 = 4;
/// Log block unless a mode needs a larger one, bytes.
const LOG_BLOCK_BYTES: u32 = 4096;

/// Compares; returns where the record is.
///
/// # Errors
/// What made the run impossible; its record, if one was begun, says the same. Ctrl-C is no error.
pub fn run(options: &Options, control: &mut Control<'_>) -> Result<Finished, LabError> {
    options.check()?;
    let design = Design::of(options)?;
    let size = choose_size(options, &design)?;
    if let Some(line) = verifying(options, &design, size)? {
        control.progress.say(&line);
    }
    let minutes = preview::minutes(options, &design);
    let planned = preview::forecast(options, &design, size).1;
    control.progress.say(&format!(
        "About {}; {} of test data in a directory of our own in {}, removed at the end.",
        Nanos::secs(planned),
        disk(options, &design, size),
        options.directory.display()
    ));
    let purpose = Purpose {
        kind: "compare",
        case: Some(options.case.name()),
        command: options.command.clone(),
        seed: options.seed,
        budget_seconds: minutes * 60.0,
        record_path: options.record_path.clone(),
        workspace_in: Some(options.directory.clone()),
        is_server_ours: options.nodes.own().is_some(),
    };
    let mut bench = Bench::open(&options.directory, purpose)?;
    let result = Comparison::prepare(options, design, size, minutes, &mut bench, control)
        .and_then(|comparison| comparison.play(&mut bench, control))
        .and_then(|foreseen| account(planned, foreseen, &mut bench, control));
    bench.finish(result)
}

/// What `--verify` means here, in a sentence; none without it.
///
/// # Errors
/// A target that cannot say what it wrote where.
fn verifying(options: &Options, design: &Design, size: Bytes) -> Result<Option<String>, LabError> {
    if !options.verify {
        return Ok(None);
    }
    let stranger = design.candidates.iter().find(|candidate| candidate.setup.target.server().is_some());
    if let Some(candidate) = stranger {
        return Err(LabError::Target(format!(
            "--verify is of the embedded database and of plain files, where it is known what was written where; {} is a server: leave --target out, or --verify",
            candidate.name
        )));
    }
    let sizes = design.candidates.iter().map(|c| Embedded::sizes(size, &c.setup).total());
    let most = sizes.max().unwrap_or_default();
    Ok(Some(crate::verify::price(most, "after each visit")))
}

/// How long it took against what was said before anything was done (`planned`) and after the pilot (`foreseen`), seconds.
fn account(
    planned: f64,
    foreseen: f64,
    bench: &mut Bench,
    control: &mut Control<'_>,
) -> Result<(), LabError> {
    let took = bench.elapsed_seconds();
    bench.writer.event(
        "time",
        &json!({ "planned_seconds": planned, "forecast_seconds": foreseen, "measured_seconds": took }),
    )?;
    control.progress.say(&format!(
        "Planned {} ({} after the pilot), took {}.",
        Nanos::secs(planned),
        Nanos::secs(foreseen),
        Nanos::secs(took)
    ));
    Ok(())
}

/// What the files of a comparison take on disk, at most.
fn disk(options: &Options, design: &Design, size: Bytes) -> Bytes {
    let contents = Contents::of(options, &design.workloads, size);
    let setups = || design.candidates.iter().map(|c| &c.setup);
    // Loop files stay for the next visit that has them; files in a directory go with their visit.
    let in_directories = setups().filter(|setup| stage::disk(setup, &contents.sizes(setup)).0 == 0);
    let files = in_directories.map(|setup| contents.sizes(setup).total()).max().unwrap_or_default();
    let devices = stage::disk_of_all(setups().map(|setup| (setup.clone(), contents.room(setup))));
    Bytes(files.0 + devices.0)
}

/// The data file's size, foreseen against the free space before anything is written.
fn choose_size(options: &Options, design: &Design) -> Result<Bytes, LabError> {
    if !export::is_export(&options.directory) {
        host::workspace::can_create(&options.directory)?;
    }
    let free = export::free_space(&options.directory)?;
    let room = ((free as f64 * FREE_SHARE_MAX) as u64).saturating_sub(REDO_BYTES.0);
    let needs = |size: u64| disk(options, design, Bytes(size)).0.saturating_sub(REDO_BYTES.0);
    let size = match options.size {
        Some(size) if size < SIZE_MIN => {
            return Err(LabError::Target(format!(
                "--size {size} is too small: cold reads would run out of unread blocks. Type at least {SIZE_MIN}."
            )));
        }
        Some(size) => size.0,
        None if design.fresh() => SIZE_DEFAULT_FRESH.0,
        None if options.case.target(options.target) != TargetKind::Files => SIZE_DEFAULT_ENGINE.0,
        None => SIZE_DEFAULT.0.min(room * GROWTH_SHARE / (GROWTH_SHARE + 1)).max(SIZE_MIN.0),
    };
    let size = size - size % u64::from(visit::BULK_BYTES);
    if needs(size) > room {
        return Err(LabError::Target(format!(
            "{} has {} free; this run needs {} and leaves at least a fifth of the space alone. Free some space, give another \
             directory, or type a smaller --size.",
            options.directory.display(),
            Bytes(free),
            Bytes(needs(size) + REDO_BYTES.0)
        )));
    }
    Ok(Bytes(size))
}

/// A comparison that is ready to measure.
struct Comparison<'o> {
    options: &'o Options,
    design: Design,
    ground: Ground,
    plan: Plan,
    size: Bytes,
    /// What the user allowed, or the case takes.
    minutes: f64,
    /// Seconds of the whole run, as foreseen after the pilot.
    forecast: f64,
    log_block_bytes: u32,
}

impl<'o> Comparison<'o> {
    fn prepare(
        options: &'o Options,
        mut design: Design,
        size: Bytes,
        minutes: f64,
        bench: &mut Bench,
        control: &mut Control<'_>,
    ) -> Result<Self, LabError> {
        if let Some(notice) = &design.notice {
            control.progress.say(notice);
        }
        for left in std::mem::take(&mut design.left_out) {
            leave_out(bench, control, &left)?;
        }
        let log_block_bytes = probe(options, &mut design, bench, control)?;
        let ground = if design.fresh() {
            Ground::Fresh
        } else {
            bench.step(control, "making and filling the database");
            let contents = Contents::of(options, &design.workloads, size);
            // Filled in a mode that fills fast; all configurations then work on the same blocks.
            let loader = design.candidates.iter().find(|c| c.setup.mode.asynchronous());
            let setup = &loader.unwrap_or(&design.candidates[0]).setup;
            let needs_stage = design.candidates.iter().any(|c| stage::is_needed(&c.setup));
            Ground::standing(&contents, setup, needs_stage, bench, control)?
        };
        let plan = Plan::pilot(&design.least());
        Ok(Self { options, design, ground, plan, size, minutes, forecast: 0.0, log_block_bytes })
    }

    /// Pilot, plan, measuring; then the field is cleared, however it went. The result is what was foreseen after the pilot, seconds.
    fn play(mut self, bench: &mut Bench, control: &mut Control<'_>) -> Result<f64, LabError> {
        let done = self.pilot(bench, control).and_then(|()| self.measure(bench, control));
        bench.spare(&done);
        let struck = match self.ground.strike(bench) {
            // The end of the run tries again and says so; what was measured counts all the same.
            Err(LabError::Left(_)) => Ok(()),
            struck => struck,
        };
        done.and(struck).map(|()| self.forecast)
    }

    fn contents(&self) -> Contents<'_> {
        Contents::of(self.options, &self.design.workloads, self.size)
    }

    fn name(&self, index: usize) -> &str {
        &self.design.candidates[index].name
    }

    fn setup(&self, index: usize) -> &Setup {
        &self.design.candidates[index].setup
    }

    /// Brings configuration `index` about, does `act` under it, and takes it away again. `act` gets the stage; where nothing
    /// had to be made there is none.
    fn under<T>(
        &self,
        index: usize,
        bench: &mut Bench,
        control: &mut Control<'_>,
        act: impl FnOnce(&mut Stay<'_>, Option<&mut Stage>, &mut Bench, &mut Control<'_>) -> Result<T, LabError>,
    ) -> Result<T, LabError> {
        let setup = self.setup(index);
        self.bring_home()?;
        let act =
            |stay: &mut Stay<'_>, stage: Option<&mut Stage>, bench: &mut Bench, control: &mut Control<'_>| {
                self.bring_data(setup)?;
                self.first_run(stay, control)?;
                act(stay, stage, bench, control)
            };
        let terms = Terms {
            phases: self.plan.phases,
            growth: self.plan.growth,
            sessions: setup.sessions,
            block_bytes: setup.block.0 as u32,
            log_block_bytes: self.log_block_bytes,
            filled_caches: self.design.candidates.iter().any(|c| c.setup.flash().is_some()),
            cancel: control.cancel,
        };
        match &self.ground {
            Ground::Standing { stage: None, subject } => {
                Scene { subject, stage: None, setup }.stay(terms, bench, control, act)
            }
            Ground::Standing { stage: Some(stage), subject } => {
                let stage = &mut *stage.borrow_mut();
                if self.design.remounts() {
                    stage.remount(setup, bench)?;
                    stage.relax(bench)?;
                }
                Scene { subject, stage: Some(stage), setup }.stay(terms, bench, control, act)
            }
            Ground::Fresh => {
                let (mut stage, subject) = self.contents().staged(setup, bench, control)?;
                let scene = Scene { subject: &subject, stage: Some(&mut stage), setup };
                let done = scene.stay(terms, bench, control, act);
                bench.spare(&done);
                let removed = subject.remove(bench);
                let struck = stage.strike(bench);
                done.and_then(|value| removed.and(struck).map(|()| value))
            }
        }
    }
}

/// Which modes work in the directory is asked of a small file: what does not is left out. The log block that suits all.
fn probe(
    options: &Options,
    design: &mut Design,
    bench: &mut Bench,
    control: &mut Control<'_>,
) -> Result<u32, LabError> {
    // Which versions the server speaks was asked before.
    if export::is_export(&options.directory) {
        return Ok(LOG_BLOCK_BYTES);
    }
    let path = bench.new_file("probe.dbf")?;
    ground::make(bench, control, &path, PROBE_BYTES.0, 8192, visit::DATA_FILE_ID)?;
    let mut log_block_bytes = LOG_BLOCK_BYTES;
    for candidate in std::mem::take(&mut design.candidates) {
        let mode = candidate.setup.mode;
        let tried = if stage::is_needed(&candidate.setup) {
            Ok(())
        } else {
            File::open(&path, Access::for_mode(mode, true)).and_then(|file| {
                if mode.direct() {
                    file.probe_direct()?;
                    log_block_bytes = log_block_bytes.max(file.alignment().length);
                }
                Ok(())
            })
        };
        match tried {
            Ok(()) => design.candidates.push(candidate),
            Err(error) => {
                let left =
                    LeftOut { what: candidate.name, reason: error.to_string(), command: String::new() };
                leave_out(bench, control, &left)?;
            }
        }
    }
    if design.candidates.len() < 2 {
        return Err(LabError::Target(format!(
            "fewer than two configurations work in {}, so there is nothing to compare; the lines above say why",
            options.directory.display()
        )));
    }
    Ok(log_block_bytes)
}

fn leave_out(bench: &mut Bench, control: &mut Control<'_>, left: &LeftOut) -> Result<(), LabError> {
    control.progress.say(&format!("Left out: {left}"));
    bench.writer.event(
        "left_out",
        &json!({ "configuration": left.what, "reason": left.reason, "command": left.command }),
    )?;
    Ok(())
}

pub(crate) fn stop_if_cancelled(control: &Control<'_>) -> Result<(), LabError> {
    if control.cancelled() { Err(LabError::Cancelled) } else { Ok(()) }
}
