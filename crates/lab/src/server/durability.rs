//! What a commit promises: figures of databases that promise different things are never ranked.

use super::{Connection, Kind, ServerError};

/// A parameter, the values that keep the full promise, and what any other value gives up.
type Promise = (&'static str, &'static [&'static str], &'static str);

const POSTGRES: [Promise; 3] = [
    ("fsync", &["on", "true", "yes", "1"], "a power cut may destroy the database"),
    (
        "synchronous_commit",
        &["on", "true", "yes", "1", "local", "remote_write", "remote_apply"],
        "a crash may lose the last commits",
    ),
    ("full_page_writes", &["on", "true", "yes", "1"], "a power cut may leave torn pages"),
];
const MARIADB: [Promise; 3] = [
    ("innodb_flush_log_at_trx_commit", &["1", "3"], "a crash may lose the last commits"),
    ("innodb_doublewrite", &["1", "on", "true", "fast"], "a power cut may leave torn pages"),
    (
        "innodb_flush_method",
        &["fsync", "o_dsync", "o_direct", "o_direct_no_fsync", "0", "1", "4", "5"],
        "a power cut may destroy the database",
    ),
];
const ENGINE: [Promise; 2] = [
    ("commit_wait", &["wait"], "a crash may lose the last commits"),
    ("torn_page_protection", &["redo", "doublewrite", "atomic"], "a power cut may leave torn pages"),
];

/// What `parameters` give up of the full promise: a commit that was acknowledged outlives a power cut. None of it: nothing. `server`:
/// none is the embedded database.
pub fn given_up<'p>(
    server: Option<Kind>,
    parameters: impl IntoIterator<Item = (&'p str, &'p str)>,
) -> Vec<String> {
    let promises: &[Promise] = match server {
        Some(Kind::Postgres) => &POSTGRES,
        Some(Kind::Mariadb) => &MARIADB,
        None => &ENGINE,
    };
    let broken = |(name, value): (&str, &str)| {
        let plain = |text: &str| text.to_ascii_lowercase().replace('-', "_");
        let (.., why) = promises
            .iter()
            .find(|(known, kept, _)| *known == plain(name) && !kept.contains(&plain(value).as_str()))?;
        Some(format!("{name}={value}: {why}"))
    };
    parameters.into_iter().filter_map(broken).collect()
}

/// Whether commits wait until their redo is on disk, as the server is set now.
///
/// # Errors
/// What the server says.
pub(super) fn commits_wait(kind: Kind, session: &mut dyn Connection) -> Result<bool, ServerError> {
    let waits = session.number(match kind {
        Kind::Postgres => {
            "select (current_setting('synchronous_commit') <> 'off' and current_setting('fsync') = 'on')::int"
        }
        Kind::Mariadb => "select @@innodb_flush_log_at_trx_commit in (1, 3)",
    })?;
    Ok(waits != 0)
}

/// What makes a commit of `kind` durable, for the plan.
pub(super) fn means(kind: Kind) -> &'static str {
    match kind {
        Kind::Postgres => "fsync=on, synchronous_commit=on, full_page_writes=on",
        Kind::Mariadb => "innodb_flush_log_at_trx_commit=1, innodb_doublewrite=1, no binary log",
    }
}

/// The promise of a server with `parameters` of its own, for the plan and for whoever puts runs side by side.
pub fn promise(kind: Kind, parameters: &[(String, String)]) -> String {
    let given_up =
        given_up(Some(kind), parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    match given_up[..] {
        [] => means(kind).to_owned(),
        _ => format!("{}, but {}", means(kind), given_up.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_gives_up_durability_is_known() {
        let check = |server, name, value, word: &str| {
            let given_up = given_up(server, [(name, value)]).join(" ");
            assert!(
                given_up.contains(word) && (word.is_empty() == given_up.is_empty()),
                "{name}={value}: {given_up}"
            );
        };
        check(Some(Kind::Postgres), "synchronous_commit", "off", "last commits");
        check(Some(Kind::Postgres), "synchronous_commit", "on", "");
        check(Some(Kind::Postgres), "fsync", "OFF", "destroy");
        check(Some(Kind::Postgres), "wal_sync_method", "open_datasync", "");
        check(Some(Kind::Mariadb), "innodb-flush-log-at-trx-commit", "2", "last commits");
        check(Some(Kind::Mariadb), "innodb_flush_method", "nosync", "destroy");
        check(Some(Kind::Mariadb), "innodb_flush_method", "O_DIRECT", "");
        check(None, "commit_wait", "nowait", "last commits");
        assert!(promise(Kind::Postgres, &[("fsync".into(), "off".into())]).contains("but fsync=off"));
    }
}
