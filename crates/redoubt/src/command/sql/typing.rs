//! What a user types: line editing, history, completion by Tab.

use super::database::Database;
use super::shell::{Shell, Typed};
use anyhow::Result;
use engine::parameter::Parameter;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Editor, Helper};
use sql::script;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Statements that are remembered.
const HISTORY_MAX: usize = 10_000;

/// Words that begin statements, and those within that are long.
const KEYWORDS: [&str; 52] = [
    "ADD",
    "ALTER",
    "AND",
    "AS",
    "BETWEEN",
    "BUFFER_CACHE",
    "BY",
    "CASE",
    "CHECKPOINT",
    "COMMIT",
    "COUNT(*)",
    "CREATE",
    "DATABASE",
    "DATAFILE",
    "DELETE",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "DROP",
    "EXIT",
    "FLUSH",
    "FROM",
    "GROUP",
    "HAVING",
    "INDEX",
    "INSERT",
    "INTO",
    "JOIN",
    "LIKE",
    "LOGFILE",
    "NOT",
    "NULL",
    "ORDER",
    "PARAMETER",
    "ROLLBACK",
    "SAVEPOINT",
    "SELECT",
    "SET",
    "SHOW",
    "SHUTDOWN",
    "STARTUP",
    "SWITCH",
    "SYSTEM",
    "TABLE",
    "TABLESPACE",
    "TEMPORARY",
    "TIMING",
    "TRUNCATE",
    "UNDO",
    "UPDATE",
    "VALUES",
    "WHERE",
];

/// Reads statements until the end.
pub fn run(shell: &mut Shell) -> Result<()> {
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .max_history_size(HISTORY_MAX)?
        .history_ignore_dups(true)?
        .build();
    let mut editor: Editor<Words, DefaultHistory> = Editor::with_config(config)?;
    let history = history_path();
    // The first time there is none.
    let _ = editor.load_history(&history);
    let mut text = String::new();
    while !shell.is_over() {
        editor.set_helper(Some(Words::of(&shell.database)));
        let prompt = match text.matches('\n').count() {
            0 => "SQL> ".to_owned(),
            lines => format!("{:>3}  ", lines + 1),
        };
        match editor.readline(&prompt) {
            Ok(line) => text = text + &line + "\n",
            // Ctrl-C: what was typed so far is not meant.
            Err(ReadlineError::Interrupted) => text.clear(),
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(error.into()),
        }
        if script::split(&text).open.is_some() {
            continue;
        }
        if !text.trim().is_empty() {
            let _ = editor.add_history_entry(text.trim());
            shell.script(&text, Typed::ByHand);
        }
        text.clear();
    }
    if let Some(folder) = history.parent() {
        let _ = std::fs::create_dir_all(folder);
    }
    if let Err(error) = editor.save_history(&history) {
        anstream::eprintln!("The history was not kept in {}: {error}", history.display());
    }
    Ok(())
}

fn history_path() -> PathBuf {
    host::journal::state_dir().join("sql_history")
}

/// Words that Tab knows.
struct Words(BTreeSet<String>);

impl Words {
    fn of(database: &Database) -> Self {
        let mut words: BTreeSet<String> = KEYWORDS.iter().map(|&word| word.to_owned()).collect();
        for (name, columns) in database.names() {
            words.insert(name);
            words.extend(columns);
        }
        words.extend(Parameter::ALL.iter().map(|parameter| parameter.definition().name.to_owned()));
        Self(words)
    }

    /// Where the word that ends at `position` begins, and what it may become. Keywords come in the case that was begun.
    fn complete(&self, line: &str, position: usize) -> (usize, Vec<String>) {
        let before = &line[..position];
        let start = before
            .rfind(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$' | '#')))
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        let begun = &before[start..];
        if begun.is_empty() {
            return (start, Vec::new());
        }
        let lower = begun.to_ascii_lowercase();
        let small = begun.chars().any(char::is_lowercase);
        let mut found: Vec<String> = self
            .0
            .iter()
            .filter(|word| word.to_ascii_lowercase().starts_with(&lower))
            .map(|word| if small { word.to_ascii_lowercase() } else { word.clone() })
            .collect();
        found.dedup();
        (start, found)
    }
}

impl Completer for Words {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _context: &rustyline::Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.complete(line, position))
    }
}

impl Hinter for Words {
    type Hint = String;
}

impl Highlighter for Words {}

impl Validator for Words {}

impl Helper for Words {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tab_knows_names_in_the_case_that_was_begun() {
        let words =
            Words(["SELECT", "v$session", "v$session_wait", "NAME"].iter().map(|&w| w.to_owned()).collect());
        let check = |line: &str, start: usize, expected: &[&str]| {
            assert_eq!(
                words.complete(line, line.len()),
                (start, expected.iter().map(|&w| w.into()).collect()),
                "{line}"
            );
        };
        check("sel", 0, &["select"]);
        check("SEL", 0, &["SELECT"]);
        check("select * from v$se", 14, &["v$session", "v$session_wait"]);
        check("select süß,na", 13, &["name"]);
        check("select ", 7, &[]);
    }
}
