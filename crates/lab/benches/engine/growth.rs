//! `INSERT INTO t SELECT * FROM t` against PostgreSQL, in MB/s.

use super::evidence::{now, since, why};
use super::{Bench, NEVER, ratios};
use crate::common::goals::{Aim, Goals};
use engine::{AlterSystem, Shutdown};
use lab::database::source;
use units::{Seed, clock};

impl Bench {
    pub fn growth(&self, goals: &mut Goals) {
        let instance = self.open();
        println!("\nINSERT INTO t SELECT * FROM t, {} rounds", self.rounds);
        let rows = (96 << 20) / self.scale / source::ROW_BYTES;
        let ours = || {
            let mut session = instance.session("growth").expect("a session");
            source::create(&mut session, "T", rows, Seed(8), &NEVER).expect("a table");
            session.alter_system(&AlterSystem::FlushBufferCache).expect("flush");
            let table = session.table("T").expect("T");
            let before = lab::database::segment_bytes(&mut session, &table).expect("its size");
            let (began, past) = (clock::now(), now(&instance));
            let mut scan = session.scan(&table).expect("a scan");
            session.insert_select(&table, &mut scan).expect("insert");
            drop(scan);
            session.commit().expect("commit");
            let elapsed = (clock::now() - began).as_secs();
            why("ours", &since(past, &instance));
            let bytes = lab::database::segment_bytes(&mut session, &table).expect("its size") - before;
            session.drop_table("T").expect("drop");
            bytes as f64 / 1e6 / elapsed
        };
        if self.peers {
            let theirs = || self.postgres().grow(rows);
            let rates = self.alternate(&[("ours, MB/s", &ours), ("PostgreSQL, MB/s", &theirs)]);
            goals.rounds(
                "INSERT … SELECT: ours / PostgreSQL, MB/s",
                &ratios(&rates[0], &rates[1]),
                Aim::AtLeast(2.0),
            );
        } else {
            ours();
        }
        instance.shutdown(Shutdown::Immediate).expect("shut down");
    }
}
