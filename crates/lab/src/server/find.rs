//! Where the programs of a database server are.

use super::Kind;
use super::error::ServerError;
use std::path::{Path, PathBuf};

/// The folders of a server's programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs {
    /// The server itself.
    pub server: PathBuf,
    /// What makes its first files.
    pub install: PathBuf,
}

/// Folders of programs that the user named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// PostgreSQL's; none: found.
    pub postgres: Option<PathBuf>,
    /// MariaDB's; none: found.
    pub mariadb: Option<PathBuf>,
}

impl Named {
    /// That of `kind`.
    pub fn of(&self, kind: Kind) -> Option<&Path> {
        match kind {
            Kind::Postgres => self.postgres.as_deref(),
            Kind::Mariadb => self.mariadb.as_deref(),
        }
    }
}

/// Looks in `given`, else along `PATH`, else in the usual folders, the newest version first.
///
/// # Errors
/// [`ServerError::NotFound`], with all places.
pub fn programs(kind: Kind, given: Option<&Path>) -> Result<Programs, ServerError> {
    let folders = match given {
        Some(folder) => vec![folder.to_owned()],
        None => folders(kind),
    };
    let (server, install) = match kind {
        Kind::Postgres => ("postgres", "initdb"),
        Kind::Mariadb => ("mariadbd", "mariadb-install-db"),
    };
    let found = |program: &str| folders.iter().map(|f| f.join(program)).find(|p| p.is_file());
    let missing = |program| ServerError::NotFound { kind, program, looked: folders.clone() };
    match kind {
        // Both of one version: a link to the server alone, as some put into their PATH, is followed to its folder.
        Kind::Postgres => {
            let both = |folder: &Path| {
                let real = std::fs::canonicalize(folder.join(server)).ok()?;
                let folder = real.parent()?.to_owned();
                folder
                    .join(install)
                    .is_file()
                    .then(|| Programs { install: folder.join(install), server: real })
            };
            folders.iter().find_map(|folder| both(folder)).ok_or_else(|| missing(server))
        }
        // Packages put the two into different folders.
        Kind::Mariadb => Ok(Programs {
            server: found(server).ok_or_else(|| missing(server))?,
            install: found(install)
                .or_else(|| {
                    given
                        .and_then(|g| Some(g.parent()?.join("scripts").join(install)))
                        .filter(|p| p.is_file())
                })
                .ok_or_else(|| missing(install))?,
        }),
    }
}

fn folders(kind: Kind) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).filter(|p| p.is_absolute()).collect();
    if kind == Kind::Postgres {
        folders.extend(versions("/usr/lib/postgresql", "bin"));
        folders.extend(versions("/usr", "bin").into_iter().filter(|p| p.to_string_lossy().contains("pgsql")));
    }
    folders.extend(["/usr/sbin", "/usr/local/sbin", "/usr/bin", "/usr/local/bin"].map(PathBuf::from));
    let mut unique: Vec<PathBuf> = Vec::new();
    folders.into_iter().for_each(|folder| {
        if !unique.contains(&folder) {
            unique.push(folder);
        }
    });
    unique
}

/// `root/*/leaf`, the highest number first.
fn versions(root: &str, leaf: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|e| e.path()).filter(|p| p.join(leaf).is_dir()).collect();
    let number = |p: &PathBuf| {
        let digits: String = p
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .chars()
            .filter(char::is_ascii_digit)
            .collect();
        digits.parse::<u32>().unwrap_or(0)
    };
    found.sort_by_key(|p| std::cmp::Reverse(number(p)));
    found.into_iter().map(|p| p.join(leaf)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_the_server_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        for kind in Kind::ALL {
            let missing = programs(kind, Some(folder.path())).expect_err("nothing is there");
            assert!(matches!(missing, ServerError::NotFound { .. }), "{missing}");
        }
    }

    #[test]
    fn both_programs_of_one_folder_are_taken() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["postgres", "initdb"] {
            std::fs::write(folder.path().join(name), "").expect("a file");
        }
        let found = programs(Kind::Postgres, Some(folder.path())).expect("both are there");
        assert_eq!(found.install.parent(), found.server.parent());
    }
}
