//! The open flags that are really in force, read back from the kernel.

use super::File;
use crate::error::IoError;
use rustix::fd::AsRawFd;

/// Open flags as `/proc/self/fdinfo` shows them, not as they were asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlagsInForce {
    /// `O_DIRECT` is set.
    pub direct: bool,
    /// `O_DSYNC` is set (also when `O_SYNC` is, which includes it).
    pub dsync: bool,
    /// `O_SYNC` is set.
    pub sync: bool,
    /// As a trace would print it: `O_RDWR|O_DIRECT|O_DSYNC`.
    pub text: String,
}

impl File {
    /// Reads the flags of this descriptor back from `/proc/self/fdinfo`.
    ///
    /// # Errors
    /// [`IoError::Os`] when `/proc` is not there or not as expected.
    pub fn flags_in_force(&self) -> Result<FlagsInForce, IoError> {
        let source = format!("/proc/self/fdinfo/{}", self.as_fd().as_raw_fd());
        let failed = |errno| IoError::Os { path: source.clone().into(), call: "read", errno };
        let text =
            std::fs::read_to_string(&source).map_err(|e| failed(e.raw_os_error().unwrap_or(libc::EIO)))?;
        parse(&text).ok_or_else(|| failed(libc::EPROTO))
    }
}

impl FlagsInForce {
    /// From the text of a `fdinfo` file, also one of another process; none where it says no flags.
    pub fn of_fdinfo(text: &str) -> Option<Self> {
        parse(text)
    }
}

/// From the text of a `fdinfo` file: the line `flags:`, octal.
fn parse(fdinfo: &str) -> Option<FlagsInForce> {
    let octal = fdinfo.lines().find_map(|line| line.strip_prefix("flags:"))?;
    let bits = i32::from_str_radix(octal.trim(), 8).ok()?;
    let has = |flag: i32| bits & flag == flag;
    let (direct, dsync, sync) = (has(libc::O_DIRECT), has(libc::O_DSYNC), has(libc::O_SYNC));
    let mut text = match bits & libc::O_ACCMODE {
        libc::O_RDONLY => "O_RDONLY",
        libc::O_WRONLY => "O_WRONLY",
        _ => "O_RDWR",
    }
    .to_owned();
    for (set, name) in [
        (direct, "|O_DIRECT"),
        (sync, "|O_SYNC"),
        (dsync && !sync, "|O_DSYNC"),
        (has(libc::O_APPEND), "|O_APPEND"),
        (has(libc::O_NOATIME), "|O_NOATIME"),
        (has(libc::O_NONBLOCK), "|O_NONBLOCK"),
    ] {
        if set {
            text.push_str(name);
        }
    }
    Some(FlagsInForce { direct, dsync, sync, text })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn reads_the_kernels_octal() {
        let of = |bits: i32| parse(&format!("pos:\t0\nflags:\t0{bits:o}\nmnt_id:\t25\n")).unwrap();
        assert_eq!(
            of(libc::O_RDWR | libc::O_DIRECT | libc::O_DSYNC | libc::O_CLOEXEC).text,
            "O_RDWR|O_DIRECT|O_DSYNC"
        );
        assert_eq!(of(libc::O_RDONLY).text, "O_RDONLY");
        let sync = of(libc::O_WRONLY | libc::O_SYNC);
        assert!(sync.sync && sync.dsync && !sync.direct);
        assert_eq!(sync.text, "O_WRONLY|O_SYNC");
        assert_eq!(parse("pos:\t0\n"), None);
    }
}
