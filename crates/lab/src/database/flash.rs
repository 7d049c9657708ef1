//! The flash cache of a database of ours: what it is opened with, and whether that is in force.

use crate::LabError;
use crate::factor::FlashPolicy;
use crate::stage::Proof;
use engine::Instance;
use std::path::PathBuf;
use units::Bytes;

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
        if let Some(cause) = flash.off_cause() {
            return Err(LabError::Flash(format!("it was switched off: {cause}")));
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
}
