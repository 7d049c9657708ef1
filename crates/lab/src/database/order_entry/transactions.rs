//! What each kind of transaction does. The result of each is the bytes of the rows that it read and wrote, roughly.

use super::Deed;
use super::schema::{DISTRICTS, Schema, int, last_name, order_line_row, text};
use engine::{EngineError, Index, Row, RowId, Session, Table, Value};
use std::ops::Bound;
use units::Rng;

type Result<T> = std::result::Result<T, EngineError>;

/// One transaction.
pub(super) struct Work<'a> {
    pub session: &'a mut Session,
    pub schema: &'a Schema,
    pub warehouse: i64,
    /// What it leaves, when it has committed.
    pub deed: Deed,
    pub rng: &'a mut Rng,
}

/// Share of order lines from another warehouse, percent.
const REMOTE_LINE_PERCENT: u64 = 1;
/// Share of payments by a customer of another warehouse, percent.
const REMOTE_PAYMENT_PERCENT: u64 = 15;
/// Share of new orders with an item that does not exist: they are rolled back. Percent.
const WRONG_ITEM_PERCENT: u64 = 1;
/// Share of customers that are asked for by last name, percent.
const BY_NAME_PERCENT: u64 = 60;
/// Bytes that a transaction of each kind moves, roughly, for the time line.
const ROW_BYTES: u64 = 300;

fn number(row: &Row, column: usize) -> i64 {
    match row.get(column) {
        Some(Value::Integer(n)) => *n,
        _ => 0,
    }
}

impl Work<'_> {
    fn percent(&mut self, share: u64) -> bool {
        self.rng.below(100) < share
    }

    fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.rng.below((high - low + 1) as u64) as i64
    }

    /// The specification's skewed choice (its `NURand`).
    fn skewed(&mut self, a: i64, low: i64, high: i64) -> i64 {
        let mixed = self.between(0, a) | self.between(low, high);
        (mixed + 42) % (high - low + 1) + low
    }

    fn other_warehouse(&mut self) -> i64 {
        let count = self.schema.scale.warehouses;
        if count == 1 {
            return self.warehouse;
        }
        let other = self.between(1, count - 1);
        if other >= self.warehouse { other + 1 } else { other }
    }

    fn customer_number(&mut self) -> i64 {
        let customers = self.schema.scale.customers;
        self.skewed(1_023.min(customers), 1, customers)
    }

    fn missing(index: &Index) -> EngineError {
        EngineError::NoSuch { kind: "row of", name: index.name.clone(), hint: String::new() }
    }

    fn one(&mut self, index: &Index, key: &[Value]) -> Result<(RowId, Row)> {
        self.session.lookup(index, key)?.into_iter().next().ok_or_else(|| Self::missing(index))
    }

    /// Finds a row, locks it, and gives its newest version.
    fn locked(&mut self, (table, index): (&Table, &Index), key: &[Value]) -> Result<(RowId, Row)> {
        let (address, _) = self.one(index, key)?;
        let row = self.session.get_for_update(table, address)?.ok_or_else(|| Self::missing(index))?;
        Ok((address, row))
    }

    pub fn new_order(&mut self) -> Result<u64> {
        let schema = self.schema;
        let (w, d) = (self.warehouse, self.between(1, DISTRICTS));
        let c = self.customer_number();
        let wrong = self.percent(WRONG_ITEM_PERCENT);
        let count = self.between(5, 15);
        let mut lines = Vec::new();
        for _ in 0..count {
            let item = self.skewed(8_191.min(schema.scale.items), 1, schema.scale.items);
            let supplier = if self.percent(REMOTE_LINE_PERCENT) { self.other_warehouse() } else { w };
            lines.push((supplier, item, self.between(1, 10)));
        }
        // One order for all sessions: two orders never wait for each other's stock in a circle.
        lines.sort_unstable();
        if wrong {
            lines.push((w, schema.scale.items + 1, 1));
        }
        self.one(&schema.warehouse.1, &[int(w)])?;
        self.one(&schema.customer.1, &[int(w), int(d), int(c)])?;
        let (address, mut district) =
            self.locked((&schema.district.0, &schema.district.1), &[int(w), int(d)])?;
        let order = number(&district, 6);
        district[6] = int(order + 1);
        self.session.update(&schema.district.0, address, &district)?;
        let local = lines.iter().all(|(supplier, ..)| *supplier == w);
        let row = vec![int(w), int(d), int(order), int(c), Value::Null, int(count), int(i64::from(local))];
        self.session.insert(&schema.orders.0, &row)?;
        self.session.insert(&schema.new_order.0, &[int(w), int(d), int(order)])?;
        let mut rows = Vec::with_capacity(lines.len());
        for (at, (supplier, item, quantity)) in lines.into_iter().enumerate() {
            let Some((_, found)) = self.session.lookup(&schema.item, &[int(item)])?.into_iter().next() else {
                self.session.rollback()?;
                return Ok(ROW_BYTES);
            };
            self.take_from_stock(supplier, item, quantity)?;
            let amount = quantity * number(&found, 2);
            let key = [w, d, order, at as i64 + 1];
            rows.push(order_line_row(key, item, supplier, false, quantity, amount, self.rng));
        }
        self.session.insert_many(&schema.order_line.0, &mut rows.into_iter())?;
        self.session.commit()?;
        self.deed = Deed::Order { key: [w, d, order], lines: count };
        Ok(ROW_BYTES * (4 + 3 * count as u64))
    }

    fn take_from_stock(&mut self, supplier: i64, item: i64, quantity: i64) -> Result<()> {
        let schema = self.schema;
        let (address, mut stock) =
            self.locked((&schema.stock.0, &schema.stock.1), &[int(supplier), int(item)])?;
        let left = number(&stock, 2) - quantity;
        stock[2] = int(if left >= 10 { left } else { left + 91 });
        stock[3] = int(number(&stock, 3) + quantity);
        stock[4] = int(number(&stock, 4) + 1);
        if supplier != self.warehouse {
            stock[5] = int(number(&stock, 5) + 1);
        }
        self.session.update(&schema.stock.0, address, &stock)
    }

    /// A customer by number, or the middle one of a last name; its row as the statement sees it.
    fn customer(&mut self, w: i64, d: i64) -> Result<(RowId, Row)> {
        let schema = self.schema;
        if !self.percent(BY_NAME_PERCENT) {
            let c = self.customer_number();
            return self.one(&schema.customer.1, &[int(w), int(d), int(c)]);
        }
        let names = schema.scale.customers.min(1_000);
        let name = last_name(self.skewed(255.min(names), 0, names - 1));
        let mut found = self.session.lookup(&schema.customer_by_name, &[int(w), int(d), name])?;
        if found.is_empty() {
            return Err(Self::missing(&schema.customer_by_name));
        }
        let middle = found.len() / 2;
        Ok(found.swap_remove(middle))
    }

    pub fn payment(&mut self) -> Result<u64> {
        let schema = self.schema;
        let (w, d) = (self.warehouse, self.between(1, DISTRICTS));
        let amount = self.between(100, 500_000);
        let remote = schema.scale.warehouses > 1 && self.percent(REMOTE_PAYMENT_PERCENT);
        let (c_w, c_d) = if remote { (self.other_warehouse(), self.between(1, DISTRICTS)) } else { (w, d) };
        let (address, _) = self.customer(c_w, c_d)?;
        let (at, mut warehouse) = self.locked((&schema.warehouse.0, &schema.warehouse.1), &[int(w)])?;
        warehouse[4] = int(number(&warehouse, 4) + amount);
        self.session.update(&schema.warehouse.0, at, &warehouse)?;
        let (at, mut district) = self.locked((&schema.district.0, &schema.district.1), &[int(w), int(d)])?;
        district[5] = int(number(&district, 5) + amount);
        self.session.update(&schema.district.0, at, &district)?;
        let customer = self.session.get_for_update(&schema.customer.0, address)?;
        let mut customer = customer.ok_or_else(|| Self::missing(&schema.customer.1))?;
        customer[8] = int(number(&customer, 8) - amount);
        customer[9] = int(number(&customer, 9) + amount);
        customer[10] = int(number(&customer, 10) + 1);
        let c = number(&customer, 2);
        if customer[6] == Value::Text("BC".into())
            && let Value::Text(data) = &customer[12]
        {
            let mut note = format!("{c} {c_d} {c_w} {d} {w} {amount} | {data}");
            note.truncate(500);
            customer[12] = Value::Text(note);
        }
        self.session.update(&schema.customer.0, address, &customer)?;
        let note = text(self.rng, 20);
        let row = vec![int(c), int(c_d), int(c_w), int(d), int(w), int(amount), note];
        self.session.insert(&schema.history, &row)?;
        self.session.commit()?;
        if let Some(Value::Text(note)) = row.into_iter().next_back() {
            self.deed = Deed::Payment { district: [w, d], amount, note };
        }
        Ok(7 * ROW_BYTES)
    }

    pub fn order_status(&mut self) -> Result<u64> {
        let schema = self.schema;
        let (w, d) = (self.warehouse, self.between(1, DISTRICTS));
        let (_, customer) = self.customer(w, d)?;
        let key = [int(w), int(d), int(number(&customer, 2))];
        let mut newest = self.session.range(
            &schema.orders_by_customer,
            Bound::Included(&key),
            Bound::Included(&key),
            true,
        )?;
        let mut rows = 1;
        if let Some((_, order)) = newest.next(self.session)? {
            let key = [int(w), int(d), int(number(&order, 2))];
            rows += 1 + self.session.lookup(&schema.order_line.1, &key)?.len() as u64;
        }
        drop(newest);
        self.session.commit()?;
        Ok(rows * ROW_BYTES)
    }

    pub fn delivery(&mut self) -> Result<u64> {
        let schema = self.schema;
        let (w, carrier) = (self.warehouse, self.between(1, 10));
        let (mut rows, mut orders) = (0, Vec::new());
        for d in 1..=DISTRICTS {
            let Some(order) = self.take_oldest(w, d)? else { continue };
            orders.push([d, order]);
            let key = [int(w), int(d), int(order)];
            let (at, mut row) = self.locked((&schema.orders.0, &schema.orders.1), &key)?;
            row[4] = int(carrier);
            self.session.update(&schema.orders.0, at, &row)?;
            let mut total = 0;
            let lines = self.session.lookup(&schema.order_line.1, &key)?;
            rows += 3 + lines.len() as u64;
            for (at, mut line) in lines {
                total += number(&line, 8);
                line[6] = int(1);
                self.session.update(&schema.order_line.0, at, &line)?;
            }
            let key = [int(w), int(d), int(number(&row, 3))];
            let (at, mut customer) = self.locked((&schema.customer.0, &schema.customer.1), &key)?;
            customer[8] = int(number(&customer, 8) + total);
            customer[11] = int(number(&customer, 11) + 1);
            self.session.update(&schema.customer.0, at, &customer)?;
        }
        self.session.commit()?;
        Ok(rows * ROW_BYTES)
    }

    /// The oldest order of a district that nobody delivers yet; none when all are delivered.
    fn take_oldest(&mut self, w: i64, d: i64) -> Result<Option<i64>> {
        let schema = self.schema;
        let key = [int(w), int(d)];
        let mut open =
            self.session.range(&schema.new_order.1, Bound::Included(&key), Bound::Included(&key), false)?;
        while let Some((address, row)) = open.next(self.session)? {
            // Another delivery may have taken it since: then its newest version is none, and the next one is ours.
            if self.session.get_for_update(&schema.new_order.0, address)?.is_some() {
                self.session.delete(&schema.new_order.0, address)?;
                return Ok(Some(number(&row, 2)));
            }
        }
        Ok(None)
    }

    pub fn stock_level(&mut self) -> Result<u64> {
        let schema = self.schema;
        let (w, d) = (self.warehouse, self.between(1, DISTRICTS));
        let threshold = self.between(10, 20);
        let (_, district) = self.one(&schema.district.1, &[int(w), int(d)])?;
        let next = number(&district, 6);
        let (from, to) = ([int(w), int(d), int((next - 20).max(1))], [int(w), int(d), int(next - 1)]);
        let mut lines =
            self.session.range(&schema.order_line.1, Bound::Included(&from), Bound::Included(&to), false)?;
        let mut items = Vec::new();
        while let Some((_, line)) = lines.next(self.session)? {
            items.push(number(&line, 4));
        }
        drop(lines);
        items.sort_unstable();
        items.dedup();
        let mut low = 0;
        for item in &items {
            let (_, stock) = self.one(&schema.stock.1, &[int(w), int(*item)])?;
            low += u64::from(number(&stock, 2) < threshold);
        }
        self.session.commit()?;
        std::hint::black_box(low);
        Ok((1 + 2 * items.len() as u64) * ROW_BYTES)
    }
}
