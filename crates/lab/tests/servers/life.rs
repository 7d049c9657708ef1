//! From the first file to the last process.

use crate::stand::{GO_ON, Stand, processes_in, settings};
use host::journal::Journal;
use host::journal::cleanup_in;
use lab::server::{Kind, Parameter, ServerError};
use std::process::Command;

/// It starts, takes statements, keeps its data over a cold restart, stops, and is gone.
#[test]
fn a_private_server_lives_and_leaves_nothing() {
    for kind in Kind::ALL {
        let mut stand = Stand::new();
        let mut server = stand.server(kind, &settings(12));
        assert!(!server.version().is_empty());
        let mut session = server.connect("life").expect("a session");
        session.execute("create table t (id bigint, note varchar(100))").expect("a table");
        let (one, two) = (kind.place(1), kind.place(2));
        let insert = session.prepare(&format!("insert into t values ({one}, {two})")).expect("prepared");
        for n in 0..10 {
            session.call(insert, &[Parameter::Integer(n), Parameter::Text("words")]).expect("a row");
        }
        let read = session.prepare(&format!("select id from t where id = {one}")).expect("prepared");
        assert_eq!(session.call(read, &[Parameter::Integer(7)]).expect("a row"), Some(7));
        assert_eq!(session.call(read, &[Parameter::Integer(77)]).expect("no row"), None);
        drop(session);
        server.empty_caches(&GO_ON).expect("cold");
        let mut session = server.connect("life").expect("a session");
        assert_eq!(session.number("select count(*) from t").expect("a count"), 10);
        drop(session);
        server.stop().expect("stopped");
        drop(server);
        stand.end();
    }
}

/// Somebody kills the server while it is used: a sentence with its last words, and nothing of it stays.
#[test]
fn a_killed_server_is_told_in_words() {
    for kind in Kind::ALL {
        let mut stand = Stand::new();
        let mut server = stand.server(kind, &settings(12));
        let mut session = server.connect("victim").expect("a session");
        let pid = server.process().expect("it runs").to_string();
        assert!(Command::new("kill").args(["-9", &pid]).status().expect("kill").success());
        let error = loop {
            match session.number("select 1") {
                Ok(_) => units::clock::sleep(units::Nanos::millis(10)),
                Err(error) => break server.explain(error),
            }
        };
        assert!(matches!(error, ServerError::Gone { .. }), "{error}");
        assert!(error.to_string().contains("killed"), "{error}");
        assert!(server.stop().is_err(), "{kind} had ended before");
        drop((session, server));
        stand.end();
    }
}

/// A run that was killed leaves a server that works on; cleanup ends it and removes its files.
#[test]
fn cleanup_ends_the_server_of_a_killed_run() {
    for kind in Kind::ALL {
        let mut stand = Stand::new();
        let server = stand.server(kind, &settings(12));
        let workspace = stand.workspace.path().to_owned();
        assert!(!processes_in(&workspace).is_empty());
        // As a kill leaves it: the journal of a process that is gone, and nobody to stop the server.
        let state = stand.folder.path().join("state");
        let journal: Journal = stand.journal.take().expect("open");
        let text = std::fs::read_to_string(journal.path()).expect("a journal");
        let own = format!("\"pid\":{}", std::process::id());
        let killed = stand.folder.path().join("killed");
        std::fs::create_dir(&killed).expect("a folder");
        std::fs::write(killed.join("killed.journal"), text.replacen(&own, "\"pid\":4294967295", 1))
            .expect("a copy");
        std::mem::forget(journal);
        std::mem::forget(server);
        let lines = cleanup_in(&killed, false);
        assert!(lines.iter().all(|line| line.result.is_settled()), "{lines:?}");
        assert!(!workspace.exists());
        assert_eq!(processes_in(&workspace), Vec::<String>::new());
        assert!(state.exists());
    }
}

/// What is refused says what was seen and what to type.
#[test]
fn refusals_say_what_to_type() {
    let mut stand = Stand::new();
    let server = stand.server(Kind::Postgres, &settings(6));
    let mut sessions = Vec::new();
    let error = loop {
        match server.connect("many") {
            Ok(session) => sessions.push(session),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("53300") && error.contains("--sessions"), "{error}");
    drop((sessions, server));
    stand.end();
    for (kind, parameter, word) in
        [(Kind::Postgres, "fsnyc", "--set"), (Kind::Mariadb, "innodb-bufer-pool", "--set")]
    {
        let mut stand = Stand::new();
        let wrong = lab::server::Settings { parameters: vec![(parameter.into(), "1".into())], ..settings(6) };
        let error = stand.try_server(kind, &wrong).err().expect("an unknown parameter").to_string();
        assert!(error.contains("did not start") && error.contains(word), "{error}");
        stand.end();
    }
}
