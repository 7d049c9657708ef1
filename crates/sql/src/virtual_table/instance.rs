//! The v$ and dba_ views, as tables that SQLite finds by their names. Rows are made when a search begins.

use super::{Adapted, Rows, Shape, ref_of};
use crate::link::Link;
use crate::quote;
use crate::view::{self, VIEWS, View};
use engine::Row;
use rusqlite::types::ValueRef;
use rusqlite::vtab::{IndexInfo, Module};
use rusqlite::{Connection, Error, Result};
use std::sync::Arc;

/// About how many rows a view has: few, but more than one.
const ROWS: i64 = 100;

/// A view of the instance.
pub struct InstanceView {
    link: Arc<Link>,
    view: &'static View,
}

impl InstanceView {
    /// Makes the views known in `db`, by all their names.
    pub fn register(db: &Connection, link: &Arc<Link>) -> Result<()> {
        let module = const { &Module::<Adapted<Self>>::eponymous_only_module() };
        for name in VIEWS.iter().flat_map(View::names) {
            db.create_module(name.as_str(), module, Some(link.clone()))?;
        }
        Ok(())
    }
}

impl Shape for InstanceView {
    type Rows = ViewRows;

    fn connect(link: &Arc<Link>, name: &str) -> Result<Self> {
        let view = view::find(name).ok_or_else(|| Error::ModuleError(format!("no such view: {name}")))?;
        Ok(Self { link: link.clone(), view })
    }

    fn declaration(&self) -> String {
        let columns: Vec<_> =
            self.view.columns().map(|c| format!("{} {}", quote(c.name), c.declared)).collect();
        format!("CREATE TABLE x ({})", columns.join(", "))
    }

    fn plan(&self, info: &mut IndexInfo) -> Result<()> {
        info.set_estimated_rows(ROWS);
        info.set_estimated_cost(ROWS as f64);
        Ok(())
    }

    fn rows(&self) -> ViewRows {
        ViewRows {
            link: self.link.clone(),
            view: self.view,
            rows: Box::new(std::iter::empty()),
            row: None,
            at: 0,
        }
    }
}

/// Rows of a view.
pub struct ViewRows {
    link: Arc<Link>,
    view: &'static View,
    rows: Box<dyn Iterator<Item = Row>>,
    row: Option<Row>,
    at: i64,
}

impl Rows for ViewRows {
    fn begin(&mut self, _plan: &str, _arguments: &mut dyn Iterator<Item = ValueRef<'_>>) -> Result<()> {
        self.rows = self.link.with(|inner| view::rows(self.view, inner))?;
        self.at = 0;
        self.next()
    }

    fn next(&mut self) -> Result<()> {
        self.row = self.rows.next();
        self.at += 1;
        Ok(())
    }

    fn is_at_end(&self) -> bool {
        self.row.is_none()
    }

    fn value(&self, column: usize) -> ValueRef<'_> {
        self.row.as_ref().and_then(|row| row.get(column)).map_or(ValueRef::Null, ref_of)
    }

    fn address(&self) -> i64 {
        self.at
    }
}
