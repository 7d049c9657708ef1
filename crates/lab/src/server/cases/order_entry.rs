//! Case `order-entry` on a server: the five kinds of transactions as its own procedures, called by prepared statements.
//!
//! Derived from the TPC-C specification; not comparable to published TPC-C results, as it does not comply with all
//! requirements of the TPC-C benchmark. Chance inside a transaction is the server's own; which one comes next is ours.

use super::play;
use crate::LabError;
use crate::database::drive::{Performance, Played, Player, Terms};
use crate::database::inconsistent;
use crate::database::order_entry::{CLASSES, Scale, Think, draw};
use crate::server::connection::StatementId;
use crate::server::site::Site;
use crate::server::{Connection, Kind, Parameter, ServerError};
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Nanos, Rng};

/// A transaction that lost a deadlock is played again this often before the run gives up.
const ATTEMPTS: u32 = 100;
/// Bytes that a transaction of each kind moves, roughly, for the time line.
const BYTES: [u64; 5] = [10_200, 2_100, 3_600, 39_000, 60_000];
/// The procedures, in the order of [`CLASSES`], with how many of (warehouse, warehouses, customers, items) each takes.
const PROCEDURES: [(&str, &[usize]); 5] = [
    ("new_order", &[0, 1, 2, 3]),
    ("payment", &[0, 1, 2]),
    ("order_status", &[0, 2]),
    ("delivery", &[0]),
    ("stock_level", &[0]),
];

/// What must hold when nobody works any more; each counts what breaks it.
const CONDITIONS: [(&str, &str); 5] = [
    (
        "W_YTD is the sum of its districts",
        "select count(*) from warehouse where w_ytd <> (select sum(d_ytd) from district where d_w_id = w_id)",
    ),
    (
        "D_YTD is what its history says",
        "select count(*) from district left join (select h_w_id, h_d_id, sum(h_amount) as paid from history \
         group by h_w_id, h_d_id) as p on h_w_id = d_w_id and h_d_id = d_id where d_ytd <> 3000000 + coalesce(paid, 0)",
    ),
    (
        "D_NEXT_O_ID follows the newest order",
        "select count(*) from district where d_next_o_id - 1 <> \
         (select max(o_id) from orders where o_w_id = d_w_id and o_d_id = d_id)",
    ),
    (
        "every order has its lines",
        "select count(*) from (select o_w_id, o_d_id, sum(o_ol_cnt) as promised from orders group by o_w_id, o_d_id) as o \
         join (select ol_w_id, ol_d_id, count(*) as found from order_line group by ol_w_id, ol_d_id) as l \
         on ol_w_id = o_w_id and ol_d_id = o_d_id where promised <> found",
    ),
    (
        "new orders are those without a carrier",
        "select count(*) from (select o_w_id, o_d_id, count(*) as undelivered from orders where o_carrier_id is null \
         group by o_w_id, o_d_id) as o left join (select no_w_id, no_d_id, count(*) as waiting from new_order \
         group by no_w_id, no_d_id) as n on no_w_id = o_w_id and no_d_id = o_d_id where undelivered <> coalesce(waiting, 0)",
    ),
];

/// Makes tables, first rows, indexes and procedures.
///
/// # Errors
/// What the server says; [`LabError::Cancelled`].
pub fn prepare(server: &dyn Site, scale: Scale, cancel: &AtomicBool) -> Result<(), LabError> {
    let mut session = server.connect("prepare")?;
    let script = script(server.kind(), scale);
    let statements: Vec<&str> = match server.kind() {
        Kind::Postgres => script.split("\n\n").collect(),
        Kind::Mariadb => script.split("\n;;\n").collect(),
    };
    for statement in statements {
        if cancel.load(Ordering::Relaxed) {
            return Err(LabError::Cancelled);
        }
        session.execute(statement)?;
    }
    if server.kind() == Kind::Postgres {
        session.execute("vacuum analyze")?;
    }
    Ok(())
}

/// The statements that make it all, with the scale in them.
pub fn script(kind: Kind, scale: Scale) -> String {
    let text = match kind {
        Kind::Postgres => include_str!("../postgres/order_entry.sql"),
        Kind::Mariadb => include_str!("../mariadb/order_entry.sql"),
    };
    text.replace(":warehouses", &scale.warehouses.to_string())
        .replace(":customers", &scale.customers.to_string())
        .replace(":items", &scale.items.to_string())
}

struct Clerk {
    session: Box<dyn Connection>,
    calls: [StatementId; 5],
    /// Warehouse, warehouses, customers, items.
    numbers: [i64; 4],
    think: Think,
}

impl Player for Clerk {
    fn play(&mut self, rng: &mut Rng) -> Result<Played, LabError> {
        // Drawn once, so that a deadlock does not change the mix.
        let class = draw(rng);
        let mut parameters = [Parameter::Integer(0); 4];
        let takes = PROCEDURES[class].1;
        for (place, at) in parameters.iter_mut().zip(takes) {
            *place = Parameter::Integer(self.numbers[*at]);
        }
        for _ in 0..ATTEMPTS {
            match self.session.call(self.calls[class], &parameters[..takes.len()]) {
                Ok(_) => return Ok(Played { class, bytes: BYTES[class] }),
                // The server has rolled it back.
                Err(error) if error.is_deadlock() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(LabError::Workload {
            workload: "order-entry",
            reason: format!("a transaction lost {ATTEMPTS} deadlocks one after the other"),
        })
    }

    fn pause(&self, class: usize, rng: &mut Rng) -> Nanos {
        self.think.pause(class, rng)
    }
}

/// The calls of a session, prepared, in the order of [`CLASSES`].
fn calls(kind: Kind, session: &mut dyn Connection) -> Result<[StatementId; 5], ServerError> {
    let mut calls = [StatementId(0); 5];
    for (call, (name, takes)) in calls.iter_mut().zip(PROCEDURES) {
        let places: Vec<String> = (1..=takes.len()).map(|n| kind.place(n)).collect();
        *call = session.prepare(&format!("call {name}({})", places.join(", ")))?;
    }
    Ok(calls)
}

/// Plays until the window is over; `audited`: then audits the data.
///
/// # Errors
/// What the server says; data that is not consistent.
pub fn run(
    server: &dyn Site,
    scale: Scale,
    count: u32,
    think: Think,
    audited: bool,
    terms: Terms<'_>,
) -> Result<Performance, LabError> {
    let mut players: Vec<Box<dyn Player>> = Vec::new();
    for index in 0..count {
        let mut session = server.connect(&format!("order-entry {index}"))?;
        let calls = calls(server.kind(), &mut *session)?;
        let warehouse = 1 + i64::from(index) % scale.warehouses;
        let numbers = [warehouse, scale.warehouses, scale.customers, scale.items];
        players.push(Box::new(Clerk { session, calls, numbers, think }));
    }
    let performance = play(server, players, CLASSES.len(), terms)?;
    if audited {
        audit(&mut *server.connect("audit")?)?;
    }
    Ok(performance)
}

/// What must hold when nobody works.
fn audit(session: &mut dyn Connection) -> Result<(), LabError> {
    for (condition, query) in CONDITIONS {
        let broken = session.number(query)?;
        if broken > 0 {
            return Err(inconsistent("order-entry", format!("{condition}: not so in {broken} cases")));
        }
    }
    Ok(())
}
