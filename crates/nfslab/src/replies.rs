//! Replies to calls of v3 and v4.0 that change something, kept for their repetition: a call is known by who sent it, its number, and how it begins.
//!
//! ```text
//! new -> at work -> done      the same call again: dropped while it is at work, then answered as it was
//! ```
//! Without it, a write that a slow server does late would go over what was written after its repetition.

use crate::store::lock;
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::sync::Mutex;

/// Calls that are remembered.
const CALLS_MAX: usize = 4096;
/// Longest reply that is kept, and how much of a call is looked at, bytes.
const REPLY_BYTES_MAX: usize = 2048;
const HEAD_BYTES: usize = 256;

#[derive(Default)]
pub(crate) struct Replies(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// None while it is carried out.
    replies: HashMap<Call, Option<Vec<u8>>>,
    order: VecDeque<Call>,
}

/// By what a call is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Call {
    client: IpAddr,
    xid: u32,
    head: u64,
    bytes: usize,
}

impl Call {
    pub(crate) fn new(client: IpAddr, xid: u32, arguments: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        arguments[..arguments.len().min(HEAD_BYTES)].hash(&mut hasher);
        Self { client, xid, head: hasher.finish(), bytes: arguments.len() }
    }
}

/// What is known of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    New,
    AtWork,
    Done(Vec<u8>),
}

impl Replies {
    /// Looks whether `call` was here before; a new one is at work from now on.
    pub(crate) fn begin(&self, call: Call) -> Seen {
        let mut known = lock(&self.0);
        match known.replies.get(&call) {
            Some(None) => return Seen::AtWork,
            Some(Some(reply)) => return Seen::Done(reply.clone()),
            None => {}
        }
        if known.order.len() == CALLS_MAX
            && let Some(oldest) = known.order.pop_front()
        {
            known.replies.remove(&oldest);
        }
        known.order.push_back(call);
        known.replies.insert(call, None);
        Seen::New
    }

    /// It is done. What is longer than what changes something gives is not kept.
    pub(crate) fn end(&self, call: Call, reply: &[u8]) {
        let mut known = lock(&self.0);
        if reply.len() > REPLY_BYTES_MAX {
            known.replies.remove(&call);
            known.order.retain(|other| *other != call);
        } else if let Some(its) = known.replies.get_mut(&call) {
            *its = Some(reply.to_vec());
        }
    }

    /// As after a restart.
    pub(crate) fn forget(&self) {
        *lock(&self.0) = Known::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_carried_out_once() {
        let replies = Replies::default();
        let call = |xid, text: &[u8]| Call::new([127, 0, 0, 1].into(), xid, text);
        assert_eq!(replies.begin(call(1, b"remove")), Seen::New);
        assert_eq!(replies.begin(call(1, b"remove")), Seen::AtWork);
        replies.end(call(1, b"remove"), b"yes");
        assert_eq!(replies.begin(call(1, b"remove")), Seen::Done(b"yes".to_vec()));
        assert_eq!(replies.begin(call(1, b"create")), Seen::New, "another one under the same number");
        for xid in 2..=CALLS_MAX as u32 {
            replies.begin(call(xid, b"remove"));
        }
        assert_eq!(replies.begin(call(1, b"remove")), Seen::New, "there is a bound");
        replies.forget();
        assert_eq!(replies.begin(call(9, b"remove")), Seen::New);
    }
}
