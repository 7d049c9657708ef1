//! What is MariaDB's own: how it is made, what the factors are called there, and its driver.

pub(super) mod sessions;

use super::connection::{Connection, Parameter, StatementId};
use super::files::Layout;
use super::find::Programs;
use super::lifeline;
use super::url::{Address, CONNECT_MAX, Host, NO_TLS, Password, Tls, TlsMode};
use super::{Kind, ServerError, Settings};
use io::{Api, IoMode};
use mysql::prelude::Queryable;
use mysql::{ClientIdentity, Conn, DriverError, Error, OptsBuilder, Params, SslOpts, Statement, Value};
use std::os::fd::OwnedFd;
use std::path::Path;
use units::Nanos;

/// Its superuser.
const USER: &str = "root";
/// The database that everything is in.
pub(crate) const DATABASE: &str = "redoubt";
pub(super) const SOCKET: &str = "socket";

pub(super) fn install_arguments(layout: &Layout, settings: &Settings, programs: &Programs) -> Vec<String> {
    let mut arguments: Vec<String> = vec![
        "--no-defaults".into(),
        "--auth-root-authentication-method=normal".into(),
        "--skip-test-db".into(),
        format!("--datadir={}", layout.data.display()),
    ];
    arguments.extend(lasting_arguments(layout, settings));
    // An unpacked archive has `bin` and `scripts` beside each other; packages spread over /usr, which it knows by itself.
    let base = programs.install.parent().and_then(Path::parent);
    if let Some(base) = base.filter(|_| programs.install.parent().is_some_and(|p| p.ends_with("scripts"))) {
        arguments.push(format!("--basedir={}", base.display()));
    }
    arguments
}

/// What its files are made with, and must be told again at each start.
fn lasting_arguments(layout: &Layout, settings: &Settings) -> Vec<String> {
    let mut arguments = Vec::new();
    arguments
        .extend(layout.redo.iter().map(|redo| format!("--innodb-log-group-home-dir={}", redo.display())));
    if let Some(undo) = &layout.undo {
        arguments.push(format!("--innodb-undo-directory={}", undo.display()));
        arguments.push("--innodb-undo-tablespaces=3".into());
    }
    arguments.extend(settings.block.map(|block| format!("--innodb-page-size={}", block.0)));
    arguments
}

/// The command line of `mariadbd`. Durability is written out, because comparisons rest on it.
pub(super) fn arguments(
    version: &str,
    settings: &Settings,
    layout: &Layout,
) -> Result<Vec<String>, ServerError> {
    let path = |name: &str| layout.main.join(name).display().to_string();
    let mut arguments: Vec<String> = vec![
        "--no-defaults".into(),
        "--skip-networking".into(),
        format!("--datadir={}", layout.data.display()),
        format!("--socket={}", path(SOCKET)),
        format!("--pid-file={}", path("pid")),
        format!("--tmpdir={}", layout.temp.as_ref().unwrap_or(&layout.main).display()),
        format!("--max-connections={}", settings.connections),
        format!("--innodb-buffer-pool-size={}", settings.cache.0.max(8 << 20)),
        format!("--innodb-log-file-size={}", settings.redo.0.max(8 << 20)),
        "--innodb-flush-log-at-trx-commit=1".into(),
        "--innodb-doublewrite=1".into(),
        "--skip-log-bin".into(),
        // What a cold cache is must not depend on what the last start knew.
        "--innodb-buffer-pool-load-at-startup=0".into(),
        "--innodb-buffer-pool-dump-at-shutdown=0".into(),
        "--performance-schema=ON".into(),
        "--performance-schema-instrument=wait/%=ON".into(),
        "--performance-schema-consumer-events-waits-current=ON".into(),
    ];
    arguments.extend(lasting_arguments(layout, settings));
    arguments.extend(io_parameters(version, settings)?);
    arguments.extend(settings.parameters.iter().map(|(name, value)| format!("--{name}={value}")));
    Ok(arguments)
}

/// The I/O modes in MariaDB's words.
fn io_parameters(version: &str, settings: &Settings) -> Result<Vec<String>, ServerError> {
    if settings.mode == IoMode::Concurrent {
        return Err(ServerError::Unable {
            kind: Kind::Mariadb,
            version: version.to_owned(),
            why: "I/O mode concurrent: its files have no lock that a mode could lift".into(),
            instead: "--io setall",
        });
    }
    let method = if settings.mode.direct() { "O_DIRECT" } else { "fsync" };
    let mut arguments = vec![
        format!("--innodb-flush-method={method}"),
        format!("--innodb-use-native-aio={}", u8::from(settings.mode.asynchronous())),
    ];
    if settings.mode.asynchronous() {
        let interface = match settings.api {
            Api::IoUring => "io_uring",
            Api::Libaio | Api::Threads => "aio",
        };
        arguments.push(format!("--innodb-linux-aio={interface}"));
    }
    Ok(arguments)
}

/// A session over `socket`, in our database, which is made when it is missing.
pub(super) fn connect(socket: &Path, patience: Nanos) -> Result<Box<dyn Connection>, ServerError> {
    let options = OptsBuilder::new().socket(Some(socket.to_string_lossy())).user(Some(USER));
    let mut connection = log_in(options, patience).map_err(|e| said(&e))?;
    let database = format!("create database if not exists {DATABASE}");
    connection.query_drop(database).map_err(|e| said(&e))?;
    connection.query_drop(format!("use {DATABASE}")).map_err(|e| said(&e))?;
    Ok(Box::new(Session { connection, statements: Vec::new() }))
}

/// A session with a server that was there before.
pub(super) fn connect_to(address: &Address) -> Result<Box<dyn Connection>, ServerError> {
    let mut options = OptsBuilder::new()
        .user(Some(&address.user))
        .pass(address.password.as_ref().map(Password::reveal))
        .db_name(address.database.as_deref())
        .tcp_connect_timeout(Some(CONNECT_MAX.duration()));
    options = match &address.host {
        Host::Name(name) => {
            options.ip_or_hostname(Some(name)).tcp_port(address.port).ssl_opts(tls_options(&address.tls))
        }
        Host::Socket(path) => options.socket(Some(path.to_string_lossy())),
    };
    let connection = match log_in(options.clone(), CONNECT_MAX) {
        // Who only prefers TLS goes on without where it does not come about.
        Err(Error::DriverError(DriverError::TlsNotSupported) | Error::TlsError(_))
            if address.tls.mode == TlsMode::Prefer =>
        {
            log_in(options.ssl_opts(None::<SslOpts>), CONNECT_MAX)
        }
        tried => tried,
    };
    let connection = connection.map_err(|error| match &error {
        Error::MySqlError(_) => address.refused(said(&error)),
        Error::DriverError(DriverError::TlsNotSupported) => address.unreachable(NO_TLS, None),
        Error::IoError(cause) => address.unreachable(&cause.to_string(), Some(cause)),
        other => address.unreachable(&other.to_string(), None),
    })?;
    Ok(Box::new(Session { connection, statements: Vec::new() }))
}

/// TLS in the driver's words. It believes the public authorities beside those that are named, so a name is always checked with them.
fn tls_options(tls: &Tls) -> Option<SslOpts> {
    if tls.mode == TlsMode::Disable {
        return None;
    }
    let root = tls.checked_root();
    let identity = tls.identity.clone();
    Some(
        SslOpts::default()
            .with_root_cert_path(root.cloned())
            .with_danger_accept_invalid_certs(root.is_none())
            .with_client_identity(identity.map(|(certificate, key)| ClientIdentity::new(certificate, key))),
    )
}

/// A session; until it is there, each answer may take as long as `patience`.
fn log_in(options: OptsBuilder, patience: Nanos) -> Result<Conn, Error> {
    let options = options.prefer_socket(false).stmt_cache_size(Some(0));
    let connection = Conn::new(options.read_timeout(Some(patience.duration())))?;
    lifeline::set_patience(::io::descriptor::second(&connection)?, None)?;
    Ok(connection)
}

struct Session {
    connection: Conn,
    statements: Vec<Statement>,
}

/// What the server or the driver says.
fn said(error: &Error) -> ServerError {
    match error {
        Error::MySqlError(e) => ServerError::said(Kind::Mariadb, &e.code.to_string(), &e.message),
        // 2013: lost connection, as its own clients number it.
        Error::IoError(cause) => ServerError::said(Kind::Mariadb, "2013", &cause.to_string()),
        other => ServerError::said(Kind::Mariadb, "2013", &other.to_string()),
    }
}

/// As text; NULL is none.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::NULL => None,
        Value::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::Int(n) => Some(n.to_string()),
        Value::UInt(n) => Some(n.to_string()),
        Value::Float(n) => Some(n.to_string()),
        Value::Double(n) => Some(n.to_string()),
        other => Some(other.as_sql(true)),
    }
}

impl Connection for Session {
    fn execute(&mut self, sql: &str) -> Result<(), ServerError> {
        self.connection.query_drop(sql).map_err(|e| said(&e))
    }

    fn rows(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, ServerError> {
        let rows: Vec<mysql::Row> = self.connection.query(sql).map_err(|e| said(&e))?;
        Ok(rows.into_iter().map(|row| row.unwrap().iter().map(text).collect()).collect())
    }

    fn prepare(&mut self, sql: &str) -> Result<StatementId, ServerError> {
        self.statements.push(self.connection.prep(sql).map_err(|e| said(&e))?);
        Ok(StatementId(self.statements.len() - 1))
    }

    fn call(
        &mut self,
        statement: StatementId,
        parameters: &[Parameter<'_>],
    ) -> Result<Option<i64>, ServerError> {
        let values = parameters.iter().map(|parameter| match parameter {
            Parameter::Integer(n) => Value::Int(*n),
            Parameter::Text(text) => Value::Bytes(text.as_bytes().to_vec()),
        });
        let values: Vec<Value> = values.collect();
        let parameters = if values.is_empty() { Params::Empty } else { Params::Positional(values) };
        let statement = &self.statements[statement.0];
        let row: Option<mysql::Row> =
            self.connection.exec_first(statement, parameters).map_err(|e| said(&e))?;
        Ok(row.and_then(|row| row.as_ref(0).and_then(text)?.parse().ok()))
    }

    fn socket(&self) -> std::io::Result<OwnedFd> {
        ::io::descriptor::second(&self.connection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Bytes;

    #[test]
    fn modes_are_flush_methods_and_interfaces() {
        let check = |mode, api, words: &[&str]| {
            let (cache, redo) = (Bytes::mib(64), Bytes::mib(192));
            let settings =
                Settings { cache, redo, mode, api, block: None, connections: 20, parameters: Vec::new() };
            let text = match arguments("10.11.19", &settings, &Layout::in_folder(Path::new("/x"))) {
                Ok(all) => all.join(" "),
                Err(error) => error.to_string(),
            };
            assert!(words.iter().all(|word| text.contains(word)), "{mode}: {text}");
        };
        check(IoMode::None, Api::Threads, &["flush-method=fsync", "native-aio=0"]);
        check(IoMode::Asynch, Api::Libaio, &["flush-method=fsync", "native-aio=1", "linux-aio=aio"]);
        check(IoMode::Directio, Api::Threads, &["flush-method=O_DIRECT", "native-aio=0"]);
        check(IoMode::Setall, Api::IoUring, &["flush-method=O_DIRECT", "linux-aio=io_uring"]);
        check(IoMode::Concurrent, Api::IoUring, &["--io setall"]);
        check(IoMode::None, Api::Threads, &["trx-commit=1", "--datadir=/x/data"]);
    }
}
