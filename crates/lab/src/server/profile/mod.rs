//! The mix of a server that runs: what its own statistics say that it did in a few minutes, so that a comparison can be weighted for it.
//!
//! One connection that may change nothing reads the counters at both ends ([`counters`]) and counts active sessions in between. What
//! follows from them, and how well each figure is known, is [`mix`]; how it is kept in a file is [`file`]. Where to start: [`watch`].

mod counters;
pub mod file;
pub mod mix;

use super::url::Address;
use super::{Kind, ServerError, major};
use crate::LabError;
use crate::control::Control;
use counters::{Counters, Hot};
use std::sync::atomic::Ordering;
use units::{Bytes, Nanos, clock};
use waits::Grade;

/// What our session is called there.
const PROGRAM: &str = "redoubt profile";
/// How often active sessions are counted.
const LOOK_EVERY: Nanos = Nanos::millis(500);
/// First versions whose statistics say enough: PostgreSQL's `pg_stat_wal`, MariaDB's `Innodb_pages_read` and others as counters.
const POSTGRES_SINCE: u32 = 14;
const MARIADB_SINCE: (u32, u32) = (10, 5);

/// A figure that was derived.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What it is, by the name that AWR gives it where it has one: `logical reads`, `block changes` ….
    pub name: String,
    /// Per second, or a share, or a number, as `unit` says.
    pub value: f64,
    /// `/s`, `bytes/s`, `share`, `bytes` or nothing.
    pub unit: &'static str,
    /// How well it is known.
    pub grade: Grade,
    /// Which of the server's own counters it is, and what was taken for what.
    pub source: String,
}

/// What a server did in a window.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Which product.
    pub kind: Kind,
    /// `15.20`, `10.11.19` ….
    pub version: String,
    /// Where, without the password.
    pub address: String,
    /// When it began, as RFC 3339 has it.
    pub begun_utc: String,
    /// How long.
    pub seconds: f64,
    /// Its block.
    pub block: Bytes,
    /// What was derived.
    pub figures: Vec<Figure>,
    /// Tables or files with the most traffic, the first the most.
    pub hot: Vec<Hot>,
    /// What could not be seen, and what was assumed, in sentences.
    pub assumed: Vec<String>,
}

/// Watches the server for `seconds`; Ctrl-C ends that early, and what was seen until then counts.
///
/// # Errors
/// The server does not answer, is too old, has its statistics off, was reset or restarted meanwhile, or did nothing.
pub fn watch(address: &Address, seconds: f64, control: &mut Control<'_>) -> Result<Profile, LabError> {
    let mut session = address.connect_read_only(PROGRAM)?;
    let version = counters::text(&mut *session, "select version()")?;
    let shown = supported(address.kind, &version)?;
    let mut assumed = counters::doubts(address.kind, &mut *session)?;
    let begun_utc = clock::utc();
    let before = Counters::read(address.kind, &mut *session)?;
    let began = clock::now();
    let until = began + Nanos::secs(seconds);
    let (mut due, mut looks, mut active) = (began, 0_u32, 0_i64);
    while clock::now() < until && !control.cancel.load(Ordering::Relaxed) {
        due += LOOK_EVERY;
        clock::sleep_until(due.min(until));
        active += session.number(counters::active(address.kind))?;
        looks += 1;
        let elapsed = (clock::now() - began).as_secs();
        control.progress.step(&format!("watching {}", address.kind), elapsed, seconds);
    }
    let after = Counters::read(address.kind, &mut *session)?;
    let seconds = (after.at - before.at).as_secs();
    let active = active as f64 / f64::from(looks.max(1));
    let hot = after.hot_since(&before);
    let own = u64::from(looks) + counters::STATEMENTS;
    let derived = mix::derive(address.kind, &before, &after, active, own)?;
    assumed.extend(derived.assumed);
    Ok(Profile {
        kind: address.kind,
        version: shown,
        address: address.to_string(),
        begun_utc,
        seconds,
        block: derived.block,
        figures: derived.figures,
        hot,
        assumed,
    })
}

/// Its version in short.
fn supported(kind: Kind, version: &str) -> Result<String, ServerError> {
    let number = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    let short = version.split([' ', '-']).find(number).unwrap_or_default().to_owned();
    let parts: Vec<u32> = short.split('.').filter_map(|part| part.parse().ok()).collect();
    let second = parts.get(1).copied().unwrap_or(0);
    let (old, since) = match kind {
        Kind::Postgres => (major(&short) < POSTGRES_SINCE, "14 (pg_stat_wal)"),
        Kind::Mariadb if version.contains("MariaDB") => ((major(&short), second) < MARIADB_SINCE, "10.5"),
        Kind::Mariadb => (major(&short) < 8, "8.0"),
    };
    if old {
        return Err(ServerError::Unable {
            kind,
            version: short,
            why: format!("its statistics say enough from {since} on"),
            instead: "--hit-ratio, --read-share and --commits-per-tx to `redoubt compare`, as you know them",
        });
    }
    Ok(short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_old_is_told() {
        let check = |kind, version, ok| assert_eq!(supported(kind, version).is_ok(), ok, "{version}");
        check(Kind::Postgres, "PostgreSQL 15.20 (Debian 15.20-0+deb12u1) on x86_64", true);
        check(Kind::Postgres, "PostgreSQL 13.4 on x86_64", false);
        check(Kind::Mariadb, "10.11.19-MariaDB-0+deb12u1", true);
        check(Kind::Mariadb, "10.4.2-MariaDB", false);
        check(Kind::Mariadb, "8.0.36", true);
        check(Kind::Mariadb, "5.7.44", false);
        let error = supported(Kind::Postgres, "PostgreSQL 13.4").expect_err("too old").to_string();
        assert!(error.contains("13.4") && error.contains("14 (pg_stat_wal)"), "{error}");
    }
}
