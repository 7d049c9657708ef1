//! `--oranfstab`: a directory of a database goes to the export that Oracle's file names for it, by all of its paths.

use crate::stage::{Stage, measuring};
use nfs::Version;
use nfslab::{Cluster, ClusterOptions};
use record::json::{self, Value};
use record::{DnfsChannelRow, DnfsServerRow};
use std::collections::BTreeSet;
use units::{Nanos, clock};

fn cluster(paths: usize) -> Cluster {
    Cluster::start(ClusterOptions { paths, ..ClusterOptions::default() }).expect("a cluster")
}

/// As Oracle's manual writes it, with the ports of `cluster`, which are ours to say.
fn file(stage: &Stage, cluster: &Cluster, version: &str) -> String {
    let target = cluster.target(0, "/a", Version::V3);
    let paths: String =
        target.paths.iter().map(|path| format!("local: 127.0.0.1\npath: {}\n", path.remote)).collect();
    let port = target.port;
    let text = format!(
        "# filers\nserver: MyFiler\n{paths}nfs_version: {version}\ndontroute\nmnt_timeout: 30\nport: {port} mountport: {port}\nchannels: 2\n\
         export: /b mount: /mnt/oradata2\nexport: /a mount: /mnt/oradata1\n"
    );
    let path = stage.folder().join(format!("oranfstab-{version}"));
    std::fs::write(&path, text).expect("write it");
    path.display().to_string()
}

#[test]
fn runs_go_by_all_paths_of_the_file_in_its_version() {
    let _turn = measuring();
    for (paths, version, title) in [(2, "nfsv3", "NFSv3"), (4, "nfsv4.1", "NFSv4.1"), (2, "pNFS", "pNFS")] {
        let cluster = cluster(paths);
        let stage = Stage::new();
        let file = file(&stage, &cluster, version);
        let typed = ["--oranfstab", &file, "--dir", "/mnt/oradata1", "--sessions", "4"];
        let run = ["run", "commit", "--minutes", "0.03", "--verify"];
        let done = stage.run(&[&run[..], &typed].concat()).ok();
        assert!(done.stdout.contains(title) && done.stdout.contains("committed"), "{}", done.stdout);
        let last = format!("path: 127.0.{}.1", paths - 1);
        let negotiated = format!("{title} with MyFiler:/a");
        for words in ["as understood", "server: MyFiler", &last, "dontroute", "channels: 2", &negotiated] {
            assert!(done.stderr.contains(words), "{version}: {words:?} is missing: {}", done.stderr);
        }
        let reader = stage.reader();
        let fact = reader.facts().expect("facts").into_iter().find(|fact| fact.name == "oranfstab");
        assert!(
            fact.and_then(|fact| fact.value)
                .is_some_and(|text| text.contains("server: MyFiler; local: 127.0.0.1;"))
        );
        let servers: Vec<(i64, DnfsServerRow)> = reader.sampled(0).expect("servers");
        assert_eq!((servers.len(), servers[0].1.version.as_str()), (1, title));
        let channels: Vec<(i64, DnfsChannelRow)> = reader.sampled(0).expect("channels");
        let mounted = channels.iter().map(|(_, channel)| channel).filter(|channel| !channel.data_server);
        let used: BTreeSet<_> = mounted.map(|channel| channel.address.clone()).collect();
        assert_eq!(used.len(), paths, "{version}: {used:?}");
        let asked =
            stage.run(&["sql", "last", "-c", "select svrname, nfsversion, paths from v$dnfs_servers"]).ok();
        assert!(asked.stdout.contains("MyFiler") && asked.stdout.contains(title), "{}", asked.stdout);
        let nodes = "Where NFS calls went";
        assert!(done.stdout.contains(nodes), "{}", done.stdout);
        let report = stage.run(&["report", "last", "--format", "json"]).ok();
        let report: Value = json::from_str(&report.stdout).expect("JSON");
        let export = &report["dnfs"][0];
        assert_eq!((export["server"].as_str(), export["version"].as_str()), (Some("MyFiler"), Some(title)));
        let nodes = export["nodes"].as_array().expect("nodes");
        let done = |node: &Value| node["writes"]["done"].as_u64().unwrap_or(0);
        assert!(nodes.len() >= paths && nodes.iter().map(done).sum::<u64>() > 0, "{nodes:?}");
    }
}

/// A path is cut while a database works: it goes on by the other, comes back, and nothing is lost.
#[test]
fn a_run_survives_a_path_that_is_cut() {
    let _turn = measuring();
    let cluster = cluster(2);
    let stage = Stage::new();
    let file = file(&stage, &cluster, "nfsv4.1");
    let typed =
        ["run", "commit", "--minutes", "0.06", "--verify", "--oranfstab", &file, "--dir", "/mnt/oradata1"];
    let cuts = || {
        for path in 0..2 {
            clock::sleep(Nanos::millis(400));
            cluster.cut_path(0, path).expect("a cut");
            clock::sleep(Nanos::millis(200));
            cluster.restore_path(0, path).expect("it is back");
            clock::sleep(Nanos::millis(900));
        }
    };
    let done = stage.run_amid(&typed, cuts).ok();
    assert!(done.stdout.contains("committed"), "{}", done.stdout);
    for words in ["is DOWN", "is UP again", "its channels come back to it"] {
        assert!(done.stderr.contains(words), "{words:?} is missing: {}", done.stderr);
    }
}

#[test]
fn calibrate_and_compare_take_it_too() {
    let _turn = measuring();
    let cluster = cluster(2);
    let stage = Stage::new();
    let file = file(&stage, &cluster, "nfsv4.1");
    let done =
        stage.run(&["calibrate", "--quick", "--size", "64m", "--oranfstab", &file, "/mnt/oradata2"]).ok();
    assert!(done.stdout.contains("NFSv4.1, our own client"), "{}", done.stdout);
    let dry = ["compare", "dnfs", "--dry-run", "--oranfstab", &file, "--dir", "/mnt/oradata1"];
    let done = stage.run(&[&dry[..], &["--vary", "nfs=v3,v4.1"]].concat()).ok();
    assert!(done.stderr.contains("NFSv4.1 with MyFiler:/a"), "{}", done.stderr);
}

#[test]
fn what_no_file_says_is_refused() {
    let cluster = cluster(1);
    let stage = Stage::new();
    let file = file(&stage, &cluster, "nfsv3");
    let run = |rest: &[&str]| stage.run(&[&["run", "commit", "--oranfstab"], rest].concat());
    run(&[&file, "--dir", "/mnt/other"])
        .refused(&["/mnt/oradata1 (MyFiler:/a)", "/mnt/oradata2 (MyFiler:/b)"]);
    run(&[&file, "--dir", "nfs://127.0.0.1/a"]).refused(&["leave --oranfstab away"]);
    run(&["/no/such/file", "--dir", "/mnt/oradata1"]).refused(&["is the name right?"]);
    run(&[&file, "--dir", "/mnt/oradata1", "--io", "setall"]).refused(&["our own NFS client does it"]);
    std::fs::write(stage.folder().join("bad"), "server: a\nnfs_version: nfsv5\n").expect("write it");
    let bad = stage.folder().join("bad").display().to_string();
    run(&[&bad, "--dir", "/mnt/oradata1"]).refused(&["line 2", "nfsv5"]);
}

#[test]
fn the_shell_takes_it_too() {
    let cluster = cluster(2);
    let stage = Stage::new();
    let file = file(&stage, &cluster, "pNFS");
    let typed = ["sql", "/mnt/oradata1/db", "--oranfstab", &file, "-c"];
    let made = ["--create", "--data", "1m", "--redo", "4m", "--set", "db_cache_size=16m"];
    stage.run(&[&typed[..], &["create table t (id number); insert into t values (42)"], &made].concat()).ok();
    let asked = stage.run(&[&typed[..], &["select id from t"]].concat()).ok();
    assert!(asked.stdout.contains("42") && asked.stderr.contains("pNFS with MyFiler:/a"), "{}", asked.stderr);
}

/// kill -9 leaves the directory on the server; cleanup removes it there, however the server was named.
#[test]
fn cleanup_removes_what_a_killed_run_left_on_a_server() {
    let _turn = measuring();
    let cluster = cluster(2);
    let mount = nfs::Mount::open(cluster.target(0, "/a", Version::V3), nfs::MountOptions::default());
    let mount = mount.expect("it can be mounted");
    let left = || {
        let names = mount.list("").expect("a list");
        names.into_iter().filter(|name| name.starts_with("redoubt-nfs-")).collect::<Vec<_>>()
    };
    let stage = Stage::new();
    let file = file(&stage, &cluster, "nfsv4.1");
    let port = cluster.target(0, "/a", Version::V3).port;
    let url = format!("nfs://127.0.0.1:{port}/a?version=v3&mountport={port}");
    for place in [&["--dir", &url][..], &["--oranfstab", &file, "--dir", "/mnt/oradata1/deeper"]] {
        let run = ["run", "commit", "--minutes", "1", "--sessions", "2"];
        let mut child = crate::stop::start(&stage, &[&run, place].concat());
        let works = |name: &String| mount.list(name).is_ok_and(|files| files.len() > 2);
        let made = || left().iter().any(works) || mount.list("deeper").is_ok_and(|names| !names.is_empty());
        while !made() {
            assert!(child.try_wait().expect("alive").is_none(), "it ended before it began");
            clock::sleep(Nanos::millis(20));
        }
        child.kill().expect("kill");
        child.wait().expect("wait");
        let dry = stage.run(&["cleanup", "--dry-run"]).ok();
        assert!(
            dry.stdout.contains("/redoubt-nfs-") && dry.stdout.contains("would be undone"),
            "{}",
            dry.stdout
        );
        assert!(made(), "a kill leaves it, and who only looks leaves it too");
        let done = stage.run(&["cleanup"]).ok();
        assert!(done.stdout.contains("/redoubt-nfs-") && done.stdout.contains(": undone"), "{}", done.stdout);
        assert!(!made() && left().is_empty(), "{:?}", left());
        assert!(stage.run(&["cleanup"]).ok().stdout.contains("Nothing to undo"));
    }
    // The server is away when cleanup asks.
    let mut child = crate::stop::start(&stage, &["run", "commit", "--minutes", "1", "--dir", &url]);
    while left().is_empty() {
        clock::sleep(Nanos::millis(20));
    }
    child.kill().expect("kill");
    child.wait().expect("wait");
    drop((mount, cluster));
    let done = stage.run(&["cleanup"]);
    assert!(
        done.code != Some(0) && done.stdout.contains("FAILED") && done.stdout.contains("for good"),
        "{}",
        done.stdout
    );
}
