//! Kind `orders`: clerks play order-entry; each deed that was acknowledged must be found, and the audit must hold.

use crate::{Checked, child, trees};
use engine::{Instance, Row, Session, Value};
use lab::database::drive::Player as _;
use lab::database::order_entry::{self, Deed, Scale, Think};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::thread::Scope;
use units::{Rng, Seed};

const SCALE: Scale = Scale { warehouses: 2, customers: 20, items: 150 };

/// The tables, in a new database.
pub fn prepare(instance: &Instance, seed: Seed) -> Result<(), String> {
    let mut session = instance.session("prepare").map_err(|e| e.to_string())?;
    order_entry::prepare(&mut session, SCALE, seed, &AtomicBool::new(false)).map_err(|e| e.to_string())
}

/// Clerks who work until the process is killed.
pub fn work<'scope>(
    scope: &'scope Scope<'scope, '_>,
    instance: &Instance,
    first: i64,
    sessions: u32,
    seed: Seed,
) {
    let clerks = order_entry::clerks(instance, sessions, Think::None).expect("clerks");
    for (n, mut clerk) in clerks.into_iter().enumerate() {
        let mut rng = Rng::new(seed.part(n as u64));
        scope.spawn(move || {
            for number in first.. {
                child::say(&format!("b {n} {number}"));
                clerk.play(&mut rng).expect("a transaction");
                child::say(&format!("a {n} {number} {}", words(clerk.deed())));
            }
        });
    }
}

/// A deed in words, for [`parse`].
fn words(deed: &Deed) -> String {
    match deed {
        Deed::Nothing => "nothing".to_owned(),
        Deed::Order { key: [w, d, o], lines } => format!("order {w} {d} {o} {lines}"),
        Deed::Payment { district: [w, d], amount, note } => format!("payment {w} {d} {amount} {note}"),
        Deed::Delivery { warehouse, orders } => {
            let orders: Vec<String> = orders.iter().map(|[d, o]| format!("{d} {o}")).collect();
            format!("delivery {warehouse} {}", orders.join(" "))
        }
    }
}

pub fn parse(words: &str) -> Option<Deed> {
    let (kind, rest) = words.split_once(' ').unwrap_or((words, ""));
    let numbers: Vec<i64> = rest.split(' ').filter_map(|word| word.parse().ok()).collect();
    match (kind, &numbers[..]) {
        ("nothing", []) => Some(Deed::Nothing),
        ("order", [w, d, o, lines]) => Some(Deed::Order { key: [*w, *d, *o], lines: *lines }),
        ("payment", [w, d, amount]) => {
            let note = rest.rsplit(' ').next()?.to_owned();
            Some(Deed::Payment { district: [*w, *d], amount: *amount, note })
        }
        ("delivery", [warehouse, orders @ ..]) => Some(Deed::Delivery {
            warehouse: *warehouse,
            orders: orders.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect(),
        }),
        _ => None,
    }
}

/// What all clerks of a database said.
#[derive(Default)]
pub struct Said {
    pub deeds: Vec<Deed>,
    /// Transactions that were begun and not acknowledged.
    pub uncertain: u64,
}

fn numbers<const N: usize>(row: &Row, columns: [usize; N]) -> [i64; N] {
    columns.map(|column| if let Value::Integer(n) = row[column] { n } else { 0 })
}

/// Each acknowledged deed is there, there are not more than were begun, and the audit holds.
pub fn check(session: &mut Session, said: &Said) -> Checked {
    order_entry::audit(session).map_err(|e| e.to_string())?;
    let orders: BTreeMap<[i64; 3], Row> =
        trees::rows(session, "ORDERS")?.into_values().map(|row| (numbers(&row, [0, 1, 2]), row)).collect();
    let mut lines: BTreeMap<[i64; 3], i64> = BTreeMap::new();
    for row in trees::rows(session, "ORDER_LINE")?.into_values() {
        *lines.entry(numbers(&row, [0, 1, 2])).or_default() += 1;
    }
    let open: BTreeSet<[i64; 3]> =
        trees::rows(session, "NEW_ORDER")?.values().map(|row| numbers(row, [0, 1, 2])).collect();
    let history: BTreeSet<String> =
        trees::rows(session, "HISTORY")?.values().map(|row| format!("{:?}", &row[3..])).collect();
    let (mut made, mut paid) = (0, 0);
    for deed in &said.deeds {
        let there = match deed {
            Deed::Nothing => true,
            Deed::Order { key, lines: promised } => {
                made += 1;
                orders.contains_key(key) && lines.get(key) == Some(promised)
            }
            Deed::Payment { district: [w, d], amount, note } => {
                paid += 1;
                let row =
                    [*d, *w, *amount].map(Value::Integer).into_iter().chain([Value::Text(note.clone())]);
                history.contains(&format!("{:?}", &row.collect::<Row>()[..]))
            }
            Deed::Delivery { warehouse, orders: delivered } => delivered.iter().all(|[d, o]| {
                let key = [*warehouse, *d, *o];
                !open.contains(&key) && orders.get(&key).is_some_and(|row| row[4] != Value::Null)
            }),
        };
        if !there {
            return Err(format!("acknowledged and not there: {deed:?}"));
        }
    }
    let first = (SCALE.warehouses * 10 * SCALE.customers) as u64;
    for (what, found, known) in
        [("orders", orders.len() as u64 - first, made), ("payments", history.len() as u64, paid)]
    {
        if found < known || found > known + said.uncertain {
            return Err(format!(
                "{found} {what}: {known} were acknowledged, {} were begun beside",
                said.uncertain
            ));
        }
    }
    Ok(())
}

/// Harm that the check must notice; each is taken back.
pub const PLANTS: [fn(&mut Session) -> engine::Result<()>; 3] = [
    |session| delete_one(session, "ORDER_LINE"),
    |session| delete_one(session, "NEW_ORDER"),
    |session| {
        let table = session.table("WAREHOUSE")?;
        let (at, mut row) = session.scan(&table)?.next(session)?.expect("a warehouse");
        row[4] = Value::Integer(1);
        session.update(&table, at, &row)
    },
];

fn delete_one(session: &mut Session, name: &str) -> engine::Result<()> {
    let table = session.table(name)?;
    let mut scan = session.scan(&table)?;
    // Not the first of its district: a delivery takes that one, too.
    let mut last = None;
    while let Some((at, _)) = scan.next(session)? {
        last = Some(at);
    }
    session.delete(&table, last.expect("rows"))
}
