//! Is it in force? The server is asked for its settings, the kernel for the flags of the files that its processes have open.

use super::{Connection, Kind, Server, ServerError};
use crate::LabError;
use crate::stage::Proof;
use host::HostError;
use io::FlagsInForce;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Settings that are shown whatever varies: what a commit promises, how files are opened, how large the caches are.
const POSTGRES: [&str; 11] = [
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_sync_method",
    "debug_io_direct",
    "io_method",
    "shared_buffers",
    "max_wal_size",
    "data_directory",
    "default_tablespace",
    "temp_tablespaces",
];
const MARIADB: [&str; 13] = [
    "innodb_flush_log_at_trx_commit",
    "innodb_doublewrite",
    "innodb_flush_method",
    "innodb_use_native_aio",
    "innodb_linux_aio",
    "innodb_log_file_buffering",
    "innodb_buffer_pool_size",
    "innodb_log_file_size",
    "innodb_page_size",
    "datadir",
    "innodb_log_group_home_dir",
    "innodb_undo_directory",
    "tmpdir",
];

/// Asks the server for its settings: each must be what its command line says.
///
/// # Errors
/// [`HostError::NotInForce`]; what the server says.
pub fn settings(server: &Server, session: &mut dyn Connection) -> Result<Vec<Proof>, LabError> {
    let asked = asked(server);
    let mut proofs = Vec::new();
    let own = server.settings().parameters.iter().map(|(name, _)| plain(name));
    let fixed: &[&str] = if server.kind() == Kind::Postgres { &POSTGRES } else { &MARIADB };
    let names: Vec<String> = fixed.iter().map(|name| (*name).to_owned()).chain(own).collect();
    let shown = shown(server.kind(), session, names.iter().chain(asked.keys()))?;
    for (name, wanted) in &asked {
        // What its version does not have, and options that are no settings, it does not show.
        let Some((value, from_command_line)) = shown.get(name) else { continue };
        if !from_command_line.unwrap_or_else(|| same(wanted, value)) {
            let asked = format!("{name}={wanted}");
            let error =
                HostError::NotInForce { asked, place: server.data(), shown: format!("{name}={value}") };
            return Err(error.into());
        }
    }
    for name in names {
        if let Some((value, _)) = shown.get(&name).filter(|(value, _)| !value.is_empty()) {
            let proof = Proof::new(format!("{} {name}", server.kind().name()), value);
            if !proofs.contains(&proof) {
                proofs.push(proof);
            }
        }
    }
    Ok(proofs)
}

/// As the server spells it.
fn plain(name: &str) -> String {
    name.to_ascii_lowercase().replace('-', "_")
}

/// The settings of its command line; the last of a name wins.
fn asked(server: &Server) -> BTreeMap<String, String> {
    let words = server.command_line();
    let pairs = words.iter().filter_map(|word| word.trim_start_matches("--").split_once('='));
    pairs.map(|(name, value)| (plain(name), value.to_owned())).collect()
}

/// The values of `names`, and whether each is from the command line, where the server knows that.
fn shown<'n>(
    kind: Kind,
    session: &mut dyn Connection,
    names: impl Iterator<Item = &'n String>,
) -> Result<BTreeMap<String, (String, Option<bool>)>, ServerError> {
    let safe = |name: &&String| name.chars().all(|c| c.is_ascii_alphanumeric() || "_.".contains(c));
    let list: BTreeSet<String> = names.filter(safe).map(|name| format!("'{name}'")).collect();
    let list = list.into_iter().collect::<Vec<_>>().join(", ");
    let rows = session.rows(&match kind {
        Kind::Postgres => {
            format!(
                "select name, current_setting(name), source from pg_settings where lower(name) in ({list})"
            )
        }
        Kind::Mariadb => format!("show global variables where lower(variable_name) in ({list})"),
    })?;
    let value = |row: Vec<Option<String>>| {
        let mut fields = row.into_iter();
        let (name, value) = (fields.next()??, fields.next()?.unwrap_or_default());
        let from_command_line = fields.next().flatten().map(|source| source == "command line");
        Some((plain(&name), (value, from_command_line)))
    };
    Ok(rows.into_iter().filter_map(value).collect())
}

/// Whether a server that shows `shown` was told `wanted`: words in any case, switches in any spelling, paths with or without their
/// last slash.
fn same(wanted: &str, shown: &str) -> bool {
    let spelt = |text: &str| match text.trim_end_matches('/').to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" => "1".to_owned(),
        "off" | "false" | "no" => "0".to_owned(),
        other => other.to_owned(),
    };
    let size = |text: &str| {
        let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = match text[number.len()..].to_ascii_lowercase().as_str() {
            "" => 1.0,
            "k" => 1024.0,
            "m" => 1024.0 * 1024.0,
            "g" => 1024.0 * 1024.0 * 1024.0,
            _ => return None,
        };
        number.parse::<f64>().ok().map(|number| number * unit)
    };
    spelt(wanted) == spelt(shown) || size(wanted).is_some_and(|wanted| size(shown) == Some(wanted))
}

/// The flags of the redo and data files that processes of the server have open now, as the kernel shows them:
/// `redo O_RDWR|O_DSYNC; data O_RDWR|O_DIRECT`.
///
/// # Errors
/// [`HostError::NotInForce`]: the mode bypasses the page cache, and data files are open without `O_DIRECT`.
pub fn open_flags(server: &Server) -> Result<String, LabError> {
    let mut flags: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let processes: BTreeSet<i32> = server.files.folders().flat_map(|folder| folder.processes()).collect();
    for process in processes {
        for entry in std::fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten() {
            // What was closed meanwhile is gone.
            let Some(class) =
                std::fs::read_link(entry.path()).ok().and_then(|path| class(server.kind(), &path))
            else {
                continue;
            };
            let info = Path::new("/proc").join(format!("{process}/fdinfo")).join(entry.file_name());
            let text = std::fs::read_to_string(info).unwrap_or_default();
            if let Some(shown) = FlagsInForce::of_fdinfo(&text) {
                flags.entry(class).or_default().insert(shown.text);
            }
        }
    }
    let data = flags.get("data");
    if server.settings().mode.direct()
        && data.is_some_and(|all| !all.iter().all(|one| one.contains("O_DIRECT")))
    {
        let shown = data.map(|all| all.iter().cloned().collect::<Vec<_>>().join(", ")).unwrap_or_default();
        let asked = format!("O_DIRECT on the data files of {}", server.kind());
        return Err(HostError::NotInForce { asked, place: server.data(), shown }.into());
    }
    let told = flags
        .iter()
        .rev()
        .map(|(class, all)| format!("{class} {}", all.iter().cloned().collect::<Vec<_>>().join(" and ")));
    Ok(told.collect::<Vec<_>>().join("; "))
}

/// Whether a file holds redo or data.
fn class(kind: Kind, path: &Path) -> Option<&'static str> {
    let (text, name) = (path.to_str()?, path.file_name()?.to_str()?);
    match kind {
        // A segment of its log has 24 digits and letters; tables have numbers.
        Kind::Postgres if name.len() == 24 && name.chars().all(|c| c.is_ascii_hexdigit()) => Some("redo"),
        Kind::Postgres => {
            let table = name.split(['.', '_']).next().is_some_and(|n| n.parse::<u32>().is_ok());
            (table && (text.contains("/base/") || text.contains("/PG_"))).then_some("data")
        }
        Kind::Mariadb if name.starts_with("ib_logfile") => Some("redo"),
        Kind::Mariadb => (name.ends_with(".ibd") || name.starts_with("ibdata")).then_some("data"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_names() {
        for (kind, path, expected) in [
            (Kind::Postgres, "/d/pg_wal/000000010000000000000001", Some("redo")),
            (Kind::Postgres, "/d/base/5/16384", Some("data")),
            (Kind::Postgres, "/d/base/5/16384.1", Some("data")),
            (Kind::Postgres, "/ssd/files/PG_15_202209061/5/16384_fsm", Some("data")),
            (Kind::Postgres, "/d/postmaster.pid", None),
            (Kind::Mariadb, "/d/ib_logfile0", Some("redo")),
            (Kind::Mariadb, "/d/redoubt/t.ibd", Some("data")),
            (Kind::Mariadb, "/d/aria_log_control", None),
        ] {
            assert_eq!(class(kind, Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn a_setting_is_the_same_in_any_spelling() {
        for (wanted, shown, expected) in [
            ("1", "ON", true),
            ("0", "OFF", true),
            ("O_DIRECT", "O_DIRECT", true),
            ("64m", "67108864", true),
            ("67108864", "67108864", true),
            ("/ssd/files", "/ssd/files/", true),
            ("io_uring", "aio", false),
            ("8388608", "16777216", false),
            ("1", "2", false),
        ] {
            assert_eq!(same(wanted, shown), expected, "{wanted} {shown}");
        }
    }
}
