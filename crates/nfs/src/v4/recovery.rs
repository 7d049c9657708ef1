//! What to do about a status: wait, make a session, introduce ourselves again, open again. Source: RFC 8881, 8.4 and 15.1; RFC 7530, 9.6.

use crate::Status;
use units::Nanos;

/// What gets a call through after the server refused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remedy {
    /// Nothing: it is the answer.
    None,
    /// The same call once more, as a new one: the server did it, or did not, and no longer knows.
    Again,
    /// The same call after a pause.
    Later,
    /// The connection has to be bound to the session.
    Bind,
    /// The file has to be opened again: the server dropped its state.
    Open,
    /// A new session of the same client id.
    Session,
    /// A new client id; then files are reclaimed, or opened again where the server does not remember.
    Client,
}

/// The remedy for `status`.
pub const fn remedy(status: Status) -> Remedy {
    match status {
        Status::DELAY | Status::GRACE | Status::CLIENTID_BUSY | Status::RECALLCONFLICT => Remedy::Later,
        Status::RETRY_UNCACHED_REP => Remedy::Again,
        Status::CONN_NOT_BOUND_TO_SESSION => Remedy::Bind,
        // 4.0's EXPIRED is said of a state whose client id has lapsed as a whole.
        Status::STALE_CLIENTID | Status::STALE_STATEID | Status::EXPIRED => Remedy::Client,
        Status::BADSESSION
        | Status::DEADSESSION
        | Status::BADSLOT
        | Status::BAD_HIGH_SLOT
        | Status::SEQ_MISORDERED
        | Status::SEQ_FALSE_RETRY => Remedy::Session,
        Status::BAD_STATEID | Status::OLD_STATEID | Status::ADMIN_REVOKED | Status::DELEG_REVOKED => {
            Remedy::Open
        }
        _ => Remedy::None,
    }
}

/// The server has lost, revoked or expired state of ours. RFC 8881, 18.46.3: `EXPIRED_ALL_STATE_REVOKED`,
/// `EXPIRED_SOME_STATE_REVOKED`, `ADMIN_STATE_REVOKED`, `RESTART_RECLAIM_NEEDED`.
pub const STATE_LOST: u32 = 0x08 | 0x10 | 0x20 | 0x100;

/// When a lease has to be renewed.
#[derive(Clone, Copy, Debug)]
pub struct Lease {
    period: Nanos,
    renewed: Nanos,
}

/// What a server is taken to grant that does not say: as most do, a minute and a half; then asked three times in it.
const PERIOD_DEFAULT: Nanos = Nanos::millis(90_000);
/// Shorter is not believed: a renewal takes a round trip.
const PERIOD_MIN: Nanos = Nanos::millis(1_000);

impl Lease {
    /// Of `seconds`, none where the server did not say, renewed at `now`.
    pub fn new(seconds: Option<u32>, now: Nanos) -> Self {
        let told = seconds.map_or(PERIOD_DEFAULT, |s| Nanos::millis(u64::from(s) * 1000));
        Self { period: told.max(PERIOD_MIN), renewed: now }
    }

    /// A call that renews it was sent at `sent` (its arrival is later, so this is on the safe side), and answered.
    pub fn renew(&mut self, sent: Nanos) {
        self.renewed = self.renewed.max(sent);
    }

    /// When the next renewal should be sent: a third of the period after the last.
    pub fn due(&self) -> Nanos {
        self.renewed + Nanos(self.period.0 / 3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_loss_has_its_remedy() {
        for (status, expected) in [
            (Status::NOSPC, Remedy::None),
            (Status::STALE, Remedy::None),
            (Status::DELAY, Remedy::Later),
            (Status::GRACE, Remedy::Later),
            (Status::RETRY_UNCACHED_REP, Remedy::Again),
            (Status::CONN_NOT_BOUND_TO_SESSION, Remedy::Bind),
            (Status::BAD_STATEID, Remedy::Open),
            (Status::BADSESSION, Remedy::Session),
            (Status::STALE_CLIENTID, Remedy::Client),
            (Status::EXPIRED, Remedy::Client),
            (Status(4711), Remedy::None),
        ] {
            assert_eq!(remedy(status), expected, "{status}");
        }
    }

    #[test]
    fn a_lease_is_renewed_three_times_in_its_period() {
        let mut lease = Lease::new(Some(90), Nanos::millis(5_000));
        assert_eq!(lease.due(), Nanos::millis(35_000));
        lease.renew(Nanos::millis(7_000));
        lease.renew(Nanos::millis(6_000));
        assert_eq!(lease.due(), Nanos::millis(37_000), "an older reply that came later changes nothing");
        assert_eq!(Lease::new(Some(0), Nanos(0)).due(), Nanos(PERIOD_MIN.0 / 3), "no spinning");
    }
}
