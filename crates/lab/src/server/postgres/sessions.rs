//! What PostgreSQL's sessions do now, from `pg_stat_activity`.

use crate::server::sampler::{Seen, shape, statement};
use crate::server::{Connection, ServerError};
use waits::{Event, Grade, SessionKind};

/// Sessions that work, and all processes of the server; who blocks is asked only where somebody waits for a lock, because the
/// answer takes locks itself.
const QUERY: &str = "select pid, backend_type, application_name, wait_event_type, wait_event, left(query, 1000), \
     case when wait_event_type = 'Lock' then (pg_blocking_pids(pid))[1] end, current_setting('synchronous_commit') \
     from pg_stat_activity where pid <> pg_backend_pid() \
     and (state in ('active', 'fastpath function call') or (backend_type <> 'client backend' and state is null))";

pub(in crate::server) fn look(connection: &mut dyn Connection) -> Result<Vec<Seen>, ServerError> {
    Ok(connection.rows(QUERY)?.into_iter().filter_map(session).collect())
}

fn session(row: Vec<Option<String>>) -> Option<Seen> {
    let [pid, backend, application, group, name, query, blocker, commit] = <[_; 8]>::try_from(row).ok()?;
    let backend = backend.unwrap_or_default();
    let users = ["client backend", "parallel worker"].contains(&backend.as_str());
    let kind = if users { SessionKind::Foreground } else { SessionKind::Background };
    let wait = group.zip(name).map(|(group, name)| format!("{group}:{name}"));
    let event = wait.as_ref().and_then(|wait| Event::from_postgres(kind, wait));
    let event = event.map(|found| match found {
        // Where commits wait for nothing, whoever wants the lock of the log or writes it needs room in its buffer.
        (Event::LogFileSync, _) if commit.as_deref() == Some("off") => {
            (Event::LogBufferSpace, Grade::Inferred)
        }
        other => other,
    });
    Some(Seen {
        session: pid?.parse().ok()?,
        kind,
        program: application.filter(|name| users && !name.is_empty()).unwrap_or(backend),
        wait,
        event,
        in_commit: false,
        statement: query.as_deref().filter(|_| users).and_then(statement),
        shape: query.as_deref().filter(|_| users).and_then(shape),
        file: None,
        blocker: blocker.and_then(|pid| pid.parse().ok()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_sessions() {
        let told = |fields: [&str; 8]| {
            session(fields.map(|f| (!f.is_empty()).then(|| f.to_owned())).into()).expect("a session")
        };
        let row = |[a, b, c, d, e, f, g]: [&str; 7]| told([a, b, c, d, e, f, g, "on"]);
        let committing =
            row(["7", "client backend", "commit 3", "LWLock", "WALWrite", "insert into x values ($1)", ""]);
        assert_eq!(committing.event, Some((Event::LogFileSync, Grade::Approximate)));
        assert_eq!(
            (committing.program.as_str(), committing.statement.as_deref()),
            ("commit 3", Some("insert into"))
        );
        let unsynced = ["7", "client backend", "commit 3", "LWLock", "WALWrite", "insert into x", "", "off"];
        assert_eq!(told(unsynced).event, Some((Event::LogBufferSpace, Grade::Inferred)));
        let writer = row(["8", "walwriter", "", "IO", "WALSync", "", ""]);
        assert_eq!((writer.kind, writer.program.as_str()), (SessionKind::Background, "walwriter"));
        let busy = row(["9", "client backend", "", "", "", "select 1", ""]);
        assert_eq!((busy.wait, busy.program.as_str()), (None, "client backend"));
        let blocked = row(["9", "client backend", "x", "Lock", "transactionid", "update t", "7"]);
        assert_eq!(
            (blocked.event, blocked.blocker),
            (Some((Event::EnqTxRowLockContention, Grade::Exact)), Some(7))
        );
    }
}
