//! The API for statements: tables, indexes, rows, transactions.
/// A user's session.
pub struct Session {}
