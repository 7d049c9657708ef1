//! Statements that go to the engine without SQLite: counting a table, and copying one into another, or into itself.
//!
//! SQLite would walk over every row to do no more than the engine does by itself. Pure: text in, a description out. What is
//! not surely one of these is none.

use crate::statement::Cursor;
use crate::token::{Kind, Token};

/// A statement that the engine does alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Direct {
    /// `SELECT COUNT(*) FROM t`.
    Count {
        /// The table.
        table: String,
        /// The result column's name.
        label: String,
    },
    /// `INSERT INTO t SELECT … FROM u`.
    Copy {
        /// The table that is filled.
        target: String,
        /// What it is filled from.
        source: Source,
    },
}

/// `SELECT * FROM t`, `SELECT a, b FROM t`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The table.
    pub table: String,
    /// Its columns; none is all of them.
    pub columns: Option<Vec<String>>,
}

/// What `tokens`, a whole statement, is.
pub fn recognise(text: &str, tokens: &[Token<'_>]) -> Option<Direct> {
    let mut cursor = Cursor::new(text, tokens);
    if cursor.eat(&["INSERT", "INTO"]) {
        let target = cursor.name("").ok()?;
        return Some(Direct::Copy { target, source: source_at(&mut cursor)? });
    }
    if !cursor.eat(&["SELECT"]) {
        return None;
    }
    let start = cursor.offset();
    if !(cursor.eat(&["COUNT"]) && cursor.eat_sign("(")) {
        return None;
    }
    // COUNT(1) is what people write who have heard that it is faster. It is the same.
    if !cursor.eat_sign("*") && cursor.integer("").is_err() {
        return None;
    }
    if !cursor.eat_sign(")") {
        return None;
    }
    let mut label = cursor.text_from(start).to_owned();
    if cursor.eat(&["AS"]) || cursor.peek().is_some_and(|token| !token.is("FROM")) {
        label = plain_name(&mut cursor)?;
    }
    Some(Direct::Count { table: from(&mut cursor)?, label })
}

/// What `SELECT …` reads, when it reads one table and nothing else.
pub fn source(text: &str, tokens: &[Token<'_>]) -> Option<Source> {
    source_at(&mut Cursor::new(text, tokens))
}

fn source_at(cursor: &mut Cursor<'_>) -> Option<Source> {
    if !cursor.eat(&["SELECT"]) {
        return None;
    }
    let mut columns = None;
    if !cursor.eat_sign("*") {
        let names: &mut Vec<_> = columns.insert(vec![plain_name(cursor)?]);
        while cursor.eat_sign(",") {
            names.push(plain_name(cursor)?);
        }
    }
    Some(Source { table: from(cursor)?, columns })
}

/// `FROM t` and, perhaps, an alias, at the end.
fn from(cursor: &mut Cursor<'_>) -> Option<String> {
    if !cursor.eat(&["FROM"]) {
        return None;
    }
    let table = cursor.name("").ok()?;
    if cursor.peek().is_some() {
        plain_name(cursor)?;
    }
    cursor.end().is_ok().then_some(table)
}

/// A name without an owner or table before it.
fn plain_name(cursor: &mut Cursor<'_>) -> Option<String> {
    let token = cursor.next()?;
    // These would be a name only in quotes.
    let reserved = [
        "DISTINCT",
        "ALL",
        "UNIQUE",
        "FROM",
        "WHERE",
        "ROWNUM",
        "SYSDATE",
        "SYSTIMESTAMP",
        "NULL",
        "CASE",
        "ROWID",
    ];
    match token.kind {
        Kind::Quoted => {}
        Kind::Word if !reserved.iter().any(|word| token.is(word)) => {}
        _ => return None,
    }
    (!cursor.peek().is_some_and(|next| next.is_sign(".") || next.is_sign("("))).then(|| token.unquoted())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::tokens;

    fn found(text: &str) -> Option<Direct> {
        recognise(text, &tokens(text).expect(text))
    }

    fn count(text: &str, label: &str) {
        let expected = Direct::Count { table: "t".into(), label: label.into() };
        assert_eq!(found(text), Some(expected), "{text}");
    }

    fn copy(text: &str, table: &str, columns: Option<&[&str]>) {
        let columns = columns.map(|names| names.iter().map(|&name| name.into()).collect());
        let source = Source { table: table.into(), columns };
        assert_eq!(found(text), Some(Direct::Copy { target: "t".into(), source }), "{text}");
    }

    #[test]
    fn counting_a_whole_table() {
        count("select count(*) from sys.t", "count(*)");
        count("SELECT COUNT(1) n FROM t x", "n");
        count("select /*+ full(t) */ count ( * ) as \"a b\" from t", "a b");
    }

    #[test]
    fn copying_a_whole_table() {
        copy("insert into t select * from t", "t", None);
        copy("INSERT /*+ APPEND */ INTO t SELECT a, \"from\" FROM u x", "u", Some(&["a", "from"]));
    }

    #[test]
    fn everything_else_is_for_sqlite() {
        for text in [
            "select count(*) from t where a = 1",
            "select count(a) from t",
            "select count(*), 1 from t",
            "select count(*) + 1 from t",
            "select count(*) from t, u",
            "select count(*) from t group by a",
            "select count(*) over () from t",
            "select count(*) from (select 1)",
            "insert into t values (1)",
            "insert into t (a) select * from u",
            "insert into t select distinct * from u",
            "insert into t select distinct a from u",
            "insert into t select a + 1 from u",
            "insert into t select rowid from u",
            "insert into t select u.a from u",
            "insert into t select a b from u",
            "insert into t select a from u where b",
            "insert into t select a from u, v",
            "insert into t select nvl(a) from u",
            "insert or ignore into t select * from u",
            "insert into t",
            "",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
