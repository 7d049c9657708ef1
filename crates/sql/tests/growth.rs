//! The growth script of the article that this project began with, from its first line to its last, on real files.

mod support;

use engine::{Background, Environment, Instance, InstanceConfig, Shutdown};
use io::RealStorage;
use sql::script::{self, PieceKind};
use sql::{Connection, Kept, Outcome};
use std::sync::Arc;
use units::{Clock, Seed};

/// Lines of program text, instead of the hundreds of megabytes that the author's database had.
const LINES: u64 = 3_000;
const ROUNDS: u32 = 5;
const SCANS: usize = 5;

/// The script, as it was published: curved quotes, `=` behind EVENTS, and sqlplus commands between.
fn growth() -> String {
    let mut text = String::from("SET TIMING ON\nSET ECHO ON\nCREATE TABLE T AS SELECT * FROM DBA_SOURCE;\n");
    for _ in 0..ROUNDS {
        text += "ALTER SESSION SET EVENTS = ‘IMMEDIATE TRACE NAME FLUSH_CACHE’;\n\
                 INSERT INTO T SELECT * FROM T;\n\
                 COMMIT;\n\
                 SELECT TO_CHAR(SUM(BYTES)) FROM DBA_SEGMENTS WHERE OWNER = ‘SYS’ AND SEGMENT_NAME = ‘T’;\n\
                 ALTER SESSION SET EVENTS = ‘IMMEDIATE TRACE NAME FLUSH_CACHE’;\n";
        text += &"SELECT COUNT(*) FROM T;\n".repeat(SCANS);
    }
    text + "DROP TABLE T;\nEXIT\n"
}

/// Runs the script; gives each statement's outcome and the numbers that its queries gave.
fn run(db: &mut Connection, text: &str) -> (Vec<Outcome>, Vec<i64>) {
    let script = script::split(text);
    assert_eq!(script.open, None, "the script ends");
    let (mut outcomes, mut numbers) = (Vec::new(), Vec::new());
    for piece in script.pieces.iter().filter(|piece| piece.kind == PieceKind::Statement) {
        let mut kept = Kept::default();
        let done = db.execute(piece.text, &mut kept);
        outcomes.push(done.unwrap_or_else(|error| panic!("{}", error.with_caret(piece.text))));
        for row in kept.rows {
            let number = match &row[..] {
                [engine::Value::Integer(number)] => *number,
                [engine::Value::Text(text)] => text.parse().expect("a number"),
                other => panic!("{}: {other:?}", piece.text),
            };
            numbers.push(number);
        }
    }
    (outcomes, numbers)
}

fn grows(mode: &str) {
    let folder = tempfile::Builder::new().prefix("redoubt-sql-").tempdir_in("/var/tmp").expect("a folder");
    let environment = Environment {
        storage: Arc::new(RealStorage),
        clock: Clock::Real,
        background: Background::Threads,
        seed: Seed(7),
    };
    // So small that blocks are replaced, logs switch and the file grows.
    let config = support::small(InstanceConfig::new(folder.path())).with("filesystemio_options", mode);
    let instance = Instance::create(environment, config).expect("an instance");
    let mut db = Connection::new(instance.session("growth").expect("a session")).expect("a connection");
    db.set_source_lines(LINES);
    let (outcomes, numbers) = run(&mut db, &growth());

    let inserted: Vec<u64> = outcomes
        .iter()
        .filter_map(|outcome| match outcome {
            Outcome::Changed("inserted", rows) => Some(*rows),
            _ => None,
        })
        .collect();
    assert_eq!(inserted, (0..ROUNDS).map(|round| LINES << round).collect::<Vec<_>>(), "{mode}");
    let mut sizes = Vec::new();
    for (round, numbers) in numbers.chunks(1 + SCANS).enumerate() {
        sizes.push(numbers[0]);
        assert_eq!(numbers[1..], [(LINES << (round + 1)) as i64; SCANS], "{mode}, round {round}");
    }
    assert!(
        sizes.is_sorted() && sizes.len() == ROUNDS as usize && sizes[4] > 4 * sizes[0],
        "{mode}: {sizes:?}"
    );
    // What the views say of it: the table was read from disk and written to it, and each commit was waited for.
    let mut number = |query: &str| match db.query(query).expect(query).rows[..] {
        [ref row] => match row[..] {
            [engine::Value::Integer(number)] => number,
            ref other => panic!("{query}: {other:?}"),
        },
        ref other => panic!("{query}: {other:?}"),
    };
    assert!(number("select value from v$sysstat where name = 'physical reads'") > 1_000, "{mode}");
    assert!(
        number("select small_write_reqs + large_write_reqs from v$iostat_file where file_no = 4") > 10,
        "{mode}"
    );
    assert!(number("select count(*) from v$log where sequence# > 3") > 0, "{mode}: logs have switched");
    assert_eq!(number("select count(*) from dba_segments where segment_name = 'T'"), 0, "{mode}");
    drop(db);
    instance.shutdown(Shutdown::Immediate).expect("a clean end");
}

#[test]
fn the_articles_script_runs_to_its_end_in_each_of_its_modes() {
    for mode in ["asynch", "setall", "concurrent"] {
        grows(mode);
    }
}
