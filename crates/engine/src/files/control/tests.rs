//! Tests of the parent module: the power goes at every call, copies fail, slots are damaged.

use super::*;
use crate::instance::AlertLog;
use crate::page::Lsn;
use crate::testing;
use io::sim::{Call, Fault, SimStorage, Trouble};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use units::{Rng, Seed};

const FIRST: &str = "/db/control01.ctl";
const SECOND: &str = "/db/control02.ctl";
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

fn health(storage: &SimStorage) -> Arc<Health> {
    Health::new(Arc::new(AlertLog::new(storage.handle(), Clock::steps(), Path::new("/db"))))
}

fn plan<'a>(storage: &'a SimStorage, health: &Arc<Health>) -> ControlPlan<'a> {
    let access = Access { read: true, write: true, direct: true, dsync: true };
    ControlPlan { storage, clock: Clock::steps(), health: health.clone(), access }
}

fn content() -> Content {
    let mut content = Content::new(0xDEC0DE, 1_795_253_400, 8192, 4096);
    content.copies = vec![FIRST.into(), SECOND.into()];
    content
}

fn create(storage: &SimStorage) -> (ControlFile, Arc<Health>) {
    let health = health(storage);
    (ControlFile::create(plan(storage, &health), content()).unwrap(), health)
}

fn open(storage: &SimStorage) -> Result<Option<ControlFile>> {
    ControlFile::open(plan(storage, &health(storage)), Path::new(FIRST))
}

fn opens(storage: &SimStorage) -> u64 {
    open(storage).unwrap().expect("not blank").content().opens
}

fn count(control: &ControlFile) -> Result<()> {
    control.update(&testing::context(), |content| {
        content.opens += 1;
        Ok(())
    })
}

fn fault(nth: u64, errno: i32) -> Fault {
    Fault { on: Call::Write, nth, for_ever: true, trouble: Trouble::Errno(errno) }
}

fn alert(storage: &SimStorage) -> String {
    let text = Storage::read(storage, Path::new("/db/alert.log")).unwrap_or_default();
    String::from_utf8(text).unwrap()
}

/// Everything that there is, twice, with names that are awkward.
fn full() -> Content {
    let file = |number, temporary, state| FileRecord {
        number,
        tablespace: number % 3,
        temporary,
        state,
        blocks: 77,
        next_blocks: 5,
        max_blocks: u32::MAX,
        created: Lsn(u64::MAX),
        path: format!("/data/ä {number}\n.dbf").into(),
    };
    let member = |path: &str, state| MemberRecord { state, path: path.into() };
    let mut content = content();
    content.state = State::Clean;
    content.checkpoint = Lsn(123_456_789_000);
    content.tablespaces = vec![
        TablespaceRecord { number: 0, name: "SYSTEM".into(), kind: TablespaceKind::Permanent },
        TablespaceRecord { number: 1, name: "UNDO".into(), kind: TablespaceKind::Undo },
        TablespaceRecord { number: 2, name: "TEMP".into(), kind: TablespaceKind::Temporary },
    ];
    content.files = vec![file(1, false, FileState::Online), file(9, true, FileState::Creating)];
    content.groups = vec![
        GroupRecord { number: 1, bytes: 1 << 26, members: vec![member("/a", FileState::Online)] },
        GroupRecord { number: 4, bytes: 1, members: vec![member("", FileState::Dropping)] },
    ];
    content.parameters.insert("db_cache_size".into(), "1048576".into());
    content.push_log(LogRecord { sequence: 1, first_lsn: Lsn(0), next_lsn: Lsn(9), first_time: 3 });
    content
}

#[test]
fn what_is_written_is_read_back() {
    let storage = testing::storage();
    let health = health(&storage);
    let control = ControlFile::create(plan(&storage, &health), full()).unwrap();
    assert_eq!(*control.content(), full());
    assert_eq!(*open(&storage).unwrap().unwrap().content(), full());
    assert_eq!(peek(&storage, Path::new(SECOND)).unwrap().unwrap(), full());
    assert_eq!(control.statistics().look().small_write.requests, 2);
}

#[test]
fn no_bytes_make_it_panic() {
    let encoded = full().encode();
    assert_eq!(Content::decode(&encoded).unwrap(), full());
    for length in 0..encoded.len() {
        assert!(Content::decode(&encoded[..length]).is_err(), "cut at {length}");
    }
    let mut rng = Rng::new(Seed(5));
    for _ in 0..20_000 {
        let mut damaged = encoded.clone();
        let at = rng.below(damaged.len() as u64) as usize;
        damaged[at] = rng.next_u64() as u8;
        let _ = Content::decode(&damaged);
    }
    let mut newer = encoded;
    newer[0] = 2;
    assert!(Content::decode(&newer).unwrap_err().contains("another version"));
}

#[test]
fn filled_logs_are_forgotten_from_the_oldest_on() {
    let mut content = content();
    for sequence in 0..=LOGS_MAX as u64 {
        content.push_log(LogRecord { sequence, first_lsn: Lsn(0), next_lsn: Lsn(0), first_time: 0 });
    }
    assert_eq!((content.logs.len(), content.logs[0].sequence), (LOGS_MAX, 1));
}

/// Updates are cut at each call, in the middle of it, with many fates of the write that goes on: what was acknowledged is
/// there, what was going on is there as a whole or not at all.
#[test]
fn the_power_may_go_at_any_moment() {
    let storage = testing::storage();
    let (control, _) = create(&storage);
    let acknowledged = Arc::new(AtomicU64::new(0));
    let forks = Arc::new(Mutex::new(Vec::new()));
    let (known, keep) = (acknowledged.clone(), forks.clone());
    storage.on_call(Some(Arc::new(move |storage, _| {
        keep.lock().unwrap().push((storage.fork(), known.load(Ordering::SeqCst)));
    })));
    for _ in 0..6 {
        count(&control).unwrap();
        acknowledged.fetch_add(1, Ordering::SeqCst);
    }
    storage.on_call(None);
    let forks = std::mem::take(&mut *forks.lock().unwrap());
    assert_eq!(forks.len(), 12, "each update writes two copies");
    let (mut before, mut after) = (0, 0);
    for (fork, acknowledged) in forks {
        for seed in 0..60 {
            let fork = fork.fork();
            fork.crash(Seed(seed));
            let found = opens(&fork);
            if found == acknowledged {
                before += 1;
            } else {
                assert_eq!(found, acknowledged + 1, "seed {seed}");
                after += 1;
            }
            // And from there it goes on, whatever the other slot and the other copy look like.
            let control = open(&fork).unwrap().unwrap();
            count(&control).unwrap();
            count(&control).unwrap();
            assert_eq!(opens(&fork), found + 2);
            assert_eq!(peek(&fork, Path::new(SECOND)).unwrap().unwrap().opens, found + 2);
        }
    }
    assert!(before > 100 && after > 100, "{before} {after}");
}

/// The power goes while a database begins: nothing, a blank file, or all of it.
#[test]
fn a_half_made_control_file_is_blank() {
    let storage = testing::storage();
    let forks = Arc::new(Mutex::new(Vec::new()));
    let keep = forks.clone();
    storage.on_call(Some(Arc::new(move |storage, _| keep.lock().unwrap().push(storage.fork()))));
    drop(create(&storage));
    storage.on_call(None);
    let mut seen = std::collections::BTreeSet::new();
    for fork in std::mem::take(&mut *forks.lock().unwrap()) {
        for seed in 0..20 {
            let fork = fork.fork();
            fork.crash(Seed(seed));
            seen.insert(match peek(&fork, Path::new(FIRST)) {
                Err(EngineError::Io(error)) => match *error {
                    IoError::NoSuchFile { .. } => "nothing",
                    _ => panic!("{error}"),
                },
                Err(error) => panic!("seed {seed}: {error}"),
                Ok(None) => "blank",
                Ok(Some(found)) => {
                    assert_eq!(found, content());
                    "all"
                }
            });
        }
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["all", "blank", "nothing"]);
}

#[test]
fn a_damaged_slot_leaves_the_state_before() {
    let storage = testing::storage();
    let (control, _) = create(&storage);
    count(&control).unwrap();
    count(&control).unwrap();
    drop(control);
    // Sequences 1, 2, 3 went to slots 1, 0, 1.
    let newest = SLOT_BYTES as u64 + 100;
    storage.damage(Path::new(FIRST), newest, b"x");
    assert_eq!(opens(&storage), 2, "the second copy has it");
    assert!(alert(&storage).contains("was behind"));
    storage.damage(Path::new(SECOND), newest, b"x");
    assert_eq!(opens(&storage), 1);
    storage.damage(Path::new(FIRST), 100, b"x");
    let error = open(&storage).err().unwrap().to_string();
    assert!(error.contains("checksum does not fit") && error.contains("copy another copy"), "{error}");
    let content = Storage::read(&storage, Path::new(FIRST)).unwrap();
    Storage::replace(&storage, Path::new("/db/cut"), &content[..SLOT_BYTES]).unwrap();
    let error = peek(&storage, Path::new("/db/cut")).unwrap_err().to_string();
    assert!(error.contains("was cut off"), "{error}");
    storage.damage(Path::new(FIRST), 0, b"something else");
    storage.damage(Path::new(FIRST), SLOT_BYTES as u64, b"something else");
    let error = open(&storage).err().unwrap().to_string();
    assert!(error.contains("no control file"), "{error}");
}

/// Whatever read fails, once or from then on, also the second one of the same copy: an error or the content, no panic.
#[test]
fn a_read_that_fails_is_an_error() {
    let made = testing::storage();
    let expected = create(&made).0.content();
    let (mut refused, mut opened) = (0, 0);
    for (nth, for_ever) in (1..20).flat_map(|nth| [(nth, false), (nth, true)]) {
        let storage = made.fork();
        let trouble = Trouble::Errno(EIO);
        storage.inject(Fault { on: Call::Read, nth, for_ever, trouble });
        match open(&storage) {
            Ok(control) => {
                assert_eq!(control.unwrap().content(), expected);
                opened += u64::from(storage.fired() > 0);
            }
            Err(error) => {
                assert!(matches!(error, EngineError::Io(_)), "{error}");
                refused += 1;
            }
        }
    }
    // The first copy is needed; the second one is left behind.
    assert_eq!((refused, opened), (4, 4));
}

#[test]
fn a_missing_copy_is_asked_for() {
    let storage = testing::storage();
    drop(create(&storage));
    Storage::remove(&storage, Path::new(SECOND)).unwrap();
    let error = open(&storage).err().unwrap().to_string();
    assert!(error.contains(SECOND) && error.contains("copy /db/control01.ctl"), "{error}");
}

#[test]
fn without_its_second_copy_it_goes_on() {
    let storage = testing::storage();
    let (control, health) = create(&storage);
    storage.inject_on(Path::new(SECOND), fault(1, EIO));
    count(&control).unwrap();
    count(&control).unwrap();
    assert!(health.crashed().is_none());
    assert_eq!(control.content().copies, [PathBuf::from(FIRST)]);
    assert!(alert(&storage).contains("control02.ctl cannot be written and is left out"));
    storage.crash(Seed(3));
    storage.heal();
    Storage::remove(&storage, Path::new(SECOND)).unwrap();
    assert_eq!(opens(&storage), 2, "nobody asks for the copy that was left out");
}

#[test]
fn without_its_first_copy_the_instance_stops() {
    let storage = testing::storage();
    let (control, health) = create(&storage);
    count(&control).unwrap();
    storage.inject_on(Path::new(FIRST), fault(1, EIO));
    assert!(matches!(count(&control), Err(EngineError::Io(_))));
    assert!(health.crashed().unwrap().contains("control01.ctl cannot be written"));
    assert!(matches!(count(&control), Err(EngineError::Crashed(_))));
    assert_eq!(control.content().opens, 1, "what was not written is not believed");
    let mut found = std::collections::BTreeSet::new();
    for seed in 0..40 {
        let fork = storage.fork();
        fork.crash(Seed(seed));
        found.insert(opens(&fork));
    }
    assert_eq!(found.into_iter().collect::<Vec<_>>(), [1, 2], "the one before or the one that failed, whole");
}

#[test]
fn no_space_for_an_update_is_no_disaster() {
    let storage = testing::storage();
    let (control, health) = create(&storage);
    let once = Fault { for_ever: false, ..fault(1, ENOSPC) };
    storage.inject(once);
    let error = count(&control).unwrap_err().to_string();
    assert!(error.contains("no space") && health.crashed().is_none(), "{error}");
    assert_eq!(control.content().opens, 0);
    count(&control).unwrap();
    assert_eq!(opens(&storage), 1);
}

#[test]
fn a_refused_edit_and_one_that_does_not_fit_write_nothing() {
    let storage = testing::storage();
    let (control, _) = create(&storage);
    let calls = storage.calls();
    let context = testing::context();
    let refused: Result<()> = control.update(&context, |content| {
        content.opens = 99;
        Err(EngineError::Invalid("no".into()))
    });
    assert!(refused.is_err());
    let error = control
        .update(&context, |content| {
            content.parameters.extend((0..9).map(|n| (n.to_string(), "x".repeat(16 << 10))));
            Ok(())
        })
        .unwrap_err()
        .to_string();
    assert!(error.contains("is full"), "{error}");
    assert_eq!((storage.calls(), control.content().opens), (calls, 0));
}
