//! A disk that is slow while a case is played on it, and fast while its database is made and removed.

use host::change::{Limits, Throttle, loop_device, make_file_system, mount, throttle};
use host::journal::Journal;
use lab::compare::configuration::Configuration;
use lab::control::{Control, Progress};
use lab::database::order_entry::Think;
use lab::run::{Case, Options, run};
use record::{Reader, StatisticRow, WaitEventRow};
use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use units::{Bytes, Seed};

/// One at a time: each moves this process into a control group.
static MEASURING: Mutex<()> = Mutex::new(());

/// Measured seconds, and those around them in which the disk is slow too.
const SECONDS: f64 = 4.0;
const SETTLE_SECONDS: f64 = 0.5;

/// What the disk can do in a second; none: no limit.
#[derive(Clone, Copy, Default)]
pub struct SlowDisk {
    pub read_iops: Option<u64>,
    pub write_iops: Option<u64>,
}

/// Where DB time went.
pub struct Explained {
    pub db_time: f64,
    /// Of the sessions' threads.
    pub cpu: f64,
    /// They were ready to run, and no processor was free.
    pub delay: f64,
    /// By event: share of DB time, longest first.
    pub waits: Vec<(String, f64)>,
}

impl Explained {
    /// Waits and CPU, of DB time. Time on the run queue is counted as far as no wait and no CPU has it: woken sessions
    /// queue for a processor while their wait still goes on.
    pub fn accounted(&self) -> f64 {
        let waits: f64 = self.waits.iter().map(|(_, share)| share).sum();
        let sum = waits + self.cpu / self.db_time;
        sum + (self.delay / self.db_time).min((1.0 - sum).max(0.0))
    }
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DB time {:.2} s", self.db_time / 1e9)?;
        for (event, share) in self.waits.iter().filter(|(_, share)| *share >= 0.001) {
            write!(f, ", {event} {:.1} %", share * 100.0)?;
        }
        let of_time = |ns: f64| ns / self.db_time * 100.0;
        write!(f, ", CPU {:.1} %, run queue {:.1} %", of_time(self.cpu), of_time(self.delay))?;
        write!(f, ", accounted for {:.1} %", self.accounted() * 100.0)
    }
}

impl SlowDisk {
    /// Plays `case` with 10 sessions under an I/O mode; `change` has the last word on the options.
    pub fn run(self, case: Case, configuration: &str, change: impl FnOnce(&mut Options)) -> Explained {
        let _turn = MEASURING.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
        let backing = folder.path().join("backing");
        fs::File::create(&backing).expect("create").set_len(Bytes::mib(900).0).expect("size");
        let mount_point = folder.path().join("mount");
        fs::create_dir(&mount_point).expect("make the mount point");

        let mut journal = Journal::open("test explains").expect("a journal");
        let device = loop_device(&mut journal, &backing, true, None).expect("a loop device; needs root");
        make_file_system(&journal, &device.path, "ext4", &[]).expect("a file system");
        mount(&mut journal, &device.path, &mount_point, "ext4", "").expect("mounted");
        let limits = Limits { read_iops: self.read_iops, write_iops: self.write_iops, ..Limits::default() };
        let group = throttle(&mut journal, &device.device(), limits).expect("a throttle");

        let mut options = options(case, configuration, &mount_point, folder.path());
        change(&mut options);
        let mut progress = WhilePlaying { case, group };
        let mut control = Control { cancel: &AtomicBool::new(false), progress: &mut progress };
        let finished = run(&options, &mut control).expect("the case runs through");
        let explained = explain(&finished.record);
        let undone = journal.undo_all().expect("a journal that can be removed");
        assert!(undone.iter().all(|line| line.result.is_settled()), "not as it was: {undone:?}");
        explained
    }
}

fn options(case: Case, configuration: &str, directory: &Path, folder: &Path) -> Options {
    let every = [io::Api::Libaio, io::Api::Threads];
    let configuration = Configuration::all(&every)
        .into_iter()
        .find(|c| c.mode.to_string() == configuration)
        .expect("an I/O mode");
    Options {
        case,
        target: lab::run::Target::Engine,
        directory: directory.to_owned(),
        seconds: SECONDS,
        sessions: 10,
        configuration,
        scale: 0.001,
        cache: None,
        block: Bytes::kib(8),
        redo: Bytes::mib(64),
        rate: None,
        think: Think::None,
        flash: lab::factor::Setup::default(),
        parameters: Vec::new(),
        patience: lab::server::lifeline::PATIENCE,
        verify: false,
        references: false,
        seed: Seed::draw(),
        command: "redoubt run".into(),
        record_path: Some(folder.join("explains.redoubt")),
    }
}

/// Puts this process under the limits when the sessions begin, and takes it out when the window is over.
struct WhilePlaying {
    case: Case,
    group: Throttle,
}

impl Progress for WhilePlaying {
    fn step(&mut self, what: &str, _: f64, _: f64) {
        if what.starts_with(&format!("{}, ", self.case)) {
            self.group.enter_self().expect("enter the group");
            let group = self.group.clone();
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_secs_f64(SETTLE_SECONDS + SECONDS + 0.2));
                group.leave_self().expect("leave the group");
            });
        }
    }

    fn say(&mut self, _: &str) {}
}

fn explain(record: &Path) -> Explained {
    let reader = Reader::open(record).expect("a record");
    let waits = reader.of_phases::<WaitEventRow>().expect("waits");
    let statistics = reader.of_phases::<StatisticRow>().expect("statistics");
    let time = |name: &str| {
        let row = statistics.iter().find(|(_, row)| row.class == "time" && row.name == name);
        row.unwrap_or_else(|| panic!("no {name:?} in the record")).1.value
    };
    let db_time = time("DB time");
    let users = waits.iter().filter(|(_, row)| row.foreground && !row.event.starts_with("log file sync: "));
    let mut waits: Vec<_> = users.map(|(_, row)| (row.event.clone(), row.time_ns as f64 / db_time)).collect();
    waits.sort_by(|a, b| b.1.total_cmp(&a.1));
    Explained { db_time, cpu: time("DB CPU"), delay: time("OS Wait-cpu (latency) time"), waits }
}
