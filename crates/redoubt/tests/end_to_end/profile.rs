//! The mix of a server that works: derived from its own statistics, and what a comparison is weighted for.

use crate::existing::Somebodys;
use crate::stage::{Stage, measuring};
use lab::server::{Connection, Kind, Parameter};
use record::json::{self, Value};
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Somebody's table of 2,000 rows, of which one in four transactions changes one, until told to stop; the others read one.
fn work(session: &mut dyn Connection, kind: Kind, stop: &AtomicBool, played: &AtomicU64) {
    let table = "insert into busy select n, 0 from ";
    session.execute("create table busy (id integer primary key, counted integer)").expect("a table");
    let rows = match kind {
        Kind::Postgres => "generate_series(0, 1999) as numbers(n)",
        Kind::Mariadb => "(select seq as n from seq_0_to_1999) as numbers",
    };
    session.execute(&format!("{table}{rows}")).expect("rows");
    let place = kind.place(1);
    let read = session.prepare(&format!("select counted from busy where id = {place}")).expect("prepared");
    let change = session
        .prepare(&format!("update busy set counted = counted + 1 where id = {place}"))
        .expect("prepared");
    for n in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let statement = if n % 4 == 0 { change } else { read };
        session.call(statement, &[Parameter::Integer(n * 37 % 2000)]).expect("a transaction");
        played.fetch_add(1, Ordering::Relaxed);
    }
}

fn figure(profile: &Value, name: &str) -> f64 {
    let all = profile["metrics"].as_array().expect("metrics");
    let found = all.iter().find(|metric| metric["name"] == name);
    found.and_then(|metric| metric["value"].as_f64()).unwrap_or_else(|| panic!("no {name} in {profile}"))
}

#[test]
fn a_server_at_work_is_profiled_and_compared_for() {
    let _turn = measuring();
    for kind in Kind::ALL {
        let somebodys = Somebodys::start(kind);
        let stage = Stage::new();
        let url = somebodys.url("tiger%2Bscott");
        if kind == Kind::Mariadb {
            let mut owner = somebodys.server.connect("owner").expect("a session");
            owner.execute("grant select on performance_schema.* to scott@localhost").expect("rights");
        }
        let idle = stage.run(&["profile", &url, "--seconds", "2", "--output", "idle.json"]);
        idle.refused(&["nothing happened", "--minutes"]);
        assert!(!stage.directory.join("idle.json").exists());
        let (stop, played) = (AtomicBool::new(false), AtomicU64::new(0));
        let done = std::thread::scope(|scope| {
            let (stop, played, server) = (&stop, &played, &somebodys.server);
            scope.spawn(move || work(&mut *server.connect("busy").expect("a session"), kind, stop, played));
            while played.load(Ordering::Relaxed) < 1 {
                units::clock::sleep(units::Nanos::millis(20));
            }
            let done = stage.run(&["profile", &url, "--seconds", "4", "--output", "mix.json"]);
            stop.store(true, Ordering::Relaxed);
            done
        })
        .ok();
        for word in ["logical reads", "exact", "approximate", "hit ratio", "compare --like mix.json"] {
            assert!(done.stdout.contains(word), "no {word}:\n{}", done.stdout);
        }
        let file = stage.directory.join("mix.json");
        let text = fs::read_to_string(&file).expect("the profile");
        assert!(!format!("{text}{}{}", done.stdout, done.stderr).contains("tiger"), "a password was shown");
        let profile: Value = json::from_str(&text).expect("JSON");
        let (all, wrote) = (figure(&profile, "transactions"), figure(&profile, "user commits"));
        assert!((wrote / all - 0.25).abs() < 0.05, "{kind}: {wrote} of {all} transactions wrote\n{text}");
        // MariaDB empties a pool this small by itself, for lists of free pages that are longer.
        let least = if kind == Kind::Postgres { 0.9 } else { 0.5 };
        assert!(figure(&profile, "hit ratio") > least, "it fits in the cache\n{text}");
        assert!(profile["hot"].to_string().contains("busy"), "{text}");
        stage.run(&["profile", &url, "--output", "mix.json"]).refused(&["exists", "--output"]);
        stage.run(&["compare", "--like", "mix.json", "--dry-run"]).ok();
        if kind == Kind::Postgres {
            is_weighted_for(&stage);
        }
        fs::remove_file(&file).expect("it was there");
        stage.run(&["compare", "--like", crate::stage::OWN_FILE]).refused(&["no profile", "redoubt profile"]);
        stage.assert_untouched();
        somebodys.end();
    }
}

/// A comparison with that profile is weighted for its mix: it says whose it is, and how much of it reads.
fn is_weighted_for(stage: &Stage) {
    let io = ["--vary", "io=none,directio", "--size", "64m", "--minutes", "0.5"];
    let done = stage.run(&[&["compare", "--like", "mix.json"], &io[..]].concat());
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    let told = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["Your mix: 1 session, reads ", "The profile of PostgreSQL", "user commits (approximate)"] {
        assert!(told.contains(words), "no {words}:\n{}", done.stdout);
    }
}

#[test]
fn what_cannot_be_profiled_is_told() {
    let _turn = measuring();
    let somebodys = Somebodys::start(Kind::Postgres);
    let stage = Stage::new();
    let url = somebodys.url("");
    let mut owner = somebodys.server.connect("owner").expect("a session");
    for statement in ["alter system set track_counts = off", "select pg_reload_conf()"] {
        owner.execute(statement).expect("switched off");
    }
    units::clock::sleep(units::Nanos::millis(500));
    stage.run(&["profile", &url, "--seconds", "2"]).refused(&["track_counts is off", "ALTER SYSTEM"]);
    stage.run(&["profile", "postgres"]).refused(&["postgres://", "--mix-from"]);
    stage.run(&["profile", "mysql://root@localhost:1/"]).refused(&["nothing listens"]);
    stage.run(&["profile", &url, "--seconds", "1"]).refused(&["out of range"]);
    drop(owner);
    stage.assert_untouched();
    somebodys.end();
}
