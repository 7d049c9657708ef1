//! The binary as a user meets it: what it prints, what it refuses, what it leaves behind.
//!
//! Every test starts the real program in a home and a directory of its own ([`stage`]). Nothing here judges how fast
//! something is: measuring is for the benchmarks.
#![forbid(unsafe_code)]

mod advise;
mod collapse;
mod existing;
mod exports;
mod factors;
mod flash;
mod fuse;
mod guide;
mod nfs_lab;
mod oranfstab;
mod ordinary;
mod page;
mod profile;
mod refusals;
mod runs;
mod serve;
mod servers;
mod sql;
mod stage;
mod stop;
mod trace;
mod trouble;
mod verify;
mod watch;
