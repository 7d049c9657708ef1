//! Watching: where looks come from, and the terminal that shows them.
//!
//! What is kept and drawn is in crate `watch`; here is what touches the world: a [`Source`] (a server or a record), keys and screen
//! ([`terminal`]), and a page ([`web`]).

mod nodes;
mod paint;
pub mod record;
pub mod server;
pub mod terminal;
pub mod web;

use ::watch::draw::Subject;
use ::watch::history::History;
use units::Nanos;

/// Where looks come from.
pub trait Source {
    /// Puts what is new into `history`; waits for it up to `longest`. Whether anything changed.
    fn take(&mut self, history: &mut History, longest: Nanos) -> bool;

    /// What is watched, and how it goes.
    fn subject(&self) -> &Subject;

    /// The present, on the history's time.
    fn now(&self) -> Nanos;
}
