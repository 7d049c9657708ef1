//! A session with a server, in the few verbs that the workloads need.

use super::ServerError;
use std::os::fd::OwnedFd;

/// A value of a prepared statement.
#[derive(Clone, Copy, Debug)]
pub enum Parameter<'a> {
    /// `bigint`.
    Integer(i64),
    /// `text`, `varchar`.
    Text(&'a str),
}

/// A number that [`Connection::prepare`] gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatementId(pub(super) usize);

/// A session with a server, used by one thread at a time. A statement outside a transaction commits by itself.
pub trait Connection: Send {
    /// Runs statements, separated by semicolons where the server takes several at once; rows are thrown away.
    ///
    /// # Errors
    /// What the server says; that it is gone.
    fn execute(&mut self, sql: &str) -> Result<(), ServerError>;

    /// All rows of a query, each value as text; NULL is none.
    ///
    /// # Errors
    /// As [`Connection::execute`].
    fn rows(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, ServerError>;

    /// Prepares a statement; its places are `$1`, `$2` … or `?`.
    ///
    /// # Errors
    /// As [`Connection::execute`].
    fn prepare(&mut self, sql: &str) -> Result<StatementId, ServerError>;

    /// Runs a prepared statement. Result: the number in the first column of the first row, if there is one.
    ///
    /// # Errors
    /// As [`Connection::execute`].
    fn call(
        &mut self,
        statement: StatementId,
        parameters: &[Parameter<'_>],
    ) -> Result<Option<i64>, ServerError>;

    /// A second descriptor of its socket.
    ///
    /// # Errors
    /// The process has too many open files.
    fn socket(&self) -> std::io::Result<OwnedFd>;

    /// The number that a query answers; 0 where it answers none.
    ///
    /// # Errors
    /// As [`Connection::execute`].
    fn number(&mut self, sql: &str) -> Result<i64, ServerError> {
        let rows = self.rows(sql)?;
        let text = rows.into_iter().next().and_then(|row| row.into_iter().next().flatten());
        Ok(text.and_then(|text| text.trim().parse::<f64>().ok()).map_or(0, |n| n as i64))
    }
}
