//! Why a rate is what it is: where the sessions' time went, printed below it.

use engine::Instance;
use lab::database::evidence::Before;

/// Waits that are named.
const NAMED: usize = 5;

/// Prints the shares of DB time since `before`: the processor's (which includes time in which sessions wanted one and had
/// none), and the greatest waits'.
pub fn why(what: &str, before: &Before, instance: &Instance) {
    let spent = before.db_time(instance);
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
