//! Settings of request queues and other kernel settings.

use crate::error::HostError;
use crate::files;
use crate::journal::{Journal, Step, Undo};
use std::path::{Path, PathBuf};

/// The value of a kernel setting as one would write it: of `none [mq-deadline] kyber` only `mq-deadline`. None when it
/// cannot be read.
pub fn read_setting(path: &Path) -> Option<String> {
    let text = files::text(path)?;
    let chosen = text.split_whitespace().find_map(|w| w.strip_prefix('[')?.strip_suffix(']'));
    Some(chosen.map_or_else(|| text.trim().to_owned(), str::to_owned))
}

/// Settings of a queue that the kernel chooses anew with a scheduler.
const CHOSEN_WITH_SCHEDULER: [&str; 4] = ["nr_requests", "wbt_lat_usec", "read_ahead_kb", "rq_affinity"];

/// Sets `/sys/block/DEVICE/queue/SETTING` (`scheduler`, `read_ahead_kb`, `nr_requests` …). `device`: kernel name of a whole
/// disk. The undo of a scheduler brings back the queue's other settings too, and the tuning of the scheduler before.
///
/// # Errors
/// Not root, no such device or setting, or the kernel chose another value than the one written.
pub fn set_queue(journal: &mut Journal, device: &str, setting: &str, value: &str) -> Result<Step, HostError> {
    let plain = |word: &str| !word.is_empty() && !word.contains("..") && !word.starts_with('/');
    assert!(plain(device) && plain(setting), "{device:?} and {setting:?} are names, not paths");
    let queue = queue_directory(device);
    let beside = if setting == "scheduler" { chosen_with_scheduler(&queue) } else { Vec::new() };
    set(journal, &queue.join(setting), value, beside)
}

/// Whether [`set_queue`] can be tried on a disk: asked before anything is changed.
///
/// # Errors
/// Not root.
pub fn can_set_queue(device: &str, setting: &str) -> Result<(), HostError> {
    if files::is_root() {
        Ok(())
    } else {
        Err(HostError::needs_root(format!("changing {setting} of /dev/{device}")))
    }
}

/// The value in force of `/sys/block/DEVICE/queue/SETTING`; none when there is no such thing.
pub fn queue_setting(device: &str, setting: &str) -> Option<String> {
    read_setting(&queue_directory(device).join(setting))
}

/// What `/sys/block/DEVICE/queue/SETTING` shows, word by word without brackets: for the scheduler, those that can be chosen. None
/// when there is no such thing.
pub fn queue_choices(device: &str, setting: &str) -> Option<Vec<String>> {
    let text = files::text(queue_directory(device).join(setting))?;
    Some(text.split_whitespace().map(|word| word.trim_matches(['[', ']']).to_owned()).collect())
}

fn queue_directory(device: &str) -> PathBuf {
    Path::new("/sys/block").join(device.replace('/', "!")).join("queue")
}

fn chosen_with_scheduler(queue: &Path) -> Vec<(PathBuf, String)> {
    let tuning = queue.join("iosched");
    let own = files::names(&tuning).into_iter().map(|name| tuning.join(name));
    let all = CHOSEN_WITH_SCHEDULER.iter().map(|name| queue.join(name)).chain(own);
    all.filter_map(|path| read_setting(&path).map(|value| (path, value))).collect()
}

/// Sets any setting below `/sys` or `/proc/sys`.
///
/// # Errors
/// As [`set_queue`]; what was written is undone then.
pub fn set_setting(journal: &mut Journal, path: &Path, value: &str) -> Result<Step, HostError> {
    set(journal, path, value, Vec::new())
}

fn set(
    journal: &mut Journal,
    path: &Path,
    value: &str,
    beside: Vec<(PathBuf, String)>,
) -> Result<Step, HostError> {
    assert!(
        path.starts_with("/sys") || path.starts_with("/proc/sys"),
        "{} is no kernel setting",
        path.display()
    );
    let old = match files::read(path) {
        Ok(_) => read_setting(path).unwrap_or_default(),
        Err(_) => return Err(HostError::File { act: "read", path: path.to_owned(), errno: 2 }),
    };
    let undo = Undo::WriteSysfs { path: path.to_owned(), old: old.clone(), new: value.to_owned(), beside };
    let step = journal.will(undo)?;
    let written = files::write_setting(path, value).and_then(|()| match read_setting(path) {
        Some(now) if now == value => Ok(step),
        now => Err(refused(path, value, &format!("the kernel made {:?} of it", now.unwrap_or_default()))),
    });
    let Err(error) = written else { return written };
    if matches!(error, HostError::Unsupported { .. }) {
        // What the kernel made of our value is neither old nor new; the undo would take it for somebody else's.
        files::write_setting(path, &old)?;
    }
    journal.undo(step)?;
    Err(match error {
        HostError::File { errno: 22, .. } => {
            let shown = files::text(path).unwrap_or_default();
            refused(path, value, &format!("the kernel does not take it; it shows {shown:?}"))
        }
        other => other,
    })
}

fn refused(path: &Path, value: &str, why: &str) -> HostError {
    HostError::Unsupported {
        what: format!("{value:?} in {}", path.display()),
        why: why.to_owned(),
        instead: format!("choose what it accepts: cat {}", path.display()),
    }
}
