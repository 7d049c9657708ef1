//! What `oranfstab` files mean, in any order, and what is wrong with those that mean nothing.

use super::*;
use units::{Rng, Seed};

const ORACLE: &str = "\
server: MyDataServer1
local: 192.0.2.0
path: 192.0.2.1
local: 192.0.100.0
path: 192.0.100.1
nfs_version: nfsv4.1
dontroute
mnt_timeout: 60
security_default: sys
management: host / community: public
export: /vol/oradata1 mount: /mnt/oradata1
export: /vol/oradata2 mount: /mnt/oradata2 security: sys
";

#[test]
fn the_file_is_read_as_oracle_writes_it() {
    let servers = parse(ORACLE).expect("a good file");
    let [server] = &servers[..] else { panic!("{servers:?}") };
    let expected = "\
server: MyDataServer1
local: 192.0.2.0
path: 192.0.2.1
local: 192.0.100.0
path: 192.0.100.1
nfs_version: nfsv4.1
dontroute
mnt_timeout: 60
port: 2049
layout_refresh: 30
export: /vol/oradata1 mount: /mnt/oradata1
export: /vol/oradata2 mount: /mnt/oradata2
# line 10 is not used: management host
# line 10 is not used: community public
";
    assert_eq!(server.to_string(), expected);
    let again = parse(expected).expect("what is printed can be read");
    assert_eq!(again[0], Server { ignored: Vec::new(), ..server.clone() });
    let target = server.target(&server.exports[1]).expect("addresses");
    assert_eq!(target.paths[1].to_string(), "192.0.100.1 from 192.0.100.0");
    assert_eq!((target.export.as_str(), target.version), ("/vol/oradata2", Version::V41));
}

/// Oracle's own parser depends on an order that nobody documents; this one does not.
#[test]
fn the_order_does_not_matter() {
    let mut rng = Rng::new(Seed(12));
    let printed = |text: &str| {
        let server = parse(text).unwrap_or_else(|error| panic!("{error}:\n{text}")).remove(0);
        Server { ignored: Vec::new(), ..server }.to_string()
    };
    // Two paths and two exports keep their own order, for that is a choice of whoever wrote it.
    let lines: Vec<&str> = ORACLE.lines().skip(1).filter(|line| !line.contains("192.0.100")).collect();
    let lines: Vec<&str> = lines.into_iter().filter(|line| !line.contains("oradata2")).collect();
    let text = |lines: &[&str]| format!("server: MyDataServer1\n{}\n", lines.join("\n"));
    let expected = printed(&text(&lines));
    for _ in 0..200 {
        let mut lines = lines.clone();
        rng.shuffle(&mut lines);
        assert_eq!(printed(&text(&lines)), expected, "{lines:?}");
    }
}

#[test]
fn attributes_of_our_own_and_several_servers() {
    let text = "# filers\nSERVER: a\nPath: 192.0.2.1 # first\nnfs_version: NFSv3\nport: 12049 mountport: 12050 channels: 2\n\
                layout_refresh: 5\nexport: /v mount: /m\n\nserver:b export:/v2 mount:/m/deep path:fd00::1 local:fd00::2\n";
    let servers = parse(text).expect("a good file");
    let [a, b] = &servers[..] else { panic!("{servers:?}") };
    assert_eq!((a.port, a.mount_port, a.layout_refresh_seconds), (12_049, Some(12_050), 5));
    assert_eq!(a.options().layout_refresh, Nanos::millis(5_000));
    assert_eq!(b.options().limit, Nanos::millis(600_000));
    assert_eq!((a.channels, &a.ignored[..]), (Some(2), &[][..]));
    assert_eq!((a.version, b.version, b.mount_seconds), (Version::V3, Version::V3, 600));
    assert_eq!(b.paths, [Way { local: Some("fd00::2".into()), path: "fd00::1".into() }]);

    let found = |file: &str| find(&servers, file).map(|(server, _, below)| (server.name.as_str(), below));
    assert_eq!(found("/m/users01.dbf"), Some(("a", "users01.dbf".into())));
    assert_eq!(found("/m/deep/x/users01.dbf"), Some(("b", "x/users01.dbf".into())), "the longest mount");
    assert_eq!((found("/md/x"), found("/m")), (None, None));
}

#[test]
fn what_cannot_be_right_is_said_with_its_line() {
    for (text, line, words) in [
        ("path: 1.2.3.4", 1, "before the first server"),
        ("server: a\npaht: 1.2.3.4", 2, "\"paht:\" is no attribute"),
        ("server: a\npath:", 2, "has no value"),
        ("server: a\npath 1.2.3.4", 2, "a colon is missing"),
        ("server: a\nnfs_version: nfsv5", 2, "v4.1"),
        ("server: a\nsecurity_default: krb5p", 2, "only sys is"),
        ("server: a\nport: 70000", 2, "port is a number"),
        ("server: a\nexport: /v", 2, "1 exports and 0 mounts"),
        ("server: a\nexport: v mount: /m", 2, "begin with /"),
        ("server: a\npath: 1\npath: 2\npath: 3\npath: 4\npath: 5", 6, "at most 4 paths"),
        ("server: a\npath: 1\npath: 2\nlocal: 3", 4, "has no path of its own"),
    ] {
        let error = parse(text).expect_err(text);
        assert_eq!(error.line, line, "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}
