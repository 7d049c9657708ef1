//! The life of a database, through the public API alone: made, used, stopped, crashed, opened again; on simulated storage
//! and on a real directory.

mod accounts;
mod birth;
mod crash;
mod files;
mod full;
mod machine;
mod read_back;
mod real;
