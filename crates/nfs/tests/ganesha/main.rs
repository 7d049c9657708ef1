//! The client against a real server: Ganesha as Debian packages it, each test in a network namespace of its own.

mod cut;
mod data;
mod refusals;
mod restart;
mod stamped;
mod stand;
mod storage;
