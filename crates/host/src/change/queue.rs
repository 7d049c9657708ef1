//! Settings of request queues and other kernel settings.

use crate::error::HostError;
use crate::files;
use crate::journal::{Journal, Step, Undo};
use std::path::Path;

/// The value of a kernel setting as one would write it: of `none [mq-deadline] kyber` only `mq-deadline`. None when it
/// cannot be read.
pub fn read_setting(path: &Path) -> Option<String> {
    let text = files::text(path)?;
    let chosen = text.split_whitespace().find_map(|w| w.strip_prefix('[')?.strip_suffix(']'));
    Some(chosen.map_or_else(|| text.trim().to_owned(), str::to_owned))
}

/// Sets `/sys/block/DEVICE/queue/SETTING` (`scheduler`, `read_ahead_kb`, `nr_requests` …). `device`: kernel name of a whole
/// disk.
///
/// # Errors
/// Not root, no such device or setting, or the kernel chose another value than the one written.
pub fn set_queue(journal: &mut Journal, device: &str, setting: &str, value: &str) -> Result<Step, HostError> {
    let plain = |word: &str| !word.is_empty() && !word.contains("..") && !word.starts_with('/');
    assert!(plain(device) && plain(setting), "{device:?} and {setting:?} are names, not paths");
    let disk = device.replace('/', "!");
    set_setting(journal, Path::new(&format!("/sys/block/{disk}/queue/{setting}")), value)
}

/// Sets any setting below `/sys` or `/proc/sys`.
///
/// # Errors
/// As [`set_queue`]; what was written is undone then.
pub fn set_setting(journal: &mut Journal, path: &Path, value: &str) -> Result<Step, HostError> {
    assert!(
        path.starts_with("/sys") || path.starts_with("/proc/sys"),
        "{} is no kernel setting",
        path.display()
    );
    let old = match files::read(path) {
        Ok(_) => read_setting(path).unwrap_or_default(),
        Err(_) => return Err(HostError::File { act: "read", path: path.to_owned(), errno: 2 }),
    };
    let step =
        journal.will(Undo::WriteSysfs { path: path.to_owned(), old: old.clone(), new: value.to_owned() })?;
    let written = files::write_setting(path, value).and_then(|()| match read_setting(path) {
        Some(now) if now == value => Ok(step),
        now => Err(HostError::Unsupported {
            what: format!("{value:?} in {}", path.display()),
            why: format!("the kernel made {:?} of it", now.unwrap_or_default()),
            instead: format!("choose what it accepts: cat {}", path.display()),
        }),
    });
    if written.is_err() {
        if matches!(written, Err(HostError::Unsupported { .. })) {
            // What the kernel made of our value is neither old nor new; the undo would take it for somebody else's.
            files::write_setting(path, &old)?;
        }
        journal.undo(step)?;
    }
    written
}
