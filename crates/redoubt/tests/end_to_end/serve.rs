//! All runs in a browser: the list, each report, two side by side; nothing for who does not know the word.

use crate::stage::{Stage, measuring};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// What `GET path` answers on `127.0.0.1:port`.
fn get(port: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).expect("it listens");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n").expect("asked");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn all_runs_are_served_to_who_knows_the_word() {
    let _turn = measuring();
    let stage = Stage::new();
    let mut child = crate::stop::start(&stage, &["serve"]);
    let said = BufReader::new(child.stdout.take().expect("its words"));
    let address = said.lines().map_while(Result::ok).find(|line| line.starts_with("Open http://"));
    let address = address.expect("an address");
    let (port, token) = address
        .strip_prefix("Open http://127.0.0.1:")
        .and_then(|rest| rest.trim_end_matches('/').split_once('/'))
        .expect("a port and a word");
    assert!(get(port, &format!("/{token}/")).contains("No runs yet"));
    for _ in 0..2 {
        stage.run(&["run", "commit", "--minutes", "0.01", "--scale", "0.0005", "--quiet"]).ok();
    }
    let list = get(port, &format!("/{token}/"));
    let mut ids: Vec<String> = stage
        .records()
        .iter()
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    ids.sort();
    for id in &ids {
        assert!(list.contains(&format!("href=\"run/{id}\"")), "{list}");
        let page = get(port, &format!("/{token}/run/{id}"));
        assert!(page.contains("redoubt run commit") && page.contains("All runs"), "{page}");
    }
    let both = get(port, &format!("/{token}/compare?run={}&run={}", ids[1], ids[0]));
    assert!(both.contains("side by side"), "{both}");
    assert!(get(port, "/").starts_with("HTTP/1.1 404"));
    assert!(get(port, &format!("/{token}/run/../../../etc/passwd")).starts_with("HTTP/1.1 404"));
    stage.run(&["serve", "no/such/folder"]).refused(&["no/such/folder", "is no folder"]);
    crate::stop::signal(&child, "INT");
    assert!(child.wait().expect("wait").success(), "Ctrl-C ends it in order");
}
