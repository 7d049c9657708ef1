//! `redoubt doctor`

use crate::cli::Doctor;
use crate::progress::Screen;
use crate::stop;
use anyhow::Result;
use lab::control::Progress;
use lab::doctor::{Finding, Level, examine};
use owo_colors::OwoColorize;
use std::process::ExitCode;

/// What an examination takes, seconds.
const FORECAST_SECONDS: f64 = 10.0;

pub fn run(options: &Doctor) -> Result<ExitCode> {
    if lab::export::is_export(&options.path) {
        anyhow::bail!(
            "{} is an export, and doctor looks at devices, file systems and mounts of this machine. To measure the export: redoubt calibrate {}",
            options.path.display(),
            options.path.display()
        );
    }
    let path = options.path.canonicalize().map_err(|e| {
        anyhow::anyhow!("{}: {e}. Give a directory, a file or a device that exists.", options.path.display())
    })?;
    let cancel = stop::on_signal()?;
    let mut screen = Screen::new(options.json);
    let began = units::clock::now();
    let findings = examine(&path, &cancel, &mut |what| {
        screen.step(what, (units::clock::now() - began).as_secs(), FORECAST_SECONDS);
    });
    screen.clear();
    if cancel.load(std::sync::atomic::Ordering::Relaxed) {
        anstream::eprintln!("Stopped on request; nothing is left behind.");
        return Ok(ExitCode::from(stop::INTERRUPTED));
    }
    if options.json {
        anstream::println!("{}", json(&findings));
    } else {
        anstream::println!("{}\n", path.display().bold());
        findings.iter().for_each(print);
        summary(&findings);
    }
    let bad = findings.iter().any(|f| f.level == Level::Bad);
    Ok(if bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn print(finding: &Finding) {
    let mark = match finding.level {
        Level::Good => "✓ good   ".green().to_string(),
        Level::Note => "· note   ".dimmed().to_string(),
        Level::Warn => "! warn   ".yellow().to_string(),
        Level::Bad => "✗ bad    ".red().bold().to_string(),
        Level::Unknown => "? unknown".dimmed().to_string(),
    };
    anstream::println!("{mark} {}: {}", finding.topic.bold(), finding.seen);
    if finding.level != Level::Good {
        if !finding.effect.is_empty() {
            anstream::println!("            {}", finding.effect);
        }
        if !finding.advice.is_empty() {
            anstream::println!("            → {}", finding.advice.cyan());
        }
    }
}

fn summary(findings: &[Finding]) {
    let count = |level| findings.iter().filter(|f| f.level == level).count();
    let text = match (count(Level::Bad), count(Level::Warn)) {
        (0, 0) => "Nothing here would spoil a measurement.".to_owned(),
        (0, warn) => format!("{warn} to keep in mind; measurements here can be trusted with that."),
        (bad, _) => format!("{bad} would spoil a measurement: mend that first."),
    };
    anstream::println!("\n{}", text.bold());
}

fn json(findings: &[Finding]) -> String {
    let rows: Vec<_> = findings
        .iter()
        .map(|f| {
            record::json::json!({ "level": f.level.to_string(), "topic": f.topic, "seen": f.seen,
                                   "effect": f.effect, "advice": f.advice })
        })
        .collect();
    format!("{:#}", record::json::Value::Array(rows))
}
