//! Commits of rows of about 1,000 bytes: against the raw ceiling, PostgreSQL and MariaDB.

use super::evidence::why;
use super::{Bench, NEVER, SESSIONS, ratios};
use crate::common::goals::{Aim, Goals};
use engine::Shutdown;
use io::{Access, Api, File};
use lab::database::commit;
use lab::export::OpenFiles;
use lab::workload::commit::{self as raw, Log, LogCall, LogFile};
use std::path::Path;
use units::Seed;

/// Bytes of the file that raw commits go to.
const RAW_BYTES: u64 = 64 << 20;

impl Bench {
    pub fn commits(&self, goals: &mut Goals) {
        println!(
            "\ncommits of rows of about 1,000 bytes, {} rounds of {} s a side",
            self.rounds, self.seconds
        );
        println!(
            "  PostgreSQL by pgbench, prepared; MariaDB by mariadb-slap: 10 connections each, over a socket"
        );
        let instance = self.open();
        let ours = |sessions: u32| {
            let done = commit::run(&instance, sessions, self.terms(Seed(2))).expect("commits");
            let rate = done.trial.rate();
            why(&format!("ours, {sessions} sessions, {rate:.0}/s"), &done.interval);
            rate
        };
        let redo = self.folder.join("raw-redo.log");
        raw_file(&redo);
        let ceiling = |sessions: u32| {
            raw::run(sessions, raw_log(&redo), self.window(), &NEVER).expect("raw commits").rate()
        };
        let (ten, one) = (|| ours(SESSIONS), || ours(1));
        let (raw_ten, raw_one) = (|| ceiling(SESSIONS), || ceiling(1));
        let mut sides: Vec<(&str, &dyn Fn() -> f64)> = vec![
            ("ours, 10 sessions", &ten),
            ("raw group commit by io, 10 sessions", &raw_ten),
            ("ours, 1 session", &one),
            ("raw O_DSYNC writes, 1 session", &raw_one),
        ];
        let postgres = || self.postgres().commits(SESSIONS, self.seconds);
        let mariadb = || self.mariadb().commits(SESSIONS, self.seconds);
        if self.peers {
            sides.push(("PostgreSQL, 10 sessions", &postgres));
            sides.push(("MariaDB, 10 sessions", &mariadb));
        }
        let rates = self.alternate(&sides);
        goals.rounds(
            "commit, 10 sessions: ours / raw ceiling",
            &ratios(&rates[0], &rates[1]),
            Aim::AtLeast(0.75),
        );
        goals.rounds(
            "commit, 1 session: ours / lone O_DSYNC write",
            &ratios(&rates[2], &rates[3]),
            Aim::AtLeast(0.9),
        );
        if let [_, _, _, _, postgres, mariadb] = &rates[..] {
            let better: Vec<f64> = postgres.iter().zip(mariadb).map(|(a, b)| a.max(*b)).collect();
            goals.rounds("commit, 10 sessions: ours / PostgreSQL", &ratios(&rates[0], postgres), Aim::Told);
            goals.rounds("commit, 10 sessions: ours / MariaDB", &ratios(&rates[0], mariadb), Aim::Told);
            goals.rounds(
                "commit, 10 sessions: ours / the better of the two",
                &ratios(&rates[0], &better),
                Aim::AtLeast(1.6),
            );
        }
        instance.shutdown(Shutdown::Immediate).expect("shut down");
        std::fs::remove_file(redo).expect("remove the redo file");
    }
}

fn raw_file(path: &Path) {
    let plain = Access { read: true, write: true, direct: false, dsync: false };
    let made = File::create_new(path, plain).expect("a redo file");
    io::prepare::write_stamped(&made, RAW_BYTES, 4096, raw::REDO_FILE_ID, Seed(1), &mut |_, _| true)
        .expect("write it");
}

fn raw_log(path: &Path) -> Log {
    let access = Access { read: true, write: true, direct: true, dsync: true };
    let log = LogFile {
        region: 0..RAW_BYTES,
        file: OpenFiles::open(&[path.to_path_buf()], access).expect("open it"),
        api: Api::Threads,
        call: LogCall::Dsync,
        block_bytes: 4096,
        write_bytes_max: raw::WRITE_BYTES_MAX,
    };
    Log::open(log, Seed(3)).expect("a log")
}
