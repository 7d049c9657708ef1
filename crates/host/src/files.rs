//! Small reads of kernel files and durable writes of our own.

use crate::error::{HostError, errno_text};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The text of a kernel file without the trailing newline; none when it cannot be read.
pub(crate) fn text(path: impl AsRef<Path>) -> Option<String> {
    read(path).ok()
}

/// As [`text`], with the reason in the kernel's words.
pub(crate) fn read(path: impl AsRef<Path>) -> Result<String, String> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned()),
        Err(error) => Err(error.raw_os_error().map_or_else(|| error.to_string(), errno_text)),
    }
}

/// The number in a kernel file.
pub(crate) fn number<T: FromStr>(path: impl AsRef<Path>) -> Option<T> {
    text(path)?.trim().parse().ok()
}

/// The names in a directory, sorted; empty when it cannot be read.
pub(crate) fn names(path: impl AsRef<Path>) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// True for the superuser.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Makes a name in `directory` durable: without it a file survives a power cut, but not its name.
pub(crate) fn sync_directory(directory: &Path) -> Result<(), HostError> {
    let handle = File::open(directory).map_err(|e| HostError::file("open", directory, &e))?;
    match handle.sync_all() {
        // FUSE and some network file systems have no fsync of directories; there is nothing better to do there.
        Err(e) if e.raw_os_error() == Some(22) => Ok(()),
        done => done.map_err(|e| HostError::file("sync", directory, &e)),
    }
}

/// Writes a kernel setting in one call, as sysfs and cgroup files want it.
pub(crate) fn write_setting(path: &Path, value: &str) -> Result<(), HostError> {
    let write = || {
        let mut file = std::fs::OpenOptions::new().write(true).open(path)?;
        file.write_all(value.as_bytes())
    };
    write().map_err(|e: std::io::Error| match e.raw_os_error() {
        Some(1 | 13) if !is_root() => {
            HostError::needs_root(format!("writing {value:?} to {}", path.display()))
        }
        _ => HostError::file("write", path, &e),
    })
}

/// The directory of `path`, `.` for a bare name.
pub(crate) fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p.to_owned(),
        _ => PathBuf::from(if path.is_absolute() { "/" } else { "." }),
    }
}
