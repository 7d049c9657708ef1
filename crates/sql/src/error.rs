//! What is wrong with a statement, and where; or why it could not be done.

use engine::EngineError;

/// A statement that was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct SqlError {
    /// What is wrong, and what to type instead.
    pub text: String,
    /// Byte offset in the statement as the user typed it; none when it is about the whole.
    pub offset: Option<usize>,
}

impl SqlError {
    /// Wrong at one place.
    pub fn at(offset: usize, text: impl Into<String>) -> Self {
        Self { text: text.into(), offset: Some(offset) }
    }

    /// Wrong as a whole.
    pub fn whole(text: impl Into<String>) -> Self {
        Self { text: text.into(), offset: None }
    }

    /// The message, and below it the line of `statement` with a caret under the place. The caret stands under the right
    /// character also where tabs and letters of several bytes come before it.
    pub fn with_caret(&self, statement: &str) -> String {
        let Some(offset) = self.offset else { return self.text.clone() };
        let mut offset = offset.min(statement.len());
        while !statement.is_char_boundary(offset) {
            offset -= 1;
        }
        let start = statement[..offset].rfind('\n').map_or(0, |at| at + 1);
        let end = statement[offset..].find('\n').map_or(statement.len(), |at| offset + at);
        let number = statement[..start].matches('\n').count() + 1;
        let line = statement[start..end].trim_end();
        // A tab stays a tab in both lines, so that both are moved alike.
        let pad: String =
            statement[start..offset].chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        format!("line {number}: {}\n  {line}\n  {pad}^", self.text)
    }
}

/// Why a statement was not done. What it had changed is taken back; the transaction goes on.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The statement is wrong.
    #[error("{0}")]
    Statement(#[from] SqlError),
    /// The engine could not do it.
    #[error("{0}")]
    Engine(#[from] EngineError),
    /// Somebody interrupted it.
    #[error("interrupted; what the statement had changed was taken back")]
    Interrupted,
}

impl Error {
    /// As [`SqlError::with_caret`].
    pub fn with_caret(&self, statement: &str) -> String {
        match self {
            Self::Statement(error) => error.with_caret(statement),
            other => other.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_under_the_place() {
        let text = "SELECT 1\n\tFROM süß tabel";
        let error = SqlError::at(text.find("tabel").expect("it is there"), "no");
        assert_eq!(error.with_caret(text), "line 2: no\n  \tFROM süß tabel\n  \t         ^");
    }

    #[test]
    fn a_place_behind_the_end_is_the_end() {
        assert_eq!(SqlError::at(99, "more").with_caret("ab"), "line 1: more\n  ab\n    ^");
        assert_eq!(SqlError::whole("all").with_caret("ab"), "all");
    }
}
