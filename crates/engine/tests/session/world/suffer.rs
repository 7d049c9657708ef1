//! A call that fails: who is told of it, and what is there afterwards.

use super::{SHUT, World};
use crate::machine::{alert, try_open};
use engine::{EngineError, Instance};
use io::sim::Fault;
use std::path::Path;

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

/// What a flash cache did whose device went wrong.
#[derive(Clone, Copy, Debug, Default)]
#[allow(dead_code, reason = "only the power cut runner has a flash cache")]
pub struct FlashSuffered {
    /// A call failed, or a block was damaged.
    pub struck: bool,
    /// It was switched off.
    pub off: bool,
}

impl World {
    /// Works on a database whose flash cache goes wrong after a quarter of the steps: by `fault`, or block after block rots. Nobody is
    /// told, every answer is right, and everything is there after a restart with the device in order.
    #[allow(dead_code, reason = "only the power cut runner has a flash cache")]
    pub fn suffer_flash(&mut self, fault: Option<Fault>, steps: u32) -> FlashSuffered {
        let path = Path::new("/db/flash.dat");
        self.instance = Some(self.open());
        self.sessions();
        for step in 0..steps {
            if step == steps / 4 {
                // No restarts from here on: an instance does not start with a device that it cannot read.
                self.restarts = fault.is_none();
                fault.into_iter().for_each(|fault| self.storage.inject_on(path, fault));
            }
            if step >= steps / 4 && fault.is_none() {
                let at = 65_536 + self.below(500_000) as u64;
                self.storage.damage(path, at, &[0xA5; 64]);
            }
            self.act().unwrap_or_else(|error| panic!("somebody was told: {error}"));
        }
        self.commit_all().unwrap();
        self.check();
        let instance = self.instance.as_ref().unwrap();
        assert_eq!(instance.crashed(), None);
        let off = instance.core.cache.flash().is_some_and(|flash| flash.off().is_some());
        let struck = fault.is_none() || self.storage.fired() > 0;
        self.storage.heal();
        self.restarts = true;
        self.end();
        FlashSuffered { struck, off }
    }

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
