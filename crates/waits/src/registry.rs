//! All sessions of an instance: who has which place, what they are at, and the totals of those that are gone.
//!
//! The lock here is taken to come, to go and to look, never to wait or to call.

use crate::place::{Observed, Place};
use crate::session::{Identity, SessionState, time_model};
use crate::slot::Slot;
use crate::text::Texts;
use crate::totals::{BothTotals, ROWS, TimeModel, Totals};
use crate::{SessionKind, TextId};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::{Clock, Nanos};

/// All sessions of an instance.
pub struct Registry {
    clock: Clock,
    sessions_max: usize,
    inner: Mutex<Inner>,
    texts: Texts,
}

#[derive(Default)]
struct Inner {
    /// By sid; a place stays when its session goes, and is taken again.
    entries: Vec<Entry>,
    /// Of sessions that are gone.
    totals: BothTotals,
    foreground: TimeModel,
    background: TimeModel,
}

struct Entry {
    place: Arc<Place>,
    serial: u32,
    identity: Option<Identity>,
}

impl Inner {
    fn time(&mut self, kind: SessionKind) -> &mut TimeModel {
        match kind {
            SessionKind::Foreground => &mut self.foreground,
            SessionKind::Background => &mut self.background,
        }
    }

    fn taken(&self) -> impl Iterator<Item = (&Place, &Identity)> {
        self.entries.iter().filter_map(|entry| Some((&*entry.place, entry.identity.as_ref()?)))
    }
}

impl Registry {
    /// `sessions_max`: how many sessions [`Registry::try_register`] lets in. A place is made when it is first needed, about
    /// 35 KB of counters.
    pub fn new(clock: Clock, sessions_max: usize) -> Arc<Self> {
        Arc::new(Self { clock, sessions_max, inner: Mutex::default(), texts: Texts::default() })
    }

    /// Takes a place, also beyond the limit, so that processes of the database always have one. It is given back when the
    /// slot is dropped; its totals stay here.
    pub fn register(self: &Arc<Self>, kind: SessionKind, program: &str) -> Slot {
        self.take(&mut self.lock(), kind, program)
    }

    /// As [`Registry::register`]; `None` when `sessions_max` sessions are there already.
    pub fn try_register(self: &Arc<Self>, kind: SessionKind, program: &str) -> Option<Slot> {
        let mut inner = self.lock();
        let room = inner.taken().count() < self.sessions_max;
        room.then(|| self.take(&mut inner, kind, program))
    }

    fn take(self: &Arc<Self>, inner: &mut Inner, kind: SessionKind, program: &str) -> Slot {
        let free = inner.entries.iter().position(|entry| entry.identity.is_none());
        let index = free.unwrap_or_else(|| {
            inner.entries.push(Entry { place: Arc::new(Place::new()), serial: 0, identity: None });
            inner.entries.len() - 1
        });
        let entry = &mut inner.entries[index];
        entry.serial = entry.serial.wrapping_add(1);
        let slot = Slot::new(Arc::clone(self), Arc::clone(&entry.place), index, entry.serial, kind);
        let (sid, serial) = (slot.sid(), slot.serial());
        entry.identity = Some(Identity { sid, serial, kind, program: program.into() });
        slot
    }

    /// The session at `index` is gone: its totals move here, so that each is counted once at any moment.
    pub(crate) fn release(&self, index: usize, now: u64) {
        let mut inner = self.lock();
        let Some(identity) = inner.entries[index].identity.take() else { return };
        let place = Arc::clone(&inner.entries[index].place);
        add_rows(inner.totals.of_mut(identity.kind), &place);
        inner.time(identity.kind).add(&time_model(identity.kind, &place.observed(), now));
    }

    /// How many sessions [`Registry::try_register`] lets in.
    pub fn sessions_max(&self) -> usize {
        self.sessions_max
    }

    /// What its times are measured with.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// All sessions that are there, by sid. Each is of one moment; that moment differs by microseconds between them.
    pub fn sessions(&self) -> Vec<SessionState> {
        self.observe(|_, identity, seen, now| identity.map(|who| SessionState::of(who, seen, now)))
    }

    /// Exact totals of all sessions, those that are gone included. A wait that goes on is not in them yet.
    pub fn totals(&self) -> BothTotals {
        let inner = self.lock();
        let mut totals = inner.totals.clone();
        for (place, identity) in inner.taken() {
            add_rows(totals.of_mut(identity.kind), place);
        }
        totals
    }

    /// As [`Registry::totals`], with the time so far of waits that go on, though not their number: between two of these lies
    /// just the time that was waited between them.
    pub fn totals_so_far(&self) -> BothTotals {
        let inner = self.lock();
        let mut totals = inner.totals.clone();
        for (place, identity) in inner.taken() {
            totals.of_mut(identity.kind).add(&self.so_far(place));
        }
        totals
    }

    /// Reads again when a wait began or ended meanwhile; a session that never holds still is waiting for nothing long.
    fn so_far(&self, place: &Place) -> Totals {
        const ATTEMPTS: u32 = 4;
        let mut attempt = 1;
        loop {
            let seen = place.observed();
            let mut totals = Totals::default();
            add_rows(&mut totals, place);
            let after = place.observed();
            if (seen.number, seen.waiting) == (after.number, after.waiting) || attempt == ATTEMPTS {
                if let Some(event) = after.event.filter(|_| after.waiting) {
                    let now = self.clock.now();
                    totals.row_mut(event.number()).waited += now - Nanos(after.since);
                }
                return totals;
            }
            attempt += 1;
        }
    }

    /// Exact totals of one session, as `v$session_event` has them; `None` when it is not there.
    pub fn session_totals(&self, sid: u32) -> Option<Totals> {
        let inner = self.lock();
        let (place, _) = inner.taken().find(|(_, identity)| identity.sid == sid)?;
        let mut totals = Totals::default();
        add_rows(&mut totals, place);
        Some(totals)
    }

    /// Where the time of all sessions of a kind went, those that are gone included, and what goes on now.
    pub fn time_model(&self, kind: SessionKind) -> TimeModel {
        let mut inner = self.lock();
        let mut sum = *inner.time(kind);
        for (place, _) in inner.taken().filter(|(_, identity)| identity.kind == kind) {
            let seen = place.observed();
            sum.add(&time_model(kind, &seen, self.clock.now().0));
        }
        sum
    }

    /// Keeps the text of a statement or an action, and gives what stands for it. Takes a lock: once per statement, not per call.
    pub fn keep_text(&self, text: &str) -> TextId {
        self.texts.keep(text)
    }

    /// The text, if it was kept. Some 20,000 are.
    pub fn text(&self, id: TextId) -> Option<Arc<str>> {
        self.texts.get(id)
    }

    /// All texts that were kept.
    pub fn texts(&self) -> Vec<(TextId, Arc<str>)> {
        self.texts.all()
    }

    /// Looks at every place, also those that nobody has (`None`), in the order of sids.
    pub(crate) fn observe<T>(
        &self,
        mut look: impl FnMut(&Arc<Place>, Option<&Identity>, &Observed, u64) -> Option<T>,
    ) -> Vec<T> {
        let inner = self.lock();
        let each = inner.entries.iter().filter_map(|entry| {
            let seen = entry.place.observed();
            look(&entry.place, entry.identity.as_ref(), &seen, self.clock.now().0)
        });
        each.collect()
    }

    /// A panic elsewhere leaves nothing half done here, so poison says nothing.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn add_rows(totals: &mut Totals, place: &Place) {
    for row in 0..ROWS {
        if let Some(counted) = place.row(row) {
            totals.row_mut(row).add(&counted);
        }
    }
}
