//! Follows the data: layouts are got, looked at again for one of five reasons ([`Cause`]), given back, and got anew. Done by the mount's keeper; workers
//! only send what they are told.

use super::caller::Trouble;
use super::control::Control;
use super::error::NfsError;
use super::file::{FileState, lock};
use super::keeper::Bell;
use super::layouts::{Cause, DataServer, InForce, Todo};
use super::mount::{Shared, refused};
use crate::Status;
use crate::v4::callback::Asked;
use crate::v4::compound::Compound;
use crate::v4::layout::{Layout, LayoutKind};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};
use units::{Nanos, clock};

/// Longest that the keeper waits for one answer about a layout.
const ANSWER_MAX: Nanos = Nanos::millis(5_000);
/// How soon a layout is asked for again that the server has no time for.
const CONFLICT: Nanos = Nanos::millis(1);
/// Longest that workers wait for a layout; then they go to the server that was mounted.
const HELD_MAX: Nanos = Nanos::millis(2_000);
/// How soon one is asked for again that the server refused.
const REFUSED: Nanos = Nanos::millis(1_000);
/// Moves that are remembered.
const FOLLOWED_MAX: usize = 4096;
/// `SEQ4_STATUS_…`: no way back to us, layouts revoked, the lease moved, devices changed or deleted. RFC 8881, 18.46.3.
pub(super) const FLAGS: u32 = 0x1 | 0x40 | 0x80 | 0x800 | 0x1000;

/// How often a layout was looked at, by reason, and what came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PnfsCounters {
    /// Layouts that were got.
    pub layouts: u64,
    /// Recalls of the server.
    pub recalls: u64,
    /// Notifications that a device has changed.
    pub notifications: u64,
    /// Times that a data server refused or was gone, and the layout was doubted.
    pub data_server_errors: u64,
    /// Times that a reply's flags raised doubt.
    pub flags: u64,
    /// Times that the layout was looked at because it was time.
    pub refreshes: u64,
    /// Times that data was found elsewhere, for whatever reason.
    pub moves: u64,
}

/// Data was found elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Followed {
    /// When requests went to the new place.
    pub at: Nanos,
    /// Which file.
    pub path: String,
    /// What made us look.
    pub cause: Cause,
    /// The servers of its stripes before.
    pub from: Vec<SocketAddr>,
    /// And after.
    pub to: Vec<SocketAddr>,
    /// How long requests had to wait, or, where a data server refused, went by the server that was mounted. 0 where nothing was stopped.
    pub stall: Nanos,
    /// Bytes that went by the old layout since it was last known to be right: of a silent move, these may have gone to the wrong node.
    pub unsure_bytes: u64,
}

/// Of a mount that does pNFS.
pub(super) struct Pnfs {
    pub(super) kind: LayoutKind,
    pub(super) refresh: Nanos,
    counters: Mutex<PnfsCounters>,
    followed: Mutex<VecDeque<Followed>>,
    /// Flags that workers saw.
    flags: AtomicU32,
    /// Workers to be woken.
    bells: Mutex<Vec<Weak<Bell>>>,
}

impl Pnfs {
    pub(super) fn new(kind: LayoutKind, refresh: Nanos) -> Self {
        Self {
            kind,
            refresh,
            counters: Mutex::default(),
            followed: Mutex::default(),
            flags: 0.into(),
            bells: Mutex::default(),
        }
    }

    pub(super) fn counters(&self) -> PnfsCounters {
        *lock(&self.counters)
    }

    pub(super) fn followed(&self) -> Vec<Followed> {
        lock(&self.followed).iter().cloned().collect()
    }

    /// Whether flags that a worker saw are new.
    pub(super) fn saw(&self, flags: u32) -> bool {
        flags & FLAGS & !self.flags.fetch_or(flags & FLAGS, Ordering::AcqRel) != 0
    }

    pub(super) fn wake(&self, bell: &Arc<Bell>) {
        lock(&self.bells).push(Arc::downgrade(bell));
    }

    fn ring(&self) {
        lock(&self.bells).retain(|bell| bell.upgrade().map(|bell| bell.ring()).is_some());
    }

    fn count(&self, file: &FileState, cause: Cause) {
        file.layouts.looked(cause);
        let mut counters = lock(&self.counters);
        *match cause {
            Cause::Recall => &mut counters.recalls,
            Cause::Notification => &mut counters.notifications,
            Cause::DataServer => &mut counters.data_server_errors,
            Cause::Flags => &mut counters.flags,
            Cause::Refresh => &mut counters.refreshes,
        } += 1;
    }

    /// Puts a layout in force, and tells where that leads elsewhere.
    fn publish(
        &self,
        file: &FileState,
        new: InForce,
        old: Option<&InForce>,
        went_back: bool,
        (cause, since): (Cause, Nanos),
    ) {
        lock(&self.counters).layouts += 1;
        if let Some(old) = old.filter(|old| old.servers != new.servers) {
            let addresses = |it: &InForce| it.servers.iter().map(|server| server.addresses[0]).collect();
            let at = clock::now();
            let stopped = matches!(cause, Cause::Recall | Cause::DataServer);
            let followed = Followed {
                at,
                path: file.path.clone(),
                cause,
                from: addresses(old),
                to: addresses(&new),
                stall: if stopped { at - since } else { Nanos(0) },
                unsure_bytes: old.bytes(),
            };
            lock(&self.counters).moves += 1;
            file.layouts.moved();
            let mut all = lock(&self.followed);
            if all.len() == FOLLOWED_MAX {
                all.pop_front();
            }
            all.push_back(followed);
        }
        file.layouts.publish(new, went_back);
        self.ring();
    }
}

impl Shared {
    /// Gets the first layout of a file that a worker is going to use. One that is refused is no error: the server that was mounted has all of it.
    pub(super) fn first_layout(&self, file: &Arc<FileState>) -> Result<(), NfsError> {
        let Some(pnfs) = &self.pnfs else { return Ok(()) };
        if file.layouts.is_wanted() {
            return Ok(());
        }
        let mut control = self.control();
        let limit = self.way.limit;
        let got = control
            .perform("LAYOUTGET", limit, |control, deadline| control.lay_out(pnfs, file, None, deadline))?;
        file.layouts.want();
        match got {
            Ok(new) => pnfs.publish(file, new, None, true, (Cause::Recall, clock::now())),
            Err(fault) => self.without(&mut control, file, &fault.into()),
        }
        drop(control);
        self.wake_keeper();
        Ok(())
    }

    /// Tells the server how far data servers wrote, by whichever layout there is now.
    pub(super) fn tell_size(&self, file: &FileState) -> Result<(), NfsError> {
        let Some(pnfs) = self.pnfs.as_ref().filter(|_| file.layouts.is_dirty()) else { return Ok(()) };
        let told = self.control().perform("LAYOUTCOMMIT", self.way.limit, |control, deadline| {
            match file.layouts.held() {
                Some(held) => control.tell_writes(file, &held, deadline),
                // The one that it was written by is gone, and so may be the server that gave it.
                None => {
                    let now = control.lay_out(pnfs, file, None, deadline)?;
                    control.tell_writes(file, &now, deadline)?;
                    control.return_layout(file, &now, deadline)
                }
            }
        })?;
        match told {
            // A layout that is gone by now was told of when it went back.
            Err(fault) if file.layouts.is_dirty() => Err(refused(&file.path, fault)),
            _ => Ok(()),
        }
    }

    /// A data server refused, or was gone: looks whether the file is elsewhere.
    pub(super) fn doubt(&self, file: &FileState) {
        if let Some(pnfs) = &self.pnfs
            && file.layouts.suspect(Cause::DataServer, clock::now())
        {
            pnfs.count(file, Cause::DataServer);
            self.wake_keeper();
        }
    }

    /// Writes were sent to a data server, and their replies did not come: before they go another way, the layout has to be back, so that none of them is
    /// done later than what follows. Result: how many layouts had gone back before; none where it is back already.
    pub(super) fn fence(&self, file: &FileState) -> Option<u64> {
        let (pnfs, before) = (self.pnfs.as_ref()?, file.layouts.returns());
        let is_held = file.layouts.stop(Cause::DataServer, clock::now());
        is_held.then(|| {
            pnfs.count(file, Cause::DataServer);
            self.wake_keeper();
            before
        })
    }

    /// Does what there is to do for layouts; when it should be called again, if nothing happens before.
    pub(super) fn follow(&self, control: &mut Control) -> Option<Nanos> {
        let pnfs = self.pnfs.as_ref()?;
        self.listen(pnfs, control);
        let mut due: Option<Nanos> = None;
        for file in control.files.clone() {
            let now = clock::now();
            let next = match file.layouts.todo(now, pnfs.refresh) {
                Todo::Nothing => None,
                Todo::Later(then) => Some(then),
                Todo::Get => self.get(pnfs, control, &file),
                Todo::Return(old, cause, since) => self.give_back(pnfs, control, &file, &old, (cause, since)),
                Todo::Check(old, cause, since) => self.check(pnfs, control, &file, &old, (cause, since)),
            };
            // What was published is looked at when it is due.
            let next = next.or_else(|| match file.layouts.todo(clock::now(), pnfs.refresh) {
                Todo::Later(then) => Some(then),
                Todo::Nothing => None,
                _ => Some(clock::now()),
            });
            due = [due, next].into_iter().flatten().min();
        }
        due
    }

    /// What the server asked, and what flags say.
    fn listen(&self, pnfs: &Pnfs, control: &mut Control) {
        let now = clock::now();
        for asked in control.take_asked() {
            for file in &control.files {
                let concerned = match &asked {
                    Asked::Recall(which) => {
                        which.is_none_or(|handle| handle == file.handle)
                            && file.layouts.stop(Cause::Recall, now)
                    }
                    Asked::Device(device) => {
                        file.layouts.held().is_some_and(|held| held.uses(*device))
                            && file.layouts.suspect(Cause::Notification, now)
                    }
                };
                if concerned {
                    let recalled = matches!(asked, Asked::Recall(_));
                    pnfs.count(file, if recalled { Cause::Recall } else { Cause::Notification });
                }
            }
        }
        let flags = pnfs.flags.swap(0, Ordering::AcqRel) | std::mem::take(&mut control.identity.flags);
        if flags & FLAGS != 0 {
            for file in &control.files {
                if file.layouts.suspect(Cause::Flags, now) {
                    pnfs.count(file, Cause::Flags);
                }
            }
        }
    }

    fn get(&self, pnfs: &Pnfs, control: &mut Control, file: &Arc<FileState>) -> Option<Nanos> {
        let got = control.lay_out(pnfs, file, None, clock::now() + ANSWER_MAX);
        match got {
            Ok(new) => pnfs.publish(file, new, None, true, (Cause::Recall, clock::now())),
            Err(trouble) => self.without(control, file, &trouble),
        }
        None
    }

    /// 1. what data servers wrote is told, 2. the layout goes back, 3. another one is got: where it is too early for that, workers wait a moment.
    fn give_back(
        &self,
        pnfs: &Pnfs,
        control: &mut Control,
        file: &Arc<FileState>,
        old: &Arc<InForce>,
        (cause, since): (Cause, Nanos),
    ) -> Option<Nanos> {
        let deadline = clock::now() + ANSWER_MAX;
        if control.holds(file) {
            let _ = control.tell_writes(file, old, deadline);
            // One that the server no longer knows is back.
            if let Err(Trouble::Lost(why)) = control.return_layout(file, old, deadline) {
                self.without(control, file, &Trouble::Lost(why));
                return None;
            }
        }
        file.layouts.returned();
        match control.lay_out(pnfs, file, None, deadline) {
            Ok(new) => pnfs.publish(file, new, Some(old), true, (cause, since)),
            Err(trouble) if is_early(&trouble) && clock::now() < since + HELD_MAX => {
                let again = clock::now() + CONFLICT;
                file.layouts.wait(again);
                return Some(again);
            }
            Err(trouble) => self.without(control, file, &trouble),
        }
        None
    }

    fn check(
        &self,
        pnfs: &Pnfs,
        control: &mut Control,
        file: &Arc<FileState>,
        old: &Arc<InForce>,
        (cause, since): (Cause, Nanos),
    ) -> Option<Nanos> {
        if cause == Cause::Refresh {
            pnfs.count(file, cause);
        }
        let deadline = clock::now() + ANSWER_MAX;
        let seen = if cause == Cause::Notification {
            // The layout holds; what the device is has changed.
            let layout = Layout { state: old.state(), ..old.layout.clone() };
            control.servers_of(&layout, deadline).map(|servers| InForce::new(layout, servers, clock::now()))
        } else {
            control.lay_out(pnfs, file, Some(old), deadline)
        };
        let seen = match seen {
            // A device or layout of before: everything anew.
            Err(Trouble::Fault(_)) => control.lay_out(pnfs, file, None, deadline),
            other => other,
        };
        match seen {
            Ok(new) if new.is_like(old) => {
                file.layouts.confirm(old, new.layout.state, clock::now());
                // The server does not know what its data server refuses: it is told with the layout's return.
                if new.layout.kind == LayoutKind::Flexible && file.layouts.has_refused() {
                    file.layouts.stop(cause, since);
                }
            }
            Ok(new) => pnfs.publish(file, new, Some(old), false, (cause, since)),
            Err(trouble) if is_early(&trouble) => {
                // A recall is on its way.
                file.layouts.suspect(cause, since);
            }
            Err(trouble) => self.without(control, file, &trouble),
        }
        // The flags of these very replies were answered by them.
        control.identity.flags = 0;
        None
    }

    /// There is no layout; everything goes to the server that was mounted.
    fn without(&self, control: &mut Control, file: &FileState, trouble: &Trouble) {
        match trouble {
            Trouble::Lost(why) => control.hang_up(why),
            // Mirrors, a kind that we do not speak, or there is none.
            why => self.way.alerts.say(format!(
                "{}: no layout that can be used: {why}; its requests go by {}",
                file.path, self.way.target.server
            )),
        }
        file.layouts.none(clock::now() + REFUSED);
        self.pnfs.iter().for_each(Pnfs::ring);
    }
}

fn is_early(trouble: &Trouble) -> bool {
    let early = [Status::RECALLCONFLICT, Status::LAYOUTTRYLATER, Status::DELAY];
    matches!(trouble, Trouble::Fault(fault) if fault.status().is_some_and(|status| early.contains(&status)))
}

impl Control {
    fn take_asked(&mut self) -> Vec<Asked> {
        if self.caller.is_some() { lock(&self.identity.back).take_asked() } else { Vec::new() }
    }

    fn holds(&self, file: &FileState) -> bool {
        self.caller.is_some() && lock(&self.identity.back).holds(&file.handle)
    }

    /// LAYOUTGET and GETDEVICEINFO. With `old`, the layout that is held is asked for once more.
    fn lay_out(
        &mut self,
        pnfs: &Pnfs,
        file: &FileState,
        old: Option<&InForce>,
        deadline: Nanos,
    ) -> Result<InForce, Trouble> {
        self.introduce(deadline)?;
        let state = old.map_or_else(|| file.state().0, InForce::state);
        // Before the reply: a recall may overtake it.
        lock(&self.identity.back).hold(file.handle);
        let build = |c: &mut Compound<'_>| c.layout_get(&file.handle, pnfs.kind, file.write, state);
        let got = self.compound(deadline, build, |results| results.layout_got());
        if got.is_err() && old.is_none() {
            lock(&self.identity.back).release(&file.handle);
        }
        let layout = got?;
        let servers = self.servers_of(&layout, deadline)?;
        Ok(InForce::new(layout, servers, clock::now()))
    }

    /// The server of each stripe, and which of the layout's stripes has its handle.
    fn servers_of(&mut self, layout: &Layout, deadline: Nanos) -> Result<Vec<(DataServer, usize)>, Trouble> {
        let mut servers = Vec::new();
        for (index, stripe) in layout.stripes.iter().enumerate() {
            let build = |c: &mut Compound<'_>| c.device_info(stripe.device, layout.kind);
            let device = self.compound(deadline, build, |results| results.device())?;
            let of_files = layout.kind == LayoutKind::Files;
            let handles = if of_files { layout.handles(&device)? } else { vec![index; device.stripes.len()] };
            let server = |addresses| DataServer { addresses, v3: device.v3 };
            servers.extend(device.stripes.into_iter().map(server).zip(handles));
            // One device has all stripes of a layout of files.
            if of_files {
                break;
            }
        }
        Ok(servers)
    }

    fn return_layout(&mut self, file: &FileState, old: &InForce, deadline: Nanos) -> Result<(), Trouble> {
        let (kind, state) = (old.layout.kind, old.state());
        let faults = file.layouts.take_refused();
        let build = |c: &mut Compound<'_>| c.layout_return(&file.handle, kind, state, &faults);
        let done = self.compound(deadline, build, |results| results.layout_returned());
        lock(&self.identity.back).release(&file.handle);
        done
    }

    /// Tells the server how far data servers wrote.
    pub(super) fn tell_writes(
        &mut self,
        file: &FileState,
        by: &InForce,
        deadline: Nanos,
    ) -> Result<(), Trouble> {
        let end = file.layouts.take_dirty();
        if end == 0 {
            return Ok(());
        }
        let (kind, state) = (by.layout.kind, by.state());
        let build = |c: &mut Compound<'_>| c.layout_commit(&file.handle, kind, state, end);
        let told = self.compound(deadline, build, |results| results.layout_committed());
        match &told {
            Ok(()) => file.layouts.told(end),
            Err(_) => file.layouts.wrote(end),
        }
        told
    }

    /// Before a file is closed.
    pub(super) fn end_layout(&mut self, file: &FileState, deadline: Nanos) {
        let Some(held) = file.layouts.held() else { return };
        if self.caller.is_some() && self.holds(file) {
            let _ = self.tell_writes(file, &held, deadline);
            let _ = self.return_layout(file, &held, deadline);
        }
        file.layouts.none(Nanos(u64::MAX));
    }

    /// Whether a server of metadata was found where layouts are wanted, and which kind it has.
    pub(super) fn layout_kind(&self, kinds: &[u32]) -> Result<LayoutKind, NfsError> {
        let found = kinds.iter().find_map(|&kind| match kind {
            1 => Some(LayoutKind::Files),
            4 => Some(LayoutKind::Flexible),
            _ => None,
        });
        found.ok_or_else(|| NfsError::Version {
            server: self.way.target.server.clone(),
            wanted: self.way.target.version,
            said: format!(
                "it offers layouts of kinds {kinds:?}; files (1) and flexible files (4) are spoken here"
            ),
        })
    }
}
