//! A URL's text, taken apart, and filled up from the surroundings.

use super::password::{Password, Surroundings};
use super::{Address, Host, tls};
use crate::server::{Kind, ServerError};
use std::path::PathBuf;

/// Where PostgreSQL's sockets are: Debian's folder, then the one that it is built with elsewhere.
const POSTGRES_SOCKETS: [&str; 2] = ["/var/run/postgresql", "/tmp"];
const MARIADB_SOCKETS: [&str; 3] =
    ["/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock", "/tmp/mysql.sock"];

/// The product behind a URL's scheme.
pub fn kind(scheme: &str) -> Option<Kind> {
    match scheme {
        "postgres" | "postgresql" => Some(Kind::Postgres),
        "mysql" | "mariadb" => Some(Kind::Mariadb),
        _ => None,
    }
}

/// What stands in the text itself.
#[derive(Default)]
struct Typed {
    host: Option<String>,
    port: Option<u16>,
    user: Option<String>,
    password: Option<String>,
    database: Option<String>,
    socket: Option<String>,
    tls: tls::Said,
}

pub fn address(text: &str, here: &Surroundings) -> Result<Address, ServerError> {
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    let kind = kind(scheme).ok_or_else(|| wrong("it begins with postgres:// or mysql://"))?;
    let typed = typed(rest)?;
    match kind {
        Kind::Postgres => postgres(typed, here),
        Kind::Mariadb => mariadb(typed, here),
    }
}

fn wrong(why: &str) -> ServerError {
    ServerError::Url(format!(
        "this is no URL of a database server: {why}. One looks like postgres://user@host:5432/database, mysql://user@host:3306/, or, \
         over a socket, postgres:///database?host=/var/run/postgresql; special characters in a password are written as %40 (@), \
         %2F (/), %3A (:)"
    ))
}

/// What is asked for by a URL that can be read, with the variables and files of whoever types it.
fn no_tls(why: String) -> ServerError {
    ServerError::Url(format!(
        "TLS cannot be had as the URL, the variables and the files of this user ask for it: {why}"
    ))
}

fn typed(rest: &str) -> Result<Typed, ServerError> {
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = place.split_once('/').unwrap_or((place, ""));
    if !authority.contains('@') && path.contains('@') {
        return Err(wrong("a / stands before the @"));
    }
    let (who, host) = authority.rsplit_once('@').map_or((None, authority), |(who, host)| (Some(who), host));
    let mut typed = Typed::default();
    if let Some(who) = who {
        let (user, password) = who.split_once(':').map_or((who, None), |(user, pass)| (user, Some(pass)));
        typed.user = filled(user)?;
        typed.password = password.map(decoded).transpose()?;
    }
    let (host, port) = host_and_port(host)?;
    (typed.host, typed.port) = (filled(host)?, port);
    typed.database = filled(path)?;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        parameter(&mut typed, pair)?;
    }
    Ok(typed)
}

fn host_and_port(text: &str) -> Result<(&str, Option<u16>), ServerError> {
    let port = |text: &str| {
        if text.is_empty() {
            return Ok(None);
        }
        text.parse().map(Some).map_err(|_| wrong("its port is no number from 1 to 65535"))
    };
    if text.contains(',') {
        return Err(wrong("it names several hosts; name one"));
    }
    if let Some(inner) = text.strip_prefix('[') {
        let (host, after) = inner.split_once(']').ok_or_else(|| wrong("a [ without its ]"))?;
        return Ok((host, port(after.strip_prefix(':').unwrap_or_default())?));
    }
    match text.rsplit_once(':') {
        Some((host, number)) => Ok((host, port(number)?)),
        None => Ok((text, None)),
    }
}

fn parameter(typed: &mut Typed, pair: &str) -> Result<(), ServerError> {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    let value = filled(value)?;
    match name.to_lowercase().as_str() {
        "host" => typed.host = value,
        "socket" | "unix_socket" => typed.socket = value,
        "user" => typed.user = value,
        "password" => typed.password = value,
        "dbname" | "database" => typed.database = value,
        "port" => typed.port = host_and_port(&format!(":{}", value.unwrap_or_default()))?.1,
        // They change nothing that we do.
        "application_name" | "connect_timeout" => {}
        "channel_binding" if value.as_deref() != Some("require") => {}
        "channel_binding" => {
            return Err(wrong(
                "it asks for a login bound to the channel, which is not spoken here: leave channel_binding out; sslmode=verify-full tells who answers",
            ));
        }
        name => {
            if !typed.tls.take(name, value.as_deref()).map_err(|why| wrong(&why))? {
                return Err(wrong(
                    "it has a parameter that is not known here: host, port, user, password, dbname, socket, sslmode, sslrootcert, sslcert, \
                     sslkey (MariaDB: ssl-mode, ssl-ca, ssl-cert, ssl-key) are",
                ));
            }
        }
    }
    Ok(())
}

fn postgres(typed: Typed, here: &Surroundings) -> Result<Address, ServerError> {
    let port = match (typed.port, here.variable("PGPORT")) {
        (Some(port), _) => port,
        (None, Some(text)) => text.parse().map_err(|_| wrong("PGPORT is no number"))?,
        (None, None) => 5432,
    };
    let host = typed.socket.or(typed.host).or_else(|| here.variable("PGHOST"));
    let host = match host {
        Some(path) if path.starts_with('/') => Host::Socket(path.into()),
        Some(name) => Host::Name(name),
        None => {
            let has = |folder: &&str| here.exists(&format!("{folder}/.s.PGSQL.{port}"));
            Host::Socket(POSTGRES_SOCKETS.into_iter().find(has).unwrap_or(POSTGRES_SOCKETS[0]).into())
        }
    };
    let user = typed.user.or_else(|| here.variable("PGUSER")).unwrap_or_else(|| here.user());
    let database = typed.database.or_else(|| here.variable("PGDATABASE"));
    let given = typed.password.or_else(|| here.variable("PGPASSWORD"));
    let (found, unread) = match &given {
        Some(_) => (None, None),
        None => here.pgpass(&host, port, database.as_deref().unwrap_or(&user), &user),
    };
    let password = given.or(found).map(Password::new);
    let tls = typed.tls.postgres(here).map_err(no_tls)?;
    Ok(Address { kind: Kind::Postgres, host, port, user, password, database, tls, unread })
}

fn mariadb(typed: Typed, here: &Surroundings) -> Result<Address, ServerError> {
    let (file, unread) = here.my_cnf();
    let option = |name: &str| file.get(name).cloned();
    let named_port =
        typed.port.or_else(|| here.variable("MYSQL_TCP_PORT").or_else(|| option("port"))?.parse().ok());
    let named_host = typed.host.or_else(|| here.variable("MYSQL_HOST")).or_else(|| option("host"));
    let socket = typed.socket.or_else(|| named_host.clone().filter(|name| name.starts_with('/')));
    // As its own clients do: no host, or `localhost` without a port, is the socket where there is one.
    let is_local = named_host.as_deref().is_none_or(|name| name == "localhost") && typed.port.is_none();
    let usual = || {
        let named = here.variable("MYSQL_UNIX_PORT").or_else(|| option("socket"));
        named.or_else(|| MARIADB_SOCKETS.into_iter().find(|path| here.exists(path)).map(str::to_owned))
    };
    let socket = socket.or_else(|| if is_local { usual() } else { None });
    let host = match socket {
        Some(path) => Host::Socket(PathBuf::from(path)),
        None => Host::Name(named_host.unwrap_or_else(|| "localhost".into())),
    };
    let password = typed.password.or_else(|| here.variable("MYSQL_PWD")).or_else(|| option("password"));
    Ok(Address {
        kind: Kind::Mariadb,
        host,
        port: named_port.unwrap_or(3306),
        user: typed.user.or_else(|| option("user")).unwrap_or_else(|| here.user()),
        password: password.map(Password::new),
        database: typed.database,
        tls: typed.tls.mariadb(&file).map_err(no_tls)?,
        unread,
    })
}

fn filled(text: &str) -> Result<Option<String>, ServerError> {
    let text = decoded(text)?;
    Ok((!text.is_empty()).then_some(text))
}

/// `%2F` → `/`.
fn decoded(text: &str) -> Result<String, ServerError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        if *first != b'%' {
            bytes.push(*first);
            rest = after;
            continue;
        }
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let byte = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        bytes.push(byte.ok_or_else(|| wrong("a % is not followed by two digits (a % itself is %25)"))?);
        rest = &after[2..];
    }
    String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8"))
}
