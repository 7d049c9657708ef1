//! The views that a DBA knows, by name and columns. What fills them is the instance's; here is what they look like.
//!
//! Names, order and units are Oracle's, so that known queries run unchanged. A column that this database has nothing for is
//! left out rather than filled with a made-up value: a query that needs it is told so.

mod definitions;
mod instance;
mod objects;
mod source;
mod storage;
pub mod waits;

pub use definitions::VIEWS;

use crate::link::Inner;
use engine::{Row, Value};
use std::path::Path;

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
    /// All its names: `dba_tables` is also `all_tables` and `user_tables`, as there is one owner.
    pub fn names(&self) -> Vec<String> {
        let mut names = vec![self.name.to_owned()];
        if let Some(stem) = self.name.strip_prefix("dba_") {
            names.extend([format!("all_{stem}"), format!("user_{stem}")]);
        }
        names
    }

    /// Its columns.
    pub fn columns(&self) -> impl Iterator<Item = ViewColumn> {
        self.columns.split_whitespace().map(|column| {
            let (name, kind) = column.split_once(':').unwrap_or((column, "t"));
            ViewColumn { name, declared: if kind == "n" { "NUMBER" } else { "VARCHAR2" } }
        })
    }
}

/// The view of that name; `gv$`, which is `v$` of all instances, is the same with one instance.
pub fn find(name: &str) -> Option<&'static View> {
    let lower = name.to_ascii_lowercase();
    let wanted = lower.strip_prefix('g').filter(|rest| rest.starts_with("v$")).unwrap_or(&lower);
    VIEWS.iter().find(|view| view.names().iter().any(|name| name == wanted))
}

/// The rows of a view now.
///
/// # Errors
/// What the engine says.
pub(crate) fn rows(view: &View, inner: &mut Inner) -> engine::Result<Box<dyn Iterator<Item = Row>>> {
    let registry = inner.session.context().slot.registry().clone();
    let core = inner.session.core().clone();
    let rows = match view.name {
        "dba_source" => return Ok(Box::new(source::lines(inner.source_lines))),
        "dba_data_files" => storage::dba_files(&core, false),
        "dba_temp_files" => storage::dba_files(&core, true),
        "dba_ind_columns" => objects::ind_columns(inner),
        "dba_indexes" => objects::indexes(inner),
        "dba_segments" => objects::segments(inner)?,
        "dba_tab_columns" => objects::tab_columns(inner),
        "dba_tables" => objects::tables(inner)?,
        "dba_tablespaces" => storage::dba_tablespaces(&core),
        "v$active_session_history" => {
            let clock = registry.clock();
            let moment = waits::Moment { clock: clock.now(), unix_seconds: clock.unix_seconds() };
            let ticks = inner.history.as_ref().map(|sampler| sampler.recent()).unwrap_or_default();
            waits::active_session_history(ticks.iter().map(|tick| &**tick), moment)
        }
        "v$bh" => instance::bh(&core),
        "v$datafile" => storage::datafile(&core),
        "v$event_histogram_micro" => waits::event_histogram_micro(&registry),
        "v$event_name" => waits::event_name(),
        "v$flashfilestat" => storage::flashfilestat(&core),
        "v$instance" => instance::instance(&core),
        "v$iostat_file" => storage::iostat_file(&core),
        "v$log" => storage::log(&core),
        "v$logfile" => storage::logfile(&core),
        "v$mystat" => instance::mystat(inner),
        "v$parameter" => instance::parameter(&core),
        "v$session" => waits::session(&registry),
        "v$session_wait" => waits::session_wait(&registry),
        "v$sgastat" => instance::sgastat(&core),
        "v$sql" => instance::sql(&registry),
        "v$statname" => instance::statname(),
        "v$sys_time_model" => instance::time_model(&registry),
        "v$sysstat" => instance::sysstat(&core),
        "v$system_event" => waits::system_event(&registry),
        "v$tablespace" => storage::tablespace(&core),
        "v$tempfile" => storage::tempfile(&core),
        other => unreachable!("nobody knows the rows of {other}"),
    };
    debug_assert!(rows.iter().all(|row| row.len() == view.columns().count()), "{}: {:?}", view.name, rows[0]);
    Ok(Box::new(rows.into_iter()))
}

fn text(text: impl Into<String>) -> Value {
    Value::Text(text.into())
}

/// SQLite's numbers end at 2⁶³ − 1; what is larger is shown as that.
fn number(number: impl TryInto<i64>) -> Value {
    Value::Integer(number.try_into().unwrap_or(i64::MAX))
}

fn path(path: &Path) -> Value {
    text(path.to_string_lossy())
}

fn yes_no(value: bool, yes: &str, no: &str) -> Value {
    text(if value { yes } else { no })
}

fn null_or<T>(value: Option<T>, known: impl FnOnce(T) -> Value) -> Value {
    value.map_or(Value::Null, known)
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
}
