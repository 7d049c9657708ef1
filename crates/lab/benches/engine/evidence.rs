//! Why a rate is what it is: where the sessions' time went, printed below it.

use engine::Instance;
use host::counters::Watch;
use lab::database::interval::{Interval, Moment};

/// Waits that are named.
const NAMED: usize = 5;

/// The database's counters now.
pub fn now(instance: &Instance) -> Moment {
    Moment::of(instance, &[], &Watch::default())
}

/// The database's counters from `before` until now.
pub fn since(before: Moment, instance: &Instance) -> Interval {
    before.until_now(instance, &[], &Watch::default())
}

/// Prints the shares of DB time in `interval`: the processor's (which includes time in which sessions wanted one and had
/// none), and the greatest waits'.
pub fn why(what: &str, interval: &Interval) {
    let spent = interval.db_time();
    let mut words = vec![format!("CPU {:.1} %", 100.0 * spent.cpu)];
    words.extend(
        spent
            .waits
            .iter()
            .take(NAMED)
            .map(|(event, share)| format!("{} {:.1} %", event.name(), 100.0 * share)),
    );
    println!("    {what}: {:.1} sessions active: {}", spent.active, words.join(", "));
}
