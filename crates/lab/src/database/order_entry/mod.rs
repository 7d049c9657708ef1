//! Case `order-entry`: five kinds of transactions of a wholesale supplier, in a fixed mix.
//!
//! Derived from the TPC-C specification; not comparable to published TPC-C results, as it does not comply with all
//! requirements of the TPC-C benchmark. `schema`: tables and first rows; `transactions`: what each kind does; `audit`: what must
//! hold at the end.

mod audit;
mod schema;
mod transactions;

pub use schema::{Scale, prepare};

use super::drive::{self, Performance, Played, Player, Terms};
use super::{Action, sessions};
use crate::LabError;
use engine::{EngineError, Instance, Session};
use schema::Schema;
use std::sync::Arc;
use units::{Nanos, Rng};

/// The kinds, in the order of the figures below.
pub const CLASSES: [&str; 5] = ["new order", "payment", "order status", "delivery", "stock level"];
/// Their shares in percent.
const MIX: [u64; 5] = [45, 43, 4, 4, 4];
/// Keying times, seconds, under [`Think::Spec`].
const KEYING: [f64; 5] = [18.0, 3.0, 2.0, 2.0, 2.0];
/// Mean think times, seconds, under [`Think::Spec`].
const THINKING: [f64; 5] = [12.0, 12.0, 10.0, 5.0, 5.0];
/// [`Think::Light`] divides both by this.
const LIGHT: f64 = 100.0;
/// A transaction that lost a deadlock is played again this often before the run gives up.
const ATTEMPTS: u32 = 100;

/// How long users think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Think {
    /// Not at all.
    None,
    /// A hundredth of the specification's times.
    Light,
    /// Keying times constant, think times exponential, truncated at ten times their mean.
    Spec,
}

/// What a committed transaction left in the tables, for whoever looks for it after a crash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Deed {
    /// Nothing: it only read, or was rolled back.
    #[default]
    Nothing,
    /// An order.
    Order {
        /// Its key: warehouse, district, number.
        key: [i64; 3],
        /// How many order lines it has.
        lines: i64,
    },
    /// A row of history.
    Payment {
        /// Warehouse and district that were paid.
        district: [i64; 2],
        /// Cents.
        amount: i64,
        /// `H_DATA`.
        note: String,
    },
    /// Orders that have a carrier now.
    Delivery {
        /// Of which warehouse.
        warehouse: i64,
        /// District and number of each.
        orders: Vec<[i64; 2]>,
    },
}

/// Someone who enters transactions; see [`clerks`].
pub struct Clerk {
    session: Session,
    schema: Arc<Schema>,
    warehouse: i64,
    think: Think,
    deed: Deed,
    actions: [Action; CLASSES.len()],
    deadlocks: u64,
}

impl Clerk {
    /// What the last transaction left.
    pub fn deed(&self) -> &Deed {
        &self.deed
    }

    fn enter(&mut self, class: usize, rng: &mut Rng) -> Result<u64, EngineError> {
        let mut work = transactions::Work {
            session: &mut self.session,
            schema: &self.schema,
            warehouse: self.warehouse,
            deed: Deed::Nothing,
            rng,
        };
        let bytes = match class {
            0 => work.new_order(),
            1 => work.payment(),
            2 => work.order_status(),
            3 => work.delivery(),
            _ => work.stock_level(),
        }?;
        self.deed = work.deed;
        Ok(bytes)
    }
}

/// Clerks on sessions of their own, `count` of them, spread over the warehouses that [`prepare`] made.
///
/// # Errors
/// What the engine says.
pub fn clerks(instance: &Instance, count: u32, think: Think) -> Result<Vec<Clerk>, LabError> {
    let schema = Arc::new(Schema::open(&mut instance.session("order-entry")?)?);
    let clerk = |(index, session)| {
        let warehouse = 1 + index as i64 % schema.scale.warehouses;
        let actions = CLASSES.map(|class| Action::new(&session, class));
        let deed = Deed::Nothing;
        Clerk { session, schema: schema.clone(), warehouse, think, deed, actions, deadlocks: 0 }
    };
    Ok(sessions(instance, "order-entry", count)?.into_iter().enumerate().map(clerk).collect())
}

/// What must hold when nobody works: TPC-C's consistency conditions, as far as these tables have them.
///
/// # Errors
/// The first condition that does not hold; what the engine says.
pub fn audit(session: &mut Session) -> Result<(), LabError> {
    let schema = Schema::open(session)?;
    audit::run(session, &schema)
}

impl Player for Clerk {
    fn play(&mut self, rng: &mut Rng) -> Result<Played, LabError> {
        // Drawn once, so that a deadlock does not change the mix.
        let class = draw(rng);
        self.actions[class].set(&self.session);
        for _ in 0..ATTEMPTS {
            match self.enter(class, rng) {
                Ok(bytes) => return Ok(Played { class, bytes }),
                Err(EngineError::Deadlock { .. }) => {
                    self.deadlocks += 1;
                    self.session.rollback()?;
                }
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

impl Think {
    /// Keying and thinking after a transaction of `class`.
    pub fn pause(self, class: usize, rng: &mut Rng) -> Nanos {
        let mean = THINKING[class];
        let spec = KEYING[class] + rng.exponential(mean).min(10.0 * mean);
        match self {
            Self::None => Nanos(0),
            Self::Light => Nanos::secs(spec / LIGHT),
            Self::Spec => Nanos::secs(spec),
        }
    }
}

/// The class of the next transaction.
pub(crate) fn draw(rng: &mut Rng) -> usize {
    let mut at = rng.below(100);
    for (class, share) in MIX.into_iter().enumerate() {
        if at < share {
            return class;
        }
        at -= share;
    }
    unreachable!("shares add up to 100")
}

/// Plays until the window is over, then audits the data.
///
/// # Errors
/// What the engine says; data that is not consistent.
pub fn run(
    instance: &Instance,
    count: u32,
    think: Think,
    audited: bool,
    terms: Terms<'_>,
) -> Result<Performance, LabError> {
    let players =
        clerks(instance, count, think)?.into_iter().map(|clerk| Box::new(clerk) as Box<dyn Player>).collect();
    let performance = drive::play(instance, players, CLASSES.len(), terms)?;
    if audited {
        audit(&mut instance.session("order-entry")?)?;
    }
    Ok(performance)
}
