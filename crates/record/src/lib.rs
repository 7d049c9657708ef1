//! record
#![forbid(unsafe_code)]
