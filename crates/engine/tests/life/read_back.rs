//! Devices that acknowledge writes and do something else: reading back finds each, and names file, block, expected and found.

use crate::accounts;
use crate::machine::{create, environment, open, small, storage};
use engine::files::read_back::{self, ReadBack, Wrong, WrongBlock};
use engine::{Instance, InstanceConfig, Shutdown};
use io::Storage;
use io::sim::{Call, Fault, SimStorage, Trouble};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use units::Seed;

const BLOCK: usize = 4096;
const EIO: i32 = 5;

/// Opened so that it keeps notes.
fn noting(storage: &SimStorage, mode: &str) -> Instance {
    let config = InstanceConfig::new("/db").with("_verify_writes", "true").with("filesystemio_options", mode);
    Instance::open(environment(storage), config).unwrap()
}

/// With accounts, shut down, and opened again with notes; some transfers later.
fn busy(mode: &str) -> (SimStorage, Instance) {
    let storage = storage();
    let instance = create(&storage);
    accounts::prepare(&instance);
    instance.shutdown(Shutdown::Immediate).unwrap();
    let instance = noting(&storage, mode);
    transfer(&instance, 0);
    (storage, instance)
}

fn transfer(instance: &Instance, first: i64) {
    let mut session = instance.session("transfers").unwrap();
    accounts::run(&mut session, first..first + 100, Seed(3), &|_| {}).unwrap();
}

fn data_file(instance: &Instance) -> PathBuf {
    instance.datafile().into_iter().map(|file| file.name).next_back().unwrap()
}

fn shut_down(instance: Instance) -> ReadBack {
    instance.shutdown_and_read_back(&mut |_, _| true).unwrap()
}

#[test]
fn an_honest_device_has_all_that_was_written() {
    for mode in ["none", "directio", "setall"] {
        let (storage, instance) = busy(mode);
        let mut told = Vec::new();
        let seen = instance.shutdown_and_read_back(&mut |done, all| {
            told.push((done, all));
            true
        });
        let seen = seen.unwrap();
        assert!(seen.blocks > 100 && seen.bytes >= seen.blocks * BLOCK as u64, "{mode}: {seen:?}");
        assert_eq!((seen.wrong, &seen.told[..], seen.stopped), (0, &[][..], false), "{mode}");
        assert!(told.iter().all(|(done, all)| done <= all && *all == seen.blocks), "{mode}: {told:?}");
        let instance = noting(&storage, mode);
        transfer(&instance, 100);
        assert!(instance.shutdown_and_read_back(&mut |_, _| false).unwrap().stopped);
        assert_eq!(
            shut_down(open(&storage)),
            ReadBack::default(),
            "without the parameter there are no notes"
        );
    }
}

/// The next write to the file of the accounts ends as `trouble` says: what reading back sees of it.
fn after(trouble: Trouble) -> Vec<WrongBlock> {
    let (storage, instance) = busy("none");
    let path = data_file(&instance);
    storage.inject_on(&path, Fault { on: Call::Write, nth: 1, for_ever: false, trouble });
    let seen = shut_down(instance);
    assert_eq!((storage.fired(), seen.wrong), (1, seen.told.len() as u64));
    assert!(seen.wrong > 0 && seen.told.iter().all(|wrong| wrong.path == path), "{trouble:?}: {seen:?}");
    seen.told
}

#[test]
fn each_lie_has_its_name() {
    let lost = after(Trouble::Lost);
    assert!(lost.iter().all(|wrong| wrong.wrong == Wrong::Lost), "{lost:?}");
    let words = lost[0].to_string();
    for part in [".dbf block ", ": lost: expected LSN ", ", which was written last, found LSN "] {
        assert!(words.contains(part), "{words}");
    }
    let torn = after(Trouble::Torn);
    assert!(torn.iter().any(|wrong| wrong.wrong == Wrong::Torn || wrong.wrong == Wrong::Lost), "{torn:?}");
    let misdirected = after(Trouble::Misdirected(BLOCK as u64));
    let told = misdirected.iter().find(|wrong| wrong.wrong == Wrong::Misdirected);
    let next = told.map(|wrong| format!("found file {} block {}", wrong.id.file, wrong.id.block - 1));
    assert!(told.unwrap().to_string().contains(&next.unwrap()), "{misdirected:?}");
}

/// A volatile cache that acknowledges durable writes, and the power goes.
#[test]
fn what_a_lying_device_lost_in_a_power_cut_is_named() {
    let mut kinds = Vec::new();
    for seed in 0..8 {
        let (storage, instance) = busy("setall");
        storage.set_lying(true);
        transfer(&instance, 100);
        let files = read_back::noted(&instance.files);
        instance.shutdown(Shutdown::Immediate).unwrap();
        storage.crash(Seed(seed));
        let seen = read_back::read_back(&storage, &files, BLOCK as u32, &mut |_, _| true).unwrap();
        kinds.extend(seen.told.iter().map(|wrong| wrong.wrong));
    }
    assert!(kinds.contains(&Wrong::Lost) && kinds.contains(&Wrong::Torn), "{kinds:?}");
}

#[test]
fn a_session_that_reads_a_lost_block_is_told_at_once() {
    let (storage, instance) = busy("none");
    let path = data_file(&instance);
    storage.inject_on(&path, Fault { on: Call::Write, nth: 1, for_ever: true, trouble: Trouble::Lost });
    let mut session = instance.session("test").unwrap();
    session.alter_system(&engine::AlterSystem::FlushBufferCache).unwrap();
    let words = accounts::run(&mut session, 100..200, Seed(3), &|_| {}).unwrap_err().to_string();
    assert!(words.contains("which was written last, found LSN"), "{words}");
}

/// A stopped database with one block that `change` has made something else of.
fn changed(change: impl FnOnce(&SimStorage, &Path, u64)) -> ReadBack {
    let (storage, instance) = busy("none");
    let (files, path) = (read_back::noted(&instance.files), data_file(&instance));
    instance.shutdown(Shutdown::Immediate).unwrap();
    let notes = files.iter().find(|file| file.path == path).and_then(|file| file.written.as_ref()).unwrap();
    let block = notes.blocks(1, 1)[0];
    change(&storage, &path, u64::from(block) * BLOCK as u64);
    read_back::read_back(&storage, &files, BLOCK as u32, &mut |_, _| true).unwrap()
}

fn kinds(seen: &ReadBack) -> Vec<Wrong> {
    seen.told.iter().map(|wrong| wrong.wrong).collect()
}

fn content(storage: &SimStorage, path: &Path, offset: u64) -> Vec<u8> {
    storage.read(path).unwrap()[offset as usize..][..BLOCK].to_vec()
}

#[test]
fn flipped_bits_zeroes_and_strange_blocks_are_found() {
    let seen = changed(|storage, path, offset| {
        let byte = content(storage, path, offset)[777];
        storage.damage(path, offset + 777, &[byte ^ 4]);
    });
    assert_eq!(kinds(&seen), [Wrong::Torn]);
    let seen = changed(|storage, path, offset| storage.damage(path, offset, &[0; BLOCK]));
    assert_eq!((kinds(&seen), seen.told[0].found.as_str()), (vec![Wrong::Lost], "zeroes"));
    let seen = changed(|storage, path, offset| {
        let mut page = content(storage, path, offset);
        engine::page::set_lsn(&mut page, engine::Lsn(u64::MAX / 2));
        engine::page::seal(&mut page);
        storage.damage(path, offset, &page);
    });
    assert_eq!(kinds(&seen), [Wrong::Foreign]);
}

#[test]
fn an_old_answer_once_is_stale_and_not_lost() {
    let seen = changed(|storage, path, offset| {
        let right = content(storage, path, offset);
        let mut old = right.clone();
        engine::page::set_lsn(&mut old, engine::Lsn(1));
        engine::page::seal(&mut old);
        storage.damage(path, offset, &old);
        let (path, reads) = (path.to_owned(), AtomicU64::new(0));
        storage.on_call(Some(Arc::new(move |storage, info| {
            let here = info.offset <= offset && offset < info.offset + info.bytes;
            if info.call == Call::Read
                && info.path == path
                && here
                && reads.fetch_add(1, Ordering::Relaxed) == 1
            {
                storage.damage(&path, offset, &right);
            }
        })));
    });
    assert_eq!(kinds(&seen), [Wrong::Stale]);
    assert!(seen.told[0].found.contains("second reading"), "{}", seen.told[0]);
}

#[test]
fn a_read_that_fails_is_tried_block_by_block() {
    let fault = |for_ever| Fault { on: Call::Read, nth: 1, for_ever, trouble: Trouble::Errno(EIO) };
    let seen = changed(|storage, path, _| storage.inject_on(path, fault(false)));
    assert_eq!(seen.wrong, 0, "each block by itself can be read");
    let seen = changed(|storage, path, _| storage.inject_on(path, fault(true)));
    assert!(seen.wrong > 0 && kinds(&seen).iter().all(|kind| *kind == Wrong::Unreadable));
    assert!(
        seen.told[0].to_string().contains("expected a block that can be read, found "),
        "{}",
        seen.told[0]
    );
    assert!(seen.told.len() <= 100, "the first are told, all are counted");
}

/// Blocks smaller than what a direct read is aligned to.
#[test]
fn small_blocks_are_read_back_too() {
    let storage = storage();
    let config = small("/db").with("db_block_size", "2k").with("filesystemio_options", "setall");
    let instance = Instance::create(environment(&storage), config).unwrap();
    accounts::prepare(&instance);
    instance.shutdown(Shutdown::Immediate).unwrap();
    let instance = noting(&storage, "setall");
    transfer(&instance, 0);
    let seen = shut_down(instance);
    assert!(seen.blocks > 100 && seen.wrong == 0, "{seen:?}");
}
