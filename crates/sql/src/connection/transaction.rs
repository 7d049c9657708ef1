//! Ends of transactions, and savepoints.

use super::Connection;
use crate::outcome::Outcome;
use crate::{Error, SqlError};

impl Connection {
    /// Whether something was changed and neither committed nor rolled back.
    pub fn in_transaction(&self) -> bool {
        self.link.lock().session.in_transaction()
    }

    /// COMMIT. Durable when it returns, also where `WRITE NOWAIT` allows less.
    ///
    /// # Errors
    /// What the engine says: then it may or may not be durable.
    pub fn commit(&mut self) -> Result<Outcome, Error> {
        self.savepoints.clear();
        self.link.lock().session.commit()?;
        Ok(Outcome::Done("Commit complete."))
    }

    /// ROLLBACK, or ROLLBACK TO a savepoint, which stays.
    ///
    /// # Errors
    /// There is no such savepoint; what the engine says.
    pub fn rollback(&mut self, to: Option<&str>) -> Result<Outcome, Error> {
        let Some(name) = to else {
            self.savepoints.clear();
            self.link.lock().session.rollback()?;
            return Ok(Outcome::Done("Rollback complete."));
        };
        let found = self.savepoints.iter().rposition(|(other, _)| other.eq_ignore_ascii_case(name));
        let Some(at) = found else {
            return Err(SqlError::whole(format!(
                "there is no savepoint {name} in this transaction; COMMIT, ROLLBACK and DDL end all of them"
            ))
            .into());
        };
        self.link.lock().session.rollback_to(self.savepoints[at].1)?;
        self.savepoints.truncate(at + 1);
        Ok(Outcome::Done("Rollback complete."))
    }

    pub(super) fn savepoint(&mut self, name: &str) -> Result<Outcome, Error> {
        let savepoint = self.link.lock().session.savepoint();
        self.savepoints.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self.savepoints.push((name.to_ascii_lowercase(), savepoint));
        Ok(Outcome::Done("Savepoint created."))
    }
}
