//! Calls to clients: is there a way back, a delegation or layout is recalled, a device has changed. Source: RFC 8881, 20.

use super::identity::CB_PATH_DOWN;
use super::layout::{DEVICE_FLAGS, device_name, layout_state};
use super::state::{Client, Session};
use crate::cluster::name;
use crate::counters::count;
use crate::node::Node;
use crate::store::lock;
use crate::wire::Place;
use nfs::Status;
use nfs::rpc::Procedure;
use nfs::xdr::{Reader, Writer};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use units::{Nanos, clock};

pub(super) const CB_RECALL: u32 = 4;
const CB_LAYOUTRECALL: u32 = 5;
const CB_SEQUENCE: u32 = 11;
const CB_NOTIFY_DEVICEID: u32 = 14;
/// Longest that a client is waited for.
const PATIENCE: Nanos = Nanos::millis(2_000);
/// How often it is looked whether one whose connection broke has come back.
const LOOK: Nanos = Nanos::millis(1);
/// `NOTIFY_DEVICEID4_CHANGE` as a mask.
const CHANGE: u32 = 2;
/// `SEQ4_STATUS_RECALLABLE_STATE_REVOKED`. RFC 8881, 18.46.3.
const REVOKED: u32 = 0x40;

impl Node {
    fn holders(&self, device: u64) -> Vec<(Arc<Client>, u64, u32)> {
        let mut found = Vec::new();
        for client in self.v4.all_clients() {
            let layouts = lock(&client.layouts);
            let of_device = layouts.iter().filter(|(_, held)| held.device == device);
            found.extend(of_device.map(|(&file, held)| (client.clone(), file, held.sequence)));
        }
        found
    }

    /// Recalls all layouts on `device` that this node gave; `only` limits it to one file. Result: how many.
    pub(crate) fn recall(&self, device: u64, kind: u32, only: Option<u64>) -> usize {
        let mut holders = self.holders(device);
        holders.retain(|&(_, file, _)| only.is_none_or(|only| only == file));
        for (client, file, sequence) in &holders {
            self.tell(client, CB_LAYOUTRECALL, |w| {
                w.u32(kind);
                w.u32(3); // To read and to write.
                w.bool(true);
                w.u32(1);
                Place::of(*file).encode(w);
                w.u64(0);
                w.u64(u64::MAX);
                w.fixed(&layout_state(sequence.wrapping_add(1), self.index, *file));
            });
        }
        holders.len()
    }

    /// Whether layouts on `device` are still out.
    pub(crate) fn is_held(&self, device: u64, only: Option<u64>) -> bool {
        self.holders(device).iter().any(|&(_, file, _)| only.is_none_or(|only| only == file))
    }

    /// Takes layouts on `device` away from those who did not give them back.
    pub(crate) fn revoke(&self, device: u64, only: Option<u64>) {
        for (client, file, _) in self.holders(device) {
            if only.is_none_or(|only| only == file) {
                lock(&client.layouts).remove(&file);
                client.flags.fetch_or(REVOKED, Ordering::Relaxed);
            }
        }
    }

    /// Tells all who have layouts on `device` that it is elsewhere now. Result: how many clients.
    pub(crate) fn notify(&self, device: u64, published: u32, stripes: usize, kind: u32) -> usize {
        let clients = self.clients_of(device);
        for client in &clients {
            self.tell(client, CB_NOTIFY_DEVICEID, |w| {
                let names: Vec<u32> =
                    if kind == super::layout::FILES { vec![0] } else { (1..=stripes as u32).collect() };
                w.u32(names.len() as u32);
                for stripe in names {
                    w.u32(1);
                    w.u32(CHANGE);
                    let mut value = Writer::new();
                    value.u32(kind);
                    value.fixed(&device_name(device, published, stripe));
                    value.bool(true);
                    w.opaque(value.bytes());
                }
            });
        }
        clients.len()
    }

    /// Says in each reply to those who have layouts on `device` that devices have changed.
    pub(crate) fn flag(&self, device: u64) -> usize {
        let clients = self.clients_of(device);
        clients.iter().for_each(|client| {
            client.flags.fetch_or(DEVICE_FLAGS & 0x800, Ordering::Relaxed);
        });
        clients.len()
    }

    fn clients_of(&self, device: u64) -> Vec<Arc<Client>> {
        let mut clients: Vec<Arc<Client>> = Vec::new();
        for (client, ..) in self.holders(device) {
            if !clients.iter().any(|other| Arc::ptr_eq(other, &client)) {
                clients.push(client);
            }
        }
        clients
    }

    /// One callback by whichever session has a way back; what the client said.
    pub(super) fn tell(&self, client: &Arc<Client>, op: u32, encode: impl Fn(&mut Writer)) -> Option<Status> {
        count(&self.counters.callbacks);
        let sessions = self.v4.all_sessions();
        let mut its = sessions.iter().filter(|session| Arc::ptr_eq(&session.client, client));
        its.find_map(|session| call_back(session, op, &encode))
    }

    /// Tries the way back that `session` has now, by a thread of its own: this one has a call to answer.
    pub(super) fn probe(&self, session: &Arc<Session>) {
        let back = lock(&session.back);
        let Some(line) = back.line() else { return };
        let null = Procedure { program: back.program, version: 1, number: 0 };
        drop(back);
        count(&self.counters.callbacks);
        let client = session.client.clone();
        let thread = std::thread::Builder::new().name(format!("node {} probe", name(self.index)));
        // One that is not tried is taken to be good.
        let _ = thread.spawn(move || {
            if line.call(null, |_| {}, PATIENCE).is_none() && line.is_up() {
                client.flags.fetch_or(CB_PATH_DOWN, Ordering::Relaxed);
            }
        });
    }
}

/// None where the session has no way back, or nothing came back in time.
fn call_back(session: &Session, op: u32, encode: impl Fn(&mut Writer)) -> Option<Status> {
    // One call at a time: the channel has one slot.
    let _one = lock(&session.calling);
    let (mut line, program, sequence) = {
        let back = lock(&session.back);
        (back.line(), back.program, back.sequence.wrapping_add(1))
    };
    let procedure = Procedure { program, version: 1, number: 1 };
    let compound = |w: &mut Writer| {
        w.opaque(&[]);
        for word in [1, 0, 2, CB_SEQUENCE] {
            w.u32(word);
        }
        w.fixed(&session.id);
        for word in [sequence, 0, 0, 0, 0] {
            w.u32(word);
        }
        w.u32(op);
        encode(w);
    };
    let deadline = clock::now() + PATIENCE;
    let results = loop {
        let results = line.as_ref()?.call(procedure, compound, deadline - clock::now());
        if results.is_some() || clock::now() >= deadline {
            break results?;
        }
        // The connection broke. The client comes back with another, and gets the same call there.
        loop {
            clock::sleep(LOOK);
            line = lock(&session.back).line();
            if line.as_ref().is_some_and(|line| line.is_up()) || clock::now() >= deadline {
                break;
            }
        }
    };
    lock(&session.back).sequence = sequence;
    Reader::new(&results).u32().ok().map(Status)
}
