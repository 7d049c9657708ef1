//! What there is to ask: names of tables, views and columns, for people who type.

use super::Connection;
use crate::outcome::Described;
use crate::view::{self, VIEWS, ViewColumn};

impl Connection {
    /// The columns of a table or view; none when there is none of that name.
    pub fn describe(&self, name: &str) -> Option<Vec<Described>> {
        if let Ok(table) = self.link.lock().session.table(name) {
            let column = |column: &engine::space::Column| Described {
                name: column.name.clone(),
                not_null: column.not_null,
                declared: column.declared.clone(),
            };
            return Some(table.columns.iter().map(column).collect());
        }
        let column = |column: ViewColumn| Described {
            name: column.name.to_owned(),
            not_null: false,
            declared: column.declared.to_owned(),
        };
        view::find(name).map(|view| view.columns().map(column).collect())
    }

    /// Names of all tables and views, with those of their columns.
    pub fn names(&self) -> Vec<(String, Vec<String>)> {
        let tables = self.link.lock().session.tables().into_iter().map(|table| {
            (table.name.clone(), table.columns.iter().map(|column| column.name.clone()).collect())
        });
        let views = VIEWS.iter().flat_map(|view| {
            let columns: Vec<_> = view.columns().map(|column| column.name.to_owned()).collect();
            view.names().into_iter().map(move |name| (name, columns.clone()))
        });
        tables.chain(views).collect()
    }
}
