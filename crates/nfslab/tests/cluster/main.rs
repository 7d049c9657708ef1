//! The client of crate `nfs` against the cluster: stamped data over each version, layouts, moves under load.

mod calls;
mod data;
mod delegations;
mod faults;
mod long;
mod paths;
mod pnfs;
mod stand;
mod storm;
mod views;
