//! A run's record, asked with the queries that DBAs know.

use record::{
    AshRow, DnfsChannelRow, DnfsFileRow, DnfsServerRow, DnfsStatRow, EstimateRow, Experiment, FileStatRow,
    PhaseRow, StatisticRow, VisitRow, WaitEventRow, Writer,
};
use sql::RunRecord;
use std::path::Path;

/// A short run: two seconds of one visit.
fn write(path: &Path) {
    let experiment = Experiment {
        kind: "calibrate".into(),
        started_utc: "2026-11-21T09:00:00Z".into(),
        ..Experiment::default()
    };
    let mut writer = Writer::create(path, &experiment).expect("a record");
    let workload_id = writer.workload("commit", &record::json::json!({})).expect("a workload");
    let visit =
        VisitRow { started_utc: "2026-11-21T09:10:00Z".into(), start_ns: 1_000, ..VisitRow::default() };
    let visit_id = writer.visit(&visit).expect("a visit");
    let phase = PhaseRow { visit_id, workload_id, kind: "measure".into(), ..PhaseRow::default() };
    let phase = writer.phase(&phase).expect("a phase");
    let wait = |foreground, event: &str, waits, histogram: [u64; 4]| WaitEventRow {
        foreground,
        event: event.into(),
        wait_class: "Commit".into(),
        waits: Some(waits),
        time_ns: waits * 2_000_000,
        histogram_micro: histogram.to_vec(),
        ..WaitEventRow::default()
    };
    let waits = [
        wait(true, "log file sync", 10, [0, 0, 4, 6]),
        wait(true, "log file sync: queue", 10, [0, 0, 4, 6]),
        wait(false, "log file parallel write", 5, [0, 5, 0, 0]),
    ];
    writer.of_phase(phase, &waits).expect("waits");
    let statistic = StatisticRow { class: "system".into(), name: "user commits".into(), value: 10.0 };
    writer.of_phase(phase, &[statistic]).expect("statistics");
    let file = FileStatRow {
        file_no: 4,
        path: "/u01/users01.dbf".into(),
        small_reads: 100,
        small_read_ns: 5_000_000,
        ..FileStatRow::default()
    };
    writer.of_phase(phase, &[file]).expect("files");
    let sample = |second: u64, event: Option<&str>| AshRow {
        t_ns: 1_000 + second * 1_000_000_000,
        weight_ns: 1_000_000_000,
        session: 7,
        foreground: true,
        program: "commit 1".into(),
        event: event.map(Into::into),
        wait_class: if event.is_some() { "Commit" } else { "CPU" }.into(),
        ..AshRow::default()
    };
    let samples = [sample(0, None), sample(1, Some("log file sync"))];
    writer.of_visit(visit_id, &samples).expect("samples");
    writer.end_visit(visit_id, "measured", None).expect("its end");
    let figure = |metric: &str, value, latency| EstimateRow {
        metric: metric.into(),
        value,
        latency_ns: latency,
        ..EstimateRow::default()
    };
    writer.estimate(&figure("read_iops_max", 12_345.6, Some(812_345.0))).expect("a figure");
    dnfs(&writer);
    writer.finish("finished").expect("the end");
}

/// An export by two channels, one of which is gone.
fn dnfs(writer: &Writer) {
    let mut beside = writer.beside().expect("another connection");
    let server = DnfsServerRow {
        server: "filer".into(),
        export: "/vol/data".into(),
        port: 2049,
        version: "pNFS".into(),
        read_max: 1 << 20,
        ..DnfsServerRow::default()
    };
    beside.add(&[server]).expect("a server");
    let channel = |channel, reads: u64, data_server| DnfsChannelRow {
        channel,
        worker: 1,
        address: format!("192.0.2.{}:2049", channel + 1),
        local_port: Some(700 + channel),
        data_server,
        state: "UP".into(),
        reads,
        reads_done: reads,
        read_bytes: reads * 8192,
        read_ns: reads * 355_000,
        ..DnfsChannelRow::default()
    };
    let rows = [channel(0, 1, false), channel(1, 500, true), channel(1, 1000, true)];
    beside.add(&rows).expect("channels");
    let file =
        DnfsFileRow { path: "users01.dbf".into(), bytes: Some(8192), moves: 1, ..DnfsFileRow::default() };
    beside.add(&[file]).expect("a file");
    let calls =
        |operation: &str, calls| DnfsStatRow { operation: operation.into(), calls, ..DnfsStatRow::default() };
    beside.add(&[calls("READ", 7), calls("READ", 1001), calls("LAYOUTGET", 2)]).expect("calls");
}

fn check(db: &mut RunRecord, query: &str, expected: &str) {
    let kept = db.query(query).unwrap_or_else(|error| panic!("{query}\n{}", error.with_caret(query)));
    let cell = |value: &engine::Value| match value {
        engine::Value::Null => String::new(),
        engine::Value::Integer(number) => number.to_string(),
        engine::Value::Real(number) => number.to_string(),
        engine::Value::Text(text) => text.clone(),
        engine::Value::Blob(bytes) => format!("{} bytes", bytes.len()),
    };
    let lines: Vec<_> =
        kept.rows.iter().map(|row| row.iter().map(cell).collect::<Vec<_>>().join("|")).collect();
    assert_eq!(lines.join("\n"), expected, "{query}");
}

#[test]
fn a_run_answers_like_an_instance() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.redoubt");
    write(&path);
    let mut db = RunRecord::open(&path).expect("a record");
    let db = &mut db;
    check(
        db,
        "select nvl(event, 'ON CPU') event, count(*) from v$active_session_history where session_type = 'FOREGROUND' group by nvl(event, 'ON CPU') order by 1",
        "ON CPU|1\nlog file sync|1",
    );
    check(db, "select to_char(max(sample_time), 'HH24:MI:SS') from gv$active_session_history", "09:10:01");
    check(
        db,
        "select event, total_waits, total_waits_fg, time_waited_micro, average_wait from v$system_event order by 2 desc",
        "log file sync|10|10|20000|0.2\nlog file parallel write|5|0|10000|0.2",
    );
    check(
        db,
        "select wait_time_micro, wait_count from v$event_histogram_micro where event = 'log file sync' order by 1",
        "4|4\n8|6",
    );
    check(db, "select value from v$sysstat where name = 'user commits'", "10");
    check(
        db,
        "select file_name, round(small_read_servicetime / small_read_reqs, 3) ms from v$iostat_file",
        "/u01/users01.dbf|0.05",
    );
    check(db, "select max_iops, latency from dba_rsrc_io_calibrate", "12346|0.812");
    check(db, "select status from v$io_calibration_status", "READY");
    check(
        db,
        "select svrname, dirname, nfsport, nfsversion, rtmax from v$dnfs_servers",
        "filer|/vol/data|2049|pNFS|1048576",
    );
    check(
        db,
        "select svrname, path, ch_id, sends, clientport, state, data_server, read_micro_avg from v$dnfs_channels order by ch_id",
        "filer|192.0.2.1:2049|0|1|700|UP|NO|355\nfiler|192.0.2.2:2049|1|1000|701|UP|YES|355",
    );
    check(db, "select filename, filesize, moves from v$dnfs_files", "users01.dbf|8192|1");
    check(
        db,
        "select nfs_read, nfs_write, nfs_layoutget, nfs_readbytes from v$dnfs_stats",
        "1001|0|2|8200192",
    );
    check(db, "select kind from experiment where sysdate > '2026'", "calibrate");
    check(db, "select count(*) from phase", "1");
    let names = db.names().expect("names");
    assert!(
        names.iter().any(|(name, columns)| name == "v$sysstat" && columns == &["NAME", "VALUE"]),
        "{names:?}"
    );
}

#[test]
fn evidence_is_only_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.redoubt");
    write(&path);
    let before = std::fs::read(&path).expect("the file");
    let mut db = RunRecord::open(&path).expect("a record");
    for text in [
        "delete from ash",
        "insert into ash select * from ash",
        "create table t (a int)",
        "drop table ash",
        "alter system checkpoint",
        "pragma query_only = 0",
        "attach 'x' as y",
        "vacuum into 'x'",
        "with x as (select 1) delete from ash",
        "explain delete from ash; delete from ash",
    ] {
        let error = db.query(text).expect_err(text).to_string();
        assert!(!error.is_empty(), "{text}");
    }
    drop(db);
    assert_eq!(std::fs::read(&path).expect("the file"), before);
    assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 1);
    std::fs::write(folder.path().join("other"), "no record").expect("a file");
    assert!(RunRecord::open(&folder.path().join("other")).is_err());
}
