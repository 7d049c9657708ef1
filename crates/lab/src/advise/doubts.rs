//! What must be known beside a prediction: rules of its own, A1 to A3 (docs/results.md).

use super::Around;
use super::predict::WARM;
use crate::evidence::run_row;
use record::CheckRow;
use stats::mrc::{Event, References};
use std::collections::HashSet;

/// Fewer followed blocks than this, and a few hot ones decide.
const BLOCKS_MIN: usize = 4_096;
/// More first reads than this among those that are counted, and the cache was not warm.
const FIRST_READS_MAX: f64 = 0.2;
/// Beyond this factor the devices that were measured are not those of the run.
const FIT_MAX: f64 = 2.0;

/// A1: enough blocks; A2: long enough; A3: the devices are those of the run.
pub(super) fn checks(references: &References, around: Option<&Around>) -> Vec<CheckRow> {
    let mut all = vec![enough_blocks(references), long_enough(references)];
    all.extend(around.and_then(same_devices));
    all
}

fn enough_blocks(references: &References) -> CheckRow {
    let followed = references.blocks() * references.rate;
    run_row(
        "A1",
        "enough blocks were followed",
        references.rate >= 1.0 || followed >= BLOCKS_MIN as f64,
        followed,
        format!("all, or {BLOCKS_MIN} at least"),
        format!("{followed:.0} blocks, {:.2} % of all, were followed", references.rate * 100.0),
    )
}

fn long_enough(references: &References) -> CheckRow {
    let counted_from = (references.len() as f64 * WARM) as usize;
    let (mut known, mut counted, mut first) = (HashSet::new(), 0_u64, 0_u64);
    for (index, reference) in references.iter().enumerate() {
        if reference.event == Event::Read {
            let new = known.insert(reference.block);
            counted += u64::from(index >= counted_from);
            first += u64::from(new && index >= counted_from);
        }
    }
    let share = first as f64 / counted.max(1) as f64;
    run_row(
        "A2",
        "the references are long enough",
        share <= FIRST_READS_MAX,
        share,
        format!("at most {:.0} % of the reads that are counted are first reads", FIRST_READS_MAX * 100.0),
        format!(
            "{:.0} % of the reads that are counted are of blocks that were never read before: no cache of any size has them, and a longer run \
             may find that one does",
            share * 100.0
        ),
    )
}

fn same_devices(around: &Around) -> Option<CheckRow> {
    let factor = around.fit?;
    Some(run_row(
        "A3",
        "the slow place is the one of the run",
        (1.0 / FIT_MAX..=FIT_MAX).contains(&factor),
        factor,
        format!("{:.1} to {FIT_MAX:.1}", 1.0 / FIT_MAX),
        format!(
            "to explain the reads per second of the run, the slow place must be {factor:.2} × as fast as it was measured"
        ),
    ))
}
