//! Views, ends and purge in the order that `table` promises, beside a model that remembers everything.

use crate::page::{PageId, PageKind, format};
use crate::space::Segment;
use crate::transaction::segment::UndoSegment;
use crate::transaction::table::{Ended, SegmentSlots, Shared};
use crate::transaction::view::ReadView;
use crate::transaction::{UndoPtr, Xid};
use std::collections::BTreeMap;
use std::sync::Arc;
use units::{Rng, Seed};

/// With undo segments of 58 slots.
fn shared(segments: u16) -> Shared {
    let shared = Shared::new();
    for number in 0..segments {
        let header = PageId { file: 2, block: 8 * u32::from(number) };
        let segment = Segment { object: number.into(), header, tablespace: 1 };
        let mut page = vec![0; 2048];
        format(&mut page, header, PageKind::UndoHeader, segment.object);
        page[24] = 58;
        let segment = Arc::new(UndoSegment::new(segment, number, &page));
        shared.table().streams.segments.push(SegmentSlots { segment, used: 0 });
    }
    shared.table().streams.current = 1;
    shared
}

struct View {
    view: ReadView,
    noted: u64,
    /// Transactions that had ended when it was made.
    ended: Vec<Xid>,
    own: Xid,
}

#[derive(Default)]
struct Model {
    active: BTreeMap<Xid, Option<(u64, crate::transaction::stream::Stream)>>,
    ended: Vec<Xid>,
    views: Vec<View>,
    purged: u64,
}

fn ended(shared: &Shared, xid: Xid) -> Ended {
    let segment = shared.table().streams.segments[0].segment.clone();
    Ended { xid, count: 0, segment, slot: 0, first: UndoPtr(0), tail: PageId::NONE, work: true }
}

fn step(
    shared: &Shared,
    model: &mut Model,
    rng: &mut Rng,
    streams: &mut BTreeMap<Xid, crate::transaction::stream::Stream>,
) {
    let any = |rng: &mut Rng, n: usize| rng.below(n as u64) as usize;
    let some_active = |rng: &mut Rng, model: &Model| {
        let all: Vec<Xid> = model.active.keys().copied().collect();
        (!all.is_empty()).then(|| all[any(rng, all.len())])
    };
    match rng.below(10) {
        0..3 => {
            if model.active.len() > 12 {
                return;
            }
            let (xid, stream) = shared.begin(rng.below(5) as u32).expect("a slot");
            assert!(model.active.keys().all(|other| *other < xid), "ids are in the order of beginnings");
            model.active.insert(xid, None);
            streams.insert(xid, stream);
        }
        3..5 => {
            // Half of an end: the number is drawn, the commit not durable.
            let Some(xid) = some_active(rng, model) else { return };
            if let (Some(None), Some(stream)) = (model.active.get(&xid), streams.remove(&xid)) {
                let end = shared.table().draw_end(xid);
                model.active.insert(xid, Some((end, stream)));
            }
        }
        5..7 => {
            let Some(xid) = some_active(rng, model) else { return };
            if let Some(Some((_, stream))) = model.active.remove(&xid) {
                shared.end(xid, Some(stream), Some(ended(shared, xid)));
                model.ended.push(xid);
            } else {
                model.active.insert(xid, None);
            }
        }
        7 if model.views.len() < 4 => {
            let own = some_active(rng, model).unwrap_or_default();
            let (view, noted) = shared.table().view(own, u64::MAX);
            model.views.push(View { view, noted, ended: model.ended.clone(), own });
        }
        7 | 8 => {
            if !model.views.is_empty() {
                let at = any(rng, model.views.len());
                let view = model.views.swap_remove(at);
                shared.table().unregister(view.noted);
            }
        }
        _ => {
            let next = shared.table().next_purgeable();
            if let Some((end, ended)) = next {
                assert!(end > model.purged, "purged in the order of their ends");
                model.purged = end;
                assert!(model.views.iter().all(|view| view.ended.contains(&ended.xid)), "a view needs it");
                assert!(
                    model.active.values().flatten().all(|(other, _)| *other > end),
                    "one before it is about to end"
                );
            }
        }
    }
}

#[test]
fn a_view_sees_exactly_what_had_ended_and_nothing_it_needs_is_purged() {
    for seed in 0..20 {
        let shared = shared(3);
        let mut rng = Rng::new(Seed(seed));
        let (mut model, mut streams) = (Model::default(), BTreeMap::new());
        for _ in 0..1_500 {
            step(&shared, &mut model, &mut rng, &mut streams);
            for view in &model.views {
                let all = model.active.keys().chain(&model.ended);
                for &xid in all {
                    let expected = xid == view.own || view.ended.contains(&xid);
                    assert_eq!(view.view.sees(xid), expected, "seed {seed}: {xid:?} in {:?}", view.view);
                }
            }
            for xid in model.active.keys() {
                assert!(shared.is_active(*xid));
            }
            assert!(model.ended.iter().all(|xid| !shared.is_active(*xid)));
        }
        assert!(model.purged > 0, "seed {seed} purged nothing");
    }
}

#[test]
fn a_session_gets_its_stream_back() {
    let shared = shared(10);
    let (first, stream) = shared.begin(1).unwrap();
    let (_, other) = shared.begin(2).unwrap();
    let number = stream.number();
    assert_ne!(number >> 16, other.number() >> 16, "sessions spread over the segments");
    shared.end(first, Some(stream), None);
    let (_, third) = shared.begin(3).unwrap();
    assert_ne!(third.number(), number, "another session takes a fresh one while there are few");
    let (_, again) = shared.begin(1).unwrap();
    assert_eq!(again.number(), number);
}

#[test]
fn slots_run_out_and_come_back() {
    let shared = shared(1);
    let mut taken: Vec<_> = (0..58).map(|n| shared.begin(n).unwrap()).collect();
    assert!(shared.begin(1).is_none());
    let (xid, stream) = taken.pop().unwrap();
    shared.end(xid, Some(stream), None);
    assert!(shared.begin(99).is_some());
}

#[test]
fn who_would_close_a_circle_is_told() {
    let shared = shared(1);
    let ids: Vec<Xid> = (0..4).map(|n| shared.begin(n).unwrap().0).collect();
    let mut table = shared.table();
    let wait = |table: &mut crate::transaction::table::Table, waiter: usize, holder: usize| {
        table.find_mut(ids[waiter]).unwrap().waits_for = Some(ids[holder]);
    };
    assert!(!table.closes_circle(ids[0], ids[1]));
    wait(&mut table, 0, 1);
    assert!(table.closes_circle(ids[1], ids[0]), "two for each other");
    wait(&mut table, 1, 2);
    wait(&mut table, 3, 0);
    assert!(table.closes_circle(ids[2], ids[0]), "three in a ring");
    assert!(!table.closes_circle(ids[2], ids[3].max(Xid(999))), "an ended one holds nobody up");
    assert!(table.closes_circle(ids[2], ids[3]));
}
