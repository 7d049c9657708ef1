//! What benchmarks share: flags, children and their CPU time, fio, the file under test, goals.
#![allow(dead_code, reason = "each benchmark uses its part")]

pub mod calibration;
pub mod child;
pub mod file;
pub mod fio;
pub mod flags;
pub mod goals;
