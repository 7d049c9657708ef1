//! Every operation that the client speaks, captured on its way and read by somebody else: tshark takes each call and reply apart, finds nothing malformed
//! and nothing unknown, and has seen each operation in both directions.

#[path = "../cluster/stand.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod blocks;
#[path = "../../../nfs/tests/ganesha/stand.rs"]
mod stand;
mod tshark;

use blocks::{BLOCK, Blocks, sync};
use io::Action;
use nfs::rpc::call::{self, Credential};
use nfs::rpc::record;
use nfs::xdr::Writer;
use nfs::{Mount, MountOptions, Open, QueueOptions, Version};
use nfslab::{Cluster, ClusterOptions, DataServer, Delegations, Layouts, Tell};
use stand::{Conf, MOUNT_PORT, PORT, Server, alone};
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use tshark::{Capture, Kind, Seen};
use units::{Nanos, clock};

/// Where the cluster listens.
const CLUSTER_PORT: u16 = 2049;

/// GETATTR, SETATTR, LOOKUP, ACCESS, READ, WRITE, CREATE, MKDIR, REMOVE, RMDIR, RENAME, READDIR, FSSTAT, FSINFO, COMMIT.
const V3: [u32; 15] = [1, 2, 3, 4, 6, 7, 8, 9, 12, 13, 14, 16, 18, 19, 21];
/// CLOSE, COMMIT, CREATE, GETATTR, GETFH, LOOKUP, OPEN, PUTFH, PUTROOTFH, READ, READDIR, REMOVE, RENAME, SAVEFH, SETATTR, WRITE.
const V4: [u32; 16] = [4, 5, 6, 9, 10, 15, 18, 22, 24, 25, 26, 28, 29, 32, 34, 38];
/// SETCLIENTID, SETCLIENTID_CONFIRM.
const V40: [u32; 2] = [35, 36];
/// EXCHANGE_ID, CREATE_SESSION, DESTROY_SESSION, SEQUENCE, DESTROY_CLIENTID, RECLAIM_COMPLETE.
const V41: [u32; 6] = [42, 43, 44, 53, 57, 58];
const OPEN_CONFIRM: u32 = 20;
const RENEW: u32 = 30;
const BIND_CONN_TO_SESSION: u32 = 41;
/// GETDEVICEINFO, LAYOUTCOMMIT, LAYOUTGET, LAYOUTRETURN.
const PNFS: [u32; 4] = [47, 49, 50, 51];
const DELEGRETURN: u32 = 8;
/// CB_RECALL, CB_SEQUENCE.
const CALLBACKS: [u32; 2] = [4, 11];
/// CB_LAYOUTRECALL, CB_NOTIFY_DEVICEID.
const PNFS_CALLBACKS: [u32; 2] = [5, 14];
/// CB_NULL, CB_COMPOUND.
const BACK: [u32; 2] = [0, 1];
/// MNT.
const MOUNT: [u32; 1] = [1];
/// GETPORT.
const PORTMAP: [u32; 1] = [3];

/// What is done to a file by those who have one.
fn all_of_it(mount: &Mount) {
    let file = mount.file("data", Open::New { mode: 0o640 }).expect("a new file");
    let blocks = Blocks::new(7, 40);
    let mut queue = mount.queue(QueueOptions::new(4, BLOCK), &[&file]).expect("a queue");
    blocks.write_all(&mut queue, 1, Action::Write);
    blocks.write_all(&mut queue, 2, Action::WriteDsync);
    blocks.read_all(&mut queue, 2);
    drop(queue);
    mount.set_size(&file, 5 * u64::from(BLOCK)).expect("a size");
    assert_eq!(mount.attributes(&file).expect("attributes").size, 5 * u64::from(BLOCK));
    assert!(mount.space().expect("an answer").total > 0);
    drop(file);
    mount.make_directory("folder", 0o750).expect("a directory");
    mount.rename("data", "folder/data").expect("a new name");
    assert_eq!(mount.list("folder").expect("a listing"), ["data"]);
    assert!(mount.exists("folder/data").expect("an answer") && !mount.exists("data").expect("an answer"));
    mount.file("folder/data", Open::Create { mode: 0o640 }).expect("it is there");
    mount.remove("folder/data").expect("it goes");
    mount.remove_directory("folder").expect("it is empty");
}

/// The operations that the RFCs know.
fn known(kind: Kind) -> std::ops::RangeInclusive<u32> {
    match kind {
        Kind::V3 => 0..=21,
        Kind::V4 => 3..=58,
        Kind::Callback => 3..=14,
        Kind::Mount => 0..=5,
        Kind::Portmap => 0..=5,
        Kind::Back => 0..=1,
    }
}

fn assert_seen(seen: &Seen, what: &str, kind: Kind, operations: &[u32]) {
    for (direction, found) in [("called", seen.calls(kind)), ("answered", seen.replies(kind))] {
        let missing: Vec<_> = operations.iter().filter(|operation| !found.contains(operation)).collect();
        assert!(missing.is_empty(), "{what}, {kind:?}: {missing:?} were not {direction}; seen: {found:?}");
        assert!(found.iter().all(|operation| known(kind).contains(operation)), "{what}, {kind:?}: {found:?}");
    }
}

#[test]
fn ganesha_is_asked_well() {
    alone("ganesha_is_asked_well", || {
        let _server = Server::start(&Conf::default());
        for version in stand::VERSIONS {
            let capture = Capture::start();
            all_of_it(&stand::mount(version));
            let seen = capture.end(&[PORT, MOUNT_PORT]);
            let what = format!("Ganesha, {version}");
            match version {
                Version::V3 => {
                    assert_seen(&seen, &what, Kind::V3, &V3);
                    assert_seen(&seen, &what, Kind::Mount, &MOUNT);
                    assert_seen(&seen, &what, Kind::Portmap, &PORTMAP);
                }
                Version::V40 => {
                    assert_seen(&seen, &what, Kind::V4, &[&V4[..], &V40, &[OPEN_CONFIRM]].concat())
                }
                _ => assert_seen(&seen, &what, Kind::V4, &[&V4[..], &V41].concat()),
            }
        }
    });
}

fn mount(cluster: &Cluster, version: Version) -> Mount {
    let (limit, silence) = (Nanos::millis(30_000), Nanos::millis(500));
    let options = MountOptions { limit, silence, ..MountOptions::default() };
    Mount::open(cluster.target(0, "/striped", version), options).unwrap_or_else(|e| panic!("{version}: {e}"))
}

/// Moves the file's data, told in one way, and reads and writes it until the client has followed.
fn follow(cluster: &Cluster, mount: &Mount, nodes: [usize; 2], tell: Tell) {
    let file = mount.file("moved", Open::Create { mode: 0o640 }).expect("a file");
    let blocks = Blocks::new(8, 20);
    let mut queue = mount.queue(QueueOptions::new(4, BLOCK), &[&file]).expect("a queue");
    blocks.write_all(&mut queue, 1, Action::Write);
    let before = mount.pnfs().moves;
    std::thread::scope(|scope| {
        scope.spawn(|| cluster.move_to("/striped", &nodes, tell).expect("a move"));
        let deadline = clock::now() + Nanos::millis(20_000);
        while mount.pnfs().moves == before {
            assert!(clock::now() < deadline, "{tell:?}: {:?}", mount.pnfs());
            blocks.read_all(&mut queue, 1);
            clock::sleep(Nanos::millis(5));
        }
    });
    sync(&mut queue);
}

#[test]
fn the_cluster_is_asked_well() {
    alone("the_cluster_is_asked_well", || {
        let forms = [
            (Version::V3, Layouts::None),
            (Version::V40, Layouts::None),
            (Version::V41, Layouts::None),
            (Version::Pnfs, Layouts::Files),
            (Version::Pnfs, Layouts::Dense),
            (Version::Pnfs, Layouts::Flexible(DataServer::V41)),
            (Version::Pnfs, Layouts::Flexible(DataServer::V3)),
        ];
        for (version, layouts) in forms {
            let capture = Capture::start();
            let options =
                ClusterOptions { layouts, port: CLUSTER_PORT, lease_seconds: 3, ..ClusterOptions::default() };
            let cluster = Cluster::start(options).unwrap_or_else(|error| panic!("{error}"));
            cluster.delegate(0, Delegations::Recalled).expect("it gives them");
            let mounted = mount(&cluster, version);
            all_of_it(&mounted);
            if version == Version::V40 {
                // Long enough for the lease to be renewed.
                clock::sleep(Nanos::millis(2_500));
            }
            if version == Version::V41 {
                cluster.cut(0).expect("it is");
                cluster.restore(0).expect("it is");
                assert!(!mounted.exists("nothing").expect("an answer"));
            }
            if version == Version::Pnfs {
                follow(&cluster, &mounted, [1, 0], Tell::Recall);
                follow(&cluster, &mounted, [0, 1], Tell::Notify);
            }
            drop(mounted);
            // Nobody waits for the answers to its last calls, and a cluster that is gone gives none.
            clock::sleep(Nanos::millis(300));
            drop(cluster);
            let seen = capture.end(&[CLUSTER_PORT]);
            let what = format!("the cluster, {version}, {layouts:?}");
            match version {
                Version::V3 => assert_seen(&seen, &what, Kind::V3, &V3),
                Version::V40 => {
                    assert_seen(&seen, &what, Kind::V4, &[&V4[..], &V40, &[RENEW, DELEGRETURN]].concat())
                }
                Version::V41 => {
                    let of_41 = [BIND_CONN_TO_SESSION, DELEGRETURN];
                    assert_seen(&seen, &what, Kind::V4, &[&V4[..], &V41, &of_41].concat());
                    assert_seen(&seen, &what, Kind::Callback, &CALLBACKS);
                    assert_seen(&seen, &what, Kind::Back, &BACK);
                }
                Version::Pnfs => {
                    assert_seen(&seen, &what, Kind::Callback, &[CALLBACKS, PNFS_CALLBACKS].concat());
                    assert_seen(&seen, &what, Kind::Back, &BACK);
                    let data_by_v3 = layouts == Layouts::Flexible(DataServer::V3);
                    let of_data: &[u32] = if data_by_v3 { &[5, 25, 38] } else { &[] };
                    let v4: Vec<u32> = [&V4[..], &V41, &PNFS, &[DELEGRETURN]].concat();
                    let v4: Vec<u32> =
                        v4.into_iter().filter(|operation| !of_data.contains(operation)).collect();
                    assert_seen(&seen, &what, Kind::V4, &v4);
                    if data_by_v3 {
                        assert_seen(&seen, &what, Kind::V3, &[6, 7, 21]);
                    }
                }
            }
        }
    });
}

/// The other tests can fail: a call that ends too early is objected to.
#[test]
fn what_is_malformed_is_objected_to() {
    alone("what_is_malformed_is_objected_to", || {
        let capture = Capture::start();
        let listener = TcpListener::bind(("127.0.0.1", CLUSTER_PORT)).expect("a port");
        let mut stream = TcpStream::connect(listener.local_addr().expect("bound")).expect("a connection");
        let mut w = Writer::new();
        let at = call::begin(&mut w, 7, nfs::v3::READ, &Credential::sys("here", 0, 0, &[]));
        // A handle of 64 bytes, of which 8 come.
        w.u32(64);
        w.u64(9);
        record::seal(&mut w, at, 0);
        stream.write_all(w.bytes()).expect("it is sent");
        let (seen, objections) = capture.judged(&[CLUSTER_PORT]);
        assert!(seen.calls(Kind::V3).contains(&6));
        assert!(objections.iter().any(|line| line.contains("Malformed")), "{objections:?}");
    });
}
