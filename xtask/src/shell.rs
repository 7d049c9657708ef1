//! Running other programs.

use crate::{Failure, root};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Cargo as it called us, in the repository's root.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

/// Runs `command` with its output on our own terminal.
pub fn run(command: &mut Command) -> Result<(), Failure> {
    let text = words(command);
    let status = command.status().map_err(|e| format!("cannot start `{text}`: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{text}` ended with {status}")) }
}

/// What `command` printed on standard output.
pub fn output(command: &mut Command) -> Result<String, Failure> {
    let text = words(command);
    let out = command.output().map_err(|e| format!("cannot start `{text}`: {e}"))?;
    if out.status.success() {
        return Ok(String::from_utf8_lossy(&out.stdout).into_owned());
    }
    Err(format!("`{text}` ended with {}: {}", out.status, String::from_utf8_lossy(&out.stderr).trim()))
}

/// Where Cargo builds what `manifest` is the root of.
pub fn target_directory(manifest: &Path) -> Result<PathBuf, Failure> {
    let mut metadata = cargo();
    metadata.args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"]).arg(manifest);
    let text = output(&mut metadata)?;
    let target = text.split_once("\"target_directory\":\"").and_then(|(_, rest)| rest.split_once('"'));
    target.map(|(target, _)| PathBuf::from(target)).ok_or("cargo metadata names no target directory".into())
}

/// The command line as people would type it.
fn words(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let mut text = program.to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}

/// Whether this process may do everything. Read from the kernel: `id` may be missing on a small image.
pub fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("Uid:")).and_then(|ids| ids.split_whitespace().nth(1))
        == Some("0")
}
