//! Rounds: start, kill, open, look.

use crate::{Checked, child, commit, orders, trees};
use engine::{AlterSystem, Instance, InstanceConfig, Session, Shutdown};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use tempfile::TempDir;
use units::{Nanos, Rng, Seed, clock};

const SESSIONS: usize = 3;
/// Rounds that a database lives.
const LIVES: u64 = 6;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

#[derive(Default)]
pub struct Tally {
    pub kills: u64,
    pub in_recovery: u64,
    pub acknowledged: u64,
    pub uncertain: u64,
    pub wrong: u64,
    pub planted: u64,
    pub noticed: u64,
    /// Blocks that the checks read from a flash cache.
    pub from_flash: u64,
}

impl Tally {
    fn add(&mut self, acknowledged: u64, uncertain: u64) {
        self.acknowledged += acknowledged;
        self.uncertain += uncertain;
    }
}

/// What the sessions of a database said.
enum Said {
    Commit(Vec<commit::Said>),
    Orders(orders::Said),
}

/// A database with its history.
struct Life {
    folder: TempDir,
    words: String,
    said: Said,
    /// The number of the next transaction.
    next: i64,
}

/// From when the moment of a kill is counted.
#[derive(Clone, Copy)]
enum From {
    /// The start of the process: it may die in its recovery.
    Start,
    /// The database is open.
    Open,
    /// The first session was told of a commit: there is something that could be lost.
    Commit,
}

/// How a round opens it.
struct Opening {
    words: String,
    parameters: Vec<(&'static str, String)>,
}

impl Opening {
    fn draw(directory: &Path, rng: &mut Rng, lie: bool) -> Self {
        let mode = ["none", "directio", "asynch", "setall"][rng.below(4) as usize];
        let protection = ["redo", "doublewrite"][rng.below(2) as usize];
        let cache = [640, 1024, 4096][rng.below(3) as usize];
        let mut parameters = vec![
            ("filesystemio_options", mode.to_owned()),
            ("torn_page_protection", protection.to_owned()),
            ("db_cache_size", (cache * KIB).to_string()),
            ("db_writer_processes", (1 + rng.below(2)).to_string()),
        ];
        if lie {
            parameters.push(("commit_wait", "nowait".into()));
            parameters.push(("commit_logging", "batch".into()));
        }
        // It is warm where the opening before had one too and was shut down in order, empty after a kill, and left over from long ago where
        // openings without one came between: whatever it holds, no old block may come from it.
        let flash = ["", "classic", "scan_resistant"][rng.below(3) as usize];
        let mut words = format!("{mode}, {protection}, cache {cache} KiB");
        if !flash.is_empty() {
            parameters.push(("db_flash_cache_file", directory.join("flash.dat").display().to_string()));
            parameters.push(("db_flash_cache_size", (8 * MIB).to_string()));
            parameters.push(("db_flash_cache_policy", flash.to_owned()));
            words += &format!(", flash cache {flash}");
        }
        Self { words, parameters }
    }

    fn config(&self, directory: &Path) -> InstanceConfig {
        let config = InstanceConfig::new(directory);
        self.parameters.iter().fold(config, |config, (name, value)| config.with(name, value))
    }
}

impl Life {
    fn begin(above: &Path, number: u64, rng: &mut Rng) -> Result<Self, String> {
        let folder = tempfile::Builder::new()
            .prefix("redoubt-killed-")
            .tempdir_in(above)
            .map_err(|e| e.to_string())?;
        let block = [2, 4, 8][rng.below(3) as usize] * KIB;
        let redo = [1024, 2048, 4096][rng.below(3) as usize] * KIB;
        let groups = 2 + rng.below(3) as u32;
        let log_block = ["512", "4k"][rng.below(2) as usize];
        let mut config = InstanceConfig::new(folder.path())
            .with("db_block_size", &block.to_string())
            .with("db_cache_size", "8m")
            .with("log_block_size", log_block)
            .with("log_buffer", "256k")
            .with("sessions", "32");
        (config.data_bytes, config.undo_bytes, config.temp_bytes) = (MIB, MIB, MIB);
        (config.redo_bytes, config.redo_groups) = (redo, groups);
        let instance = Instance::create(child::environment(), config).map_err(|e| e.to_string())?;
        let said = if number.is_multiple_of(2) {
            commit::prepare(&instance, SESSIONS).map_err(|e| e.to_string())?;
            Said::Commit(vec![commit::Said::default(); SESSIONS])
        } else {
            orders::prepare(&instance, Seed(number))?;
            Said::Orders(orders::Said::default())
        };
        instance.shutdown(Shutdown::Immediate).map_err(|e| e.to_string())?;
        let words = format!("{groups} x {} KiB of redo, blocks of {} KiB", redo / KIB, block / KIB);
        Ok(Self { folder, words, said, next: 1 })
    }

    fn kind(&self) -> &'static str {
        if matches!(self.said, Said::Commit(_)) { "commit" } else { "orders" }
    }

    /// Runs the child and kills it `moment` after `from`. Takes down what it said; whether the database was open by then, and how many
    /// transactions were acknowledged, and how many were begun beside.
    fn kill(
        &mut self,
        opening: &Opening,
        seed: u64,
        moment: Nanos,
        from: From,
    ) -> Result<(bool, [u64; 2]), String> {
        let program = std::env::current_exe().map_err(|e| e.to_string())?;
        let mut child = Command::new(program)
            .arg("child")
            .arg(self.folder.path())
            .args([self.kind(), &self.next.to_string(), &SESSIONS.to_string(), &seed.to_string()])
            .args(opening.parameters.iter().map(|(name, value)| format!("{name}={value}")))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| e.to_string())?;
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let (reached, begin) = mpsc::channel();
        let reader = std::thread::spawn(move || {
            let mut lines = Vec::new();
            for line in output.lines().map_while(Result::ok) {
                let is_it = match from {
                    From::Start => false,
                    From::Open => line == "open",
                    From::Commit => line.starts_with("a 0 "),
                };
                if is_it {
                    // Only the first is waited for.
                    let _ = reached.send(());
                }
                lines.push(line);
            }
            lines
        });
        if !matches!(from, From::Start) {
            // An error means that the process ended before: told below.
            let _ = begin.recv();
        }
        clock::sleep(moment);
        let ended = child.try_wait().ok().flatten();
        // An error means that it has just ended: told below.
        let _ = child.kill();
        let lines = reader.join().expect("it only reads");
        let said = child.wait_with_output().map_err(|e| e.to_string())?;
        if let Some(status) = ended {
            return Err(format!(
                "the process ended by itself, {status}: {}",
                String::from_utf8_lossy(&said.stderr)
            ));
        }
        let open = lines.iter().any(|line| line == "open");
        Ok((open, self.note(&lines)))
    }

    /// Takes down what was said; how many transactions were acknowledged, and how many were being made.
    fn note(&mut self, lines: &[String]) -> [u64; 2] {
        let (mut acknowledged, mut uncertain) = (0, 0_u64);
        for line in lines {
            let mut words = line.splitn(4, ' ');
            let (Some(what), Some(Ok(n)), Some(Ok(number))) =
                (words.next(), words.next().map(str::parse::<usize>), words.next().map(str::parse::<i64>))
            else {
                continue;
            };
            self.next = self.next.max(number + 1);
            match (&mut self.said, what) {
                (Said::Commit(said), "b") => _ = said[n].uncertain.insert(number),
                (Said::Commit(said), what) => {
                    said[n].uncertain.remove(&number);
                    if what == "a" {
                        said[n].acknowledged.insert(number);
                    }
                }
                (Said::Orders(said), "a") => said.deeds.extend(words.next().and_then(orders::parse)),
                _ => {}
            }
            uncertain += u64::from(what == "b");
            uncertain -= u64::from(what != "b");
            acknowledged += u64::from(what == "a");
        }
        if let Said::Orders(said) = &mut self.said {
            said.uncertain += uncertain;
        }
        [acknowledged, uncertain]
    }

    fn check(&mut self, session: &mut Session) -> Checked {
        match &mut self.said {
            Said::Commit(said) => commit::check(session, said)?,
            Said::Orders(said) => orders::check(session, said)?,
        }
        trees::check(session)
    }

    /// Plants harm and takes it back; how much of it was noticed, of how much.
    fn plant(&mut self, session: &mut Session) -> (u64, u64) {
        let plants = match self.said {
            Said::Commit(_) => &commit::PLANTS[..],
            Said::Orders(_) => &orders::PLANTS[..],
        };
        let mut noticed = 0;
        for (n, plant) in plants.iter().enumerate() {
            let planted = plant(session).map_err(|e| e.to_string());
            let found = planted.map(|()| self.check(session).is_err());
            let after = session.rollback().map_err(|e| e.to_string()).and_then(|()| self.check(session));
            match (&found, &after) {
                (Ok(true), Ok(())) => noticed += 1,
                _ => println!("    harm {n} of {}: noticed {found:?}, taken back {after:?}", self.kind()),
            }
        }
        (noticed, plants.len() as u64)
    }
}

/// Plays so many rounds; a lie is over when it was found out.
pub fn play(rounds: u64, seed: Seed, lie: bool, above: &Path, tally: &mut Tally) {
    let mut rng = Rng::new(seed);
    let mut lives: [Option<Life>; 2] = [None, None];
    for round in 0..rounds {
        let place = (round % 2) as usize;
        if (round / 2).is_multiple_of(LIVES) {
            lives[place] = None;
        }
        let result = match lives[place].take() {
            Some(life) => Ok(life),
            None => Life::begin(above, round, &mut rng),
        }
        .and_then(|mut life| {
            let last = round + 2 >= rounds && !lie;
            let words = one(&mut life, &mut rng, lie, last, tally).inspect_err(|_| {
                // For a look, unless it was on purpose.
                life.folder.disable_cleanup(!lie);
            });
            let words =
                words.map_err(|e| format!("{e}\n    in {}, {}", life.folder.path().display(), life.words))?;
            let line = format!("{:<6} {}, {words}", life.kind(), life.words);
            lives[place] = Some(life);
            Ok(line)
        });
        match result {
            Ok(words) => println!("{:>3} {words}", round + 1),
            Err(words) => {
                println!("{:>3} WRONG: {words}", round + 1);
                tally.wrong += 1;
                if lie {
                    return;
                }
            }
        }
    }
}

/// One round, in words.
fn one(life: &mut Life, rng: &mut Rng, lie: bool, plants: bool, tally: &mut Tally) -> Result<String, String> {
    let opening = Opening::draw(life.folder.path(), rng, lie);
    // A third of the kills comes soon after the open, when the system monitor still tidies.
    let within = [Nanos::millis(30), Nanos::millis(200), Nanos::millis(500)][rng.below(3) as usize];
    let moment = Nanos(rng.below(within.0));
    // Nothing can be lost, by a lie or on purpose, where nothing was acknowledged: on a slow machine that is so for a while.
    let from = if lie || plants { From::Commit } else { From::Open };
    let (open, [acknowledged, uncertain]) = life.kill(&opening, rng.next_u64() >> 1, moment, from)?;
    if !open {
        return Err("the process was killed before the database was open".into());
    }
    tally.kills += 1;
    tally.add(acknowledged, uncertain);
    let mut again = 0;
    while rng.below(2) == 0 {
        let opening = Opening::draw(life.folder.path(), rng, lie);
        let moment = Nanos(rng.below(Nanos::millis(40).0));
        let (open, [acknowledged, uncertain]) =
            life.kill(&opening, rng.next_u64() >> 1, moment, From::Start)?;
        again += u64::from(!open);
        tally.kills += u64::from(open);
        tally.add(acknowledged, uncertain);
    }
    tally.in_recovery += again;
    let began = clock::now();
    let config = opening.config(life.folder.path());
    let instance =
        Instance::open(child::environment(), config).map_err(|e| format!("it does not open: {e}"))?;
    let reopened = clock::now() - began;
    let mut session = instance.session("check").map_err(|e| e.to_string())?;
    life.check(&mut session)?;
    // From memory alone, an old block in the flash cache would not be met.
    session.alter_system(&AlterSystem::FlushBufferCache).map_err(|e| e.to_string())?;
    life.check(&mut session)?;
    let statistics = instance.core.sysstat();
    let hits = statistics.iter().find(|row| row.name == "physical read flash cache hits");
    tally.from_flash += hits.map_or(0, |row| row.value);
    if plants {
        let (noticed, planted) = life.plant(&mut session);
        tally.noticed += noticed;
        tally.planted += planted;
    }
    drop(session);
    // A database that was opened may also be left at once.
    let how = if rng.below(2) == 0 { Shutdown::Immediate } else { Shutdown::Abort };
    instance.shutdown(how).map_err(|e| e.to_string())?;
    Ok(format!(
        "{}: killed after {:.0} ms, {acknowledged} acknowledged, {uncertain} begun, {again} kills in recovery, open in {:.0} ms: all there",
        opening.words,
        moment.as_secs() * 1e3,
        reopened.as_secs() * 1e3
    ))
}
