//! What a node did.

use std::sync::atomic::{AtomicU64, Ordering};
use units::Nanos;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What a node did since it was started, over its restarts.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct NodeCounters {
            $($(#[$doc])* pub $name: u64,)*
            /// CPU time of the threads that serve its connections, clients' and other nodes'.
            pub cpu: Nanos,
        }

        /// The same while it is counted.
        #[derive(Default)]
        pub(crate) struct Counting {
            $(pub(crate) $name: AtomicU64,)*
            pub(crate) cpu_ns: AtomicU64,
        }

        impl Counting {
            pub(crate) fn read(&self) -> NodeCounters {
                NodeCounters {
                    $($name: self.$name.load(Ordering::Relaxed),)*
                    cpu: Nanos(self.cpu_ns.load(Ordering::Relaxed)),
                }
            }
        }

        impl NodeCounters {
            /// What happened after `earlier`.
            pub fn since(&self, earlier: &Self) -> Self {
                Self { $($name: self.$name - earlier.$name,)* cpu: self.cpu - earlier.cpu }
            }
        }
    };
}

counters! {
    /// READs of clients.
    reads,
    /// WRITEs of clients.
    writes,
    /// COMMITs of clients.
    commits,
    /// Other calls of clients.
    others,
    /// Bytes that clients read here.
    bytes_read,
    /// Bytes that clients wrote here.
    bytes_written,
    /// Parts of clients' requests that were passed on to the node that keeps the data.
    forwarded,
    /// Parts that other nodes passed on to this one.
    served,
    /// Calls that were answered from the cache of replies.
    replayed,
    /// Refusals of data servers that clients told of, giving a layout back.
    reported,
    /// Delegations that were given.
    delegated,
    /// Those that came back.
    undelegated,
    /// Those whose holder was asked for them, and agreed.
    recalled,
    /// Calls that were made to clients.
    callbacks,
    /// Messages that were no NFS, and ended their connection.
    malformed,
}

/// One more.
pub(crate) fn count(counter: &AtomicU64) {
    add(counter, 1);
}

/// So many more.
pub(crate) fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}
