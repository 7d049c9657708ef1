//! Queries that DBAs carry with them run as they are on our views.
//!
//! The views of waits show a real registry. The others show rows written here, in the units that Oracle has: what is tried is
//! that each query's names, functions and arithmetic are understood, not the instance behind them.

use engine::{Row, Value};
use rusqlite::Connection;
use sql::view::{find, waits as views};
use sql::{rewrite, sqlite};
use units::{Clock, Nanos};
use waits::ash::Sampler;
use waits::{Event, Registry, SessionKind};

const NOW: u64 = 1_795_253_400; // 2026-11-21 09:30:00

/// Rows as `a|b|c`, one a line; a number where one stands, NULL where nothing stands.
fn rows(text: &str) -> Vec<Row> {
    let value = |cell: &str| match (cell, cell.parse()) {
        ("", _) => Value::Null,
        (_, Ok(number)) => Value::Integer(number),
        _ => Value::Text(cell.into()),
    };
    text.lines().map(|line| line.trim().split('|').map(value).collect()).collect()
}

fn show(db: &Connection, view: &str, rows: Vec<Row>) {
    sqlite::show(db, find(view).expect(view), rows).expect(view);
}

/// A session that waited once for a block, and a log writer that waits now, sampled.
fn show_waits(db: &Connection) {
    let registry = Registry::new(Clock::steps(), 8);
    let user = registry.register(SessionKind::Foreground, "sqlplus");
    let writer = registry.register(SessionKind::Background, "lgwr");
    let sampler = Sampler::stepped(&registry, Nanos::millis(1), 100);
    let _call = user.call();
    for _ in 0..3 {
        user.enter(Event::DbFileSequentialRead, 4, 131, 1).end();
    }
    let _wait = user.enter(Event::LogFileSync, 7, 0, 0);
    let _write = writer.enter(Event::LogFileParallelWrite, 1, 8, 1);
    while !sampler.step() {}
    let moment = views::Moment { clock: registry.clock().now(), unix_seconds: NOW };
    let ticks = sampler.recent();
    show(db, "v$event_name", views::event_name());
    show(db, "v$session", views::session(&registry));
    show(db, "v$session_wait", views::session_wait(&registry));
    show(db, "v$system_event", views::system_event(&registry));
    show(db, "v$event_histogram_micro", views::event_histogram_micro(&registry));
    let history = views::active_session_history(ticks.iter().map(|tick| &**tick), moment);
    show(db, "v$active_session_history", history);
}

fn database() -> Connection {
    let db = sqlite::open(|| NOW).expect("SQLite opens");
    sqlite::create_dual(&db).expect("DUAL");
    show_waits(&db);
    show(
        &db,
        "v$datafile",
        rows(
            "1|0|1|SYSTEM|READ WRITE|900|104857600|12800|104857600|8192|/u01/system01.dbf
         4|4|4|ONLINE|READ WRITE|900|1073741824|131072|1073741824|8192|/u01/users01.dbf",
        ),
    );
    show(
        &db,
        "v$iostat_file",
        rows(
            "1|2|Data File|1|0|0|0|100|10|100|0|0|50|30|50|0|0|ASYNC_ON|OS_LIB|0
         4|2|Data File|80|40|0|0|10000|5000|9000|0|0|3550|9000|3195|0|0|ASYNC_ON|OS_LIB|0",
        ),
    );
    show(
        &db,
        "v$bh",
        rows(
            "4|130|1|xcur|Y|N|N|N|N|70|4
         4|131|1|xcur|N|N|N|N|N|70|4
         0|0|0|free|N|N|N|N|N||0",
        ),
    );
    show(
        &db,
        "v$log",
        rows("1|1|7|104857600|512|2|NO|CURRENT|900|\n2|1|6|104857600|512|2|NO|INACTIVE|800|900"),
    );
    show(&db, "v$logfile", rows("1||ONLINE|/redo/1a.log\n1||ONLINE|/redo/1b.log\n2||ONLINE|/redo/2a.log"));
    show(&db, "v$tablespace", rows("0|SYSTEM|NO\n4|USERS|NO"));
    show(
        &db,
        "v$parameter",
        rows("1|filesystemio_options|2|SETALL|SETALL|none|FALSE|FALSE|how files are opened"),
    );
    show(&db, "v$sysstat", rows("1|session logical reads|1|1000\n2|physical reads|8|100"));
    show(
        &db,
        "dba_segments",
        rows("SYS|T||TABLE|USERS|4|130|851968|104|13|DEFAULT\nSYS|T_PK||INDEX|USERS|4|300|65536|8|1|DEFAULT"),
    );
    show(
        &db,
        "dba_data_files",
        rows("/u01/users01.dbf|4|USERS|1073741824|131072|AVAILABLE|4|YES|0|0|0|0|0|ONLINE"),
    );
    db
}

/// The result as `a|b`, one row a line.
fn check(query: &str, expected: &str) {
    let db = database();
    let rewritten = rewrite::rewrite(query, None).expect(query);
    let failed = |e: rusqlite::Error| panic!("{query}\n{}", sqlite::error(&e, &rewritten).with_caret(query));
    let mut statement = db.prepare(&rewritten.sql).unwrap_or_else(failed);
    let columns = statement.column_count();
    let cell = |value: rusqlite::types::Value| match value {
        rusqlite::types::Value::Null => String::new(),
        rusqlite::types::Value::Integer(number) => number.to_string(),
        rusqlite::types::Value::Real(number) => number.to_string(),
        rusqlite::types::Value::Text(text) => text,
        rusqlite::types::Value::Blob(_) => "blob".into(),
    };
    let line = |row: &rusqlite::Row<'_>| -> rusqlite::Result<String> {
        let cells: rusqlite::Result<Vec<_>> = (0..columns).map(|at| row.get(at).map(cell)).collect();
        Ok(cells?.join("|"))
    };
    let found: Result<Vec<_>, _> = statement.query_map([], line).and_then(Iterator::collect);
    let found = found.unwrap_or_else(|e| panic!("{query}: {e}"));
    assert_eq!(found.join("\n"), expected, "{query}");
}

#[test]
fn latency_of_each_file() {
    check(
        "select d.name, i.small_read_reqs,
                round(i.small_read_servicetime / nullif(i.small_read_reqs, 0), 3) ms
           from v$iostat_file i join v$datafile d on i.file_no = d.file#
          where i.filetype_name = 'Data File' order by 3 desc",
        "/u01/system01.dbf|100|0.5\n/u01/users01.dbf|10000|0.355",
    );
}

#[test]
fn the_articles_own_query() {
    check(
        "SELECT TO_CHAR(SUM(BYTES)) FROM DBA_SEGMENTS WHERE OWNER = ‘SYS’ AND SEGMENT_NAME = ‘T’",
        "851968",
    );
}

#[test]
fn top_events_of_the_last_minutes() {
    check(
        "select nvl(event, 'ON CPU') event, count(*) samples
           from v$active_session_history
          where sample_time > sysdate - 5/1440 and session_type = 'FOREGROUND'
          group by nvl(event, 'ON CPU') order by 2 desc",
        "log file sync|1",
    );
    check("select count(*) from gv$active_session_history where sample_time > sysdate + 1", "0");
}

#[test]
fn top_events_with_rownum() {
    check(
        "select * from (select wait_class, decode(session_state, 'WAITING', event, 'CPU') what
           from sys.v$active_session_history order by session_id) where rownum <= 1",
        "Commit|log file sync",
    );
}

#[test]
fn waits_since_the_start() {
    check(
        "select event, total_waits, total_waits_fg from v$system_event
          where wait_class <> 'Idle' order by time_waited_micro desc fetch first 1 rows only",
        "db file sequential read|3|3",
    );
}

#[test]
fn a_histogram() {
    check("select sum(wait_count) from v$event_histogram_micro where event = 'db file sequential read'", "3");
    check(
        "select min(wait_time_micro) from v$event_histogram_micro where wait_count > 0 and event# >= 0",
        "2",
    );
}

#[test]
fn who_waits_now() {
    check(
        "select sid, event, p1text, p1, state from v$session_wait where wait_class != 'Idle' order by sid",
        "1|log file sync|buffer#|7|WAITING\n2|log file parallel write|files|1|WAITING",
    );
    check(
        "select s.program, w.event from v$session s, v$session_wait w where s.sid = w.sid and s.type = 'USER'",
        "sqlplus|log file sync",
    );
}

#[test]
fn what_an_event_means() {
    check(
        "select parameter1, parameter2, wait_class from v$event_name where name = 'db file sequential read'",
        "file#|block#|User I/O",
    );
}

#[test]
fn buffers_by_status() {
    check("select status, count(*) from v$bh group by status order by 1", "free|1\nxcur|2");
    check(
        "select file#, sum(decode(dirty, 'Y', 1, 0)) dirty from v$bh where status <> 'free' group by file#",
        "4|1",
    );
}

#[test]
fn redo_groups_and_their_files() {
    check(
        "select l.group#, l.status, round(l.bytes/1024/1024) mb, f.member
           from v$log l, v$logfile f where l.group# = f.group# order by l.group#, f.member",
        "1|CURRENT|100|/redo/1a.log\n1|CURRENT|100|/redo/1b.log\n2|INACTIVE|100|/redo/2a.log",
    );
}

#[test]
fn hit_ratio() {
    check(
        "select round((1 - p.value / l.value) * 100, 1) \"hit %\" from v$sysstat p, v$sysstat l
          where p.name = 'physical reads' and l.name = 'session logical reads'",
        "90",
    );
}

#[test]
fn space() {
    check(
        "select tablespace_name, to_char(sum(bytes)/1024, 'FM999,990') kb from sys.dba_segments group by tablespace_name",
        "USERS|896",
    );
    check(
        "select t.name, round(sum(f.bytes)/1024/1024/1024, 1) gb from v$tablespace t
           left join dba_data_files f on f.tablespace_name = t.name group by t.name order by 1",
        "SYSTEM|\nUSERS|1",
    );
}

#[test]
fn parameters_and_dual() {
    check("select value from v$parameter where name = 'filesystemio_options'", "SETALL");
    check("select to_char(sysdate, 'DD-MON-YYYY HH24:MI') from sys.dual", "21-NOV-2026 09:30");
}

#[test]
fn a_wrong_name_is_shown_where_it_was_typed() {
    let db = database();
    let query = "select group#, statsu from sys.v$log";
    let rewritten = rewrite::rewrite(query, None).expect("it can be");
    let error = db.prepare(&rewritten.sql).expect_err("there is no such column");
    let error = sqlite::error(&error, &rewritten);
    assert_eq!(error.offset, query.find("statsu"), "{error}");
}
