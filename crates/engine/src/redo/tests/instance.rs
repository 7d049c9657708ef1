//! Changes in a whole instance, against a model of its pages: the power goes at any call, comes back, and goes again.
//!
//! The pages lie at the end of a data file, where no segment will ever reach. There are more of them than the cache holds, so
//! that recovery writes pages and reads them again.

use crate::change::{Change, Handle};
use crate::files::control::TablespaceKind;
use crate::page::{self, Lsn, PageId, PageKind};
use crate::redo::record::EDITABLE_FROM;
use crate::testing;
use crate::{Context, Core, Environment, Instance, InstanceConfig, Result, Shutdown};
use io::sim::{CallInfo, SimStorage};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use units::{Rng, Seed};
use waits::SessionKind;

const PAGE: usize = 8192;
const PAGES: u32 = 100;

fn config(protection: &str) -> InstanceConfig {
    let mut config = InstanceConfig::new("/db")
        .with("db_block_size", "8k")
        .with("db_cache_size", "512k")
        .with("log_block_size", "512")
        .with("log_buffer", "512k")
        .with("torn_page_protection", protection);
    config.redo_bytes = 2 << 20;
    config.redo_groups = 3;
    config
}

/// A new database, made once; tests work on forks of it.
fn made(protection: &str) -> SimStorage {
    let storage = testing::storage();
    let instance = Instance::create(testing::environment(&storage), config(protection)).unwrap();
    instance.shutdown(Shutdown::Immediate).unwrap();
    storage
}

/// All pages at one moment.
type Shadow = BTreeMap<PageId, Arc<Vec<u8>>>;

/// What the pages should be.
struct Model {
    /// After each change that may have survived: its end, and all pages. The first is what the last recovery left.
    states: Vec<(Lsn, Shadow)>,
    /// How many of them must be there.
    acknowledged: usize,
}

impl Model {
    fn now(&self) -> &Shadow {
        &self.states.last().unwrap().1
    }
}

/// Content without checksum and LSN.
fn content(page: &[u8]) -> Vec<u8> {
    let mut page = page.to_vec();
    page[..4].fill(0);
    page[16..24].fill(0);
    page
}

fn page_id(core: &Core, index: u32) -> PageId {
    let content = core.control.content();
    let users =
        content.tablespaces.iter().find(|t| t.kind == TablespaceKind::Permanent && t.number > 0).unwrap();
    let file = content.files.iter().find(|f| f.tablespace == users.number).unwrap();
    PageId { file: file.number, block: file.blocks - PAGES + index }
}

/// One random change, made with the engine and with the model.
fn change(core: &Core, context: &Context, rng: &mut Rng, model: &mut Model) -> Result<Lsn> {
    let mut pages = model.now().clone();
    let mut ids: Vec<PageId> =
        (0..=rng.below(3)).map(|_| page_id(core, rng.below(PAGES.into()) as u32)).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut change = Change::begin(core, context, ids.len(), 3_000)?;
    let mut handles = Vec::new();
    for id in &ids {
        let fresh = rng.below(12) == 0 || !pages.contains_key(id);
        let handle = if fresh { change.new_page(*id, PageKind::Heap, 99)? } else { change.page(*id)? };
        if !fresh {
            assert_eq!(change.page(*id)?, handle, "the same page twice");
        }
        handles.push((handle, fresh));
    }
    if rng.below(20) == 0 {
        // Given up before the first edit: as if it had never been.
        drop(change);
        // Pages that were formatted for nothing are no pages of the database: reading them would be the caller's mistake.
        let formatted = ids.iter().zip(&handles).filter(|(_, (_, fresh))| *fresh);
        let mut again = Change::begin(core, context, 4, 0)?;
        for (id, _) in formatted {
            again.new_page(*id, PageKind::Heap, 99)?;
            let mut page = vec![0; PAGE];
            page::format(&mut page, *id, PageKind::Heap, 99);
            pages.insert(*id, Arc::new(content(&page)));
        }
        return Ok(note(core, model, again, pages));
    }
    for (id, (_, fresh)) in ids.iter().zip(&handles) {
        if *fresh {
            let mut page = vec![0; PAGE];
            page::format(&mut page, *id, PageKind::Heap, 99);
            pages.insert(*id, Arc::new(content(&page)));
        }
    }
    for _ in 0..rng.below(6) {
        let at = rng.below(handles.len() as u64) as usize;
        let shadow = Arc::make_mut(pages.get_mut(&ids[at]).unwrap());
        edit(&mut change, handles[at].0, shadow, rng);
    }
    for (id, (handle, _)) in ids.iter().zip(&handles) {
        assert_eq!(content(change.bytes(*handle)), **pages[id], "{id}");
    }
    Ok(note(core, model, change, pages))
}

/// Finishes a change. One without edits is none: its pages say nothing of it.
fn note(core: &Core, model: &mut Model, change: Change<'_>, pages: Shadow) -> Lsn {
    let before = core.redo.tail_lsn();
    let end = change.finish();
    if end > before {
        model.states.push((end, pages));
    } else {
        assert_eq!(model.now(), &pages);
    }
    end
}

fn edit(change: &mut Change<'_>, page: Handle, shadow: &mut [u8], rng: &mut Rng) {
    let at = EDITABLE_FROM + rng.below((PAGE - EDITABLE_FROM) as u64) as usize;
    let length = rng.below(((PAGE - at) as u64 + 1).min(300)) as usize;
    match rng.below(3) {
        0 => {
            let data: Vec<u8> = (0..length).map(|_| rng.next_u64() as u8).collect();
            shadow[at..at + length].copy_from_slice(&data);
            change.write(page, at, &data);
        }
        1 => {
            let to = EDITABLE_FROM + rng.below((PAGE - length - EDITABLE_FROM) as u64 + 1) as usize;
            shadow.copy_within(at..at + length, to);
            change.copy_within(page, at..at + length, to);
        }
        _ => {
            shadow[at..at + length].fill(0x77);
            change.fill(page, at, length, 0x77);
        }
    }
}

/// Works until the power goes, or `changes` are made.
fn work(core: &Arc<Core>, rng: &mut Rng, model: &mut Model, changes: u32) -> Result<()> {
    let context = core.context(SessionKind::Foreground, "test")?;
    for _ in 0..changes {
        let end = change(core, &context, rng, model)?;
        match rng.below(12) {
            0..4 => {
                core.redo.wait_durable(core, &context, end)?;
                model.acknowledged = model.states.len();
            }
            4 if rng.below(8) == 0 => core.cache.checkpoint(core, &context)?,
            5 if rng.below(8) == 0 => core.redo.switch_logfile(core, &context)?,
            6 if rng.below(8) == 0 => core.cache.flush(core, &context)?,
            7 if rng.below(12) == 0 => add_and_drop(core, &context)?,
            _ => {}
        }
    }
    Ok(())
}

fn add_and_drop(core: &Core, context: &Context) -> Result<()> {
    let number = core.redo.log().iter().map(|row| row.group).max().unwrap_or(0) + 1;
    let spec = crate::redo::GroupSpec {
        members: ["a", "b"].iter().map(|m| format!("/db/more{number}{m}").into()).collect(),
        bytes: 2 << 20,
    };
    match core.redo.add_group(context, None, &spec) {
        // The files of a group whose number is used again, dropped by a crash.
        Err(crate::EngineError::Exists { .. }) => return Ok(()),
        result => drop(result?),
    }
    for row in core.redo.log() {
        match core.redo.drop_group(context, row.group) {
            Ok(()) => return Ok(()),
            Err(crate::EngineError::Invalid(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The pages must be those after some change that is not older than the last one acknowledged; the model goes on from there.
///
/// # Errors
/// When the power goes meanwhile.
fn check(core: &Arc<Core>, model: &mut Model, words: &str) -> Result<()> {
    let context = core.context(SessionKind::Foreground, "check")?;
    let mut found = BTreeMap::new();
    for id in (0..PAGES).map(|index| page_id(core, index)) {
        found.insert(id, core.cache.read(core, &context, id)?.to_vec());
    }
    let newest = found.values().map(|page| page::lsn(page)).max().unwrap();
    let at = model.states.iter().rposition(|(end, _)| *end <= newest).unwrap_or(0);
    assert!(at + 1 >= model.acknowledged, "{words}: {at} of {} changes", model.acknowledged);
    let (end, expected) = model.states[at].clone();
    for (id, page) in &expected {
        assert_eq!(content(&found[id]), **page, "{words}: {id} as of {end:?}");
    }
    for (id, page) in found.iter().filter(|(id, _)| !expected.contains_key(id)) {
        assert_eq!(page::lsn(page), Lsn(0), "{words}: {id} was never changed");
    }
    *model = Model { states: vec![(newest, expected)], acknowledged: 1 };
    Ok(())
}

fn cut(storage: &SimStorage, after: u64, seed: Seed) {
    let at = storage.calls() + after;
    storage.on_call(Some(Arc::new(move |storage: &SimStorage, call: &CallInfo<'_>| {
        if call.number == at {
            storage.crash(seed);
        }
    })));
}

fn rounds(base: &SimStorage, protection: &str, seed: u64) {
    let storage = base.fork();
    let environment: Environment = testing::environment(&storage);
    let (mut rng, rounds) = (Rng::new(Seed(seed)), 4);
    let mut model = Model { states: vec![(Lsn(0), BTreeMap::new())], acknowledged: 1 };
    for round in 0..rounds {
        let after = 1 + rng.below(if round % 2 == 0 { 400 } else { 60 });
        cut(&storage, after, Seed(seed * 100 + round));
        // The cut may come during the open, in the work, or not at all.
        if let Ok(instance) = Instance::open(environment.clone(), config(protection)) {
            let _ = check(&instance.core, &mut model, &format!("seed {seed} round {round}"))
                .and_then(|()| work(&instance.core, &mut rng, &mut model, 150));
        }
        storage.on_call(None);
        storage.crash(Seed(seed * 100 + round + 50));
    }
    let instance = Instance::open(environment, config(protection)).unwrap();
    check(&instance.core, &mut model, &format!("seed {seed} at the end")).unwrap();
}

#[test]
fn the_power_may_go_at_any_call() {
    let base = made("redo");
    (0..40).for_each(|seed| rounds(&base, "redo", seed));
}

#[test]
fn the_power_may_go_at_any_call_with_doublewrite() {
    let base = made("doublewrite");
    (0..20).for_each(|seed| rounds(&base, "doublewrite", seed));
}

#[test]
fn nothing_is_rolled_forward_after_a_clean_shutdown() {
    let storage = made("redo");
    let environment = testing::environment(&storage);
    let mut model = Model { states: vec![(Lsn(0), BTreeMap::new())], acknowledged: 1 };
    let mut rng = Rng::new(Seed(3));
    for _ in 0..3 {
        let instance = Instance::open(environment.clone(), config("redo")).unwrap();
        work(&instance.core, &mut rng, &mut model, 200).unwrap();
        model.acknowledged = model.states.len();
        let before = alert(&storage);
        instance.shutdown(Shutdown::Immediate).unwrap();
        let instance = Instance::open(environment.clone(), config("redo")).unwrap();
        assert!(!alert(&storage)[before.len()..].contains("rolled forward"), "{}", alert(&storage));
        check(&instance.core, &mut model, "after a clean shutdown").unwrap();
        instance.shutdown(Shutdown::Immediate).unwrap();
    }
}

fn alert(storage: &SimStorage) -> String {
    let bytes = storage.handle().read(Path::new("/db/alert.log")).unwrap_or_default();
    String::from_utf8(bytes).unwrap()
}

fn with_core(body: impl FnOnce(&Core, &Context)) {
    let storage = made("redo");
    let instance = Instance::open(testing::environment(&storage), config("redo")).unwrap();
    let context = instance.core.context(SessionKind::Foreground, "test").unwrap();
    body(&instance.core, &context);
}

#[test]
#[should_panic(expected = "dropped after its first edit")]
fn a_change_with_edits_cannot_be_given_up() {
    with_core(|core, context| {
        let mut change = Change::begin(core, context, 1, 100).unwrap();
        let page = change.new_page(page_id(core, 0), PageKind::Heap, 9).unwrap();
        change.write(page, 40, b"x");
        drop(change);
    });
}

#[test]
#[should_panic(expected = "more edits than the change was begun for")]
fn edits_beyond_the_reservation_are_a_bug() {
    with_core(|core, context| {
        let mut change = Change::begin(core, context, 1, 20).unwrap();
        let page = change.new_page(page_id(core, 0), PageKind::Heap, 9).unwrap();
        change.write(page, 40, &[1; 12]);
        change.write(page, 60, b"x");
    });
}

#[test]
#[should_panic(expected = "more pages are changed")]
fn pages_beyond_the_reservation_are_a_bug() {
    with_core(|core, context| {
        let mut change = Change::begin(core, context, 1, 100).unwrap();
        change.new_page(page_id(core, 0), PageKind::Heap, 9).unwrap();
        change.new_page(page_id(core, 1), PageKind::Heap, 9).unwrap();
    });
}

#[test]
#[should_panic(expected = "is not editable")]
fn the_header_of_a_page_is_nobodys_to_edit() {
    with_core(|core, context| {
        let mut change = Change::begin(core, context, 1, 100).unwrap();
        let page = change.new_page(page_id(core, 0), PageKind::Heap, 9).unwrap();
        change.write(page, 16, &[0; 8]);
    });
}

#[test]
fn pages_only_looked_at_cost_nothing_and_can_be_given_back() {
    with_core(|core, context| {
        let mut change = Change::begin(core, context, 1, 100).unwrap();
        let pages: Vec<Handle> = (0..5).map(|n| change.page(page_id(core, n)).unwrap()).collect();
        change.release(pages[0]);
        assert!(change.try_page(page_id(core, 0)).unwrap().is_some(), "latched once more");
        change.write(pages[3], 100, b"y");
        let before = core.redo.tail_lsn();
        assert!(change.finish() > before);
        let mut other = Change::begin(core, context, 1, 100).unwrap();
        other.page(page_id(core, 3)).unwrap();
        let tail = core.redo.tail_lsn();
        assert_eq!(other.finish(), tail, "a change without edits leaves no redo");
    });
}
