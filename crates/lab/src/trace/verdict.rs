//! Direct? Durable when it returns? Truly asynchronous? From what was counted.

use super::figures::{Act, Direction, Figures};
use host::trace::process::{is_direct, is_durable};

/// Above this share of requests that were done at return, or of time inside the call, it was no asynchronous call.
const SHARE_MAX: f64 = 0.5;

/// How something is done to one class of files by one role.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Verdict {
    /// Past the page cache; none where files are open in both ways, or nobody could look.
    pub(super) direct: Option<bool>,
    /// What makes writes durable; none for reads.
    pub(super) durable: Option<Durable>,
    /// Does the caller go on meanwhile?
    pub(super) manner: Manner,
    /// Share of requests that were done when the call that handed them over went on.
    pub(super) done_at_return: f64,
    /// Share of the time until the last completion that went into handing over.
    pub(super) inside: f64,
    /// Share of requests that a worker of the kernel took.
    pub(super) workers: f64,
}

/// What makes writes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Durable {
    /// Each when it returns (`O_DSYNC`, `O_SYNC`).
    OnReturn,
    /// A call of the same thread afterwards.
    BySync,
    /// Nothing that this role does.
    Later,
}

/// How asynchronous it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    Blocking,
    Really,
    Workers,
    Held,
    NameOnly,
}

impl Manner {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Blocking => "blocking",
            Self::Really => "really",
            Self::Workers => "workers",
            Self::Held => "held",
            Self::NameOnly => "name_only",
        }
    }
}

impl Durable {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::OnReturn => "on_return",
            Self::BySync => "by_sync",
            Self::Later => "later",
        }
    }
}

/// Judges what `acts` did in `direction`; none where they did nothing. `flags`: of the open files, all that were seen.
pub(super) fn judge(flags: &[u32], acts: &[(Act, &Figures)], direction: Direction) -> Option<Verdict> {
    let own = || acts.iter().filter(move |(act, _)| act.direction() == direction);
    let sum = |of: fn(&Figures) -> u64, queued: bool| -> u64 {
        own().filter(|(act, _)| !queued || !matches!(act, Act::Call(_))).map(|(_, figures)| of(figures)).sum()
    };
    let requests = sum(|f| f.requests, false);
    if requests == 0 {
        return None;
    }
    let queued = sum(|f| f.requests, true);
    let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    let done_at_return = share(sum(|f| f.done_at_return, true), queued);
    let (inside, workers) = (
        share(sum(|f| f.submit_ns, true), sum(|f| f.span_ns, true)).min(1.0),
        share(sum(|f| f.to_workers, true), queued),
    );
    let direct = agree(flags, is_direct);
    let is_aio = own().any(|(act, _)| matches!(act, Act::Aio(_)));
    let manner = match () {
        () if queued * 2 < requests => Manner::Blocking,
        () if done_at_return > SHARE_MAX => Manner::NameOnly,
        () if workers > SHARE_MAX => Manner::Workers,
        // libaio does not tell which were done; through the page cache the kernel does the transfer inside the call.
        () if is_aio && direct == Some(false) => Manner::NameOnly,
        () if inside > SHARE_MAX => Manner::Held,
        () if workers > 0.05 => Manner::Workers,
        () => Manner::Really,
    };
    let synced =
        || acts.iter().any(|(act, figures)| act.direction() == Direction::Sync && figures.requests > 0);
    let durable = (direction == Direction::Write).then(|| match () {
        () if agree(flags, is_durable) == Some(true) => Durable::OnReturn,
        () if synced() => Durable::BySync,
        () => Durable::Later,
    });
    Some(Verdict { direct, durable, manner, done_at_return, inside, workers })
}

/// What all say; none where they differ or nobody says anything.
fn agree(flags: &[u32], says: fn(u32) -> bool) -> Option<bool> {
    let first = says(*flags.first()?);
    flags.iter().all(|flags| says(*flags) == first).then_some(first)
}
