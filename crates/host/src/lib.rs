//! host
#![forbid(unsafe_code)]
