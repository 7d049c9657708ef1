//! The shell: a database made, asked, stopped and asked again; scripts; the record of a run.

use crate::stage::Stage;
use std::io::Write;
use std::process::Stdio;

#[test]
fn a_database_is_made_and_keeps_what_was_committed() {
    let stage = Stage::new();
    let made = stage.run(&[
        "sql",
        "db",
        "--create",
        "--data",
        "1m",
        "--redo",
        "4m",
        "--set",
        "db_cache_size=16m",
        "-c",
        "create table t (id number primary key, name varchar2(20)); insert into t values (1, 'one'), (2, 'two')",
    ]);
    let made = made.ok();
    assert!(made.stdout.contains("Table created.\n2 rows inserted.\n"), "{}", made.stdout);
    assert!(made.stderr.contains("Making a database"), "{}", made.stderr);
    let asked = stage.run(&["sql", "db", "-c", "select * from t order by id; show parameter db_cache_size"]);
    assert_eq!(
        asked.ok().stdout,
        "ID  NAME\n--  ----\n 1  one\n 2  two\n2 rows selected.\n\
         NAME           TYPE         VALUE\n-------------  -----------  ------\ndb_cache_size  big integer  16 MiB\n"
            .replace("ID  NAME", "id  name")
            .replace("NAME           TYPE         VALUE", "NAME           type         value")
    );
    // Everything of the database is in its directory; the user's own file is as it was.
    std::fs::remove_dir_all(stage.directory.join("db")).expect("the database");
    stage.assert_untouched();
}

#[test]
fn nothing_is_overwritten_or_taken_for_a_database() {
    let stage = Stage::new();
    stage.run(&["sql", ".", "--create"]).refused(&["not empty"]);
    stage.run(&["sql", ".", "-c", "select 1"]).refused(&["no database", "--create"]);
    stage.run(&["sql", "nothing", "-c", "select 1"]).refused(&["--create"]);
    stage.run(&["sql", "db", "--create", "--set", "db_cash_size=16m"]).refused(&["db_cache_size"]);
    stage.run(&["sql", "db", "--create", "--set", "db_cache_size"]).refused(&["NAME=VALUE"]);
    let _ = std::fs::remove_dir(stage.directory.join("db"));
    stage.assert_untouched();
}

#[test]
fn a_script_runs_as_in_sqlplus() {
    let stage = Stage::new();
    let script = "\
SET TIMING OFF
SET FEEDBACK OFF
PROMPT five rounds follow
CREATE TABLE T AS SELECT * FROM DBA_SOURCE WHERE ROWNUM <= 1000;
INSERT INTO T SELECT * FROM T;
COMMIT;
SPOOL out.txt
SELECT COUNT(*) FROM T
/
SPOOL OFF
drop table nobody;
SHUTDOWN ABORT
select 1;
STARTUP
SELECT COUNT(*) N FROM T;
INSERT INTO T SELECT * FROM T;
EXIT 0 ROLLBACK
select 'not reached';
";
    std::fs::write(stage.folder().join("growth.sql"), script).expect("a script");
    let path = stage.folder().join("growth.sql");
    let path = path.to_str().expect("a path");
    let done = stage.run(&["sql", "db", path, "--create", "--redo", "4m"]).ok();
    assert_eq!(
        done.stdout,
        "five rounds follow\nCOUNT(*)\n--------\n    2000\nDatabase shut down.\nDatabase opened.\n   N\n----\n2000\n"
    );
    for words in ["table nobody does not exist", "type STARTUP"] {
        assert!(done.stderr.contains(words), "{}", done.stderr);
    }
    let spooled = std::fs::read_to_string(stage.directory.join("out.txt")).expect("the spool");
    assert_eq!(spooled, "COUNT(*)\n--------\n    2000\n");
    // Rolled back at the end; a spool is not overwritten; errors end a script that says so.
    let script = "WHENEVER SQLERROR EXIT 3\nSELECT COUNT(*) FROM T;\nSPOOL out.txt\nSELECT 1;\n";
    let mut child = stage.command(&["sql", "db"]);
    let child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().expect("start redoubt");
    child.stdin.take().expect("a pipe").write_all(script.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!((output.status.code(), out.lines().nth(2)), (Some(3), Some("    2000")), "{out}{err}");
    assert!(err.contains("not overwritten") && !out.contains("\n1\n"), "{out}{err}");
}

#[test]
fn wrong_statements_are_shown_and_counted() {
    let stage = Stage::new();
    let done = stage.run(&[
        "sql",
        "db",
        "--create",
        "--redo",
        "4m",
        "-c",
        "select 1;\n\tselect salary from t",
        "-c",
        "select 2 as two",
    ]);
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert!(
        done.stderr
            .contains("line 1: table t does not exist\n  select salary from t\n                     ^"),
        "{}",
        done.stderr
    );
    assert!(done.stdout.contains("two\n---\n  2\n"), "{}", done.stdout);
}

#[test]
fn help_teaches() {
    let stage = Stage::new();
    let help = stage.run(&["sql", "--help"]).ok().stdout;
    assert!(help.contains("Examples:") && help.contains("--create"), "{help}");
}
