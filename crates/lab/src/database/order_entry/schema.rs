//! Tables, indexes and first rows. Money is in cents.

use super::super::{stop_if, until};
use crate::LabError;
use engine::{Column, ColumnKind, Index, IndexDef, Row, Session, Table, TableDef, Value};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use units::{Rng, Seed};

/// How much data there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Warehouses.
    pub warehouses: i64,
    /// Customers of each district; as many orders were there before.
    pub customers: i64,
    /// Items; as many stock rows in each warehouse.
    pub items: i64,
}

/// Districts of each warehouse.
pub const DISTRICTS: i64 = 10;
/// Share of the first orders that are not delivered yet.
const UNDELIVERED_PERCENT: i64 = 30;

impl Scale {
    /// The specification's sizes: about 100 MiB for each warehouse.
    pub const fn spec(warehouses: i64) -> Self {
        Self { warehouses, customers: 3_000, items: 100_000 }
    }

    /// A tenth of everything: about 10 MiB for each warehouse.
    pub const fn small(warehouses: i64) -> Self {
        Self { warehouses, customers: 300, items: 10_000 }
    }

    /// Bytes of tables and indexes, roughly.
    pub const fn bytes(&self) -> u64 {
        let customer = 700 + 650;
        (self.warehouses * (DISTRICTS * self.customers * (customer + 10 * 95) + self.items * 380)
            + self.items * 130) as u64
    }
}

const WAREHOUSE: &[(&str, ColumnKind)] = &[
    ("W_ID", ColumnKind::Integer),
    ("W_NAME", ColumnKind::Text),
    ("W_ADDRESS", ColumnKind::Text),
    ("W_TAX", ColumnKind::Integer),
    ("W_YTD", ColumnKind::Integer),
];
const DISTRICT: &[(&str, ColumnKind)] = &[
    ("D_W_ID", ColumnKind::Integer),
    ("D_ID", ColumnKind::Integer),
    ("D_NAME", ColumnKind::Text),
    ("D_ADDRESS", ColumnKind::Text),
    ("D_TAX", ColumnKind::Integer),
    ("D_YTD", ColumnKind::Integer),
    ("D_NEXT_O_ID", ColumnKind::Integer),
];
const CUSTOMER: &[(&str, ColumnKind)] = &[
    ("C_W_ID", ColumnKind::Integer),
    ("C_D_ID", ColumnKind::Integer),
    ("C_ID", ColumnKind::Integer),
    ("C_FIRST", ColumnKind::Text),
    ("C_LAST", ColumnKind::Text),
    ("C_ADDRESS", ColumnKind::Text),
    ("C_CREDIT", ColumnKind::Text),
    ("C_DISCOUNT", ColumnKind::Integer),
    ("C_BALANCE", ColumnKind::Integer),
    ("C_YTD_PAYMENT", ColumnKind::Integer),
    ("C_PAYMENT_CNT", ColumnKind::Integer),
    ("C_DELIVERY_CNT", ColumnKind::Integer),
    ("C_DATA", ColumnKind::Text),
];
const HISTORY: &[(&str, ColumnKind)] = &[
    ("H_C_ID", ColumnKind::Integer),
    ("H_C_D_ID", ColumnKind::Integer),
    ("H_C_W_ID", ColumnKind::Integer),
    ("H_D_ID", ColumnKind::Integer),
    ("H_W_ID", ColumnKind::Integer),
    ("H_AMOUNT", ColumnKind::Integer),
    ("H_DATA", ColumnKind::Text),
];
const ITEM: &[(&str, ColumnKind)] = &[
    ("I_ID", ColumnKind::Integer),
    ("I_NAME", ColumnKind::Text),
    ("I_PRICE", ColumnKind::Integer),
    ("I_DATA", ColumnKind::Text),
];
const STOCK: &[(&str, ColumnKind)] = &[
    ("S_W_ID", ColumnKind::Integer),
    ("S_I_ID", ColumnKind::Integer),
    ("S_QUANTITY", ColumnKind::Integer),
    ("S_YTD", ColumnKind::Integer),
    ("S_ORDER_CNT", ColumnKind::Integer),
    ("S_REMOTE_CNT", ColumnKind::Integer),
    ("S_DIST", ColumnKind::Text),
    ("S_DATA", ColumnKind::Text),
];
const ORDERS: &[(&str, ColumnKind)] = &[
    ("O_W_ID", ColumnKind::Integer),
    ("O_D_ID", ColumnKind::Integer),
    ("O_ID", ColumnKind::Integer),
    ("O_C_ID", ColumnKind::Integer),
    ("O_CARRIER_ID", ColumnKind::Integer),
    ("O_OL_CNT", ColumnKind::Integer),
    ("O_ALL_LOCAL", ColumnKind::Integer),
];
const NEW_ORDER: &[(&str, ColumnKind)] =
    &[("NO_W_ID", ColumnKind::Integer), ("NO_D_ID", ColumnKind::Integer), ("NO_O_ID", ColumnKind::Integer)];
const ORDER_LINE: &[(&str, ColumnKind)] = &[
    ("OL_W_ID", ColumnKind::Integer),
    ("OL_D_ID", ColumnKind::Integer),
    ("OL_O_ID", ColumnKind::Integer),
    ("OL_NUMBER", ColumnKind::Integer),
    ("OL_I_ID", ColumnKind::Integer),
    ("OL_SUPPLY_W_ID", ColumnKind::Integer),
    ("OL_DELIVERED", ColumnKind::Integer),
    ("OL_QUANTITY", ColumnKind::Integer),
    ("OL_AMOUNT", ColumnKind::Integer),
    ("OL_DIST_INFO", ColumnKind::Text),
];

/// Names and kinds.
type Columns = &'static [(&'static str, ColumnKind)];

/// Each table with how many of its columns make the unique index; 0: no index.
const TABLES: [(&str, Columns, usize); 9] = [
    ("WAREHOUSE", WAREHOUSE, 1),
    ("DISTRICT", DISTRICT, 2),
    ("CUSTOMER", CUSTOMER, 3),
    ("HISTORY", HISTORY, 0),
    ("ITEM", ITEM, 1),
    ("STOCK", STOCK, 2),
    ("ORDERS", ORDERS, 3),
    ("NEW_ORDER", NEW_ORDER, 3),
    ("ORDER_LINE", ORDER_LINE, 4),
];
/// Indexes that are not unique.
const BY_NAME: (&str, &str, &[&str]) =
    ("CUSTOMER_BY_NAME", "CUSTOMER", &["C_W_ID", "C_D_ID", "C_LAST", "C_FIRST"]);
const BY_CUSTOMER: (&str, &str, &[&str]) =
    ("ORDERS_BY_CUSTOMER", "ORDERS", &["O_W_ID", "O_D_ID", "O_C_ID", "O_ID"]);

/// The tables and indexes that the transactions use.
pub(super) struct Schema {
    pub scale: Scale,
    pub warehouse: (Arc<Table>, Arc<Index>),
    pub district: (Arc<Table>, Arc<Index>),
    pub customer: (Arc<Table>, Arc<Index>),
    pub customer_by_name: Arc<Index>,
    pub history: Arc<Table>,
    pub item: Arc<Index>,
    pub stock: (Arc<Table>, Arc<Index>),
    pub orders: (Arc<Table>, Arc<Index>),
    pub orders_by_customer: Arc<Index>,
    pub new_order: (Arc<Table>, Arc<Index>),
    pub order_line: (Arc<Table>, Arc<Index>),
}

impl Schema {
    /// Finds what [`prepare`] made.
    ///
    /// # Errors
    /// What the engine says.
    pub fn open(session: &mut Session) -> Result<Self, LabError> {
        let both = |name: &str| -> Result<_, LabError> {
            Ok((session.table(name)?, session.index(&format!("{name}_PK"))?))
        };
        let (warehouse, district, customer) = (both("WAREHOUSE")?, both("DISTRICT")?, both("CUSTOMER")?);
        let (item, stock, orders) = (both("ITEM")?, both("STOCK")?, both("ORDERS")?);
        let (new_order, order_line) = (both("NEW_ORDER")?, both("ORDER_LINE")?);
        let history = session.table("HISTORY")?;
        let customer_by_name = session.index(BY_NAME.0)?;
        let orders_by_customer = session.index(BY_CUSTOMER.0)?;
        let warehouses = session.count(&warehouse.0)? as i64;
        let scale = Scale {
            warehouses,
            customers: session.count(&customer.0)? as i64 / (warehouses * DISTRICTS).max(1),
            items: session.count(&item.0)? as i64,
        };
        Ok(Self {
            scale,
            warehouse,
            district,
            customer,
            customer_by_name,
            history,
            item: item.1,
            stock,
            orders,
            orders_by_customer,
            new_order,
            order_line,
        })
    }
}

/// Makes tables and first rows, then the indexes. Commits.
///
/// # Errors
/// What the engine says.
pub fn prepare(session: &mut Session, scale: Scale, seed: Seed, cancel: &AtomicBool) -> Result<(), LabError> {
    for (name, columns, _) in TABLES {
        let columns = columns.iter().map(|(name, kind)| Column::new(name, *kind)).collect();
        session.create_table(&TableDef::new(name, columns))?;
    }
    let mut rng = Rng::new(seed);
    let item = session.table("ITEM")?;
    session.insert_many(&item, &mut until(cancel, (1..=scale.items).map(|id| item_row(id, &mut rng))))?;
    stop_if(cancel, session)?;
    session.commit()?;
    for warehouse in 1..=scale.warehouses {
        fill(session, scale, warehouse, &mut rng, cancel)?;
        session.commit()?;
    }
    let index = |name: &str, table: &str, columns: Vec<String>, unique| IndexDef {
        name: name.to_owned(),
        table: table.to_owned(),
        columns,
        unique,
        tablespace: None,
    };
    for (name, columns, keys) in TABLES.iter().filter(|(_, _, keys)| *keys > 0) {
        let columns = columns[..*keys].iter().map(|(name, _)| (*name).to_owned()).collect();
        stop_if(cancel, session)?;
        session.create_index(&index(&format!("{name}_PK"), name, columns, true))?;
    }
    for (name, table, columns) in [BY_NAME, BY_CUSTOMER] {
        let columns = columns.iter().map(|name| (*name).to_owned()).collect();
        session.create_index(&index(name, table, columns, false))?;
    }
    session.commit()?;
    Ok(())
}

/// Everything of one warehouse.
fn fill(
    session: &mut Session,
    scale: Scale,
    warehouse: i64,
    rng: &mut Rng,
    cancel: &AtomicBool,
) -> Result<(), LabError> {
    let mut put = |table: &str, rows: &mut dyn Iterator<Item = Row>| -> Result<(), LabError> {
        let table = session.table(table)?;
        session.insert_many(&table, &mut until(cancel, rows))?;
        stop_if(cancel, session)
    };
    let ytd = 30_000_000;
    let row = vec![int(warehouse), text(rng, 10), text(rng, 60), int(rng.below(2_001) as i64), int(ytd)];
    put("WAREHOUSE", &mut std::iter::once(row))?;
    put("STOCK", &mut (1..=scale.items).map(|item| stock_row(warehouse, item, rng)))?;
    for district in 1..=DISTRICTS {
        let tax = int(rng.below(2_001) as i64);
        let names = [text(rng, 10), text(rng, 60)];
        let [name, address] = names;
        let next = int(scale.customers + 1);
        let row = vec![int(warehouse), int(district), name, address, tax, int(ytd / DISTRICTS), next];
        put("DISTRICT", &mut std::iter::once(row))?;
        put("CUSTOMER", &mut (1..=scale.customers).map(|id| customer_row(warehouse, district, id, rng)))?;
        let mut customers: Vec<i64> = (1..=scale.customers).collect();
        rng.shuffle(&mut customers);
        let first_open = scale.customers * (100 - UNDELIVERED_PERCENT) / 100 + 1;
        let lines: Vec<i64> = customers.iter().map(|_| 5 + rng.below(11) as i64).collect();
        put(
            "ORDERS",
            &mut (1..=scale.customers).map(|id| {
                let carrier = if id < first_open { int(1 + id % 10) } else { Value::Null };
                let at = id as usize - 1;
                vec![
                    int(warehouse),
                    int(district),
                    int(id),
                    int(customers[at]),
                    carrier,
                    int(lines[at]),
                    int(1),
                ]
            }),
        )?;
        put(
            "ORDER_LINE",
            &mut (1..=scale.customers)
                .flat_map(|id| (1..=lines[id as usize - 1]).map(move |number| (id, number)))
                .map(|(id, number)| {
                    let item = 1 + rng.below(scale.items as u64) as i64;
                    order_line_row(
                        [warehouse, district, id, number],
                        item,
                        warehouse,
                        id < first_open,
                        5,
                        0,
                        rng,
                    )
                }),
        )?;
        let open = first_open..=scale.customers;
        put("NEW_ORDER", &mut open.map(|id| vec![int(warehouse), int(district), int(id)]))?;
    }
    Ok(())
}

pub(super) fn int(value: i64) -> Value {
    Value::Integer(value)
}

/// Random letters.
pub(super) fn text(rng: &mut Rng, length: usize) -> Value {
    let mut letters = String::with_capacity(length + 12);
    while letters.len() < length {
        let mut bits = rng.next_u64();
        for _ in 0..12 {
            letters.push(char::from(b'A' + (bits % 26) as u8));
            bits /= 26;
        }
    }
    letters.truncate(length);
    Value::Text(letters)
}

/// A last name of three syllables, as the specification makes them; `number` from 0 to 999.
pub(super) fn last_name(number: i64) -> Value {
    const SYLLABLES: [&str; 10] =
        ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
    let digit = |n: i64| SYLLABLES[(n % 10) as usize];
    Value::Text(format!("{}{}{}", digit(number / 100), digit(number / 10), digit(number)))
}

fn item_row(id: i64, rng: &mut Rng) -> Row {
    vec![int(id), text(rng, 20), int(100 + rng.below(9_901) as i64), text(rng, 38)]
}

fn stock_row(warehouse: i64, item: i64, rng: &mut Rng) -> Row {
    let quantity = 10 + rng.below(91) as i64;
    vec![int(warehouse), int(item), int(quantity), int(0), int(0), int(0), text(rng, 240), text(rng, 38)]
}

fn customer_row(warehouse: i64, district: i64, id: i64, rng: &mut Rng) -> Row {
    let name = if id <= 1_000 { id - 1 } else { rng.below(1_000) as i64 };
    let credit = if rng.below(10) == 0 { "BC" } else { "GC" };
    let first = text(rng, 12);
    let address = text(rng, 80);
    let discount = int(rng.below(5_001) as i64);
    vec![
        int(warehouse),
        int(district),
        int(id),
        first,
        last_name(name),
        address,
        Value::Text(credit.into()),
        discount,
        int(-1_000),
        int(1_000),
        int(1),
        int(0),
        text(rng, 400),
    ]
}

/// `key`: warehouse, district, order, number.
pub(super) fn order_line_row(
    key: [i64; 4],
    item: i64,
    supplier: i64,
    delivered: bool,
    quantity: i64,
    amount: i64,
    rng: &mut Rng,
) -> Row {
    let mut row: Row = key.into_iter().map(int).collect();
    row.extend([
        int(item),
        int(supplier),
        int(i64::from(delivered)),
        int(quantity),
        int(amount),
        text(rng, 24),
    ]);
    row
}
