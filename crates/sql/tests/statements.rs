//! Statements, done on a database and asked about.

mod support;

use engine::Value;
use sql::{Connection, Kept, Outcome};
use support::{Database, changes, check, database, refused, run};

fn with_table() -> Database {
    let mut db = database();
    run(
        &mut db,
        &[
            "CREATE TABLE emp (id NUMBER(10) PRIMARY KEY, name VARCHAR2(20) NOT NULL, dept VARCHAR2(10), pay NUMBER, hired DATE)",
            "INSERT INTO emp VALUES (1, 'Ada', 'IT', 100.5, DATE '2026-01-01'), (2, 'Bob', 'IT', 80, '2026-02-01')",
            "INSERT INTO emp (name, id) VALUES ('Cid', 3)",
            "CREATE INDEX emp_dept ON emp (dept, pay)",
            "COMMIT",
        ],
    );
    db
}

#[test]
fn rows_come_back() {
    let mut db = with_table();
    check(&mut db, "select * from emp", "1|Ada|IT|100.5|2026-01-01\n2|Bob|IT|80|2026-02-01\n3|Cid|||");
    check(&mut db, "SELECT COUNT(*) FROM SYS.EMP", "3");
    check(&mut db, "select name from emp where id = 2", "Bob");
    check(&mut db, "select name from emp where id = '2'", "Bob");
    check(&mut db, "select name from emp where dept = 'IT' order by pay", "Bob\nAda");
    check(&mut db, "select name from emp where dept = 'IT' order by pay desc", "Ada\nBob");
    check(
        &mut db,
        "select name from emp where dept > 'A' and pay is not null order by dept, pay",
        "Bob\nAda",
    );
    check(&mut db, "select name from emp where pay between 80 and 100.5 order by 1", "Ada\nBob");
    check(
        &mut db,
        "select dept, count(*), sum(pay) from emp group by dept order by dept nulls last",
        "IT|2|180.5\n|1|",
    );
    check(
        &mut db,
        "select a.name, b.name from emp a join emp b on a.id = b.id + 1 order by a.id",
        "Bob|Ada\nCid|Bob",
    );
    check(&mut db, "select name from emp where id in (3, 1) order by id desc", "Cid\nAda");
    check(&mut db, "select name from emp where rowid = (select max(rowid) from emp)", "Cid");
    check(&mut db, "select min(id), max(id) from emp where id > 1", "2|3");
    check(&mut db, "select name from emp where id > 5", "");
    check(&mut db, "select name from emp where id = null", "");
}

#[test]
fn texts_and_numbers_compare_as_sqlite_compares_them() {
    let mut db = database();
    run(
        &mut db,
        &[
            "create table s (v varchar2(10), n number)",
            "create index s_v on s (v, n)",
            "create table k (n number)",
            "insert into s values ('5', 3), ('05', 1), ('a', 2), (null, 0)",
            "insert into k values (5)",
        ],
    );
    check(&mut db, "select n from s where v = 5", "3");
    check(&mut db, "select s.n from k cross join s on s.v = k.n order by s.n", "1\n3");
    check(&mut db, "select n from s where v >= '5' order by v", "3\n2");
    check(&mut db, "select count(*) from s where v > ''", "3");
}

#[test]
fn headings_are_as_typed() {
    let mut db = database();
    let kept = db.query("select 10/4, 1 as one from dual").expect("a row");
    assert_eq!(kept.columns, ["10/4", "one"]);
}

#[test]
fn changes_are_made_and_counted() {
    let mut db = with_table();
    changes(&mut db, "update emp set pay = pay * 2, dept = lower(dept) where dept = 'IT'", "updated", 2);
    check(&mut db, "select id, dept, pay from emp where dept = 'it' order by id", "1|it|201\n2|it|160");
    changes(&mut db, "delete from emp where id = 1", "deleted", 1);
    changes(&mut db, "delete from emp where id = 1", "deleted", 0);
    changes(&mut db, "update emp set id = id + 10", "updated", 2);
    check(&mut db, "select id from emp order by id", "12\n13");
    changes(&mut db, "insert into emp select id + 1000, name, dept, pay, hired from emp", "inserted", 2);
    check(&mut db, "select count(*) from emp", "4");
    changes(&mut db, "insert into emp (id, name) select max(id) + 1, 'x' from emp", "inserted", 1);
    check(&mut db, "select id from emp where name = 'x'", "1014");
}

#[test]
fn unique_keys_may_move_through_each_other() {
    let mut db = database();
    run(&mut db, &["create table t (id number primary key, n number)"]);
    run(&mut db, &["insert into t select line, line from dba_source where rownum <= 300", "commit"]);
    changes(&mut db, "update t set id = id + 1", "updated", 300);
    changes(&mut db, "update t set id = id - 1", "updated", 300);
    changes(&mut db, "update t set id = id + 150 where id <= 150 or id > 150", "updated", 300);
    check(&mut db, "select min(id), max(id), count(distinct id), sum(id - n) from t", "151|450|300|45000");
    refused(&mut db, "update t set id = 7 where id < 160", "t_pk");
    check(&mut db, "select count(*) from t where id = 7", "0");
    check(&mut db, "select n from t where id = 200", "50");
}

#[test]
fn a_table_is_filled_from_itself() {
    let mut db = database();
    run(&mut db, &["create table t (a number, b varchar2(10))", "insert into t values (1, 'x'), (2, 'y')"]);
    changes(&mut db, "INSERT INTO T SELECT * FROM T", "inserted", 2);
    changes(&mut db, "insert into t select a, b from t", "inserted", 4);
    changes(&mut db, "insert into t select * from t where a = 1", "inserted", 4);
    changes(&mut db, "insert into t select * from t order by a", "inserted", 12);
    check(&mut db, "select a, count(*) from t group by a order by a", "1|16\n2|8");
}

#[test]
fn what_fails_is_taken_back_and_the_rest_stays() {
    let mut db = with_table();
    changes(&mut db, "insert into emp (id, name) values (4, 'Dot')", "inserted", 1);
    refused(&mut db, "insert into emp (id, name) values (5, 'Eve'), (1, 'Fay')", "emp_pk");
    refused(
        &mut db,
        "insert into emp (id, name) values (6, 'a name of more than twenty letters')",
        "column emp.name: too long: 34, at most 20",
    );
    refused(&mut db, "insert into emp (id, name) values ('x', 'Gus')", "column emp.id: 'x' is no number");
    check(&mut db, "select count(*) from emp", "4");
    assert!(db.in_transaction());
    run(&mut db, &["rollback"]);
    check(&mut db, "select count(*) from emp", "3");
    assert!(!db.in_transaction());
}

#[test]
fn savepoints() {
    let mut db = with_table();
    run(&mut db, &["savepoint a", "delete from emp where id = 1", "savepoint b", "delete from emp"]);
    run(&mut db, &["rollback to savepoint B"]);
    check(&mut db, "select count(*) from emp", "2");
    run(&mut db, &["rollback to a", "rollback to a"]);
    check(&mut db, "select count(*) from emp", "3");
    refused(&mut db, "rollback to b", "no savepoint b");
    run(&mut db, &["commit"]);
    refused(&mut db, "rollback to a", "no savepoint a");
}

#[test]
fn tables_from_queries() {
    let mut db = with_table();
    run(&mut db, &["create table copy as select * from emp"]);
    check(&mut db, "select * from copy where id = 1", "1|Ada|IT|100.5|2026-01-01");
    run(&mut db, &["create table some as select name, hired from emp"]);
    refused(&mut db, "insert into some values ('a name of more than twenty letters', null)", "at most 20");
    run(
        &mut db,
        &[
            "create table sums (d, n, s) as select dept, count(*), sum(pay) from emp group by dept order by dept desc",
        ],
    );
    check(&mut db, "select * from sums order by d desc", "IT|2|180.5\n|1|");
    run(&mut db, &["create table none as select id, 1 as one from emp where id < 0"]);
    check(&mut db, "select count(*) from none", "0");
    refused(&mut db, "create table bad as select id, id from emp", "two columns are called id");
    refused(&mut db, "create table bad as select id + 1 from emp", "give the expression");
    refused(&mut db, "create table bad as select salary from emp", "salary");
    refused(&mut db, "create table bad (a, b) as select id from emp", "2 columns are named");
    refused(&mut db, "create table bad as select id, decode(id, 3, 'x', 1) v from emp", "is no number");
    refused(&mut db, "select * from bad", "table bad");
}

#[test]
fn definitions_change_under_prepared_statements() {
    let mut db = with_table();
    let by_dept = db.prepare("select name from emp where dept = ? order by pay").expect("it can be");
    let ask = |db: &mut Connection| {
        let mut kept = Kept::default();
        db.run(&by_dept, &[Value::Text("IT".into())], &mut kept).map(|_| kept.rows.len())
    };
    assert_eq!(ask(&mut db).expect("rows"), 2);
    run(&mut db, &["drop index emp_dept"]);
    assert_eq!(ask(&mut db).expect("rows"), 2);
    run(&mut db, &["create index emp_pay on emp (pay)", "truncate table emp"]);
    assert_eq!(ask(&mut db).expect("no rows"), 0);
    run(
        &mut db,
        &[
            "drop table emp",
            "create table emp (dept number, name number, pay number)",
            "insert into emp values (1, 2, 3)",
        ],
    );
    assert_eq!(ask(&mut db).expect("no rows"), 0);
    run(&mut db, &["drop table emp"]);
    let error = ask(&mut db).expect_err("it is gone");
    assert!(error.to_string().contains("emp"), "{error}");
}

#[test]
fn wrong_statements_are_shown_where_they_are_wrong() {
    let mut db = with_table();
    refused(
        &mut db,
        "select salary from emp",
        "line 1: no such column: salary\n  select salary from emp\n         ^",
    );
    refused(
        &mut db,
        "select 1 from sys.nobody",
        "line 1: table nobody does not exist\n  select 1 from sys.nobody\n                    ^",
    );
    refused(&mut db, "selct 1", "selct is no statement here");
    refused(&mut db, "merge into emp using emp", "MERGE is not known here");
    refused(&mut db, "insert or ignore into emp (id, name) values (1, 'x')", "OR IGNORE");
    refused(&mut db, "attach 'x.db' as x", "attach is no statement here");
    refused(&mut db, "pragma journal_mode", "pragma is no statement here");
    refused(&mut db, "create table sqlite_x (a int)", "SQLite's own");
    refused(&mut db, "create table v$log (a int)", "view of the instance");
    refused(&mut db, "create table emp (a int)", "exists already");
    refused(
        &mut db,
        "insert into emp (rowid, id, name) values (1, 9, 'x')",
        "a row's address cannot be chosen",
    );
}

#[test]
fn outcomes_say_what_was_done() {
    let mut db = database();
    let mut done = |text: &str| db.done(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(done("create table t (a int)"), Outcome::Done("Table created."));
    assert_eq!(
        done("create table if not exists t (a int)"),
        Outcome::Nothing("there is a table of that name already")
    );
    assert_eq!(done("insert into t values (1)"), Outcome::Changed("inserted", 1));
    assert_eq!(done("select * from t"), Outcome::Rows(1));
    assert_eq!(done("with x as (select 1) select * from x, t"), Outcome::Rows(1));
    assert_eq!(done("commit"), Outcome::Done("Commit complete."));
    assert_eq!(done("drop table if exists nobody"), Outcome::Nothing("there is no such table"));
    assert_eq!(done(""), Outcome::Nothing("an empty statement"));
}

#[test]
fn source_lines_fill_a_table() {
    let mut db = database();
    db.set_source_lines(1_000);
    run(&mut db, &["CREATE TABLE T AS SELECT * FROM DBA_SOURCE"]);
    check(&mut db, "SELECT COUNT(*) FROM T", "1000");
    check(&mut db, "select count(distinct name) from t", "3");
    check(&mut db, "select table_name from user_tables", "T");
}

#[test]
fn plans_are_explained() {
    let mut db = with_table();
    check(&mut db, "explain plan for select * from emp", "TABLE ACCESS FULL EMP");
    check(
        &mut db,
        "EXPLAIN PLAN FOR select a.name from emp a, emp b where a.id = 1 and b.dept = a.dept order by b.pay desc",
        "TABLE ACCESS BY INDEX ROWID EMP, INDEX UNIQUE SCAN EMP_PK\n\
         TABLE ACCESS BY INDEX ROWID EMP, INDEX RANGE SCAN EMP_DEPT\nSORT ORDER BY",
    );
    check(
        &mut db,
        "explain plan for select name from emp where dept = 'IT' and pay > 1 order by pay desc",
        "TABLE ACCESS BY INDEX ROWID EMP, INDEX RANGE SCAN DESCENDING EMP_DEPT",
    );
    check(
        &mut db,
        "explain plan for select * from emp order by name",
        "SORT ORDER BY in temp, TABLE ACCESS FULL EMP",
    );
    check(&mut db, "explain plan for delete from emp where rowid = 5", "TABLE ACCESS BY ROWID EMP");
    check(
        &mut db,
        "explain plan for select distinct status from v$log",
        "FIXED TABLE FULL V$LOG\nSORT UNIQUE",
    );
    check(&mut db, "select count(*) from emp", "3");
    refused(&mut db, "explain plan for create table t (a int)", "only queries");
    refused(&mut db, "explain plan for select salary from emp", "^");
}

#[test]
fn large_results_are_sorted_in_temp() {
    let mut db = database();
    db.set_source_lines(6_000);
    run(&mut db, &["ALTER SYSTEM SET sort_area_size = 64k", "create table t as select * from dba_source"]);
    let sorted = db.query("select text, line, name from t order by text desc, line").expect("rows").rows;
    let mut expected = db.query("select text, line, name from t").expect("rows").rows;
    let key = |row: &engine::Row| match &row[..] {
        [Value::Text(text), Value::Integer(line), Value::Text(_)] => (std::cmp::Reverse(text.clone()), *line),
        other => panic!("{other:?}"),
    };
    expected.sort_by_key(key);
    let keys: Vec<_> = sorted.iter().map(key).collect();
    assert_eq!(keys, expected.iter().map(key).collect::<Vec<_>>());
    check(&mut db, "select value > 0 from v$sysstat where name = 'sorts (disk)'", "1");
    check(
        &mut db,
        "select a from (select 1 a union all select null union all select 2) order by a",
        "\n1\n2",
    );
    run(&mut db, &["create table n (a number)", "insert into n values (2), (null), (1)"]);
    check(&mut db, "select a from n order by a", "\n1\n2");
    check(&mut db, "select a from n order by a desc", "2\n1\n");
    check(&mut db, "select a from n order by a nulls last", "1\n2\n");
}
