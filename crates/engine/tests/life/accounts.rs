//! A workload with a law: money moves between accounts, each transfer is one transaction, the sum never changes. A transfer
//! also writes its number to a journal.

use crate::machine::{create_table, row};
use engine::space::IndexDef;
use engine::{Instance, Result, RowId, Session, Value};
use units::{Rng, Seed};

/// So many that not all of them are cached.
pub const ACCOUNTS: i64 = 800;
const BEGIN: i64 = 1000;

/// Accounts and journal in a new database.
pub fn prepare(instance: &Instance) {
    let mut session = instance.session("prepare").unwrap();
    create_table(&mut session, "accounts");
    create_table(&mut session, "journal");
    let index = IndexDef {
        name: "journal_id".into(),
        table: "journal".into(),
        columns: vec!["id".into()],
        unique: true,
        tablespace: None,
    };
    session.create_index(&index).unwrap();
    let table = session.table("accounts").unwrap();
    for _ in 0..ACCOUNTS {
        session.insert(&table, &row(BEGIN, &"-".repeat(500))).unwrap();
    }
    session.commit().unwrap();
}

fn addresses(session: &mut Session) -> Result<Vec<RowId>> {
    let table = session.table("accounts")?;
    let mut scan = session.scan(&table)?;
    let mut addresses = Vec::new();
    while let Some((address, _)) = scan.next(session)? {
        addresses.push(address);
    }
    Ok(addresses)
}

/// Transfers `from..to`, seeded; `acknowledged` is told each number when its commit has returned. Every fifth one is rolled
/// back, and its number is not in the journal.
pub fn run(
    session: &mut Session,
    transfers: std::ops::Range<i64>,
    seed: Seed,
    acknowledged: &dyn Fn(i64),
) -> Result<()> {
    let mut rng = Rng::new(seed);
    let addresses = addresses(session)?;
    let (accounts, journal) = (session.table("accounts")?, session.table("journal")?);
    for number in transfers {
        let amount = rng.below(100) as i64;
        let a = rng.below(addresses.len() as u64) as usize;
        let b = (a + 1 + rng.below(addresses.len() as u64 - 1) as usize) % addresses.len();
        for (account, change) in [(a, -amount), (b, amount)] {
            let address = addresses[account];
            let old = session.get_for_update(&accounts, address)?.expect("accounts are not deleted");
            let Value::Integer(balance) = old[0] else { panic!("{old:?}") };
            // Of varying length, so that rows move.
            let text = "x".repeat(rng.below(1000) as usize);
            session.update(&accounts, address, &row(balance + change, &text))?;
        }
        session.insert(&journal, &row(number, "transfer"))?;
        if number % 5 == 4 {
            session.rollback()?;
        } else {
            session.commit()?;
            acknowledged(number);
        }
    }
    Ok(())
}

/// The law holds; the numbers in the journal, sorted.
pub fn check(instance: &Instance) -> Vec<i64> {
    let mut session = instance.session("check").unwrap();
    let balances = crate::machine::ids(&mut session, "accounts");
    assert_eq!(balances.len() as i64, ACCOUNTS);
    assert_eq!(balances.iter().sum::<i64>(), ACCOUNTS * BEGIN, "money was made or lost");
    let journal = crate::machine::ids(&mut session, "journal");
    let index = session.index("journal_id").unwrap();
    for number in &journal {
        let found = session.lookup(&index, &[Value::Integer(*number)]).unwrap();
        assert_eq!(found.len(), 1, "transfer {number} by its index");
    }
    journal
}
