//! Another process and what it cost.

use std::process::Command;

/// What a finished child printed and used.
pub struct Finished {
    pub stdout: String,
    /// User and system time of the whole process and of its children, seconds.
    pub cpu_seconds: f64,
}

/// Runs `words` and waits.
///
/// # Panics
/// When it cannot be started or fails: a benchmark without its peer shows nothing.
pub fn run(words: &[String]) -> Finished {
    let before = cpu_of_children();
    let output = Command::new(&words[0]).args(&words[1..]).output();
    let output = output
        .unwrap_or_else(|e| panic!("cannot start {} ({e}): cargo x bench installs it as root", words[0]));
    let cpu_seconds = cpu_of_children() - before;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "`{}` ended with {}: {errors}", words.join(" "), output.status);
    Finished { stdout: String::from_utf8_lossy(&output.stdout).into_owned(), cpu_seconds }
}

/// `cutime` and `cstime` of this process, which the kernel adds up when a child was waited for: the child's `rusage` in
/// ticks of 10 ms, a few thousandths of a run of seconds.
fn cpu_of_children() -> f64 {
    cpu_seconds(13)
}

/// Processor time of this process so far, the kernel's work for it included, seconds; in ticks of 10 ms.
pub fn cpu_of_self() -> f64 {
    cpu_seconds(11)
}

/// User and system time, which stand behind each other in the kernel's line about this process.
fn cpu_seconds(first: usize) -> f64 {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").expect("/proc is mounted");
    let fields = stat.rsplit_once(')').expect("the name stands in brackets").1;
    let ticks = |index: usize| {
        fields.split_whitespace().nth(index).and_then(|f| f.parse::<f64>().ok()).expect("a number")
    };
    (ticks(first) + ticks(first + 1)) / TICKS_PER_SECOND
}

/// The last core that this process may use: interrupts and other work tend to meet on the first.
pub fn core() -> String {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc is mounted");
    let list =
        status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:")).expect("a list of cores").trim();
    list.rsplit([',', '-']).next().expect("at least one core").to_owned()
}

/// `words` on one core.
pub fn pinned(core: &str, words: Vec<String>) -> Vec<String> {
    ["taskset", "-c", core].into_iter().map(str::to_owned).chain(words).collect()
}
