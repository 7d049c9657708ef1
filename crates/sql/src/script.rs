//! Cutting a text into statements and sqlplus commands. Understands neither.
//!
//! Start with [`split`]. A statement ends at `;` outside quotes and comments, or before a line that holds only `/`. A
//! sqlplus command (`SET TIMING ON`, `PROMPT …`) ends with its line. A PL/SQL block ends at a line with only `/`.

use crate::token::{comment_end, quote_end};

/// What a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceKind {
    /// A statement without its `;`.
    Statement,
    /// A line for sqlplus or the shell: `SET …`, `\d`.
    Command,
    /// A block of PL/SQL, which nobody here can run.
    Block,
    /// A lone `/`: the last statement again.
    Again,
}

/// A piece of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// What it is.
    pub kind: PieceKind,
    /// Its text, without blanks around it, `;` or `/`.
    pub text: &'a str,
    /// Byte offset in the script.
    pub start: usize,
}

/// A script in pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script<'a> {
    /// What is complete.
    pub pieces: Vec<Piece<'a>>,
    /// Where the last statement begins when it has no end yet: more lines are awaited, or the file ends here.
    pub open: Option<usize>,
}

/// Commands of sqlplus that end with their line, with the shortest abbreviation that sqlplus takes.
const COMMANDS: [(&str, usize); 32] = [
    ("ACCEPT", 3),
    ("ARCHIVE", 7),
    ("BREAK", 3),
    ("BTITLE", 3),
    ("CLEAR", 2),
    ("COLUMN", 3),
    ("COMPUTE", 4),
    ("CONNECT", 4),
    ("DEFINE", 3),
    ("DESCRIBE", 4),
    ("DISCONNECT", 4),
    ("EXECUTE", 4),
    ("EXIT", 4),
    ("HELP", 4),
    ("HOST", 2),
    ("PAUSE", 3),
    ("PRINT", 3),
    ("PROMPT", 3),
    ("QUIT", 4),
    ("REMARK", 3),
    ("REPFOOTER", 4),
    ("REPHEADER", 4),
    ("SHOW", 3),
    ("SHUTDOWN", 8),
    ("SPOOL", 3),
    ("START", 3),
    ("STARTUP", 7),
    ("TIMING", 4),
    ("TTITLE", 3),
    ("UNDEFINE", 5),
    ("VARIABLE", 3),
    ("WHENEVER", 8),
];

/// The command's full name when `word` is it or an abbreviation that sqlplus takes. `SET` is not here: `SET TRANSACTION`
/// is SQL.
pub fn command_name(word: &str) -> Option<&'static str> {
    let upper = word.to_ascii_uppercase();
    let fits = |&&(name, shortest): &&(&str, usize)| upper.len() >= shortest && name.starts_with(&upper);
    COMMANDS.iter().find(fits).map(|&(name, _)| name)
}

/// Cuts `text`. Never fails: a quote that does not end makes the last statement an open one.
pub fn split(text: &str) -> Script<'_> {
    let mut pieces = Vec::new();
    let mut at = 0;
    loop {
        at = skip_blank(text, at);
        if at >= text.len() {
            return Script { pieces, open: None };
        }
        let rest = &text[at..];
        let line_end = at + rest.find('\n').unwrap_or(rest.len());
        let line = text[at..line_end].trim_end();
        if rest.starts_with(';') {
            at += 1;
        } else if line == "/" {
            pieces.push(Piece { kind: PieceKind::Again, text: line, start: at });
            at = line_end;
        } else if is_command(line) {
            let text = line.trim_end_matches(';').trim_end();
            pieces.push(Piece { kind: PieceKind::Command, text, start: at });
            at = line_end;
        } else {
            let block = is_block(rest);
            match find_end(text, at, block) {
                Some((end, behind)) => {
                    let kind = if block { PieceKind::Block } else { PieceKind::Statement };
                    pieces.push(Piece { kind, text: text[at..end].trim_end(), start: at });
                    at = behind;
                }
                None => return Script { pieces, open: Some(at) },
            }
        }
    }
}

/// Behind blanks and comments. An open comment is left where it is: it belongs to an open statement.
fn skip_blank(text: &str, mut at: usize) -> usize {
    loop {
        at += text[at..].len() - text[at..].trim_start().len();
        match comment_end(&text[at..]) {
            Ok(Some(length)) => at += length,
            _ => return at,
        }
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || matches!(c, ';' | '(')).filter(|word| !word.is_empty())
}

fn is_command(line: &str) -> bool {
    if line.starts_with(['\\', '@', '!']) {
        return true;
    }
    let mut words = words(line);
    let Some(first) = words.next() else { return false };
    if first.eq_ignore_ascii_case("set") {
        let sql = ["TRANSACTION", "CONSTRAINT", "CONSTRAINTS", "ROLE"];
        return !words.next().is_some_and(|word| sql.iter().any(|s| word.eq_ignore_ascii_case(s)));
    }
    command_name(first).is_some()
}

/// Whether PL/SQL begins here: `DECLARE`, `BEGIN` that is not SQLite's, or `CREATE … PROCEDURE` and the like.
fn is_block(rest: &str) -> bool {
    let mut words = words(rest).map(str::to_ascii_uppercase);
    match words.next().as_deref() {
        Some("DECLARE") => true,
        Some("BEGIN") => {
            let sqlite = ["TRANSACTION", "DEFERRED", "IMMEDIATE", "EXCLUSIVE"];
            let alone = rest[5..].trim_start().starts_with(';') || rest.len() == 5;
            !alone && !words.next().is_some_and(|word| sqlite.contains(&word.as_str()))
        }
        Some("CREATE") => {
            let kinds = ["PROCEDURE", "FUNCTION", "PACKAGE", "TRIGGER", "TYPE"];
            let between = ["OR", "REPLACE", "EDITIONABLE", "NONEDITIONABLE"];
            words.find(|w| !between.contains(&w.as_str())).is_some_and(|w| kinds.contains(&w.as_str()))
        }
        _ => false,
    }
}

/// Where the statement that begins at `from` ends, and where to go on behind its `;` or `/`.
fn find_end(text: &str, from: usize, block: bool) -> Option<(usize, usize)> {
    let mut at = from;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        if first == ';' && !block {
            return Some((at, at + 1));
        }
        if first == '\n' {
            let line_end = rest[1..].find('\n').map_or(text.len(), |length| at + 1 + length);
            if text[at + 1..line_end].trim() == "/" {
                return Some((at, line_end));
            }
        }
        let quoted = comment_end(rest).ok()?;
        let quoted = if quoted.is_some() { quoted } else { quote_end(rest).ok()? };
        at += quoted.unwrap_or(first.len_utf8());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use PieceKind::{Again, Block, Command, Statement};

    fn check(text: &str, expected: &[(PieceKind, &str)], open: Option<&str>) {
        let script = split(text);
        let pieces: Vec<_> = script.pieces.iter().map(|p| (p.kind, p.text)).collect();
        assert_eq!(pieces, expected, "{text}");
        assert_eq!(script.open.map(|at| &text[at..]), open, "{text}");
        for piece in &script.pieces {
            assert!(text[piece.start..].starts_with(piece.text));
        }
    }

    #[test]
    fn statements_end_at_semicolons_outside_quotes_and_comments() {
        let text = "select ';' a; -- ;\nselect /* ; */ 2 ;; select 3";
        check(text, &[(Statement, "select ';' a"), (Statement, "select /* ; */ 2")], Some("select 3"));
    }

    #[test]
    fn a_slash_alone_ends_a_statement_or_repeats_it() {
        check(
            "select 1\n/\n/\nselect 4\n/ 2;",
            &[(Statement, "select 1"), (Again, "/"), (Statement, "select 4\n/ 2")],
            None,
        );
    }

    #[test]
    fn sqlplus_commands_end_with_their_line() {
        let text = "SET TIMING ON\nprompt it's on\ncol name format a30;\n\\d t\nset transaction read only;";
        check(
            text,
            &[
                (Command, "SET TIMING ON"),
                (Command, "prompt it's on"),
                (Command, "col name format a30"),
                (Command, "\\d t"),
                (Statement, "set transaction read only"),
            ],
            None,
        );
    }

    #[test]
    fn abbreviations_are_those_of_sqlplus() {
        assert_eq!(command_name("exec"), Some("EXECUTE"));
        assert_eq!(command_name("desc"), Some("DESCRIBE"));
        assert_eq!(command_name("pro"), Some("PROMPT"));
        assert_eq!(command_name("de"), None);
        assert_eq!(command_name("commit"), None);
    }

    #[test]
    fn a_block_ends_at_its_slash() {
        check(
            "begin\n null;\nend;\n/\nbegin;\ncommit;",
            &[(Block, "begin\n null;\nend;"), (Statement, "begin"), (Statement, "commit")],
            None,
        );
        check(
            "create or replace procedure p is begin null; end;\n/",
            &[(Block, "create or replace procedure p is begin null; end;")],
            None,
        );
    }

    #[test]
    fn an_open_quote_waits_for_more() {
        check("select 1; select 'a;", &[(Statement, "select 1")], Some("select 'a;"));
    }
}
