//! The devices beneath the places of a stage, each by itself: what is counted of a slow one and of a fast one.

use super::Stage;
use crate::factor::{FileClass, Limit, Setup};
use host::facts;
use std::path::PathBuf;

/// What lies beneath one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beneath {
    /// The place as it is typed: `here`, `throttled:hdd-7200`, `/ssd`; several where the same disks are beneath them.
    pub place: String,
    /// Kernel names of the devices that are counted there.
    pub disks: Vec<String>,
    /// The cap on each of them, where there is one.
    pub limit: Option<Limit>,
    /// The classes of files that lie there.
    pub classes: Vec<FileClass>,
}

impl Stage {
    /// What lies beneath the places of `setup`, which is in force.
    pub fn beneath(&self, setup: &Setup) -> Vec<Beneath> {
        let mut all: Vec<Beneath> = Vec::new();
        for class in setup.classes() {
            let place = setup.storage(class).to_string();
            match all.iter_mut().find(|beneath| beneath.place == place) {
                Some(known) => known.classes.push(class),
                None => {
                    let (disks, limit) = self.disks(class, setup);
                    all.push(Beneath { place, disks, limit, classes: vec![class] });
                }
            }
        }
        // Control file, SYSTEM and the alert log lie here whatever is placed elsewhere.
        if !all.iter().any(|beneath| beneath.place == "here") {
            let (disks, limit) = self.disks_here(setup);
            all.push(Beneath { place: "here".into(), disks, limit, classes: Vec::new() });
        }
        let mut apart: Vec<Beneath> = Vec::new();
        for beneath in all {
            match apart.iter_mut().find(|other| other.disks == beneath.disks) {
                Some(same) => {
                    same.place = format!("{} and {}", same.place, beneath.place);
                    same.classes.extend(beneath.classes);
                }
                None => apart.push(beneath),
            }
        }
        apart
    }

    /// The devices that files of `class` lie on: those that were made or named for it, else the disks under its directory.
    fn disks(&self, class: FileClass, setup: &Setup) -> (Vec<String>, Option<Limit>) {
        let storage = setup.storage(class);
        let mut own = self.volumes.iter().filter(|volume| volume.stands_for(storage)).peekable();
        if own.peek().is_none() {
            return (leaves(self.path(class).to_owned()), None);
        }
        let limit = own.peek().and_then(|volume| volume.limit(setup));
        (own.map(|volume| volume.device().name).collect(), limit)
    }

    fn disks_here(&self, setup: &Setup) -> (Vec<String>, Option<Limit>) {
        match self.volumes.iter().find(|volume| volume.holds_the_rest()) {
            Some(volume) => (vec![volume.device().name], volume.limit(setup)),
            None => (leaves(self.here.clone()), None),
        }
    }
}

fn leaves(path: PathBuf) -> Vec<String> {
    facts::storage(&path).counter_devices()
}
