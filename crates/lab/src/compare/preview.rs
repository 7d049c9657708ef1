//! What a comparison would do, before anything is changed.

use super::design::{Design, LeftOut};
use super::embedded::Embedded;
use super::plan::{BLOCKS_MIN, Plan, Price};
use super::{Options, TargetKind, choose_size, disk, verifying};
use crate::LabError;
use crate::factor::{Factor, FileClass, Limit, PRESETS, Storage};
use units::{Bytes, Nanos, Seed};

/// Seconds that making, filling and removing a stage took on the machine where the default budgets were chosen: with a database, and with
/// plain files.
const FRESH_DATABASE_SECONDS: f64 = 6.0;
const FRESH_FILES_SECONDS: f64 = 1.5;
/// Budget of the main job, minutes.
const MINUTES_DEFAULT: f64 = 4.5;

/// The plan before the pilot: its times are assumed.
#[derive(Clone, Debug)]
pub struct Preview {
    /// What would be compared.
    pub design: Design,
    /// With what lengths.
    pub plan: Plan,
    /// Forecast of the whole run, seconds.
    pub seconds: f64,
    /// Data of each database.
    pub data: Bytes,
    /// Disk space at most.
    pub disk: Bytes,
    /// What `--verify` costs, where it was asked for.
    pub verify: Option<String>,
}

/// What would be done.
///
/// # Errors
/// What makes it impossible.
pub fn preview(options: &Options) -> Result<Preview, LabError> {
    options.check()?;
    let design = Design::of(options)?;
    let data = choose_size(options, &design)?;
    let (plan, seconds) = forecast(options, &design, data);
    let disk = disk(options, &design, data);
    let verify = verifying(options, &design, data)?;
    Ok(Preview { seconds, plan, data, disk, verify, design })
}

/// The plan as it is foreseen before anything is measured, and the seconds of the whole run.
pub fn forecast(options: &Options, design: &Design, data: Bytes) -> (Plan, f64) {
    let price = assumed(design);
    let pilot = pilot_seconds(design, &price);
    let left = minutes(options, design) * 60.0 - pilot;
    let plan = Plan::for_budget(left, &design.workloads, &price, Bytes(data.0 / super::GROWTH_SHARE));
    (plan, pilot + plan.seconds)
}

/// What a block costs by what is known before anything was measured.
fn assumed(design: &Design) -> Price {
    let visits = stats::order::block(design.candidates.len(), 0, Seed(0)).len() as u32;
    let files = design.candidates.iter().all(|candidate| candidate.setup.target == TargetKind::Files);
    let fresh = match (design.fresh(), files) {
        (false, _) => 0.0,
        (true, true) => FRESH_FILES_SECONDS,
        (true, false) => FRESH_DATABASE_SECONDS,
    };
    Price { least: design.least(), ..Price::assumed(visits, &design.workloads, fresh) }
}

/// What making the files and the pilot take.
fn pilot_seconds(design: &Design, price: &Price) -> f64 {
    const ENDS: f64 = 5.0;
    let pilot = Plan::pilot(&price.least);
    let visit = price.fixed / f64::from(price.visits)
        + pilot.phases.seconds(&design.workloads)
        + price.bulk / f64::from(price.visits) * pilot.growth.0 as f64;
    ENDS + visit * design.candidates.len() as f64
}

/// The budget: what the user allowed, or what this design needs for the fewest blocks in visits of usual length.
pub fn minutes(options: &Options, design: &Design) -> f64 {
    if let Some(minutes) = options.minutes {
        return minutes;
    }
    if options.case == super::Case::IoModes && !design.fresh() && design.candidates.len() <= 8 {
        return MINUTES_DEFAULT;
    }
    let price = assumed(design);
    let blocks = if design.fresh() { BLOCKS_MIN } else { 8 };
    let visit =
        Plan::for_budget(0.0, &design.workloads, &price, Bytes::mib(16)).seconds / f64::from(BLOCKS_MIN);
    let seconds = pilot_seconds(design, &price) + f64::from(blocks) * visit * 1.3;
    (seconds / 60.0 * 2.0).ceil() / 2.0
}

impl Preview {
    /// Lines for the terminal: what is compared, what it costs, what was left out.
    pub fn lines(&self) -> Vec<String> {
        let design = &self.design;
        let mut lines = vec![format!("Case {}: {}", design.case, design.case.question())];
        lines.push(format!("{} configurations; the first is the baseline:", design.candidates.len()));
        lines.extend(design.candidates.iter().map(|candidate| format!("  {}", candidate.name)));
        for &factor in &design.varied {
            lines.push(format!("varied: {factor}, {}; {}", factor.title(), means(factor, design.fresh())));
        }
        lines.extend(flash(design, self.data));
        let held: Vec<String> = Factor::ALL
            .into_iter()
            .filter(|factor| !design.varied.contains(factor) && !told_elsewhere(design, *factor))
            .map(|factor| format!("{factor}={}", design.candidates[0].setup.level(factor)))
            .filter(|text| {
                !["=here", "=as-is", "=off", "=auto", "=defaults"].iter().any(|end| text.ends_with(end))
            })
            .collect();
        let parameters = design.candidates[0].setup.parameters.keys().copied().map(Factor::Parameter);
        let held = held.into_iter().chain(
            parameters
                .filter(|factor| !design.varied.contains(factor))
                .map(|factor| format!("{factor}={}", design.candidates[0].setup.level(factor))),
        );
        lines.push(format!("held: {}", held.collect::<Vec<_>>().join(" ")));
        let titles: Vec<_> = design.workloads.iter().map(|w| w.about().title).collect();
        lines.push(format!("measured in each visit: {}", titles.join("; ")));
        let visits = stats::order::block(design.candidates.len(), 0, Seed(0)).len() as u32;
        lines.push(format!(
            "{} randomised blocks of {visits} visits{}: about {}, a pilot included",
            self.plan.blocks,
            if design.fresh() { ", each on a database that is made anew" } else { "" },
            Nanos::secs(self.seconds)
        ));
        lines.push(format!("disk: {} at most, removed at the end", self.disk));
        lines.extend(self.verify.clone());
        for preset in PRESETS.iter().filter(|preset| uses(design, preset.name)) {
            let numbers = Limit::preset(preset.name).map_or_else(String::new, Limit::numbers);
            lines.push(format!("{}: {numbers}; {}", preset.name, preset.source));
        }
        lines.extend(design.notice.clone());
        lines.extend(LeftOut::together(&design.left_out).iter().map(|left| format!("left out: {left}")));
        lines.push("Nothing was changed. Leave --dry-run away to run it.".into());
        lines
    }
}

/// Whether a configuration imitates the device of this name.
fn uses(design: &Design, name: &str) -> bool {
    let named = |limit: &Limit| limit.preset == Some(name);
    let placed = |storage: &Storage| matches!(storage, Storage::Throttled { limit, .. } if named(limit));
    let mut setups = design.candidates.iter().map(|candidate| &candidate.setup);
    setups.any(|s| s.throttle.as_ref().is_some_and(named) || s.place.values().any(placed))
}

/// Places are told together where they are one, and by class where they are not; what means nothing here is not told.
fn told_elsewhere(design: &Design, factor: Factor) -> bool {
    let of_class = |varied: &Factor| matches!(varied, Factor::Place(class) if *class != FileClass::Flash);
    let by_class = design.varied.iter().any(of_class);
    let several = design.candidates[0].setup.level(Factor::Places) == "several";
    match factor {
        Factor::Place(FileClass::Flash) | Factor::FlashSize | Factor::FlashPolicy => {
            design.candidates[0].setup.flash().is_none()
        }
        Factor::Places => by_class || several,
        Factor::Place(_) => !by_class && !several,
        // The kernel has no part in it there.
        Factor::Io | Factor::Api => design.candidates[0].setup.nfs.is_some(),
        _ => false,
    }
}

/// What the flash cache is, where any configuration has one.
fn flash(design: &Design, data: Bytes) -> Option<String> {
    let sizes = design.candidates.iter().map(|c| (Embedded::sizes(data, &c.setup).flash, c.setup.flash_size));
    let (bytes, asked) = sizes.max_by_key(|(bytes, _)| *bytes).filter(|(bytes, _)| bytes.0 > 0)?;
    let why =
        if asked.is_some() { "" } else { ", as large as the data file; another: --vary flash_size=…" };
    Some(format!("flash cache: {bytes}{why}; empty at the begin of each visit"))
}

/// What varying a factor means for the run.
fn means(factor: Factor, fresh: bool) -> &'static str {
    match factor.cost() {
        crate::factor::Cost::Medium if fresh => "everything is made anew for each visit",
        crate::factor::Cost::Easy => "the database is opened anew for each level",
        crate::factor::Cost::Medium => "mounted anew for each visit",
        crate::factor::Cost::Hard => "everything is made anew for each visit",
    }
}
