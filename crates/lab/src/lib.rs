//! The laboratory: runs workloads on a target under configurations, and records what happened.
//!
//! Start with [`calibrate::run`] (how much can this storage do?) and [`compare::run`] (which I/O mode should the
//! database use?). Both follow the same road: choose the target safely ([`target`]), plan within the budget, prepare
//! ([`bench::Bench`]: journal, workspace, record, sampler), measure in an order that chance decides, check, finish.
//! Nothing here formats for people: sentences and tables are made from the record by crate `report`.
#![forbid(unsafe_code)]

pub mod advise;
pub mod bench;
pub mod calibrate;
pub mod compare;
pub mod control;
pub mod database;
pub mod doctor;
mod error;
pub mod evidence;
pub mod export;
pub mod factor;
mod health;
pub mod load;
pub mod nodes;
pub mod run;
pub mod server;
pub mod stage;
pub mod target;
pub mod trace;
pub mod verify;
pub mod workload;

pub use error::LabError;

/// Version of the measuring method (`docs/method.md`). Runs of different major versions are not compared silently.
pub const METHOD_VERSION: &str = "1.0";

/// The material margin: differences below 3 % are not called (docs/method.md, 5.1).
pub const DELTA: f64 = 0.03;
