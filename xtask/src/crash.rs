//! `cargo x crash`: kill -9 at random moments, and nothing of ours is left behind.
//!
//! `cargo x crash engine` kills the embedded database instead, and shows that it loses nothing ([`engine`]);
//! `cargo x crash factors` kills comparisons that change the machine ([`factors`]).
//!
//! Each round starts `compare` or `calibrate` on a small file, kills it at a moment that chance picks, runs `redoubt
//! cleanup` (every fourth one is itself killed at first), and looks: is the directory as before, are mounts, loop devices,
//! control groups and queue settings as before, is the user's own file unharmed, does the record open?

mod engine;
mod factors;
mod world;

use crate::shell::{cargo, output, run as sh, target_directory};
use crate::{Failure, root};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use world::World;

const ROUNDS: usize = 50;
/// A third of the kills falls into the first moments of a run, where journal, workspace and record are made, a third into the
/// preparation, where most files are written, and a third anywhere.
const FIRST_MOMENTS: Duration = Duration::from_millis(300);
const PREPARATION: Duration = Duration::from_secs(3);
/// One cleanup in so many is killed as well.
const CLEANUP_KILLED_EVERY: usize = 4;
/// How long a difference must last to count.
const OTHERS: Duration = Duration::from_secs(15);
const CLEANUP_KILL_WITHIN: Duration = Duration::from_millis(10);

/// What is killed.
struct Victim<'a> {
    name: &'a str,
    /// Another program than redoubt, which lies beside it: an example of crate `lab`.
    example: Option<&'a str>,
    arguments: &'a [&'a str],
    /// How long it would take, seconds.
    whole: u64,
}

pub fn run(arguments: &[String]) -> Result<(), Failure> {
    if arguments.first().is_some_and(|word| word == "engine") {
        return engine::run(&arguments[1..]);
    }
    if arguments.first().is_some_and(|word| word == "factors") {
        return factors::run(&arguments[1..]);
    }
    kill_many(arguments, ROUNDS, "", &|round| {
        if round.is_multiple_of(2) {
            let arguments = &["compare", "--minutes", "0.3", "--size", "64m", "--modes", "none,directio"];
            Victim { name: "compare", example: None, arguments, whole: 20 }
        } else {
            Victim {
                name: "calibrate",
                example: None,
                arguments: &["calibrate", "--quick", "--size", "64m"],
                whole: 40,
            }
        }
    })
}

/// `arguments`: how many (else `rounds`), and the seed; `word`: what stands before them when it is typed again.
fn kill_many(
    arguments: &[String],
    rounds: usize,
    word: &str,
    victim: &dyn Fn(usize) -> Victim<'static>,
) -> Result<(), Failure> {
    let number = |index: usize, what: &str| match arguments.get(index) {
        None => Ok(None),
        Some(text) => {
            text.parse::<u64>().map(Some).map_err(|_| format!("{text:?} is not {what}; type a whole number"))
        }
    };
    let rounds = number(0, "a number of kills")?.unwrap_or(rounds as u64) as usize;
    let seed = number(1, "a seed")?.unwrap_or_else(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |t| u64::from(t.subsec_nanos()) ^ t.as_secs())
    });
    sh(cargo().args(["build", "--quiet", "--release", "--package", "redoubt"]))?;
    sh(cargo().args(["build", "--quiet", "--release", "--package", "lab", "--examples"]))?;
    let binary = binary()?;
    println!("{rounds} kills, seed {seed} (again: cargo x crash {word}{rounds} {seed})");
    let mut chance = Chance(seed);
    let mut tally = Tally::default();
    for round in 0..rounds {
        let stage = Stage::new(round)?;
        let before = World::now();
        let (kill, text) = one(round, &victim(round), &binary, &stage, &before, &mut chance)?;
        println!("{:>3} {text}", round + 1);
        tally.add(&kill);
        if kill.wrong.is_empty() {
            stage.remove();
        } else {
            println!("    kept for a look: {}", stage.home.display());
        }
    }
    tally.conclude(rounds)
}

/// The directory under test and the home of records and journals.
struct Stage {
    directory: PathBuf,
    home: PathBuf,
    root: PathBuf,
}

const OWN_FILE: &str = "users01.dbf";
const OWN_CONTENT: &str = "a file of the user's own";

impl Stage {
    fn new(round: usize) -> Result<Self, Failure> {
        let root = std::env::temp_dir().join(format!("redoubt-crash-{}-{round}", std::process::id()));
        let stage = Self { directory: root.join("data"), home: root.join("home"), root };
        let made = std::fs::create_dir_all(&stage.directory)
            .and_then(|()| std::fs::create_dir_all(&stage.home))
            .and_then(|()| std::fs::write(stage.directory.join(OWN_FILE), OWN_CONTENT));
        made.map_err(|e| format!("cannot make {}: {e}", stage.root.display()))?;
        Ok(stage)
    }

    fn redoubt(&self, binary: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary);
        command.args(arguments).env("REDOUBT_HOME", &self.home).current_dir(&self.directory);
        command
    }

    fn remove(&self) {
        // A leftover of this test harness in /tmp is no finding.
        let _ = std::fs::remove_dir_all(&self.root);
    }

    fn records(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.home.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|e| e == "redoubt") {
                    found.push(path);
                }
            }
        }
        found
    }
}

/// What one round showed.
#[derive(Default)]
struct Kill {
    finished: bool,
    records: usize,
    opened: usize,
    files_before_cleanup: usize,
    wrong: Vec<String>,
}

fn one(
    round: usize,
    victim: &Victim<'_>,
    binary: &Path,
    stage: &Stage,
    before: &World,
    chance: &mut Chance,
) -> Result<(Kill, String), Failure> {
    let within = [FIRST_MOMENTS, PREPARATION, Duration::from_secs(victim.whole)][round / 2 % 3];
    let moment = chance.within(within);
    let example = |name| binary.with_file_name("examples").join(name);
    let program = victim.example.map_or_else(|| binary.to_owned(), example);
    let mut kill = Kill::default();
    let (pid, finished) = kill_after(stage.redoubt(&program, victim.arguments), moment)?;
    kill.finished = finished;
    kill.files_before_cleanup = world::files_below(&stage.directory) - 1;
    let cleanup_killed = round.is_multiple_of(CLEANUP_KILLED_EVERY);
    if cleanup_killed {
        kill_after(stage.redoubt(binary, &["cleanup"]), chance.within(CLEANUP_KILL_WITHIN))?;
    }
    if let Err(failure) = output(&mut stage.redoubt(binary, &["cleanup"])) {
        kill.wrong.push(failure);
    }
    kill.wrong.extend(look(stage, before, pid));
    for record in stage.records() {
        kill.records += 1;
        let path = record.to_string_lossy().into_owned();
        match output(&mut stage.redoubt(binary, &["report", &path, "--format", "raw"])) {
            Ok(text) if text.trim_start().starts_with('{') => kill.opened += 1,
            Ok(text) => kill
                .wrong
                .push(format!("the record opens but shows {:?}", text.chars().take(60).collect::<String>())),
            Err(failure) => kill.wrong.push(failure),
        }
    }
    let text = format!(
        "{:<9} killed after {:>6.2} s{}: {} files of ours, {} after cleanup{}; {}{}",
        victim.name,
        moment.as_secs_f64(),
        if kill.finished { " (had finished)" } else { "" },
        kill.files_before_cleanup,
        world::files_below(&stage.directory).saturating_sub(1),
        if cleanup_killed { " (first one killed too)" } else { "" },
        match (kill.records, kill.opened) {
            (0, _) => "no record yet",
            (begun, opened) if begun == opened => "record opens",
            _ => "record does not open",
        },
        kill.wrong.iter().map(|w| format!("\n    WRONG: {w}")).collect::<String>(),
    );
    Ok((kill, text))
}

/// What is not as it was. Others on the machine change it too: what goes by itself within [`OTHERS`] was not ours.
fn look(stage: &Stage, before: &World, pid: u32) -> Vec<String> {
    let mark = stage.root.to_string_lossy().into_owned();
    // Their names carry the journal's, and that the process's number.
    let groups = format!("/redoubt-{pid}-");
    let mut wrong = before.differences(&World::now(), &mark, &groups);
    let end = Instant::now() + OTHERS;
    while !wrong.is_empty() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(250));
        wrong = before.differences(&World::now(), &mark, &groups);
    }
    let left = std::fs::read_dir(&stage.directory).into_iter().flatten().flatten();
    for entry in left {
        if entry.file_name() != OWN_FILE {
            wrong.push(format!("left in the directory: {}", entry.file_name().to_string_lossy()));
        }
    }
    if std::fs::read_to_string(stage.directory.join(OWN_FILE)).ok().as_deref() != Some(OWN_CONTENT) {
        wrong.push("the user's own file is not what it was".into());
    }
    wrong
}

/// Starts `command`, kills it after `moment`; its process number, and whether it had ended before.
fn kill_after(mut command: Command, moment: Duration) -> Result<(u32, bool), Failure> {
    let mut child: Child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("cannot start redoubt: {e}"))?;
    std::thread::sleep(moment);
    let finished = matches!(child.try_wait(), Ok(Some(_)));
    // SIGKILL; an error means that it had just ended, which is as good.
    let _ = child.kill();
    let _ = child.wait();
    Ok((child.id(), finished))
}

#[derive(Default)]
struct Tally {
    kills: usize,
    finished: usize,
    records: usize,
    files: usize,
    wrong: usize,
}

impl Tally {
    fn add(&mut self, kill: &Kill) {
        self.kills += usize::from(!kill.finished);
        self.finished += usize::from(kill.finished);
        self.records += kill.records;
        self.files += kill.files_before_cleanup;
        self.wrong += usize::from(!kill.wrong.is_empty());
    }

    fn conclude(&self, rounds: usize) -> Result<(), Failure> {
        println!(
            "\n{} runs killed, {} had finished before; {} files of ours lay about, cleanup removed them; {} records were begun",
            self.kills, self.finished, self.files, self.records
        );
        println!("rounds with anything left, changed or unreadable: {} of {rounds} (goal: 0)", self.wrong);
        match (self.wrong, self.kills) {
            (0, 0) if rounds > 0 => {
                Err("no run lived long enough to be killed; does redoubt run at all?".into())
            }
            (0, _) => Ok(()),
            (n, _) => Err(format!("{n} rounds left something behind (listed above)")),
        }
    }
}

/// The release build's binary, where Cargo put it.
fn binary() -> Result<PathBuf, Failure> {
    Ok(target_directory(&root().join("Cargo.toml"))?.join("release/redoubt"))
}

/// SplitMix64 (S. Vigna, public domain): xtask has no dependencies, not even crate units.
struct Chance(u64);

impl Chance {
    fn within(&mut self, span: Duration) -> Duration {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        span.mul_f64((z >> 11) as f64 / (1u64 << 53) as f64)
    }
}
