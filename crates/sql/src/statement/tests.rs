//! What is understood, and what is said about what is not.

use super::*;
use crate::column::Kind;
use engine::parameter::Scope;

fn check(text: &str, expected: Statement) {
    assert_eq!(parse(text), Ok(expected), "{text}");
}

fn refused(text: &str, offset: usize, words: &str) {
    let error = parse(text).expect_err(text);
    assert!(error.text.contains(words), "{text}: {error}");
    assert_eq!(error.offset, Some(offset), "{text}: {error}");
}

fn table(text: &str) -> CreateTable {
    match parse(text).expect(text) {
        Statement::CreateTable(table) => table,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn what_is_sqlites_passes() {
    check("select 1", Statement::Query);
    check("with a as (select 1) select * from a", Statement::Query);
    check("with a as (select 1) delete from t", Statement::Change);
    check("update t set a = 1", Statement::Change);
    check("insert into t values (1)", Statement::Change);
    check("insert into t select * from u", Statement::Change);
    check("explain query plan select 1", Statement::Other);
    check("-- nothing", Statement::Nothing("an empty statement"));
}

#[test]
fn a_table_that_feeds_itself() {
    check("INSERT INTO T SELECT * FROM T", Statement::ChangeFromSelf { table: "T".into() });
    check(
        "insert into sys.t select a from u where a in (select b from \"T\")",
        Statement::ChangeFromSelf { table: "t".into() },
    );
}

#[test]
fn tables_in_oracles_words() {
    let t = table(
        "CREATE TABLE scott.orders (id NUMBER(10) CONSTRAINT orders_pk PRIMARY KEY, name VARCHAR2(100 CHAR) NOT NULL,
         at DATE, price NUMBER, UNIQUE (name, at)) PCTFREE 10 TABLESPACE users
         STORAGE (INITIAL 64K BUFFER_POOL KEEP FLASH_CACHE NONE) NOLOGGING",
    );
    let caching = Caching { pool: Some(Pool::Keep), flash: Some(FlashUse::None) };
    assert_eq!((t.name.as_str(), t.tablespace.as_deref(), t.caching), ("orders", Some("users"), caching));
    let columns: Vec<_> =
        t.columns.iter().map(|c| (c.declared.as_str(), c.kind.map(|k| k.kind), c.not_null)).collect();
    assert_eq!(
        columns,
        [
            ("NUMBER(10)", Some(Kind::Integer), true),
            ("VARCHAR2(100 CHAR)", Some(Kind::Text), true),
            ("DATE", Some(Kind::Text), false),
            ("NUMBER", Some(Kind::Number), false),
        ]
    );
    assert_eq!(
        t.unique,
        [
            UniqueKey { name: Some("orders_pk".into()), columns: vec!["id".into()], primary: true },
            UniqueKey { name: None, columns: vec!["name".into(), "at".into()], primary: false },
        ]
    );
}

#[test]
fn a_table_as_a_query() {
    let text = "CREATE TABLE T AS SELECT * FROM DBA_SOURCE";
    let t = table(text);
    assert_eq!(&text[t.query.expect("a query")], "SELECT * FROM DBA_SOURCE");
    let t = table("create table if not exists t (a, b) as select 1, 2");
    assert_eq!((t.if_not_exists, t.columns.len()), (true, 2));
}

#[test]
fn what_a_table_cannot_have_is_refused() {
    refused("create table t (a int default 1)", 22, "no default values");
    refused("create table t (a int check (a > 0))", 22, "CHECK");
    refused("create table t (a int references u)", 22, "foreign keys");
    refused("create table t (a xmltype)", 18, "xmltype is no type");
    refused("create table t (a)", 15, "every column needs a type");
    refused("create table t (a int) as select 1", 15, "AS SELECT gives the types");
    refused("create table t", 14, "the statement ends here");
    refused("create table t (a int, primary key (b))", 35, "no column b");
    refused("create view v as select 1", 7, "expected TABLE");
    refused("create tabel t (a int)", 7, "found tabel");
    refused("drop table t now", 13, "should end before now");
    refused("create index i on t (a desc)", 23, "leave DESC out");
}

#[test]
fn indexes_and_the_rest() {
    check(
        "create unique index sys.i on t (a, b asc) tablespace u",
        Statement::CreateIndex(CreateIndex {
            name: "i".into(),
            if_not_exists: false,
            table: "t".into(),
            columns: vec!["a".into(), "b".into()],
            unique: true,
            tablespace: Some("u".into()),
        }),
    );
    check("drop table t purge", Statement::DropTable { name: "t".into(), if_exists: false });
    check("drop index if exists i", Statement::DropIndex { name: "i".into(), if_exists: true });
    check("truncate table t reuse storage", Statement::Truncate { name: "t".into() });
    check(
        "alter table t storage (buffer_pool recycle)",
        Statement::AlterTable {
            name: "t".into(),
            caching: Caching { pool: Some(Pool::Recycle), flash: None },
        },
    );
}

#[test]
fn the_system() {
    check("alter system flush flash_cache", Statement::AlterSystem(AlterSystem::FlushFlashCache));
    check("alter system flush buffer_cache", Statement::AlterSystem(AlterSystem::FlushBufferCache));
    check("ALTER SYSTEM SWITCH LOGFILE", Statement::AlterSystem(AlterSystem::SwitchLogfile));
    check("alter system checkpoint", Statement::AlterSystem(AlterSystem::Checkpoint));
    let set = |name: &str, value: &str, scope| {
        Statement::AlterSystem(AlterSystem::Set { name: name.into(), value: value.into(), scope })
    };
    check(
        "alter system set undo_tablespace = undo2 scope = both",
        set("undo_tablespace", "undo2", Some(Scope::Both)),
    );
    check("alter system set a='x y' scope=spfile", set("a", "x y", Some(Scope::Spfile)));
    check("alter system set a = -1", set("a", "-1", None));
    refused("alter system set a = ", 20, "a value");
}

#[test]
fn the_articles_way_to_empty_the_cache() {
    let flush = Statement::AlterSystem(AlterSystem::FlushBufferCache);
    check("ALTER SESSION SET EVENTS = ‘IMMEDIATE TRACE NAME FLUSH_CACHE’", flush.clone());
    check("alter session set events 'immediate trace name flush_cache level 1'", flush);
}

#[test]
fn redo_groups() {
    check(
        "alter database add logfile group 4 ('/a/4.log', '/b/4.log') size 100M",
        Statement::AddLogfile {
            group: Some(4),
            members: vec!["/a/4.log".into(), "/b/4.log".into()],
            bytes: Some(100 << 20),
        },
    );
    check(
        "alter database add logfile size 1 g",
        Statement::AddLogfile { group: None, members: vec![], bytes: Some(1 << 30) },
    );
    check("alter database drop logfile group 1", Statement::DropLogfile { group: 1 });
    refused("alter database drop logfile", 27, "GROUP");
    refused("alter database add logfile group 0", 27, "from 1");
    refused("alter database add logfile group 4 size 100X", 40, "100X");
    refused("alter database add logfile '/a' size 9m reuse", 40, "not overwritten");
}

#[test]
fn tablespaces() {
    let file = |path: &str, bytes, autoextend, bytes_max: Option<u64>| DataFile {
        path: Some(path.into()),
        bytes,
        autoextend,
        bytes_next: bytes_max.map(|_| 1 << 20),
        bytes_max,
    };
    check(
        "create undo tablespace undo2 datafile '/ssd/u.dbf' size 1G",
        Statement::CreateTablespace {
            name: "undo2".into(),
            kind: TablespaceKind::Undo,
            files: vec![file("/ssd/u.dbf", Some(1 << 30), None, None)],
        },
    );
    let text = "create tablespace d datafile '/a' size 8k autoextend on next 1m maxsize 2m, '/b'
                extent management local uniform size 1M segment space management auto";
    check(
        text,
        Statement::CreateTablespace {
            name: "d".into(),
            kind: TablespaceKind::Permanent,
            files: vec![file("/a", Some(8192), Some(true), Some(2 << 20)), file("/b", None, None, None)],
        },
    );
    check(
        "alter tablespace d add datafile '/c' size 1m autoextend off",
        Statement::AddDatafile {
            tablespace: "d".into(),
            files: vec![file("/c", Some(1 << 20), Some(false), None)],
        },
    );
    check(
        "drop tablespace d including contents and datafiles",
        Statement::DropTablespace { name: "d".into(), including_contents: true, and_datafiles: true },
    );
}

#[test]
fn transactions() {
    check("commit work", Statement::Commit { batch: None, wait: None });
    check("COMMIT WRITE BATCH NOWAIT", Statement::Commit { batch: Some(true), wait: Some(false) });
    check("rollback", Statement::Rollback { to: None });
    check("rollback work to savepoint a", Statement::Rollback { to: Some("a".into()) });
    check("savepoint a", Statement::Savepoint { name: "a".into() });
}
