//! Servers in trouble while a run measures on them: killed, stopped, without a free connection, on a full disk. Each run ends in words
//! that say what was seen and what to type, keeps its record, and leaves nothing behind.

use crate::existing::Somebodys;
use crate::servers::passable;
use crate::stage::{Done, Stage, measuring};
use lab::server::{Connection, Kind};
use record::Reader;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::AtomicBool;
use units::{Nanos, clock};

/// A run that measures: its window has begun.
struct Measuring<'a> {
    stage: &'a Stage,
    child: Child,
}

impl<'a> Measuring<'a> {
    fn start(stage: &'a Stage, arguments: &[&str]) -> Self {
        let long = ["--minutes", "0.6", "--scale", "0.0005", "--sessions", "3", "--quiet"];
        let mut child = crate::stop::start(stage, &[&["run", "commit"], arguments, &long].concat());
        let begun = || {
            let visits = |path: &PathBuf| Reader::open(path).ok()?.visits().ok();
            stage.records().iter().filter_map(visits).any(|visits| !visits.is_empty())
        };
        while !begun() {
            assert!(child.try_wait().expect("alive").is_none(), "it ended before it began");
            clock::sleep(Nanos::millis(50));
        }
        clock::sleep(Nanos::millis(1500));
        Self { stage, child }
    }

    /// It ends with `words`; its record can be shown and says the same.
    fn fails(self, words: &[&str]) -> Done {
        let done = Done::of(self.child.wait_with_output().expect("wait")).refused(words);
        assert!(done.stderr.contains("redoubt report "), "where is the record?\n{}", done.stderr);
        let status = self.stage.reader().status().expect("status");
        assert!(status.starts_with("failed: ") && status.contains(words[0]), "{status}");
        let shown = self.stage.run(&["report", "last"]).ok().stdout;
        assert!(shown.contains("did not finish"), "{shown}");
        self.stage.assert_untouched();
        done
    }
}

fn nothing_is_left(stage: &Stage) {
    assert_eq!(servers_in(stage.folder()), [0; 0], "somebody still works there");
    assert!(stage.run(&["cleanup"]).ok().stdout.contains("Nothing to undo"));
}

/// Processes that work in a folder, the first one first.
fn servers_in(folder: &Path) -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let mut found: Vec<u32> = processes
        .filter(|process| fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder)))
        .filter_map(|process| process.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            ["postgres", "mariadbd"].contains(&name.trim())
        })
        .collect();
    found.sort_unstable();
    found
}

fn signal(name: &str, processes: &[u32]) {
    let processes = processes.iter().map(u32::to_string);
    let done = Command::new("kill").arg(format!("-{name}")).args(processes).status().expect("kill");
    assert!(done.success());
}

#[test]
fn a_server_that_is_killed_is_told() {
    let _turn = measuring();
    for kind in Kind::ALL {
        let stage = passable();
        let run = Measuring::start(&stage, &["--target", kind.name()]);
        let first = servers_in(stage.folder())[0];
        signal("KILL", &[first]);
        run.fails(&["is gone", "signal 9", "kill -9", "dmesg", &first.to_string()]);
        nothing_is_left(&stage);
    }
}

#[test]
fn a_server_that_hangs_is_given_up() {
    let _turn = measuring();
    let stage = passable();
    let run = Measuring::start(&stage, &["--target", "postgres", "--patience", "1"]);
    let all = servers_in(stage.folder());
    signal("STOP", &all);
    run.fails(&["hangs", "`select 1`", "stopped (state T)", "type the same again"]);
    nothing_is_left(&stage);
}

/// A file system of the tests' own, on a file.
struct Disk(PathBuf);

impl Disk {
    fn mount(stage: &Stage) -> Self {
        let (image, path) = (stage.folder().join("image"), stage.folder().join("disk"));
        fs::File::create(&image).and_then(|file| file.set_len(900 << 20)).expect("an image");
        fs::create_dir(&path).expect("a folder");
        let run = |program: &str, arguments: &[&str]| {
            let mut command = Command::new(program);
            let done = command.args(arguments).arg(&image).output().expect("start it");
            assert!(done.status.success(), "{program}: {}", String::from_utf8_lossy(&done.stderr));
        };
        run("mkfs.ext4", &["-q", "-F", "-m", "0"]);
        let shown = path.to_str().expect("a plain path");
        run("mount", &["--target", shown, "-o", "loop", "--source"]);
        Self(path)
    }

    /// Lets nobody write to it (`-f`), or everybody again (`-u`).
    fn freeze(&self, way: &str) {
        let done = Command::new("fsfreeze").arg(way).arg(&self.0).status();
        assert!(done.expect("fsfreeze").success());
    }

    /// Takes all that is free.
    fn fill(&self) {
        for number in 0..30 {
            let free = io::prepare::free_space(&self.0).expect("free space") * 9 / 10;
            if free < 64 << 10 {
                break;
            }
            let file = self.0.join(format!("filler{number}"));
            let _ = Command::new("fallocate").arg("-l").arg(free.to_string()).arg(file).output();
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_disk_that_fills_up_is_told() {
    let _turn = measuring();
    for kind in Kind::ALL {
        let stage = passable();
        let disk = Disk::mount(&stage);
        let place = disk.0.to_str().expect("a plain path");
        let run = Measuring::start(&stage, &["--target", kind.name(), "--dir", place]);
        disk.fill();
        run.fails(&["disk is full", "df -h", "--dir"]);
        nothing_is_left(&stage);
        let of_ours = |name: &str| !(name == "lost+found" || name.starts_with("filler"));
        let entries = fs::read_dir(&disk.0).expect("the disk").flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        assert_eq!(names.filter(|name| of_ours(name)).count(), 0, "something of ours was left");
    }
}

/// The server answers `select 1`, and its commits wait for a device that does not come back.
#[test]
fn a_device_that_does_not_answer_is_told() {
    let _turn = measuring();
    for kind in Kind::ALL {
        let stage = passable();
        let disk = Disk::mount(&stage);
        let place = disk.0.to_str().expect("a plain path");
        let run = Measuring::start(&stage, &["--target", kind.name(), "--dir", place, "--patience", "2"]);
        disk.freeze("-f");
        // All that touches it waits until it answers again, also who would remove something.
        let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            run.fails(&["hangs", "does not answer", "/stack", "redoubt cleanup"])
        }));
        disk.freeze("-u");
        failed.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        assert!(stage.run(&["cleanup"]).ok().stdout.contains("undone"));
        nothing_is_left(&stage);
        let entries = fs::read_dir(&disk.0).expect("the disk").flatten();
        assert!(
            entries.map(|entry| entry.file_name()).all(|name| name == "lost+found"),
            "something was left"
        );
    }
}

/// Others have all connections, or leave too few: the run says so, and drops its schema by the one that it kept.
#[test]
fn a_server_without_a_free_connection_keeps_no_schema() {
    let _turn = measuring();
    let somebodys = Somebodys::start(Kind::Postgres);
    let stage = Stage::new();
    let url = somebodys.url("");
    let arguments = ["run", "commit", "--target", &url, "--allow-writes", "--sessions", "3"];
    let words = ["connections are taken", "--sessions", "from pg_stat_activity"];
    let connect = |_| somebodys.server.connect("taker").ok();
    let mut takers: Vec<Box<dyn Connection>> = (0..20).map_while(connect).collect();
    stage.run(&arguments).refused(&words);
    assert!(stage.records().is_empty(), "nothing had begun");
    // Enough for the schema, too few for the sessions.
    takers.truncate(takers.len() - 4);
    stage.run(&arguments).refused(&words);
    assert_eq!(stage.reader().visits().expect("visits").len(), 1, "it had begun");
    drop(takers);
    assert_eq!(somebodys.left(), 0, "a schema of ours is left");
    stage.run(&["report", "last"]).ok();
    nothing_is_left(&stage);
    somebodys.end();
}

/// What stood there before and went away keeps our schema until it is back: cleanup then drops it.
#[test]
fn a_schema_outlives_its_server_until_cleanup() {
    let _turn = measuring();
    let mut somebodys = Somebodys::start(Kind::Postgres);
    let stage = Stage::new();
    let url = somebodys.url("");
    let run = Measuring::start(&stage, &["--target", &url, "--allow-writes"]);
    signal("KILL", &[somebodys.server.process().expect("it runs")]);
    run.fails(&["is gone", "Not undone: drop the schema redoubt_", "redoubt cleanup"]);
    let done = stage.run(&["cleanup"]);
    assert!(done.code == Some(1) && done.stdout.contains("FAILED"), "{}", done.stdout);
    let _ = somebodys.server.stop();
    somebodys.server.start(&AtomicBool::new(false)).unwrap_or_else(|error| panic!("{error}"));
    assert!(somebodys.left() > 0, "it was there");
    assert!(stage.run(&["cleanup"]).ok().stdout.contains("undone"));
    assert_eq!(somebodys.left(), 0);
    nothing_is_left(&stage);
    somebodys.end();
}

#[test]
fn a_server_of_somebody_elses_that_hangs_is_left_as_it_is() {
    let _turn = measuring();
    let somebodys = Somebodys::start(Kind::Mariadb);
    let stage = Stage::new();
    let url = somebodys.url("tiger%2Bscott");
    let run = Measuring::start(&stage, &["--target", &url, "--allow-writes", "--patience", "1"]);
    let server = somebodys.server.process().expect("it runs");
    signal("STOP", &[server]);
    let done = run.fails(&["hangs", "ps -eo", "--patience", "redoubt cleanup"]);
    assert!(!done.stderr.contains("tiger"), "a password was shown");
    signal("CONT", &[server]);
    assert!(somebodys.left() > 0, "it was there");
    let password = [("MYSQL_PWD", "tiger+scott")];
    let cleaned = stage.command(&["cleanup"]).envs(password).output().expect("start redoubt");
    assert!(Done::of(cleaned).ok().stdout.contains("undone"));
    assert_eq!(somebodys.left(), 0);
    nothing_is_left(&stage);
    somebodys.end();
}
