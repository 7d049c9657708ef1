//! Rows of the views of tables, indexes and their segments.

use super::{null_or, number, text, yes_no};
use crate::column::Kind;
use crate::link::Inner;
use crate::virtual_table::type_of;
use engine::cache::Pool;
use engine::flash::FlashUse;
use engine::{EngineError, Row};

/// The one owner of everything.
pub const OWNER: &str = "SYS";

/// `dba_tables`.
pub fn tables(inner: &mut Inner) -> engine::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for table in inner.session.tables() {
        let size = match inner.session.segment_size(&table.segment) {
            // Dropped since we looked.
            Err(EngineError::NoSuch { .. }) => continue,
            size => size?,
        };
        rows.push(vec![
            text(OWNER),
            text(table.name.to_ascii_uppercase()),
            text(&*table.tablespace),
            text("VALID"),
            number(size.high_water),
            text(pool(table.pool)),
            text(flash(table.flash)),
        ]);
    }
    Ok(rows)
}

/// `dba_tab_columns`.
pub fn tab_columns(inner: &Inner) -> Vec<Row> {
    let mut rows = Vec::new();
    for table in inner.session.tables() {
        for (at, column) in table.columns.iter().enumerate() {
            let kind = type_of(column);
            let (name, _) = column.declared.split_once('(').unwrap_or((&column.declared, ""));
            let length = match kind.kind {
                Kind::Text | Kind::Blob => kind.length_max,
                _ => None,
            };
            rows.push(vec![
                text(OWNER),
                text(table.name.to_ascii_uppercase()),
                text(column.name.to_ascii_uppercase()),
                text(name.trim().to_ascii_uppercase()),
                null_or(length, |length| number(length as u64)),
                yes_no(!column.not_null, "Y", "N"),
                number(at as u64 + 1),
            ]);
        }
    }
    rows
}

/// `dba_indexes`.
pub fn indexes(inner: &Inner) -> Vec<Row> {
    let mut rows = Vec::new();
    for table in inner.session.tables() {
        for index in &table.indexes {
            rows.push(vec![
                text(OWNER),
                text(index.name.to_ascii_uppercase()),
                text("NORMAL"),
                text(OWNER),
                text(table.name.to_ascii_uppercase()),
                text(if index.unique { "UNIQUE" } else { "NONUNIQUE" }),
                text(&*index.tablespace),
                text("VALID"),
            ]);
        }
    }
    rows
}

/// `dba_ind_columns`.
pub fn ind_columns(inner: &Inner) -> Vec<Row> {
    let mut rows = Vec::new();
    for table in inner.session.tables() {
        for index in &table.indexes {
            for (at, &column) in index.columns.iter().enumerate() {
                rows.push(vec![
                    text(OWNER),
                    text(index.name.to_ascii_uppercase()),
                    text(OWNER),
                    text(table.name.to_ascii_uppercase()),
                    text(table.columns[column].name.to_ascii_uppercase()),
                    number(at as u64 + 1),
                ]);
            }
        }
    }
    rows
}

/// `dba_segments`.
pub fn segments(inner: &mut Inner) -> engine::Result<Vec<Row>> {
    let row = |segment: engine::SegmentRow| {
        vec![
            text(OWNER),
            text(segment.name.to_ascii_uppercase()),
            text(segment.kind),
            text(segment.tablespace),
            number(segment.header.file),
            number(segment.header.block),
            number(segment.bytes),
            number(segment.size.blocks),
            number(segment.size.extents),
            text(pool(segment.pool)),
            text(flash(segment.flash)),
        ]
    };
    Ok(inner.session.segments()?.into_iter().map(row).collect())
}

/// As `FLASH_CACHE` spells it.
fn flash(flash: FlashUse) -> &'static str {
    match flash {
        FlashUse::Default => "DEFAULT",
        FlashUse::Keep => "KEEP",
        FlashUse::None => "NONE",
    }
}

/// As `BUFFER_POOL` spells it.
pub fn pool(pool: Pool) -> &'static str {
    match pool {
        Pool::Default => "DEFAULT",
        Pool::Keep => "KEEP",
        Pool::Recycle => "RECYCLE",
    }
}
