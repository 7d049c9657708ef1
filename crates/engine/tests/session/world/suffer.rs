//! A call that fails: who is told of it, and what is there afterwards.

use super::{SHUT, World};
use crate::machine::{alert, try_open};
use engine::{EngineError, Instance};
use io::sim::Fault;

/// Steps after a failure that nobody noticed.
const AFTERWARDS: u32 = 15;

/// What a failing call did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Suffered {
    /// It came.
    pub struck: bool,
    /// The database was not opened.
    pub not_opened: bool,
    /// A session got an error.
    pub told: bool,
    /// The instance stopped itself.
    pub stopped: bool,
}

impl World {
    /// Opens the database and works, for so many steps, until somebody is told of the failure. Then, if the instance goes on,
    /// it goes on without a scratch; after a restart everything is there that was acknowledged.
    pub fn suffer(&mut self, fault: Fault, steps: u32) -> Suffered {
        let mut suffered = Suffered::default();
        self.storage.inject(fault);
        match try_open(&self.storage) {
            Err(error) => {
                assert!(self.storage.fired() > 0, "{SHUT}{error}");
                (suffered.struck, suffered.not_opened) = (true, true);
                self.storage.heal();
            }
            Ok(instance) => {
                self.instance = Some(instance);
                self.sessions();
                self.work_until_told(steps, &mut suffered);
                self.go_on(&mut suffered);
                self.failing = false;
            }
        }
        self.reopen();
        for _ in 0..AFTERWARDS {
            self.act().expect("the failure is over");
        }
        self.end();
        suffered
    }

    fn work_until_told(&mut self, steps: u32, suffered: &mut Suffered) {
        // Space that a failed statement could not give back is given back at the next open: until then nobody counts it.
        self.failing = true;
        let mut left = steps;
        while left > 0 && !suffered.told {
            let result = self.act();
            left -= 1;
            if self.storage.fired() > 0 && !suffered.struck {
                suffered.struck = true;
                left = left.min(AFTERWARDS);
            }
            if let Err(error) = result {
                assert!(suffered.struck, "nothing failed, and yet: {error}");
                suffered.told = true;
            }
        }
        self.storage.heal();
    }

    fn go_on(&mut self, suffered: &mut Suffered) {
        let Some(instance) = &self.instance else { return };
        if let Some(why) = instance.crashed() {
            suffered.stopped = true;
            let said = alert(&self.storage);
            assert!(said.contains(&why), "the alert log does not tell {why:?}: {said}");
            for actor in &mut self.actors {
                let refused = actor.session.commit();
                assert!(matches!(refused, Err(EngineError::Crashed(_))), "{refused:?}");
            }
            return;
        }
        for who in 0..self.actors.len() {
            self.rollback(who).expect("the failure is over");
        }
        self.accept();
        self.check_rows();
        for _ in 0..AFTERWARDS {
            self.act().expect("the failure is over");
        }
        self.perhaps.clear();
        let crashed = self.instance.as_ref().and_then(Instance::crashed);
        assert_eq!(crashed, None, "nobody was told");
    }
}
