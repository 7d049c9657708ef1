//! `cargo x fuzz`: arbitrary bytes, guided by what they reach, to every decoder of what the wire brings.
//!
//! What is fed is in the crates (`fuzz` modules), the programs are in `fuzz/`. What is worth keeping of an hour, one message a line in hexadecimal, is
//! `fuzz/corpus/`: the next hour begins there, and ordinary tests feed it to the same decoders. `fuzz/tally.txt` says for how long each was fuzzed.

use crate::shell::{cargo, output, run as sh};
use crate::{Failure, root};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const MINUTES: &str = "5";
/// A message that takes longer is a hang, seconds.
const PATIENCE_SECONDS: u32 = 20;
/// Memory of the whole program, the fuzzer's own included, MiB; that of a message is bounded by its target, a thousand times tighter.
const MEMORY_MIB: u32 = 1024;
/// Longest message, bytes.
const MESSAGE_BYTES_MAX: u32 = 4096;
/// What is kept of a target, bytes of text.
const KEPT_BYTES_MAX: usize = 300_000;
/// The kernel's ticks in a second, as it shows them to programs.
const TICKS: f64 = 100.0;
/// What libFuzzer ends with after Ctrl-C.
const INTERRUPTED: i32 = 72;

pub fn run(arguments: &[String]) -> Result<(), Failure> {
    let (mut wanted, mut minutes) = (Vec::new(), MINUTES.to_owned());
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--minutes" => minutes = words.next().cloned().unwrap_or_default(),
            name => wanted.push(name.to_owned()),
        }
    }
    let seconds = minutes.parse::<f64>().ok().filter(|minutes| *minutes >= 0.0).map(|minutes| minutes * 60.0);
    let seconds =
        seconds.ok_or_else(|| format!("--minutes {minutes}: a number, for example --minutes 60"))?;
    let all = targets()?;
    if let Some(unknown) = wanted.iter().find(|name| !all.contains(name)) {
        return Err(format!("there is no target {unknown:?}; these are: {}", all.join(", ")));
    }
    let wanted = if wanted.is_empty() { all } else { wanted };
    let ground = Ground::prepare()?;
    for name in wanted {
        ground.unpack(&name)?;
        if seconds >= 1.0 {
            let ran = ground.fuzz(&name, seconds as u64)?;
            add_to_tally(&name, &ran)?;
            if let Some(found) = ran.found {
                return Err(format!(
                    "{name}: a message is not survived; it, and what was said, are in {found}"
                ));
            }
        }
        ground.pack(&name)?;
    }
    Ok(())
}

/// Their names, sorted.
fn targets() -> Result<Vec<String>, Failure> {
    let folder = root().join("fuzz/fuzz_targets");
    let entries = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let name = |entry: std::fs::DirEntry| {
        entry.file_name().to_string_lossy().strip_suffix(".rs").map(ToOwned::to_owned)
    };
    let mut names: Vec<_> = entries.flatten().filter_map(name).collect();
    names.sort();
    Ok(names)
}

/// Where it happens: programs, and messages as files.
struct Ground {
    programs: PathBuf,
    work: PathBuf,
}

/// What a run came to.
struct Ran {
    seconds: f64,
    cpu_seconds: f64,
    messages: u64,
    /// What it said, where it ended with a finding.
    found: Option<String>,
}

impl Ground {
    /// Builds the programs, and writes the good messages.
    fn prepare() -> Result<Self, Failure> {
        if output(cargo().args(["fuzz", "--version"])).is_err() {
            sh(cargo().args(["install", "--locked", "cargo-fuzz"]))?;
        }
        // Without a sanitizer it is stable Rust; the crates have no `unsafe` that one would watch.
        sh(cargo().args(["fuzz", "build", "--sanitizer", "none"]))?;
        let manifest = root().join("fuzz/Cargo.toml");
        let target = crate::shell::target_directory(&manifest)?;
        let version = output(Command::new("rustc").arg("-vV"))?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: "));
        let programs = target.join(host.ok_or("rustc -vV names no host")?).join("release");
        let work = target.join("messages");
        std::fs::create_dir_all(&work).map_err(|e| format!("{}: {e}", work.display()))?;
        sh(cargo()
            .args(["run", "--quiet", "--release", "--example", "seeds", "--manifest-path"])
            .arg(manifest)
            .arg("--")
            .arg(&work))?;
        Ok(Self { programs, work })
    }

    /// The kept messages become files.
    fn unpack(&self, name: &str) -> Result<(), Failure> {
        let folder = self.work.join(name);
        for (index, line) in std::fs::read_to_string(kept(name)).unwrap_or_default().lines().enumerate() {
            let path = folder.join(format!("kept-{index}"));
            let message = from_hex(line).ok_or_else(|| format!("{}: {line:?}", kept(name).display()))?;
            std::fs::write(&path, message).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        Ok(())
    }

    fn fuzz(&self, name: &str, seconds: u64) -> Result<Ran, Failure> {
        let said = self.work.join(format!("{name}.log"));
        let log = std::fs::File::create(&said).map_err(|e| format!("{}: {e}", said.display()))?;
        let also = log.try_clone().map_err(|e| format!("{}: {e}", said.display()))?;
        println!("{name}: {seconds} s");
        let child = Command::new(self.programs.join(name))
            .arg(self.work.join(name))
            .arg(format!("-artifact_prefix={}/", self.work.display()))
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-timeout={PATIENCE_SECONDS}"))
            .arg(format!("-rss_limit_mb={MEMORY_MIB}"))
            .arg(format!("-max_len={MESSAGE_BYTES_MAX}"))
            .arg("-print_final_stats=1")
            // What says what is wrong needs memory, too.
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(also)
            .spawn()
            .map_err(|e| format!("cannot start {name}: {e}"))?;
        let begun = Instant::now();
        let (cpu_seconds, code) = wait(child)?;
        let seconds = begun.elapsed().as_secs_f64();
        let text = std::fs::read(&said).map_err(|e| format!("{}: {e}", said.display()))?;
        let text = String::from_utf8_lossy(&text);
        let messages = text.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
        let found = !matches!(code, Some(0 | INTERRUPTED));
        Ok(Ran {
            seconds,
            cpu_seconds,
            messages: messages.and_then(|number| number.trim().parse().ok()).unwrap_or(0),
            found: found.then(|| said.display().to_string()),
        })
    }

    /// Keeps the fewest messages that reach all that was reached, short ones first.
    fn pack(&self, name: &str) -> Result<(), Failure> {
        let small = self.work.join(format!("{name}.small"));
        // Of the last time, when there was one.
        let _ = std::fs::remove_dir_all(&small);
        std::fs::create_dir_all(&small).map_err(|e| format!("{}: {e}", small.display()))?;
        let mut merge = Command::new(self.programs.join(name));
        output(merge.arg("-merge=1").arg(&small).arg(self.work.join(name)).env("RUST_BACKTRACE", "0"))?;
        let mut messages = Vec::new();
        for entry in std::fs::read_dir(&small).map_err(|e| format!("{}: {e}", small.display()))?.flatten() {
            messages
                .push(std::fs::read(entry.path()).map_err(|e| format!("{}: {e}", entry.path().display()))?);
        }
        messages.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        let mut text = String::new();
        for message in messages {
            if text.len() + 2 * message.len() < KEPT_BYTES_MAX {
                message.iter().for_each(|byte| write!(text, "{byte:02x}").expect("a String has room"));
                text.push('\n');
            }
        }
        println!("{name}: {} messages kept, {} bytes", text.lines().count(), text.len());
        std::fs::write(kept(name), text).map_err(|e| format!("{}: {e}", kept(name).display()))
    }
}

fn kept(name: &str) -> PathBuf {
    root().join("fuzz/corpus").join(format!("{name}.hex"))
}

fn from_hex(line: &str) -> Option<Vec<u8>> {
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    line.as_bytes().chunks(2).map(pair).collect()
}

/// CPU time until the end, seconds, and the exit code; none after a signal.
fn wait(mut child: Child) -> Result<(f64, Option<i32>), Failure> {
    let stat = PathBuf::from(format!("/proc/{}/stat", child.id()));
    let mut cpu_seconds = 0.0;
    loop {
        cpu_seconds = cpu(&stat).unwrap_or(cpu_seconds);
        if let Some(status) = child.try_wait().map_err(|e| format!("cannot wait: {e}"))? {
            return Ok((cpu_seconds, status.code()));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Fields 14 and 15 of a process, behind its name in brackets.
fn cpu(stat: &Path) -> Option<f64> {
    let text = std::fs::read_to_string(stat).ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS)
}

/// `| target | seconds | CPU seconds | messages |`, summed over all runs.
fn add_to_tally(name: &str, ran: &Ran) -> Result<(), Failure> {
    let path = root().join("fuzz/tally.txt");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let new = [ran.seconds.round() as u64, ran.cpu_seconds.round() as u64, ran.messages];
    std::fs::write(&path, added(&text, name, new)).map_err(|e| format!("{}: {e}", path.display()))
}

fn added(text: &str, name: &str, new: [u64; 3]) -> String {
    let (head, rows): (Vec<_>, Vec<_>) = text.lines().partition(|line| line.starts_with('#'));
    let read = |row: &str| {
        let mut words = row.split_whitespace();
        let name = words.next()?.to_owned();
        let mut number = || words.next()?.parse::<u64>().ok();
        Some((name, [number()?, number()?, number()?]))
    };
    let mut rows: BTreeMap<String, [u64; 3]> = rows.into_iter().filter_map(read).collect();
    let sums = rows.entry(name.to_owned()).or_default();
    sums.iter_mut().zip(new).for_each(|(sum, new)| *sum += new);
    let rows = rows.iter().map(|(name, [seconds, cpu_seconds, messages])| {
        format!("{name:<10} {seconds:>8} {cpu_seconds:>8} {messages:>14}\n")
    });
    head.iter().map(|line| format!("{line}\n")).chain(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_add_up() {
        let one = added("# head\n", "v4", [80, 60, 1000]);
        assert_eq!(one, "# head\nv4               80       60           1000\n");
        let two = added(&one, "records", [6, 5, 7]);
        assert_eq!(
            added(&two, "v4", [2, 1, 1]),
            "# head\nrecords           6        5              7\nv4               82       61           1001\n"
        );
    }

    #[test]
    fn hexadecimal_is_read() {
        assert_eq!(from_hex("00ff10"), Some(vec![0, 255, 16]));
        assert_eq!((from_hex(""), from_hex("0g")), (Some(vec![]), None));
    }

    #[test]
    fn every_target_has_a_corpus() {
        for name in targets().expect("a folder of targets") {
            assert!(kept(&name).exists(), "{name}: run `cargo x fuzz {name}`");
        }
    }
}
