//! Nodes against a sorted list, with every edit also played back from its redo.

use super::*;
use crate::page;
use units::{Rng, Seed};

/// Bytes, and the edits that made them.
struct Logged {
    page: Vec<u8>,
    replica: Vec<u8>,
    edit_bytes: usize,
}

impl Logged {
    fn new(page_bytes: usize, level: u8) -> Self {
        let mut page = vec![0xEE; page_bytes];
        page::format(&mut page, PageId { file: 1, block: 9 }, kind(level), 77);
        let mut logged = Self { replica: page.clone(), page, edit_bytes: 0 };
        init(&mut logged, level, (level > 0).then_some(PageId { file: 1, block: 1000 }));
        logged
    }
}

impl Sink for Logged {
    fn bytes(&self) -> &[u8] {
        &self.page
    }
    fn write(&mut self, at: usize, data: &[u8]) {
        assert!(at >= COUNT_AT && !data.is_empty());
        self.edit_bytes += 8 + data.len();
        self.page.write(at, data);
        self.replica.write(at, data);
    }
    fn copy_within(&mut self, from: std::ops::Range<usize>, to: usize) {
        assert!(from.start >= COUNT_AT && !from.is_empty());
        self.edit_bytes += 8;
        Sink::copy_within(&mut self.page, from.clone(), to);
        Sink::copy_within(&mut self.replica, from, to);
    }
}

fn any_position(rng: &mut Rng, key_max: usize) -> Fence {
    let bytes = match rng.below(10) {
        0 => rng.below(key_max as u64 + 1),
        _ => rng.below(6),
    };
    let key = (0..bytes).map(|_| [0, 1, 0xFE, 0xFF][rng.below(4) as usize]).collect();
    Fence { key, row: (1 << 48) + rng.below(4) }
}

fn check_against(logged: &Logged, model: &[(Fence, Vec<u8>)]) {
    let page = &logged.page;
    assert_eq!(problems(page), Vec::<String>::new());
    assert_eq!(count(page), model.len());
    for (index, (fence, bytes)) in model.iter().enumerate() {
        assert_eq!(position(page, index), fence.position());
        assert_eq!(entry(page, index), bytes);
    }
    let used: usize = model.iter().map(|(_, bytes)| room_for(bytes.len())).sum();
    assert_eq!(free(page), capacity(page) - used);
    assert_eq!(logged.page, logged.replica);
}

fn insert_remove_compact(seed: u64, page_bytes: usize, level: u8) {
    let mut rng = Rng::new(Seed(seed));
    let mut logged = Logged::new(page_bytes, level);
    let mut model: Vec<(Fence, Vec<u8>)> = Vec::new();
    let key_max = key_bytes_max(page_bytes);
    for step in 0..3000_u32 {
        let fence = any_position(&mut rng, key_max);
        let found = model.binary_search_by(|(here, _)| here.cmp(&fence));
        assert_eq!(lower_bound(&logged.page, fence.position()), found.unwrap_or_else(|at| at));
        assert_eq!(upper_bound(&logged.page, fence.position()), found.map_or_else(|at| at, |at| at + 1));
        match found {
            Ok(at) => {
                remove(&mut logged, at);
                model.remove(at);
            }
            Err(at) => {
                let new = match level {
                    0 => leaf_entry(fence.position()),
                    _ => branch_entry(fence.position(), PageId { file: 1, block: step }),
                };
                if free(&logged.page) < room_for(new.len()) {
                    let gone = rng.below(model.len() as u64) as usize;
                    remove(&mut logged, gone);
                    model.remove(gone);
                    continue;
                }
                if gap(&logged.page) < room_for(new.len()) {
                    compact(&mut logged);
                    assert_eq!(gap(&logged.page), free(&logged.page));
                }
                insert(&mut logged, at, &new);
                model.insert(at, (fence, new));
            }
        }
        if step % 16 == 0 {
            check_against(&logged, &model);
        }
    }
    check_against(&logged, &model);
}

#[test]
fn a_node_is_a_sorted_list() {
    for (seed, page_bytes, level) in [(1, 2048, 0), (2, 2048, 1), (3, 8192, 0), (4, 8192, 3), (5, 32768, 0)] {
        insert_remove_compact(seed, page_bytes, level);
    }
}

#[test]
fn halves_hold_what_the_whole_held() {
    let mut rng = Rng::new(Seed(12));
    for round in 0..400 {
        let level = (round % 2) as u8;
        let mut logged = Logged::new(2048, level);
        loop {
            let fence = any_position(&mut rng, key_bytes_max(2048));
            let at = lower_bound(&logged.page, fence.position());
            let new = match level {
                0 => leaf_entry(fence.position()),
                _ => branch_entry(fence.position(), PageId { file: 1, block: rng.below(1 << 30) as u32 }),
            };
            if gap(&logged.page) < room_for(new.len()) {
                break;
            }
            if at == count(&logged.page) || position(&logged.page, at) != fence.position() {
                insert(&mut logged, at, &new);
            }
        }
        let whole = logged.page.clone();
        let point = if round % 3 == 0 { SplitPoint::Right } else { SplitPoint::Middle };
        let index = split_index(&whole, point);
        assert!((1..count(&whole)).contains(&index));
        let (right, fence) = split(&whole, index);
        truncate(&mut logged, index);
        if round % 4 < 2 {
            compact(&mut logged);
        }
        let left = &logged.page;
        assert_eq!((problems(left), problems(&right)), (vec![], vec![]));
        assert!(position(left, index - 1) < fence.position());
        assert!(fence.position() <= position(&whole, index));
        let moved_up = usize::from(level > 0);
        assert_eq!(count(left) + moved_up + count(&right), count(&whole));
        for index in 0..count(&whole) {
            let (half, there) = if index < count(left) {
                (left, index)
            } else if level > 0 && index == count(left) {
                assert_eq!(child(&right, 0), child(&whole, index + 1));
                continue;
            } else {
                (&right, index - count(left) - moved_up)
            };
            assert_eq!(entry(half, there), entry(&whole, index));
        }
        // Whatever comes next fits either half of a branch; a leaf may have to be split again.
        let largest = room_for(branch_entry_bytes(Position { key: &vec![0; key_bytes_max(2048)], row: 1 }));
        if level > 0 && point == SplitPoint::Middle {
            assert!(free(left) >= largest && free(&right) >= largest);
        }
    }
}

#[test]
fn an_image_is_copied_to_a_page() {
    let mut image = Logged::new(2048, 0);
    for n in 0..20_u8 {
        append(&mut image, &leaf_entry(Position { key: &[n, n], row: 1 << 48 }));
    }
    remove(&mut image, 3);
    let mut page = Logged::new(2048, 1);
    copy(&image.page, &mut page);
    assert_eq!(problems(&page.page), Vec::<String>::new());
    assert_eq!(page.page[COUNT_AT..40], image.page[COUNT_AT..40]);
    assert_eq!(count(&page.page), 19);
    assert_eq!(page.page, page.replica);
}

#[test]
fn children_go_and_their_ranges_are_inherited() {
    let child_of = |block| PageId { file: 1, block };
    let mut page = Logged::new(2048, 1);
    for n in 1..5_u8 {
        append(&mut page, &branch_entry(Position::before(&[n]), child_of(1000 + u32::from(n))));
    }
    remove_child(&mut page, 2);
    let children =
        |page: &Logged| (0..=count(&page.page)).map(|i| child(&page.page, i).block).collect::<Vec<_>>();
    assert_eq!(children(&page), [1000, 1001, 1003, 1004]);
    remove_child(&mut page, 0);
    assert_eq!(children(&page), [1001, 1003, 1004]);
    assert_eq!(position(&page.page, 0), Position::before(&[3]));
    remove_child(&mut page, 2);
    assert_eq!(children(&page), [1001, 1003]);
    assert_eq!(page.page, page.replica);
}

#[test]
fn separators_are_short_and_between() {
    let at = |key: &'static [u8], row| Position { key, row };
    for (left, right, wanted) in [
        (at(b"anna", 1), at(b"bertha", 1), at(b"b", 0)),
        (at(b"ann", 9), at(b"anna", 1), at(b"anna", 0)),
        (at(b"anna", 1), at(b"annb", 1), at(b"annb", 0)),
        (at(b"", 1), at(b"x", 1), at(b"x", 0)),
        (at(b"same", 1), at(b"same", 2), at(b"same", 2)),
    ] {
        let between = separator(left, right);
        assert_eq!(between, wanted);
        assert!(left < between && between <= right);
    }
}

#[test]
fn damage_is_told() {
    let mut page = Logged::new(2048, 0);
    for n in 0..4_u8 {
        append(&mut page, &leaf_entry(Position { key: &[n], row: 1 << 48 }));
    }
    let damaged = |at: usize, byte: u8| {
        let mut bytes = page.page.clone();
        bytes[at] = byte;
        problems(&bytes)
    };
    assert!(damaged(HEAP_AT, 0)[0].contains("bytes of entries"));
    assert!(damaged(COUNT_AT + 1, 0xFF)[0].contains("slots end"));
    assert!(damaged(LEAF_SLOTS_AT + 1, 0)[0].contains("outside"));
    let second = offset(&page.page, LEAF_SLOTS_AT, 1);
    assert!(damaged(second + LEAF_ENTRY_HEAD, 9).iter().any(|words| words.contains("not after")));
    assert!(damaged(second, 3).iter().any(|words| words.contains("overlap")));
}
