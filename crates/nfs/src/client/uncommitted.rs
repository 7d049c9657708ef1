//! What was written and may be in a server's memory alone: kept here until a commit covers it, so that what a server lost is written again.
//!
//! ```text
//! kept -> gone       a commit came back with the verifier of its write, or something newer is written to the same bytes
//! kept -> lost       the verifier has changed: the server was restarted; or it refuses the commit, or is gone
//! lost -> mending    a sync writes it again, stable, by the server that was mounted; nobody writes there meanwhile
//! mending -> gone    it is on stable storage
//! mending -> lost    nobody could be reached; the next sync tries again
//! ```
//! Until it is written again, a read would see what was there before: so whoever reads asks first ([`Uncommitted::read`]), and after a connection
//! was lost or made, whether the server still has what it had is asked before anything is read ([`Uncommitted::is_doubtful`]).
//!
//! The price is a copy of each unstable write. The alternative, as kernels do it with direct I/O, is to end a write when its commit has come back:
//! then the caller's buffer is the copy, and each write costs two round trips.

use super::file::{Place, lock};
use super::layouts::DataServer;
use crate::transfer::{Stability, Verifier, WriteResult};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most bytes that are kept of a file; then a commit is due.
const KEPT_BYTES_MAX: u64 = 32 << 20;

/// Those of one open file.
#[derive(Default)]
pub(super) struct Uncommitted {
    /// Bytes that are kept or mended: while there are none, nobody takes the lock to begin a write.
    bytes: AtomicU64,
    /// When all of it was known to be there, as [`Shared::era`](super::mount::Shared) counts.
    era: AtomicU64,
    inner: Mutex<Inner>,
}

/// Whether something can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readable {
    Yes,
    /// It is just written again.
    Soon,
    /// It has to be written again first.
    Lost,
}

#[derive(Default)]
struct Inner {
    places: Vec<At>,
    /// By first byte; they never overlap.
    kept: BTreeMap<u64, Kept>,
    /// First byte and end of what is written again just now.
    mending: Vec<(u64, u64)>,
    /// Bytes of `kept`.
    bytes: u64,
    /// Of the last write.
    number: u64,
}

struct At {
    place: Place,
    verifier: Verifier,
}

#[derive(Clone)]
struct Kept {
    data: Box<[u8]>,
    /// Index of its place.
    at: usize,
    number: u64,
    lost: bool,
}

/// A piece that has to be written again.
pub(super) struct Lost {
    pub(super) offset: u64,
    pub(super) data: Box<[u8]>,
}

impl Uncommitted {
    /// A write of `bytes` bytes at `offset` is about to be sent; what was kept there is no longer wanted. False: not now, an older one is just written there again.
    pub(super) fn begin(&self, offset: u64, bytes: u64) -> bool {
        if self.bytes.load(Ordering::Acquire) == 0 {
            return true;
        }
        let mut inner = lock(&self.inner);
        let end = offset.saturating_add(bytes);
        if inner.mending.iter().any(|&(from, to)| from < end && offset < to) {
            return false;
        }
        inner.cut(offset, end);
        self.count(&inner);
        true
    }

    /// Whether `bytes` bytes at `offset` can be read.
    pub(super) fn read(&self, offset: u64, bytes: u64) -> Readable {
        if self.bytes.load(Ordering::Acquire) == 0 {
            return Readable::Yes;
        }
        let inner = lock(&self.inner);
        let end = offset.saturating_add(bytes);
        if inner.mending.iter().any(|&(from, to)| from < end && offset < to) {
            return Readable::Soon;
        }
        let is_lost = inner.touched(offset, end).iter().any(|at| inner.kept[at].lost);
        if is_lost { Readable::Lost } else { Readable::Yes }
    }

    /// Whether something is kept that a server may have lost in an era before `era`.
    pub(super) fn is_doubtful(&self, era: u64) -> bool {
        self.bytes.load(Ordering::Acquire) > 0 && self.era.load(Ordering::Acquire) < era
    }

    /// What is kept was there in `era`.
    pub(super) fn is_there(&self, era: u64) {
        self.era.fetch_max(era, Ordering::AcqRel);
    }

    /// Takes in `data`, which the server at `place` has written at `offset`, sent in `era`.
    pub(super) fn wrote(&self, place: &Place, result: &WriteResult, offset: u64, data: &[u8], era: u64) {
        if result.stability != Stability::Unstable || data.is_empty() {
            return;
        }
        let mut inner = lock(&self.inner);
        if inner.kept.is_empty() {
            self.era.store(era, Ordering::Release);
        } else {
            self.era.fetch_min(era, Ordering::AcqRel);
        }
        let at = inner.at(place, result.verifier);
        inner.cut(offset, offset + data.len() as u64);
        inner.number += 1;
        let kept = Kept { data: data.into(), at, number: inner.number, lost: false };
        inner.keep(offset, kept);
        self.count(&inner);
    }

    /// Where commits have to go that are sent now, and up to which write each covers.
    pub(super) fn commits(&self) -> Vec<(Place, u64)> {
        let inner = lock(&self.inner);
        let of_place = |at: usize| inner.kept.values().filter(move |kept| kept.at == at && !kept.lost);
        let needed = inner.places.iter().enumerate().filter(|(at, _)| of_place(*at).next().is_some());
        needed.map(|(_, at)| (at.place.clone(), inner.number)).collect()
    }

    /// A commit that covers writes up to `covers` has come back from `place`; without a verifier, that server refused it or is gone.
    pub(super) fn committed(&self, place: &Place, verifier: Option<Verifier>, covers: u64) {
        let mut inner = lock(&self.inner);
        let Some(at) = inner.places.iter().position(|at| at.place == *place) else { return };
        match verifier {
            Some(verifier) => {
                // Another one: what was kept of before is lost.
                inner.at(place, verifier);
                inner.take(|kept| kept.at == at && !kept.lost && kept.number <= covers);
            }
            None => inner.lose(at),
        }
        self.count(&inner);
    }

    /// The data server is gone, and what it had in memory may be, too.
    pub(super) fn gone(&self, server: &DataServer) {
        let mut inner = lock(&self.inner);
        for at in 0..inner.places.len() {
            if matches!(&inner.places[at].place, Place::Data(its, _) if its == server) {
                inner.lose(at);
            }
        }
    }

    /// Takes what is lost, to be written again; [`Uncommitted::mended`] is to be called then.
    pub(super) fn take_lost(&self) -> Vec<Lost> {
        if self.bytes.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let mut inner = lock(&self.inner);
        let lost = inner.take(|kept| kept.lost);
        inner.mending.extend(lost.iter().map(Lost::range));
        self.count(&inner);
        lost
    }

    /// Of what was taken to be written again, `left` could not be; nothing of it is being written any more.
    pub(super) fn mended(&self, taken: &[(u64, u64)], left: Vec<Lost>) {
        let mut inner = lock(&self.inner);
        inner.mending.retain(|range| !taken.contains(range));
        for Lost { offset, data } in left {
            inner.keep(offset, Kept { data, at: usize::MAX, number: 0, lost: true });
        }
        self.count(&inner);
    }

    /// The file ends at `size` now.
    pub(super) fn resized(&self, size: u64) {
        let mut inner = lock(&self.inner);
        inner.cut(size, u64::MAX);
        self.count(&inner);
    }

    /// Whether so much is kept that a commit is due.
    pub(super) fn is_full(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) >= KEPT_BYTES_MAX
    }

    fn count(&self, inner: &Inner) {
        let mending: u64 = inner.mending.iter().map(|(from, to)| to - from).sum();
        self.bytes.store(inner.bytes + mending, Ordering::Release);
    }
}

impl Lost {
    /// First byte, and end.
    pub(super) fn range(&self) -> (u64, u64) {
        (self.offset, self.offset + self.data.len() as u64)
    }
}

impl Inner {
    /// The index of `place`, whose server says `verifier` now: where that is another one than before, it has lost what it had.
    fn at(&mut self, place: &Place, verifier: Verifier) -> usize {
        match self.places.iter().position(|at| at.place == *place) {
            Some(index) => {
                if std::mem::replace(&mut self.places[index].verifier, verifier) != verifier {
                    self.lose(index);
                }
                index
            }
            None => {
                self.places.push(At { place: place.clone(), verifier });
                self.places.len() - 1
            }
        }
    }

    fn lose(&mut self, at: usize) {
        self.kept.values_mut().filter(|kept| kept.at == at).for_each(|kept| kept.lost = true);
    }

    fn keep(&mut self, offset: u64, kept: Kept) {
        self.bytes += kept.data.len() as u64;
        self.kept.insert(offset, kept);
    }

    fn take(&mut self, which: impl Fn(&Kept) -> bool) -> Vec<Lost> {
        let offsets: Vec<u64> =
            self.kept.iter().filter(|(_, kept)| which(kept)).map(|(&offset, _)| offset).collect();
        let remove = |offset| self.kept.remove(&offset).map(|Kept { data, .. }| Lost { offset, data });
        let taken: Vec<Lost> = offsets.into_iter().filter_map(remove).collect();
        self.bytes -= taken.iter().map(|piece| piece.data.len() as u64).sum::<u64>();
        taken
    }

    /// First bytes of what is kept and touches `from..to`.
    fn touched(&self, from: u64, to: u64) -> Vec<u64> {
        let below = self.kept.range(..to).rev();
        let touching = below.take_while(|(offset, kept)| *offset + kept.data.len() as u64 > from);
        touching.map(|(&offset, _)| offset).collect()
    }

    /// Drops what is kept of the bytes from `from` to `to`.
    fn cut(&mut self, from: u64, to: u64) {
        for offset in self.touched(from, to) {
            let Some(whole) = self.kept.remove(&offset) else { continue };
            self.bytes -= whole.data.len() as u64;
            let (data, last) = (&whole.data, offset + whole.data.len() as u64);
            if offset < from {
                let data = data[..(from - offset) as usize].into();
                self.keep(offset, Kept { data, ..whole.clone() });
            }
            if last > to {
                let data = data[(to - offset) as usize..].into();
                self.keep(to, Kept { data, ..whole.clone() });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Handle;

    fn write(all: &Uncommitted, place: &Place, verifier: u8, offset: u64, data: &[u8]) {
        assert!(all.begin(offset, data.len() as u64));
        let (stability, verifier) = (Stability::Unstable, Verifier([verifier; 8]));
        all.wrote(place, &WriteResult { bytes: data.len() as u32, stability, verifier }, offset, data, 0);
    }

    fn commit(all: &Uncommitted, place: &Place, verifier: u8) {
        let due = all.commits().into_iter().find(|(at, _)| at == place);
        let (_, covers) = due.unwrap_or((place.clone(), 0));
        all.committed(place, Some(Verifier([verifier; 8])), covers);
    }

    fn lost(all: &Uncommitted) -> Vec<(u64, Vec<u8>)> {
        let lost = all.take_lost();
        let ranges: Vec<_> = lost.iter().map(Lost::range).collect();
        all.mended(&ranges, Vec::new());
        lost.into_iter().map(|Lost { offset, data }| (offset, data.into_vec())).collect()
    }

    const HERE: Place = Place::Server;

    #[test]
    fn what_a_restart_took_away_is_known() {
        let all = Uncommitted::default();
        write(&all, &HERE, 1, 0, b"aaaa");
        let (_, covers) = all.commits()[0].clone();
        write(&all, &HERE, 1, 8, b"bbbb");
        all.committed(&HERE, Some(Verifier([1; 8])), covers);
        assert_eq!(all.commits(), [(HERE, 2)], "the one that came after the commit was sent");
        commit(&all, &HERE, 2);
        assert_eq!(lost(&all), [(8, b"bbbb".to_vec())], "the server was restarted in between");
        assert!(all.commits().is_empty() && lost(&all).is_empty(), "it is written again once");
        write(&all, &HERE, 3, 0, b"cccc");
        write(&all, &HERE, 4, 4, b"dddd");
        commit(&all, &HERE, 4);
        assert_eq!(lost(&all), [(0, b"cccc".to_vec())], "the next write tells, too");
        assert_eq!(all.bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn nothing_old_is_written_over_something_new() {
        let all = Uncommitted::default();
        write(&all, &HERE, 1, 0, b"0123456789");
        assert!(all.begin(4, 2), "this one may be stable, and is not kept then");
        all.resized(9);
        commit(&all, &HERE, 2);
        let taken = all.take_lost();
        assert_eq!(taken.iter().map(Lost::range).collect::<Vec<_>>(), [(0, 4), (6, 9)]);
        assert!(!all.begin(8, 10) && all.begin(9, 10) && all.begin(4, 2), "while it is written again");
        assert_eq!((all.read(8, 1), all.read(4, 2)), (Readable::Soon, Readable::Yes));
        assert!(all.is_doubtful(1));
        all.is_there(1);
        assert!(!all.is_doubtful(1));
        all.mended(&[(0, 4), (6, 9)], taken);
        assert!(all.begin(2, 6));
        assert_eq!(lost(&all), [(0, b"01".to_vec()), (8, b"8".to_vec())], "what nobody took is tried again");
    }

    #[test]
    fn each_server_has_its_own() {
        let handle = Handle::new(b"f").expect("short");
        let server = DataServer { addresses: vec![([127, 0, 0, 1], 2049).into()], v3: true };
        let there = Place::Data(server, handle);
        let all = Uncommitted::default();
        write(&all, &there, 7, 0, b"a");
        write(&all, &HERE, 8, 1, b"b");
        assert_eq!(all.commits().len(), 2);
        commit(&all, &HERE, 8);
        all.committed(&there, None, 2);
        assert_eq!(all.read(0, 1), Readable::Lost, "it refused the commit");
        assert_eq!(all.read(1, 1), Readable::Yes);
        assert_eq!(lost(&all), [(0, b"a".to_vec())]);
    }
}
