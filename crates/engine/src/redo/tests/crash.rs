//! Crashes over seeds: what was acknowledged is there, nothing is half there, and a crash during recovery changes nothing.

use super::*;

/// A run of changes, commits, page writes and checkpoints, then a crash in the middle of the log's `fail`-th write.
struct Run {
    bed: Bed,
    pages: Table,
    /// State of all pages at each record's end.
    states: BTreeMap<Lsn, BTreeMap<PageId, Vec<u8>>>,
    acknowledged: Lsn,
    rng: Rng,
}

impl Run {
    fn new(seed: u64, groups: u32, members: u32, bytes: u64) -> Self {
        let bed = Bed::new(Background::Inline, groups, members, bytes);
        let states = BTreeMap::from([(FIRST_LSN, BTreeMap::new())]);
        let rng = Rng::new(Seed(seed));
        Self { bed, pages: Table::default(), states, acknowledged: FIRST_LSN, rng }
    }

    /// Works until the log fails, or `changes` are done.
    fn work(&mut self, log: &RedoLog, changes: u32) {
        let context = self.bed.context();
        for _ in 0..changes {
            let (bed, pages) = (&self.bed, &self.pages);
            let mut urge = |_| bed.checkpoint(log, pages);
            let Some(end) = change(log, &context, &mut self.rng, pages, &mut urge) else { return };
            self.states.insert(end, self.pages.content());
            match self.rng.below(6) {
                0 | 1 => match log.sync(&context, end) {
                    Ok(()) => self.acknowledged = end,
                    Err(_) => return,
                },
                2 => self.pages.write_some(log.durable_lsn(), &mut self.rng),
                3 if self.rng.below(10) == 0 => drop(self.bed.checkpoint(log, &self.pages)),
                4 if self.rng.below(20) == 0 => drop(log.switch(&context, &mut urge)),
                _ => {}
            }
        }
    }

    /// The power goes, and comes back: recovers and checks.
    fn crash_and_check(&mut self, seed: u64) -> RedoLog {
        *self.bed.memory.trouble.lock() = None;
        self.bed.memory.crash(Seed(seed));
        self.pages.crash();
        let (log, recovered) = self.bed.open(&self.pages, false).unwrap();
        assert!(recovered.to >= self.acknowledged, "{recovered:?}, {:?} was acknowledged", self.acknowledged);
        let found = self.pages.content();
        // The end is a chunk's, its last record lies at most one block of padding before it.
        let (end, state) = self.states.range(..=recovered.to).next_back().unwrap();
        for (id, page) in state {
            assert_eq!(found.get(id), Some(page), "seed {seed}: {id} as of {end:?}");
        }
        assert_eq!(found.len(), state.len());
        // What came after never was.
        let (end, state) = (*end, state.clone());
        self.states.retain(|lsn, _| *lsn < end);
        self.states.insert(recovered.to, state);
        self.acknowledged = recovered.to;
        log
    }
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_is_half_there() {
    for seed in 0..150 {
        let members = 1 + seed as u32 % 2;
        let mut run = Run::new(seed, 2 + seed as u32 % 3, members, 64 << 10);
        let (mut log, _) = run.bed.open(&run.pages, true).unwrap();
        for round in 0..4 {
            let writes = run.rng.below(60) as i64;
            run.bed.memory.fail_after(writes, "");
            run.work(&log, 400);
            log = run.crash_and_check(seed * 10 + round);
        }
    }
}

#[test]
fn a_crash_during_recovery_is_nothing_special() {
    for seed in 0..60 {
        let mut run = Run::new(seed, 3, 1, 64 << 10);
        let (log, _) = run.bed.open(&run.pages, true).unwrap();
        run.bed.memory.fail_after(40, "");
        run.work(&log, 400);
        drop(log);
        for attempt in 0..3 {
            run.bed.memory.crash(Seed(seed));
            run.pages.crash();
            // Recovery itself writes little (the header of the next group); let that fail, and let pages reach the disk.
            run.bed.memory.fail_after(attempt, "");
            let opened = run.bed.open(&run.pages, false);
            run.pages.write_some(Lsn(u64::MAX), &mut run.rng);
            drop(opened);
        }
        run.crash_and_check(seed);
    }
}

#[test]
fn after_a_clean_shutdown_the_log_goes_on_where_it_was() {
    let mut run = Run::new(1, 2, 1, 64 << 10);
    let (log, _) = run.bed.open(&run.pages, true).unwrap();
    run.work(&log, 50);
    log.sync(&run.bed.context(), log.tail_lsn()).unwrap();
    run.bed.checkpoint(&log, &run.pages).unwrap();
    let (end, sequence) = (log.tail_lsn(), log.log());
    assert_eq!(*run.bed.control.checkpoint.lock(), end);
    drop(log);
    let (log, recovered) = run.bed.open(&run.pages, true).unwrap();
    assert_eq!((recovered.records, recovered.from, recovered.to), (0, end, end));
    assert_eq!(log.log(), sequence);
    run.states.insert(end, run.pages.content());
    run.work(&log, 50);
    drop(log);
    run.crash_and_check(3);
}

#[test]
fn one_of_two_members_is_enough() {
    for lost in ["/redo1a", "/redo1b"] {
        let mut run = Run::new(5, 2, 2, 64 << 10);
        let (log, _) = run.bed.open(&run.pages, true).unwrap();
        run.work(&log, 30);
        let context = run.bed.context();
        log.sync(&context, log.tail_lsn()).unwrap();
        run.acknowledged = log.tail_lsn();
        drop(log);
        let missing = run.bed.memory.files.lock().remove(Path::new(lost)).unwrap();
        let log = run.crash_and_check(5);
        // It comes back, and the other one goes: it lacks what was written meanwhile, and must not be believed.
        while log.log()[0].status != GroupStatus::Current {
            let (bed, pages) = (&run.bed, &run.pages);
            log.switch(&context, &mut |_| bed.checkpoint(&log, pages)).unwrap();
            run.work(&log, 5);
        }
        log.sync(&context, log.tail_lsn()).unwrap();
        run.acknowledged = log.tail_lsn();
        drop(log);
        let other = if lost == "/redo1a" { "/redo1b" } else { "/redo1a" };
        let good = run.bed.memory.files.lock().remove(Path::new(other)).unwrap();
        run.bed.memory.files.lock().insert(lost.into(), missing);
        let error = run.bed.open(&run.pages, false).err().unwrap();
        assert!(matches!(error, crate::EngineError::Damaged { .. }), "{error}");
        run.bed.memory.files.lock().insert(other.into(), good);
        run.crash_and_check(6);
    }
}

#[test]
fn a_member_that_fails_at_the_header_gets_no_chunk() {
    // One member fails at the header block of a switch, the other at the chunk after it: nothing may be acknowledged then,
    // because the chunk would lie behind an older header.
    let run = Run::new(10, 2, 2, 64 << 10);
    let (log, _) = run.bed.open(&run.pages, true).unwrap();
    let (context, mut rng) = (run.bed.context(), Rng::new(Seed(10)));
    let end = change(&log, &context, &mut rng, &run.pages, &mut |_| Ok(false)).unwrap();
    run.bed.memory.fail_nth(&[("/redo2a", 0), ("/redo2b", 1)]);
    log.state.lock().switch_requested = true;
    let error = log.sync(&context, end).unwrap_err();
    assert!(matches!(error, crate::EngineError::Crashed(_)), "{error}");
    assert!(log.durable_lsn() < end);
}

#[test]
fn a_member_that_fails_is_dropped_and_never_believed_again() {
    let mut run = Run::new(6, 2, 2, 64 << 10);
    let (log, _) = run.bed.open(&run.pages, true).unwrap();
    run.work(&log, 5);
    run.bed.memory.fail_after(0, "/redo1b");
    run.work(&log, 30);
    let context = run.bed.context();
    log.sync(&context, log.tail_lsn()).unwrap();
    run.acknowledged = log.tail_lsn();
    assert!(log.failure().is_none());
    let state = run.bed.control.groups.lock()[0].members[1].state;
    assert_eq!(state, crate::files::control::FileState::Invalid, "the control file knows");
    assert!(log.logfile().iter().any(|f| f.path == Path::new("/redo1b") && f.invalid));
    drop(log);
    // The good one is lost: better no database than one that silently lacks commits.
    let good = run.bed.memory.files.lock().remove(Path::new("/redo1a")).unwrap();
    let error = run.bed.open(&run.pages, false).err().unwrap();
    assert!(matches!(error, crate::EngineError::Damaged { .. }), "{error}");
    run.bed.memory.files.lock().insert("/redo1a".into(), good);
    run.crash_and_check(6);
}

#[test]
fn when_all_members_fail_the_instance_stops_and_says_why() {
    let run = Run::new(7, 2, 2, 64 << 10);
    let (log, _) = run.bed.open(&run.pages, true).unwrap();
    let (context, mut rng) = (run.bed.context(), Rng::new(Seed(7)));
    run.bed.memory.fail_after(0, "");
    let end = change(&log, &context, &mut rng, &run.pages, &mut |_| Ok(false)).unwrap();
    let error = log.sync(&context, end).unwrap_err();
    assert!(matches!(&error, crate::EngineError::Crashed(why) if why.contains("/redo1a")), "{error}");
    assert!(log.durable_lsn() < end);
    assert!(log.try_reserve(10).is_err());
    assert!(run.bed.control.alerts.lock().iter().any(|a| a.starts_with("crashed")));
}

#[test]
fn a_hole_in_the_redo_is_an_error_and_no_end() {
    let mut run = Run::new(8, 2, 1, 256 << 10);
    let (log, _) = run.bed.open(&run.pages, true).unwrap();
    let context = run.bed.context();
    let mut ends = Vec::new();
    for _ in 0..10 {
        let end = change(&log, &context, &mut run.rng, &run.pages, &mut |_| Ok(false)).unwrap();
        log.sync(&context, end).unwrap();
        ends.push(log.durable_lsn());
    }
    drop(log);
    // The fifth chunk is damaged, the sixth is whole: that was no power cut.
    let offset = 512 + (ends[3].0 - FIRST_LSN.0);
    let disk = run.bed.memory.disk("/redo1a");
    let mut block = [0; 512];
    assert!(disk.read_at(&mut block, offset).is_full());
    block[100] ^= 1;
    assert!(disk.write_at_dsync(&block, offset).is_full());
    let error = run.bed.open(&run.pages, false).err().unwrap();
    assert!(error.to_string().contains("intact redo behind it"), "{error}");
}

#[test]
fn a_missing_turn_of_the_log_is_an_error_and_no_end() {
    let run = Run::new(9, 3, 1, 64 << 10);
    let (log, _) = run.bed.open(&run.pages, true).unwrap();
    let (context, mut rng) = (run.bed.context(), Rng::new(Seed(9)));
    for _ in 0..2 {
        let end = change(&log, &context, &mut rng, &run.pages, &mut |_| Ok(false)).unwrap();
        log.sync(&context, end).unwrap();
        log.switch(&context, &mut |_| Ok(false)).unwrap();
    }
    drop(log);
    // The header of sequence 2 is wiped as if the group had never been used.
    let disk = run.bed.memory.disk("/redo2a");
    let spec = run.bed.control.groups.lock()[1].clone();
    let header = crate::redo::header::Header {
        database: DATABASE,
        group: 2,
        sequence: 0,
        block: 512,
        first: Lsn(0),
        bytes: spec.bytes,
        first_time: 0,
    };
    let mut block = vec![0; 512];
    crate::redo::header::encode(&header, &mut block);
    assert!(disk.write_at_dsync(&block, 0).is_full());
    let error = run.bed.open(&run.pages, false).err().unwrap();
    assert!(error.to_string().contains("breaks off here"), "{error}");
}

#[test]
fn redo_of_dropped_files_is_passed_over() {
    let bed = Bed::new(Background::Inline, 2, 1, 64 << 10);
    let pages = Table::default();
    let (log, _) = bed.open(&pages, true).unwrap();
    let context = bed.context();
    let id = PageId { file: 9, block: 1 };
    let mut page = vec![0; PAGE];
    page::format(&mut page, id, PageKind::Heap, 1);
    let mut out = Vec::new();
    record::begin_record(&mut out);
    record::push_image(&mut out, id, &page);
    record::end_record(&mut out);
    let end = log.append(log.try_reserve(1000).unwrap().unwrap(), &out);
    log.sync(&context, end).unwrap();
    drop(log);
    let (_, recovered) = bed.open(&pages, false).unwrap();
    assert_eq!((recovered.records, recovered.pages_changed), (1, 0));
    assert!(pages.content().is_empty());
}
