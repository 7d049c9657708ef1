//! Which process wrote a journal, and is it gone?

use crate::files;
use serde_json::{Value, json};
use units::clock;

/// A process, for ever: its number alone is used again, number, start time, boot and machine together are not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) pid: u32,
    /// Clock ticks after boot (`/proc/PID/stat`, field 22).
    pub(super) start_ticks: u64,
    pub(super) boot: String,
    /// Name space of process numbers: a container's 17 is not the host's 17.
    pub(super) pid_space: String,
    /// A home directory may be shared by many machines.
    pub(super) machine: String,
    pub(super) purpose: String,
}

/// What became of the process that wrote a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It runs.
    Running,
    /// It is gone; what it changed may still be so.
    Gone,
    /// Gone with a reboot: mounts, loop devices and kernel settings went with it; files did not.
    Rebooted,
    /// It ran on another machine.
    Elsewhere,
    /// It ran in another container of this machine; its number says nothing here.
    OtherSpace,
}

impl Identity {
    /// This process.
    pub(super) fn own(purpose: &str) -> Self {
        let pid = std::process::id();
        Self {
            pid,
            start_ticks: start_ticks(pid).unwrap_or(0),
            boot: boot(),
            pid_space: pid_space(),
            machine: machine(),
            purpose: purpose.to_owned(),
        }
    }

    /// The first line of a journal.
    pub(super) fn to_line(&self, id: &str) -> String {
        json!({"redoubt_journal": 1, "id": id, "pid": self.pid, "start_ticks": self.start_ticks, "boot": self.boot,
               "pid_space": self.pid_space, "machine": self.machine, "purpose": self.purpose, "utc": clock::utc()})
        .to_string()
    }

    /// Reads the first line: (id, identity). None when it is not whole.
    pub(super) fn from_line(line: &str) -> Option<(String, Self)> {
        let json: Value = serde_json::from_str(line).ok()?;
        let text = |name: &str| json.get(name)?.as_str().map(str::to_owned);
        (json.get("redoubt_journal")?.as_u64()? == 1).then_some(())?;
        let identity = Self {
            pid: json.get("pid")?.as_u64()?.try_into().ok()?,
            start_ticks: json.get("start_ticks")?.as_u64()?,
            boot: text("boot")?,
            pid_space: text("pid_space")?,
            machine: text("machine")?,
            purpose: text("purpose")?,
        };
        Some((text("id")?, identity))
    }

    /// For a journal without a whole first line: true when the process in its name (`PID-TICKS-SEED`) does not run here.
    pub(super) fn name_is_gone(id: &str) -> bool {
        let mut parts = id.split('-');
        let mut number = || parts.next()?.parse::<u64>().ok();
        let (Some(pid), Some(ticks)) = (number(), number()) else { return false };
        u32::try_from(pid).is_ok_and(|pid| start_ticks(pid) != Some(ticks))
    }

    /// Compares number, start time and boot with what runs now.
    pub(super) fn fate(&self) -> Fate {
        if self.machine != machine() {
            Fate::Elsewhere
        } else if self.boot != boot() {
            Fate::Rebooted
        } else if self.pid_space != pid_space() {
            Fate::OtherSpace
        } else if start_ticks(self.pid) == Some(self.start_ticks) {
            Fate::Running
        } else {
            Fate::Gone
        }
    }
}

fn boot() -> String {
    files::text("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

fn machine() -> String {
    let id = files::text("/etc/machine-id").filter(|id| !id.is_empty());
    id.unwrap_or_else(|| rustix::system::uname().nodename().to_string_lossy().into_owned())
}

fn pid_space() -> String {
    std::fs::read_link("/proc/self/ns/pid")
        .map_or_else(|_| String::new(), |l| l.to_string_lossy().into_owned())
}

/// Field 22 of `/proc/PID/stat`; none when there is no such process or it is dead but not yet waited for (a zombie
/// changes nothing any more).
fn start_ticks(pid: u32) -> Option<u64> {
    parse_stat(&files::text(format!("/proc/{pid}/stat"))?)
}

/// The command name may hold spaces and brackets: fields are counted after the last bracket.
fn parse_stat(text: &str) -> Option<u64> {
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") { None } else { fields.nth(18)?.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_back_whole() {
        let own = Identity::own("compare in /data");
        assert_eq!(Identity::from_line(&own.to_line("x")), Some(("x".into(), own.clone())));
        assert_eq!(Identity::from_line(&own.to_line("x")[..40]), None, "torn");
        assert_eq!(own.fate(), Fate::Running);
    }

    #[test]
    fn tells_the_fates_apart() {
        let own = Identity::own("");
        let check = |change: fn(&mut Identity), fate| {
            let mut other = own.clone();
            change(&mut other);
            assert_eq!(other.fate(), fate);
        };
        check(|i| i.start_ticks += 1, Fate::Gone);
        check(|i| i.pid = u32::MAX, Fate::Gone);
        check(|i| i.boot.push('x'), Fate::Rebooted);
        check(|i| i.machine.push('x'), Fate::Elsewhere);
        check(|i| i.pid_space.push('x'), Fate::OtherSpace);
    }

    #[test]
    fn reads_the_start_of_a_process_with_an_odd_name() {
        let rest = "1 1 1 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 98765 1000 200";
        assert_eq!(parse_stat(&format!("42 (a) b (c) S {rest}")), Some(98_765));
        assert_eq!(parse_stat(&format!("42 (x) Z {rest}")), None, "a zombie is gone");
    }
}
