//! Oracle's spelling into SQLite's. Text in, text out, and the way back from a place in the new text to the old one.
//!
//! Names with `$` and `#` are put in brackets, owners before names left out, curved quotes straightened; `/` divides
//! without cutting off; SYSDATE with days added, ROWNUM in a plain WHERE, FETCH FIRST, MINUS, DATE '…' are turned into what
//! SQLite has. What cannot be turned is refused with words, never passed on to mean something else.

mod group;

use crate::SqlError;
use crate::token::{Kind, Token, tokens};

/// The text for SQLite.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewritten {
    /// For SQLite.
    pub sql: String,
    pieces: Vec<Piece>,
}

/// From here on the new text is a copy of the old (`copied`), or stands for what begins there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    new: usize,
    old: usize,
    copied: bool,
}

impl Rewritten {
    /// The place in the old text that a place in the new one comes from.
    pub fn original(&self, new: usize) -> usize {
        let before = self.pieces.partition_point(|piece| piece.new <= new);
        match before.checked_sub(1).map(|at| self.pieces[at]) {
            Some(piece) if piece.copied => piece.old + (new - piece.new),
            Some(piece) => piece.old,
            None => new,
        }
    }
}

/// Where INSERT … SELECT reads from when it fills its own source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelfSource<'a> {
    /// The table that is filled.
    pub table: &'a str,
    /// The table that shows its rows as they were when the statement began.
    pub source: &'a str,
}

/// What stands instead of some bytes of the old text.
struct Edit {
    from: usize,
    to: usize,
    text: String,
}

/// Rewrites one statement.
///
/// # Errors
/// What has no counterpart: `(+)`, FOR UPDATE, ROWNUM where rows are grouped.
pub fn rewrite(text: &str, own: Option<SelfSource<'_>>) -> Result<Rewritten, SqlError> {
    let tokens = tokens(text)?;
    let mut edits = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        at += step(&tokens, at, own, &mut edits)?;
    }
    edits.sort_by_key(|edit| edit.from);
    Ok(assemble(text, &edits))
}

/// The heading of an expression, in which `/` is what the user has typed.
pub fn as_typed(heading: &str) -> String {
    heading.replace("*1.0/", "/")
}

fn assemble(text: &str, edits: &[Edit]) -> Rewritten {
    let mut out = Rewritten::default();
    let mut at = 0;
    for edit in edits {
        out.pieces.push(Piece { new: out.sql.len(), old: at, copied: true });
        out.sql.push_str(&text[at..edit.from]);
        out.pieces.push(Piece { new: out.sql.len(), old: edit.from, copied: false });
        out.sql.push_str(&edit.text);
        at = edit.to;
    }
    out.pieces.push(Piece { new: out.sql.len(), old: at, copied: true });
    out.sql.push_str(&text[at..]);
    out
}

/// Looks at the token `at`; says how many tokens are dealt with.
fn step(
    tokens: &[Token<'_>],
    at: usize,
    own: Option<SelfSource<'_>>,
    edits: &mut Vec<Edit>,
) -> Result<usize, SqlError> {
    let token = tokens[at];
    let next = tokens.get(at + 1);
    let mut edit = |from: usize, to: usize, text: String| edits.push(Edit { from, to, text });
    match token.kind {
        Kind::Text if token.text.starts_with('‘') => {
            edit(token.start, token.end(), format!("'{}'", token.unquoted().replace('\'', "''")));
        }
        Kind::Sign if token.text == "/" => edit(token.start, token.end(), "*1.0/".into()),
        Kind::Sign if token.text == "(" && is(tokens, at + 1, "+") && is(tokens, at + 2, ")") => {
            return Err(SqlError::at(token.start, "(+) is not known here; write LEFT JOIN … ON"));
        }
        Kind::Word if next.is_some_and(|t| t.is_sign(".")) && is_owner(tokens, at) => {
            let behind = tokens.get(at + 2).map_or(token.end() + 1, |t| t.start);
            edit(token.start, behind, String::new());
            return Ok(2);
        }
        Kind::Word | Kind::Quoted => {
            if let Some(own) = own
                && token.unquoted().eq_ignore_ascii_case(own.table)
                && source_position(tokens, at)
            {
                let alias = if has_alias(next) { String::new() } else { format!(" AS [{}]", own.table) };
                edit(token.start, token.end(), format!("[{}]{alias}", own.source));
            } else if token.kind == Kind::Word {
                return word(tokens, at, edits);
            }
        }
        _ => {}
    }
    Ok(1)
}

fn word(tokens: &[Token<'_>], at: usize, edits: &mut Vec<Edit>) -> Result<usize, SqlError> {
    let token = tokens[at];
    let next = tokens.get(at + 1);
    // A column of that name (`s.rownum`) is a column.
    let part = (at > 0 && tokens[at - 1].is_sign(".")) || next.is_some_and(|t| t.is_sign("."));
    let mut replace = |to: usize, text: String| edits.push(Edit { from: token.start, to, text });
    if token.text.contains(['$', '#']) {
        // gv$ is v$ of all instances, and there is one.
        let global = token.text.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("gv$"));
        replace(token.end(), format!("[{}]", &token.text[usize::from(global)..]));
    } else if part {
    } else if token.is("SYSDATE") || token.is("SYSTIMESTAMP") {
        let (days, used) = added_days(tokens, at + 1);
        if let Some(sign) = tokens.get(at + 1 + used).filter(|t| t.is_sign("-") || t.is_sign("+")) {
            return Err(SqlError::at(
                sign.start,
                "only numbers and intervals are added to a date here; days between two: julianday(sysdate) - julianday(x)",
            ));
        }
        let end = tokens[at + used].end();
        replace(end, if days.is_empty() { "sysdate()".into() } else { format!("sysdate({days})") });
        return Ok(1 + used);
    } else if token.is("MINUS") && next.is_some_and(|t| t.is("SELECT") || t.is_sign("(")) {
        replace(token.end(), "EXCEPT".into());
    } else if (token.is("DATE") || token.is("TIMESTAMP")) && next.is_some_and(|t| t.kind == Kind::Text) {
        replace(token.end(), String::new());
    } else if token.is("FOR") && next.is_some_and(|t| t.is("UPDATE")) {
        return Err(SqlError::at(
            token.start,
            "SELECT … FOR UPDATE is not known here; UPDATE locks the rows",
        ));
    } else if token.is("FETCH") && next.is_some_and(|t| t.is("FIRST") || t.is("NEXT")) {
        return fetch_first(tokens, at, edits);
    } else if token.is("LISTAGG") && next.is_some_and(|t| t.is_sign("(")) {
        replace(token.end(), "group_concat".into());
    } else if token.is("WITHIN") && next.is_some_and(|t| t.is("GROUP")) {
        return group::within_group(tokens, at, edits);
    } else if token.is("RATIO_TO_REPORT") {
        return group::ratio_to_report(tokens, at, edits);
    } else if token.is("ROWNUM") {
        return rownum(tokens, at, edits);
    }
    Ok(1)
}

fn is(tokens: &[Token<'_>], at: usize, sign: &str) -> bool {
    tokens.get(at).is_some_and(|t| t.is_sign(sign))
}

/// Whether the name before a dot is an owner rather than a table: always `sys`, `system` and `public`; any name where a
/// table is named, except SQLite's own schemas.
fn is_owner(tokens: &[Token<'_>], at: usize) -> bool {
    let owners = ["SYS", "SYSTEM", "PUBLIC"];
    let schemas = ["MAIN", "TEMP"];
    let before = at.checked_sub(1).map(|at| &tokens[at]);
    let names_table =
        before.is_some_and(|t| ["FROM", "JOIN", "INTO", "UPDATE"].iter().any(|word| t.is(word)));
    owners.iter().any(|owner| tokens[at].is(owner))
        || (names_table && !schemas.iter().any(|s| tokens[at].is(s)))
}

/// Whether a name stands where a SELECT names what it reads.
fn source_position(tokens: &[Token<'_>], mut at: usize) -> bool {
    // Step back over an owner.
    while at >= 2 && tokens[at - 1].is_sign(".") {
        at -= 2;
    }
    let Some(before) = at.checked_sub(1).map(|at| &tokens[at]) else { return false };
    if before.is("FROM") || before.is("JOIN") {
        return true;
    }
    before.is_sign(",") && in_from(tokens, at)
}

/// Whether the innermost clause around `at` is FROM.
fn in_from(tokens: &[Token<'_>], at: usize) -> bool {
    let mut depth = 0_i32;
    for token in tokens[..at].iter().rev() {
        match token.text {
            ")" => depth += 1,
            "(" if depth == 0 => return false,
            "(" => depth -= 1,
            _ if depth > 0 => {}
            _ if token.is("FROM") => return true,
            _ if ["SELECT", "WHERE", "GROUP", "ORDER", "ON", "SET"].iter().any(|word| token.is(word)) => {
                return false;
            }
            _ => {}
        }
    }
    false
}

fn has_alias(next: Option<&Token<'_>>) -> bool {
    let clauses = [
        "WHERE",
        "GROUP",
        "ORDER",
        "HAVING",
        "LIMIT",
        "UNION",
        "EXCEPT",
        "INTERSECT",
        "MINUS",
        "JOIN",
        "LEFT",
        "RIGHT",
        "FULL",
        "INNER",
        "CROSS",
        "NATURAL",
        "ON",
        "USING",
        "FETCH",
        "WINDOW",
        "INDEXED",
        "NOT",
        "RETURNING",
    ];
    next.is_some_and(|t| match t.kind {
        Kind::Word => !clauses.iter().any(|clause| t.is(clause)),
        kind => kind == Kind::Quoted,
    })
}

/// `- 5/1440`, `+ 1`, `- INTERVAL '5' MINUTE` behind SYSDATE: the days as an expression, and how many tokens they are.
fn added_days(tokens: &[Token<'_>], from: usize) -> (String, usize) {
    let (mut days, mut at) = (String::new(), from);
    while is(tokens, at, "-") || is(tokens, at, "+") {
        let sign = tokens[at].text;
        if let Some((interval, used)) = interval(tokens, at + 1) {
            days += &format!("{sign}{interval}");
            at += 1 + used;
            continue;
        }
        let Some((product, used)) = product(tokens, at + 1) else { break };
        days += &format!("{sign}{product}");
        at += 1 + used;
    }
    (days, at - from)
}

/// Numbers and parameters multiplied and divided, in parentheses or not.
fn product(tokens: &[Token<'_>], from: usize) -> Option<(String, usize)> {
    let operand = |at: usize| -> Option<(String, usize)> {
        if is(tokens, at, "(") {
            let (inside, used) = product(tokens, at + 1)?;
            return is(tokens, at + 1 + used, ")").then(|| (format!("({inside})"), used + 2));
        }
        let token = tokens.get(at).filter(|t| matches!(t.kind, Kind::Number | Kind::Parameter))?;
        Some((token.text.to_owned(), 1))
    };
    let (mut text, mut used) = operand(from)?;
    loop {
        let sign = match tokens.get(from + used) {
            Some(t) if t.is_sign("*") => "*",
            Some(t) if t.is_sign("/") => "*1.0/",
            _ => return Some((text, used)),
        };
        let (more, length) = operand(from + used + 1)?;
        text += &format!("{sign}{more}");
        used += 1 + length;
    }
}

fn interval(tokens: &[Token<'_>], at: usize) -> Option<(String, usize)> {
    let [word, number, unit] = tokens.get(at..at + 3)? else { return None };
    let number = number.unquoted().parse::<f64>().ok().filter(|_| word.is("INTERVAL"))?;
    let units = [("DAY", 1), ("HOUR", 24), ("MINUTE", 1440), ("SECOND", 86_400)];
    let (_, parts) = units.iter().find(|(name, _)| unit.is(name))?;
    Some((format!("{number}*1.0/{parts}"), 3))
}

/// `FETCH FIRST n ROWS ONLY` is LIMIT n.
fn fetch_first(tokens: &[Token<'_>], at: usize, edits: &mut Vec<Edit>) -> Result<usize, SqlError> {
    let number = tokens.get(at + 2).filter(|t| matches!(t.kind, Kind::Number | Kind::Parameter));
    let rows = tokens.get(at + 3).is_some_and(|t| t.is("ROW") || t.is("ROWS"));
    match (number, tokens.get(at + 4)) {
        (Some(number), Some(only)) if rows && only.is("ONLY") => {
            let text = format!("LIMIT {}", number.text);
            edits.push(Edit { from: tokens[at].start, to: only.end(), text });
            Ok(5)
        }
        _ => Err(SqlError::at(tokens[at].start, "write FETCH FIRST n ROWS ONLY")),
    }
}

/// `WHERE ROWNUM <= n` is LIMIT n at the end of its SELECT. Elsewhere ROWNUM counts the rows of the result.
fn rownum(tokens: &[Token<'_>], at: usize, edits: &mut Vec<Edit>) -> Result<usize, SqlError> {
    let token = tokens[at];
    let joined = at > 0 && (tokens[at - 1].is("WHERE") || tokens[at - 1].is("AND"));
    let number = tokens.get(at + 2).filter(|t| matches!(t.kind, Kind::Number | Kind::Parameter));
    let (true, Some(op), Some(number)) = (joined, tokens.get(at + 1), number) else {
        let from = token.start;
        edits.push(Edit { from, to: token.end(), text: "row_number() OVER ()".into() });
        return Ok(1);
    };
    let limit = match op.text {
        "<=" => number.text.to_owned(),
        "<" => format!("({})-1", number.text),
        "=" if number.text == "1" => "1".into(),
        _ => return Err(SqlError::at(token.start, "ROWNUM is understood as ROWNUM <= n and ROWNUM < n")),
    };
    let end = level_end(tokens, at)?;
    let place = tokens[end - 1].end();
    edits.push(Edit { from: token.start, to: number.end(), text: "1".into() });
    edits.push(Edit { from: place, to: place, text: format!(" LIMIT {limit}") });
    Ok(3)
}

/// Behind the last token of the SELECT around `at`. Refuses where LIMIT would not mean what ROWNUM means: ROWNUM counts
/// rows before they are grouped.
fn level_end(tokens: &[Token<'_>], at: usize) -> Result<usize, SqlError> {
    let refuse = || {
        let words = "ROWNUM where rows are grouped, counted or united is not known here; put it into a query of its own: \
                     SELECT … FROM (SELECT … WHERE ROWNUM <= n)";
        Err(SqlError::at(tokens[at].start, words))
    };
    let grouping = ["GROUP", "HAVING", "DISTINCT", "UNION", "EXCEPT", "INTERSECT", "MINUS", "LIMIT"];
    let mut depth = 0;
    let mut end = tokens.len();
    for (place, token) in tokens.iter().enumerate().skip(at) {
        match token.text {
            "(" => depth += 1,
            ")" if depth == 0 => {
                end = place;
                break;
            }
            ")" => depth -= 1,
            _ if depth == 0 && grouping.iter().any(|word| token.is(word)) => return refuse(),
            _ => {}
        }
    }
    let mut depth = 0;
    for (place, token) in tokens[..at].iter().enumerate().rev() {
        match token.text {
            ")" => depth += 1,
            "(" if depth == 0 => break,
            "(" => depth -= 1,
            _ if depth == 0 && token.is("SELECT") => break,
            _ => {}
        }
        let aggregate = ["COUNT", "SUM", "AVG", "MIN", "MAX"].iter().any(|word| token.is(word));
        if depth == 0 && (token.is("DISTINCT") || (aggregate && is(tokens, place + 1, "("))) {
            return refuse();
        }
    }
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(rewrite(text, None).expect(text).sql, expected, "{text}");
    }

    fn refused(text: &str, words: &str) {
        let error = rewrite(text, None).expect_err(text);
        assert!(error.text.contains(words) && error.offset.is_some(), "{text}: {error}");
    }

    #[test]
    fn names_of_oracle() {
        check("select group#, l.status from sys.v$log l", "select [group#], l.status from [v$log] l");
        check("select * from GV$LOG", "select * from [V$LOG]");
        check("select t.a from scott.t, system.u", "select t.a from t, u");
        check("select 'v$log' from main.t -- v$log", "select 'v$log' from main.t -- v$log");
    }

    #[test]
    fn division_keeps_what_is_behind_the_point() {
        check("select bytes/1024/1024 from t", "select bytes*1.0/1024*1.0/1024 from t");
    }

    #[test]
    fn moments() {
        check("select sysdate from dual", "select sysdate() from dual");
        check("a > SYSDATE - 5/1440 and b", "a > sysdate(-5*1.0/1440) and b");
        check("a > sysdate - (1/24) + 2", "a > sysdate(-(1*1.0/24)+2)");
        check("a > systimestamp - interval '5' minute", "a > sysdate(-5*1.0/1440)");
        check("select date '2026-01-31', t.sysdate", "select  '2026-01-31', t.sysdate");
        refused("select sysdate - logon_time from t", "julianday");
    }

    #[test]
    fn rownum_is_a_limit() {
        check(
            "select * from (select a from t order by 1) where rownum <= 10",
            "select * from (select a from t order by 1) where 1 LIMIT 10",
        );
        check(
            "select * from (select a from t where rownum < 5 and a > 1) x",
            "select * from (select a from t where 1 and a > 1 LIMIT (5)-1) x",
        );
        check("select rownum, a from t", "select row_number() OVER (), a from t");
        refused("select count(*) from t where rownum <= 5", "counted");
        refused("select a from t where rownum <= 5 group by a", "grouped");
        refused("select a from t where rownum > 5", "ROWNUM <= n");
    }

    #[test]
    fn what_has_no_counterpart_is_refused() {
        refused("select 1 from a, b where a.x = b.x(+)", "LEFT JOIN");
        refused("select 1 from a for update", "FOR UPDATE");
        refused("select 1 from a fetch first row", "FETCH FIRST n");
        check("select 1 fetch first 3 rows only", "select 1 LIMIT 3");
        check("select 1 minus select 2", "select 1 EXCEPT select 2");
        check("select ‘it''s’", "select 'it''''s'");
    }

    #[test]
    fn a_table_that_feeds_itself_reads_the_source() {
        let own = Some(SelfSource { table: "t", source: "t$before" });
        let check = |text: &str, expected: &str| assert_eq!(rewrite(text, own).expect(text).sql, expected);
        check("INSERT INTO T SELECT * FROM T", "INSERT INTO T SELECT * FROM [t$before] AS [t]");
        check("insert into t select x.a from u, sys.t x", "insert into t select x.a from u, [t$before] x");
        check("insert into t (a, t) select t from u", "insert into t (a, t) select t from u");
        check(
            "insert into t select t.a from t where t.a = 1",
            "insert into t select t.a from [t$before] AS [t] where t.a = 1",
        );
    }

    #[test]
    fn a_place_finds_its_way_back() {
        let text = "select group#, wrong from sys.v$log";
        let new = rewrite(text, None).expect("it can be");
        let at = new.sql.find("wrong").expect("it is there");
        assert_eq!(new.original(at), text.find("wrong").expect("it is there"));
        assert_eq!(
            new.original(new.sql.find("[v$log]").expect("it is there") + 3),
            text.find("v$log").expect("there")
        );
    }
}
