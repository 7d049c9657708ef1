//! What a file is for, by its name: each product has its own.

use std::fmt;
use std::os::unix::fs::FileTypeExt;

/// A database product, by the program that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Product {
    /// The embedded database.
    Engine,
    /// PostgreSQL.
    Postgres,
    /// MariaDB or MySQL.
    Mariadb,
    /// Something else.
    Other,
}

impl Product {
    /// By the file name of the program.
    pub(super) fn of(program: &str) -> Self {
        match program {
            "postgres" | "postmaster" => Self::Postgres,
            "mariadbd" | "mysqld" => Self::Mariadb,
            _ if program == "redoubt" || program.starts_with("redoubt-") => Self::Engine,
            _ => Self::Other,
        }
    }
}

/// What a file is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// The log.
    Redo,
    /// Tables and indexes.
    Data,
    /// Old versions of rows.
    Undo,
    /// Sorts and temporary tables.
    Temp,
    /// Whole pages, written before their places.
    Doublewrite,
    /// The flash cache.
    Flash,
    /// State of transactions (PostgreSQL).
    CommitLog,
    /// What the database needs to start.
    Control,
    /// `ibdata1`: the doublewrite buffer and the rest of the system tablespace.
    System,
    /// What the database tells people.
    Alert,
    /// Anything else, by its name.
    Named(String),
    /// Files of several classes that are registered with one ring.
    Several(Vec<Class>),
    /// Open for so short a time that nobody could look.
    ShortLived,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Redo => f.pad("redo"),
            Self::Data => f.pad("data"),
            Self::Undo => f.pad("undo"),
            Self::Temp => f.pad("temp"),
            Self::Doublewrite => f.pad("doublewrite"),
            Self::Flash => f.pad("flash cache"),
            Self::CommitLog => f.pad("commit log"),
            Self::Control => f.pad("control"),
            Self::System => f.pad("system"),
            Self::Alert => f.pad("alert log"),
            Self::Named(name) => f.pad(name),
            Self::Several(all) => f.pad(&all.iter().map(Self::to_string).collect::<Vec<_>>().join(", ")),
            Self::ShortLived => f.pad("closed at once"),
        }
    }
}

/// The class of `path`; none for what is no storage of the program's: sockets, pipes, devices without blocks, its own code.
pub(super) fn of(product: Product, path: &str) -> Option<Class> {
    let path = path.trim_end_matches(" (deleted)");
    if !path.starts_with('/') || is_outside(path) {
        return None;
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    let class = match product {
        Product::Engine => engine(name),
        Product::Postgres => postgres(path, name),
        Product::Mariadb => mariadb(path, name),
        Product::Other => None,
    };
    Some(class.unwrap_or_else(|| Class::Named(path.to_owned())))
}

fn is_outside(path: &str) -> bool {
    let folders =
        ["/proc/", "/sys/", "/usr/", "/lib/", "/lib64/", "/bin/", "/sbin/", "/etc/", "/run/systemd/"];
    let is_block = || std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_block_device());
    folders.iter().any(|folder| path.starts_with(folder)) || path.starts_with("/dev/") && !is_block()
}

fn engine(name: &str) -> Option<Class> {
    let starts = |word: &str| name.starts_with(word);
    Some(match () {
        () if starts("redo") => Class::Redo,
        () if starts("users") => Class::Data,
        () if starts("undo") => Class::Undo,
        () if starts("temp") => Class::Temp,
        () if starts("doublewrite") => Class::Doublewrite,
        () if starts("flash") => Class::Flash,
        () if starts("control") => Class::Control,
        () if starts("system") => Class::System,
        () if starts("alert") => Class::Alert,
        () => return None,
    })
}

fn postgres(path: &str, name: &str) -> Option<Class> {
    let within = |folder: &str| path.contains(folder);
    Some(match () {
        () if within("/pg_wal/") || within("/pg_xlog/") => Class::Redo,
        () if within("/pgsql_tmp") => Class::Temp,
        () if name == "pg_control" => Class::Control,
        () if within("/base/") || within("/global/") || within("/pg_tblspc/") || within("/PG_") => {
            Class::Data
        }
        () if within("/pg_xact/") || within("/pg_multixact/") || within("/pg_subtrans/") => Class::CommitLog,
        () if name == "postmaster.pid" || name == "log" || within("/log/") => Class::Alert,
        () => return None,
    })
}

fn mariadb(path: &str, name: &str) -> Option<Class> {
    let starts = |word: &str| name.starts_with(word);
    Some(match () {
        () if starts("ib_logfile") || path.contains("/#innodb_redo/") => Class::Redo,
        () if starts("ibdata") => Class::System,
        () if name.ends_with(".dblwr") => Class::Doublewrite,
        () if starts("undo") => Class::Undo,
        () if starts("ibtmp") || starts("#sql") || path.starts_with("/tmp/") && starts("ib") => Class::Temp,
        () if name.ends_with(".ibd") => Class::Data,
        () if name == "log" || name.ends_with(".err") => Class::Alert,
        () => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_by_their_names() {
        for (product, path, class) in [
            (Product::Engine, "/data/redoubt-1/redo01.log", "redo"),
            (Product::Engine, "/data/redoubt-1/users01.dbf", "data"),
            (Product::Postgres, "/d/data/pg_wal/000000010000000000000001", "redo"),
            (Product::Postgres, "/d/data/base/5/16384", "data"),
            (Product::Postgres, "/d/data/base/pgsql_tmp/pgsql_tmp77.0", "temp"),
            (Product::Postgres, "/d/data/global/pg_control", "control"),
            (Product::Postgres, "/d/data/pg_xact/0000", "commit log"),
            (Product::Mariadb, "/d/data/ib_logfile0", "redo"),
            (Product::Mariadb, "/d/data/redoubt/t.ibd", "data"),
            (Product::Mariadb, "/d/data/ibdata1", "system"),
            (Product::Mariadb, "/tmp/ibXYZ (deleted)", "temp"),
            (Product::Other, "/data/file", "/data/file"),
        ] {
            assert_eq!(of(product, path).map(|class| class.to_string()).as_deref(), Some(class), "{path}");
        }
        for path in [
            "socket:[12]",
            "pipe:[3]",
            "anon_inode:[io_uring]",
            "/dev/null",
            "/proc/self/stat",
            "/usr/lib/x.so",
        ] {
            assert_eq!(of(Product::Other, path), None, "{path}");
        }
    }
}
