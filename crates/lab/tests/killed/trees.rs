//! Indexes agree with their tables, and every extent belongs to somebody.

use crate::Checked;
use engine::{Row, RowId, Session};
use std::collections::BTreeMap;
use std::ops::Bound;

/// All rows of a table.
pub fn rows(session: &mut Session, name: &str) -> Result<BTreeMap<RowId, Row>, String> {
    let table = session.table(name).map_err(|e| e.to_string())?;
    let mut scan = session.scan(&table).map_err(|e| e.to_string())?;
    let mut rows = BTreeMap::new();
    while let Some((at, row)) = scan.next(session).map_err(|e| e.to_string())? {
        if rows.insert(at, row).is_some() {
            return Err(format!("{name}: row {at} is there twice"));
        }
    }
    Ok(rows)
}

pub fn check(session: &mut Session) -> Checked {
    for table in session.tables() {
        let rows = rows(session, &table.name)?;
        for index in &table.indexes {
            let mut cursor = session
                .range(index, Bound::Unbounded, Bound::Unbounded, false)
                .map_err(|e| format!("{}: {e}", index.name))?;
            let (mut found, mut before) = (0, None);
            while let Some((at, row)) = cursor.next(session).map_err(|e| format!("{}: {e}", index.name))? {
                let key = Some(index.key(&row));
                if before > key {
                    return Err(format!("index {} is out of order at {at}", index.name));
                }
                before = key;
                if rows.get(&at) != Some(&row) {
                    return Err(format!(
                        "index {} leads to {at}, where table {} has another row",
                        index.name, table.name
                    ));
                }
                found += 1;
            }
            if found != rows.len() {
                return Err(format!(
                    "index {} has {found} rows, table {} {}",
                    index.name,
                    table.name,
                    rows.len()
                ));
            }
            let core = session.core().clone();
            let structure = engine::btree::check(&core, session.context(), &index.segment);
            let problems = structure.map_err(|e| e.to_string())?.problems;
            if let Some(problem) = problems.first() {
                return Err(format!("index {}: {problem}", index.name));
            }
        }
    }
    match session.check_space().map_err(|e| e.to_string())?.first() {
        None => Ok(()),
        Some(problem) => Err(format!("space: {problem}")),
    }
}
