//! A server that was there before: nothing of it is changed but a schema of our own, made for the run and dropped after it.
//!
//! The journal knows the schema before it is made, so that `redoubt cleanup` drops what a killed run left, by the server's own client program
//! (`host` speaks to no server). What the server is set to is asked, never set.

use super::durability::given_up;
use super::fate;
use super::lifeline::{Lifeline, Pulse};
use super::site::Site;
use super::url::{Address, Host};
use super::{Connection, Connector, Kind, Server, ServerError};
use crate::LabError;
use host::journal::{Journal, Step, Undo};
use std::path::PathBuf;
use std::sync::Arc;
use units::{Bytes, Nanos, Seed};

/// What our own session is called there.
const PROGRAM: &str = "redoubt";

/// An existing server, with a schema of ours in it.
pub struct Existing {
    address: Arc<Address>,
    schema: String,
    step: Step,
    version: String,
    block: Bytes,
    settings: Vec<(String, String)>,
    lifeline: Arc<Lifeline>,
    /// Kept from the first moment to the last: others may take all connections meanwhile, and the schema must go.
    session: Box<dyn Connection>,
    _pulse: Pulse,
}

/// What is asked of it before anything is made.
pub struct Facts {
    /// `15.20`, `10.11.19` ….
    pub version: String,
    /// Its block.
    pub block: Bytes,
    /// What a commit promises, and what it looks like to us, by name.
    pub settings: Vec<(String, String)>,
    /// Where its files are, when that is told and on this machine.
    pub data: Option<PathBuf>,
}

const POSTGRES: &str = "select name, current_setting(name) from pg_settings where name in ('fsync', 'synchronous_commit', \
     'full_page_writes', 'wal_sync_method', 'block_size', 'server_version', 'shared_buffers', 'transaction_read_only', \
     'max_connections', 'data_directory')";
const MARIADB: &str = "show global variables where variable_name in ('innodb_flush_log_at_trx_commit', 'innodb_doublewrite', \
     'innodb_flush_method', 'log_bin', 'sync_binlog', 'innodb_page_size', 'version', 'innodb_buffer_pool_size', 'read_only', \
     'max_connections', 'performance_schema', 'datadir')";

/// Looks at the server, and changes nothing.
///
/// # Errors
/// It does not answer, lets us not in, or takes no writes.
pub fn look(address: &Address) -> Result<Facts, LabError> {
    let mut session = address.connect(PROGRAM).map_err(fate::refused_by_existing)?;
    let rows = session.rows(match address.kind {
        Kind::Postgres => POSTGRES,
        Kind::Mariadb => MARIADB,
    })?;
    let settings: Vec<(String, String)> = rows
        .into_iter()
        .filter_map(|row| {
            let mut fields = row.into_iter();
            Some((fields.next()??.to_lowercase(), fields.next()?.unwrap_or_default()))
        })
        .collect();
    let value =
        |name: &str| settings.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let read_only = [value("transaction_read_only"), value("read_only")];
    if read_only.into_iter().flatten().any(|value| ["on", "1"].contains(&value.to_lowercase().as_str())) {
        return Err(LabError::Target(format!(
            "{} at {address} takes no writes: a standby, or switched so on purpose (transaction_read_only, read_only); name the primary",
            address.kind
        )));
    }
    let (version, block, data) = match address.kind {
        Kind::Postgres => ("server_version", "block_size", "data_directory"),
        Kind::Mariadb => ("version", "innodb_page_size", "datadir"),
    };
    let version = value(version).unwrap_or_default();
    let version = version.split([' ', '-']).next().unwrap_or_default().to_owned();
    let block = Bytes(value(block).and_then(|text| text.parse().ok()).unwrap_or(8 << 10));
    let data = value(data).map(PathBuf::from).filter(|path| address.is_local() && path.is_dir());
    Ok(Facts { version, block, settings, data })
}

impl Facts {
    /// What a commit promises there.
    pub fn promise(&self, kind: Kind) -> String {
        let told = |name: &&str| self.settings.iter().find(|(known, _)| known == name);
        let names: &[&str] = match kind {
            Kind::Postgres => &["fsync", "synchronous_commit", "full_page_writes", "wal_sync_method"],
            Kind::Mariadb => {
                &["innodb_flush_log_at_trx_commit", "innodb_doublewrite", "log_bin", "sync_binlog"]
            }
        };
        let means: Vec<String> = names.iter().filter_map(told).map(|(n, v)| format!("{n}={v}")).collect();
        let lost = given_up(Some(kind), self.settings.iter().map(|(n, v)| (n.as_str(), v.as_str())));
        match lost[..] {
            [] => means.join(", "),
            _ => format!("{}, but {}", means.join(", "), lost.join(", ")),
        }
    }
}

impl Existing {
    /// Makes a schema of our own. 1. the journal knows how to drop it; 2. it is made. `patience`: the longest that the server may say
    /// nothing.
    ///
    /// # Errors
    /// The journal cannot be written; what the server says.
    pub fn open(
        address: Address,
        facts: &Facts,
        patience: Nanos,
        journal: &mut Journal,
    ) -> Result<Self, LabError> {
        let lifeline = Lifeline::new(patience);
        let schema = format!("redoubt_{:08x}", Seed::draw().0 & 0xffff_ffff);
        let step = journal.will(Undo::DropSchema { schema: schema.clone(), client: client(&address) })?;
        let address = Arc::new(address);
        let made = address.connect(PROGRAM).and_then(|session| {
            let mut session = lifeline.hold(session);
            session.execute(&create(address.kind, &schema))?;
            Ok(session)
        });
        let session = match made {
            Ok(session) => session,
            Err(error) => {
                // It was never there.
                journal.settle(step)?;
                return Err(fate::explain_existing(denied(&address, error), &lifeline).into());
            }
        };
        let connector = Connector::existing(address.clone(), schema.clone(), &lifeline);
        // Which processes are its own is not known here.
        let pulse = Pulse::start(&connector, &lifeline, Vec::new);
        let (version, block, settings) = (facts.version.clone(), facts.block, facts.settings.clone());
        match pulse {
            Ok(_pulse) => {
                Ok(Self { address, schema, step, version, block, settings, lifeline, session, _pulse })
            }
            Err(error) => {
                drop_schema(&address, &schema, session)?;
                journal.settle(step)?;
                Err(fate::explain_existing(error, &lifeline).into())
            }
        }
    }

    /// What it is set to, by name.
    pub fn settings(&self) -> &[(String, String)] {
        &self.settings
    }

    /// Our schema.
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// Whether our devices and processors are its own.
    pub fn is_local(&self) -> bool {
        self.address.is_local()
    }

    /// Drops the schema. What is not done stays in the journal.
    ///
    /// # Errors
    /// What the server says, and what to type.
    pub fn close(self, journal: &mut Journal) -> Result<(), LabError> {
        // Whoever does not answer anybody is not asked: the schema stays in the journal.
        if self.lifeline.hang().is_some() {
            return Ok(());
        }
        drop_schema(&self.address, &self.schema, self.session)?;
        journal.settle(self.step)?;
        Ok(())
    }
}

impl Site for Existing {
    fn kind(&self) -> Kind {
        self.address.kind
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn connector(&self) -> Connector {
        Connector::existing(self.address.clone(), self.schema.clone(), &self.lifeline)
    }

    fn explain(&self, error: ServerError) -> ServerError {
        fate::explain_existing(error, &self.lifeline)
    }

    fn block(&self) -> Bytes {
        self.block
    }

    fn open_flags(&self) -> Result<String, LabError> {
        Ok(String::new())
    }

    fn private(&mut self) -> Option<&mut Server> {
        None
    }
}

/// A session of [`Connector::existing`], in our schema.
pub(super) fn connect(
    address: &Address,
    schema: &str,
    application: &str,
) -> Result<Box<dyn Connection>, ServerError> {
    let mut session = address.connect(application)?;
    session.execute(&match address.kind {
        Kind::Postgres => format!("set search_path to {schema}"),
        Kind::Mariadb => format!("use {schema}"),
    })?;
    Ok(session)
}

fn create(kind: Kind, schema: &str) -> String {
    match kind {
        Kind::Postgres => format!("create schema {schema}"),
        Kind::Mariadb => format!("create database {schema}"),
    }
}

/// By the session that is there, or, where that was lost, by a new one.
fn drop_schema(address: &Address, schema: &str, mut session: Box<dyn Connection>) -> Result<(), ServerError> {
    let statement = drop_statement(address.kind, schema);
    match session.execute(&statement) {
        Err(ServerError::Gone { .. }) => address.connect(PROGRAM)?.execute(&statement),
        done => done,
    }
}

fn drop_statement(kind: Kind, schema: &str) -> String {
    match kind {
        Kind::Postgres => format!("drop schema if exists {schema} cascade"),
        Kind::Mariadb => format!("drop database if exists {schema}"),
    }
}

/// Whoever may not make a schema is told which right is missing.
fn denied(address: &Address, error: ServerError) -> ServerError {
    let user = &address.user;
    let grant = match address.kind {
        Kind::Postgres => {
            let database = address.database.as_ref().unwrap_or(user);
            format!("GRANT CREATE ON DATABASE \"{database}\" TO \"{user}\"")
        }
        Kind::Mariadb => format!("GRANT ALL ON `redoubt\\_%`.* TO '{user}'"),
    };
    match error {
        ServerError::Refused { kind, said, code, .. }
            if ["42501", "1044", "1142"].contains(&code.as_str()) =>
        {
            ServerError::Denied { kind, said, code, grant }
        }
        other => other,
    }
}

/// The client program of the server, and how it gets there; a password it finds where it always does.
fn client(address: &Address) -> Vec<String> {
    match address.kind {
        Kind::Postgres => {
            // It may have gone for good: whoever cleans up must not wait for it.
            let address = address.to_string();
            let sign = if address.contains('?') { '&' } else { '?' };
            ["psql", "-XqwAt", "-d", &format!("{address}{sign}connect_timeout=10")].map(str::to_owned).into()
        }
        Kind::Mariadb => {
            let mut words =
                vec!["mariadb".to_owned(), format!("--user={}", address.user), "--connect-timeout=10".into()];
            match &address.host {
                Host::Socket(path) => words.push(format!("--socket={}", path.display())),
                Host::Name(name) => {
                    words.extend([format!("--host={name}"), format!("--port={}", address.port)]);
                    words.extend(address.tls.mariadb_options());
                }
            }
            words
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_commit_promises_is_read_from_its_settings() {
        let facts = |pairs: &[(&str, &str)]| Facts {
            version: "15.20".into(),
            block: Bytes::kib(8),
            settings: pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
            data: None,
        };
        let kept = facts(&[("fsync", "on"), ("synchronous_commit", "on")]).promise(Kind::Postgres);
        assert_eq!(kept, "fsync=on, synchronous_commit=on");
        let lost =
            facts(&[("innodb_flush_log_at_trx_commit", "2"), ("log_bin", "OFF")]).promise(Kind::Mariadb);
        assert!(lost.contains("last commits") && lost.contains("log_bin=OFF"), "{lost}");
    }

    #[test]
    fn no_password_reaches_the_client_program() {
        for url in ["postgres://me:secret@db:5433/app", "mysql://me:secret@db:3307/"] {
            let words = client(&Address::parse(url).expect("an address")).join(" ");
            assert!(!words.contains("secret") && words.contains("db"), "{words}");
        }
    }
}
