//! The lines of a journal: an undo, or the note that it is done.

use super::undo::Undo;
use crate::facts::mounts;
use crate::files;
use serde_json::{Value, json};
use std::path::PathBuf;

/// An undo and where its path was: the mount point under it tells, after a reboot, an absent file (removed) from an
/// absent file system (not mounted yet).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) undo: Undo,
    pub(super) mount_point: Option<PathBuf>,
}

impl Entry {
    pub(super) fn new(undo: Undo) -> Self {
        let mount_point =
            undo.path_on_disk().and_then(|p| mounts::of(&files::parent(p))).map(|m| m.mount_point);
        Self { undo, mount_point }
    }

    pub(super) fn to_line(&self, step: usize) -> String {
        json!({"step": step, "undo": self.undo.to_json(), "on": self.mount_point.as_deref().map(super::undo::path_json)}).to_string()
    }

    /// False when the file system that held the path is not mounted there now. Where its directory was removed, the
    /// nearest one above that is left tells.
    pub(super) fn is_reachable(&self) -> bool {
        let (Some(path), Some(expected)) = (self.undo.path_on_disk(), &self.mount_point) else { return true };
        let left = path.ancestors().skip(1).find(|p| p.try_exists().unwrap_or(true));
        left.and_then(mounts::of).is_some_and(|m| m.mount_point == *expected)
    }
}

/// The note that `step` is undone.
pub(super) fn done(step: usize) -> String {
    json!({"step": step, "done": true}).to_string()
}

/// The undos that are left in a journal's lines after the first, in order. The last line may be torn: its change was
/// never made. Any other line that cannot be read is an error, because something might stay changed for ever.
///
/// # Errors
/// The number of the broken line, from 1 after the head.
pub(super) fn open_entries(body: &str) -> Result<Vec<(usize, Entry)>, usize> {
    let mut open: Vec<(usize, Entry)> = Vec::new();
    let whole = body.rfind('\n').map_or("", |end| &body[..end]);
    for (index, line) in whole.lines().enumerate() {
        let broken = index + 1;
        let json: Value = serde_json::from_str(line).map_err(|_| broken)?;
        let step = json.get("step").and_then(Value::as_u64).ok_or(broken)? as usize;
        if json.get("done").is_some() {
            open.retain(|(other, _)| *other != step);
            continue;
        }
        let undo = json.get("undo").and_then(Undo::from_json).ok_or(broken)?;
        let mount_point = json.get("on").and_then(super::undo::json_path);
        open.push((step, Entry { undo, mount_point }));
    }
    Ok(open)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_is_not_done_and_drops_a_torn_end() {
        let entry = |name: &str| Entry { undo: Undo::RemoveDir(name.into()), mount_point: Some("/".into()) };
        let mut text = String::new();
        for (step, name) in ["/a", "/b", "/c"].iter().enumerate() {
            text.push_str(&format!("{}\n", entry(name).to_line(step)));
        }
        text.push_str(&format!("{}\n", done(1)));
        text.push_str(&entry("/d").to_line(3)[..20]);
        assert_eq!(open_entries(&text), Ok(vec![(0, entry("/a")), (2, entry("/c"))]));
        assert_eq!(open_entries("nonsense\n"), Err(1), "a whole line that cannot be read is not ignored");
        assert_eq!(open_entries(""), Ok(vec![]));
    }
}
