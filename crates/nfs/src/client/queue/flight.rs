//! Sending calls, taking their replies, and what follows from those that are not results.

use super::data::{Channel, Road, land};
use super::judge::{Verdict, judge, refusal};
use super::landing;
use super::link::{Before, Link};
use super::{Phase, Queue, Slot, ended};
use crate::client::channel::ChannelState;
use crate::client::connection::{Wait, broken, wait_for};
use crate::client::control::pause;
use crate::client::error::NfsError;
use crate::client::mount::Shared;
use crate::client::uncommitted::Readable;
use crate::rpc::reply::{self, Message};
use crate::transfer::{SlotCall, padding};
use crate::v4::layout::Spot;
use crate::v4::recovery::Remedy;
use io::{Action, Completion, Outcome};
use rustix::event::{PollFd, PollFlags};
use std::sync::atomic::Ordering;
use units::{Nanos, clock};

/// How long a call rests that the server asked to try later. Shorter than most grace periods by far, longer than a round trip.
const REST: Nanos = Nanos::millis(50);
const EIO: i32 = 5;
const ETIMEDOUT: i32 = 110;
/// How soon it is looked again whether a place is free where something lost is just written again.
const MENDING: Nanos = Nanos::millis(1);
/// How long a data server is left alone that went silent.
const SILENT: Nanos = Nanos::millis(5_000);

/// A connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Only {
    /// To the server that was mounted.
    Server,
    /// To a data server.
    Data(usize),
}

impl Queue {
    pub(super) fn read_max(&self) -> u32 {
        limits(self.link.as_ref(), &self.shared).0
    }

    pub(super) fn write_max(&self) -> u32 {
        limits(self.link.as_ref(), &self.shared).1
    }

    /// Encodes the call of a held slot, as a new one; it stays held where the session has no slot free, or there is no link.
    pub(super) fn launch(&mut self, index: u32, now: Nanos) {
        // What is sent now keeps us away from our own path; it goes when we are there.
        if self.link.is_none() || self.wants_home() {
            return;
        }
        let slot = &self.slots[index as usize];
        if slot.in_place {
            return self.replay(index, now);
        }
        if !self.may_go(index) {
            self.slots[index as usize].phase = Phase::Held(now + MENDING);
            return;
        }
        let slot = &self.slots[index as usize];
        let here = Spot { stripe: 0, offset: slot.request.offset + u64::from(slot.done), left: u64::MAX };
        let (at, spot) = match self.road(index, now) {
            Road::Wait(until) => {
                let slot = &mut self.slots[index as usize];
                slot.phase = Phase::Held(until);
                slot.waits.get_or_insert(now);
                return;
            }
            Road::Server => (None, here),
            Road::Data { channel, spot } => (Some(channel), spot),
            Road::Commit { channel } => (Some(channel), here),
        };
        let link = match at {
            None => &mut self.link,
            Some(channel) => &mut self.data[channel].link,
        };
        let call = match link.as_mut().map(|link| &mut link.session) {
            Some(Some(session)) => session.free.pop().map(|free| session.slots.call(free)),
            Some(None) => Some(SlotCall { slot: 0, sequence: 0 }),
            None => None,
        };
        let slot = &mut self.slots[index as usize];
        let Some(call) = call else { return land(slot, &self.files, &self.shared) };
        (slot.at, slot.spot, slot.place) = (at, spot, call.slot);
        if let Some(since) = slot.waits.take() {
            self.network.stall_max = self.network.stall_max.max(now - since);
            at.map_or(&self.server, |channel| &self.data[channel].cells).stalled(now - since);
        }
        if slot.request.action != Action::Sync {
            slot.target = match at {
                None => self.home.clone(),
                Some(_) => self.files[slot.request.file as usize].roads.target(spot.stripe),
            };
        }
        let slot = &mut self.slots[index as usize];
        (slot.in_place, slot.replayed) = (false, false);
        let xid = self.xids.draw(index);
        self.send(index, xid, call, now);
    }

    /// Whether nothing that was lost is just written again where a request goes. Writes again what has to be, before it is read; commits what takes too much
    /// memory here.
    fn may_go(&mut self, index: u32) -> bool {
        let slot = &self.slots[index as usize];
        let state = &self.files[slot.request.file as usize].open.state;
        let uncommitted = &state.uncommitted;
        let offset = slot.request.offset + u64::from(slot.done);
        let bytes = u64::from(slot.request.bytes - slot.done);
        match slot.request.action {
            Action::Sync => true,
            Action::Write | Action::WriteDsync => {
                if slot.request.action == Action::Write && uncommitted.is_full() {
                    self.shared.commit(state);
                }
                uncommitted.begin(offset, bytes)
            }
            Action::Read | Action::ReadVectored { .. } => {
                if uncommitted.is_doubtful(self.shared.era.load(Ordering::Acquire)) {
                    self.shared.commit(state);
                }
                match uncommitted.read(offset, bytes) {
                    Readable::Yes => true,
                    Readable::Soon => false,
                    Readable::Lost => {
                        // Where nobody can be reached, it is tried again until somebody is, or the link is given up.
                        let _ = self.shared.mend(state);
                        uncommitted.read(offset, bytes) == Readable::Yes
                    }
                }
            }
        }
    }

    /// Sends the call of a flying slot once more, as it was: same number, same place in the session.
    fn replay(&mut self, index: u32, now: Nanos) {
        let Some(link) = &mut self.link else { return };
        let place = self.slots[index as usize].place;
        let call = match &mut link.session {
            None => SlotCall { slot: 0, sequence: 0 },
            Some(session) => session.slots.repeat(place),
        };
        self.network.replays += 1;
        let slot = &mut self.slots[index as usize];
        (slot.in_place, slot.replayed) = (false, true);
        let xid = self.xids.current(index);
        self.send(index, xid, call, now);
    }

    fn send(&mut self, index: u32, xid: u32, call: SlotCall, now: Nanos) {
        let slot = &mut self.slots[index as usize];
        let file = &self.files[slot.request.file as usize];
        let (link, cells, templates) = match slot.at {
            None => (&mut self.link, &mut self.server, &file.templates),
            Some(channel) => {
                let Channel { link, cells, .. } = &mut self.data[channel];
                (link, cells, file.roads.templates(slot.spot.stripe).unwrap_or(&file.templates))
            }
        };
        let Some(link) = link else { return };
        let (read_max, write_max) = limits(Some(link), &self.shared);
        let left = (u64::from(slot.request.bytes - slot.done)).min(slot.spot.left) as u32;
        let (template, bytes) = match slot.request.action {
            Action::Read | Action::ReadVectored { .. } => (&templates.read, left.min(read_max)),
            // There is no memory left to keep it in until a commit.
            Action::Write if file.open.state.uncommitted.is_full() => {
                (&templates.write_durable, left.min(write_max))
            }
            Action::Write => (&templates.write, left.min(write_max)),
            Action::WriteDsync => (&templates.write_durable, left.min(write_max)),
            Action::Sync if slot.at.is_some() => (&self.commit, 0),
            Action::Sync => (&templates.commit, 0),
        };
        let writes = matches!(slot.request.action, Action::Write | Action::WriteDsync);
        let offset = match slot.request.action {
            Action::Sync => 0,
            _ => slot.spot.offset,
        };
        cells.sent(slot.request.action);
        (slot.phase, slot.asked, slot.sent) = (Phase::Flying, bytes, now);
        slot.landed = false;
        slot.era = self.shared.era.load(Ordering::Acquire);
        link.connection.flying += 1;
        link.connection.send(|w| template.append(w, xid, call, offset, bytes));
        if writes {
            link.connection.send_payload(index, slot.done as usize, bytes as usize);
            if padding(bytes) > 0 {
                link.connection.send(|w| w.raw(&[0; 3][..padding(bytes)]));
            }
        }
        self.network.sends += 1;
    }

    pub(super) fn flush(&mut self) -> std::io::Result<()> {
        // What breaks of these is noticed by whoever reaps.
        for channel in 0..self.data.len() {
            let _ = self.flush_data(channel);
        }
        let slots = &self.slots;
        match &mut self.link {
            Some(link) => link.connection.flush(|slot| &slots[slot as usize].buffer),
            None => Ok(()),
        }
    }

    /// The connection that all requests in flight have their call on; none where there are several, something is left to be sent, or a request is held.
    pub(super) fn only_road(&self) -> Option<Only> {
        let server = self.link.iter().map(|link| (Only::Server, link));
        let data = self.data.iter().enumerate();
        let data = data.filter_map(|(index, channel)| Some((Only::Data(index), channel.link.as_ref()?)));
        let all = |link: &Link| link.connection.flying == self.in_flight && link.connection.is_flushed();
        server.chain(data).find(|(_, link)| all(link)).map(|(only, _)| only)
    }

    /// Sends and takes what can be; whether anything arrived. It waits shortly for what comes from `only`. A lost link is made anew, which may take long.
    pub(super) fn progress(&mut self, only: Option<Only>, done: &mut Vec<Completion>) -> bool {
        let before = done.len();
        if self.link.is_none() && self.in_flight > 0 && !self.closing {
            self.revive(done);
        }
        let mut heard = false;
        let wait = |of| if only == Some(of) { Wait::Shortly } else { Wait::No };
        let flushed = self.flush();
        // Those that nothing is awaited from, too: what a server has lost is to be known before it is read.
        if let Some(link) = &mut self.link {
            let slots = &mut self.slots;
            let fill = |()| link.connection.fill(wait(Only::Server), landing::buffer(slots));
            let arrived = flushed.and_then(fill);
            heard = arrived.as_ref().is_ok_and(|&heard| heard);
            // What came before the end of the stream still counts.
            let taken = self.take_replies(done);
            if let Err(why) = arrived.and(taken) {
                self.lose(Remedy::None, &why.to_string(), done);
            }
        }
        for channel in 0..self.data.len() {
            heard |= self.progress_data(channel, wait(Only::Data(channel)), done);
        }
        self.end_syncs(&mut done[before..]);
        let is_at_it = |slot: &Slot| slot.in_place || (slot.phase == Phase::Flying && slot.at.is_none());
        if self.wants_home() && !self.closing && !self.slots.iter().any(is_at_it) {
            self.come_home();
        }
        self.launch_held();
        // An error here is met again by the next round.
        let _ = self.flush();
        heard
    }

    fn links(&self) -> impl Iterator<Item = &Link> {
        self.data.iter().filter_map(|channel| channel.link.as_ref()).chain(&self.link)
    }

    fn launch_held(&mut self) {
        // What has no call anywhere is held.
        if self.links().map(|link| link.connection.flying).sum::<u32>() == self.in_flight {
            return;
        }
        let now = clock::now();
        for index in 0..self.options.depth {
            if matches!(self.slots[index as usize].phase, Phase::Held(until) if until <= now) {
                self.launch(index, now);
            }
        }
    }

    /// Sleeps until something arrives, a rest is over, or silence has lasted too long.
    pub(super) fn wait(&mut self, done: &mut Vec<Completion>) {
        let silence = self.options.silence;
        let due = self.slots.iter().filter_map(|slot| match slot.phase {
            Phase::Flying => Some(slot.sent + silence),
            Phase::Held(until) if until > Nanos(0) => Some(until),
            _ => None,
        });
        let due = due.min().unwrap_or_else(|| clock::now() + silence);
        let mut fds = vec![PollFd::from_borrowed_fd(self.bell.as_fd(), PollFlags::IN)];
        fds.extend(self.links().map(|link| link.connection.poll()));
        let waited = wait_for(&mut fds, due);
        if fds[0].revents().contains(PollFlags::IN) {
            self.bell.still();
        }
        let now = clock::now();
        let is_silent = |slot: &Slot| slot.phase == Phase::Flying && slot.sent + silence <= now;
        let silent_data: Vec<usize> =
            self.slots.iter().filter(|slot| is_silent(slot)).filter_map(|slot| slot.at).collect();
        for channel in silent_data {
            self.lose_data(channel, SILENT, &format!("no answer within {silence}"));
        }
        let silent = || self.slots.iter().any(|slot| slot.at.is_none() && is_silent(slot));
        match waited {
            Err(why) => self.lose(Remedy::None, &why.to_string(), done),
            Ok(()) if now >= due && silent() => {
                // An answer may have come at the last moment.
                let slots = &mut self.slots;
                let arrived = self.link.as_mut().is_some_and(|link| {
                    link.connection.fill(Wait::No, landing::buffer(slots)).unwrap_or(false)
                });
                if !arrived {
                    self.lose(Remedy::None, &format!("no answer within {silence}"), done);
                }
            }
            Ok(()) => {}
        }
    }

    /// Goes through what has arrived.
    fn take_replies(&mut self, done: &mut Vec<Completion>) -> std::io::Result<()> {
        let (mut needs, mut reopen) = (Remedy::None, Vec::new());
        let mut again = Vec::new();
        let version = self.shared.way.target.version;
        let Some(Link { connection, session, .. }) = &mut self.link else { return Ok(()) };
        let mut refuse = Vec::new();
        let now = clock::now();
        while let Some(message) = connection.records.message().map_err(broken)? {
            let (xid, result) = match reply::decode(message).map_err(broken)? {
                Message::Reply { xid, result } => (xid, result),
                Message::Call { xid, .. } => {
                    refuse.push(xid);
                    continue;
                }
            };
            let Some(index) = self.xids.slot(xid) else { continue };
            let slot = &mut self.slots[index as usize];
            if slot.phase != Phase::Flying || slot.at.is_some() {
                continue;
            }
            self.network.receives += 1;
            connection.flying -= 1;
            let before = slot.done;
            self.barren = None;
            let file = &self.files[slot.request.file as usize].open.state;
            let (verdict, begun) = match result {
                Ok(reader) => judge(version, slot, file, reader),
                Err(_) => (Ok(Verdict::End(Outcome::Errno(EIO))), true),
            };
            let verdict = verdict.unwrap_or_else(refusal);
            if !begun && slot.replayed && matches!(verdict, Verdict::Needs(Remedy::Later)) {
                // It is at it since the first time: nobody else may have that place.
                (slot.phase, slot.in_place) = (Phase::Held(clock::now() + REST), true);
                self.network.delays += 1;
                continue;
            }
            if let Some(session) = session {
                session.ended(slot.place, begun);
                let flags = std::mem::take(&mut slot.flags);
                if flags != 0 && self.shared.pnfs.as_ref().is_some_and(|pnfs| pnfs.saw(flags)) {
                    self.shared.wake_keeper();
                }
            }
            self.server.received(slot.request.action, slot.done - before, now - slot.sent);
            slot.phase = Phase::Held(Nanos(0));
            match verdict {
                Verdict::End(outcome) => {
                    self.in_flight -= 1;
                    done.push(ended(slot, index, outcome));
                }
                Verdict::More | Verdict::Needs(Remedy::Again) => {
                    slot.detour &= matches!(verdict, Verdict::Needs(_));
                    again.push(index);
                }
                Verdict::Needs(Remedy::Later) => {
                    let (now, limit) = (clock::now(), self.shared.way.limit);
                    self.network.delays += 1;
                    slot.phase = Phase::Held(now + REST);
                    if now >= slot.since + limit {
                        let server = self.shared.way.target.server.clone();
                        let last = "it asked to try later each time".into();
                        self.trouble = Some(NfsError::TimedOut { server, what: "a transfer", limit, last });
                        self.in_flight -= 1;
                        done.push(ended(slot, index, Outcome::Errno(ETIMEDOUT)));
                    }
                }
                Verdict::Needs(remedy) => {
                    if remedy == Remedy::Open {
                        reopen.push(slot.request.file);
                    }
                    needs = needs.max(remedy);
                }
            }
        }
        landing::begin(connection, version, None, &self.xids, &mut self.slots);
        if !refuse.is_empty() {
            connection.send(|w| refuse.into_iter().for_each(|xid| reply::no_procedure(w, xid)));
        }
        match needs {
            Remedy::Open => self.reopen(reopen, done),
            Remedy::Bind | Remedy::Session | Remedy::Client => {
                self.lose(needs, "it does not know our session any more", done);
            }
            Remedy::None | Remedy::Again | Remedy::Later => {
                let now = clock::now();
                again.into_iter().for_each(|index| self.launch(index, now));
            }
        }
        Ok(())
    }

    /// Opens files again whose state the server dropped; requests to those that cannot be opened end.
    fn reopen(&mut self, mut files: Vec<u32>, done: &mut Vec<Completion>) {
        files.sort_unstable();
        files.dedup();
        for index in files {
            let state = self.files[index as usize].open.state.clone();
            let limit = self.shared.way.limit;
            let result = self
                .shared
                .control()
                .perform("OPEN", limit, |control, deadline| control.reopen_by_name(&state, deadline));
            let errno = match result {
                Ok(Ok(())) => continue,
                Ok(Err(fault)) => fault.status().map_or(EIO, crate::Status::errno),
                Err(error) => {
                    let errno = error.errno();
                    self.trouble = Some(error);
                    errno
                }
            };
            self.fail(|slot| slot.request.file == index && matches!(slot.phase, Phase::Held(_)), errno, done);
        }
        self.make_templates();
    }

    /// The link is gone, or what the server knew of it is. Makes another, and sends again what has no reply: in their slots where the
    /// session is still the same, so that the server does each of them once.
    fn lose(&mut self, lost: Remedy, why: &str, done: &mut Vec<Completion>) {
        let Some(Link { connection, session, path, generation, .. }) = self.link.take() else { return };
        if self.closing {
            return;
        }
        let begin = clock::now();
        self.shared.era.fetch_add(1, Ordering::AcqRel);
        self.server.set(ChannelState::Down);
        self.say(&format!("is DOWN: {why}"));
        drop(connection);
        let (times, since) = self.barren.unwrap_or((0, clock::now()));
        let limit = self.shared.way.limit;
        if times > 0 && clock::now() - since > limit {
            let server = self.shared.way.target.server.clone();
            let last = format!("the connection broke {times} times");
            return self.give_up(NfsError::TimedOut { server, what: "a transfer", limit, last }, done);
        }
        if times > 0 {
            clock::sleep(pause(times));
        }
        self.barren = Some((times + 1, since));
        // What broke without a word from the server may be the path.
        let path = if lost == Remedy::None {
            self.shared.paths.broke(&self.shared, path);
            self.shared.paths.other(path, self.worker)
        } else {
            path
        };
        let before = Before { session, path, lost, generation: Some(generation) };
        match Link::make(&self.shared, self.options.depth, before, limit) {
            Ok(link) => self.resume(link, begin),
            Err(error) => self.give_up(error, done),
        }
    }

    /// Whether the worker goes by another path than its own.
    pub(super) fn is_away(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.path != self.options.path)
    }

    /// Its own works again: nothing new is sent until it is there.
    pub(super) fn wants_home(&self) -> bool {
        self.is_away() && self.shared.paths.works(self.options.path)
    }

    /// Back to its own path; nothing is in flight on the way that it leaves, so nothing is sent twice. Where its own fails now, it is any other again.
    pub(super) fn come_home(&mut self) {
        let Some(Link { connection, session, generation, .. }) = self.link.take() else { return };
        let begin = clock::now();
        drop(connection);
        let before =
            Before { session, path: self.options.path, lost: Remedy::None, generation: Some(generation) };
        match Link::make(&self.shared, self.options.depth, before, self.shared.way.limit) {
            Ok(link) => {
                self.resume(link, begin);
                if self.is_away() {
                    self.shared.paths.broke(&self.shared, self.options.path);
                }
            }
            Err(error) => self.give_up(error, &mut Vec::new()),
        }
    }

    /// The link was given up; what came since is worth one attempt by each path.
    fn revive(&mut self, done: &mut Vec<Completion>) {
        let begin = clock::now();
        match Link::make(&self.shared, self.options.depth, Before::nothing(), Nanos(0)) {
            Ok(link) => {
                self.resume(link, begin);
                self.launch_held();
            }
            Err(error) => self.give_up(error, done),
        }
    }

    fn resume(&mut self, link: Link, since: Nanos) {
        let (kept, replays) = (link.kept, self.network.replays);
        self.network.reconnects += 1;
        self.network.sessions += u64::from(!kept);
        let lost = self.server.clone();
        self.link = Some(link);
        self.enter_path();
        self.make_templates();
        self.send_again(kept);
        let replays = self.network.replays - replays;
        let took = clock::now() - since;
        self.server.stalled(took);
        (0..replays).for_each(|_| lost.replayed());
        self.say(&format!("is UP again after {took}, {replays} calls were sent again"));
    }

    fn say(&self, what: &str) {
        let alerts = &self.shared.way.alerts;
        alerts.say(format!("channel to {}, {} {what}", self.shared.way.target.server, self.server));
    }

    fn send_again(&mut self, kept: bool) {
        let era = self.shared.era.load(Ordering::Acquire);
        for file in &self.files {
            let state = &file.open.state;
            if state.uncommitted.is_doubtful(era) {
                self.shared.commit(state);
            }
        }
        let now = clock::now();
        for index in 0..self.options.depth {
            let slot = &mut self.slots[index as usize];
            slot.in_place &= kept;
            if slot.phase != Phase::Flying || slot.at.is_some() {
                continue;
            }
            if kept {
                self.replay(index, now);
            } else {
                self.network.replays += 1;
                self.slots[index as usize].phase = Phase::Held(Nanos(0));
                self.launch(index, now);
            }
        }
    }

    fn give_up(&mut self, error: NfsError, done: &mut Vec<Completion>) {
        let errno = error.errno();
        self.say(&format!("is given up: {error}"));
        self.trouble = Some(error);
        let is_ours = |slot: &Slot| match slot.phase {
            Phase::Flying => slot.at.is_none(),
            Phase::Held(_) => true,
            Phase::Idle | Phase::Staged => false,
        };
        self.fail(is_ours, errno, done);
    }

    fn fail(&mut self, which: impl Fn(&Slot) -> bool, errno: i32, done: &mut Vec<Completion>) {
        for (index, slot) in self.slots.iter_mut().enumerate().filter(|(_, slot)| which(slot)) {
            self.in_flight -= 1;
            done.push(ended(slot, index as u32, Outcome::Errno(errno)));
        }
    }
}

/// Longest READ and WRITE.
fn limits(link: Option<&Link>, shared: &Shared) -> (u32, u32) {
    let session = link.and_then(|link| link.session.as_ref());
    session.map_or((shared.root.read_max, shared.root.write_max), |it| (it.read_max, it.write_max))
}
