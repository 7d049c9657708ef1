//! `redoubt cleanup`

use crate::cli::Cleanup;
use host::journal::CleanupResult;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

pub fn run(options: &Cleanup) -> ExitCode {
    let lines = host::journal::cleanup(options.dry_run, &lab::export::remove_left);
    if lines.is_empty() {
        anstream::println!("Nothing to undo: no killed run left anything.");
    }
    for line in &lines {
        let result = match &line.result {
            CleanupResult::Undone => "undone".to_owned(),
            CleanupResult::AlreadyGone => "already gone".to_owned(),
            CleanupResult::WouldUndo => "would be undone".to_owned(),
            CleanupResult::LeftAlone(reason) => format!("left alone: {reason}"),
            CleanupResult::Failed(reason) => format!("FAILED: {reason}"),
        };
        anstream::println!("{}: {result}", line.action);
    }
    let failed = lines.iter().filter(|line| matches!(line.result, CleanupResult::Failed(_)));
    let journals: BTreeSet<&Path> = failed.map(|line| line.journal.as_path()).collect();
    for journal in &journals {
        anstream::println!(
            "What failed is tried again next time. If its server or device is gone for good, remove its journal: {}",
            journal.display()
        );
    }
    if journals.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
