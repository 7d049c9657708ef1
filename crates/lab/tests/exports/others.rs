//! The same on servers of others that run inside a process: crate `nfs3_server` (v3) and crate `embednfs` (v4.1). Both keep everything in memory, so it is the
//! client that is killed here.

use crate::database::{assert_recovered, work, work_and_die};
use crate::stamped;
use nfs::{Mount, MountOptions, Open, Path, Target, Version};
use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::oneshot::{Sender, channel};
use units::Nanos;

/// Says to the process that is killed which version, and at which port.
const CHILD: &str = "REDOUBT_TEST_OTHER";

/// A server in a thread of its own, gone at the end.
struct Server {
    version: Version,
    port: u16,
    over: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn of_v3() -> Self {
        use nfs3_server::memfs::{MemFs, MemFsConfig};
        use nfs3_server::tcp::{NFSTcp as _, NFSTcpListener};
        Self::start(Version::V3, |port| async move {
            let files = MemFs::new(MemFsConfig::default()).expect("an empty root");
            let listener = NFSTcpListener::bind("127.0.0.1:0", files).await.expect("a port");
            port.send(listener.get_listen_port()).expect("it is waited for");
            listener.handle_forever().await
        })
    }

    fn of_v41() -> Self {
        Self::start(Version::V41, |port| async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            port.send(listener.local_addr()?.port()).expect("it is waited for");
            embednfs::NfsServer::new(embednfs::MemFs::new()).serve(listener).await
        })
    }

    /// `serve` tells its port, and serves until it is dropped. On one thread calls are carried out in the order in which they came: the files of `nfs3_server` have
    /// no holes, and a WRITE that overtakes the one before it is refused.
    fn start<F: Future<Output = std::io::Result<()>>>(
        version: Version,
        serve: impl FnOnce(SyncSender<u16>) -> F + Send + 'static,
    ) -> Self {
        let (tell, told) = sync_channel(1);
        let (over, end) = channel();
        let thread = std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                tokio::select! { _ = serve(tell) => {}, _ = end => {} }
            });
        });
        let port = told.recv().expect("it listens");
        Self { version, port, over: Some(over), thread: Some(thread) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.over.take());
        self.thread.take().into_iter().for_each(|thread| thread.join().expect("it served"));
    }
}

fn mount(version: Version, port: u16) -> Mount {
    let path = Path { remote: [127, 0, 0, 1].into(), local: None };
    let target = Target {
        server: "other".into(),
        paths: vec![path],
        port,
        mount_port: Some(port),
        export: "/".into(),
        version,
    };
    let limit = Nanos::millis(30_000);
    Mount::open(target, MountOptions { limit, ..MountOptions::default() })
        .unwrap_or_else(|error| panic!("{version}: {error}"))
}

fn stamped_blocks_come_back(server: &Server) {
    let mount = mount(server.version, server.port);
    let file = mount.file("data", Open::New { mode: 0o640 }).expect("a new file");
    // `nfs3_server` keeps files without holes: it refuses a WRITE behind the end, and blocks are written in any order.
    mount.set_size(&file, stamped::BYTES).expect("a size");
    stamped::check(&mount, &file, "data");
}

fn a_killed_database_recovers(server: &Server) {
    let (version, port) = (server.version, server.port);
    let acknowledged = work_and_die("others::child", CHILD, &format!("{version} {port}"));
    assert_recovered(&version.to_string(), &|| mount(version, port), &directory(), acknowledged);
}

fn directory() -> PathBuf {
    PathBuf::from("nfs://here/vfs/db")
}

#[test]
fn stamped_blocks_come_back_from_nfs3_server() {
    stamped_blocks_come_back(&Server::of_v3());
}

#[test]
fn stamped_blocks_come_back_from_embednfs() {
    stamped_blocks_come_back(&Server::of_v41());
}

#[test]
fn a_killed_database_recovers_on_nfs3_server() {
    a_killed_database_recovers(&Server::of_v3());
}

#[test]
fn a_killed_database_recovers_on_embednfs() {
    a_killed_database_recovers(&Server::of_v41());
}

/// The process that is killed.
#[test]
fn child() {
    let Ok(where_to) = std::env::var(CHILD) else { return };
    let (version, port) = where_to.split_once(' ').expect("two words");
    work(mount(version.parse().expect("a version"), port.parse().expect("a port")), directory());
}
