//! What an ordinary user meets: everything that needs no root works, the rest is refused before anything is touched, with what to
//! type. As root, as in CI, the program runs as `nobody`, in a directory that belongs to him.

use crate::stage::{Done, copy_program, is_root, measuring};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use units::{Nanos, clock};

const NOBODY: u32 = 65_534;
/// Two modes, the smallest size, the shortest time.
const SMALL: [&str; 7] = ["compare", "--minutes", "0.2", "--size", "64m", "--modes", "none,directio"];

/// A user with a home and a directory.
struct User {
    /// Holds everything, the program too: the build may lie where only root may go.
    public: tempfile::TempDir,
    directory: PathBuf,
}

impl User {
    fn new() -> Self {
        let public = tempfile::tempdir_in("/tmp").expect("a temporary folder");
        fs::set_permissions(public.path(), fs::Permissions::from_mode(0o755)).expect("open the way");
        copy_program(&public.path().join("redoubt"));
        let directory = public.path().join("data");
        for folder in [&directory, &public.path().join("home")] {
            fs::create_dir(folder).expect("make it");
            if is_root() {
                chown(folder, Some(NOBODY), Some(NOBODY)).expect("give it away");
            }
        }
        Self { public, directory }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let program = self.public.path().join("redoubt");
        let mut command = if is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        command.args(arguments).env("REDOUBT_HOME", self.public.path().join("home")).env("NO_COLOR", "1");
        command.current_dir(&self.directory).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> Done {
        Done::of(self.command(arguments).output().expect("setpriv is in package util-linux"))
    }

    /// Refused without a trace, neither in the directory nor among the records.
    fn refused(&self, arguments: &[&str], words: &[&str]) {
        self.run(arguments).refused(words);
        self.assert_clean();
        assert_eq!(self.records(), 0, "{arguments:?} left a record of a run that never was");
    }

    fn records(&self) -> usize {
        let names = fs::read_dir(self.public.path().join("home/runs")).into_iter().flatten().flatten();
        names.filter(|entry| entry.path().extension().is_some_and(|e| e == "redoubt")).count()
    }

    fn assert_clean(&self) {
        assert_eq!(names(&self.directory), Vec::<String>::new(), "something was left");
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("read the directory").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn what_needs_no_root_works() {
    let _turn = measuring();
    let user = User::new();
    let done = user.run(&SMALL).ok();
    assert!(done.stderr.contains("Planned") && done.stderr.contains("took"), "{}", done.stderr);
    assert_eq!(user.records(), 1);
    user.assert_clean();
    let done = user.run(&["compare", "--vary", "place.redo=here,.", "--dry-run"]).ok();
    assert!(done.stdout.contains("2 configurations"), "{}", done.stdout);
    assert!(user.run(&["cleanup"]).ok().stdout.contains("Nothing to undo"));
}

#[test]
fn what_needs_root_is_said_once_with_what_to_type() {
    let user = User::new();
    for arguments in [
        &["compare", "filesystem"][..],
        &["compare", "scheduler", "--vary", "scheduler=none,kyber"],
        &["compare", "placement"],
        &["compare", "--vary", "throttle=off,hdd-7200"],
        &["compare", "--vary", "nr_requests=64,128"],
        &["compare", "--vary", "fs=ext4,raw", "--dry-run"],
    ] {
        if is_root() {
            user.refused(arguments, &["needs root. Type: sudo", "nothing to compare"]);
        }
    }
    let done = user.run(&["compare", "filesystem"]);
    assert_eq!(done.stderr.matches("sudo").count(), 1, "one reason, one line:\n{}", done.stderr);
}

/// A scheduler of a disk of the machine is nothing that a run may find out about in its middle.
#[test]
fn settings_of_the_machines_disks_are_refused_at_the_plan() {
    let disks = fs::read_dir("/sys/block").expect("devices").flatten();
    let own = disks.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let Some(disk) = own.into_iter().find(|name| !name.starts_with("loop") && !name.starts_with("ram"))
    else {
        panic!("this machine has no disk");
    };
    let user = User::new();
    let vary = format!("read_ahead_kb=64@/dev/{disk},128@/dev/{disk}");
    if is_root() {
        user.refused(&["compare", "--vary", &vary], &["needs root. Type: sudo", &disk]);
    }
}

#[test]
fn directories_of_others_are_refused_at_the_plan() {
    let user = User::new();
    let closed = tempfile::tempdir_in("/tmp").expect("a temporary folder");
    fs::set_permissions(closed.path(), fs::Permissions::from_mode(0o555)).expect("close it");
    let path = closed.path().to_str().expect("a plain path");
    user.refused(&["compare", "--dir", path], &[path, "ermission"]);
    user.refused(&["compare", "--dir", path, "--dry-run"], &[path, "ermission"]);
    let redo = format!("place.redo=here,{path}");
    user.refused(&["compare", "--vary", &redo], &[path, "ermission"]);
    user.refused(&["compare", "--vary", "place.redo=here,/etc/passwd"], &["/etc/passwd is not a directory"]);
    user.refused(&["compare", "--record", "/proc/mine.redoubt", "--minutes", "0.2"], &["/proc/mine.redoubt"]);
    assert_eq!(names(closed.path()), Vec::<String>::new());
}

/// A small file system of the user's own, nearly full. Needs root to be made, as CI has.
#[test]
fn a_full_disk_is_refused_before_the_first_byte() {
    if !is_root() {
        return;
    }
    let user = User::new();
    let (image, point) = (user.public.path().join("small.img"), user.public.path().join("small"));
    let run = |words: &[&str]| {
        let out = Command::new(words[0]).args(&words[1..]).output().expect("start it");
        assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
    };
    fs::File::create(&image).and_then(|file| file.set_len(100 << 20)).expect("a file");
    fs::create_dir(&point).expect("a mount point");
    let (image, place) = (image.to_str().expect("a plain path"), point.to_str().expect("a plain path"));
    run(&["mkfs.ext4", "-q", image]);
    run(&["mount", "-o", "loop", image, place]);
    chown(&point, Some(NOBODY), Some(NOBODY)).expect("give it away");
    let compared = user.run(&["compare", "--dir", place]);
    let calibrated = user.run(&["calibrate", place]);
    let left = names(&point);
    run(&["umount", place]);
    compared.refused(&["free", "smaller --size"]);
    calibrated.refused(&["free"]);
    assert_eq!(left, ["lost+found"]);
    assert_eq!(user.records(), 0);
}

#[test]
fn ctrl_c_leaves_nothing_half_made() {
    let _turn = measuring();
    for after in [Nanos::millis(300), Nanos::millis(4000)] {
        let user = User::new();
        let child = user.command(&SMALL).spawn().expect("start it");
        clock::sleep(after);
        // `setpriv` has become the program: same process.
        let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
        assert!(killed.success());
        let done = Done::of(child.wait_with_output().expect("wait"));
        // Before the handler stands, the signal just ends it.
        assert!(matches!(done.code, Some(130) | None), "{:?}\n{}\n{}", done.code, done.stdout, done.stderr);
        assert!(!done.stderr.contains("panicked"), "{}", done.stderr);
        user.assert_clean();
        assert!(user.run(&["cleanup"]).ok().stdout.contains("Nothing to undo"));
    }
}
