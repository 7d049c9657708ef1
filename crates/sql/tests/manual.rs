//! docs/sql.md is true: its examples run, and its list of views is the one that there is.

mod support;

use sql::script::{self, PieceKind};
use std::collections::BTreeSet;
use support::database;

fn manual() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sql.md");
    std::fs::read_to_string(path).expect("docs/sql.md")
}

/// The examples of SQL: those that run, or those that are refused.
fn examples(manual: &str, refused: bool) -> Vec<&str> {
    let examples = manual.split("```sql\n").skip(1).map(|rest| rest.split("\n```").next().unwrap_or(rest));
    examples.filter(|example| example.starts_with("-- refused") == refused).collect()
}

#[test]
fn its_examples_run() {
    let manual = manual();
    let mut done = 0;
    for example in examples(&manual, false) {
        let mut db = database();
        db.set_source_lines(200);
        let script = script::split(example);
        assert_eq!(script.open, None, "each statement ends:\n{example}");
        for piece in script.pieces.iter().filter(|piece| piece.kind == PieceKind::Statement) {
            db.done(piece.text).unwrap_or_else(|error| panic!("{}", error.with_caret(piece.text)));
            done += 1;
        }
    }
    assert!(done >= 25, "{done} statements are few");
}

#[test]
fn what_it_says_is_refused_is_refused() {
    let manual = manual();
    let refused = examples(&manual, true);
    assert!(!refused.is_empty(), "there are some");
    for line in refused.iter().flat_map(|example| example.lines().skip(1)) {
        let mut db = database();
        db.done("create table t (id number primary key, name varchar2(20))").expect("t");
        db.done("insert into t values (1, 'one'), (2, 'two')").expect("two rows");
        assert!(db.done(line.trim_end_matches(';')).is_err(), "{line}");
    }
}

#[test]
fn it_lists_all_views() {
    let manual = manual();
    let (_, rest) = manual.split_once("## Views").expect("a chapter");
    let listed: Vec<_> =
        rest.lines().filter(|line| line.starts_with("`dba_") || line.starts_with("`v$")).take(5).collect();
    let listed: BTreeSet<_> =
        listed.iter().flat_map(|line| line.split('`')).filter(|name| !name.trim().is_empty()).collect();
    let there: BTreeSet<_> = sql::view::VIEWS.iter().map(|view| view.name).collect();
    let missing: Vec<_> = there.difference(&listed).collect();
    assert!(missing.is_empty(), "docs/sql.md lacks {missing:?}");
}
