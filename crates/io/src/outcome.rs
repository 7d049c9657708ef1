//! How one transfer ended.

use crate::error::IoError;
use std::path::Path;

/// Every transfer ends as exactly one of these. A short transfer is never success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// All bytes asked for were transferred (or the sync was done).
    Full,
    /// Fewer bytes than asked for; the number is what was done. Zero on a read means end of file.
    Short(u32),
    /// Nothing usable: the error number, positive, as in `errno(3)`.
    Errno(i32),
}

impl Outcome {
    /// From what the kernel returned: `-errno`, or the bytes done out of `wanted`.
    #[inline]
    pub const fn from_result(result: i64, wanted: u32) -> Self {
        if result < 0 {
            Self::Errno(-result as i32)
        } else if result == wanted as i64 {
            Self::Full
        } else {
            Self::Short(result as u32)
        }
    }

    /// Whether everything asked for was done.
    #[inline]
    pub const fn is_full(self) -> bool {
        matches!(self, Self::Full)
    }

    /// As a result, for a [`crate::sim::Disk`] that does not know its name: `Full` is `Ok`. [`crate::File::check`] says more
    /// where there is a file.
    ///
    /// # Errors
    /// [`IoError::ShortTransfer`], or what fits the error number.
    #[inline]
    pub fn check(self, path: &Path, call: &'static str, offset: u64, wanted: u32) -> Result<(), IoError> {
        match self {
            Self::Full => Ok(()),
            Self::Short(done) => {
                Err(IoError::ShortTransfer { path: path.to_path_buf(), call, offset, wanted, done })
            }
            Self::Errno(errno) => Err(IoError::from_errno(path, call, offset, errno)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Outcome;

    #[test]
    fn each_result_is_exactly_one_outcome() {
        for (result, outcome) in [
            (8192, Outcome::Full),
            (4096, Outcome::Short(4096)),
            (0, Outcome::Short(0)),
            (-5, Outcome::Errno(5)),
            (-28, Outcome::Errno(28)),
        ] {
            assert_eq!(Outcome::from_result(result, 8192), outcome);
        }
        assert_eq!(Outcome::from_result(0, 0), Outcome::Full, "a sync transfers nothing");
    }
}
