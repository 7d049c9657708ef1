//! What private servers have in common: a user of their own, in a folder that lets them in.

use std::path::Path;
use std::process::{Command, Stdio};

/// A program run as `user`, without further groups.
pub fn as_user(user: &str, program: &Path, folder: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args([format!("--reuid={user}"), format!("--regid={user}"), "--clear-groups".into()])
        .arg(program)
        .current_dir(folder)
        .env("LC_ALL", "C");
    command
}

/// Makes a folder that belongs to `user`, and lets everybody pass through those above it.
pub fn folder_of(user: &str, folder: &Path) {
    std::fs::create_dir_all(folder).expect("a folder");
    for above in folder.ancestors().skip(1).filter(|p| p.components().count() > 2) {
        quiet(Command::new("chmod").arg("o+x").arg(above));
    }
    quiet(Command::new("chown").arg(format!("{user}:")).arg(folder));
}

/// Runs it, without its output.
///
/// # Panics
/// When it fails.
pub fn quiet(command: &mut Command) {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(status.is_ok_and(|status| status.success()), "{command:?}");
}

/// Runs it and gives its output.
///
/// # Panics
/// When it fails, with what it said.
pub fn answer(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
