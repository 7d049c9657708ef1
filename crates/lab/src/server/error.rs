//! What goes wrong with a database server, in words: what was seen, the likely cause, what to type.

use super::Kind;
use std::path::PathBuf;
use thiserror::Error;
use units::Nanos;

/// A server that cannot be had or does not do what it is asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ServerError {
    /// Its programs are not there.
    #[error(
        "{kind} is not installed (looked for {program} in {}); type: sudo apt install {}   or name the folder of its programs: --{}-bin DIR",
        looked.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", "),
        kind.package(), kind.option()
    )]
    NotFound {
        /// Which one.
        kind: Kind,
        /// The program that was looked for.
        program: &'static str,
        /// Where.
        looked: Vec<PathBuf>,
    },
    /// What was asked for is beyond this server.
    #[error("{kind} {version} cannot do that: {why}; type {instead}")]
    Unable {
        /// Which one.
        kind: Kind,
        /// Its version.
        version: String,
        /// What is missing.
        why: String,
        /// What to type to `redoubt run` instead.
        instead: &'static str,
    },
    /// It did not start.
    #[error("{kind} did not start: {why}; its last words: {said}")]
    NotStarted {
        /// Which one.
        kind: Kind,
        /// The likely cause, with what to type.
        why: String,
        /// The end of its log.
        said: String,
    },
    /// What was typed is not where a server is.
    #[error("{0}")]
    Url(String),
    /// Nobody answers where it should be.
    #[error("{kind} does not answer at {address}: {said}; {advice}")]
    Unreachable {
        /// Which one.
        kind: Kind,
        /// Where, without the password.
        address: String,
        /// What the driver says.
        said: String,
        /// The likely cause and what to look at.
        advice: String,
    },
    /// It went away while it was needed.
    #[error("{kind} is gone: {why}; its last words: {said}")]
    Gone {
        /// Which one.
        kind: Kind,
        /// The likely cause, with what to look at or to type.
        why: String,
        /// What the driver or its log says.
        said: String,
    },
    /// It is there and says nothing.
    #[error(
        "{kind} hangs: for {silence} it did not even answer `select 1`, so its sessions were let go; {why}"
    )]
    Silent {
        /// Which one.
        kind: Kind,
        /// How long it was waited for.
        silence: Nanos,
        /// The likely cause, with what to look at or to type.
        why: String,
    },
    /// It is there, and a device or file system does not answer it.
    #[error(
        "{kind} hangs: its thread {thread} ({name}) has stayed in one wait of the kernel for {patience}, so its sessions were let go: a device or \
         file system beneath it does not answer. Look at: cat /proc/{thread}/stack; dmesg | tail; to wait longer: --patience SECONDS"
    )]
    Stuck {
        /// Which one.
        kind: Kind,
        /// How long it was waited for.
        patience: Nanos,
        /// The number of the thread that waits.
        thread: i32,
        /// Its name.
        name: String,
    },
    /// It does not let us make a schema of our own.
    #[error(
        "{kind} says: {said} ({code}); the user may not make a schema of its own there; type there: {grant}"
    )]
    Denied {
        /// Which one.
        kind: Kind,
        /// Its words.
        said: String,
        /// SQLSTATE, or MariaDB's number.
        code: String,
        /// The right that is missing, as a statement.
        grant: String,
    },
    /// It refused a connection or a statement.
    #[error("{kind} says: {said} ({code}){advice}")]
    Refused {
        /// Which one.
        kind: Kind,
        /// Its words.
        said: String,
        /// SQLSTATE, or MariaDB's number.
        code: String,
        /// The likely cause and what to type, or nothing.
        advice: &'static str,
    },
}

impl ServerError {
    /// What a server says under `code`; a lost connection is [`ServerError::Gone`].
    pub(super) fn said(kind: Kind, code: &str, said: &str) -> Self {
        let said = said.trim().to_owned();
        let advice = if wants_tls(code, &said) { Some(TLS) } else { advice(code) };
        match advice {
            Some(GONE) => Self::gone(kind, &said),
            advice => Self::Refused { kind, said, code: code.to_owned(), advice: advice.unwrap_or_default() },
        }
    }

    /// Whether a transaction lost to another one and may be played again.
    pub fn is_deadlock(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if ["40P01", "40001", "1213", "1205"].contains(&code.as_str()))
    }

    /// A server that is gone, for a reason that is not known yet.
    pub(super) fn gone(kind: Kind, said: &str) -> Self {
        let why =
            "it was killed, crashed, was restarted or lost its storage meanwhile; see its log".to_owned();
        Self::Gone { kind, why, said: said.to_owned() }
    }
}

const GONE: &str = "gone";

/// Whether a code says that all connections are taken.
pub(super) fn is_full(code: &str) -> bool {
    ["53300", "1040", "1203"].contains(&code)
}

const TLS: &str = "; it lets this host or user in by TLS only, or not at all. TLS comes about where the server has it switched on and neither the URL \
     nor PGSSLMODE says disable; whom PostgreSQL lets in stands in its pg_hba.conf";

/// Whether it may be that TLS is asked for. PostgreSQL says the same of a host that nothing lets in.
fn wants_tls(code: &str, said: &str) -> bool {
    code == "3159" || code == "28000" && ["no encryption", "SSL off"].iter().any(|words| said.contains(words))
}

/// The likely cause behind a SQLSTATE of PostgreSQL or a number of MariaDB.
fn advice(code: &str) -> Option<&'static str> {
    Some(match code {
        "53300" | "1040" | "1203" => {
            "; all connections are taken: type fewer --sessions, or --set max_connections=NUMBER"
        }
        "53100" | "1021" | "1114" | "3" => {
            "; the disk is full, see: df -h; free some space, name another directory with --dir, or type a smaller --scale or fewer --minutes"
        }
        "28P01" | "28000" | "1045" => {
            "; the password or the user is wrong, or this host is not let in, or by TLS only (where the URL says disable), or with a certificate only (sslcert=FILE&sslkey=FILE in \
             the URL, for MariaDB ssl-cert, ssl-key); a password is taken from the URL, PGPASSWORD or ~/.pgpass, \
             for MariaDB from MYSQL_PWD or ~/.my.cnf"
        }
        "3D000" | "1049" => "; name a database that exists, behind the host in the URL",
        "42501" | "1142" | "1227" | "1044" => {
            "; the user may not see that; type there: GRANT pg_monitor TO user; or, MariaDB: GRANT PROCESS, SELECT ON *.* TO user"
        }
        "25006" | "1290" | "1836" => "; it is read-only: a standby, or switched so on purpose",
        "53200" | "1037" | "1038" => "; it has too little memory: type a smaller --cache",
        "58030" | "1026" | "1030" => "; its storage reports an error, look at: dmesg | tail",
        "57P01" | "57P02" | "57P03" | "08006" | "08003" | "2006" | "2013" | "1053" | "1927" => GONE,
        _ => return None,
    })
}

/// The likely cause of a failed start, from the words in a log.
pub(super) fn start_failure(log: &str) -> String {
    let lower = log.to_lowercase();
    let causes = [
        (
            "no space left",
            "the disk is full, see: df -h; free some space or name another directory with --dir",
        ),
        (
            "address already in use",
            "another server has its socket or port; see: ss -lxp, and stop it or name another --dir",
        ),
        ("is another postmaster", "another server runs on these files"),
        ("could not create lock file", "another server has its socket, or the folder is closed to its user"),
        (
            "too long",
            "the path of its socket is too long (107 bytes at most); name a directory with a shorter path with --dir",
        ),
        ("cannot allocate memory", "there is too little memory for its cache; type a smaller --cache"),
        (
            "could not map anonymous shared memory",
            "there is too little memory for its cache; type a smaller --cache",
        ),
        ("unrecognized configuration parameter", "it does not know a parameter; check the --set"),
        ("unknown variable", "it does not know a parameter; check the --set"),
        ("unknown option", "it does not know a parameter; check the --set"),
        ("invalid value for parameter", "a parameter's value is refused; check the --set"),
        ("io_setup", "the kernel's limit of asynchronous requests is used up; see /proc/sys/fs/aio-max-nr"),
        ("permission denied", "its user may not use the directory; name another one with --dir"),
    ];
    let cause = causes.iter().find(|(word, _)| lower.contains(word)).map(|(_, cause)| *cause);
    cause.unwrap_or("see what it said").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_become_advice() {
        let check = |kind, code, words: &[&str]| {
            let text = ServerError::said(kind, code, "FATAL: x").to_string();
            assert!(words.iter().all(|word| text.contains(word)), "{code}: {text}");
        };
        check(Kind::Postgres, "53300", &["PostgreSQL says: FATAL: x (53300)", "--sessions"]);
        check(Kind::Mariadb, "1040", &["MariaDB says", "--sessions"]);
        check(Kind::Postgres, "53100", &["disk is full", "df -h"]);
        check(Kind::Postgres, "28P01", &["password", ".pgpass"]);
        check(Kind::Mariadb, "3159", &["TLS", "disable"]);
        let refused = "no pg_hba.conf entry for host \"10.0.0.1\", user \"u\", database \"d\", no encryption";
        let refused = ServerError::said(Kind::Postgres, "28000", refused).to_string();
        assert!(refused.contains("pg_hba.conf") && refused.contains("PGSSLMODE"), "{refused}");
        check(Kind::Mariadb, "2013", &["is gone", "killed"]);
        check(Kind::Postgres, "42601", &["(42601)"]);
        assert!(ServerError::said(Kind::Mariadb, "1213", "").is_deadlock());
    }

    #[test]
    fn a_missing_server_says_what_to_install() {
        let missing = ServerError::NotFound {
            kind: Kind::Postgres,
            program: "postgres",
            looked: vec!["/usr/bin".into()],
        };
        let text = missing.to_string();
        for word in ["PostgreSQL is not installed", "sudo apt install postgresql", "--pg-bin DIR", "/usr/bin"]
        {
            assert!(text.contains(word), "{text}");
        }
    }

    #[test]
    fn a_log_tells_why_it_did_not_start() {
        for (log, word) in [
            ("FATAL:  could not write: No space left on device", "disk is full"),
            ("Unix-domain socket path \"/a\" is too long (maximum 107 bytes)", "shorter path"),
            ("unrecognized configuration parameter \"fsnyc\"", "--set"),
            ("[ERROR] unknown variable 'x=1'", "--set"),
            ("hm", "see what it said"),
        ] {
            assert!(start_failure(log).contains(word), "{log}");
        }
    }
}
