//! `redoubt cleanup`

use crate::cli::Cleanup;
use host::journal::CleanupResult;
use std::process::ExitCode;

pub fn run(options: &Cleanup) -> ExitCode {
    let lines = host::journal::cleanup(options.dry_run);
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
    let failed = lines.iter().any(|line| matches!(line.result, CleanupResult::Failed(_)));
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
