//! CREATE, DROP and TRUNCATE of tables and indexes.

use super::cursor::Cursor;
use super::{ColumnDefinition, CreateIndex, CreateTable, FlashUse, Pool, Statement, UniqueKey, system};
use crate::SqlError;
use crate::column::Type;

pub fn create(cursor: &mut Cursor<'_>) -> Result<Statement, SqlError> {
    cursor.expect(&["CREATE"])?;
    if cursor.eat(&["TABLE"]) {
        return table(cursor).map(Statement::CreateTable);
    }
    if cursor.eat(&["UNIQUE", "INDEX"]) {
        return index(cursor, true);
    }
    if cursor.eat(&["INDEX"]) {
        return index(cursor, false);
    }
    if let Some(tablespace) = system::create_tablespace(cursor)? {
        return Ok(tablespace);
    }
    Err(cursor.expected("TABLE, [UNIQUE] INDEX or [UNDO] TABLESPACE (there are no others here)"))
}

pub fn drop(cursor: &mut Cursor<'_>) -> Result<Statement, SqlError> {
    cursor.expect(&["DROP"])?;
    if cursor.eat(&["TABLESPACE"]) {
        return system::drop_tablespace(cursor);
    }
    let table = cursor.eat(&["TABLE"]);
    if !table && !cursor.eat(&["INDEX"]) {
        return Err(cursor.expected("TABLE, INDEX or TABLESPACE"));
    }
    let if_exists = cursor.eat(&["IF", "EXISTS"]);
    let name = cursor.name("the name of what is dropped")?;
    if !table {
        return Ok(Statement::DropIndex { name, if_exists });
    }
    cursor.eat(&["CASCADE", "CONSTRAINTS"]);
    cursor.eat(&["PURGE"]);
    Ok(Statement::DropTable { name, if_exists })
}

pub fn truncate(cursor: &mut Cursor<'_>) -> Result<Statement, SqlError> {
    cursor.expect(&["TRUNCATE", "TABLE"])?;
    let name = cursor.name("the table's name")?;
    let _ = cursor.eat_one(&["DROP", "REUSE"]).is_some() && cursor.eat(&["STORAGE"]);
    Ok(Statement::Truncate { name })
}

fn if_not_exists(cursor: &mut Cursor<'_>) -> bool {
    cursor.eat(&["IF", "NOT", "EXISTS"])
}

fn index(cursor: &mut Cursor<'_>, unique: bool) -> Result<Statement, SqlError> {
    let if_not_exists = if_not_exists(cursor);
    let name = cursor.name("the index's name")?;
    cursor.expect(&["ON"])?;
    let table = cursor.name("the table's name")?;
    let columns = cursor.names("a column's name (expressions cannot be indexed)")?;
    let (tablespace, _) = physical(cursor)?;
    Ok(Statement::CreateIndex(CreateIndex { name, if_not_exists, table, columns, unique, tablespace }))
}

fn table(cursor: &mut Cursor<'_>) -> Result<CreateTable, SqlError> {
    let if_not_exists = if_not_exists(cursor);
    let mut table =
        CreateTable { name: cursor.name("the table's name")?, if_not_exists, ..CreateTable::default() };
    let columns_at = cursor.offset();
    if cursor.eat_sign("(") {
        loop {
            item(cursor, &mut table)?;
            if !cursor.eat_sign(",") {
                break;
            }
        }
        cursor.expect_sign(")")?;
    }
    (table.tablespace, table.caching) = physical(cursor)?;
    if cursor.eat(&["AS"]) {
        table.query = Some(cursor.rest("a query")?);
    }
    let typed = table.columns.iter().filter(|column| column.kind.is_some()).count();
    match (&table.query, table.columns.len()) {
        (None, 0) => return Err(cursor.expected("( columns ) or AS SELECT …")),
        (None, all) if typed < all => {
            return Err(SqlError::at(columns_at, "every column needs a type: name VARCHAR2(100)"));
        }
        (Some(_), _) if typed > 0 => {
            return Err(SqlError::at(
                columns_at,
                "AS SELECT gives the types; name the columns only, or nothing",
            ));
        }
        _ => {}
    }
    Ok(table)
}

/// A column or a constraint of the table.
fn item(cursor: &mut Cursor<'_>, table: &mut CreateTable) -> Result<(), SqlError> {
    let name = if cursor.eat(&["CONSTRAINT"]) { Some(cursor.name("the constraint's name")?) } else { None };
    if let Some(word) = cursor.eat_one(&["PRIMARY", "UNIQUE"]) {
        let primary = word == "PRIMARY";
        if primary {
            cursor.expect(&["KEY"])?;
        }
        let place = cursor.offset();
        let columns = cursor.names("a column's name")?;
        using_index(cursor)?;
        for name in &columns {
            let column = table.columns.iter_mut().find(|column| column.name.eq_ignore_ascii_case(name));
            let column = column
                .ok_or_else(|| SqlError::at(place, format!("there is no column {name} before this key")))?;
            column.not_null |= primary;
        }
        table.unique.push(UniqueKey { name, columns, primary });
        return Ok(());
    }
    refuse(cursor)?;
    if name.is_some() {
        return Err(cursor.expected("PRIMARY KEY or UNIQUE"));
    }
    let column = column(cursor, &mut table.unique)?;
    if table.columns.iter().any(|other| other.name.eq_ignore_ascii_case(&column.name)) {
        return Err(SqlError::at(cursor.offset(), format!("column {} is there twice", column.name)));
    }
    table.columns.push(column);
    Ok(())
}

fn column(cursor: &mut Cursor<'_>, unique: &mut Vec<UniqueKey>) -> Result<ColumnDefinition, SqlError> {
    let name = cursor.name("a column's name")?;
    let mut column = ColumnDefinition { name, declared: String::new(), kind: None, not_null: false };
    if cursor.peek().is_none_or(|t| t.is_sign(",") || t.is_sign(")")) {
        return Ok(column);
    }
    let start = cursor.offset();
    column.kind = Some(column_type(cursor)?);
    column.declared = cursor.text_from(start).to_owned();
    loop {
        let name =
            if cursor.eat(&["CONSTRAINT"]) { Some(cursor.name("the constraint's name")?) } else { None };
        let primary = cursor.eat(&["PRIMARY", "KEY"]);
        if primary || cursor.eat(&["UNIQUE"]) {
            column.not_null |= primary;
            unique.push(UniqueKey { name, columns: vec![column.name.clone()], primary });
            using_index(cursor)?;
        } else if cursor.eat(&["NOT", "NULL"]) {
            column.not_null = true;
        } else if !(cursor.eat(&["NULL"]) || cursor.eat(&["ENABLE"])) {
            refuse(cursor)?;
            return match name {
                Some(_) => Err(cursor.expected("PRIMARY KEY, UNIQUE or NOT NULL")),
                None => Ok(column),
            };
        }
    }
}

pub fn column_type(cursor: &mut Cursor<'_>) -> Result<Type, SqlError> {
    let place = cursor.offset();
    let name = cursor.name("a type")?;
    let mut numbers = Vec::new();
    if cursor.eat_sign("(") {
        loop {
            // NUMBER(*, 0): as many digits as there are.
            numbers.push(if cursor.eat_sign("*") { 38 } else { cursor.integer("a number")? });
            if !cursor.eat_sign(",") {
                break;
            }
        }
        let _ = cursor.eat_one(&["CHAR", "BYTE"]);
        cursor.expect_sign(")")?;
    }
    // DOUBLE PRECISION, LONG RAW, CHARACTER VARYING (n), TIMESTAMP WITH TIME ZONE.
    cursor.eat(&["PRECISION"]);
    let raw = cursor.eat(&["RAW"]);
    if cursor.eat(&["WITH", "LOCAL", "TIME", "ZONE"]) || cursor.eat(&["WITH", "TIME", "ZONE"]) {
        return Err(SqlError::at(place, "a TIMESTAMP has no time zone here; leave WITH TIME ZONE out"));
    }
    let kind = if raw { Type::of("BLOB", &[]) } else { Type::of(&name, &numbers) };
    kind.ok_or_else(|| {
        let known = "NUMBER, INTEGER, FLOAT, VARCHAR2, CHAR, CLOB, DATE, TIMESTAMP, RAW, BLOB";
        SqlError::at(place, format!("{name} is no type here; there are {known}"))
    })
}

/// What a table of ours cannot have. Refused, because a constraint that nobody checks is worse than none.
fn refuse(cursor: &Cursor<'_>) -> Result<(), SqlError> {
    let known = [
        ("DEFAULT", "there are no default values; give the value in INSERT"),
        ("CHECK", "there are no CHECK constraints; leave it out"),
        ("REFERENCES", "there are no foreign keys; leave it out"),
        ("FOREIGN", "there are no foreign keys; leave it out"),
        ("GENERATED", "there are no generated columns; leave it out"),
    ];
    match cursor.peek().and_then(|token| known.iter().find(|(word, _)| token.is(word))) {
        Some((_, words)) => Err(SqlError::at(cursor.offset(), *words)),
        None => Ok(()),
    }
}

fn using_index(cursor: &mut Cursor<'_>) -> Result<(), SqlError> {
    if cursor.eat(&["USING", "INDEX"]) {
        physical(cursor)?;
    }
    Ok(())
}

/// Where and how: TABLESPACE, BUFFER_POOL and FLASH_CACHE count; what else Oracle's scripts have here (PCTFREE 10 …) is stepped over.
pub fn physical(cursor: &mut Cursor<'_>) -> Result<(Option<String>, Caching), SqlError> {
    let (mut tablespace, mut caching) = (None, Caching::default());
    loop {
        if cursor.eat(&["TABLESPACE"]) {
            tablespace = Some(cursor.name("the tablespace's name")?);
        } else if cursor.eat(&["STORAGE"]) {
            caching = storage(cursor)?;
        } else if cursor.eat_one(&["PCTFREE", "PCTUSED", "INITRANS", "MAXTRANS"]).is_some() {
            cursor.integer("a number")?;
        } else if cursor.eat_one(&["PARALLEL"]).is_some() {
            let _ = cursor.integer("a number");
        } else if cursor
            .eat_one(&["LOGGING", "NOLOGGING", "CACHE", "NOCACHE", "NOPARALLEL", "NOCOMPRESS", "ONLINE"])
            .is_none()
        {
            return Ok((tablespace, caching));
        }
    }
}

/// What a STORAGE clause says about caches; none where it says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caching {
    /// `BUFFER_POOL`.
    pub pool: Option<Pool>,
    /// `FLASH_CACHE`.
    pub flash: Option<FlashUse>,
}

/// `( INITIAL 64K … BUFFER_POOL KEEP FLASH_CACHE KEEP )`.
pub fn storage(cursor: &mut Cursor<'_>) -> Result<Caching, SqlError> {
    cursor.expect_sign("(")?;
    let mut caching = Caching::default();
    while !cursor.eat_sign(")") {
        if cursor.eat(&["BUFFER_POOL"]) {
            caching.pool = Some(match cursor.eat_one(&["KEEP", "RECYCLE", "DEFAULT"]) {
                Some("KEEP") => Pool::Keep,
                Some("RECYCLE") => Pool::Recycle,
                Some(_) => Pool::Default,
                None => return Err(cursor.expected("KEEP, RECYCLE or DEFAULT")),
            });
        } else if cursor.eat(&["FLASH_CACHE"]) {
            caching.flash = Some(match cursor.eat_one(&["KEEP", "NONE", "DEFAULT"]) {
                Some("KEEP") => FlashUse::Keep,
                Some("NONE") => FlashUse::None,
                Some(_) => FlashUse::Default,
                None => return Err(cursor.expected("KEEP, NONE or DEFAULT")),
            });
        } else if cursor.next().is_none() {
            return Err(cursor.expected(")"));
        }
    }
    Ok(caching)
}
