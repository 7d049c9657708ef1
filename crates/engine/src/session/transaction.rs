//! Transactions and statements of a session.

use super::{Call, Session};
use crate::space::Table;
use crate::space::lock::Writing;
use crate::statistics::Statistic;
use crate::transaction::{ReadView, ReadViewGuard, Transaction, UndoMark, Xid};
use crate::{EngineError, Result};
use std::sync::Arc;

/// Where a session stands.
///
/// ```text
/// idle -> in a transaction   [Call::transaction: the first change]
/// in a transaction -> idle   [State::end_transaction: commit, rollback, DDL]
/// ```
#[derive(Default)]
pub(super) struct State {
    transaction: Option<Transaction>,
    /// Tables that the transaction writes to, by number, and its stay there.
    writing: Vec<(u32, Writing)>,
    statement: Option<Statement>,
    /// Counts transactions, so that a savepoint of an ended one is known as such.
    number: u64,
}

/// A statement of several calls.
struct Statement {
    guard: Arc<ReadViewGuard>,
    /// Where it began.
    mark: Savepoint,
    /// How many statements have begun inside it and not ended, itself included.
    depth: u32,
}

/// A moment in a session's transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Savepoint {
    /// None: before the first change.
    mark: Option<UndoMark>,
    transaction: u64,
}

/// What a statement or a cursor sees.
#[derive(Clone)]
pub(super) struct View {
    /// Keeps what it needs from being purged.
    _guard: Arc<ReadViewGuard>,
    pub view: ReadView,
}

impl Session {
    /// Whether something was changed and neither committed nor rolled back.
    pub fn in_transaction(&self) -> bool {
        self.state.transaction.is_some()
    }

    /// Makes the transaction's changes durable and visible.
    ///
    /// # Errors
    /// [`EngineError::Crashed`]: they may or may not be there after the restart.
    pub fn commit(&mut self) -> Result<()> {
        self.call(|call| call.commit())
    }

    /// Takes the transaction's changes back.
    ///
    /// # Errors
    /// What storage says; they are then taken back at the next open.
    pub fn rollback(&mut self) -> Result<()> {
        self.call(|call| call.rollback())
    }

    /// This moment, for [`Session::rollback_to`].
    pub fn savepoint(&self) -> Savepoint {
        self.state.savepoint()
    }

    /// Takes back what was changed since `savepoint`; the transaction goes on, and the savepoint stays valid.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] when it is of another transaction, what storage says.
    pub fn rollback_to(&mut self, savepoint: Savepoint) -> Result<()> {
        self.call(|call| call.rollback_to(savepoint))
    }

    /// From here on all calls are one statement: they read what was committed now. A statement within a statement is a part
    /// of it. Without this each call is a statement of its own.
    ///
    /// # Errors
    /// [`EngineError::Crashed`], [`EngineError::ShuttingDown`].
    pub fn begin_statement(&mut self) -> Result<()> {
        self.call(|call| {
            call.begin_statement();
            Ok(())
        })
    }

    /// Ends what [`Session::begin_statement`] began.
    pub fn end_statement(&mut self) {
        self.state.end_statement();
    }

    /// Takes back what was changed since the statement began and ends it, with all statements around it; begin it again for
    /// another try. Nothing happens when none is open.
    ///
    /// A call that fails inside a statement takes back only what it did itself, but for [`EngineError::Deadlock`] and
    /// [`EngineError::StatementRestart`]: these take back the whole statement and end it.
    ///
    /// # Errors
    /// What storage says.
    pub fn rollback_statement(&mut self) -> Result<()> {
        self.call(|call| call.rollback_statement())
    }

    /// Whether a statement is open: between [`Session::begin_statement`] and its end.
    pub fn in_statement(&self) -> bool {
        self.state.statement.is_some()
    }
}

impl State {
    /// Whether others may be waiting for this session.
    pub fn has_locks(&self) -> bool {
        self.transaction.is_some() || !self.writing.is_empty()
    }

    /// Leaves all tables when there is no transaction.
    pub fn leave_if_idle(&mut self) {
        if self.transaction.is_none() {
            self.writing.clear();
        }
    }

    fn savepoint(&self) -> Savepoint {
        Savepoint { mark: self.transaction.as_ref().map(Transaction::mark), transaction: self.number }
    }

    fn end_statement(&mut self) {
        if let Some(statement) = &mut self.statement {
            statement.depth -= 1;
            if statement.depth == 0 {
                self.statement = None;
            }
        }
    }

    fn own(&self) -> Xid {
        self.transaction.as_ref().map_or(Xid::default(), |transaction| transaction.xid)
    }

    fn end_transaction(&mut self) {
        self.writing.clear();
        self.number += 1;
    }
}

impl Call<'_> {
    /// What a statement of now sees, or the one that is open: nothing of what it changes itself.
    pub(super) fn view(&self) -> View {
        let guard = match &self.state.statement {
            Some(statement) => statement.guard.clone(),
            None => Arc::new(self.statement_view()),
        };
        View { view: guard.view.clone(), _guard: guard }
    }

    /// As [`Call::view`], with what the statement has changed so far.
    pub(super) fn view_with_own(&self) -> View {
        let View { _guard, view } = self.view();
        View { _guard, view: ReadView { own: self.state.own(), own_before: u64::MAX, ..view } }
    }

    /// A view of this moment, whatever statement is open, with everything of the transaction.
    pub(super) fn view_of_now(&self) -> View {
        let guard = Arc::new(self.core.transactions.view(self.state.own()));
        View { view: guard.view.clone(), _guard: guard }
    }

    fn statement_view(&self) -> ReadViewGuard {
        let transactions = &self.core.transactions;
        match &self.state.transaction {
            Some(transaction) => transactions.statement_view(transaction),
            None => transactions.view(Xid::default()),
        }
    }

    pub(super) fn in_statement(&self) -> bool {
        self.state.statement.is_some()
    }

    fn begin_statement(&mut self) {
        let mark = self.state.savepoint();
        match &mut self.state.statement {
            Some(statement) => statement.depth += 1,
            None => {
                let guard = Arc::new(self.statement_view());
                self.state.statement = Some(Statement { guard, mark, depth: 1 });
            }
        }
    }

    pub(super) fn rollback_statement(&mut self) -> Result<()> {
        let Some(Statement { mark, .. }) = self.state.statement.take() else { return Ok(()) };
        // Otherwise there was a commit inside the statement, and nothing of it is left to take back but what came after.
        let whole = Savepoint { mark: None, transaction: self.state.number };
        self.rollback_to(if mark.transaction == self.state.number { mark } else { whole })
    }

    /// The transaction, begun if need be.
    pub(super) fn transaction(&mut self) -> Result<&mut Transaction> {
        if self.state.transaction.is_none() {
            let transaction = self.core.transactions.begin(self.core, self.context)?;
            self.context.slot.set_xid(transaction.xid.0);
            self.state.transaction = Some(transaction);
        }
        Ok(self.state.transaction.as_mut().expect("begun above"))
    }

    pub(super) fn commit(&mut self) -> Result<()> {
        if let Some(transaction) = self.state.transaction.take() {
            let done = self.core.transactions.commit(self.core, self.context, transaction);
            self.context.slot.set_xid(0);
            self.state.end_transaction();
            done?;
            self.context.count(Statistic::UserCommits, 1);
        }
        self.state.end_transaction();
        Ok(())
    }

    pub(super) fn rollback(&mut self) -> Result<()> {
        if let Some(transaction) = self.state.transaction.take() {
            let done = self.core.transactions.rollback(self.core, self.context, transaction);
            self.context.slot.set_xid(0);
            self.state.end_transaction();
            done?;
            self.context.count(Statistic::UserRollbacks, 1);
        }
        self.state.end_transaction();
        Ok(())
    }

    fn rollback_to(&mut self, savepoint: Savepoint) -> Result<()> {
        if savepoint.transaction != self.state.number {
            return Err(EngineError::Invalid("the savepoint's transaction has ended".into()));
        }
        let (core, context) = (self.core, self.context);
        match (&mut self.state.transaction, savepoint.mark) {
            (None, _) => Ok(()),
            (Some(transaction), Some(mark)) => {
                core.transactions.rollback_to(core, context, transaction, mark)
            }
            // It had not begun then. For the user it goes on, so other savepoints of this time stay valid.
            (Some(_), None) => {
                let number = self.state.number;
                self.rollback()?;
                self.state.number = number;
                Ok(())
            }
        }
    }

    /// Runs one DML call: when it fails, what it did is undone, or, where going on makes no sense, the whole statement.
    pub(super) fn atomically<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let before = self.state.savepoint();
        let error = match self.transaction().map(|_| ()).and_then(|()| work(self)) {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        // Nothing can be taken back now; whoever ends the instance, or opens it again, does it.
        if matches!(error, EngineError::Crashed(_) | EngineError::ShuttingDown) {
            return Err(error);
        }
        let statement_fails = matches!(error, EngineError::Deadlock { .. } | EngineError::StatementRestart);
        let undone = if statement_fails && self.in_statement() {
            self.rollback_statement()
        } else {
            self.rollback_to(before)
        };
        match undone {
            Ok(()) => Err(error),
            // Half a statement must not be committed.
            Err(undo_error) => {
                self.rollback()?;
                Err(undo_error)
            }
        }
    }

    /// Enters a table to write to it, and gives its newest description when the caller's is stale.
    ///
    /// # Errors
    /// [`EngineError::NoSuch`] when it was dropped, [`EngineError::Invalid`] for the catalog's own tables.
    pub(super) fn enter(&mut self, table: &Table) -> Result<Option<Arc<Table>>> {
        if table.dictionary {
            return Err(EngineError::Invalid(format!(
                "{} belongs to the catalog and cannot be changed",
                table.name
            )));
        }
        if !self.state.writing.iter().any(|(object, _)| *object == table.object) {
            let writing = table.lock.write(self.asker(table.object))?;
            self.state.writing.push((table.object, writing));
        }
        self.newest(table)
    }

    /// The newest description of a table, when the given one is stale.
    ///
    /// # Errors
    /// [`EngineError::NoSuch`] when it was dropped.
    pub(super) fn newest(&self, table: &Table) -> Result<Option<Arc<Table>>> {
        if !table.is_stale() {
            return Ok(None);
        }
        let newest = self.core.space.catalog.by_object(table.object);
        newest.map(Some).ok_or_else(|| dropped("table", &table.name))
    }
}

pub(super) fn dropped(kind: &'static str, name: &str) -> EngineError {
    EngineError::NoSuch { kind, name: name.to_owned(), hint: ": it was dropped".into() }
}
