//! On exports of real NFS servers (Ganesha as Debian packages it; crates `nfs3_server` and `embednfs`) and of our own cluster, without a kernel mount: databases, and what measures there.

mod cluster;
mod database;
#[path = "../../../engine/tests/life/machine.rs"]
#[allow(dead_code)]
mod machine;
mod others;
#[path = "../../../nfs/tests/ganesha/stamped.rs"]
mod stamped;
#[path = "../../../nfs/tests/ganesha/stand.rs"]
mod stand;
