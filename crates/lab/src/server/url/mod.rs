//! Where an existing server is and who we are there, as a URL says it: `postgres://user@host:5432/database`, `mysql://…`, or a socket.
//!
//! What the URL leaves out comes from where PostgreSQL's and MariaDB's own clients look ([`Surroundings`]: variables, `~/.pgpass`,
//! `~/.my.cnf`). A password is never shown: not by `Display`, not by `Debug`, not in an error; who keeps a command line passes it
//! through [`without_password`] first.

mod parse;
mod password;
mod tls;

pub use password::{Password, Surroundings};
pub(super) use tls::NO_TLS;
pub use tls::{Tls, TlsMode};

use super::{Connection, Kind, ServerError, lifeline, mariadb, postgres};
use std::fmt;
use std::path::{Path, PathBuf};
use units::Nanos;

/// Longest that a connection may take.
pub(super) const CONNECT_MAX: Nanos = Nanos::millis(5_000);
/// Longest that a session which only looks waits for an answer: a network that was cut says nothing for hours.
const ANSWER_MAX: Nanos = Nanos::millis(30_000);

/// The way to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// A name or an address.
    Name(String),
    /// A unix socket: PostgreSQL's folder of sockets, MariaDB's socket itself.
    Socket(PathBuf),
}

/// A server that was there before, and who we are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Which product.
    pub kind: Kind,
    /// Where.
    pub host: Host,
    /// TCP port; of PostgreSQL's socket, too.
    pub port: u16,
    /// As whom.
    pub user: String,
    /// What was given or found.
    pub password: Option<Password>,
    /// Which database; PostgreSQL's default is the user's name, MariaDB needs none.
    pub database: Option<String>,
    /// How a session over the network is encrypted.
    pub tls: Tls,
    /// Why a file of passwords was not read, with what to type.
    pub(super) unread: Option<String>,
}

impl Address {
    /// Reads `text`; the rest from the variables and files of whoever runs this.
    ///
    /// # Errors
    /// [`ServerError::Url`]: what cannot be read, and how one looks.
    pub fn parse(text: &str) -> Result<Self, ServerError> {
        parse::address(text, &Surroundings::here())
    }

    /// A session, named `application` where the server shows such names.
    ///
    /// # Errors
    /// [`ServerError::Unreachable`], or what the server says of the user, the password or the database.
    pub fn connect(&self, application: &str) -> Result<Box<dyn Connection>, ServerError> {
        match self.kind {
            Kind::Postgres => postgres::connect_to(self, application),
            Kind::Mariadb => mariadb::connect_to(self),
        }
    }

    /// A session that the server lets change nothing; it is lost when an answer takes longer than 30 s.
    ///
    /// # Errors
    /// As [`Address::connect`].
    pub fn connect_read_only(&self, application: &str) -> Result<Box<dyn Connection>, ServerError> {
        let mut connection = self.connect(application)?;
        let patient = connection.socket().and_then(|socket| lifeline::set_patience(socket, Some(ANSWER_MAX)));
        patient.map_err(|error| self.unreachable(&error.to_string(), Some(&error)))?;
        connection.execute(match self.kind {
            Kind::Postgres => "set session characteristics as transaction read only",
            Kind::Mariadb => "set session transaction read only",
        })?;
        Ok(connection)
    }

    /// Whether the server runs on this machine, so that our devices and processors are its own.
    pub fn is_local(&self) -> bool {
        match &self.host {
            Host::Socket(_) => true,
            Host::Name(name) => {
                name == "localhost" || name == "::1" || name.starts_with("127.") || is_our_name(name)
            }
        }
    }

    /// What a connection that failed means: `said` by the driver, `cause` beneath it.
    pub(super) fn unreachable(&self, said: &str, cause: Option<&std::io::Error>) -> ServerError {
        use std::io::ErrorKind;
        let lower = said.to_lowercase();
        let is = |kind: ErrorKind, words: &str| {
            cause.is_some_and(|cause| cause.kind() == kind) || lower.contains(words)
        };
        let listed = match self.kind {
            Kind::Postgres => "ss -ltnp 'sport = :5432'; ls /var/run/postgresql",
            Kind::Mariadb => "ss -ltnp 'sport = :3306'; ls /run/mysqld",
        };
        let advice = if let Some(advice) = self.tls_advice(said) {
            advice
        } else if is(ErrorKind::ConnectionRefused, "refused") {
            format!("nothing listens there: is it started, and is that its port? Look: {listed}")
        } else if is(ErrorKind::NotFound, "no such file") {
            format!(
                "there is no such socket: name its folder, or the host and port. Look: {listed}; then: {}",
                self.example()
            )
        } else if is(ErrorKind::WouldBlock, "temporarily unavailable") {
            "it takes connections and says nothing: it is stopped, or its storage does not answer. Look there: ps -eo pid,stat,wchan:20,args \
             (T: stopped, D: waits for a device)"
                .to_owned()
        } else if is(ErrorKind::TimedOut, "timed out") {
            "no answer: a firewall between, or the wrong host. Look: ping, and nc -vz HOST PORT".to_owned()
        } else if is(ErrorKind::PermissionDenied, "permission denied") {
            "the socket is closed to this user: run as the server's user, or connect over the network"
                .to_owned()
        } else if lower.contains("lookup") || lower.contains("resolve") || lower.contains("name or service") {
            "the host's name is not known. Look: getent hosts NAME".to_owned()
        } else {
            format!("is that a {} server? It looks like {}", self.kind, self.example())
        };
        ServerError::Unreachable { kind: self.kind, address: self.to_string(), said: said.to_owned(), advice }
    }

    /// What a refusal of TLS means, if `said` is one.
    fn tls_advice(&self, said: &str) -> Option<String> {
        let has = |words: [&str; 2]| words.iter().any(|word| said.to_lowercase().contains(word));
        let [mode, root, switched_on] = match self.kind {
            Kind::Postgres => ["sslmode", "sslrootcert", "ssl = on in postgresql.conf"],
            Kind::Mariadb => ["ssl-mode", "ssl-ca", "ssl-cert and ssl-key in its [mysqld]"],
        };
        let advice = if said == NO_TLS {
            format!("switch it on there ({switched_on}), or do without: {mode}=prefer in the URL")
        } else if has(["unknownissuer", "causedasendentity"]) {
            let file = self.tls.checked_root().map(|path| path.display().to_string()).unwrap_or_default();
            format!(
                "no authority in {file} has signed its certificate: name the file of the one that did ({root}=FILE), or encrypt without asking                  who answers: {mode}=require without {root}"
            )
        } else if has(["notvalidforname", "not valid for name"]) {
            format!(
                "its certificate is made out to other names (subjectAltName): name the host by one of them, or type {mode}=verify-ca"
            )
        } else if has(["expired", "notvalidyet"]) {
            "its certificate is not valid today: look at its dates: openssl x509 -noout -dates -in FILE"
                .to_owned()
        } else if has(["certificate", "handshake"]) {
            format!(
                "the server and we do not agree on TLS: openssl s_client -connect HOST:PORT tells more; {mode}=disable does without"
            )
        } else {
            return None;
        };
        Some(advice)
    }

    /// A refused connection, with why a file of passwords was not read.
    pub(super) fn refused(&self, error: ServerError) -> ServerError {
        match (error, &self.unread) {
            (ServerError::Refused { kind, said, code, advice }, Some(why)) => {
                ServerError::Refused { kind, said: format!("{said}; {why}"), code, advice }
            }
            (error, _) => error,
        }
    }

    fn example(&self) -> &'static str {
        match self.kind {
            Kind::Postgres => {
                "postgres://user@host:5432/database or postgres:///database?host=/var/run/postgresql"
            }
            Kind::Mariadb => {
                "mysql://user@host:3306/database or mysql://user@localhost/?socket=/run/mysqld/mysqld.sock"
            }
        }
    }
}

/// Without the password; it can be typed again.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.kind {
            Kind::Postgres => "postgres",
            Kind::Mariadb => "mysql",
        };
        let database = self.database.as_deref().unwrap_or_default();
        let user = &self.user;
        match &self.host {
            Host::Name(name) => {
                let name = if name.contains(':') { format!("[{name}]") } else { name.clone() };
                let tls = self.tls.parameters(self.kind);
                let sign = if tls.is_empty() { "" } else { "?" };
                write!(f, "{scheme}://{user}@{name}:{}/{database}{sign}{}", self.port, tls.join("&"))
            }
            Host::Socket(path) if self.kind == Kind::Postgres => {
                write!(f, "{scheme}://{user}@:{}/{database}?host={}", self.port, path.display())
            }
            Host::Socket(path) => write!(f, "{scheme}://{user}@/{database}?socket={}", path.display()),
        }
    }
}

/// Whether a word that was typed is the URL of a server, rather than a file or the name of a run.
pub fn is_url(word: &str) -> bool {
    word.split_once("://").is_some_and(|(scheme, _)| parse::kind(scheme).is_some())
}

/// `text` (a command line, a message) with every password in a URL taken out.
pub fn without_password(text: &str) -> String {
    let words = text.split(' ').map(|word| {
        let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
        // As when it is read: the user ends at the last `@` before the path.
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        // A `/` in a password that was not written as %2F: what stands before the last `@` is hidden all the same.
        let end = if rest[..end].contains('@') { end } else { rest.find('?').unwrap_or(rest.len()) };
        let rest = match rest[..end].rsplit_once('@') {
            Some((who, host)) => {
                let user = who.split_once(':').map_or(who.to_owned(), |(user, _)| format!("{user}:…"));
                format!("{user}@{host}{}", &rest[end..])
            }
            None => rest.to_owned(),
        };
        let (path, query) = rest.split_once('?').map_or((rest.as_str(), None), |(p, q)| (p, Some(q)));
        let query = query.map(|query| {
            let kept = query.split('&').map(|pair| match pair.split_once('=') {
                Some((name, _)) if name.to_lowercase().ends_with("password") => format!("{name}=…"),
                _ => pair.to_owned(),
            });
            format!("?{}", kept.collect::<Vec<_>>().join("&"))
        });
        format!("{scheme}://{path}{}", query.unwrap_or_default())
    });
    words.collect::<Vec<_>>().join(" ")
}

/// This machine's own name.
fn is_our_name(name: &str) -> bool {
    let ours = std::fs::read_to_string(Path::new("/proc/sys/kernel/hostname")).unwrap_or_default();
    let ours = ours.trim();
    !ours.is_empty() && (name == ours || name.split('.').next() == Some(ours))
}

#[cfg(test)]
mod tests;
