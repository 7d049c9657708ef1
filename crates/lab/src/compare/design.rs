//! Which configurations are compared: from what was asked, what can be had here, and why the rest was left out.

use super::case::Case;
use super::plan::Phases;
use super::visit::Workload;
use super::{Options, TargetKind};
use crate::export::{self, Export};
use crate::factor::{Cost, Factor, FileClass, FlashPolicy, Setup, Storage, Vary, cost, nearest};
use crate::stage::{self, Obstacle};
use crate::{LabError, server};
use io::Api;
use record::json::{Value, json};
use std::fmt;
use units::{Bytes, Nanos};

/// Most configurations in one comparison: more would need a day, or say nothing.
const CONFIGURATIONS_MAX: usize = 64;
/// What has to be known of figures from a cluster of our own.
const OWN_NOTICE: &str = "No --dir was given, so this is on a cluster of our own: nodes A and B in this process, data in memory, no disk and no network but \
                          loopback. It shows what versions, wrong ways and moves cost; for how fast your storage is: --dir nfs://server/export/path";
/// The same of those from an export.
const EXPORT_NOTICE: &str = "On an export our own NFS client does the I/O: no file system, scheduler or device counter of this machine has a part in it. \
                             The server's memory cannot be emptied from here, so what is called cold may come from it.";

/// A configuration with its name.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// What people call it; no two are called the same.
    pub name: String,
    /// All of its values.
    pub setup: Setup,
}

/// What was left out, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// A configuration's name, or an API.
    pub what: String,
    /// What was seen.
    pub reason: String,
    /// What to type to have it; may be empty.
    pub command: String,
}

impl LeftOut {
    /// With one line for all that were left out for the same reason.
    pub fn together(all: &[Self]) -> Vec<Self> {
        let mut lines: Vec<Self> = Vec::new();
        for left in all {
            match lines.iter_mut().find(|line| (&line.reason, &line.command) == (&left.reason, &left.command))
            {
                Some(line) => line.what.push_str(&format!(", {}", left.what)),
                None => lines.push(left.clone()),
            }
        }
        lines
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.reason)?;
        match self.command.as_str() {
            "" => Ok(()),
            command => write!(f, "{} Type: {command}", if self.reason.ends_with('.') { "" } else { "." }),
        }
    }
}

/// What is compared.
#[derive(Clone, Debug)]
pub struct Design {
    /// The question.
    pub case: Case,
    /// The configurations, the baseline first.
    pub candidates: Vec<Candidate>,
    /// What differs between them.
    pub varied: Vec<Factor>,
    /// What is done under each.
    pub workloads: Vec<Workload>,
    /// What cannot be had here.
    pub left_out: Vec<LeftOut>,
    /// What was decided for all configurations, for people.
    pub notice: Option<String>,
}

impl Design {
    /// Nothing is changed yet; only questions are asked.
    ///
    /// # Errors
    /// What contradicts itself; fewer than two configurations that can be had.
    pub fn of(options: &Options) -> Result<Self, LabError> {
        let refuse = LabError::Target;
        node_of_ours(options).map_err(refuse)?;
        let (apis, mut left_out) = usable_apis(options);
        let base = base(options, &apis);
        let (varied, candidates) = match options.case {
            Case::Placement => moves(options, &base, &mut left_out).map_err(refuse)?,
            Case::Flash => flash(options, &base).map_err(refuse)?,
            _ => combinations(options, &base, &apis).map_err(refuse)?,
        };
        let mut candidates = candidates;
        let mut setups: Vec<Setup> = candidates.iter().map(|candidate| candidate.setup.clone()).collect();
        let notice = match export::is_export(&options.directory) {
            true if options.nodes.own().is_some() => Some(OWN_NOTICE.to_owned()),
            true => Some(EXPORT_NOTICE.to_owned()),
            false => stage::level_field(&mut setups),
        };
        candidates.iter_mut().zip(setups).for_each(|(candidate, setup)| candidate.setup = setup);
        if candidates.len() > CONFIGURATIONS_MAX {
            return Err(refuse(format!(
                "that makes {} configurations, and {CONFIGURATIONS_MAX} is the most that one run compares; vary fewer \
                 factors at a time, or fewer levels",
                candidates.len()
            )));
        }
        let asked = candidates.len();
        let mut design = Self {
            case: options.case,
            candidates: Vec::new(),
            varied,
            workloads: options.case.workloads(base.target),
            left_out: Vec::new(),
            notice,
        };
        for candidate in candidates {
            let all = &design.candidates;
            let can = possible(options, &candidate.setup).and_then(|()| {
                all.first().map_or(Ok(()), |first| same_promise(&first.setup, &candidate.setup))
            });
            match can {
                Ok(()) => design.candidates.push(candidate),
                Err(obstacle) => left_out.push(LeftOut {
                    what: candidate.name,
                    reason: obstacle.reason,
                    command: obstacle.command,
                }),
            }
        }
        if design.candidates.len() < asked {
            // A factor of which one level is left varies no longer, and what would have been made anew for it may stand.
            let all = &design.candidates;
            let varies = |factor: &Factor| {
                all.windows(2).any(|pair| pair[0].setup.level(*factor) != pair[1].setup.level(*factor))
            };
            design.varied.retain(varies);
        }
        design.left_out = left_out;
        design.workloads.retain(|w| design.candidates.iter().all(|c| w.runs_on(c.setup.target)));
        if options.nodes.own().is_none() {
            design.workloads.retain(|w| *w != Workload::ReadMoved);
        }
        if let Some(name) = &options.baseline {
            design.baseline(name).map_err(refuse)?;
        }
        if design.candidates.len() < 2 {
            return Err(refuse(design.nothing_to_compare(asked)));
        }
        if design.workloads.is_empty() {
            return Err(refuse(format!(
                "case {} has no workload on target {}; leave --target out",
                options.case, base.target
            )));
        }
        Ok(design)
    }

    /// Moves the baseline to the front.
    fn baseline(&mut self, name: &str) -> Result<(), String> {
        let names: Vec<&str> = self.candidates.iter().map(|c| c.name.as_str()).collect();
        match names.iter().position(|n| *n == name) {
            Some(index) => {
                let chosen = self.candidates.remove(index);
                self.candidates.insert(0, chosen);
                Ok(())
            }
            None => Err(format!(
                "--baseline {name:?} is none of the configurations{}. They are: {}",
                nearest(name, &names).map_or_else(String::new, |n| format!("; did you mean {n:?}?")),
                names.join(", ")
            )),
        }
    }

    fn nothing_to_compare(&self, asked: usize) -> String {
        if asked < 2 {
            return "that leaves one configuration, and nothing to compare it with; name more --modes or \
                    --api, or vary something: --vary FACTOR=LEVEL,LEVEL"
                .into();
        }
        let mut text = String::from(
            "fewer than two of the configurations can be had here, so there is nothing to compare.",
        );
        for left in LeftOut::together(&self.left_out) {
            text.push_str(&format!("\n  {left}"));
        }
        text
    }

    /// Whether visits unmount and mount.
    pub fn remounts(&self) -> bool {
        cost(&self.varied) == Some(Cost::Medium) && !self.fresh()
    }

    /// Whether each visit makes its stage anew. What a server stands on is not mounted again under it: after a kill, the undo of the
    /// mount would come before that of the server.
    pub fn fresh(&self) -> bool {
        match cost(&self.varied) {
            Some(Cost::Hard) => true,
            Some(Cost::Medium) => self.candidates.iter().any(|c| c.setup.target.server().is_some()),
            Some(Cost::Easy) | None => false,
        }
    }

    /// Windows that are not made shorter, before a pilot has measured. What a cap lets through comes in portions, one each 100 ms:
    /// a window holds many of them.
    pub fn least(&self) -> Phases {
        const CAPPED: Nanos = Nanos::millis(2_000);
        let capped = self.candidates.iter().any(|candidate| candidate.setup.capped());
        let window = if capped { CAPPED } else { Nanos(0) };
        Phases::all(window.max(self.case.window_min()))
    }

    /// The sessions of all configurations when they agree.
    pub fn sessions(&self) -> Option<u32> {
        let first = self.candidates.first()?.setup.sessions;
        self.candidates.iter().all(|c| c.setup.sessions == first).then_some(first)
    }

    /// Largest database block of any configuration.
    pub fn block_max(&self) -> Bytes {
        self.candidates.iter().map(|c| c.setup.block).max().unwrap_or_default()
    }

    /// For the plan in the record: factors with their levels, in the order of the configurations.
    pub fn factors(&self) -> Value {
        let mut factors = Vec::new();
        for &factor in &self.varied {
            let mut levels: Vec<String> = Vec::new();
            for candidate in &self.candidates {
                let level = candidate.setup.level(factor);
                if !levels.contains(&level) {
                    levels.push(level);
                }
            }
            factors.push(json!({ "factor": factor.to_string(), "title": factor.title(), "cost": factor.cost().to_string(),
                                 "levels": levels }));
        }
        Value::Array(factors)
    }
}

/// Whether `setup` can be brought about here.
fn possible(options: &Options, setup: &Setup) -> Result<(), Obstacle> {
    stage::possible(setup)?;
    if setup.nfs.is_some() && !export::is_export(&options.directory) {
        return Err(Obstacle {
            reason: format!(
                "{} is a directory of this machine, and versions of NFS are of our own client's",
                options.directory.display()
            ),
            command: "redoubt compare dnfs --dir nfs://server/export/path".into(),
        });
    }
    if let Some(version) = setup.nfs {
        Export::again(&options.directory, version)
            .map_err(|error| Obstacle { reason: error.to_string(), command: String::new() })?;
    }
    setup.target.server().map_or(Ok(()), |kind| server::possible::possible(kind, setup, &options.programs))
}

/// Whether both promise the same of a commit: figures of databases that do not are never ranked.
fn same_promise(baseline: &Setup, setup: &Setup) -> Result<(), Obstacle> {
    let given_up = |setup: &Setup| {
        let parameters = setup.parameters.iter().map(|(name, value)| (*name, value.as_str()));
        server::durability::given_up(setup.target.server(), parameters)
    };
    let (old, new) = (given_up(baseline), given_up(setup));
    let why = |given_up: &[String]| {
        given_up.iter().filter_map(|text| Some(text.split_once(": ")?.1.to_owned())).collect::<Vec<_>>()
    };
    if why(&old) == why(&new) {
        return Ok(());
    }
    let said = |given_up: &[String]| {
        if given_up.is_empty() { "a durable commit".to_owned() } else { given_up.join(", ") }
    };
    Err(Obstacle {
        reason: format!(
            "it promises something else than the baseline ({}; the baseline: {}), and runs of different durability are not ranked",
            said(&new),
            said(&old)
        ),
        command: "redoubt run CASE --set NAME=VALUE, to see it by itself".into(),
    })
}

/// The APIs of asynchronous modes that work here, among those asked for.
fn usable_apis(options: &Options) -> (Vec<Api>, Vec<LeftOut>) {
    let (mut apis, mut left_out) = (Vec::new(), Vec::new());
    // PostgreSQL has worker processes, which work everywhere, and no libaio.
    let known = match options.target {
        TargetKind::Postgres => [Api::Threads, Api::IoUring],
        _ => [Api::IoUring, Api::Libaio],
    };
    for api in known {
        if !options.apis.is_empty() && !options.apis.contains(&api) {
            continue;
        }
        match api.available() {
            Ok(()) => apis.push(api),
            Err(error) => left_out.push(LeftOut {
                what: api.to_string(),
                reason: error.to_string(),
                command: String::new(),
            }),
        }
    }
    (apis, left_out)
}

/// What holds where nothing varies.
fn base(options: &Options, apis: &[Api]) -> Setup {
    let target = options.case.target(options.target);
    // With several targets, all have the block of the others.
    let varies = options.vary.iter().any(|vary| vary.factor == Factor::Target && vary.levels.len() > 1);
    let own = if target == TargetKind::Mariadb && !varies { Bytes::kib(16) } else { Bytes::kib(8) };
    let block = options.block.unwrap_or(own);
    let nfs = export::version(&options.directory);
    let mut base = Setup { target, nfs, sessions: options.sessions, block, ..Setup::default() };
    match apis.first() {
        Some(&api) => base.api = api,
        None => base.mode = io::IoMode::Directio,
    }
    // As PostgreSQL is used; beside it the others do as it does, unless the user says how.
    let postgres =
        |vary: &Vary| vary.factor == Factor::Target && vary.levels.iter().any(|level| level == "postgres");
    if target == TargetKind::Postgres || options.vary.iter().any(postgres) {
        base.mode = io::IoMode::None;
    }
    base
}

/// Which node keeps the data is only ours to say of a cluster of our own.
fn node_of_ours(options: &Options) -> Result<(), String> {
    let asked = options.vary.iter().any(|vary| vary.factor == Factor::Node);
    if asked && options.nodes.own().is_none() {
        return Err("node is where a cluster of our own keeps the data: redoubt compare dnfs, without --dir. On storage of yours move the volume \
                    yourself, and put runs before and after it side by side: redoubt report RUN RUN"
            .into());
    }
    Ok(())
}

/// What is varied on an export: what was said, or the versions of NFS.
fn on_export(options: &Options, base: &Setup) -> Result<Vec<Vary>, String> {
    const MOUNT_IT: &str = "mount the export and give that directory with --dir";
    let of_machine = |case: &Case| {
        use Case::*;
        !matches!(case, IoModes | Growth | Commit | Scan | RandomRead | OrderEntry | Dnfs)
    };
    if of_machine(&options.case) {
        return Err(format!(
            "case {} is about file systems and devices of this machine, and on an export our own NFS client does the I/O; {MOUNT_IT}",
            options.case
        ));
    }
    if base.target != TargetKind::Engine {
        return Err(format!(
            "target {} does its I/O through the kernel, and on an export our own NFS client does it; leave --target out, or {MOUNT_IT}",
            base.target
        ));
    }
    let ours = |factor: Factor| {
        matches!(
            factor,
            Factor::Nfs
                | Factor::Node
                | Factor::Cache
                | Factor::Writers
                | Factor::Sessions
                | Factor::Parameter(_)
        )
    };
    let named = [(!options.modes.is_empty(), Factor::Io), (!options.apis.is_empty(), Factor::Api)];
    let named = named.into_iter().filter(|(typed, _)| *typed).map(|(_, factor)| factor);
    if let Some(other) = options.vary.iter().map(|vary| vary.factor).chain(named).find(|f| !ours(*f)) {
        let node = if options.nodes.own().is_some() { "node, " } else { "" };
        return Err(format!(
            "{other} ({}) is not of an export: the kernel has no part in it. There can vary nfs, {node}cache, writers, sessions and set.NAME; \
             for {other}, {MOUNT_IT}",
            other.title()
        ));
    }
    let mut vary = options.vary.clone();
    let missing = |vary: &[Vary], factor| !vary.iter().any(|vary| vary.factor == factor);
    // A case of its own asks its own question beside what the user varies.
    let alone = !vary.iter().any(|vary| vary.levels.len() > 1) || options.case == Case::Dnfs;
    if alone && missing(&vary, Factor::Nfs) {
        let versions = match (options.case, options.nodes.own()) {
            (Case::Dnfs, Some(_)) => "nfs=v3,v4.0,pnfs",
            (Case::Dnfs, None) => Case::DNFS_VARIES,
            _ => "nfs=v3,v4.0,v4.1",
        };
        vary.push(versions.parse()?);
    }
    if options.nodes.own().is_some() && missing(&vary, Factor::Node) {
        vary.push(Vary::new(Factor::Node, &["A", "B"].map(str::to_owned))?);
    }
    vary.sort_by_key(|vary| vary.factor.rank());
    Ok(vary)
}

/// All combinations of what is varied.
fn combinations(
    options: &Options,
    base: &Setup,
    apis: &[Api],
) -> Result<(Vec<Factor>, Vec<Candidate>), String> {
    let mut vary = match export::is_export(&options.directory) {
        true => on_export(options, base)?,
        false => options.case.vary(base.target, &options.vary),
    };
    if !options.modes.is_empty() {
        let modes =
            Vary::new(Factor::Io, &options.modes.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        match vary.iter_mut().find(|vary| vary.factor == Factor::Io) {
            Some(io) => *io = modes,
            None => vary.push(modes),
        }
    }
    let asynchronous = |vary: &Vary| {
        vary.factor == Factor::Io && vary.levels.iter().any(|l| !matches!(l.as_str(), "none" | "directio"))
    };
    let modes = vary.iter().any(asynchronous);
    vary.retain_mut(|vary| match vary.factor {
        Factor::Api => {
            vary.levels.retain(|level| apis.iter().any(|api| api.to_string() == *level));
            modes && !vary.levels.is_empty()
        }
        // Without an API only the blocking modes are left; it was said why.
        Factor::Io if apis.is_empty() => {
            vary.levels.retain(|level| matches!(level.as_str(), "none" | "directio"));
            !vary.levels.is_empty()
        }
        _ => true,
    });
    let setups = Vary::combine(base, &vary)?;
    let mut varied: Vec<Factor> = vary.iter().filter(|v| v.levels.len() > 1).map(|v| v.factor).collect();
    // With one API the modes still say which.
    if vary.iter().any(|v| v.factor == Factor::Api)
        && !varied.contains(&Factor::Api)
        && varied.contains(&Factor::Io)
    {
        varied.push(Factor::Api);
    }
    let mut candidates = Vec::new();
    if options.case == Case::Async {
        for (word, storage) in [("slow", &options.slow), ("fast", &options.fast)] {
            for setup in &setups {
                let place = FileClass::ALL.into_iter().map(|class| (class, storage.clone())).collect();
                let name = format!("{word} {}", setup.name(&varied));
                candidates.push(Candidate { name, setup: Setup { place, ..setup.clone() } });
            }
        }
        varied.insert(0, Factor::Places);
    } else {
        candidates.extend(setups.into_iter().map(|setup| Candidate { name: setup.name(&varied), setup }));
    }
    Ok((varied, candidates))
}

/// Everything on the slow device, without a flash cache on the fast one and with each policy; everything on the fast one.
fn flash(options: &Options, base: &Setup) -> Result<(Vec<Factor>, Vec<Candidate>), String> {
    let base = between(options, base, "puts a flash cache before the slow device")?;
    if base.target != TargetKind::Engine {
        return Err(format!(
            "case flash is of the embedded database: {} has no flash cache of its own; leave --target out, or compare the \
             devices themselves: redoubt compare placement --target {0}",
            base.target
        ));
    }
    let all = |storage: &Storage| FileClass::ALL.map(|class| (class, storage.clone())).into();
    let slow = Setup { place: all(&options.slow), ..base.clone() };
    let cached = |flash_policy| {
        let mut setup = Setup { flash_policy, ..slow.clone() };
        setup.place.insert(FileClass::Flash, options.fast.clone());
        let name = format!(
            "slow + flash {}",
            if flash_policy == FlashPolicy::Classic { "classic" } else { "scan-resistant" }
        );
        Candidate { name, setup }
    };
    let candidates = vec![
        Candidate { name: "slow".into(), setup: slow.clone() },
        cached(FlashPolicy::Classic),
        cached(FlashPolicy::ScanResistant),
        Candidate { name: "fast".into(), setup: Setup { place: all(&options.fast), ..base } },
    ];
    Ok((vec![Factor::Places, Factor::Place(FileClass::Flash), Factor::FlashPolicy], candidates))
}

/// What holds in a case that moves files between the slow and the fast place, and `does` nothing else.
fn between(options: &Options, base: &Setup, does: &str) -> Result<Setup, String> {
    if let Some(vary) = options.vary.iter().find(|vary| vary.levels.len() > 1) {
        return Err(format!(
            "case {1} {does}, and varies nothing beside; hold {0} with one level, \
             or leave the case out: redoubt compare --vary {vary}",
            vary.factor, options.case
        ));
    }
    if options.slow == options.fast {
        return Err(format!("--slow and --fast are both {}; name two places", options.slow));
    }
    Ok(Vary::combine(base, &options.case.vary(base.target, &options.vary))?.remove(0))
}

/// Everything on the slow device; each class alone on the fast one; everything there.
fn moves(
    options: &Options,
    base: &Setup,
    left_out: &mut Vec<LeftOut>,
) -> Result<(Vec<Factor>, Vec<Candidate>), String> {
    let base = between(options, base, "moves one class of files after the other")?;
    let placed = |fast: &[FileClass]| {
        let place = FileClass::ALL.into_iter().map(|class| {
            (class, if fast.contains(&class) { options.fast.clone() } else { options.slow.clone() })
        });
        Setup { place: place.collect(), ..base.clone() }
    };
    let mut classes = FileClass::ALL.to_vec();
    if let Some(kind) = base.target.server() {
        classes.retain(|class| kind.cannot_place(*class).is_none());
        left_out.extend(FileClass::ALL.into_iter().filter_map(|class| {
            let reason = kind.cannot_place(class)?.to_owned();
            Some(LeftOut { what: format!("{class} fast"), reason, command: String::new() })
        }));
    }
    let mut candidates = vec![Candidate { name: "all slow".into(), setup: placed(&[]) }];
    candidates.extend(
        classes
            .iter()
            .copied()
            .map(|class| Candidate { name: format!("{class} fast"), setup: placed(&[class]) }),
    );
    candidates.push(Candidate { name: "all fast".into(), setup: placed(&FileClass::ALL) });
    Ok((classes.into_iter().map(Factor::Place).collect(), candidates))
}
