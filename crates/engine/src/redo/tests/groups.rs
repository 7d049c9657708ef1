//! Groups: states, switching, adding and dropping, and the promises of reservations when the log is short.

use super::*;
use crate::EngineError;

fn statuses(log: &RedoLog) -> Vec<&'static str> {
    log.log().iter().map(|row| row.status.name()).collect()
}

#[test]
fn states_follow_the_log_and_the_checkpoint() {
    let (bed, pages) = (Bed::new(Background::Inline, 3, 1, 64 << 10), Table::default());
    let (log, _) = bed.open(&pages, true).unwrap();
    let context = bed.context();
    assert_eq!(statuses(&log), ["CURRENT", "UNUSED", "UNUSED"]);
    log.switch(&context, &mut |_| Ok(false)).unwrap();
    // Nothing was written, so nothing of the first is needed.
    assert_eq!(statuses(&log), ["INACTIVE", "CURRENT", "UNUSED"]);
    let mut rng = Rng::new(Seed(1));
    change(&log, &context, &mut rng, &pages, &mut |_| Ok(false)).unwrap();
    log.step().unwrap();
    log.switch(&context, &mut |_| Ok(false)).unwrap();
    assert_eq!(statuses(&log), ["INACTIVE", "ACTIVE", "CURRENT"], "unused ones come before used ones");
    change(&log, &context, &mut rng, &pages, &mut |_| Ok(false)).unwrap();
    log.step().unwrap();
    log.switch(&context, &mut |_| Ok(false)).unwrap();
    assert_eq!(statuses(&log), ["CURRENT", "ACTIVE", "ACTIVE"]);
    assert_eq!(log.log()[0].sequence, 4);
    let error = log.switch(&context, &mut |_| Ok(false)).unwrap_err();
    assert!(error.to_string().contains("no checkpoint can free a group"), "{error}");
    log.switch(&context, &mut |_| bed.checkpoint(&log, &pages)).unwrap();
    assert_eq!(statuses(&log), ["INACTIVE", "CURRENT", "INACTIVE"]);
}

#[test]
fn reservations_keep_the_log_writer_from_ever_waiting() {
    // Only the promises keep `Groups::advance` from its panic; no checkpoint is made unless a reservation asks for it.
    for seed in 0..40 {
        let (bed, pages) = (Bed::new(Background::Inline, 2, 1, 64 << 10), Table::default());
        let (log, _) = bed.open(&pages, true).unwrap();
        let (context, mut rng) = (bed.context(), Rng::new(Seed(seed)));
        let (mut held, mut urged) = (Vec::new(), 0);
        for _ in 0..3_000 {
            let most = 1 + rng.below(2_000) as usize;
            if held.len() < 3 {
                let mut urge = |wanted| {
                    urged += 1;
                    assert!(wanted <= log.tail_lsn());
                    bed.checkpoint(&log, &pages)
                };
                if held.is_empty() {
                    held.push((log.reserve_waiting(&context, most, &mut urge).unwrap(), most));
                } else if let Some(reservation) = log.try_reserve(most).unwrap() {
                    held.push((reservation, most));
                }
            }
            if rng.below(2) == 0 && !held.is_empty() {
                let (reservation, most) = held.swap_remove(rng.below(held.len() as u64) as usize);
                if rng.below(5) == 0 {
                    log.unreserve(reservation);
                } else {
                    let record = vec![0; 1 + rng.below(most as u64) as usize];
                    log.append(reservation, &record);
                }
            }
            if rng.below(7) == 0 {
                log.step().unwrap();
            }
        }
        held.into_iter().for_each(|(reservation, _)| log.unreserve(reservation));
        assert!(urged > 0, "the log was never short, so nothing was tested");
        assert_eq!(log.state.lock().reserved, 0);
    }
}

#[test]
fn a_checkpoint_beyond_a_group_frees_it_although_it_is_rounded_down() {
    let (bed, pages) = (Bed::new(Background::Inline, 2, 1, 1 << 20), Table::default());
    let (log, _) = bed.open(&pages, true).unwrap();
    let context = bed.context();
    let append = || log.append(log.try_reserve(700).unwrap().unwrap(), &[0; 700]);
    for _ in 0..20 {
        append();
        log.step().unwrap();
    }
    log.switch(&context, &mut |_| Ok(false)).unwrap();
    let wanted = log.log()[0].next_lsn.unwrap();
    assert_eq!(log.state.lock().groups.checkpoint_wanted(), Some(wanted));
    let inside = append();
    for _ in 0..5 {
        log.step().unwrap();
        append();
    }
    // A record's end lies inside a chunk, a little beyond the group that is waited for.
    let point = log.restart_point(inside);
    assert!(wanted <= point && point < inside, "{point:?}");
    assert_eq!(log.restart_point(Lsn(wanted.0 - 1)), FIRST_LSN, "known beginnings lie far apart");
    log.note_checkpoint(point);
    assert_eq!(statuses(&log), ["INACTIVE", "CURRENT"]);
    assert_eq!(log.restart_point(log.tail_lsn()), log.restart_lsn());
}

#[test]
fn too_large_a_change_is_refused_with_the_parameter_to_set() {
    let (bed, pages) = (Bed::new(Background::Inline, 2, 1, 64 << 10), Table::default());
    let (log, _) = bed.open(&pages, true).unwrap();
    let error = log.try_reserve(1 << 20).unwrap_err();
    assert!(error.to_string().contains("log_buffer"), "{error}");
}

#[test]
fn a_thread_that_waits_for_itself_is_told() {
    let (bed, pages) = (Bed::new(Background::Inline, 2, 1, 64 << 10), Table::default());
    let (log, _) = bed.open(&pages, true).unwrap();
    let mut held = Vec::new();
    while let Some(reservation) = log.try_reserve(100).unwrap() {
        held.push(reservation);
    }
    let error = log.reserve_waiting(&bed.context(), 100, &mut |_| Ok(false)).unwrap_err();
    assert!(error.to_string().contains("another change of the same thread"), "{error}");
    held.into_iter().for_each(|reservation| log.unreserve(reservation));
}

#[test]
fn groups_come_and_go_while_the_log_runs() {
    let (bed, pages) = (Bed::new(Background::Inline, 3, 1, 64 << 10), Table::default());
    let (log, _) = bed.open(&pages, true).unwrap();
    let (context, mut rng) = (bed.context(), Rng::new(Seed(4)));
    for group in 4..=6 {
        let added = log.add_group(&context, None, &bed.spec(group, 2, 128 << 10)).unwrap();
        assert_eq!(added, group);
    }
    assert_eq!(bed.control.groups.lock().len(), 6);
    let refused = |number: u32, words: &str| {
        let error = log.drop_group(&context, number).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    };
    refused(1, "CURRENT");
    refused(9, "does not exist");
    for _ in 0..3 {
        change(&log, &context, &mut rng, &pages, &mut |_| Ok(false)).unwrap();
        log.step().unwrap();
        log.switch(&context, &mut |_| Ok(false)).unwrap();
    }
    refused(2, "ACTIVE");
    bed.checkpoint(&log, &pages).unwrap();
    for group in 1..=3 {
        log.drop_group(&context, group).unwrap();
        assert!(!bed.environment.storage.exists(Path::new(&format!("/redo{group}a"))), "its file is gone");
    }
    let end = change(&log, &context, &mut rng, &pages, &mut |_| Ok(false)).unwrap();
    log.sync(&context, end).unwrap();
    let expected = pages.content();
    drop(log);
    pages.crash();
    bed.memory.crash(Seed(3));
    let (log, recovered) = bed.open(&pages, false).unwrap();
    assert!(recovered.to >= end);
    assert_eq!(pages.content(), expected);
    log.drop_group(&context, log.log().iter().find(|g| g.status == GroupStatus::Unused).unwrap().group)
        .unwrap();
    let left = log.log().iter().find(|g| g.status != GroupStatus::Current).unwrap().group;
    let error = log.drop_group(&context, left).unwrap_err();
    assert!(matches!(error, EngineError::Invalid(_)), "{error}");
}

#[test]
fn a_group_that_cannot_be_added_leaves_nothing_behind() {
    let (bed, pages) = (Bed::new(Background::Inline, 2, 1, 64 << 10), Table::default());
    let (log, _) = bed.open(&pages, true).unwrap();
    let context = bed.context();
    let refused = |number: u32, spec: GroupSpec, words: &str| {
        let known: Vec<bool> = spec.members.iter().map(|p| bed.environment.storage.exists(p)).collect();
        let error = log.add_group(&context, Some(number), &spec).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        let there: Vec<bool> = spec.members.iter().map(|p| bed.environment.storage.exists(p)).collect();
        assert_eq!((there, log.log().len()), (known, 2));
        assert!(bed.control.groups.lock().len() == 2);
    };
    refused(2, bed.spec(3, 1, 64 << 10), "exists already");
    refused(7, bed.spec(2, 1, 64 << 10), "exists already");
    refused(3, bed.spec(3, 1, 4 << 10), "too small");
    refused(3, bed.spec(3, 0, 64 << 10), "no member");
    for writes in 0..2 {
        bed.memory.fail_after(writes, "/redo3");
        refused(3, bed.spec(3, 2, 64 << 10), "errno 5");
    }
    *bed.memory.trouble.lock() = None;
    bed.control.refuses.store(true, Ordering::Relaxed);
    refused(3, bed.spec(3, 2, 64 << 10), "control file");
}

#[test]
fn a_foreign_file_is_not_taken_for_a_member() {
    let (bed, other) =
        (Bed::new(Background::Inline, 2, 1, 64 << 10), Bed::new(Background::Inline, 2, 1, 64 << 10));
    // Group 2 in the place of group 1.
    let foreign = other.memory.disk("/redo2a");
    bed.memory.files.lock().insert("/redo1a".into(), foreign);
    let error = bed.try_open().err().unwrap();
    assert!(error.to_string().contains("another database or another group"), "{error}");
}
