//! `docs/record.md` is the schema: same tables, columns, order, types, and which may be NULL.

use crate::sample;
use rusqlite::Connection;

type Schema = Vec<(String, Vec<(String, String)>)>;

/// Headings `### name` open a table; lines `| column | TYPE | … |` below it are its columns.
fn documented() -> Schema {
    let text = include_str!("../../../../docs/record.md");
    let mut schema = Schema::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("### ") {
            schema.push((name.trim_matches('`').to_owned(), Vec::new()));
        } else if let Some(row) = line.strip_prefix("| `") {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            assert_eq!(cells.len(), 5, "column, type, unit, meaning: {line}");
            assert!(cells[3].len() > 2 || cells[0] == "id`", "no meaning: {line}");
            let (_, columns) = schema.last_mut().expect("a column outside of a table");
            columns.push((cells[0].trim_end_matches('`').to_owned(), cells[1].to_owned()));
        }
    }
    schema
}

fn real(path: &std::path::Path) -> Schema {
    let db = Connection::open(path).unwrap();
    let mut tables =
        db.prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid").unwrap();
    let names: Vec<String> = tables.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let columns = |table: &String| {
        let mut info = db.prepare("SELECT name, type, \"notnull\", pk FROM pragma_table_info(?1)").unwrap();
        let column = |row: &rusqlite::Row| {
            let required = row.get::<_, bool>(2)? || row.get::<_, bool>(3)?;
            let kind: String = row.get(1)?;
            Ok((row.get(0)?, if required { kind } else { format!("{kind} or NULL") }))
        };
        info.query_map([table], column).unwrap().map(Result::unwrap).collect()
    };
    names.iter().map(|table| (table.clone(), columns(table))).collect()
}

#[test]
fn the_documented_schema_is_the_real_one() {
    let (_folder, path, _writer) = sample::unfinished();
    let (documented, real) = (documented(), real(&path));
    for (said, is) in documented.iter().zip(&real) {
        assert_eq!(said, is);
    }
    assert_eq!(documented.len(), real.len());
}

#[test]
fn the_documented_queries_run() {
    let (_folder, path, _writer) = sample::unfinished();
    let db = Connection::open(&path).unwrap();
    let text = include_str!("../../../../docs/record.md");
    let queries: Vec<&str> =
        text.split("```sql\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(queries.len() >= 3);
    for query in queries {
        let mut statement = db.prepare(query).unwrap_or_else(|e| panic!("{query}: {e}"));
        assert!(
            statement.query([]).unwrap().next().unwrap().is_some(),
            "finds nothing in the sample: {query}"
        );
    }
}
