//! Functions over groups that SQLite spells differently: LISTAGG … WITHIN GROUP, RATIO_TO_REPORT … OVER.

use super::{Edit, is, rewrite};
use crate::SqlError;
use crate::token::Token;

/// `LISTAGG(x, ',') WITHIN GROUP (ORDER BY y)`: SQLite has the order inside of the first parentheses.
pub fn within_group(tokens: &[Token<'_>], at: usize, edits: &mut Vec<Edit>) -> Result<usize, SqlError> {
    let close = at.checked_sub(1).map(|at| &tokens[at]).filter(|t| t.is_sign(")"));
    match (close, tokens.get(at + 2)) {
        (Some(close), Some(open)) if open.is_sign("(") => {
            edits.push(Edit { from: close.start, to: open.end(), text: " ".into() });
            Ok(3)
        }
        _ => Err(SqlError::at(tokens[at].start, "write LISTAGG(x, ',') WITHIN GROUP (ORDER BY y)")),
    }
}

/// `RATIO_TO_REPORT(x) OVER (…)`: x by the sum of all x in its window; NULL where that is 0.
pub fn ratio_to_report(tokens: &[Token<'_>], at: usize, edits: &mut Vec<Edit>) -> Result<usize, SqlError> {
    let wrong = || SqlError::at(tokens[at].start, "write RATIO_TO_REPORT(x) OVER ()");
    let close = closing(tokens, at + 1).ok_or_else(wrong)?;
    if !tokens.get(close + 1).is_some_and(|t| t.is("OVER")) {
        return Err(wrong());
    }
    let end = closing(tokens, close + 2).ok_or_else(wrong)?;
    // The value stands there twice; the second time in its own place, so that an error in it points to it.
    let value: Vec<&str> = tokens[at + 2..close].iter().map(|token| token.text).collect();
    let value = rewrite(&value.join(" "), None).map_err(|_| wrong())?.sql;
    edits.push(Edit { from: tokens[at].start, to: tokens[at].end(), text: format!("(1.0*({value})/sum") });
    edits.push(Edit { from: tokens[end].end(), to: tokens[end].end(), text: ")".into() });
    Ok(1)
}

/// The token that closes the parenthesis at `open`.
fn closing(tokens: &[Token<'_>], open: usize) -> Option<usize> {
    is(tokens, open, "(").then_some(())?;
    let mut depth = 0_u32;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        depth += u32::from(token.is_sign("("));
        depth -= u32::from(token.is_sign(")"));
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(rewrite(text, None).map(|rewritten| rewritten.sql).as_deref(), Ok(expected), "{text}");
    }

    fn refused(text: &str, words: &str) {
        let error = rewrite(text, None).expect_err(text).to_string();
        assert!(error.contains(words), "{text}: {error}");
    }

    #[test]
    fn lists_are_ordered_inside() {
        check(
            "select listagg(a, ',') within group (order by b desc) l from t",
            "select group_concat(a, ',' order by b desc) l from t",
        );
        refused("select listagg(a) within group order by b from t", "WITHIN GROUP (ORDER BY y)");
    }

    #[test]
    fn shares_of_a_whole() {
        check(
            "select ratio_to_report(count(*)) over () * 100 r from t",
            "select (1.0*(count ( * ))/sum(count(*)) over ()) * 100 r from t",
        );
        check(
            "select ratio_to_report(v$t.a/2) over (partition by (b)) from v$t",
            "select (1.0*([v$t] . a *1.0/ 2)/sum([v$t].a*1.0/2) over (partition by (b))) from [v$t]",
        );
        refused("select ratio_to_report(a) from t", "OVER ()");
        refused("select ratio_to_report from t", "OVER ()");
    }
}
