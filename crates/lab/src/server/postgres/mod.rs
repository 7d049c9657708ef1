//! What is PostgreSQL's own: how it is made, what the factors are called there, and its sessions (`wire`).

mod secure;
pub(super) mod sessions;
mod wire;

use super::connection::Connection;
use super::files::Layout;
use super::url::{Address, CONNECT_MAX, Host, Password};
use super::{Kind, ServerError, Settings, major};
use io::{Api, IoMode};
use std::path::{Path, PathBuf};
use units::Nanos;
use wire::{Login, Refusal};

/// Its superuser, and the database that everything is in.
const USER: &str = "postgres";
/// First version that can bypass the page cache (`debug_io_direct`).
const DIRECT_SINCE: u32 = 16;
/// First version with `io_method`.
const ASYNC_SINCE: u32 = 18;

/// The tablespace of tables that lie elsewhere than the data directory, and that of temporary files.
const TABLES: &str = "redoubt_data";
const TEMP: &str = "redoubt_temp";

pub(super) fn install_arguments(layout: &Layout) -> Vec<String> {
    // `trust` on a socket in a folder that is closed to everybody else; nothing listens on the network.
    let fixed = ["-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"].map(str::to_owned);
    let mut arguments = vec!["-D".to_owned(), layout.data.display().to_string()];
    arguments.extend(fixed);
    arguments.extend(layout.redo.iter().map(|redo| format!("--waldir={}", redo.display())));
    arguments
}

/// What makes the tablespaces, once it runs.
pub(super) fn tablespaces(layout: &Layout) -> Vec<String> {
    let create = |name: &str, path: &Path| {
        format!("create tablespace {name} location '{}'", path.display().to_string().replace('\'', "''"))
    };
    let tables = layout.tables.iter().map(|path| create(TABLES, path));
    tables.chain(layout.temp.iter().map(|path| create(TEMP, path))).collect()
}

/// The command line of `postgres`. Durability is written out, because comparisons rest on it.
pub(super) fn arguments(
    version: &str,
    settings: &Settings,
    layout: &Layout,
) -> Result<Vec<String>, ServerError> {
    let megabytes = |bytes: u64| format!("{}MB", (bytes >> 20).max(1));
    let mut all: Vec<(String, String)> = [
        ("listen_addresses", String::new()),
        ("unix_socket_directories", layout.main.display().to_string()),
        ("port", "5432".into()),
        ("max_connections", settings.connections.to_string()),
        ("shared_buffers", megabytes(settings.cache.0)),
        ("fsync", "on".into()),
        ("synchronous_commit", "on".into()),
        ("full_page_writes", "on".into()),
        ("wal_sync_method", "fdatasync".into()),
        ("max_wal_size", megabytes(settings.redo.0.max(64 << 20))),
        // Another load, at its own times; `--set autovacuum=on` has it back.
        ("autovacuum", "off".into()),
        ("track_io_timing", "on".into()),
        ("track_wal_io_timing", "on".into()),
        // Files in its own folder, which go with it; shared memory by name would outlive a kill.
        ("dynamic_shared_memory_type", "mmap".into()),
        ("logging_collector", "off".into()),
        ("log_checkpoints", "off".into()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    all.extend(layout.tables.iter().map(|_| pair("default_tablespace", TABLES)));
    all.extend(layout.temp.iter().map(|_| pair("temp_tablespaces", TEMP)));
    all.extend(io_parameters(version, settings)?);
    all.extend(settings.parameters.iter().cloned());
    let mut arguments = vec!["-D".to_owned(), layout.data.display().to_string()];
    for (name, value) in all {
        arguments.extend(["-c".to_owned(), format!("{name}={value}")]);
    }
    Ok(arguments)
}

/// Whether `settings` ask for io_uring of a `program` that was built without: nobody but it says so, and only when it is started.
///
/// # Errors
/// [`ServerError::Unable`].
pub(super) fn built_for(program: &Path, version: &str, settings: &Settings) -> Result<(), ServerError> {
    let wanted =
        settings.mode.asynchronous() && settings.api == Api::IoUring && major(version) >= ASYNC_SINCE;
    // The name of a level is a text of its own; messages only contain it.
    let level = b"\0io_uring\0";
    let has = || std::fs::read(program).is_ok_and(|bytes| bytes.windows(level.len()).any(|w| w == level));
    if !wanted || has() {
        return Ok(());
    }
    Err(ServerError::Unable {
        kind: Kind::Postgres,
        version: version.to_owned(),
        why: format!("{} was built without io_uring", program.display()),
        instead: "--api threads (its worker processes)",
    })
}

/// The I/O modes in PostgreSQL's words.
fn io_parameters(version: &str, settings: &Settings) -> Result<Vec<(String, String)>, ServerError> {
    let unable = |why: &str, instead| ServerError::Unable {
        kind: Kind::Postgres,
        version: version.to_owned(),
        why: format!("I/O mode {}: {why}", settings.mode),
        instead,
    };
    let (has_direct, has_async) = (major(version) >= DIRECT_SINCE, major(version) >= ASYNC_SINCE);
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    if settings.mode == IoMode::Concurrent {
        return Err(unable("its files have no lock that a mode could lift", "--io setall"));
    }
    let mut parameters = Vec::new();
    if settings.mode.direct() {
        if !has_direct {
            return Err(unable("it has direct I/O from 16 on (debug_io_direct)", "--io none"));
        }
        parameters.push(pair("debug_io_direct", "data,wal"));
    }
    match (settings.mode.asynchronous(), has_async) {
        (true, false) => {
            return Err(unable("it reads asynchronously from 18 on (io_method)", "--io none"));
        }
        (true, true) => parameters.push(pair(
            "io_method",
            match settings.api {
                Api::IoUring => "io_uring",
                Api::Threads => "worker",
                Api::Libaio => {
                    return Err(unable(
                        "it has no libaio, but io_uring and worker processes (threads)",
                        "--api threads",
                    ));
                }
            },
        )),
        (false, true) => parameters.push(pair("io_method", "sync")),
        (false, false) => {}
    }
    Ok(parameters)
}

/// A session over the socket in `folder`.
pub(super) fn connect(
    folder: &Path,
    application: &str,
    patience: Nanos,
) -> Result<Box<dyn Connection>, ServerError> {
    let login = Login { user: USER, password: None, database: USER, application };
    match wire::over_socket(&socket(folder, 5432), patience, &login) {
        Ok(session) => Ok(Box::new(session)),
        Err(Refusal::Said(error)) => Err(error),
        Err(Refusal::Io(error)) => Err(ServerError::said(Kind::Postgres, "08006", &error.to_string())),
        Err(Refusal::NoPassword) => Err(no_password()),
    }
}

/// A session with a server that was there before.
pub(super) fn connect_to(address: &Address, application: &str) -> Result<Box<dyn Connection>, ServerError> {
    let login = Login {
        user: &address.user,
        password: address.password.as_ref().map(Password::reveal),
        database: address.database.as_deref().unwrap_or(&address.user),
        application,
    };
    let session = match &address.host {
        Host::Name(name) => wire::over_network((name, address.port), &address.tls, CONNECT_MAX, &login),
        Host::Socket(folder) => wire::over_socket(&socket(folder, address.port), CONNECT_MAX, &login),
    };
    match session {
        Ok(session) => Ok(Box::new(session)),
        Err(Refusal::Said(error)) => Err(address.refused(error)),
        Err(Refusal::Io(error)) => Err(address.unreachable(&error.to_string(), Some(&error))),
        Err(Refusal::NoPassword) => Err(address.refused(no_password())),
    }
}

/// PostgreSQL's socket in a folder of sockets.
fn socket(folder: &Path, port: u16) -> PathBuf {
    folder.join(format!(".s.PGSQL.{port}"))
}

fn no_password() -> ServerError {
    ServerError::said(Kind::Postgres, "28P01", "it asks for a password, and none was found")
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Bytes;

    fn settings(mode: IoMode, api: Api) -> Settings {
        let (cache, redo) = (Bytes::mib(64), Bytes::mib(192));
        let parameters = vec![("work_mem".into(), "8MB".into())];
        Settings { cache, redo, mode, api, block: None, connections: 20, parameters }
    }

    #[test]
    fn modes_are_what_the_version_can_do() {
        let words = |version, mode, api| {
            arguments(version, &settings(mode, api), &Layout::in_folder(Path::new("/x")))
                .map(|all| all.join(" "))
                .unwrap_or_else(|e| e.to_string())
        };
        let check = |version, mode, api, word: &str| {
            let text = words(version, mode, api);
            assert!(text.contains(word), "{version} {mode}: {text}");
        };
        check("15.20", IoMode::None, Api::Threads, "shared_buffers=64MB");
        check("15.20", IoMode::None, Api::Threads, "synchronous_commit=on");
        check("15.20", IoMode::Directio, Api::Threads, "from 16 on");
        check("15.20", IoMode::Asynch, Api::IoUring, "from 18 on");
        check("17.1", IoMode::Directio, Api::Threads, "debug_io_direct=data,wal");
        check("18.1", IoMode::Setall, Api::IoUring, "io_method=io_uring");
        check("18.1", IoMode::Setall, Api::Threads, "io_method=worker");
        check("18.1", IoMode::None, Api::Threads, "io_method=sync");
        check("18.1", IoMode::Setall, Api::Libaio, "no libaio");
        assert!(!words("15.20", IoMode::None, Api::Threads).contains("io_method"));
        assert!(
            words("18.1", IoMode::None, Api::Threads).ends_with("work_mem=8MB"),
            "what was set comes last"
        );
    }
}
