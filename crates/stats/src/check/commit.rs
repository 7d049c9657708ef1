//! J6: is the commit time that samples show the one that clients wait?

use super::{Check, Entry, Status, grouped, time};

const J6: Entry = Entry::context(
    "J6",
    "commit time in the samples is the client's",
    "sampled `log file sync` and other waits in commits, per commit / the client's commit time: warn outside 0.9-1.1, fail outside 0.75-1.33",
);
/// Where commits wait for nothing, samples may show this share of a statement.
const SHARE_MIN: f64 = 0.1;
/// Fewer looks say nothing.
const TICKS_MIN: usize = 50;

/// Commit times, from both sides of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CommitTime {
    /// `log file sync` by the samples, nanoseconds of a commit.
    pub sampled_ns: f64,
    /// Other waits of commits by the samples (undo blocks that are read, latches), nanoseconds of a commit.
    pub elsewhere_ns: f64,
    /// What a commit takes the client, nanoseconds; none where too few were timed.
    pub client_ns: Option<f64>,
    /// What a statement takes the client together with its commit, nanoseconds.
    pub statement_ns: f64,
    /// Commits in the window.
    pub commits: u64,
    /// Looks of the sampler in the window.
    pub ticks: usize,
    /// The server is set so that commits wait for their redo.
    pub waits: bool,
}

/// J6: sampled time in `log file sync` and in other waits of commits, per commit, against what commits take the client.
pub fn commit_time(seen: &CommitTime) -> Check {
    let Some(client_ns) = seen.client_ns.filter(|_| seen.commits > 0) else {
        return J6.absent("Too few commits were timed by themselves; type more --minutes.");
    };
    if seen.ticks < TICKS_MIN {
        return J6.absent(format!(
            "{} looks at the sessions are too few to hold against the client's clock; type more --minutes.",
            seen.ticks
        ));
    }
    let elsewhere = match seen.elsewhere_ns / seen.sampled_ns.max(1.0) {
        share if share < 0.005 => String::new(),
        _ => format!(", {} of other waits inside the commit", time(seen.elsewhere_ns)),
    };
    let told = format!(
        "{} commits: the samples say {} of log file sync each{elsewhere}, the client waits {} of the {} that a statement takes",
        grouped(seen.commits as f64),
        time(seen.sampled_ns),
        time(client_ns),
        time(seen.statement_ns)
    );
    let least = SHARE_MIN * seen.statement_ns;
    match (seen.waits, seen.sampled_ns < least) {
        (false, true) => {
            let evidence = format!("{told}: commits wait for nothing here, and none is shown to.");
            return J6.answer(Status::Pass, f64::NAN, evidence);
        }
        (false, false) => {
            let evidence = format!(
                "{told}: the server is set so that commits wait for nothing; other work is taken for it."
            );
            return J6.answer(Status::Warn, f64::NAN, evidence);
        }
        (true, _) => {}
    }
    let ratio = (seen.sampled_ns + seen.elsewhere_ns) / client_ns.max(1.0);
    let status = super::within(ratio, (0.9, 1.1), (0.75, 1.0 / 0.75));
    let cause = match status {
        Status::Pass => "; they agree.",
        _ if ratio < 1.0 => {
            ": a part of the commit is not in the picture as such; it shows as CPU or another wait, or the client waited for a processor."
        }
        _ => ": the picture shows more commit than clients wait for; other work is taken for it.",
    };
    J6.answer(status, ratio, told + cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_agree_or_the_reason_is_told() {
        let check_of = |waits, sampled_us: f64, client_us: Option<f64>, ticks, status, word: &str| {
            let seen = CommitTime {
                sampled_ns: sampled_us * 1e3,
                elsewhere_ns: 0.0,
                client_ns: client_us.map(|us| us * 1e3),
                statement_ns: 1_000_000.0,
                commits: 5_000,
                ticks,
                waits,
            };
            let check = commit_time(&seen);
            assert_eq!(check.status, status, "{}", check.evidence);
            assert!(check.evidence.contains(word), "{}", check.evidence);
            assert!(!check.withdraws());
        };
        let check = |sampled_us, client_us, ticks, status, word| {
            check_of(true, sampled_us, client_us, ticks, status, word);
        };
        check(900.0, Some(950.0), 100, Status::Pass, "agree");
        check(800.0, Some(950.0), 100, Status::Warn, "not in the picture");
        check(950.0, Some(800.0), 100, Status::Warn, "taken for it");
        check(400.0, Some(900.0), 100, Status::Fail, "not in the picture");
        check_of(false, 0.0, Some(120.0), 100, Status::Pass, "none is shown");
        check_of(false, 300.0, Some(120.0), 100, Status::Warn, "wait for nothing");
        check(0.0, Some(800.0), 100, Status::Fail, "not in the picture");
        let inside = CommitTime {
            sampled_ns: 700e3,
            elsewhere_ns: 200e3,
            client_ns: Some(950e3),
            statement_ns: 2e6,
            commits: 5_000,
            ticks: 100,
            waits: true,
        };
        let agreed = commit_time(&inside);
        assert_eq!(agreed.status, Status::Pass);
        assert!(agreed.evidence.contains("200 µs of other waits inside the commit"), "{}", agreed.evidence);
        check(900.0, None, 100, Status::NotApplicable, "--minutes");
        check(900.0, Some(900.0), 10, Status::NotApplicable, "too few");
    }
}
