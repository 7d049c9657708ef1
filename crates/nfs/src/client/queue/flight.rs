//! Sending calls, taking their replies, and what follows from those that are not results.

use super::link::{Before, Link};
use super::{Phase, Queue, Slot, ended};
use crate::client::connection::broken;
use crate::client::control::pause;
use crate::client::error::NfsError;
use crate::client::file::FileState;
use crate::client::target::Version;
use crate::rpc::reply::{self, Message};
use crate::transfer::{SlotCall, Stability, padding};
use crate::v4::compound::Results;
use crate::v4::recovery::{Remedy, remedy};
use crate::xdr::Reader;
use crate::{Fault, v3};
use io::{Action, Completion, Outcome};
use units::{Nanos, clock};

/// How long a call rests that the server asked to try later. Shorter than most grace periods by far, longer than a round trip.
const REST: Nanos = Nanos::millis(50);
const EIO: i32 = 5;

/// What a reply means for its slot.
enum Verdict {
    /// The request ended.
    End(Outcome),
    /// Its next part can be asked for.
    More,
    /// Something else has to be done first.
    Needs(Remedy),
}

impl Queue {
    pub(super) fn read_max(&self) -> u32 {
        let session = self.link.as_ref().and_then(|link| link.session.as_ref());
        session.map_or(self.shared.root.read_max, |session| session.read_max)
    }

    pub(super) fn write_max(&self) -> u32 {
        let session = self.link.as_ref().and_then(|link| link.session.as_ref());
        session.map_or(self.shared.root.write_max, |session| session.write_max)
    }

    /// Encodes the call of a held slot, as a new one; it stays held where the session has no slot free, or there is no link.
    pub(super) fn launch(&mut self, index: u32, now: Nanos) {
        let Some(link) = &mut self.link else { return };
        let call = match &mut link.session {
            None => SlotCall { slot: 0, sequence: 0 },
            Some(session) => match session.free.pop() {
                Some(free) => session.slots.call(free),
                None => return,
            },
        };
        self.slots[index as usize].place = call.slot;
        let xid = self.xids.draw(index);
        self.send(index, xid, call, now);
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
        let xid = self.xids.current(index);
        self.send(index, xid, call, now);
    }

    fn send(&mut self, index: u32, xid: u32, call: SlotCall, now: Nanos) {
        let (read_max, write_max) = (self.read_max(), self.write_max());
        let Some(link) = &mut self.link else { return };
        let slot = &mut self.slots[index as usize];
        let file = &self.files[slot.request.file as usize];
        let left = slot.request.bytes - slot.done;
        let (template, bytes) = match slot.request.action {
            Action::Read | Action::ReadVectored { .. } => (&file.templates.read, left.min(read_max)),
            Action::Write => (&file.templates.write, left.min(write_max)),
            Action::WriteDsync => (&file.templates.write_durable, left.min(write_max)),
            Action::Sync => (&file.templates.commit, 0),
        };
        let writes = matches!(slot.request.action, Action::Write | Action::WriteDsync);
        let offset = if slot.request.action == Action::Sync {
            slot.covers = file.open.state.uncommitted();
            0
        } else {
            slot.request.offset + u64::from(slot.done)
        };
        (slot.phase, slot.asked, slot.sent) = (Phase::Flying, bytes, now);
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
        let slots = &self.slots;
        match &mut self.link {
            Some(link) => link.connection.flush(|slot| &slots[slot as usize].buffer),
            None => Ok(()),
        }
    }

    /// Sends and takes what can be without waiting. A lost link is made anew, which may take long.
    pub(super) fn progress(&mut self, done: &mut Vec<Completion>) {
        let mut arrived = self.flush();
        if arrived.is_ok()
            && let Some(link) = &mut self.link
        {
            arrived = link.connection.fill().map(drop);
        }
        // What came before the end of the stream still counts.
        let taken = self.take_replies(done);
        if arrived.and(taken).is_err() {
            self.lose(Remedy::None, done);
        }
        self.launch_held();
        // An error here is met again by the next round.
        let _ = self.flush();
    }

    fn launch_held(&mut self) {
        if !self.slots.iter().any(|slot| matches!(slot.phase, Phase::Held(_))) {
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
        let Some(link) = &self.link else { return };
        let waited = link.connection.wait(due);
        let now = clock::now();
        let silent =
            || self.slots.iter().any(|slot| slot.phase == Phase::Flying && slot.sent + silence <= now);
        match waited {
            Err(_) => self.lose(Remedy::None, done),
            Ok(()) if now >= due && silent() => {
                // An answer may have come at the last moment.
                let arrived = self.link.as_mut().is_some_and(|link| link.connection.fill().unwrap_or(false));
                if !arrived {
                    self.lose(Remedy::None, done);
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
            if slot.phase != Phase::Flying {
                continue;
            }
            self.network.receives += 1;
            self.barren = None;
            let file = &self.files[slot.request.file as usize].open.state;
            let (verdict, begun) = match result {
                Ok(reader) => judge(version, slot, file, reader),
                Err(_) => (Verdict::End(Outcome::Errno(EIO)), true),
            };
            if let Some(session) = session {
                if begun {
                    session.slots.answered(slot.place);
                } else {
                    session.slots.not_begun(slot.place);
                }
                session.free.push(slot.place);
            }
            slot.phase = Phase::Held(Nanos(0));
            match verdict {
                Verdict::End(outcome) => {
                    self.in_flight -= 1;
                    done.push(ended(slot, index, outcome));
                }
                Verdict::More | Verdict::Needs(Remedy::Again) => again.push(index),
                Verdict::Needs(Remedy::Later) => {
                    self.network.delays += 1;
                    slot.phase = Phase::Held(clock::now() + REST);
                }
                Verdict::Needs(remedy) => {
                    if remedy == Remedy::Open {
                        reopen.push(slot.request.file);
                    }
                    needs = needs.max(remedy);
                }
            }
        }
        if !refuse.is_empty() {
            connection.send(|w| refuse.into_iter().for_each(|xid| reply::no_procedure(w, xid)));
        }
        match needs {
            Remedy::Open => self.reopen(reopen, done),
            Remedy::Bind | Remedy::Session | Remedy::Client => {
                self.lose(needs, done);
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
    fn lose(&mut self, lost: Remedy, done: &mut Vec<Completion>) {
        let Some(Link { session, path, generation, .. }) = self.link.take() else { return };
        if self.closing {
            return;
        }
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
        let path = if lost == Remedy::None { path + 1 } else { path } % self.shared.way.target.paths.len();
        let before = Before { session, path, lost, generation: Some(generation) };
        match Link::make(&self.shared, self.options.depth, before) {
            Ok(link) => {
                let kept = link.kept;
                self.network.reconnects += 1;
                self.network.sessions += u64::from(!kept);
                self.link = Some(link);
                self.make_templates();
                self.send_again(kept);
            }
            Err(error) => self.give_up(error, done),
        }
    }

    fn send_again(&mut self, kept: bool) {
        let now = clock::now();
        for index in 0..self.options.depth {
            if self.slots[index as usize].phase != Phase::Flying {
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
        self.trouble = Some(error);
        self.fail(|slot| matches!(slot.phase, Phase::Flying | Phase::Held(_)), errno, done);
    }

    fn fail(&mut self, which: impl Fn(&Slot) -> bool, errno: i32, done: &mut Vec<Completion>) {
        for (index, slot) in self.slots.iter_mut().enumerate().filter(|(_, slot)| which(slot)) {
            self.in_flight -= 1;
            done.push(ended(slot, index as u32, Outcome::Errno(errno)));
        }
    }
}

/// What the results of `slot`'s call mean; and whether the server began it, as sessions count.
fn judge(version: Version, slot: &mut Slot, file: &FileState, mut reader: Reader<'_>) -> (Verdict, bool) {
    if version == Version::V3 {
        return (judge_v3(slot, file, &mut reader).unwrap_or_else(refusal), true);
    }
    let mut results = match Results::new(reader) {
        Ok(results) => results,
        Err(malformed) => return (refusal(malformed.into()), true),
    };
    if version == Version::V41
        && let Err(fault) = results.sequenced()
    {
        return (refusal(fault), false);
    }
    (judge_v4(slot, file, &mut results).unwrap_or_else(refusal), true)
}

fn judge_v3(slot: &mut Slot, file: &FileState, r: &mut Reader<'_>) -> Result<Verdict, Fault> {
    use v3::transfer::{read_commit, read_read, read_write};
    Ok(match slot.request.action {
        Action::Read | Action::ReadVectored { .. } => {
            let read = read_read(r, slot.asked)?;
            got(slot, read.data, read.end_of_file)
        }
        Action::Write | Action::WriteDsync => wrote(slot, file, &read_write(r, slot.asked)?),
        Action::Sync => committed(file.committed(read_commit(r)?, slot.covers)),
    })
}

fn judge_v4(slot: &mut Slot, file: &FileState, results: &mut Results<'_>) -> Result<Verdict, Fault> {
    Ok(match slot.request.action {
        Action::Read | Action::ReadVectored { .. } => {
            let read = results.read(slot.asked)?;
            got(slot, read.data, read.end_of_file)
        }
        Action::Write | Action::WriteDsync => wrote(slot, file, &results.written(slot.asked)?),
        Action::Sync => committed(file.committed(results.committed()?, slot.covers)),
    })
}

/// The one copy of a payload: from the received message into the slot's buffer.
fn got(slot: &mut Slot, data: &[u8], end_of_file: bool) -> Verdict {
    let from = slot.done as usize;
    slot.buffer[from..from + data.len()].copy_from_slice(data);
    slot.done += data.len() as u32;
    if slot.done == slot.request.bytes {
        Verdict::End(Outcome::Full)
    } else if end_of_file || data.is_empty() {
        Verdict::End(Outcome::Short(slot.done))
    } else {
        Verdict::More
    }
}

fn wrote(slot: &mut Slot, file: &FileState, result: &crate::transfer::WriteResult) -> Verdict {
    let durable = slot.request.action == Action::Write || result.stability >= Stability::Data;
    if !durable || (result.bytes == 0 && slot.asked > 0) {
        return Verdict::End(Outcome::Errno(EIO));
    }
    file.wrote(result);
    slot.done += result.bytes;
    if slot.done == slot.request.bytes { Verdict::End(Outcome::Full) } else { Verdict::More }
}

/// Writes that a restart of the server took away are an error of the sync: what they were, only the caller knows.
fn committed(kept: bool) -> Verdict {
    Verdict::End(if kept { Outcome::Full } else { Outcome::Errno(EIO) })
}

fn refusal(fault: Fault) -> Verdict {
    match fault.status().map(|status| (status, remedy(status))) {
        None => Verdict::End(Outcome::Errno(EIO)),
        Some((status, Remedy::None)) => Verdict::End(Outcome::Errno(status.errno())),
        Some((_, remedy)) => Verdict::Needs(remedy),
    }
}
