//! The views that a DBA knows, by name and columns. What fills them is the instance's; here is what they look like.
//!
//! Names, order and units are Oracle's, so that known queries run unchanged. A column that this database has nothing for is
//! left out rather than filled with a made-up value: a query that needs it is told so.

mod definitions;
pub mod waits;

pub use definitions::VIEWS;

/// A view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// Its name, in small letters.
    pub name: &'static str,
    /// What it shows.
    pub about: &'static str,
    /// `NAME:type` of each column, blanks between; type is `n` (number) or `t` (text).
    columns: &'static str,
}

/// A column of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewColumn {
    /// Its name, in capitals.
    pub name: &'static str,
    /// `NUMBER` or `VARCHAR2`, as CREATE TABLE … AS SELECT declares it.
    pub declared: &'static str,
}

impl View {
    /// Its columns.
    pub fn columns(&self) -> impl Iterator<Item = ViewColumn> {
        self.columns.split_whitespace().map(|column| {
            let (name, kind) = column.split_once(':').unwrap_or((column, "t"));
            ViewColumn { name, declared: if kind == "n" { "NUMBER" } else { "VARCHAR2" } }
        })
    }

    /// `CREATE TEMP TABLE …` for SQLite. The declared type is one whose affinity leaves numbers and texts as they are.
    pub fn create_table(&self) -> String {
        let columns: Vec<_> = self.columns().map(|c| format!("[{}] {}", c.name, c.declared)).collect();
        format!("CREATE TEMP TABLE [{}] ({})", self.name, columns.join(", "))
    }
}

/// The view of that name; `gv$`, which is `v$` of all instances, is the same with one instance.
pub fn find(name: &str) -> Option<&'static View> {
    let lower = name.to_ascii_lowercase();
    let wanted = lower.strip_prefix('g').filter(|rest| rest.starts_with("v$")).unwrap_or(&lower);
    VIEWS.iter().find(|view| view.name == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_found_in_any_case_and_for_all_instances() {
        assert_eq!(find("V$LOG").map(|v| v.name), Some("v$log"));
        assert_eq!(find("gv$session").map(|v| v.name), Some("v$session"));
        assert_eq!(find("v$nothing"), None);
    }

    #[test]
    fn every_view_has_columns_of_its_own() {
        let mut views = BTreeSet::new();
        for view in VIEWS {
            assert!(views.insert(view.name), "{} is there twice", view.name);
            assert!(view.about.ends_with('.'), "{}", view.name);
            let mut names = BTreeSet::new();
            for column in view.columns.split_whitespace() {
                let (name, kind) = column.split_once(':').expect(column);
                assert!(["n", "t"].contains(&kind), "{}: {column}", view.name);
                assert!(names.insert(name), "{}: {name} is there twice", view.name);
            }
            assert!(!names.is_empty(), "{}", view.name);
        }
    }

    #[test]
    fn a_view_becomes_a_table_of_sqlite() {
        let view = find("dba_source").expect("it is there");
        let expected = "CREATE TEMP TABLE [dba_source] ([OWNER] VARCHAR2, [NAME] VARCHAR2, [TYPE] VARCHAR2, \
                        [LINE] NUMBER, [TEXT] VARCHAR2)";
        assert_eq!(view.create_table(), expected);
    }
}
