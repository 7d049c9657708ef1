//! Is a sync honest? Overwrites of 4 KiB, each with fdatasync, against the device's own counters.
//!
//! Check W1 of docs/method.md, section 7. What it cannot see: a device that counts a flush and does nothing. Only pulling
//! the plug proves that, and the finding says so.

use super::{Finding, Patient};
use host::counters::{self, DiskCounters, Snapshot};
use host::facts::{Device, DeviceKind};
use host::journal::Journal;
use host::workspace::Workspace;
use io::{Access, File};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Bytes, Nanos, Rng, Seed, clock};

const BLOCK: u32 = 4096;
const FILE: Bytes = Bytes::mib(4);
const SYNCS_MAX: usize = 400;
const TIME_MAX: Nanos = Nanos::millis(2_000);
/// How long others are counted before we begin.
const BEFORE: Nanos = Nanos::millis(500);
/// Warm-up: the first sync of a file also writes its inode.
const SYNCS_DROPPED: usize = 5;

/// What a run of syncs showed. None without a disk that counts.
struct Syncs {
    count: usize,
    median: Nanos,
    rate: f64,
    flushes: Option<Counted>,
    writes: Option<Counted>,
}

/// A device counter per sync and per disk.
#[derive(Clone, Copy)]
struct Counted {
    /// As counted.
    all: f64,
    /// Without what others are thought to have added: their rate just before.
    ours: f64,
}

/// What is known about where they went.
struct Place {
    memory: Option<String>,
    network: Option<String>,
    /// Disks at the bottom: name, write cache as the kernel sees it, truly rotating.
    disks: Vec<(String, Option<String>, bool)>,
}

pub(super) fn examine(patient: &Patient, cancel: &AtomicBool) -> Vec<Finding> {
    let Some(directory) = &patient.directory else {
        let seen = format!("{} is a block device, which the doctor only reads", patient.path.display());
        return vec![Finding::unknown("sync", seen).advice("give a directory of a file system on it")];
    };
    match measure(directory, &patient.storage.watch(), cancel) {
        Ok(Some(syncs)) => judge(&syncs, &place(patient)),
        Ok(None) => Vec::new(),
        Err(reason) => vec![
            Finding::unknown("sync", reason)
                .effect("whether a committed transaction survives a power cut is open")
                .advice(format!(
                    "try a directory that you may write: redoubt doctor {}",
                    directory.join("DIRECTORY").display()
                )),
        ],
    }
}

/// Two seconds or 400 syncs in a journaled workspace; none when cancelled before there was enough.
fn measure(directory: &Path, watch: &counters::Watch, cancel: &AtomicBool) -> Result<Option<Syncs>, String> {
    let words = |e: &dyn std::fmt::Display| e.to_string();
    let mut journal = Journal::open(&format!("doctor in {}", directory.display())).map_err(|e| words(&e))?;
    let space = Workspace::create(directory, &mut journal).map_err(|e| words(&e))?;
    let path = space.list("sync").map_err(|e| words(&e))?;
    let access = Access { read: true, write: true, direct: false, dsync: false };
    let file = File::create_new(&path, access).map_err(|e| words(&e))?;
    let mut go_on = |_, _| !cancel.load(Ordering::Relaxed);
    let seed = Seed::draw();
    if let Err(e) = io::prepare::write_stamped(&file, FILE.get(), BLOCK, 1, seed, &mut go_on) {
        return if cancel.load(Ordering::Relaxed) { Ok(None) } else { Err(words(&e)) };
    }
    let syncs = overwrite(&file, watch, Rng::new(seed), cancel).map_err(|e| words(&e))?;
    drop(file);
    journal.undo_all().map_err(|e| words(&e))?;
    Ok(syncs)
}

fn overwrite(
    file: &File,
    watch: &counters::Watch,
    mut rng: Rng,
    cancel: &AtomicBool,
) -> Result<Option<Syncs>, io::IoError> {
    let mut block = vec![0u8; BLOCK as usize];
    let mut times: Vec<Nanos> = Vec::with_capacity(SYNCS_MAX);
    let blocks = FILE.get() / u64::from(BLOCK);
    let mut one = |rng: &mut Rng| -> Result<Nanos, io::IoError> {
        // Other bytes each time: a device that removes duplicates must not shine here.
        block.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&rng.next_u64().to_le_bytes()));
        let offset = rng.below(blocks) * u64::from(BLOCK);
        let start = clock::now();
        file.check("write", offset, BLOCK, file.write_at(&block, offset))?;
        file.fdatasync()?;
        Ok(clock::now() - start)
    };
    for _ in 0..SYNCS_DROPPED {
        one(&mut rng)?;
    }
    let quiet = counters::snapshot(watch);
    clock::sleep(BEFORE);
    let old = counters::snapshot(watch);
    while times.len() < SYNCS_MAX && clock::now() - old.t < TIME_MAX && !cancel.load(Ordering::Relaxed) {
        times.push(one(&mut rng)?);
    }
    let new = counters::snapshot(watch);
    times.sort_unstable();
    let enough = times.len() >= 5;
    Ok(enough.then(|| Syncs {
        count: times.len(),
        median: times[times.len() / 2],
        rate: times.len() as f64 / (new.t - old.t).as_secs(),
        flushes: per_sync([&quiet, &old, &new], times.len(), |d| d.flushes),
        writes: per_sync([&quiet, &old, &new], times.len(), |d| Some(d.writes + d.writes_merged)),
    }))
}

/// Growth of a counter per sync, mean over the disks: between the second and the third snapshot; what others add in that
/// time is estimated from the first two.
fn per_sync(at: [&Snapshot; 3], syncs: usize, field: fn(&DiskCounters) -> Option<u64>) -> Option<Counted> {
    let grown = |from: &Snapshot, to: &Snapshot| -> Option<f64> {
        let one = |(name, a): (&String, &DiskCounters)| {
            Some(field(to.disks.get(name)?)?.saturating_sub(field(a)?) as f64)
        };
        let each: Vec<f64> = from.disks.iter().map(one).collect::<Option<_>>()?;
        (!each.is_empty()).then(|| each.iter().sum::<f64>() / each.len() as f64)
    };
    let [quiet, old, new] = at;
    let others = grown(quiet, old)? / (old.t - quiet.t).as_secs() * (new.t - old.t).as_secs();
    let all = grown(old, new)?;
    Some(Counted { all: all / syncs as f64, ours: (all - others) / syncs as f64 })
}

fn place(patient: &Patient) -> Place {
    let mount = patient.storage.mount.as_ref();
    let kind =
        |wanted: fn(&host::facts::Mount) -> bool| mount.filter(|m| wanted(m)).map(|m| m.fs_type.clone());
    // Virtual disks say that they rotate because nobody told them otherwise.
    let rotates = |d: &Device| {
        d.queue.rotational == Some(true)
            && d.kind == DeviceKind::Scsi
            && patient.fact("cpu", "hypervisor") == Some("none")
    };
    let disk = |d: &&Device| (d.name.clone(), d.queue.write_cache.clone(), rotates(d));
    Place {
        memory: kind(host::facts::Mount::is_memory),
        network: kind(host::facts::Mount::is_network),
        disks: patient.storage.leaves().iter().map(disk).collect(),
    }
}

fn judge(syncs: &Syncs, place: &Place) -> Vec<Finding> {
    let counted = match (syncs.flushes, syncs.writes) {
        (Some(f), Some(w)) => format!("; {:.2} device writes and {:.2} flushes for each", w.all, f.all),
        (None, Some(w)) => {
            format!("; {:.2} device writes for each, flushes are not counted by this kernel", w.all)
        }
        _ => String::new(),
    };
    let seen = format!("4 KiB and fdatasync: {:.0} a second, median {}{counted}", syncs.rate, syncs.median);
    if let Some(kind) = &place.memory {
        let effect = format!(
            "{kind} lives in memory: nothing written there survives, and every write figure is the memory's"
        );
        return vec![
            Finding::bad("sync", seen).effect(effect).advice("give a directory on a disk (see: df -hT)"),
        ];
    }
    if let Some(kind) = &place.network {
        let effect = format!("{kind}: whether the server's own cache is safe cannot be seen from here");
        return vec![
            Finding::unknown("sync", seen)
                .effect(effect)
                .advice("ask who runs the server: is the export `sync`, is its cache battery-backed?"),
        ];
    }
    let (Some(writes), false) = (syncs.writes, place.disks.is_empty()) else {
        let effect =
            "no disk with counters is under this file system: whether a sync reaches one cannot be seen";
        return vec![Finding::unknown("sync", seen).effect(effect)];
    };
    vec![on_disks(syncs, writes, place, seen)]
}

fn on_disks(syncs: &Syncs, writes: Counted, place: &Place, seen: String) -> Finding {
    let volatile = place.disks.iter().any(|(_, cache, _)| cache.as_deref() == Some("write back"));
    let known = place.disks.iter().all(|(_, cache, _)| cache.is_some());
    let name = &place.disks[0].0;
    // A mean of RAID members may lie below one: each takes its share.
    let disks = place.disks.len() as f64;
    if writes.all * disks < 0.9 {
        return Finding::bad("sync", seen)
            .effect("syncs return before the data has reached a disk: commits are lost at a power cut, write figures are a cache's")
            .advice("look for a layer that swallows them (loop device without --direct-io=on, FUSE, eatmydata): findmnt; env | grep LD_PRELOAD");
    }
    if volatile && syncs.flushes.is_some_and(|f| f.all < 0.9) {
        return Finding::bad("sync", seen)
            .effect(format!("{name} has a volatile write cache, and syncs do not flush it (barriers off?): commits are lost at a power cut"))
            .advice("mount with barriers: mount -o remount,barrier=1 MOUNTPOINT   (ext4); remove nobarrier");
    }
    // 7,200 rpm: the same sector comes by 120 times a second; 10 % for sectors that lie close.
    if place.disks.iter().all(|(.., rotates)| *rotates) && syncs.rate > 7_200.0 / 60.0 * 1.1 {
        return Finding::bad("sync", seen)
            .effect("faster than the disk turns: a cache in the disk or controller answers, and a sync does not wait for the platter")
            .advice(format!("sudo hdparm -W0 /dev/{name}   unless the controller's cache has a battery"));
    }
    if volatile && syncs.flushes.is_some() && syncs.median < Nanos::micros(20) {
        return Finding::bad("sync", seen)
            .effect("no flash takes a flush in less than 20 µs: something answers for it");
    }
    let drowned = writes.ours * disks < 0.9 || volatile && syncs.flushes.is_some_and(|f| f.ours < 0.9);
    if drowned {
        return Finding::unknown("sync", seen)
            .effect("others write and flush so much that our own syncs cannot be told from theirs in the disk's counters")
            .advice("repeat it when the machine is quiet");
    }
    let proof = "not proven without a power cut: a device that counts a flush may still ignore it";
    if !known {
        return Finding::unknown("sync", seen)
            .effect("the kernel does not tell whether the disk has a volatile cache");
    }
    let effect = if volatile {
        format!("each sync flushes the volatile cache of {name}; {proof}")
    } else {
        format!("{name} says that it has no volatile cache, so the kernel sends no flush; {proof}")
    };
    Finding::good("sync", format!("{seen} ({} syncs)", syncs.count)).effect(effect)
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    fn syncs(median_us: u64, rate: f64, flushes: Option<f64>, writes: Option<f64>) -> Syncs {
        let alone = |n: Option<f64>| n.map(|n| Counted { all: n, ours: n });
        Syncs {
            count: 400,
            median: Nanos::micros(median_us),
            rate,
            flushes: alone(flushes),
            writes: alone(writes),
        }
    }

    fn disk(cache: &str, rotates: bool) -> Place {
        Place { memory: None, network: None, disks: vec![("sda".into(), Some(cache.into()), rotates)] }
    }

    #[track_caller]
    fn check(syncs: &Syncs, place: &Place, level: Level, words: &str) {
        let findings = judge(syncs, place);
        assert!(findings[0].level == level && findings[0].effect.contains(words), "{findings:?}");
    }

    #[test]
    fn honest_disks_are_good_and_never_called_proven() {
        check(
            &syncs(1_000, 900.0, Some(1.01), Some(1.2)),
            &disk("write back", false),
            Level::Good,
            "not proven",
        );
        check(
            &syncs(90, 9_000.0, Some(0.0), Some(1.0)),
            &disk("write through", false),
            Level::Good,
            "no volatile cache",
        );
        check(
            &syncs(8_300, 119.0, Some(1.0), Some(1.0)),
            &disk("write back", true),
            Level::Good,
            "not proven",
        );
    }

    #[test]
    fn each_lie_is_caught() {
        check(
            &syncs(90, 9_000.0, Some(0.0), Some(1.0)),
            &disk("write back", false),
            Level::Bad,
            "do not flush",
        );
        check(
            &syncs(4, 200_000.0, Some(0.0), Some(0.0)),
            &disk("write through", false),
            Level::Bad,
            "before the data has reached",
        );
        check(
            &syncs(300, 3_000.0, Some(1.0), Some(1.0)),
            &disk("write back", true),
            Level::Bad,
            "faster than the disk turns",
        );
        check(&syncs(12, 70_000.0, Some(1.0), Some(1.0)), &disk("write back", false), Level::Bad, "20 µs");
        let memory = Place { memory: Some("tmpfs".into()), network: None, disks: vec![] };
        check(&syncs(2, 400_000.0, None, None), &memory, Level::Bad, "lives in memory");
    }

    /// A disk that swallows flushes must not look honest because somebody else flushes it.
    #[test]
    fn flushes_of_others_prove_nothing() {
        let loud =
            Syncs { flushes: Some(Counted { all: 1.3, ours: 0.1 }), ..syncs(500, 2_000.0, None, Some(1.0)) };
        check(&loud, &disk("write back", false), Level::Unknown, "cannot be told from theirs");
        let still_seen =
            Syncs { flushes: Some(Counted { all: 1.3, ours: 0.98 }), ..syncs(500, 2_000.0, None, Some(1.0)) };
        check(&still_seen, &disk("write back", false), Level::Good, "not proven");
    }

    #[test]
    fn what_cannot_be_seen_is_unknown() {
        let remote = Place { memory: None, network: Some("nfs4".into()), disks: vec![] };
        check(&syncs(500, 2_000.0, None, None), &remote, Level::Unknown, "cannot be seen");
        let hidden = Place { memory: None, network: None, disks: vec![] };
        check(&syncs(500, 2_000.0, None, None), &hidden, Level::Unknown, "no disk with counters");
        let mute = Place { disks: vec![("sda".into(), None, false)], ..hidden };
        check(&syncs(500, 2_000.0, Some(1.0), Some(1.0)), &mute, Level::Unknown, "does not tell");
    }
}
