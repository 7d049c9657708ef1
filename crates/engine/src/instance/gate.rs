//! The gate that sessions pass at each call, so that a shutdown can close it and wait until nobody is inside.

use crate::{EngineError, Result};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Nanos, clock};

/// How long [`Gate::close`] sleeps between two looks.
const NAP: Nanos = Nanos::millis(1);

/// One for all sessions.
///
/// A session says that it is inside, then looks whether the gate is closed; a shutdown closes the gate, then looks who is
/// inside. Both in sequentially consistent order, so at least one of them sees the other. The price of a call is one store
/// with a full fence on a cache line of the session's own (about 5 ns); a lock shared by all sessions would be a line
/// that all cores fight for.
#[derive(Default)]
pub struct Gate {
    closed: AtomicBool,
    seats: Mutex<Vec<Arc<Seat>>>,
}

/// A session's own mark.
#[derive(Default)]
#[repr(align(128))]
pub struct Seat {
    inside: AtomicBool,
}

/// A call that goes on.
pub struct Inside<'a> {
    seat: &'a Seat,
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.seat.inside.store(false, Ordering::Release);
    }
}

impl Gate {
    /// A seat for a new session; given back with [`Gate::leave`].
    ///
    /// # Errors
    /// [`EngineError::ShuttingDown`].
    pub fn seat(&self) -> Result<Arc<Seat>> {
        let mut seats = self.seats.lock();
        if self.is_closed() {
            return Err(EngineError::ShuttingDown);
        }
        let seat = Arc::new(Seat::default());
        seats.push(seat.clone());
        Ok(seat)
    }

    /// The session has ended.
    pub fn leave(&self, seat: &Arc<Seat>) {
        self.seats.lock().retain(|other| !Arc::ptr_eq(other, seat));
    }

    /// Begins a call. Calls do not nest.
    ///
    /// # Errors
    /// [`EngineError::ShuttingDown`].
    #[inline]
    pub fn enter<'a>(&self, seat: &'a Seat) -> Result<Inside<'a>> {
        seat.inside.store(true, Ordering::SeqCst);
        let inside = Inside { seat };
        if self.closed.load(Ordering::SeqCst) { Err(EngineError::ShuttingDown) } else { Ok(inside) }
    }

    /// Whether calls are still let in. A session that waits for another one (a row lock) asks this when it is woken, and
    /// gives up.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Lets nobody in any more; `wake` is called until nobody is inside.
    pub(super) fn close(&self, wake: &dyn Fn()) {
        self.closed.store(true, Ordering::SeqCst);
        let seats = self.seats.lock().clone();
        while seats.iter().any(|seat| seat.inside.load(Ordering::SeqCst)) {
            wake();
            clock::sleep(NAP);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_inside_is_waited_for_and_nobody_follows() {
        let gate = Gate::default();
        let (a, b) = (gate.seat().unwrap(), gate.seat().unwrap());
        let inside = gate.enter(&a).unwrap();
        let woken = std::sync::atomic::AtomicU32::new(0);
        std::thread::scope(|scope| {
            let closing = scope.spawn(|| gate.close(&|| _ = woken.fetch_add(1, Ordering::SeqCst)));
            while woken.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            assert!(matches!(gate.enter(&b), Err(EngineError::ShuttingDown)));
            assert!(!closing.is_finished());
            drop(inside);
        });
        assert!(matches!(gate.enter(&a), Err(EngineError::ShuttingDown)));
        assert!(matches!(gate.seat(), Err(EngineError::ShuttingDown)));
        gate.leave(&a);
        assert_eq!(gate.seats.lock().len(), 1);
    }
}
