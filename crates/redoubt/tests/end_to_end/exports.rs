//! On an export of a real NFS server (Ganesha), without a kernel mount: what works, what is refused, and what is left there.

#[path = "../../../nfs/tests/ganesha/stand.rs"]
mod stand;

use crate::stage::{Stage, measuring};
use record::json::{self, Value};
use stand::{Conf, MOUNT_PORT, PORT, Server, VERSIONS, alone};
use std::path::Path;

fn url(version: nfs::Version) -> String {
    format!("nfs://127.0.0.1:{PORT}/vfs?version={version}&mountport={MOUNT_PORT}")
}

/// A short comparison of two versions on the server of `url`.
fn dnfs(url: &str) -> [&str; 10] {
    ["compare", "dnfs", "--minutes", "0.3", "--size", "64m", "--vary", "nfs=v3,v4.1", "--server", url]
}

fn assert_empty(export: &Path) {
    let left: Vec<_> = std::fs::read_dir(export).expect("the export").flatten().collect();
    assert!(left.is_empty(), "something was left: {left:?}");
}

#[test]
fn calibrate_measures_an_export() {
    alone("exports::calibrate_measures_an_export", || {
        let _turn = measuring();
        let server = Server::start(&Conf::default());
        let stage = Stage::new();
        let done = stage.run(&["calibrate", "--quick", "--size", "64m", &url(nfs::Version::V41)]).ok();
        for words in ["NFSv4.1, our own client", "max random 8 KiB reads", "stable WRITE", "WRITE + COMMIT"] {
            assert!(done.stdout.contains(words), "{words:?} is missing:\n{}", done.stdout);
        }
        assert!(done.stderr.contains("The kernel has no part"), "{}", done.stderr);
        assert_eq!(stage.reader().status().expect("status"), "finished");
        assert_empty(&server.export());
    });
}

#[test]
fn a_case_runs_over_each_version() {
    alone("exports::a_case_runs_over_each_version", || {
        let _turn = measuring();
        let server = Server::start(&Conf::default());
        for version in VERSIONS {
            let stage = Stage::new();
            // What a killed run left goes with the next one.
            let left = server.export().join("redoubt-nfs-0123456789abcdef");
            std::fs::create_dir(&left).expect("a folder");
            std::fs::write(left.join("data.dbf"), "x").expect("a file");
            let done = stage
                .run(&[
                    "run",
                    "commit",
                    "--minutes",
                    "0.02",
                    "--sessions",
                    "3",
                    "--verify",
                    "--dir",
                    &url(version),
                ])
                .ok();
            let name = format!("NFS{version}");
            assert!(done.stdout.contains(&name) && done.stdout.contains("committed"), "{}", done.stdout);
            assert_empty(&server.export());
        }
    });
}

/// The shell makes a database in a directory that is new, and asks it again over another version.
#[test]
fn a_database_on_an_export_is_asked() {
    alone("exports::a_database_on_an_export_is_asked", || {
        let server = Server::start(&Conf::default());
        let stage = Stage::new();
        let made = ["sql", "--create", "--data", "1m", "--redo", "4m", "--set", "db_cache_size=16m"];
        for (version, other) in VERSIONS.into_iter().zip(VERSIONS.into_iter().rev()) {
            // A server remembers what it has listed: each gets a directory of its own.
            let name = format!("/vfs/db-{version}?");
            let place = |version| url(version).replace("/vfs?", &name);
            let place = (place(version), place(other));
            let table = "create table t (id number primary key); insert into t values (42)";
            stage.run(&[&made[..], &["-c", table, &place.0]].concat()).ok();
            let asked = stage.run(&["sql", &place.1, "-c", "select id from t"]).ok();
            assert!(asked.stdout.contains("42"), "{}", asked.stdout);
            stage.run(&[&made[..], &["-c", table, &place.0]].concat()).refused(&["not empty"]);
            std::fs::remove_dir_all(server.export().join(format!("db-{version}"))).expect("the database");
        }
        stage.run(&["sql", &url(nfs::Version::V3), "-c", "select 1"]).refused(&["no database", "--create"]);
        assert_empty(&server.export());
    });
}

#[test]
fn versions_are_compared_on_the_same_files() {
    alone("exports::versions_are_compared_on_the_same_files", || {
        let _turn = measuring();
        let server = Server::start(&Conf::default());
        let stage = Stage::new();
        let url = url(nfs::Version::V40);
        let typed = dnfs(&url);
        let done = stage.run(&typed).ok();
        for words in ["NFSv3", "NFSv4.1", "What the server gave", "by Little"] {
            assert!(done.stdout.contains(words), "{words:?} is missing:\n{}", done.stdout);
        }
        assert!(done.stderr.contains("no file system, scheduler or device counter"), "{}", done.stderr);
        let proofs: Vec<_> =
            stage.reader().phases().expect("phases").into_iter().filter_map(|(_, p)| p.proof).collect();
        for version in ["NFSv3 by our own client", "NFSv4.1 by our own client"] {
            assert!(proofs.iter().any(|proof| proof.starts_with(version)), "{version}: {proofs:?}");
        }
        assert_empty(&server.export());
    });
}

#[test]
fn what_an_export_cannot_do_is_said() {
    alone("exports::what_an_export_cannot_do_is_said", || {
        let server = Server::start(&Conf::default());
        let (stage, url) = (Stage::new(), url(nfs::Version::V40));
        for (arguments, words) in [
            (&["run", "commit", "--io", "setall", "--dir", &url][..], "our own NFS client does it"),
            (&["run", "commit", "--target", "postgres", "--dir", &url], "mount the export"),
            (&["calibrate", "--destroy", "/dev/sdx", &url], "Leave --destroy away"),
            (&["compare", "scheduler", "--dir", &url], "devices of this machine"),
            (&["compare", "--vary", "fs=ext4,xfs", "--dir", &url], "the kernel has no part in it"),
            (&["compare", "--vary", "node=A,B"], "redoubt compare dnfs, without --dir"),
            (&["doctor", &url], "is an export"),
            (&["calibrate", "nfs://127.0.0.1:1/vfs"], "cannot be reached"),
            (&["calibrate", "nfs://127.0.0.1/vfs?vers=3"], "version="),
        ] {
            stage.run(arguments).refused(&[words]);
        }
        assert_empty(&server.export());
    });
}

#[test]
fn wrong_ways_and_moves_are_measured_on_a_cluster_of_our_own() {
    let _turn = measuring();
    let stage = Stage::new();
    let typed = ["compare", "dnfs", "--minutes", "0.4", "--size", "64m", "--vary", "nfs=v3,pnfs"];
    let done = stage.run(&typed).ok();
    // However the lines were folded.
    let said = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "Through the wrong node a lone read by NFSv3 takes",
        "pNFS goes where the data is",
        "While the data moved under load",
        "NFSv3 stayed at the node that was mounted",
        "What each storage node used",
        "wrong node",
    ] {
        assert!(said.contains(words), "{words:?} is missing:\n{}", done.stdout);
    }
    assert!(done.stderr.contains("on a cluster of our own"), "{}", done.stderr);
    let report = stage.run(&["report", "last", "--format", "json"]).ok();
    let report: Value = json::from_str(&report.stdout).expect("JSON");
    let nodes = report["comparison"]["nodes"].as_array().expect("nodes");
    let wrong = |configuration: &str, workload: &str| {
        let it = nodes.iter().find(|n| n["configuration"] == configuration && n["workload"] == workload);
        it.unwrap_or_else(|| panic!("{configuration} is missing"))["wrong_node_share"]
            .as_f64()
            .expect("a share")
    };
    assert!(wrong("NFSv3 data on A", "read-cold") < 0.001);
    assert!(wrong("NFSv3 data on B", "read-cold") > 0.99);
    assert!(wrong("pNFS data on B", "read-cold") < 0.02);
    let moved =
        nodes.iter().find(|n| n["configuration"] == "pNFS data on A" && n["workload"] == "read-moved");
    let moves = &moved.expect("moves")["moves"];
    let count = |what: &str| moves[what].as_u64().expect("a number");
    // On a busy machine the client may be told too late for one in four.
    assert!(count("made") > 0 && count("followed") * 4 >= count("made") * 3, "{moves}");
}

/// The node_exporter of this machine, until it is dropped.
struct NodeExporter(std::process::Child);

impl NodeExporter {
    fn start(address: &str) -> Self {
        let mut command = std::process::Command::new("prometheus-node-exporter");
        command.arg(format!("--web.listen-address={address}")).stderr(std::process::Stdio::null());
        let exporter = Self(command.spawn().expect("Debian's prometheus-node-exporter"));
        for _ in 0..200 {
            if std::net::TcpStream::connect(address).is_ok() {
                return exporter;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("nobody answers at {address}");
    }
}

impl Drop for NodeExporter {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_real_node_tells_what_it_used() {
    alone("exports::a_real_node_tells_what_it_used", || {
        const ADDRESS: &str = "127.0.0.1:9100";
        let _turn = measuring();
        let _server = Server::start(&Conf::default());
        let (stage, url) = (Stage::new(), url(nfs::Version::V40));
        let node = format!("A=http://{ADDRESS}");
        let typed = dnfs(&url);
        let with_node = [&typed[..], &["--node", &node]].concat();
        stage
            .run(&with_node)
            .refused(&["node A at http://127.0.0.1:9100/metrics", "node_exporter answer there?"]);
        let _exporter = NodeExporter::start(ADDRESS);
        let done = stage.run(&with_node).ok();
        for words in ["What each storage node used", "share of its processors", "CPU A"] {
            assert!(done.stdout.contains(words), "{words:?} is missing:\n{}", done.stdout);
        }
        let report = stage.run(&["report", "last", "--format", "json"]).ok();
        let report: Value = json::from_str(&report.stdout).expect("JSON");
        let nodes = report["comparison"]["nodes"].as_array().expect("nodes");
        let shares: Vec<_> = nodes.iter().filter_map(|n| n["nodes"][0]["cpu_share"].as_f64()).collect();
        assert!(!shares.is_empty() && shares.iter().all(|share| (0.0..=1.0).contains(share)), "{shares:?}");
        assert!(
            shares.iter().any(|share| *share > 0.0),
            "a node that served reads used no processor: {shares:?}"
        );
        stage
            .run(&[&typed[..], &["--node", "127.0.0.1:9100"]].concat())
            .refused(&["has no name", "A=http://"]);
        stage.run(&[&typed[..], &["--vary", "node=A,B"]].concat()).refused(&["cluster of our own"]);
        stage.run(&["compare", "dnfs", "--node", &node]).refused(&["without --dir"]);
    });
}
