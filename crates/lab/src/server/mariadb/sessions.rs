//! What MariaDB's threads do now, from `performance_schema`, and what it does not tell.
//!
//! The log file is not instrumented: who leads a commit shows the state `Commit` and no wait; who follows shows no wait and, to
//! `performance_schema`, no state at all, while the process list still names the one before. Both are taken for `log file sync`,
//! inferred, unless commits wait for nothing there (`innodb_flush_log_at_trx_commit` 0 or 2); a statement that sends data or only reads is not, as it loses its state as well. A wait on a table's handler only says that a statement is at a table: what it
//! does there is the wait inside it, or the processor. Waits that are over (`END_EVENT_ID`) are not counted.

use crate::server::sampler::{Seen, shape, statement};
use crate::server::{Connection, ServerError};
use std::collections::{BTreeMap, BTreeSet};
use waits::{Event, Grade, SessionKind};

const QUERY: &str = "select t.thread_id, t.processlist_id, t.name, p.command, t.processlist_state, p.state, \
     left(p.info, 1000), w.event_id, w.event_name, w.object_name, @@global.innodb_flush_log_at_trx_commit \
     from performance_schema.threads t \
     left join information_schema.processlist p on p.id = t.processlist_id \
     left join performance_schema.events_waits_current w on w.thread_id = t.thread_id and w.end_event_id is null \
     where t.processlist_id is null or t.processlist_id <> connection_id()";
/// What is left without `performance_schema`, which MariaDB switches off by itself.
const LISTED: &str = "select id, id, 'thread/sql/one_connection', command, state, state, left(info, 1000), null, null, null, \
     @@global.innodb_flush_log_at_trx_commit from information_schema.processlist where id <> connection_id()";
/// Row locks are not instrumented either; InnoDB's own table names who waits.
const LOCKED: &str =
    "select trx_mysql_thread_id from information_schema.innodb_trx where trx_state = 'LOCK WAIT'";
/// Contains other waits, and is none.
const CONTAINER: &str = "wait/io/table/sql/handler";

pub(in crate::server) fn look(connection: &mut dyn Connection) -> Result<Vec<Seen>, ServerError> {
    looked(connection, QUERY)
}

/// By the process list alone: commits and row locks can still be told, other waits not.
pub(in crate::server) fn look_listed(connection: &mut dyn Connection) -> Result<Vec<Seen>, ServerError> {
    looked(connection, LISTED)
}

fn looked(connection: &mut dyn Connection, query: &str) -> Result<Vec<Seen>, ServerError> {
    let rows = connection.rows(query)?;
    let locked: BTreeSet<u32> = connection
        .rows(LOCKED)?
        .into_iter()
        .filter_map(|row| row.into_iter().next().flatten()?.parse().ok())
        .collect();
    Ok(sessions(rows, &locked))
}

struct Thread {
    id: Option<u32>,
    name: String,
    command: Option<String>,
    /// As `performance_schema` has it.
    state: Option<String>,
    /// As the process list has it.
    listed: Option<String>,
    sql: Option<String>,
    /// Commits wait until their redo is on disk (`innodb_flush_log_at_trx_commit`).
    synced: bool,
    /// The innermost wait that goes on: the one with the highest number.
    wait: Option<(u64, String)>,
    /// The file of that wait.
    file: Option<String>,
}

fn sessions(rows: Vec<Vec<Option<String>>>, locked: &BTreeSet<u32>) -> Vec<Seen> {
    let mut threads: BTreeMap<u32, Thread> = BTreeMap::new();
    for row in rows {
        let Ok(row) = <[_; 11]>::try_from(row) else { continue };
        let [number, id, name, command, state, listed, sql, event, wait, object, flush] = row;
        let Some(number) = number.and_then(|n| n.parse().ok()) else { continue };
        let id = id.and_then(|id| id.parse().ok());
        let state = state.filter(|state| !state.is_empty());
        let synced = !matches!(flush.as_deref(), Some("0" | "2"));
        let name = name.unwrap_or_default();
        let new = Thread { id, name, command, state, listed, sql, synced, wait: None, file: None };
        let thread = threads.entry(number).or_insert(new);
        let wait = event.and_then(|n| n.parse().ok()).zip(wait);
        if wait.as_ref().map(|(n, _)| *n) > thread.wait.as_ref().map(|(n, _)| *n) {
            thread.file = object.filter(|_| wait.as_ref().is_some_and(|(_, name)| name.contains("/file/")));
            thread.wait = wait;
        }
    }
    threads.into_iter().filter_map(|(number, thread)| thread.seen(number, locked)).collect()
}

impl Thread {
    fn seen(self, number: u32, locked: &BTreeSet<u32>) -> Option<Seen> {
        match self.id {
            Some(id) if self.name.contains("one_connection") => self.client(id, locked.contains(&id)),
            _ => self.process(number),
        }
    }

    fn client(self, id: u32, is_locked: bool) -> Option<Seen> {
        if !["Query", "Execute"].contains(&self.command.as_deref()?) {
            return None;
        }
        let shown = self.wait.as_ref().map(|(_, name)| name.clone()).filter(|name| name != "idle");
        let commits = self.commits(shown.is_some());
        let told = shown.filter(|name| name != CONTAINER);
        let in_commit = self.state.as_deref().is_some_and(|state| state.eq_ignore_ascii_case("commit"));
        let (wait, event) = match told {
            _ if is_locked => {
                (Some("LOCK WAIT".to_owned()), Some((Event::EnqTxRowLockContention, Grade::Inferred)))
            }
            Some(name) => {
                let event = Event::from_mariadb(SessionKind::Foreground, &name);
                (Some(name), event)
            }
            None if commits => (Some("state:Commit".to_owned()), Some((Event::LogFileSync, Grade::Inferred))),
            None => (None, None),
        };
        Some(Seen {
            session: id,
            kind: SessionKind::Foreground,
            program: format!("client {id}"),
            wait,
            event,
            in_commit,
            statement: self.sql.as_deref().and_then(statement),
            shape: self.sql.as_deref().and_then(shape),
            file: self.file,
            blocker: None,
        })
    }

    /// Whether it waits for its redo, as far as that can be concluded; `waits`: whether it shows any wait.
    fn commits(&self, waits: bool) -> bool {
        let is = |state: &Option<String>, word: &str| {
            state.as_deref().is_some_and(|state| state.eq_ignore_ascii_case(word))
        };
        let reads =
            self.sql.as_deref().is_some_and(|sql| sql.trim_start().to_lowercase().starts_with("select"));
        let follows = self.state.is_none() && !is(&self.listed, "sending data") && !reads;
        self.synced && !waits && (is(&self.state, "commit") || is(&self.listed, "commit") || follows)
    }

    /// A thread of the server that shows no wait may work or may sleep where nothing is instrumented: it is not counted.
    fn process(self, number: u32) -> Option<Seen> {
        let (_, wait) = self.wait?;
        let program = self.name.rsplit('/').next().unwrap_or_default().to_owned();
        let event = Event::from_mariadb(SessionKind::Background, &wait);
        let kind = SessionKind::Background;
        let (statement, shape, blocker) = (None, None, None);
        let (session, wait, file) = (number, Some(wait), self.file);
        let in_commit = false;
        Some(Seen { session, kind, program, wait, event, in_commit, statement, shape, file, blocker })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_sessions() {
        let told = |fields: [&str; 9], flush: &str| -> Vec<Option<String>> {
            let fields = fields.map(|f| (!f.is_empty()).then(|| f.to_owned()));
            let file = Some("/data/t.ibd".to_owned());
            fields.into_iter().chain([file, Some(flush.to_owned())]).collect()
        };
        let row = |fields: [&str; 9]| told(fields, "1");
        let client = "thread/sql/one_connection";
        let file = "wait/io/file/innodb/innodb_data_file";
        let rows = vec![
            row(["30", "5", client, "Execute", "Commit", "Commit", "insert into c values (?)", "", ""]),
            row(["31", "6", client, "Execute", "", "Updating status", "insert into c values (?)", "", ""]),
            row([
                "32",
                "7",
                client,
                "Execute",
                "Sending data",
                "Sending data",
                "call new_order(?)",
                "10",
                CONTAINER,
            ]),
            row([
                "32",
                "7",
                client,
                "Execute",
                "Sending data",
                "Sending data",
                "call new_order(?)",
                "11",
                file,
            ]),
            row(["33", "8", client, "Execute", "Updating", "Updating", "call payment(?)", "9", CONTAINER]),
            row(["34", "9", client, "Execute", "Updating", "Updating", "call payment(?)", "9", CONTAINER]),
            row(["35", "10", client, "Sleep", "", "", "", "", ""]),
            row(["36", "11", client, "Query", "", "Sending data", "insert into t select * from t", "", ""]),
            row(["37", "12", client, "Query", "", "Statistics", "select count(*) from t", "", ""]),
            row(["1", "", "thread/innodb/page_cleaner_thread", "", "", "", "", "4", file]),
            row(["2", "", "thread/innodb/purge", "", "", "", "", "", ""]),
        ];
        let seen = sessions(rows, &BTreeSet::from([9]));
        let events: Vec<_> = seen.iter().map(|s| (s.session, s.event.map(|(event, _)| event))).collect();
        assert_eq!(
            events,
            [
                (1, Some(Event::DbFileParallelWrite)),
                (5, Some(Event::LogFileSync)),
                (6, Some(Event::LogFileSync)),
                (7, Some(Event::DbFileSequentialRead)),
                (8, None),
                (9, Some(Event::EnqTxRowLockContention)),
                (11, None),
                (12, None),
            ]
        );
        let unsynced = ["30", "5", client, "Execute", "Commit", "Commit", "insert into c values (?)", "", ""];
        assert_eq!(sessions(vec![told(unsynced, "2")], &BTreeSet::new())[0].wait, None, "no commit waits");
        assert_eq!(seen[4].wait, None, "at a table, and nothing inside: on a processor");
        assert_eq!(seen[0].program, "page_cleaner_thread");
        assert_eq!((seen[0].file.as_deref(), seen[1].file.as_deref()), (Some("/data/t.ibd"), None));
    }
}
