//! A database server as a source: its watcher's words become looks and notices.

use super::Source;
use ::watch::draw::{Subject, Times};
use ::watch::history::{Active, Device, History, Look, Work};
use anyhow::Result;
use host::counters::{DiskCounters, rates};
use lab::server::sampler::Seen;
use lab::server::url::Address;
use lab::server::watcher::{Facts, Glance, Watcher, Word};
use lab::server::{Kind, ServerError};
use std::collections::BTreeSet;
use units::{Nanos, clock};
use waits::{Grade, SessionKind};

/// The history's zero lies so long before the first look: the picture's left edge may, too.
const BEFORE: Nanos = Nanos::millis(86_400_000);

/// A look that is late by that much is told: a server that hangs is not at rest.
const LATE: Nanos = Nanos::millis(5_000);

const NO_ANSWER: &str = "no answer";

/// A server that is watched.
pub struct Live {
    watcher: Watcher,
    kind: Kind,
    address: String,
    /// This process's clock when the watching began.
    began: Nanos,
    /// How often it looks.
    every: Nanos,
    /// When something was heard of it.
    heard: Nanos,
    subject: Subject,
    cpus: Option<u32>,
    /// Devices that ever did something; all others are left out.
    busy: BTreeSet<String>,
}

impl Live {
    /// Connects and begins to look, once in `every`. `cpus`: of the server's machine, as the user says.
    ///
    /// # Errors
    /// The server cannot be reached, or does not let us in.
    pub fn start(address: &Address, every: Nanos, cpus: Option<u32>) -> Result<Self> {
        let (watcher, facts) = Watcher::start(address, every)?;
        let no_devices = if address.is_local() {
            String::new()
        } else {
            "the server is on another machine: its devices cannot be seen from here".to_owned()
        };
        let subject = Subject {
            title: String::new(),
            state: String::new(),
            trouble: false,
            cpus: None,
            no_devices,
            times: Times::Utc(clock::unix_seconds().saturating_sub(BEFORE.0 / 1_000_000_000)),
            doubts: Vec::new(),
        };
        let mut this = Self {
            watcher,
            kind: address.kind,
            address: address.to_string(),
            began: clock::now(),
            every,
            heard: clock::now(),
            subject,
            cpus,
            busy: BTreeSet::new(),
        };
        this.know(facts);
        Ok(this)
    }

    fn know(&mut self, facts: Facts) {
        let version = facts.version.split(['-', ' ']).next().unwrap_or_default();
        // The server's own words; elsewhere than in the picture they are printed as they are.
        let version: String = version.chars().filter(|c| !c.is_control()).collect();
        self.subject.title = format!("{} {version}  {}", self.kind, self.address);
        self.subject.cpus = self.cpus.or(facts.cpus).map(|cpus| cpus as f32);
        self.subject.doubts = facts.doubts;
        self.set("live", false);
    }

    /// Says so where no look has come for long; whether there is something new to be said.
    fn is_late(&mut self) -> bool {
        let silence = clock::now() - self.heard;
        let is_gone = self.subject.trouble && !self.subject.state.starts_with(NO_ANSWER);
        if is_gone || silence < self.every + LATE {
            return false;
        }
        let state = format!("{NO_ANSWER} for {:.0} s", silence.as_secs().floor());
        let is_new = self.subject.state != state;
        self.set(&state, true);
        is_new
    }

    fn set(&mut self, state: &str, trouble: bool) {
        self.subject.state = state.to_owned();
        self.subject.trouble = trouble;
    }
}

impl Source for Live {
    fn take(&mut self, history: &mut History, longest: Nanos) -> bool {
        let words = self.watcher.words(longest);
        let any = !words.is_empty();
        if any {
            self.heard = clock::now();
        }
        for word in words {
            match word {
                Word::Looked(glance) => {
                    self.set("live", false);
                    if history.looks() == 0 {
                        self.subject.doubts.iter().for_each(|doubt| history.note(BEFORE, doubt.clone()));
                    }
                    history.add(&look(self.kind, self.began, &glance, &mut self.busy));
                }
                Word::Lost(error) => {
                    let why = match error {
                        ServerError::Gone { said, .. } => format!("the server is gone, trying again: {said}"),
                        error => format!("the server does not answer, trying again. {error}"),
                    };
                    history.note(self.now(), why);
                    self.set("server gone, trying again", true);
                }
                Word::Back(facts) => {
                    history.note(self.now(), format!("the server is back: {} {}", self.kind, facts.version));
                    self.know(facts);
                }
            }
        }
        any || self.is_late()
    }

    fn subject(&self) -> &Subject {
        &self.subject
    }

    fn now(&self) -> Nanos {
        clock::now() - self.began + BEFORE
    }
}

/// On the history's time and in its words. A device that once did something, and is `busy` from then on, is told also where it
/// does nothing: that belongs into its means.
fn look(kind: Kind, began: Nanos, glance: &Glance, busy: &mut BTreeSet<String>) -> Look {
    let device = |(name, old, new): &(String, DiskCounters, DiskCounters)| {
        let work = work(old, new, glance.weight.as_secs());
        if work.reads + work.writes > 0.0 || work.in_flight_seconds > 0.0 {
            busy.insert(name.clone());
        }
        busy.contains(name).then(|| Device { name: name.clone(), work })
    };
    Look {
        t: glance.t - began + BEFORE,
        weight: glance.weight,
        cost: glance.cost,
        active: glance.seen.iter().map(|seen| active(kind, seen)).collect(),
        devices: glance.devices.iter().filter_map(device).collect(),
    }
}

fn active(kind: Kind, seen: &Seen) -> Active {
    let event = seen.event.map(|(event, _)| event.name().to_owned()).or_else(|| seen.wait.clone());
    Active {
        class: seen.class(kind),
        event: event.unwrap_or_default(),
        native: seen.wait.clone(),
        grade: match (&seen.wait, seen.event) {
            (None, _) => None,
            (Some(_), Some((_, grade))) => Some(grade),
            (Some(_), None) => Some(Grade::None),
        },
        foreground: seen.kind == SessionKind::Foreground,
        session: seen.session,
        program: seen.program.clone(),
        statement: seen.shape.clone(),
        file: seen.file.clone(),
    }
}

/// What a device did between two readings.
fn work(old: &DiskCounters, new: &DiskCounters, seconds: f64) -> Work {
    if seconds <= 0.0 {
        return Work::default();
    }
    let rates = rates(old, new, seconds);
    let (reads, writes) = (rates.r_s * seconds, rates.w_s * seconds);
    Work {
        reads: reads as f32,
        writes: writes as f32,
        megabytes: ((rates.rkb_s + rates.wkb_s) * seconds * 1.024e-3) as f32,
        read_seconds: (rates.r_await_ms.unwrap_or(0.0) * reads / 1e3) as f32,
        write_seconds: (rates.w_await_ms.unwrap_or(0.0) * writes / 1e3) as f32,
        in_flight_seconds: (rates.aqu_sz * seconds) as f32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Means are over all of the time since a device was first seen at work, not over its busy seconds.
    #[test]
    fn a_device_that_rests_is_still_told() {
        let counters = |reads| DiskCounters { reads, ..DiskCounters::default() };
        let mut busy = BTreeSet::new();
        let mut told = |seconds: f64, old, new| {
            let devices = ["vda", "loop7"].map(|name| match name {
                "vda" => (name.to_owned(), counters(old), counters(new)),
                _ => (name.to_owned(), counters(5), counters(5)),
            });
            let glance = Glance {
                t: Nanos::secs(seconds),
                weight: Nanos::secs(1.0),
                cost: Nanos(0),
                seen: Vec::new(),
                devices: devices.into(),
            };
            let look = look(Kind::Postgres, Nanos(0), &glance, &mut busy);
            look.devices.iter().map(|d| (d.name.clone(), d.work.reads)).collect::<Vec<_>>()
        };
        assert_eq!(told(1.0, 0, 0), []);
        assert_eq!(told(2.0, 0, 30), [("vda".to_owned(), 30.0)]);
        assert_eq!(told(3.0, 30, 30), [("vda".to_owned(), 0.0)]);
    }
}
