//! The vocabulary of configurations: which API carries requests, which I/O mode opens files.

use crate::error::IoError;
use std::fmt;
use std::str::FromStr;

/// How requests reach the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Api {
    /// `pread`/`pwrite`, one thread per request in flight.
    Threads,
    /// `io_submit`/`io_getevents`.
    Libaio,
    /// `io_uring_enter` with registered files and buffers.
    IoUring,
}

impl Api {
    /// All of them, in the order of their age.
    pub const ALL: [Self; 3] = [Self::Threads, Self::Libaio, Self::IoUring];

    const fn name(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::Libaio => "libaio",
            Self::IoUring => "io_uring",
        }
    }

    /// Asks the kernel for a small queue of this kind and gives it back.
    ///
    /// # Errors
    /// [`IoError::ApiUnavailable`] with the reason: switched off by sysctl, by seccomp, or no contexts left.
    pub fn available(self) -> Result<(), IoError> {
        crate::queue::probe(self)
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Api {
    type Err = String;

    /// # Errors
    /// A sentence that lists what may be typed.
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|api| api.name() == text.trim())
            .ok_or_else(|| format!("{text:?} is not an I/O API; type threads, libaio or io_uring"))
    }
}

/// How a database opens and drives its data files: the values of Oracle's `filesystemio_options`, and the
/// concurrent mode that JFS2 had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IoMode {
    /// Through the page cache, one call at a time.
    None,
    /// Through the page cache, asynchronous.
    Asynch,
    /// Past the page cache, one call at a time, one writer per file.
    Directio,
    /// Past the page cache, asynchronous.
    Setall,
    /// As `setall`, on extents written beforehand, with many writers per file.
    Concurrent,
}

impl IoMode {
    /// All of them, from most cached to most concurrent.
    pub const ALL: [Self; 5] = [Self::None, Self::Asynch, Self::Directio, Self::Setall, Self::Concurrent];

    const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Asynch => "asynch",
            Self::Directio => "directio",
            Self::Setall => "setall",
            Self::Concurrent => "concurrent",
        }
    }

    /// Whether files are opened with `O_DIRECT`.
    pub const fn direct(self) -> bool {
        matches!(self, Self::Directio | Self::Setall | Self::Concurrent)
    }

    /// Whether data files are driven through a queue (io_uring or libaio) instead of one call at a time.
    pub const fn asynchronous(self) -> bool {
        matches!(self, Self::Asynch | Self::Setall | Self::Concurrent)
    }

    /// Whether writers of one file take turns.
    pub const fn one_writer_per_file(self) -> bool {
        matches!(self, Self::Directio)
    }

    /// Whether extents must have been written before, so that a write changes no metadata.
    pub const fn prewritten(self) -> bool {
        matches!(self, Self::Concurrent)
    }

    /// What the mode does, in one sentence.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::None => "through the page cache with pread and pwrite; writes are durable when they return",
            Self::Asynch => {
                "through the page cache, many requests at once; writes are durable when they complete"
            }
            Self::Directio => "past the page cache with pread and pwrite, one writer per file at a time",
            Self::Setall => "past the page cache, many requests at once in batches",
            Self::Concurrent => "as setall, on extents written beforehand, many writers per file at once",
        }
    }
}

impl fmt::Display for IoMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for IoMode {
    type Err = String;

    /// `cached` is another name of `none`.
    ///
    /// # Errors
    /// A sentence that lists what may be typed.
    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = text.trim().to_ascii_lowercase();
        let wanted = if wanted == "cached" { "none" } else { &wanted };
        Self::ALL.into_iter().find(|mode| mode.name() == wanted).ok_or_else(|| {
            format!(
                "{text:?} is not an I/O mode; type none (or cached), asynch, directio, setall or concurrent"
            )
        })
    }
}

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// May be read.
    pub read: bool,
    /// May be written.
    pub write: bool,
    /// `O_DIRECT`: past the page cache.
    pub direct: bool,
    /// `O_DSYNC`: a write is durable when it returns.
    pub dsync: bool,
}

impl Access {
    /// What `mode` opens a data file with. A file opened for reading alone has nothing to make durable: `O_DSYNC` is
    /// left out.
    pub const fn for_mode(mode: IoMode, write: bool) -> Self {
        Self { read: true, write, direct: mode.direct(), dsync: write }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_printed() {
        for mode in IoMode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        for api in Api::ALL {
            assert_eq!(api.to_string().parse(), Ok(api));
        }
        assert_eq!("cached".parse(), Ok(IoMode::None));
        assert!("posix".parse::<Api>().is_err_and(|e| e.contains("libaio")));
        assert!("fast".parse::<IoMode>().is_err_and(|e| e.contains("setall")));
    }

    #[test]
    fn modes_are_the_table_of_the_design() {
        for (mode, direct, asynchronous, one_writer, prewritten) in [
            (IoMode::None, false, false, false, false),
            (IoMode::Asynch, false, true, false, false),
            (IoMode::Directio, true, false, true, false),
            (IoMode::Setall, true, true, false, false),
            (IoMode::Concurrent, true, true, false, true),
        ] {
            assert_eq!(mode.direct(), direct, "{mode}");
            assert_eq!(mode.asynchronous(), asynchronous, "{mode}");
            assert_eq!(mode.one_writer_per_file(), one_writer, "{mode}");
            assert_eq!(mode.prewritten(), prewritten, "{mode}");
            let access = Access::for_mode(mode, true);
            assert_eq!((access.direct, access.dsync, access.write), (direct, true, true), "{mode}");
        }
    }
}
