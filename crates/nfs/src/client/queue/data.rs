//! Requests that go by a layout to data servers: which one, over which connection, and what happens when it refuses or is gone: then they take the way
//! by the server that was mounted, which has all of every file, and the layout is doubted.

use super::judge::{Verdict, judge};
use super::landing;
use super::link::Link;
use super::{FileInUse, Phase, Queue, Slot, Templates, ended};
use crate::client::channel::{Cells, ChannelCounters, ChannelState};
use crate::client::connection::{Wait, broken};
use crate::client::file::Place;
use crate::client::layouts::{DataServer, InForce, View};
use crate::client::mount::Shared;
use crate::client::target::Version;
use crate::rpc::reply::{self, Message};
use crate::transfer::Stability;
use crate::v4::compound::Op;
use crate::v4::layout::{IoFault, Spot};
use crate::v4::recovery::{Remedy, remedy};
use crate::{Fault, Status, v3, v4};
use io::{Action, Completion, Outcome};
use std::sync::Arc;
use units::{Nanos, clock};

/// How long a data server that cannot be reached is left alone.
const DEAD: Nanos = Nanos::millis(1_000);
/// How long requests go another way after a data server refused one, unless another layout comes before.
const AVOIDED: Nanos = Nanos::millis(100);

/// A connection to a data server.
pub(super) struct Channel {
    server: DataServer,
    pub(super) link: Option<Link>,
    /// Goes up with each link.
    made: u64,
    dead_until: Nanos,
    /// That it is down has been told.
    down: bool,
    pub(super) cells: Arc<Cells>,
}

impl Channel {
    /// Told once, however often it is tried.
    fn is_down(&mut self, shared: &Shared, why: &str) {
        if !std::mem::replace(&mut self.down, true) {
            let (server, cells) = (&shared.way.target.server, &self.cells);
            shared
                .way
                .alerts
                .say(format!("channel to data server, {cells} is DOWN: {why}; its requests go by {server}"));
            self.cells.set(ChannelState::Down);
        }
    }

    fn is_up(&mut self, shared: &Shared) {
        if std::mem::replace(&mut self.down, false) {
            shared.way.alerts.say(format!("channel to data server, {} is UP again", self.cells));
        }
    }

    fn version(&self) -> Version {
        if self.server.v3 { Version::V3 } else { Version::V41 }
    }
}

/// The layout of a file as this worker knows it.
pub(super) struct Roads {
    epoch: u64,
    view: View,
    stripes: Vec<Option<Stripe>>,
}

impl Default for Roads {
    fn default() -> Self {
        Self { epoch: u64::MAX, view: View::Server, stripes: Vec::new() }
    }
}

impl Roads {
    pub(super) fn target(&self, stripe: usize) -> Arc<Place> {
        let known = self.stripes.get(stripe).and_then(Option::as_ref);
        known.map_or_else(|| Arc::new(Place::Server), |known| known.target.clone())
    }

    pub(super) fn templates(&self, stripe: usize) -> Option<&Templates> {
        self.stripes.get(stripe)?.as_ref().map(|known| &known.templates)
    }
}

pub(super) struct Stripe {
    channel: usize,
    /// Of the channel, when the templates were made.
    made: u64,
    pub(super) target: Arc<Place>,
    pub(super) templates: Templates,
}

/// Where a request goes now.
pub(super) enum Road {
    Wait(Nanos),
    Server,
    Data {
        channel: usize,
        spot: Spot,
    },
    /// A commit.
    Commit {
        channel: usize,
    },
}

/// The layout that a request in flight goes by.
pub(super) struct By {
    in_force: Arc<InForce>,
    epoch: u64,
}

impl Queue {
    /// Chooses a road. One by a layout has been entered.
    pub(super) fn road(&mut self, index: u32, now: Nanos) -> Road {
        let slot = &self.slots[index as usize];
        let file = slot.request.file as usize;
        if slot.request.action == Action::Sync {
            return self.commit_road(index, now);
        }
        let layouts = &self.files[file].open.state.layouts;
        if slot.fence.is_some_and(|returns| layouts.returns() == returns) {
            return Road::Wait(Nanos(0));
        }
        if self.shared.pnfs.is_none() || slot.detour {
            return Road::Server;
        }
        let offset = slot.request.offset + u64::from(slot.done);
        loop {
            self.look(file);
            let roads = &self.files[file].roads;
            let (by, epoch) = match &roads.view {
                View::Server => return Road::Server,
                // Its bell rings.
                View::Held => return Road::Wait(Nanos(0)),
                View::Data(by) => (by.clone(), roads.epoch),
            };
            let Some(spot) = by.spot(offset).filter(|_| !by.is_avoided(now)) else {
                self.network.detours += 1;
                return Road::Server;
            };
            let Some(channel) = self.channel_of(file, spot.stripe, &by, now) else {
                self.network.detours += 1;
                self.shared.doubt(&self.files[file].open.state);
                return Road::Server;
            };
            if self.files[file].open.state.layouts.enter(&by, epoch) {
                self.slots[index as usize].by = Some(By { in_force: by, epoch });
                return Road::Data { channel, spot };
            }
        }
    }

    fn look(&mut self, file: usize) {
        let FileInUse { open, roads, .. } = &mut self.files[file];
        let epoch = open.state.layouts.epoch();
        if roads.epoch != epoch {
            let view = open.state.layouts.view();
            let count = if let View::Data(by) = &view { by.servers.len() } else { 0 };
            *roads = Roads { epoch, view, stripes: (0..count).map(|_| None).collect() };
        }
    }

    /// The channel for a stripe, with its templates made.
    fn channel_of(&mut self, file: usize, stripe: usize, by: &InForce, now: Nanos) -> Option<usize> {
        if let Some(Some(known)) = self.files[file].roads.stripes.get(stripe) {
            let channel = &self.data[known.channel];
            if channel.link.is_some() && channel.made == known.made {
                return Some(known.channel);
            }
        }
        let server = &by.servers[stripe];
        let channel = self.channel(server, now)?;
        let state = &self.files[file].open.state;
        let its = by.of_stripe(stripe);
        let handle = its.handle.unwrap_or(state.handle);
        let id = its.state.unwrap_or_else(|| state.state().0);
        let target = Arc::new(Place::Data(server.clone(), handle));
        let templates = self.data_templates(channel, &handle, id);
        let made = self.data[channel].made;
        self.files[file].roads.stripes[stripe] = Some(Stripe { channel, made, target, templates });
        Some(channel)
    }

    fn data_templates(&self, channel: usize, handle: &crate::Handle, id: v4::open::StateId) -> Templates {
        let credential = &self.shared.way.credential;
        let channel = &self.data[channel];
        let plain = self.options.stability;
        if channel.server.v3 {
            return Templates::v3(handle, plain, credential);
        }
        let session = channel.link.as_ref().and_then(Link::in_session);
        Templates {
            read: v4::transfer::read(handle, id, session, credential),
            write: v4::transfer::write(handle, id, plain, session, credential),
            write_durable: v4::transfer::write(handle, id, plain.max(Stability::Data), session, credential),
            commit: v4::transfer::commit(handle, session, credential),
        }
    }

    /// The channel to `server`, connected; none while it cannot be reached.
    fn channel(&mut self, server: &DataServer, now: Nanos) -> Option<usize> {
        let known = self.data.iter().position(|channel| channel.server == *server);
        let index = known.unwrap_or_else(|| {
            let cells = self.shared.channels.add(self.worker, server.addresses[0], true);
            let server = server.clone();
            self.data.push(Channel { server, link: None, made: 0, dead_until: Nanos(0), down: false, cells });
            self.data.len() - 1
        });
        let channel = &mut self.data[index];
        if channel.link.is_none() {
            if now < channel.dead_until || self.closing {
                return None;
            }
            match Link::data(&self.shared, server, self.options.depth) {
                Ok(link) => {
                    channel.cells.connected(link.connection.local());
                    channel.link = Some(link);
                    channel.made += 1;
                    channel.is_up(&self.shared);
                    self.network.reconnects += u64::from(channel.made > 1);
                }
                Err(why) => {
                    channel.is_down(&self.shared, &why.to_string());
                    channel.dead_until = clock::now() + DEAD;
                    return None;
                }
            }
        }
        Some(index)
    }

    /// Commits go to each server that has uncommitted writes of the file, one after the other.
    fn commit_road(&mut self, index: u32, now: Nanos) -> Road {
        let slot = &mut self.slots[index as usize];
        let file = slot.request.file as usize;
        let state = &self.files[file].open.state;
        let commits = slot.commits.get_or_insert_with(|| state.uncommitted.commits());
        if let Some((place, covers)) = commits.last().cloned() {
            (slot.covers, slot.target) = (covers, Arc::new(place.clone()));
            let Place::Data(server, handle) = place else { return Road::Server };
            if let Some(channel) = self.channel(&server, now) {
                self.commit = self.data_templates(channel, &handle, v4::open::StateId::default()).commit;
                return Road::Commit { channel };
            }
            // What it has in memory is out of reach: it is written again before the sync ends.
            self.files[file].open.state.uncommitted.committed(&Place::Data(server, handle), None, covers);
            let slot = &mut self.slots[index as usize];
            slot.next_commit();
            return self.commit_road(index, now);
        }
        (slot.covers, slot.target) = (0, self.home.clone());
        Road::Server
    }

    pub(super) fn flush_data(&mut self, channel: usize) -> std::io::Result<()> {
        let slots = &self.slots;
        match &mut self.data[channel].link {
            Some(link) => link.connection.flush(|slot| &slots[slot as usize].buffer),
            None => Ok(()),
        }
    }

    /// Sends and takes what can be; whether anything arrived.
    pub(super) fn progress_data(&mut self, channel: usize, wait: Wait, done: &mut Vec<Completion>) -> bool {
        let flushed = self.flush_data(channel);
        let Some(Link { connection, .. }) = &mut self.data[channel].link else { return false };
        let arrived = flushed.and_then(|()| connection.fill(wait, landing::buffer(&mut self.slots)));
        let taken = self.take_data_replies(channel, done);
        let heard = arrived.as_ref().is_ok_and(|&heard| heard);
        if let Err(why) = arrived.and(taken) {
            self.lose_data(channel, DEAD, &why.to_string());
        }
        heard
    }

    fn take_data_replies(&mut self, channel: usize, done: &mut Vec<Completion>) -> std::io::Result<()> {
        let version = self.data[channel].version();
        let Channel { link, cells, .. } = &mut self.data[channel];
        let Some(Link { connection, session, .. }) = link else { return Ok(()) };
        let mut session_is_gone = false;
        let now = clock::now();
        while let Some(message) = connection.records.message().map_err(broken)? {
            let Message::Reply { xid, result } = reply::decode(message).map_err(broken)? else { continue };
            let Some(index) = self.xids.slot(xid) else { continue };
            let slot = &mut self.slots[index as usize];
            if slot.phase != Phase::Flying || slot.at != Some(channel) {
                continue;
            }
            self.network.receives += 1;
            connection.flying -= 1;
            let file = &self.files[slot.request.file as usize].open.state;
            let before = slot.done;
            let (verdict, begun) = match result {
                Ok(reader) => judge(version, slot, file, reader),
                Err(_) => (Err(Fault::Refused { status: crate::Status::IO, call: "a data server" }), true),
            };
            if let Some(session) = session {
                session.ended(slot.place, begun);
            }
            cells.received(slot.request.action, slot.done - before, now - slot.sent);
            if let Some(By { in_force, .. }) = &slot.by {
                in_force.count(slot.done - before);
                if slot.done > before && matches!(slot.request.action, Action::Write | Action::WriteDsync) {
                    file.layouts.wrote(slot.request.offset + u64::from(slot.done));
                }
            }
            slot.phase = Phase::Held(Nanos(0));
            let fault = match verdict {
                // It ends where this server has nothing more of it: behind a hole, too. The server that was mounted knows the file's end.
                Ok(Verdict::End(Outcome::Short(_))) => {
                    slot.detour = true;
                    self.network.detours += 1;
                    land(slot, &self.files, &self.shared);
                    continue;
                }
                Ok(Verdict::End(outcome)) => {
                    land(slot, &self.files, &self.shared);
                    self.in_flight -= 1;
                    done.push(ended(slot, index, outcome));
                    continue;
                }
                Ok(_) => {
                    land(slot, &self.files, &self.shared);
                    continue;
                }
                Err(fault) => fault,
            };
            let of_session = fault.status().map(remedy).is_some_and(|it| it >= Remedy::Session);
            session_is_gone |= of_session;
            if slot.request.action == Action::Sync {
                if !of_session {
                    // The file is elsewhere, or it has lost it: what it had is written again before the sync ends.
                    file.uncommitted.committed(&slot.target, None, slot.covers);
                    if !slot.next_commit() {
                        self.in_flight -= 1;
                        done.push(ended(slot, index, Outcome::Full));
                    }
                }
                continue;
            }
            if let Some(By { in_force, .. }) = &slot.by
                && !of_session
            {
                in_force.avoid_until(clock::now() + AVOIDED);
                let status = fault.status().unwrap_or(Status::IO);
                file.layouts.refused(io_fault(slot, in_force, status));
            }
            slot.detour = true;
            self.network.detours += 1;
            self.shared.doubt(file);
            land(slot, &self.files, &self.shared);
        }
        landing::begin(connection, version, Some(channel), &self.xids, &mut self.slots);
        if session_is_gone {
            // Another one is made at once.
            self.lose_data(channel, Nanos(0), "it does not know our session any more");
        }
        Ok(())
    }

    /// A data server is gone: what it was asked takes the other way, and it is left alone for a while.
    pub(super) fn lose_data(&mut self, channel: usize, dead: Nanos, why: &str) {
        self.data[channel].is_down(&self.shared, why);
        let server = &self.data[channel].server;
        self.files.iter().for_each(|file| file.open.state.uncommitted.gone(server));
        self.data[channel].link = None;
        self.data[channel].dead_until = clock::now() + dead;
        for slot in
            self.slots.iter_mut().filter(|slot| slot.at == Some(channel) && slot.phase == Phase::Flying)
        {
            slot.phase = Phase::Held(Nanos(0));
            self.network.replays += 1;
            self.data[channel].cells.replayed();
            let state = &self.files[slot.request.file as usize].open.state;
            if slot.request.action != Action::Sync {
                slot.detour = true;
                self.network.detours += 1;
                if let Some(By { in_force, .. }) = &slot.by {
                    state.layouts.refused(io_fault(slot, in_force, Status::NXIO));
                }
                if matches!(slot.request.action, Action::Write | Action::WriteDsync) {
                    slot.fence = self.shared.fence(state);
                } else {
                    self.shared.doubt(state);
                }
            }
            land(slot, &self.files, &self.shared);
        }
    }

    /// Syncs that went well at all servers end well when what these had lost is written again, and the server that was mounted knows how far data
    /// servers wrote.
    pub(super) fn end_syncs(&mut self, done: &mut [Completion]) {
        for Completion { slot, outcome } in done {
            let request = &self.slots[*slot as usize].request;
            if request.action == Action::Sync && *outcome == Outcome::Full {
                let state = &self.files[request.file as usize].open.state;
                let ended = self.shared.mend(state).and_then(|()| self.shared.tell_size(state));
                if let Err(error) = ended {
                    *outcome = Outcome::Errno(error.errno());
                    self.trouble = Some(error);
                }
            }
        }
    }

    /// What went over each channel: first those to the server that was mounted, then those to data servers.
    pub fn channels(&self) -> Vec<ChannelCounters> {
        let data = self.data.iter().map(|channel| &channel.cells);
        self.paths.iter().flatten().chain(data).map(|cells| cells.counters()).collect()
    }
}

fn io_fault(slot: &Slot, by: &InForce, status: Status) -> IoFault {
    let stripe = by.of_stripe(slot.spot.stripe);
    let reads = matches!(slot.request.action, Action::Read | Action::ReadVectored { .. });
    IoFault {
        range: (slot.request.offset + u64::from(slot.done), slot.asked.into()),
        state: stripe.state.unwrap_or_default(),
        device: stripe.device,
        status,
        op: if reads { Op::Read } else { Op::Write },
    }
}

/// The call of a slot is no longer in flight.
pub(super) fn land(slot: &mut Slot, files: &[FileInUse], shared: &Shared) {
    let Some(By { in_force, epoch }) = slot.by.take() else { return };
    let layouts = &files[slot.request.file as usize].open.state.layouts;
    if in_force.leave() && layouts.epoch() != epoch {
        shared.wake_keeper();
    }
}

impl Templates {
    pub(super) fn v3(
        handle: &crate::Handle,
        plain: Stability,
        credential: &crate::rpc::call::Credential,
    ) -> Self {
        use v3::transfer::{commit, read, write};
        Self {
            read: read(handle, credential),
            write: write(handle, plain, credential),
            write_durable: write(handle, plain.max(Stability::Data), credential),
            commit: commit(handle, credential),
        }
    }
}
