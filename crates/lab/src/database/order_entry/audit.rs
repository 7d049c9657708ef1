//! What must hold when nobody works any more: TPC-C's consistency conditions 1 to 4 and 8 to 10, as far as these tables have them.

use super::super::inconsistent;
use super::schema::Schema;
use crate::LabError;
use engine::{Row, Session, Table, Value};
use std::collections::BTreeMap;

type District = (i64, i64);

fn number(row: &Row, column: usize) -> i64 {
    match row.get(column) {
        Some(Value::Integer(n)) => *n,
        _ => 0,
    }
}

/// Calls `each` for every row; only `columns` are decoded.
fn scan(
    session: &mut Session,
    table: &Table,
    columns: &[usize],
    mut each: impl FnMut(&Row),
) -> Result<(), LabError> {
    let mut scan = session.scan_columns(table, columns)?;
    while let Some((_, row)) = scan.next(session)? {
        each(&row);
    }
    Ok(())
}

#[derive(Default)]
struct Orders {
    newest: i64,
    lines_promised: i64,
    lines: i64,
    undelivered: i64,
    open: i64,
    open_oldest: i64,
    open_newest: i64,
}

/// Reads everything once.
///
/// # Errors
/// The first condition that does not hold; what the engine says.
pub(super) fn run(session: &mut Session, schema: &Schema) -> Result<(), LabError> {
    let fail = |what: String| Err(inconsistent("order-entry", what));
    let mut warehouses: BTreeMap<i64, i64> = BTreeMap::new();
    scan(session, &schema.warehouse.0, &[0, 4], |row| {
        warehouses.insert(number(row, 0), number(row, 1));
    })?;
    let mut districts: BTreeMap<District, (i64, i64)> = BTreeMap::new();
    scan(session, &schema.district.0, &[0, 1, 5, 6], |row| {
        districts.insert((number(row, 0), number(row, 1)), (number(row, 2), number(row, 3)));
    })?;
    let mut paid: BTreeMap<District, i64> = BTreeMap::new();
    scan(session, &schema.history, &[4, 3, 5], |row| {
        *paid.entry((number(row, 0), number(row, 1))).or_default() += number(row, 2);
    })?;
    let first = schema_first_ytd(&warehouses, &districts);
    for (warehouse, ytd) in &warehouses {
        let sum: i64 = districts.iter().filter(|((w, _), _)| w == warehouse).map(|(_, (ytd, _))| ytd).sum();
        if *ytd != sum {
            return fail(format!("warehouse {warehouse} has W_YTD {ytd}, its districts {sum}"));
        }
    }
    for (district, (ytd, _)) in &districts {
        let paid = paid.get(district).copied().unwrap_or_default();
        if *ytd != first + paid {
            return fail(format!(
                "district {district:?} has D_YTD {ytd}, its history {paid} beside the first {first}"
            ));
        }
    }
    let orders = orders(session, schema)?;
    for (district, (_, next)) in &districts {
        let Some(o) = orders.get(district) else {
            return fail(format!("district {district:?} has no orders"));
        };
        if o.newest != next - 1 {
            return fail(format!(
                "district {district:?} has D_NEXT_O_ID {next} and the newest order {}",
                o.newest
            ));
        }
        if o.lines != o.lines_promised {
            return fail(format!(
                "district {district:?} promises {} order lines and has {}",
                o.lines_promised, o.lines
            ));
        }
        if o.open != o.undelivered {
            return fail(format!(
                "district {district:?} has {} new orders and {} without carrier",
                o.open, o.undelivered
            ));
        }
        if o.open > 0 && o.open_newest - o.open_oldest + 1 != o.open {
            return fail(format!(
                "district {district:?} has {} new orders from {} to {}",
                o.open, o.open_oldest, o.open_newest
            ));
        }
    }
    Ok(())
}

/// What each district had when it was made.
fn schema_first_ytd(warehouses: &BTreeMap<i64, i64>, districts: &BTreeMap<District, (i64, i64)>) -> i64 {
    const WAREHOUSE_FIRST: i64 = 30_000_000;
    WAREHOUSE_FIRST * warehouses.len() as i64 / districts.len().max(1) as i64
}

fn orders(session: &mut Session, schema: &Schema) -> Result<BTreeMap<District, Orders>, LabError> {
    let mut all: BTreeMap<District, Orders> = BTreeMap::new();
    scan(session, &schema.orders.0, &[0, 1, 2, 4, 5], |row| {
        let district = all.entry((number(row, 0), number(row, 1))).or_default();
        district.newest = district.newest.max(number(row, 2));
        district.undelivered += i64::from(row[3] == Value::Null);
        district.lines_promised += number(row, 4);
    })?;
    scan(session, &schema.order_line.0, &[0, 1], |row| {
        all.entry((number(row, 0), number(row, 1))).or_default().lines += 1;
    })?;
    scan(session, &schema.new_order.0, &[0, 1, 2], |row| {
        let district = all.entry((number(row, 0), number(row, 1))).or_default();
        let id = number(row, 2);
        district.open_oldest = if district.open == 0 { id } else { district.open_oldest.min(id) };
        district.open_newest = district.open_newest.max(id);
        district.open += 1;
    })?;
    Ok(all)
}
