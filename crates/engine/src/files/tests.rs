//! Tests of the parent module: files are ours, whole, and finished or gone after a crash.

use super::admin::{finish_interrupted, open_all};
use super::control::{Content, ControlFile, ControlPlan, FileState, State, TablespaceRecord};
use super::*;
use crate::instance::{AlertLog, Health};
use crate::page::Lsn;
use crate::testing;
use io::sim::SimStorage;
use units::{Clock, Seed};

const ID: u64 = 77;
const BLOCK: u32 = 4096;

fn access() -> Access {
    Access { read: true, write: true, direct: true, dsync: true }
}

fn files(storage: &SimStorage) -> FileSet {
    FileSet::new(storage.handle(), access(), BLOCK)
}

fn record(number: u16, state: FileState) -> FileRecord {
    FileRecord {
        number,
        tablespace: 0,
        temporary: false,
        state,
        blocks: 32,
        next_blocks: 0,
        max_blocks: 32,
        created: Lsn(0),
        path: format!("/db/{number}.dbf").into(),
    }
}

fn alert(storage: &SimStorage) -> Arc<AlertLog> {
    Arc::new(AlertLog::new(storage.handle(), Clock::steps(), Path::new("/db")))
}

fn control(storage: &SimStorage, records: Vec<FileRecord>) -> ControlFile {
    let mut content = Content::new(ID, 0, BLOCK, 4096);
    content.state = State::Open;
    content.copies = vec!["/db/control01.ctl".into()];
    content.tablespaces =
        vec![TablespaceRecord { number: 0, name: "SYSTEM".into(), kind: TablespaceKind::Permanent }];
    content.files = records;
    let health = Health::new(alert(storage));
    let plan = ControlPlan { storage, clock: Clock::steps(), health, access: access() };
    ControlFile::create(plan, content).unwrap()
}

fn refusal(storage: &SimStorage, record: &FileRecord, id: u64, block_bytes: u32) -> String {
    let files = FileSet::new(storage.handle(), access(), block_bytes);
    files.open(record, TablespaceKind::Permanent, id).err().expect("refused").to_string()
}

#[test]
fn a_file_is_found_by_its_number() {
    let storage = testing::storage();
    let files = files(&storage);
    for number in [1, 2, 255, 256, 65_000] {
        files.create(&record(number, FileState::Online), TablespaceKind::Permanent, ID).unwrap();
    }
    assert!(files.get(3).is_none() && files.get(0).is_none() && files.get(u16::MAX).is_none());
    assert_eq!(files.get(256).unwrap().path, Path::new("/db/256.dbf"));
    let (disk, path) = files.of(PageId { file: 65_000, block: 5 });
    assert_eq!((disk.bytes(), path.as_path()), (32 * u64::from(BLOCK), Path::new("/db/65000.dbf")));
    let numbers: Vec<_> = files.of_tablespace(0).iter().map(|file| file.number).collect();
    assert_eq!(numbers, [1, 2, 255, 256, 65_000]);
    assert!(files.of_tablespace(1).is_empty());
    let file = files.get(2).unwrap();
    assert_eq!((file.blocks(), file.file_type().name()), (32, "Data File"));
}

#[test]
fn only_our_own_file_in_its_place_is_opened() {
    let storage = testing::storage();
    let ours = record(1, FileState::Online);
    files(&storage).create(&ours, TablespaceKind::Permanent, ID).unwrap();
    files(&storage).open(&ours, TablespaceKind::Permanent, ID).unwrap();
    assert!(refusal(&storage, &ours, ID + 1, BLOCK).contains("belongs to another database"));
    assert!(refusal(&storage, &ours, ID, 2048).contains("header is damaged"));
    let other = FileRecord { tablespace: 3, ..ours.clone() };
    assert!(refusal(&storage, &other, ID, BLOCK).contains("tablespace 0, kind 1"));
    let swapped = FileRecord { number: 2, ..ours.clone() };
    assert!(refusal(&storage, &swapped, ID, BLOCK).contains("expected file 2 block 0, found file 1 block 0"));
    let longer = FileRecord { blocks: 33, ..ours.clone() };
    assert!(refusal(&storage, &longer, ID, BLOCK).contains("cut off or replaced"));
    storage.damage(&ours.path, 200, b"x");
    assert!(refusal(&storage, &ours, ID, BLOCK).contains("header is damaged"));
    storage.damage(&ours.path, 0, &[0; BLOCK as usize]);
    assert!(refusal(&storage, &ours, ID, BLOCK).contains("no data file"));
    Storage::remove(&storage, &ours.path).unwrap();
    assert!(refusal(&storage, &ours, ID, BLOCK).contains("no such file"));
}

/// A data file was being made, another being dropped when the power went; somebody else's file lies where a third was to be.
#[test]
fn what_was_interrupted_is_finished_or_undone() {
    let storage = testing::storage();
    let states = [
        FileState::Online,
        FileState::Creating,
        FileState::Dropping,
        FileState::Creating,
        FileState::Creating,
    ];
    let records: Vec<_> = (1..).zip(states).map(|(number, state)| record(number, state)).collect();
    for record in &records[..3] {
        files(&storage).create(record, TablespaceKind::Permanent, ID).unwrap();
    }
    Storage::replace(&storage, &records[3].path, b"a letter to grandmother").unwrap();
    let half_made = storage.create(&records[4].path, 100, access()).unwrap();
    drop(half_made);
    let control = control(&storage, records.clone());
    finish_interrupted(&storage, &control, &alert(&storage), &testing::context()).unwrap();
    let there: Vec<_> = records.iter().map(|record| storage.exists(&record.path)).collect();
    assert_eq!(there, [true, false, false, true, false], "the letter stays");
    assert_eq!(control.content().files, records[..1]);
    let files = files(&storage);
    assert_eq!(open_all(&files, &control, &alert(&storage)).unwrap().len(), 1);
    finish_interrupted(&storage, &control, &alert(&storage), &testing::context()).unwrap();
}

#[test]
fn a_lost_temp_file_is_made_again_and_a_lost_data_file_is_not() {
    let storage = testing::storage();
    let temp = FileRecord { temporary: true, tablespace: 1, ..record(2, FileState::Online) };
    let control = control(&storage, vec![record(1, FileState::Online), temp.clone()]);
    control
        .update(&testing::context(), |content| {
            let kind = TablespaceKind::Temporary;
            content.tablespaces.push(TablespaceRecord { number: 1, name: "TEMP".into(), kind });
            Ok(())
        })
        .unwrap();
    assert!(open_all(&files(&storage), &control, &alert(&storage)).is_err());
    files(&storage).create(&record(1, FileState::Online), TablespaceKind::Permanent, ID).unwrap();
    let files = files(&storage);
    open_all(&files, &control, &alert(&storage)).unwrap();
    assert_eq!(files.get(2).unwrap().file_type(), FileType::Temp);
    assert!(storage.exists(&temp.path));
}

#[test]
fn a_header_survives_every_crash_once_the_file_is_made() {
    for seed in 0..20 {
        let storage = testing::storage();
        let record = record(1, FileState::Online);
        files(&storage).create(&record, TablespaceKind::Permanent, ID).unwrap();
        storage.crash(Seed(seed));
        files(&storage).open(&record, TablespaceKind::Permanent, ID).unwrap();
    }
}
