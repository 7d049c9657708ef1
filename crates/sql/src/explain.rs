//! How SQLite goes about a statement, in the words of DBAs: `EXPLAIN PLAN FOR …`.

use crate::outcome::{Cell, Sink};
use crate::plan::Access;
use crate::token::{Kind, Token};
use engine::space::Table;
use std::ops::ControlFlow;

/// Where the statement behind `EXPLAIN [PLAN FOR | QUERY PLAN]` begins; none when the text explains nothing.
pub fn explained(tokens: &[Token<'_>]) -> Option<usize> {
    let mut rest = tokens;
    let mut eat = |word: &str| match rest.split_first() {
        Some((first, behind)) if first.is(word) => {
            rest = behind;
            true
        }
        _ => false,
    };
    if !eat("EXPLAIN") {
        return None;
    }
    eat("QUERY");
    eat("PLAN");
    eat("FOR");
    rest.first().filter(|token| token.kind == Kind::Word).map(|token| token.start)
}

/// How a table is reached, in Oracle's words. It travels in the plan's text.
pub fn words(table: &Table, access: &Access) -> String {
    let name = table.name.to_ascii_uppercase();
    match access {
        Access::Scan => format!("TABLE ACCESS FULL {name}"),
        Access::Sort(_) => format!("SORT ORDER BY in temp, TABLE ACCESS FULL {name}"),
        Access::Row => format!("TABLE ACCESS BY ROWID {name}"),
        Access::Index { index, equal, low, high, descending } => {
            let index = &table.indexes[*index];
            let bounded = low.is_some() || high.is_some();
            let how = match (equal, bounded) {
                (0, false) => "FULL",
                _ if index.unique && *equal == index.columns.len() => "UNIQUE",
                _ => "RANGE",
            };
            let way = if *descending { " DESCENDING" } else { "" };
            let index = index.name.to_ascii_uppercase();
            format!("TABLE ACCESS BY INDEX ROWID {name}, INDEX {how} SCAN{way} {index}")
        }
    }
}

/// Turns SQLite's rows (id, parent, unused, detail) into lines, those below a step moved to the right.
pub struct Lines<'a> {
    sink: &'a mut dyn Sink,
    /// Id and depth of the steps so far.
    steps: Vec<(i64, usize)>,
}

impl<'a> Lines<'a> {
    /// To `sink`.
    pub fn new(sink: &'a mut dyn Sink) -> Self {
        Self { sink, steps: Vec::new() }
    }
}

impl Sink for Lines<'_> {
    fn columns(&mut self, _names: &[String]) {
        self.sink.columns(&["PLAN".to_owned()]);
    }

    fn row(&mut self, row: &[Cell<'_>]) -> ControlFlow<()> {
        let &[Cell::Integer(id), Cell::Integer(parent), _, Cell::Text(detail)] = row else {
            return ControlFlow::Break(());
        };
        let depth = self.steps.iter().find(|(step, _)| *step == parent).map_or(0, |(_, depth)| depth + 1);
        self.steps.push((id, depth));
        self.sink.row(&[Cell::Text(&format!("{}{}", "  ".repeat(depth), step(detail)))])
    }
}

fn step(detail: &str) -> String {
    if let Some((scan, plan)) = detail.split_once(" VIRTUAL TABLE INDEX 0:") {
        let name = scan.split_whitespace().last().unwrap_or_default().to_ascii_uppercase();
        // Ours say it themselves; views say nothing.
        return plan.split('|').nth(3).map_or_else(|| format!("FIXED TABLE FULL {name}"), str::to_owned);
    }
    match detail.strip_prefix("USE TEMP B-TREE FOR ") {
        Some("DISTINCT") => "SORT UNIQUE".into(),
        Some(what) => format!("SORT {what}"),
        None => detail.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::tokens;

    #[test]
    fn the_statement_is_behind_the_words() {
        let check = |text: &str, rest: Option<&str>| {
            assert_eq!(explained(&tokens(text).expect(text)).map(|at| &text[at..]), rest, "{text}");
        };
        check("explain plan for select 1", Some("select 1"));
        check("EXPLAIN QUERY PLAN delete from t", Some("delete from t"));
        check("explain select 1", Some("select 1"));
        check("explain", None);
        check("select 1", None);
    }

    #[test]
    fn steps_in_the_words_of_dbas() {
        assert_eq!(step("SCAN v$log VIRTUAL TABLE INDEX 0:"), "FIXED TABLE FULL V$LOG");
        assert_eq!(step("SCAN x VIRTUAL TABLE INDEX 0:S|1||TABLE ACCESS FULL T"), "TABLE ACCESS FULL T");
        assert_eq!(step("USE TEMP B-TREE FOR ORDER BY"), "SORT ORDER BY");
        assert_eq!(step("MERGE (UNION)"), "MERGE (UNION)");
    }
}
