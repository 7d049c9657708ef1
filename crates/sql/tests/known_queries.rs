//! Queries that DBAs carry with them run as they are, on a database that has done some work.

mod support;

use std::sync::Arc;
use support::{Database, check, database, rows, run};
use units::Nanos;
use waits::ash::Sampler;
use waits::{Event, SessionKind};

/// A database with a filled table, in which somebody has waited, and still waits.
fn worked(ask: impl Fn(&mut Database)) {
    let mut db = database();
    db.set_source_lines(2_000);
    run(
        &mut db,
        &[
            "CREATE TABLE T AS SELECT * FROM DBA_SOURCE",
            "CREATE UNIQUE INDEX T_PK ON T (NAME, LINE)",
            "UPDATE T SET TEXT = UPPER(TEXT) WHERE LINE < 10",
            "COMMIT",
            "ALTER SYSTEM CHECKPOINT",
            "ALTER SYSTEM SWITCH LOGFILE",
        ],
    );
    let registry = db.instance.waits.clone();
    let user = registry.register(SessionKind::Foreground, "sqlplus");
    let writer = registry.register(SessionKind::Background, "lgwr2");
    let sampler = Sampler::stepped(&registry, Nanos::millis(1), 100);
    db.set_history(Arc::new(sampler));
    let sampler = Sampler::stepped(&registry, Nanos::millis(1), 100);
    let _call = user.call();
    for _ in 0..3 {
        user.enter(Event::FreeBufferWaits, 4, 131, 1).end();
    }
    let _wait = user.enter(Event::LogFileSync, 7, 0, 0);
    let _write = writer.enter(Event::LogFileParallelWrite, 1, 8, 1);
    while !sampler.step() {}
    db.set_history(Arc::new(sampler));
    ask(&mut db);
}

fn check_worked(query: &str, expected: &str) {
    worked(|db| check(db, query, expected));
}

/// The numbers of a result, in order.
fn numbers(db: &mut Database, query: &str) -> Vec<f64> {
    let cells = rows(db, query);
    cells.split(['|', '\n']).map(|cell| cell.parse().unwrap_or_else(|_| panic!("{query}: {cells}"))).collect()
}

#[test]
fn latency_of_each_file() {
    worked(|db| {
        let query = "select d.name, i.small_write_reqs + i.large_write_reqs,
                round(i.small_write_servicetime / nullif(i.small_write_reqs, 0), 3) ms
           from v$iostat_file i join v$datafile d on i.file_no = d.file#
          where i.filetype_name = 'Data File' order by 2 desc";
        let first = rows(db, query);
        let cells: Vec<_> = first.lines().next().expect("a file").split('|').collect();
        assert!(cells[0].starts_with("/db/") && cells[1].parse::<u64>().expect("a number") > 0, "{first}");
        assert!(cells[2].parse::<f64>().expect("a number") > 0.0, "{first}");
    });
}

#[test]
fn the_articles_own_query() {
    worked(|db| {
        let bytes = numbers(
            db,
            "SELECT TO_CHAR(SUM(BYTES)) FROM DBA_SEGMENTS WHERE OWNER = ‘SYS’ AND SEGMENT_NAME = ‘T’",
        );
        assert!(bytes[0] >= 65_536.0 && bytes[0] % 4_096.0 == 0.0, "{bytes:?}");
    });
}

#[test]
fn top_events_of_the_last_minutes() {
    check_worked(
        "select nvl(event, 'ON CPU') event, count(*) samples
           from v$active_session_history
          where sample_time > sysdate - 5/1440 and session_type = 'FOREGROUND'
          group by nvl(event, 'ON CPU') order by 2 desc",
        "log file sync|1",
    );
    check_worked("select count(*) from gv$active_session_history where sample_time > sysdate + 1", "0");
}

#[test]
fn top_events_with_rownum() {
    check_worked(
        "select * from (select wait_class, decode(session_state, 'WAITING', event, 'CPU') what
           from sys.v$active_session_history where program = 'sqlplus' order by session_id) where rownum <= 1",
        "Commit|log file sync",
    );
}

#[test]
fn waits_since_the_start() {
    check_worked(
        "select event, total_waits, total_waits_fg from v$system_event
          where wait_class <> 'Idle' and event = 'free buffer waits'
          order by time_waited_micro desc fetch first 1 rows only",
        "free buffer waits|3|3",
    );
}

#[test]
fn a_histogram() {
    check_worked(
        "select sum(wait_count) from v$event_histogram_micro where event = 'free buffer waits'",
        "3",
    );
}

#[test]
fn who_waits_now() {
    check_worked(
        "select event, p1text, p1, state from v$session_wait where wait_class != 'Idle' and state = 'WAITING' order by sid",
        "log file sync|buffer#|7|WAITING\nlog file parallel write|files|1|WAITING",
    );
    check_worked(
        "select s.program, w.event from v$session s, v$session_wait w
          where s.sid = w.sid and s.type = 'USER' and s.status = 'ACTIVE' and s.sql_id is null",
        "sqlplus|log file sync",
    );
}

#[test]
fn what_runs_now() {
    check_worked(
        "select q.sql_text from v$session s join v$sql q on q.sql_id = s.sql_id where s.program = 'test'",
        "select q.sql_text from v$session s join v$sql q on q.sql_id = s.sql_id where s.program = 'test'",
    );
}

#[test]
fn what_an_event_means() {
    check_worked(
        "select parameter1, parameter2, wait_class from v$event_name where name = 'db file sequential read'",
        "file#|block#|User I/O",
    );
}

#[test]
fn buffers_by_status() {
    worked(|db| {
        let all = numbers(db, "select count(*) from v$bh")[0];
        assert_eq!(all * 4_096.0, numbers(db, "select bytes from v$sgastat where name = 'buffer_cache'")[0]);
        let by_status = numbers(
            db,
            "select sum(decode(status, 'free', 1, 0)), sum(decode(status, 'xcur', 1, 0)) from v$bh",
        );
        assert_eq!(by_status.iter().sum::<f64>(), all);
        // The table's blocks are among them.
        let objects = "select count(*) from v$bh b, dba_segments s where b.file# = s.header_file and b.block# = s.header_block and s.segment_name = 'T'";
        check(db, objects, "1");
        run(db, &["ALTER SYSTEM FLUSH BUFFER_CACHE"]);
        check(db, "select count(*) from v$bh where dirty = 'Y'", "0");
    });
}

#[test]
fn redo_groups_and_their_files() {
    worked(|db| {
        let query = "select l.group#, l.status, round(l.bytes/1024/1024) mb, f.member
           from v$log l, v$logfile f where l.group# = f.group# order by l.group#, f.member";
        check(
            db,
            query,
            "1|INACTIVE|1|/db/redo01.log\n2|CURRENT|1|/db/redo02.log\n3|UNUSED|1|/db/redo03.log",
        );
        check(db, "select count(*) from v$log where next_change# is null and status = 'CURRENT'", "1");
    });
}

#[test]
fn hit_ratio() {
    worked(|db| {
        let ratio = numbers(
            db,
            "select round((1 - p.value / l.value) * 100, 1) \"hit %\" from v$sysstat p, v$sysstat l
              where p.name = 'physical reads' and l.name = 'session logical reads'",
        );
        assert!(ratio[0] > 50.0 && ratio[0] <= 100.0, "{ratio:?}");
        let mine = "select m.value from v$mystat m join v$statname n on m.statistic# = n.statistic# where n.name = 'user commits'";
        check(db, mine, "2");
    });
}

#[test]
fn space() {
    worked(|db| {
        check(
            db,
            "select tablespace_name, count(*), to_char(sum(bytes)/1024, 'FM999,990') is not null kb
               from sys.dba_segments where owner = 'SYS' and segment_type in ('TABLE', 'INDEX')
                and tablespace_name = 'USERS' group by tablespace_name",
            "USERS|2|1",
        );
        check(
            db,
            "select t.name, round(sum(f.bytes)/1024/1024/1024, 1) gb from v$tablespace t
               left join dba_data_files f on f.tablespace_name = t.name group by t.name order by 1",
            "SYSTEM|0\nTEMP|\nUNDO|0\nUSERS|0",
        );
        check(
            db,
            "select tablespace_name, contents from dba_tablespaces order by 2, 1",
            "SYSTEM|PERMANENT\nUSERS|PERMANENT\nTEMP|TEMPORARY\nUNDO|UNDO",
        );
        check(db, "select tablespace_name, status from dba_temp_files", "TEMP|ONLINE");
        check(db, "select status, name from v$tempfile", "ONLINE|/db/temp01.dbf");
    });
}

#[test]
fn objects() {
    worked(|db| {
        check(
            db,
            "select column_name, data_type, nullable from user_tab_columns where table_name = 'T' order by column_id",
            "OWNER|VARCHAR2|Y\nNAME|VARCHAR2|Y\nTYPE|VARCHAR2|Y\nLINE|NUMBER|Y\nTEXT|VARCHAR2|Y",
        );
        check(
            db,
            "select i.index_name, i.uniqueness, c.column_name from all_indexes i
               join all_ind_columns c on c.index_name = i.index_name where i.table_name = 'T' order by c.column_position",
            "T_PK|UNIQUE|NAME\nT_PK|UNIQUE|LINE",
        );
        check(db, "select table_name, tablespace_name, blocks > 0 from dba_tables", "T|USERS|1");
    });
}

#[test]
fn parameters_and_dual() {
    check_worked("select value, isdefault from v$parameter where name = 'filesystemio_options'", "none|TRUE");
    check_worked("select to_char(sysdate, 'DD-MON-YYYY') from sys.dual", "01-JAN-1970");
    check_worked("select instance_name, status from v$instance", "db|OPEN");
}

#[test]
fn functions_of_oracle() {
    let mut db = database();
    let check = |db: &mut Database, expression: &str, expected: &str| {
        check(db, &format!("select {expression} from dual"), expected);
    };
    check(
        &mut db,
        "trunc(2.789, 1), mod(17, 5), ceil(1.2), floor(-1.2), round(power(2, 0.5), 3)",
        "2.7|2|2|-2|1.414",
    );
    check(&mut db, "greatest(1, 3, 2), least('b', 'a'), nvl2(null, 1, 2), coalesce(null, 3)", "3|a|2|3");
    check(
        &mut db,
        "lpad(7, 3, '0') || rpad('x', 2) || '|', initcap('log FILE sync')",
        "007x ||Log File Sync",
    );
    check(
        &mut db,
        "to_char(to_date('21.11.2026', 'DD.MM.YYYY'), 'YYYY-MM-DD'), to_number('1,5', '9,9') + 1",
        "2026-11-21|16",
    );
    check(
        &mut db,
        "trunc(sysdate), trunc(sysdate, 'MM'), round(julianday(sysdate) - julianday(sysdate - 1/48), 3)",
        "1970-01-01 00:00:00|1970-01-01 00:00:00|0.021",
    );
    check(&mut db, "case when 'abc' like 'A%' then 1 else 0 end", "0");
    let over = "median(n), round(stddev(n), 3), round(variance(n), 3), listagg(n, ',') within group (order by n desc)";
    let rows = "(select 1 n union all select 2 union all select 4)";
    support::check(&mut db, &format!("select {over} from {rows}"), "2|1.528|2.333|4,2,1");
    support::refused(&mut db, "select to_date('soon') from dual", "'soon' is no date");
}

#[test]
fn where_the_time_went() {
    worked(|db| {
        let time = numbers(
            db,
            "select value from v$sys_time_model where stat_name in ('DB time', 'DB CPU') order by stat_name",
        );
        assert!(time[1] >= time[0] && time[0] > 0.0, "{time:?}");
    });
}
