//! stats
#![forbid(unsafe_code)]
