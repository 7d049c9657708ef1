//! The flash cache of a database of ours: what it is opened with, and whether that is in force.

use crate::LabError;
use crate::factor::FlashPolicy;
use crate::stage::Proof;
use engine::Instance;
use stats::check::{Check, Severity, Status};
use std::path::PathBuf;
use units::{Bytes, Nanos};

/// A flash cache that was asked for.
#[derive(Clone, Debug)]
pub struct Flash {
    /// Its file or device.
    pub file: PathBuf,
    /// Its size.
    pub bytes: Bytes,
    /// What is let in.
    pub policy: FlashPolicy,
}

impl Flash {
    /// As the database takes it.
    pub fn parameters(&self) -> [(String, String); 3] {
        [
            ("db_flash_cache_file".into(), self.file.display().to_string()),
            ("db_flash_cache_size".into(), self.bytes.0.to_string()),
            ("db_flash_cache_policy".into(), self.policy.to_string()),
        ]
    }

    /// What `v$flashfilestat` shows of it.
    ///
    /// # Errors
    /// [`LabError::Flash`] when it is another one, or was switched off.
    pub fn proof(&self, instance: &Instance) -> Result<Proof, LabError> {
        let Some(flash) = instance.core.cache.flash() else {
            return Err(LabError::Flash(format!("{} was not opened", self.file.display())));
        };
        if let Some(off) = flash.off() {
            return Err(LabError::Flash(format!("it was switched off: {}", off.cause)));
        }
        match &flash.file_rows()[..] {
            [row] if row.name == self.file && row.bytes == self.bytes.0 && row.enabled => Ok(Proof::new(
                "flash cache",
                format!(
                    "v$flashfilestat: {}, {} bytes, enabled; {}",
                    row.name.display(),
                    row.bytes,
                    self.policy
                ),
            )),
            rows => Err(LabError::Flash(format!(
                "{} of {} was asked for, and v$flashfilestat shows {rows:?}",
                self.file.display(),
                self.bytes
            ))),
        }
    }

    /// E4: whether it worked until now, in a run that began to measure at `began`.
    pub fn stayed_on(&self, instance: &Instance, began: Nanos) -> Check {
        let off = instance.core.cache.flash().and_then(|flash| flash.off());
        let seconds = off.map(|off| Nanos(off.at.0.saturating_sub(began.0)).as_secs());
        let evidence = match off.zip(seconds) {
            Some((off, seconds)) => format!(
                "It was switched off {seconds:.1} s into the measurement: {}. Blocks came from the data files from then on, and no answer was \
                 wrong; the figures are partly those of a database without one. Look at dmesg and smartctl -a of its device.",
                off.cause
            ),
            None => format!("{} was in use all the time.", self.file.display()),
        };
        Check {
            id: "E4",
            title: "the flash cache stays on",
            severity: Severity::Integrity,
            status: if off.is_some() { Status::Fail } else { Status::Pass },
            value: seconds,
            threshold: "fail when it is switched off",
            evidence,
        }
    }
}
