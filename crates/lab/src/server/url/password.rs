//! Where clients look for what a URL leaves out: variables, `~/.pgpass`, `~/.my.cnf`.

use super::Host;
use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A secret: nothing here shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// Takes it.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// For a driver alone.
    pub(in crate::server) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// Variables and home of whoever runs this.
pub struct Surroundings {
    variables: BTreeMap<String, String>,
    home: PathBuf,
}

impl Surroundings {
    /// Those of this process.
    pub fn here() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let variables: BTreeMap<String, String> = std::env::vars_os().filter_map(text).collect();
        let home = PathBuf::from(variables.get("HOME").cloned().unwrap_or_default());
        Self { variables, home }
    }

    /// Others.
    #[cfg(test)]
    pub(super) fn of(variables: &[(&str, &str)], home: &Path) -> Self {
        let variables = variables.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        Self { variables, home: home.to_owned() }
    }

    /// A variable that is set and not empty.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).filter(|value| !value.is_empty()).cloned()
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        Path::new(path).exists()
    }

    /// A file below the home, if it is there.
    pub(super) fn own_file(&self, name: &str) -> Option<String> {
        let path = self.home.join(name);
        path.is_file().then(|| path.display().to_string())
    }

    /// The system's user.
    pub(super) fn user(&self) -> String {
        self.variable("USER").or_else(|| self.variable("LOGNAME")).unwrap_or_else(|| "root".into())
    }

    /// The password of the first line of `~/.pgpass` (or `PGPASSFILE`) that fits; or why the file was not read.
    pub(super) fn pgpass(
        &self,
        host: &Host,
        port: u16,
        database: &str,
        user: &str,
    ) -> (Option<String>, Option<String>) {
        let path = self.variable("PGPASSFILE").map_or_else(|| self.home.join(".pgpass"), PathBuf::from);
        let text = match private_text(&path) {
            Ok(text) => text,
            Err(why) => return (None, why),
        };
        let host = match host {
            Host::Name(name) => name.clone(),
            Host::Socket(path) if path == Path::new("/var/run/postgresql") || path == Path::new("/tmp") => {
                "localhost".into()
            }
            Host::Socket(path) => path.display().to_string(),
        };
        let wanted = [host.as_str(), &port.to_string(), database, user];
        let fits = |line: &str| {
            let fields = fields(line)?;
            let (password, place) = fields.split_last()?;
            let same = place.len() == 4 && place.iter().zip(wanted).all(|(is, want)| is == "*" || is == want);
            same.then(|| password.clone())
        };
        (text.lines().filter(|line| !line.starts_with('#')).find_map(fits), None)
    }

    /// What `~/.my.cnf` says to clients; or why the file was not read.
    pub(super) fn my_cnf(&self) -> (BTreeMap<String, String>, Option<String>) {
        let text = match private_text(&self.home.join(".my.cnf")) {
            Ok(text) => text,
            Err(why) => return (BTreeMap::new(), why),
        };
        let mut options = BTreeMap::new();
        let mut ours = false;
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
            if let Some(section) = line.strip_prefix('[') {
                let section = section.trim_end_matches(']');
                ours = ["client", "client-mariadb", "client-server", "mysql", "mariadb-client"]
                    .contains(&section);
            } else if ours && !line.is_empty() {
                // An option may stand without a value.
                let (name, value) = line.split_once('=').unwrap_or((line, ""));
                let value = value.trim();
                let quoted = ['"', '\''].iter().find_map(|q| value.strip_prefix(*q)?.strip_suffix(*q));
                options.insert(name.trim().to_owned(), quoted.unwrap_or(value).to_owned());
            }
        }
        (options, None)
    }
}

/// The text of a file that only its owner can read, as PostgreSQL's clients demand; none when there is no such file.
fn private_text(path: &Path) -> Result<String, Option<String>> {
    let Ok(about) = std::fs::metadata(path) else { return Err(None) };
    if about.permissions().mode() & 0o077 != 0 {
        let path = path.display();
        return Err(Some(format!("{path} was not read, because others can read it; type: chmod 600 {path}")));
    }
    std::fs::read_to_string(path).map_err(|error| Some(format!("{} was not read: {error}", path.display())))
}

/// The fields of a line of `~/.pgpass`: `:` between them, `\` before one that belongs to a field.
fn fields(line: &str) -> Option<Vec<String>> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => fields.last_mut()?.push(characters.next()?),
            // What follows the fourth belongs to the password.
            ':' if fields.len() < 5 => fields.push(String::new()),
            c => fields.last_mut()?.push(c),
        }
    }
    Some(fields)
}
