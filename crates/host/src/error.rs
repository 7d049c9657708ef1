//! What can go wrong with the machine: what was seen, the likely cause, what to type.

use std::path::{Path, PathBuf};
use thiserror::Error;

/// An act on the machine that did not happen. Nothing is half done silently: whatever was made before the failure is in
/// the journal and is undone with it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HostError {
    /// A file, directory or kernel setting could not be read, written, made or removed.
    #[error("cannot {act} {}: {}{}", path.display(), errno_text(*errno), errno_advice(*errno))]
    File {
        /// The verb: `read`, `create`, `sync` …
        act: &'static str,
        /// On what.
        path: PathBuf,
        /// The kernel's answer.
        errno: i32,
    },
    /// The act is reserved to root.
    #[error("{what} needs root; type: {command}")]
    NeedsRoot {
        /// The act.
        what: String,
        /// The exact command line to type.
        command: String,
    },
    /// A program is not installed.
    #[error("`{command}` is not installed; type: sudo apt install {package}   (or your system's equivalent)")]
    NoCommand {
        /// The program's name.
        command: String,
        /// The Debian package that holds it.
        package: &'static str,
    },
    /// A program ran and failed.
    #[error("`{command}` failed{}: {stderr}", status.map_or(String::new(), |s| format!(" with status {s}")))]
    CommandFailed {
        /// The command line.
        command: String,
        /// Exit status; none when it was ended by a signal.
        status: Option<i32>,
        /// What it said, trimmed.
        stderr: String,
    },
    /// A program did not end in time and was stopped.
    #[error(
        "`{command}` had not ended after {seconds} s and was stopped; a device that does not answer? look at: dmesg | tail"
    )]
    CommandHung {
        /// The command line.
        command: String,
        /// How long was waited.
        seconds: u64,
    },
    /// The path is not a block device.
    #[error("{} is not a block device; list them with: lsblk", path.display())]
    NotABlockDevice {
        /// What was given.
        path: PathBuf,
    },
    /// The device is used by somebody.
    #[error("{} is refused: {}", device.display(), reasons.join("; "))]
    InUse {
        /// The device.
        device: PathBuf,
        /// Each use that was found, with what to type ([`crate::facts::InUse::reasons`]).
        reasons: Vec<String>,
    },
    /// Something of that name exists, and nothing is ever overwritten.
    #[error("{} exists already and was not made by this run; it is left alone: choose another name or remove it yourself", path.display())]
    AlreadyThere {
        /// The path.
        path: PathBuf,
    },
    /// Not made by us, so not touched.
    #[error("{} is left alone: {why}", path.display())]
    NotOurs {
        /// The path.
        path: PathBuf,
        /// How it was seen.
        why: String,
    },
    /// What was asked for was taken, and is not in force.
    #[error("{asked} is not in force at {}: the kernel shows {shown}. Leave it away, or ask for what this kernel knows", place.display())]
    NotInForce {
        /// What was asked for.
        asked: String,
        /// The mount point, device or setting.
        place: PathBuf,
        /// What is in force instead.
        shown: String,
    },
    /// This machine has no way to do it.
    #[error("{what} is not possible here: {why}; {instead}")]
    Unsupported {
        /// The act.
        what: String,
        /// What is missing.
        why: String,
        /// What to do instead.
        instead: String,
    },
}

impl HostError {
    /// From a failed call of the standard library.
    pub(crate) fn file(act: &'static str, path: &Path, error: &std::io::Error) -> Self {
        // Errors made by `std` itself (unexpected end of file …) carry no errno; EIO is the nearest truth.
        Self::File { act, path: path.to_owned(), errno: error.raw_os_error().unwrap_or(5) }
    }

    /// From a failed system call.
    pub(crate) fn call(act: &'static str, path: &Path, errno: rustix::io::Errno) -> Self {
        Self::File { act, path: path.to_owned(), errno: errno.raw_os_error() }
    }

    /// `what` is for root only; the command is this very command line behind `sudo`.
    pub(crate) fn needs_root(what: impl Into<String>) -> Self {
        let mut command = String::from("sudo");
        for argument in std::env::args() {
            command.push(' ');
            command.push_str(&shell_word(&argument));
        }
        Self::NeedsRoot { what: what.into(), command }
    }
}

/// `word` as a shell reads it back: quoted only where it must be.
pub(crate) fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The kernel's words for `errno`, with the number.
pub(crate) fn errno_text(errno: i32) -> String {
    std::io::Error::from_raw_os_error(errno).to_string()
}

fn errno_advice(errno: i32) -> &'static str {
    match errno {
        1 | 13 => "; try again with sudo, or choose a place that belongs to you",
        5 => "; the device reports an error, look at: dmesg | tail",
        16 => "; somebody still uses it, see who: lsof or fuser -vm",
        28 => "; the file system is full, see: df -h",
        30 => "; the file system is mounted read-only, see: findmnt",
        122 => "; your disk quota is used up, see: quota -s",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_was_seen_and_what_to_type() {
        let check = |error: HostError, text: &str| assert_eq!(error.to_string(), text);
        check(
            HostError::File { act: "create", path: "/data/x".into(), errno: 28 },
            "cannot create /data/x: No space left on device (os error 28); the file system is full, see: df -h",
        );
        check(
            HostError::NeedsRoot { what: "mounting".into(), command: "sudo redoubt compare".into() },
            "mounting needs root; type: sudo redoubt compare",
        );
        check(
            HostError::CommandFailed {
                command: "losetup -d /dev/loop9".into(),
                status: Some(1),
                stderr: "busy".into(),
            },
            "`losetup -d /dev/loop9` failed with status 1: busy",
        );
    }

    #[test]
    fn quotes_only_what_a_shell_would_split() {
        for (word, quoted) in [
            ("io=cached,direct", "io=cached,direct"),
            ("my disk", "'my disk'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(word), quoted);
        }
    }
}
