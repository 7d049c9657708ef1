//! Delegations that nobody asked for, as some servers give them: what OPEN gives, how it is recalled, how it comes back. Source: RFC 8881, 10.4.
//!
//! ```text
//! nothing -> out      an OPEN, where the node gives them, and nobody else has the file      [States::delegate]
//! out -> asked        the holder was asked, and agrees [Node::recall_delegation]: somebody else opens the file, or it is given and recalled at once
//! out, asked -> nothing   DELEGRETURN; or nobody agreed in time
//! ```

use super::Run;
use super::callback::CB_RECALL;
use super::state::{Client, States, number_of};
use crate::cluster::{Delegations, Shared, name};
use crate::counters::count;
use crate::node::Node;
use crate::store::lock;
use crate::wire::{Place, Stop};
use nfs::Status;
use nfs::xdr::{Reader, Writer};
use std::sync::{Arc, Weak};
use units::{Nanos, clock};

/// Longest that a delegation is waited for before it is taken away.
const RETURN_MAX: Nanos = Nanos::millis(5_000);
/// How soon its holder is asked again, and how often it is looked whether it came back.
const AGAIN: Nanos = Nanos::millis(2);
/// `NFS_LIMIT_SIZE`.
const LIMIT_SIZE: u32 = 1;

/// One that is out.
#[derive(Clone)]
pub(super) struct Delegation {
    pub(super) client: Arc<Client>,
    file: u64,
    write: bool,
    /// Somebody is at asking for it.
    recalled: bool,
    /// The holder agreed.
    asked: bool,
    /// It is not taken before.
    asked_first: bool,
}

impl States {
    /// A delegation of `file` for `client`, unless another one is out or somebody else has the file open. Result: its number, and its state.
    fn delegate(
        &self,
        client: &Arc<Client>,
        file: u64,
        write: bool,
        asked_first: bool,
    ) -> Option<(u64, [u8; 16])> {
        let mut all = lock(&self.delegations);
        if all.values().any(|it| it.file == file) || self.is_open_elsewhere(file, client.id) {
            return None;
        }
        let (number, state) = self.new_state();
        let client = client.clone();
        all.insert(
            number,
            Delegation { client, file, write, recalled: asked_first, asked: false, asked_first },
        );
        Some((number, state))
    }

    /// Those of `file` that keep `client` from opening it to write, or at all, and that nobody has asked for: somebody does from now on. And whether there are any.
    fn in_the_way(&self, file: u64, client: u64, write: bool) -> (Vec<u64>, bool) {
        let (mut new, mut any) = (Vec::new(), false);
        for (&number, it) in lock(&self.delegations).iter_mut() {
            if it.file == file && it.client.id != client && (it.write || write) {
                any = true;
                if !std::mem::replace(&mut it.recalled, true) {
                    new.push(number);
                }
            }
        }
        (new, any)
    }

    fn end_delegation(&self, number: u64) -> bool {
        lock(&self.delegations).remove(&number).is_some()
    }
}

impl Node {
    /// Asks for delegation `number` back, by a thread of its own: whoever opens a file does not wait for it.
    fn recall_delegation(&self, shared: &Arc<Shared>, number: u64) {
        let (weak, index) = (Arc::downgrade(shared), self.index);
        let thread = std::thread::Builder::new().name(format!("node {} recall", name(index)));
        if thread.spawn(move || ask(&weak, index, number)).is_err() {
            self.v4.end_delegation(number);
        }
    }
}

/// 1. the holder agrees: that it knows of none may be because the reply to its OPEN is still on its way, 2. it gives it back.
fn ask(shared: &Weak<Shared>, node: usize, number: u64) {
    let deadline = clock::now() + RETURN_MAX;
    loop {
        let Some(shared) = shared.upgrade() else { return };
        let node = &shared.nodes[node];
        let Some(it) = lock(&node.v4.delegations).get(&number).cloned() else { return };
        if clock::now() >= deadline {
            // Its holder learns of it when it is used or given back.
            node.v4.end_delegation(number);
            return;
        }
        if !it.asked {
            let answer = node.tell(&it.client, CB_RECALL, |w| {
                w.fixed(&node.v4.state_of(number));
                w.bool(false);
                Place::of(it.file).encode(w);
            });
            if answer == Some(Status(0))
                && let Some(it) = lock(&node.v4.delegations).get_mut(&number)
            {
                count(&node.counters.recalled);
                it.asked = true;
            }
        }
        drop(shared);
        clock::sleep(AGAIN);
    }
}

impl Run<'_> {
    /// Whether `client` may open `file` now: not before those who have it delegated gave it back.
    pub(super) fn make_way(&self, client: u64, file: u64, write: bool) -> Result<(), Stop> {
        let (new, any) = self.cx.node.v4.in_the_way(file, client, write);
        new.into_iter().for_each(|number| self.cx.node.recall_delegation(self.cx.shared, number));
        if any { Err(Status::DELAY.into()) } else { Ok(()) }
    }

    /// Appends what OPEN delegates: an `open_delegation4`. RFC 8881, 18.16.2.
    pub(super) fn delegate(&self, client: &Arc<Client>, file: u64, write: bool, w: &mut Writer) {
        let node = self.cx.node;
        let how = *lock(&node.delegations);
        // In 4.0 there is no way back to ask.
        let recall = how == Delegations::Recalled && self.session.is_some();
        let given = match how {
            Delegations::None => None,
            Delegations::Given | Delegations::Recalled => node.v4.delegate(client, file, write, recall),
        };
        let Some((number, state)) = given else { return w.u32(0) };
        count(&node.counters.delegated);
        w.u32(if write { 2 } else { 1 });
        w.fixed(&state);
        w.bool(false);
        if write {
            w.u32(LIMIT_SIZE);
            w.u64(u64::MAX);
        }
        w.fixed(&[0; 12]); // Nobody is allowed anything without asking.
        w.opaque(b"");
        if recall {
            node.recall_delegation(self.cx.shared, number);
        }
    }

    pub(super) fn delegreturn(&mut self, r: &mut Reader<'_>) -> Result<(), Stop> {
        let number = number_of(&r.fixed()?);
        let file = self.current()?.id;
        let mut all = lock(&self.cx.node.v4.delegations);
        let it = all.get(&number).filter(|it| it.file == file).ok_or(Status::BAD_STATEID)?;
        if it.asked_first && !it.asked {
            return Err(Status::DELAY.into());
        }
        all.remove(&number);
        count(&self.cx.node.counters.undelegated);
        Ok(())
    }
}
