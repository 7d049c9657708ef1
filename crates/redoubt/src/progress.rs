//! What a long run shows: the stage, the share done, the time left.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lab::control::Progress;
use std::io::IsTerminal;
use units::{Nanos, clock};

/// Without a terminal a line is printed this often, so that a log shows life without filling up.
const LINE_EVERY: Nanos = Nanos::millis(20_000);
/// Resolution of the bar.
const STEPS: f64 = 1000.0;

/// Draws on standard error, so that standard output holds only the result.
pub struct Screen {
    bar: Option<ProgressBar>,
    last_line: Option<Nanos>,
    quiet: bool,
}

impl Screen {
    /// A screen; `quiet` draws nothing.
    pub fn new(quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar =
                ProgressBar::with_draw_target(Some(STEPS as u64), ProgressDrawTarget::stderr_with_hz(8));
            let style = ProgressStyle::with_template("  {bar:28.cyan/dim} {prefix:<18} {wide_msg:.dim}")
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            bar.set_style(style.progress_chars("━╸─"));
            bar
        });
        Self { bar, last_line: None, quiet }
    }

    /// Removes the bar.
    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn time_left(done_seconds: f64, total_seconds: f64) -> String {
    let left = (total_seconds - done_seconds).max(0.0).round() as u64;
    match left {
        0 => "almost done".to_owned(),
        1..60 => format!("{left} s left"),
        _ => format!("{}:{:02} min left", left / 60, left % 60),
    }
}

impl Progress for Screen {
    fn step(&mut self, what: &str, done_seconds: f64, total_seconds: f64) {
        for line in lab::export::news() {
            self.say(&format!("NFS: {line}"));
        }
        if let Some(bar) = &self.bar {
            bar.set_position((STEPS * (done_seconds / total_seconds.max(1.0)).min(1.0)) as u64);
            bar.set_prefix(time_left(done_seconds, total_seconds));
            bar.set_message(what.to_owned());
        } else if !self.quiet && self.last_line.is_none_or(|t| clock::now() - t >= LINE_EVERY) {
            self.last_line = Some(clock::now());
            anstream::eprintln!("{}: {what}", time_left(done_seconds, total_seconds));
        }
    }

    fn say(&mut self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None if !self.quiet => anstream::eprintln!("{line}"),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::time_left;

    #[test]
    fn time_left_reads_well() {
        for (done, total, text) in
            [(0.0, 185.0, "3:05 min left"), (10.0, 30.0, "20 s left"), (40.0, 30.0, "almost done")]
        {
            assert_eq!(time_left(done, total), text);
        }
    }
}
