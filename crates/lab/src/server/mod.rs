//! Real database servers as targets: PostgreSQL and MariaDB, private, started for a run and removed after it.
//!
//! Start with [`Server`]: found ([`find`]), made in a folder that the journal knows (`host::server`), configured by the factors
//! ([`Settings`]), started, asked through a [`Connection`], stopped. What differs between the two products is in `postgres` and
//! `mariadb`, nowhere else. [`sampler`]
//! looks at its sessions from outside; [`cases`] has the workloads. [`url`] is the way to a server that was there before.

pub mod cases;
pub mod connection;
mod connector;
pub mod counters;
pub mod durability;
mod error;
pub mod existing;
mod fate;
mod files;
pub mod find;
pub mod lifeline;
pub mod mariadb;
pub mod open;
pub mod possible;
pub mod postgres;
pub mod profile;
pub mod proof;
pub(crate) mod run;
pub mod sampled;
pub mod sampler;
pub mod site;
pub mod url;
pub(crate) mod visitor;
pub mod watcher;

pub use connection::{Connection, Parameter};
pub use connector::Connector;
pub use error::ServerError;

use crate::LabError;
use engine::Placement;
use fate::Remains;
use files::{Files, Layout};
use find::Programs;
use host::journal::Journal;
use host::server::{Ending, User};
use io::{Api, IoMode};
use lifeline::{Hang, Lifeline, PATIENCE, Pulse};
use site::Site;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Bytes, Nanos, clock};

/// Longest that a server may take to start or to stop.
const START_MAX: Nanos = Nanos::millis(120_000);
/// How often its state is asked for meanwhile.
const LOOK_EVERY: Nanos = Nanos::millis(20);
/// Longest that a killed process is waited for.
const END_MAX: Nanos = Nanos::millis(5_000);
/// Length of a log's end that is told.
const LAST_WORDS: usize = 600;
/// Longest path of a unix socket, bytes (`sun_path`).
const SOCKET_PATH_MAX: usize = 107;
/// Where the server's words go, in its folder.
const LOG: &str = "log";
/// Where its files are, in its folder.
pub(crate) const DATA: &str = "data";

/// A product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// PostgreSQL 15 to 18.
    Postgres,
    /// MariaDB 10.11 and later.
    Mariadb,
}

impl Kind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Postgres, Self::Mariadb];

    /// As it is typed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Mariadb => "mariadb",
        }
    }

    /// Debian's package.
    pub(crate) const fn package(self) -> &'static str {
        match self {
            Self::Postgres => "postgresql",
            Self::Mariadb => "mariadb-server",
        }
    }

    /// The option that names the folder of its programs, without `--` and `-bin`.
    pub(crate) const fn option(self) -> &'static str {
        match self {
            Self::Postgres => "pg",
            Self::Mariadb => "mariadb",
        }
    }

    /// The place of parameter `n` (from 1) in a prepared statement.
    pub fn place(self, n: usize) -> String {
        match self {
            Self::Postgres => format!("${n}"),
            Self::Mariadb => "?".to_owned(),
        }
    }
}

impl FromStr for Kind {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| format!("{text:?} is no database server; type postgres or mariadb"))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Postgres => "PostgreSQL",
            Self::Mariadb => "MariaDB",
        })
    }
}

/// What the factors say of a server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its buffer cache.
    pub cache: Bytes,
    /// Its redo, all together; a server may go beyond it (PostgreSQL's limit is soft).
    pub redo: Bytes,
    /// How it does I/O.
    pub mode: IoMode,
    /// By which interface, where the mode is asynchronous.
    pub api: Api,
    /// Its block, chosen when its files are made; none: as it comes.
    pub block: Option<Bytes>,
    /// Connections that it must take, ours for looking at it included.
    pub connections: u32,
    /// Parameters of its own, by name; they come last and win.
    pub parameters: Vec<(String, String)>,
}

/// A private server.
pub struct Server {
    kind: Kind,
    programs: Programs,
    version: String,
    files: Files,
    process: Option<Child>,
    /// All sessions with it, and who asks whether it answers.
    lifeline: Arc<Lifeline>,
    pulse: Option<Pulse>,
    settings: Settings,
    /// It has everything that it gets when it first runs.
    furnished: bool,
}

impl Server {
    /// Makes its first files in `parent`, a directory of ours, and in the places that classes of files have elsewhere; it does not
    /// run yet. `given`: folder of its programs.
    ///
    /// # Errors
    /// It is not installed, cannot do what `settings` say, or cannot make its files; [`LabError::Cancelled`].
    pub fn create(
        kind: Kind,
        given: Option<&Path>,
        (parent, placement): (&Path, &Placement),
        settings: &Settings,
        journal: &mut Journal,
        cancel: &AtomicBool,
    ) -> Result<Self, LabError> {
        let programs = find::programs(kind, given)?;
        let version = version(kind, &programs)?;
        can(kind, &programs, &version, settings)?;
        let user = User::unprivileged(match kind {
            Kind::Postgres => &["postgres"],
            Kind::Mariadb => &["mysql"],
        })?;
        let files = Files::create(kind, parent, placement, user, journal)?;
        let (process, pulse, settings, furnished) = (None, None, settings.clone(), false);
        let lifeline = Lifeline::new(PATIENCE);
        let this = Self { kind, programs, version, files, process, lifeline, pulse, settings, furnished };
        let socket = this.connector().socket();
        if socket.as_os_str().len() > SOCKET_PATH_MAX {
            return Err(LabError::Target(format!(
                "the path of the server's socket, {}, is longer than the {SOCKET_PATH_MAX} bytes that the system allows; \
                 name a directory with a shorter path: --dir DIR",
                socket.display()
            )));
        }
        this.install(cancel)?;
        Ok(this)
    }

    /// Which product.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Where its programs are.
    pub fn programs(&self) -> &Programs {
        &self.programs
    }

    /// `15.20`, `10.11.19` ….
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The longest that it may say nothing once it has started, before its sessions are let go; [`PATIENCE`] otherwise.
    pub fn set_patience(&mut self, patience: Nanos) {
        self.lifeline = Lifeline::new(patience);
    }

    /// What it was last told.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The parameters that it is started with, for the plan.
    pub fn command_line(&self) -> Vec<String> {
        arguments(self.kind, &self.version, &self.settings, &self.files.layout()).unwrap_or_default()
    }

    /// Its data directory.
    pub fn data(&self) -> PathBuf {
        self.files.layout().data
    }

    /// Makes the first files.
    fn install(&self, cancel: &AtomicBool) -> Result<(), LabError> {
        let layout = self.files.layout();
        let arguments = match self.kind {
            Kind::Postgres => postgres::install_arguments(&layout),
            Kind::Mariadb => mariadb::install_arguments(&layout, &self.settings, &self.programs),
        };
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut child = self.files.main().start(&self.programs.install, &arguments, "install.log")?;
        let status = wait(&mut child, cancel, &mut || false)?;
        if status == Some(true) {
            return Ok(());
        }
        let log = last_words(&self.files.main().path().join("install.log"));
        Err(ServerError::NotStarted { kind: self.kind, why: error::start_failure(&log), said: log }.into())
    }

    /// Starts it with the settings that it has; returns when it answers.
    ///
    /// # Errors
    /// [`ServerError::NotStarted`] with its last words; [`LabError::Cancelled`].
    pub fn start(&mut self, cancel: &AtomicBool) -> Result<(), LabError> {
        let arguments = arguments(self.kind, &self.version, &self.settings, &self.files.layout())?;
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut child = self.files.main().start(&self.programs.server, &arguments, LOG)?;
        let waited = wait(&mut child, cancel, &mut || self.connector().connect("start").is_ok());
        let ended = match waited {
            Ok(None) => {
                self.process = Some(child);
                self.furnish()?;
                let folder = self.files.main().path().to_owned();
                let processes = move || host::server::processes_of(&folder);
                self.pulse = Some(Pulse::start(&self.connector(), &self.lifeline, processes)?);
                return Ok(());
            }
            Ok(Some(_)) => None,
            Err(LabError::Cancelled) => Some(LabError::Cancelled),
            Err(error) => Some(error),
        };
        end_now(&mut child);
        let said = self.last_words();
        let why = error::start_failure(&said);
        Err(ended.unwrap_or_else(|| ServerError::NotStarted { kind: self.kind, why, said }.into()))
    }

    /// What can only be made while it runs: tablespaces in their places.
    fn furnish(&mut self) -> Result<(), LabError> {
        if self.kind == Kind::Postgres && !self.furnished {
            let mut session = self.connect("furnish")?;
            postgres::tablespaces(&self.files.layout()).iter().try_for_each(|sql| session.execute(sql))?;
        }
        self.furnished = true;
        Ok(())
    }

    /// Stops it in order; everything is on disk then. Nothing when it does not run.
    ///
    /// # Errors
    /// It was gone already, or does not end in time: then it is killed.
    pub fn stop(&mut self) -> Result<(), LabError> {
        self.pulse = None;
        let Some(mut child) = self.process.take() else { return Ok(()) };
        if let Ok(Some(_)) = child.try_wait() {
            return Err(self.gone("it had ended before it was stopped"));
        }
        let by = match self.kind {
            Kind::Postgres => Ending::Interrupt,
            Kind::Mariadb => Ending::Terminate,
        };
        self.files.main().ask_to_end(&child, by)?;
        let never = AtomicBool::new(false);
        match wait(&mut child, &never, &mut || false) {
            // One that was killed a moment ago may not have been seen to be gone.
            Ok(Some(false)) => Err(self.gone("it did not end in order when it was stopped")),
            Ok(_) => Ok(()),
            Err(error) => {
                end_now(&mut child);
                Err(error)
            }
        }
    }

    /// Stops it and starts it again with other settings.
    ///
    /// # Errors
    /// As [`Server::stop`] and [`Server::start`].
    pub fn restart(&mut self, settings: &Settings, cancel: &AtomicBool) -> Result<(), LabError> {
        self.stop()?;
        self.settings = settings.clone();
        self.start(cancel)
    }

    /// Nothing of its data is in its own cache or in the page cache afterwards: it is stopped, its files are dropped from the page
    /// cache, and it starts again. All connections are lost.
    ///
    /// # Errors
    /// As [`Server::restart`].
    pub fn empty_caches(&mut self, cancel: &AtomicBool) -> Result<(), LabError> {
        self.stop()?;
        self.files.drop_from_page_cache()?;
        self.start(cancel)
    }

    /// Ends it and removes its files, wherever they lie.
    ///
    /// # Errors
    /// What could not be undone; it stays in the journal.
    pub fn remove(mut self, journal: &mut Journal) -> Result<(), LabError> {
        self.kill();
        // A removal on a device that does not answer would never return: the files stay in the journal.
        if let Some(Hang::Stuck(_)) = self.lifeline.hang() {
            return Ok(());
        }
        let steps: Vec<_> = self.files.folders().map(|folder| folder.step()).collect();
        // Of all folders, whatever becomes of the first.
        let undone: Vec<_> = steps.into_iter().map(|step| journal.undo(step)).collect();
        undone.into_iter().try_for_each(|result| result.map(|_| ()))?;
        Ok(())
    }

    /// Ends it at once, as after an error: its files go with it.
    pub(crate) fn kill(&mut self) {
        self.pulse = None;
        if let Some(mut child) = self.process.take() {
            // Its children end by themselves or by the journal's undo.
            end_now(&mut child);
        }
    }

    /// A session, named `application` where the server shows such names.
    ///
    /// # Errors
    /// What the server says; that it is gone.
    pub fn connect(&self, application: &str) -> Result<Box<dyn Connection>, ServerError> {
        Site::connect(self, application)
    }

    /// What opens sessions, also after it was stopped and started again.
    pub fn connector(&self) -> Connector {
        Connector::private(self.kind, self.files.main().path(), &self.lifeline)
    }

    /// The same error, with what became of the server and its last words where it is gone.
    pub fn explain(&self, error: ServerError) -> ServerError {
        let remains = Remains {
            lifeline: &self.lifeline,
            process: self.process(),
            processes: self.files.main().processes(),
            log: self.last_words(),
        };
        remains.explain(self.kind, error)
    }

    /// The process that others begin from; none when it does not run.
    pub fn process(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    fn gone(&self, said: &str) -> LabError {
        self.explain(ServerError::gone(self.kind, said)).into()
    }

    fn last_words(&self) -> String {
        last_words(&self.files.main().path().join(LOG))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Kills a process and takes leave of it. One that waits for a device ends when that answers, and is not waited for longer than this.
fn end_now(child: &mut Child) {
    let _ = child.kill();
    let until = clock::now() + END_MAX;
    while clock::now() < until && matches!(child.try_wait(), Ok(None)) {
        clock::sleep(LOOK_EVERY);
    }
}

/// Whether a server of this version and build can do what `settings` say.
fn can(kind: Kind, programs: &Programs, version: &str, settings: &Settings) -> Result<(), ServerError> {
    arguments(kind, version, settings, &Layout::in_folder(Path::new("/")))?;
    match kind {
        Kind::Postgres => postgres::built_for(&programs.server, version, settings),
        Kind::Mariadb => Ok(()),
    }
}

fn arguments(
    kind: Kind,
    version: &str,
    settings: &Settings,
    layout: &Layout,
) -> Result<Vec<String>, ServerError> {
    match kind {
        Kind::Postgres => postgres::arguments(version, settings, layout),
        Kind::Mariadb => mariadb::arguments(version, settings, layout),
    }
}

/// What the server's program says of itself.
fn version(kind: Kind, programs: &Programs) -> Result<String, LabError> {
    let output = std::process::Command::new(&programs.server)
        .arg("--version")
        .stdin(std::process::Stdio::null())
        .output()
        .map_err(|e| LabError::Target(format!("{} cannot be run: {e}", programs.server.display())))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // `postgres (PostgreSQL) 15.20 (Debian …)`, `mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for …`
    let starts = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    let number = |word: &str| word.split(['-', '~']).next().unwrap_or(word).to_owned();
    text.split_whitespace().find(starts).map(number).ok_or_else(|| {
        LabError::Target(format!(
            "{} --version says {text:?}, which is no version; is it {kind}?",
            programs.server.display()
        ))
    })
}

/// The first number of a version.
pub(crate) fn major(version: &str) -> u32 {
    version.split(|c: char| !c.is_ascii_digit()).next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// Waits until `ready` (none) or until the process ends (whether in order).
fn wait(
    child: &mut Child,
    cancel: &AtomicBool,
    ready: &mut dyn FnMut() -> bool,
) -> Result<Option<bool>, LabError> {
    let until = clock::now() + START_MAX;
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Ok(Some(status.success()));
        }
        if ready() {
            return Ok(None);
        }
        if cancel.load(Ordering::Relaxed) {
            end_now(child);
            return Err(LabError::Cancelled);
        }
        if clock::now() > until {
            return Err(LabError::Target(format!(
                "the server neither started nor stopped within {} s; a device that does not answer? look at: dmesg | tail",
                START_MAX.as_secs()
            )));
        }
        clock::sleep(LOOK_EVERY);
    }
}

/// The end of a log, on one line.
fn last_words(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let end = lines[lines.len().saturating_sub(6)..].join(" | ");
    match end.char_indices().rev().nth(LAST_WORDS) {
        Some((at, _)) => format!("…{}", &end[at..]),
        None => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_begin_with_their_major() {
        assert_eq!((major("15.20"), major("10.11.19"), major("18beta1")), (15, 10, 18));
    }
}
