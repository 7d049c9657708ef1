//! A home for records and a directory under test, both gone at the end.

use record::Reader;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Long enough for every run of these tests, so that one that hangs is a failure and not a mystery.
const PATIENCE_SECONDS: &str = "240";

/// One measuring test at a time: they share two cores and a disk.
pub fn measuring() -> MutexGuard<'static, ()> {
    static MEASURING: Mutex<()> = Mutex::new(());
    MEASURING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The stage of one test.
pub struct Stage {
    folder: tempfile::TempDir,
    /// The directory that commands run in.
    pub directory: PathBuf,
    /// `REDOUBT_HOME`.
    pub home: PathBuf,
}

/// What the user keeps in the directory already.
pub const OWN_FILE: &str = "users01.dbf";
const OWN_CONTENT: &str = "a file of the user's own";

impl Stage {
    pub fn new() -> Self {
        // Beside the build, because a temporary directory may be memory.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
        let (directory, home) = (folder.path().join("data"), folder.path().join("home"));
        fs::create_dir(&directory).expect("make the directory");
        fs::create_dir(&home).expect("make the home");
        fs::write(directory.join(OWN_FILE), OWN_CONTENT).expect("write the user's file");
        Self { folder, directory, home }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The command, ready to start.
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(Path::new(env!("CARGO_BIN_EXE_redoubt")), arguments)
    }

    fn command_of(&self, binary: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command.arg("--foreground").arg(PATIENCE_SECONDS).arg(binary).args(arguments);
        command.env("REDOUBT_HOME", &self.home).env_remove("RUST_BACKTRACE").env("NO_COLOR", "1");
        command.current_dir(&self.directory).stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    pub fn run(&self, arguments: &[&str]) -> Done {
        Done::of(self.command(arguments).output().expect("start redoubt"))
    }

    /// Runs it, and does `trouble` again and again meanwhile.
    pub fn run_amid(&self, arguments: &[&str], mut trouble: impl FnMut()) -> Done {
        std::thread::scope(|scope| {
            let run = scope.spawn(|| self.run(arguments));
            while !run.is_finished() {
                trouble();
            }
            run.join().expect("it ran")
        })
    }

    /// Runs it as a user without privileges: as `nobody` when the tests run as root.
    pub fn run_unprivileged(&self, arguments: &[&str]) -> Done {
        if !is_root() {
            return self.run(arguments);
        }
        // The build may lie where only root may go, so the program comes along, and the way to it is opened.
        let public = tempfile::tempdir_in("/tmp").expect("a temporary folder");
        let binary = public.path().join("redoubt");
        copy_program(&binary);
        let home = public.path().join("home");
        fs::create_dir(&home).expect("make the home");
        for (path, mode) in [(public.path(), 0o755), (home.as_path(), 0o777)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("open the way");
        }
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&binary).args(arguments);
        command.env("REDOUBT_HOME", &home).env("NO_COLOR", "1").current_dir(&home).stdin(Stdio::null());
        Done::of(command.output().expect("setpriv is in package util-linux"))
    }

    /// The only record in the home.
    pub fn record(&self) -> PathBuf {
        let records = self.records();
        assert_eq!(records.len(), 1, "one run, one record: {records:?}");
        records.into_iter().next().expect("one")
    }

    pub fn records(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.home.join("runs")).into_iter().flatten().flatten();
        entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "redoubt")).collect()
    }

    pub fn reader(&self) -> Reader {
        Reader::open(&self.record()).expect("the record opens")
    }

    /// Nothing of ours in the directory, and the user's file as it was.
    pub fn assert_untouched(&self) {
        let entries = fs::read_dir(&self.directory).expect("read the directory").flatten();
        let names: Vec<_> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        assert_eq!(names, [OWN_FILE], "something of ours was left");
        let content = fs::read_to_string(self.directory.join(OWN_FILE)).expect("read the user's file");
        assert_eq!(content, OWN_CONTENT, "the user's file was changed");
    }
}

/// Whether the tests run as root.
pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0)
}

/// A finished command.
pub struct Done {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Done {
    pub fn of(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// It ended well.
    pub fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "standard output:\n{}\nstandard error:\n{}", self.stdout, self.stderr);
        self
    }

    /// It was refused, in one readable message that contains all `words`, and is neither a panic nor a trace.
    pub fn refused(self, words: &[&str]) -> Self {
        assert!(!matches!(self.code, None | Some(0)), "it should have been refused:\n{}", self.stdout);
        for word in words {
            assert!(self.stderr.contains(word), "no {word:?} in the message:\n{}", self.stderr);
        }
        assert!(!self.stderr.contains("panicked"), "a panic is no message:\n{}", self.stderr);
        self
    }
}

/// Puts the program elsewhere. By another process: while a file is open for writing here, a process that another test starts has it open too
/// for a moment, and then it cannot be run ("Text file busy").
pub fn copy_program(to: &Path) {
    let status = Command::new("cp").arg(env!("CARGO_BIN_EXE_redoubt")).arg(to).status().expect("cp");
    assert!(status.success(), "cp to {}", to.display());
}
