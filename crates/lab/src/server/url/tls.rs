//! Whether a session over the network is encrypted and whom it believes, in the words of PostgreSQL's and MariaDB's own clients.

use super::password::Surroundings;
use crate::server::Kind;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where systems keep the authorities that browsers believe.
const SYSTEM: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// What is said of a server that has none.
pub(in crate::server) const NO_TLS: &str = "the server does not speak TLS";

/// How much of it a session over the network must have. A unix socket never leaves the machine and has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsMode {
    /// None.
    Disable,
    /// Encrypted where the server can, whoever answers.
    #[default]
    Prefer,
    /// Encrypted, whoever answers.
    Require,
    /// By a server whose certificate an authority of ours has signed.
    VerifyCa,
    /// And which is made out to the host that was named.
    VerifyFull,
}

impl TlsMode {
    /// The word of `kind`'s clients.
    fn word(self, kind: Kind) -> &'static str {
        let (postgres, mariadb) = match self {
            Self::Disable => ("disable", "DISABLED"),
            Self::Prefer => ("prefer", "PREFERRED"),
            Self::Require => ("require", "REQUIRED"),
            Self::VerifyCa => ("verify-ca", "VERIFY_CA"),
            Self::VerifyFull => ("verify-full", "VERIFY_IDENTITY"),
        };
        match kind {
            Kind::Postgres => postgres,
            Kind::Mariadb => mariadb,
        }
    }

    /// The mode behind a word of either product's clients.
    fn parse(word: &str) -> Result<Self, String> {
        Ok(match word.to_lowercase().replace('_', "-").as_str() {
            "disable" | "disabled" => Self::Disable,
            "allow" | "prefer" | "preferred" => Self::Prefer,
            "require" | "required" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" | "verify-identity" => Self::VerifyFull,
            _ => {
                return Err(
                    "its mode of TLS is not known: disable, prefer, require, verify-ca or verify-full".into(),
                );
            }
        })
    }
}

/// How a session over the network is encrypted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// How much of it there must be.
    pub mode: TlsMode,
    /// The file (PEM) of the authorities that are believed; none: nobody was named.
    pub root: Option<PathBuf>,
    /// The files (PEM) of the certificate and the key by which we log in.
    pub identity: Option<(PathBuf, PathBuf)>,
}

impl Tls {
    /// As parameters of a URL, in the words of `kind`'s clients; none of what goes without saying.
    pub(super) fn parameters(&self, kind: Kind) -> Vec<String> {
        let [mode, root, certificate, key] = match kind {
            Kind::Postgres => ["sslmode", "sslrootcert", "sslcert", "sslkey"],
            Kind::Mariadb => ["ssl-mode", "ssl-ca", "ssl-cert", "ssl-key"],
        };
        let mut all = Vec::new();
        if self.mode != TlsMode::default() {
            all.push(format!("{mode}={}", self.mode.word(kind)));
        }
        all.extend(self.checked_root().map(|path| format!("{root}={}", path.display())));
        if let Some((of_certificate, of_key)) = &self.identity {
            all.push(format!("{certificate}={}", of_certificate.display()));
            all.push(format!("{key}={}", of_key.display()));
        }
        all
    }

    /// The options of MariaDB's client program that ask for the same.
    pub(in crate::server) fn mariadb_options(&self) -> Vec<String> {
        let mut all: Vec<String> = match self.mode {
            TlsMode::Disable => vec!["--skip-ssl".into()],
            TlsMode::Prefer => Vec::new(),
            TlsMode::Require => vec!["--ssl".into()],
            TlsMode::VerifyCa | TlsMode::VerifyFull => vec!["--ssl-verify-server-cert".into()],
        };
        all.extend(self.checked_root().map(|path| format!("--ssl-ca={}", path.display())));
        if let Some((certificate, key)) = &self.identity {
            all.push(format!("--ssl-cert={}", certificate.display()));
            all.push(format!("--ssl-key={}", key.display()));
        }
        all
    }

    /// Whether what will be read can be, and the key by us alone, as PostgreSQL's clients demand.
    fn check_files(&self) -> Result<(), String> {
        if self.mode == TlsMode::Disable {
            return Ok(());
        }
        let open = |path: &Path| {
            File::open(path).map_err(|error| format!("{} was not read: {error}", path.display()))
        };
        self.checked_root().map(|path| open(path)).transpose()?;
        let Some((certificate, key)) = &self.identity else { return Ok(()) };
        open(certificate)?;
        let about = open(key)?.metadata().map_err(|error| error.to_string())?;
        // A key that root keeps for a group is the system's way to share it.
        let closed_to = if about.uid() == 0 { 0o037 } else { 0o077 };
        if about.mode() & closed_to != 0 {
            let key = key.display();
            return Err(format!(
                "the key {key} was not read, because others can read it; type: chmod 600 {key}"
            ));
        }
        Ok(())
    }

    /// The file of authorities, where one is asked.
    pub(in crate::server) fn checked_root(&self) -> Option<&PathBuf> {
        self.root.as_ref().filter(|_| self.mode >= TlsMode::VerifyCa)
    }
}

/// What was said of it, in a URL or in a file of options.
#[derive(Default)]
pub(super) struct Said {
    mode: Option<TlsMode>,
    root: Option<String>,
    certificate: Option<String>,
    key: Option<String>,
}

impl Said {
    /// Takes a parameter or an option; whether it is one of TLS.
    ///
    /// # Errors
    /// A mode that nobody knows.
    pub(super) fn take(&mut self, name: &str, value: Option<&str>) -> Result<bool, String> {
        let is_on = !value.is_some_and(|v| ["0", "false", "off", "no"].contains(&v.to_lowercase().as_str()));
        let text = || value.map(str::to_owned);
        match name.replace('_', "-").as_str() {
            "sslmode" | "ssl-mode" => self.mode = value.map(TlsMode::parse).transpose()?,
            "ssl" | "require-ssl" => {
                self.mode = self.mode.or(Some(if is_on { TlsMode::Require } else { TlsMode::Disable }));
            }
            "skip-ssl" => self.mode = Some(TlsMode::Disable),
            "ssl-verify-server-cert" if is_on => self.mode = Some(TlsMode::VerifyFull),
            "ssl-verify-server-cert" => {}
            "sslrootcert" | "ssl-ca" => self.root = text(),
            "sslcert" | "ssl-cert" => self.certificate = text(),
            "sslkey" | "ssl-key" => self.key = text(),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// PostgreSQL's: the rest from its variables and from `~/.postgresql`.
    ///
    /// # Errors
    /// What does not fit together, or a key that others can read.
    pub(super) fn postgres(mut self, here: &Surroundings) -> Result<Tls, String> {
        for name in ["sslmode", "sslrootcert", "sslcert", "sslkey"] {
            let mut variables = Self::default();
            variables.take(name, here.variable(&format!("PG{}", name.to_uppercase())).as_deref())?;
            self = self.or(variables);
        }
        let kept = |name: &str| here.own_file(&format!(".postgresql/{name}"));
        self = self.or(Self {
            mode: None,
            root: kept("root.crt"),
            certificate: kept("postgresql.crt"),
            key: kept("postgresql.key"),
        });
        self.tls(Kind::Postgres)
    }

    /// MariaDB's: the rest from `options`, those of `~/.my.cnf`.
    ///
    /// # Errors
    /// As [`Said::postgres`].
    pub(super) fn mariadb(self, options: &BTreeMap<String, String>) -> Result<Tls, String> {
        let mut file = Self::default();
        for (name, value) in options {
            file.take(name, Some(value).filter(|value| !value.is_empty()).map(String::as_str))?;
        }
        self.or(file).tls(Kind::Mariadb)
    }

    fn or(self, other: Self) -> Self {
        Self {
            mode: self.mode.or(other.mode),
            root: self.root.or(other.root),
            certificate: self.certificate.or(other.certificate),
            key: self.key.or(other.key),
        }
    }

    fn tls(self, kind: Kind) -> Result<Tls, String> {
        let system = || SYSTEM.into_iter().find(|path| PathBuf::from(path).exists()).map(PathBuf::from);
        let root = match self.root.as_deref() {
            Some("system") => system(),
            Some(path) => Some(PathBuf::from(path)),
            None => None,
        };
        let mode = match self.mode.unwrap_or_default() {
            // As PostgreSQL's clients do: who keeps authorities wants them asked.
            TlsMode::Require if root.is_some() => TlsMode::VerifyCa,
            mode => mode,
        };
        if mode >= TlsMode::VerifyCa && root.is_none() {
            let name = if kind == Kind::Postgres { "sslrootcert" } else { "ssl-ca" };
            return Err(format!(
                "the server's certificate is to be checked, and no authority is named: add {name}=FILE (PEM) to the URL, or {name}=system"
            ));
        }
        let identity = match (self.certificate, self.key) {
            (Some(certificate), Some(key)) => Some((PathBuf::from(certificate), PathBuf::from(key))),
            (None, None) => None,
            (Some(_), None) => return Err("a certificate is named, and no key for it".into()),
            (None, Some(_)) => return Err("a key is named, and no certificate for it".into()),
        };
        let tls = Tls { mode, root, identity };
        tls.check_files()?;
        Ok(tls)
    }
}
