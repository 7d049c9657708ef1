//! A tree from entries that are in order already, bottom up: each page is written once, nine tenths full.
//!
//! Each level keeps the node that it is filling. A full one goes to a page and its address to the level above. The root comes
//! last: until then nothing leads to the other pages, and a crash leaves a segment that no index uses.

use super::descend::expect_key_fits;
use super::node::{self, Fence, Position};
use super::pages::{Edit, Pages, edit};
use crate::Result;
use crate::page::PageId;
use crate::value::RowId;

/// A node being filled.
struct Open {
    image: Vec<u8>,
    /// Where its range begins; none is the beginning of all.
    low: Option<Fence>,
}

struct Builder<'p, P> {
    pages: &'p P,
    page_bytes: usize,
    root: PageId,
    /// The open node of each level, leaf first.
    levels: Vec<Open>,
    last: Option<Fence>,
}

/// Makes the tree of a segment that has no pages yet. `entries`: strictly ascending by key, then row. The result is how many there
/// were. Without entries this makes an empty tree: the root and one leaf.
///
/// # Errors
/// No space in the tablespace, a key that is too long, what `entries` says; the segment is then to be dropped.
///
/// # Panics
/// When the entries are not in order: a bug of the caller that would lose rows.
pub(super) fn build<P: Pages>(
    pages: &P,
    page_bytes: usize,
    entries: &mut dyn Iterator<Item = Result<(Vec<u8>, RowId)>>,
) -> Result<u64> {
    let root = pages.allocate()?;
    assert_eq!(root, pages.root(), "the first page of a segment follows its header");
    let leaf = Open { image: empty(page_bytes, 0, None), low: None };
    let mut builder = Builder { pages, page_bytes, root, levels: vec![leaf], last: None };
    let mut count = 0;
    for entry in entries {
        let (key, row) = entry?;
        builder.push(Position::of(&key, row))?;
        count += 1;
    }
    builder.finish()?;
    Ok(count)
}

fn empty(page_bytes: usize, level: u8, first_child: Option<PageId>) -> Vec<u8> {
    let mut image = vec![0; page_bytes];
    node::init(&mut image, level, first_child);
    image
}

/// Whether an entry still belongs in a node, or begins the next: a tenth stays free for later entries.
fn is_full_for(image: &[u8], entry_bytes: usize) -> bool {
    let room = node::room_for(entry_bytes);
    node::gap(image) < room
        || (node::count(image) > 0 && node::gap(image) < node::capacity(image) / 10 + room)
}

impl<P: Pages> Builder<'_, P> {
    fn push(&mut self, position: Position<'_>) -> Result<()> {
        expect_key_fits(position.key, &self.levels[0].image)?;
        let last = self.last.as_ref().map(Fence::position);
        assert!(last.is_none_or(|last| last < position), "entries are not in order");
        if is_full_for(&self.levels[0].image, node::leaf_entry_bytes(position.key)) {
            let between = Fence::from(node::separator(last.expect("a full leaf has entries"), position));
            let next = Open { image: empty(self.page_bytes, 0, None), low: Some(between) };
            let full = std::mem::replace(&mut self.levels[0], next);
            self.close(0, full)?;
        }
        node::append(&mut self.levels[0].image, &node::leaf_entry(position));
        Fence::set(&mut self.last, position);
        Ok(())
    }

    /// Writes a node of `level` to a page and tells the level above.
    fn close(&mut self, level: usize, node: Open) -> Result<()> {
        let id = self.pages.allocate()?;
        self.write(id, level, &node.image)?;
        self.add_child(level + 1, node.low, id)
    }

    fn add_child(&mut self, level: usize, low: Option<Fence>, child: PageId) -> Result<()> {
        let first = |low| Open { image: empty(self.page_bytes, level as u8, Some(child)), low };
        if level == self.levels.len() {
            debug_assert!(low.is_none());
            let open = first(low);
            self.levels.push(open);
            return Ok(());
        }
        let from = low.as_ref().expect("only the first child of a level has no lower bound").position();
        let entry = node::branch_entry(from, child);
        if is_full_for(&self.levels[level].image, entry.len()) {
            let next = first(low);
            let full = std::mem::replace(&mut self.levels[level], next);
            return self.close(level, full);
        }
        node::append(&mut self.levels[level].image, &entry);
        Ok(())
    }

    fn write(&self, id: PageId, level: usize, image: &[u8]) -> Result<()> {
        let mut change = self.pages.begin(1, self.page_bytes + 64)?;
        let page = change.new_page(id, node::kind(level as u8), self.pages.object())?;
        node::copy(image, &mut edit(&mut change, page));
        change.finish();
        Ok(())
    }

    /// Closes all levels, the leaves' first; the highest branch is the root.
    fn finish(mut self) -> Result<()> {
        let mut level = 0;
        loop {
            let top = level > 0 && level + 1 == self.levels.len();
            let node = std::mem::replace(&mut self.levels[level], Open { image: Vec::new(), low: None });
            if top {
                return self.write(self.root, level, &node.image);
            }
            self.close(level, node)?;
            level += 1;
        }
    }
}
