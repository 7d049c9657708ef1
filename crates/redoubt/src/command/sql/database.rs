//! What is asked: an instance that this process runs, or the record of a run.

use crate::cli::Sql;
use crate::command::oranfstab;
use anyhow::{Context, Result, anyhow, bail, ensure};
use engine::parameter::Parameter;
use engine::{Background, Environment, Instance, InstanceConfig, Shutdown};
use io::{IoError, RealStorage, Storage};
use lab::export::{self, Export, is_export};
use sql::{Connection, Described, Interrupter, Outcome, RunRecord, Sink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::{Nanos, Seed};
use waits::ash::Sampler;

/// Rows of active session history that are kept: some hours of a few sessions.
const HISTORY_ROWS: usize = 100_000;

/// What is asked.
pub enum Database {
    /// A database of ours.
    Ours(Box<Ours>),
    /// What a run left.
    Run(RunRecord),
}

/// A database of ours, and the instance over it while it is up.
pub struct Ours {
    config: InstanceConfig,
    up: Option<Up>,
    place: Place,
}

/// Where a database is, or will be.
struct Place {
    directory: PathBuf,
    storage: Arc<dyn Storage>,
    /// Keeps an export in use.
    _export: Option<Export>,
}

/// Drops in this order: the connection before the instance.
struct Up {
    connection: Connection,
    instance: Instance,
}

impl Database {
    /// Opens, or makes, what the options name.
    pub fn open(options: &Sql) -> Result<Self> {
        let parameters = options.set.iter().map(|set| parameter(set)).collect::<Result<Vec<_>>>()?;
        let path = PathBuf::from(&options.target);
        if options.create || path.is_dir() || is_export(&path) || options.oranfstab.oranfstab.is_some() {
            let place = Place::of(&path, options)?;
            if options.create {
                return make(place, parameters, options);
            }
            ensure!(
                Instance::exists(&*place.storage, &place.directory),
                "there is no database in {0}; make one: redoubt sql {0}/NAME --create",
                path.display()
            );
            let mut ours = Ours { config: config(place.directory.clone(), parameters), up: None, place };
            ours.start(Instance::open)?;
            return Ok(Self::Ours(Box::new(ours)));
        }
        let found = record::runs::find(&options.target).map_err(|error| {
            anyhow!("{error}; for a new database: redoubt sql {} --create", options.target)
        })?;
        ensure!(options.set.is_empty(), "--set is for databases; {} is the record of a run", found.display());
        Ok(Self::Run(RunRecord::open(&found)?))
    }

    /// Does one statement.
    pub fn execute(&mut self, text: &str, sink: &mut dyn Sink) -> Result<Outcome, sql::Error> {
        match self {
            Self::Run(run) => run.execute(text, sink),
            Self::Ours(ours) => match &mut ours.up {
                Some(up) => {
                    let outcome = up.connection.execute(text, sink);
                    for line in export::news() {
                        anstream::eprintln!("{line}");
                    }
                    outcome
                }
                None => Err(sql::SqlError::whole("the instance is down; type STARTUP").into()),
            },
        }
    }

    /// What stops a statement.
    pub fn interrupter(&self) -> Option<Interrupter> {
        match self {
            Self::Run(run) => Some(run.interrupter()),
            Self::Ours(ours) => ours.up.as_ref().map(|up| up.connection.interrupter()),
        }
    }

    /// The columns of a table or view.
    pub fn describe(&self, name: &str) -> Option<Vec<Described>> {
        match self {
            Self::Run(run) => run.describe(name),
            Self::Ours(ours) => ours.up.as_ref()?.connection.describe(name),
        }
    }

    /// Tables and views, with their columns.
    pub fn names(&self) -> Vec<(String, Vec<String>)> {
        match self {
            Self::Run(run) => run.names().unwrap_or_default(),
            Self::Ours(ours) => ours.up.as_ref().map(|up| up.connection.names()).unwrap_or_default(),
        }
    }

    /// `STARTUP`.
    pub fn startup(&mut self) -> Result<()> {
        match self {
            Self::Run(_) => bail!("a record is not started"),
            Self::Ours(ours) if ours.up.is_some() => bail!("the instance is up already"),
            Self::Ours(ours) => ours.start(Instance::open),
        }
    }

    /// `SHUTDOWN`. What is not committed is rolled back; after an abort by the next start.
    pub fn shutdown(&mut self, how: Shutdown) -> Result<()> {
        match self {
            Self::Run(_) => bail!("a record is not shut down"),
            Self::Ours(ours) => {
                let Some(Up { connection, instance }) = ours.up.take() else {
                    bail!("the instance is down already")
                };
                drop(connection);
                Ok(instance.shutdown(how)?)
            }
        }
    }

    /// The end: as sqlplus, commits what is open, or rolls it back; then the instance stops.
    pub fn close(mut self, commit: bool) -> Result<()> {
        let Self::Ours(ours) = &mut self else { return Ok(()) };
        let Some(Up { mut connection, instance }) = ours.up.take() else { return Ok(()) };
        let ended = if commit { connection.commit() } else { connection.rollback(None) };
        drop(connection);
        let stopped = instance.shutdown(Shutdown::Immediate);
        ended?;
        Ok(stopped?)
    }
}

impl Ours {
    fn start(
        &mut self,
        how: impl FnOnce(Environment, InstanceConfig) -> engine::Result<Instance>,
    ) -> Result<()> {
        let environment = Environment {
            storage: self.place.storage.clone(),
            clock: io::clock(),
            background: Background::Threads,
            seed: Seed::draw(),
        };
        let instance = how(environment, self.config.clone())?;
        let mut connection = Connection::new(instance.session("redoubt sql")?)?;
        let interval = Nanos::millis(instance.parameters.number(Parameter::AshInterval));
        connection.set_history(Arc::new(Sampler::start(&instance.waits, interval, HISTORY_ROWS)));
        self.up = Some(Up { connection, instance });
        Ok(())
    }
}

impl Place {
    fn of(path: &Path, options: &Sql) -> Result<Self> {
        let on = |export: Export, directory: PathBuf| -> Result<Self> {
            Ok(Self { storage: export::storage(&directory)?, directory, _export: Some(export) })
        };
        if let Some(export) = oranfstab::export(&options.oranfstab, path)? {
            let directory = export.path().to_owned();
            return on(export, directory);
        }
        if !is_export(path) {
            let directory = std::path::absolute(path)?;
            return Ok(Self { directory, storage: Arc::new(RealStorage), _export: None });
        }
        let (export, directory) = Export::at(&options.target, options.create)?;
        on(export, directory)
    }
}

fn config(directory: PathBuf, parameters: Vec<(String, String)>) -> InstanceConfig {
    InstanceConfig { parameters, ..InstanceConfig::new(directory) }
}

/// A new database, in a directory with nothing in it.
fn make(place: Place, parameters: Vec<(String, String)>, options: &Sql) -> Result<Database> {
    let directory = place.directory.clone();
    match place.storage.list(&directory) {
        Ok(entries) => {
            ensure!(entries.is_empty(), "{} is not empty; name a new directory", directory.display());
        }
        Err(IoError::NoSuchFile { .. }) => {}
        Err(error) => {
            return Err(error).with_context(|| format!("cannot look into {}", directory.display()));
        }
    }
    let config = InstanceConfig {
        data_bytes: options.data.0,
        redo_bytes: options.redo.0,
        ..config(directory, parameters)
    };
    let bytes = config.data_bytes
        + config.undo_bytes
        + config.temp_bytes
        + u64::from(config.redo_groups) * config.redo_bytes;
    anstream::eprintln!("Making a database of {} in {}.", units::Bytes(bytes), config.directory.display());
    let mut ours = Ours { config, up: None, place };
    ours.start(Instance::create)?;
    // What is given now is kept by the database; a restart takes what it has kept, and what was changed meanwhile.
    ours.config.parameters.clear();
    Ok(Database::Ours(Box::new(ours)))
}

fn parameter(set: &str) -> Result<(String, String)> {
    let (name, value) = set.split_once('=').with_context(|| format!("--set {set}: write NAME=VALUE"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}
