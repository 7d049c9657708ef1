//! Order entry, 15 sessions without think time, data four times the cache: against PostgreSQL.
//!
//! PostgreSQL reads through the kernel's page cache, which here is larger than all data, so its reads seldom reach the device.
//! Ours reads past it (`setall`), which is to its disadvantage and is judged all the same. With `none`, which is told, it has the
//! page cache too, but its writers wait for each write in turn until it is durable, where PostgreSQL leaves that to the next
//! checkpoint: what costs it is `free buffer waits`.
use super::evidence::why;
use super::{Bench, NEVER, configuration, ratios};
use crate::common::goals::{Aim, Goals};
use engine::Shutdown;
use io::IoMode;
use lab::compare::configuration::Configuration;
use lab::database::drive::Terms;
use lab::database::order_entry::{self, Scale, Think};
use units::{Nanos, Seed};

const CLERKS: u32 = 15;
/// Until caches are warm.
const WARM: Nanos = Nanos::millis(3_000);

impl Bench {
    pub fn order_entry(&self, goals: &mut Goals) {
        let scale = if self.peers { Scale::spec(5) } else { Scale::small(1) };
        println!(
            "\norder entry, {CLERKS} sessions, no think time, {} warehouses, {} rounds of {} s a side",
            scale.warehouses, self.rounds, self.seconds
        );
        let instance = self.open();
        let mut session = instance.session("order-entry").expect("a session");
        order_entry::prepare(&mut session, scale, Seed(12), &NEVER).expect("tables");
        drop(session);
        instance.shutdown(Shutdown::Immediate).expect("shut down");
        let play = |mode: IoMode| {
            let instance = self.database.open(&Configuration { mode, ..configuration() }).expect("open");
            let settle = if self.peers { WARM } else { Nanos::millis(100) };
            let terms = Terms { settle, ..self.terms(Seed(13)) };
            let done = order_entry::run(&instance, CLERKS, Think::None, false, terms).expect("order entry");
            let rate = 60.0 * done.trial.rate();
            why(&format!("ours, {mode}, {rate:.0} tx/min"), &done.interval);
            instance.shutdown(Shutdown::Immediate).expect("shut down");
            rate
        };
        let (buffered, direct) = (|| play(IoMode::None), || play(IoMode::Setall));
        let mut sides: Vec<(&str, &dyn Fn() -> f64)> = vec![
            ("ours (setall), tx/min", &direct),
            ("ours through the page cache (none), tx/min", &buffered),
        ];
        let theirs = || 60.0 * self.postgres().order_entry(scale, CLERKS, self.seconds);
        if self.peers {
            let bytes = self.postgres().prepare_order_entry(scale);
            println!(
                "  ours about {:.0} MB, PostgreSQL {:.0} MB, cache {}",
                scale.bytes() as f64 / 1e6,
                bytes / 1e6,
                super::CACHE
            );
            self.postgres().order_entry(scale, CLERKS, WARM.as_secs());
            sides.push(("PostgreSQL, tx/min", &theirs));
        }
        let rates = self.alternate(&sides);
        if let Some(theirs) = rates.get(2) {
            goals.rounds(
                "order entry, tx/min: ours / PostgreSQL",
                &ratios(&rates[0], theirs),
                Aim::AtLeast(2.0),
            );
            goals.rounds(
                "order entry, tx/min: ours with none / PostgreSQL",
                &ratios(&rates[1], theirs),
                Aim::Told,
            );
        }
    }
}
