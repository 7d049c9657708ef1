//! Threads that start together: they arrive, the controller looks at the clock once, and opens.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

enum State<T> {
    Closed,
    Open(T),
    Abandoned,
}

/// Not `std::sync::Barrier`: when the controller cannot start all threads, those that wait must be let go.
pub(super) struct Gate<T> {
    state: Mutex<(usize, State<T>)>,
    changed: Condvar,
}

impl<T: Copy> Gate<T> {
    pub(super) fn new() -> Self {
        Self { state: Mutex::new((0, State::Closed)), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, (usize, State<T>)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called by a thread that is ready. `None`: there will be no start.
    pub(super) fn arrive(&self) -> Option<T> {
        let mut state = self.lock();
        state.0 += 1;
        self.changed.notify_all();
        loop {
            match state.1 {
                State::Open(value) => return Some(value),
                State::Abandoned => return None,
                State::Closed => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Waits until `count` threads have arrived.
    pub(super) fn wait_for(&self, count: usize) {
        let mut state = self.lock();
        while state.0 < count {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets all go with `value`.
    pub(super) fn open(&self, value: T) {
        self.lock().1 = State::Open(value);
        self.changed.notify_all();
    }

    /// Lets all go without a start.
    pub(super) fn abandon(&self) {
        self.lock().1 = State::Abandoned;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_three_threads(control: impl FnOnce(&Gate<u32>)) -> Vec<Option<u32>> {
        let gate = Gate::new();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| gate.arrive())).collect();
            control(&gate);
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    #[test]
    fn all_start_with_the_same_value() {
        let started = with_three_threads(|gate| {
            gate.wait_for(3);
            gate.open(7);
        });
        assert_eq!(started, [Some(7); 3]);
    }

    #[test]
    fn abandoned_threads_are_let_go() {
        assert_eq!(with_three_threads(Gate::abandon), [None; 3]);
    }
}
