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
fn where_the_time_went() {
    worked(|db| {
        let time = numbers(
            db,
            "select value from v$sys_time_model where stat_name in ('DB time', 'DB CPU') order by stat_name",
        );
        assert!(time[1] >= time[0] && time[0] > 0.0, "{time:?}");
    });
}

#[test]
fn shares_of_the_activity() {
    check_worked(
        "SELECT * FROM (
           SELECT NVL(event, 'ON CPU') event, COUNT(*) samples,
                  LPAD(ROUND(RATIO_TO_REPORT(COUNT(*)) OVER () * 100) || '%', 10, ' ') percent
             FROM gv$active_session_history
            WHERE sample_time BETWEEN SYSDATE - 60/2880 AND SYSDATE AND wait_class LIKE '%I/O' OR event = 'log file sync'
            GROUP BY event ORDER BY samples DESC, event)
          WHERE ROWNUM < 10",
        "log file parallel write|1|       50%\nlog file sync|1|       50%",
    );
    check_worked(
        "select to_char(sample_time, 'HH24:MI') minute, decode(session_state, 'ON CPU', 'CPU', wait_class) what,
                round(sum(usecs_per_row) / 1e6, 6) > 0 active
           from v$active_session_history where session_type = 'FOREGROUND'
          group by to_char(sample_time, 'HH24:MI'), decode(session_state, 'ON CPU', 'CPU', wait_class) order by 1, 2",
        "01:00|Commit|1",
    );
    check_worked(
        "select sum(decode(session_state, 'ON CPU', 1, 0)) cpu,
                sum(decode(session_state, 'WAITING', decode(wait_class, 'Commit', 1, 0), 0)) commits
           from v$active_session_history where session_type = 'FOREGROUND' and sql_id is null",
        "0|1",
    );
}

#[test]
fn events_by_share_of_db_time() {
    worked(|db| {
        let query = "SELECT e.event, n.wait_class, e.time_waited_micro, ROUND(e.time_waited_micro * 100 / s.dbtime, 1) pct_db_time
               FROM v$system_event e, v$event_name n,
                    (SELECT value dbtime FROM v$sys_time_model WHERE stat_name = 'DB time') s
              WHERE e.event_id = n.event_id AND n.wait_class NOT IN ('Idle', 'System I/O')
              ORDER BY pct_db_time DESC";
        let found = rows(db, query);
        assert!(found.lines().any(|line| line.starts_with("free buffer waits|Configuration|")), "{found}");
        let by_class = "select wait_class, sum(total_waits) waits, round(sum(time_waited) / 100, 2) seconds
               from v$system_event where wait_class <> 'Idle' group by wait_class having sum(total_waits) > 0 order by 3 desc";
        let found = rows(db, by_class);
        assert!(found.lines().any(|line| line.starts_with("Configuration|")), "{found}");
        assert!(!found.contains("Idle"), "{found}");
    });
}

#[test]
fn averages_from_micro_histograms() {
    worked(|db| {
        check(
            db,
            "select e.event, sum(h.wait_count) - e.total_waits lost
               from v$event_histogram_micro h join v$system_event e on h.event = e.event
              where e.event = 'free buffer waits' group by e.event, e.total_waits",
            "free buffer waits|0",
        );
        let cumulative = "select wait_time_micro, wait_count, wait_time_format,
                round(100 * sum(wait_count) over (order by wait_time_micro) / sum(wait_count) over (), 2) pct
           from gv$event_histogram_micro where event = 'log file parallel write' order by wait_time_micro";
        let found = rows(db, cumulative);
        assert!(found.lines().last().is_some_and(|line| line.ends_with("|100")), "{found}");
    });
}

#[test]
fn files_of_all_kinds_with_their_names() {
    worked(|db| {
        let query = "select filetype_name, coalesce(b.name, c.name, '-') name,
                small_read_reqs + large_read_reqs reads, small_write_reqs + large_write_reqs writes
           from v$iostat_file a left join v$datafile b on (b.file# = a.file_no and a.filetype_id = 2)
           left join v$tempfile c on (c.file# = a.file_no and a.filetype_id = 6) order by 1, 2";
        let found = rows(db, query);
        for begin in ["Data File|/db/users01.dbf|", "Temp File|/db/temp01.dbf|", "Log File|-|"] {
            assert!(found.lines().any(|line| line.starts_with(begin)), "{begin}:\n{found}");
        }
        check(
            db,
            "SELECT asynch_io, COUNT( * ) FROM v$iostat_file WHERE filetype_name in ( 'Data File', 'Temp File')
              GROUP BY asynch_io",
            "ASYNC_OFF|4",
        );
        let totals = numbers(
            db,
            "SELECT SUM(NVL(small_read_megabytes, 0) + NVL(large_read_megabytes, 0)) read_mb,
                    SUM(NVL(small_write_reqs, 0) + NVL(large_write_reqs, 0)) write_reqs FROM v$iostat_file",
        );
        assert!(totals[1] > 0.0, "{totals:?}");
    });
}

#[test]
fn buffers_by_tablespace_and_object() {
    worked(|db| {
        let query = "SELECT t.tablespace_name, b.status, COUNT(*) num_bufs, ROUND(COUNT(*) * t.block_size / 1048576, 2) mb
               FROM v$bh b, dba_tablespaces t, v$tablespace vt
              WHERE b.ts# = vt.ts# AND vt.name = t.tablespace_name
              GROUP BY t.tablespace_name, b.ts#, t.block_size, b.status ORDER BY COUNT(*) DESC";
        let found = rows(db, query);
        assert!(found.lines().any(|line| line.starts_with("USERS|xcur|")), "{found}");
        let by_status = "select decode(status, 'free', 'FREE', 'xcur', 'EXCLUSIVE', 'cr', 'CONSISTENT READ', NULL) \"STATUS\",
                count(1) \"BLOCKS\" from v$bh group by status order by 1";
        assert!(rows(db, by_status).contains("EXCLUSIVE|"), "{}", rows(db, by_status));
        check(db, "select sum(case when dirty = 'Y' and status = 'free' then 1 else 0 end) from v$bh", "0");
    });
}

#[test]
fn redo_and_commits_per_second() {
    worked(|db| {
        let found = numbers(
            db,
            "select max(decode(name, 'redo size', value)) / nullif(max(decode(name, 'user commits', value)), 0) redo_per_commit,
                    sum(case when name in ('db block gets', 'consistent gets') then value end)
                      - max(decode(name, 'session logical reads', value)) difference
               from v$sysstat where name in ('redo size', 'user commits', 'db block gets', 'consistent gets', 'session logical reads')",
        );
        assert!(found[0] > 1_000.0 && found[1] == 0.0, "{found:?}");
        check(
            db,
            "select group#, sequence#, members, archived, status,
                    decode(first_time, null, '-', to_char(first_time, 'DD-MON-YYYY HH24')) first_time
               from v$log where status in ('CURRENT', 'ACTIVE') order by first_change#",
            "2|2|1|NO|CURRENT|01-JAN-1970 01",
        );
    });
}

#[test]
fn the_time_model_in_seconds() {
    worked(|db| {
        let query = "select stat_name, round(value / 1000000, 2) seconds from v$sys_time_model
              where stat_name in ('DB time', 'DB CPU') order by value desc";
        assert!(rows(db, query).starts_with("DB time|"), "{}", rows(db, query));
        let share = numbers(
            db,
            "select round(cpu.value * 100 / time.value, 2) from
                (select value from v$sys_time_model where stat_name = 'DB CPU') cpu,
                (select value from v$sys_time_model where stat_name = 'DB time') time",
        );
        assert!(share[0] > 0.0 && share[0] < 100.0, "{share:?}");
        // What is left of the time when the waits are taken away.
        let waited = "select (select value from v$sys_time_model where stat_name = 'DB time')
               - (select value from v$sys_time_model where stat_id = 2748282437) > 0 from dual";
        check(db, waited, "1");
    });
}
