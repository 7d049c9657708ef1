//! On exports of a real NFS server (Ganesha as Debian packages it) and of our own cluster, without a kernel mount: databases, and what measures there.

mod cluster;
mod database;
#[path = "../../../engine/tests/life/machine.rs"]
#[allow(dead_code)]
mod machine;
#[path = "../../../nfs/tests/ganesha/stand.rs"]
mod stand;
