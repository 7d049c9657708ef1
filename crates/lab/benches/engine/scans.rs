//! Full scans: by direct path against fio's best sequential rate, from the cache against PostgreSQL.

use super::evidence::{now, since, why};
use super::{Bench, NEVER, ratios};
use crate::common::goals::{Aim, Goals, median};
use engine::{AlterSystem, Session, Shutdown};
use lab::database::source;
use std::path::Path;
use std::process::Command;
use units::{Seed, clock};

/// Reads in flight that fio is tried with; its best is what we are held against.
const FIO_DEPTHS: [u32; 5] = [2, 4, 8, 16, 32];

impl Bench {
    pub fn scans(&self, goals: &mut Goals) {
        let instance = self.open();
        let mut session = instance.session("scan").expect("a session");
        // Four times the cache, and a table that fits it.
        let (large, small) = ((512 << 20) / self.scale, (64 << 20) / self.scale);
        source::create(&mut session, "LARGE", large / source::ROW_BYTES, Seed(5), &NEVER).expect("a table");
        source::create(&mut session, "SMALL", small / source::ROW_BYTES, Seed(6), &NEVER).expect("a table");
        session.alter_system(&AlterSystem::Checkpoint).expect("checkpoint");
        println!("\nfull scans, {} rounds", self.rounds);
        let session = std::cell::RefCell::new(session);
        let data = instance.datafile().into_iter().find(|f| f.name.ends_with("users01.dbf")).expect("USERS");
        let direct = || {
            let session = &mut *session.borrow_mut();
            let _ = session.alter_system(&lab::database::set("_serial_direct_read", "always"));
            session.alter_system(&AlterSystem::FlushBufferCache).expect("flush");
            let before = now(&instance);
            let (_, bytes, elapsed) = count(session, "LARGE");
            why("ours, direct path", &since(before, &instance));
            bytes as f64 / 1e6 / elapsed
        };
        let seconds = self.seconds.min(3.0);
        let tried = FIO_DEPTHS.map(|depth| (fio_sequential(&data.name, depth, seconds), depth));
        for (rate, depth) in tried {
            println!("    fio, {depth} reads of 1 MiB in flight: {rate:.0} MB/s");
        }
        let best = tried.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).map_or(FIO_DEPTHS[0], |best| best.1);
        let fio = || fio_sequential(&data.name, best, seconds);
        let rates =
            self.alternate(&[("ours, direct path, MB/s", &direct), ("fio at its best depth, MB/s", &fio)]);
        goals.rounds(
            "COUNT(*) by direct path, cold: ours / fio at its best depth",
            &ratios(&rates[0], &rates[1]),
            Aim::AtLeast(0.95),
        );
        let cached = || {
            let session = &mut *session.borrow_mut();
            let _ = session.alter_system(&lab::database::set("_serial_direct_read", "never"));
            count(session, "SMALL");
            let times: Vec<f64> = (0..9).map(|_| count(session, "SMALL").2).collect();
            let (rows, ..) = count(session, "SMALL");
            rows as f64 / median(&times)
        };
        if self.peers {
            let pg = self.postgres();
            pg.fill("small_table", small / source::ROW_BYTES);
            let theirs = || pg.count("small_table");
            let rates =
                self.alternate(&[("ours, cached, rows/s", &cached), ("PostgreSQL, cached, rows/s", &theirs)]);
            goals.rounds(
                "COUNT(*) from the cache: ours / PostgreSQL",
                &ratios(&rates[0], &rates[1]),
                Aim::AtLeast(3.0),
            );
        } else {
            cached();
        }
        for table in ["LARGE", "SMALL"] {
            session.borrow_mut().drop_table(table).expect("drop");
        }
        drop(session);
        instance.shutdown(Shutdown::Immediate).expect("shut down");
    }
}

/// Rows, bytes of the segment, seconds.
fn count(session: &mut Session, name: &str) -> (u64, u64, f64) {
    let table = session.table(name).expect("the table");
    let bytes = lab::database::segment_bytes(session, &table).expect("its size");
    let began = clock::now();
    let rows = session.count(&table).expect("COUNT(*)");
    (rows, bytes, (clock::now() - began).as_secs())
}

/// MB/s of sequential 1 MiB reads, `depth` in flight.
fn fio_sequential(file: &Path, depth: u32, seconds: f64) -> f64 {
    let output = Command::new("fio")
        .args(["--name=scan", "--rw=read", "--bs=1m", "--direct=1", "--ioengine=io_uring"])
        .args(["--readonly", "--time_based", "--output-format=json"])
        .arg(format!("--iodepth={depth}"))
        .arg(format!("--filename={}", file.display()))
        .arg(format!("--runtime={seconds}"))
        .output()
        .expect("fio");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let json = text.find('{').map_or("", |at| &text[at..]);
    let report: record::json::Value = record::json::from_str(json).expect("fio's report");
    report["jobs"][0]["read"]["bw_bytes"].as_f64().expect("its rate") / 1e6
}
