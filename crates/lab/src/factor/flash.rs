//! What belongs to a flash cache, and to nothing else.

use super::{Factor, FileClass, Setup, Storage};
use std::fmt;
use std::str::FromStr;

/// What is let into the flash cache: `db_flash_cache_policy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlashPolicy {
    /// What is wanted again; gently while sessions read.
    #[default]
    ScanResistant,
    /// All that is evicted, as fast as the writer can.
    Classic,
}

impl FlashPolicy {
    /// As it is typed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ScanResistant => "scan_resistant",
            Self::Classic => "classic",
        }
    }
}

impl fmt::Display for FlashPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for FlashPolicy {
    type Err = String;

    /// # Errors
    /// A sentence that says what to type.
    fn from_str(text: &str) -> Result<Self, String> {
        [Self::ScanResistant, Self::Classic].into_iter().find(|policy| policy.name() == text).ok_or_else(
            || format!("{text:?} is not a policy of the flash cache; type {}", Factor::FlashPolicy.grammar()),
        )
    }
}

impl Factor {
    /// Whether it means nothing without a flash cache.
    pub const fn needs_flash(self) -> bool {
        matches!(self, Self::FlashSize | Self::FlashPolicy)
    }
}

impl Setup {
    /// Where the flash cache lies; none: there is none.
    pub fn flash(&self) -> Option<&Storage> {
        self.place.get(&FileClass::Flash)
    }

    /// The classes of files that its database has.
    pub fn classes(&self) -> impl Iterator<Item = FileClass> + '_ {
        FileClass::ALL.into_iter().chain(self.flash().map(|_| FileClass::Flash))
    }
}
