//! A configuration whose flash cache fails while it is measured: it is left out from then on, and the others go on.

use super::design::LeftOut;
use super::{Comparison, leave_out};
use crate::LabError;
use crate::bench::Bench;
use crate::control::Control;

/// Nothing is compared between fewer.
const CONFIGURATIONS_MIN: usize = 2;

impl Comparison<'_> {
    /// What a visit of configuration `index` met, of `standing` that are still measured. A flash cache that failed costs its configuration, not the run: then
    /// it is told, and `None` comes back. Its visits so far were checked, and stay.
    ///
    /// # Errors
    /// Anything else; also a flash cache of the baseline, or of one of two, which the comparison cannot do without.
    pub(super) fn survive<T>(
        &self,
        index: usize,
        standing: usize,
        met: Result<T, LabError>,
        bench: &mut Bench,
        control: &mut Control<'_>,
    ) -> Result<Option<T>, LabError> {
        match met {
            Err(LabError::Flash(why)) if index > 0 && standing > CONFIGURATIONS_MIN => {
                let what = self.name(index).to_owned();
                let reason = format!("its flash cache failed, and is not used any more: {why}");
                leave_out(bench, control, &LeftOut { what, reason, command: String::new() })?;
                Ok(None)
            }
            met => met.map(Some),
        }
    }
}
