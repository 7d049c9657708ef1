//! File systems and places.

use super::limit::Limit;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The file system under the database.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fs {
    /// The directory as it is.
    Here,
    /// Made by us, on a device of ours or on one that the user named in full.
    Made {
        /// `ext4`, `xfs`, …: what `mkfs.` knows.
        kind: String,
        /// Mount options, joined by commas as `mount` takes them; may be empty.
        options: String,
    },
    /// Block devices without a file system.
    Raw,
}

/// Options as they are typed (joined by `+`, because `,` separates levels) → as `mount` takes them.
pub(super) fn mount_options(typed: &str) -> Result<String, String> {
    let options: Vec<&str> = typed.split(['+', ',']).map(str::trim).collect();
    let plain = |option: &&str| {
        !option.is_empty() && option.chars().all(|c| c.is_ascii_alphanumeric() || "=_-.:/".contains(c))
    };
    if options.iter().all(plain) {
        Ok(options.join(","))
    } else {
        Err(format!("{typed:?} are not mount options; join them by +, such as noatime+data=writeback"))
    }
}

impl fmt::Display for Fs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here => f.pad("here"),
            Self::Raw => f.pad("raw"),
            Self::Made { kind, options } if options.is_empty() => f.pad(kind),
            Self::Made { kind, options } => f.pad(&format!("{kind}:{}", options.replace(',', "+"))),
        }
    }
}

impl FromStr for Fs {
    type Err = String;

    /// # Errors
    /// A sentence that says what was seen and what to type.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        match text {
            "here" => return Ok(Self::Here),
            "raw" => return Ok(Self::Raw),
            _ => {}
        }
        let (kind, options) = match text.split_once(':') {
            Some((kind, options)) => (kind, mount_options(options)?),
            None => (text, String::new()),
        };
        if kind.is_empty() || !kind.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()) {
            return Err(format!(
                "{text:?} is not a file system; type here, raw, or what mkfs knows: ext4, xfs, ext4:data=writeback …"
            ));
        }
        if matches!(kind, "here" | "raw") {
            return Err(format!(
                "{text:?}: only a file system that Redoubt makes takes mount options, such as ext4:noatime"
            ));
        }
        Ok(Self::Made { kind: kind.into(), options })
    }
}

/// Where files lie. Equal storages are one device: what is placed on `throttled:hdd-7200` twice shares its limit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Storage {
    /// In the directory of the run, on the file system of [`Fs`].
    Here,
    /// In a directory of our own inside this one.
    Directory(PathBuf),
    /// On this block device, which nobody uses; named in full by the user.
    Device(PathBuf),
    /// On a loop device that we make, with ext4, capped.
    Throttled {
        /// The cap.
        limit: Limit,
        /// Directory for the file behind it; none: that of the run.
        within: Option<PathBuf>,
    },
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here => f.pad("here"),
            Self::Directory(path) | Self::Device(path) => f.pad(&path.display().to_string()),
            Self::Throttled { limit, within: None } => f.pad(&format!("throttled:{limit}")),
            Self::Throttled { limit, within: Some(path) } => {
                f.pad(&format!("throttled:{limit}@{}", path.display()))
            }
        }
    }
}

impl FromStr for Storage {
    type Err = String;

    /// # Errors
    /// A sentence that says what was seen and what to type.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text == "here" {
            return Ok(Self::Here);
        }
        if let Some(rest) = text.strip_prefix("throttled:") {
            let (limit, within) = match rest.split_once('@') {
                Some((limit, path)) => (limit, Some(PathBuf::from(path))),
                None => (rest, None),
            };
            return Ok(Self::Throttled { limit: limit.parse()?, within });
        }
        match text {
            device if device.starts_with("/dev/") => Ok(Self::Device(device.into())),
            path if path.contains('/') || matches!(path, "." | "..") => Ok(Self::Directory(path.into())),
            _ => Err(format!(
                "{text:?} is not a place; type here, a directory (/ssd, ./{text}), a free block device (/dev/sdb) or \
                 throttled:LIMIT (throttled:hdd-7200, throttled:150iops@/data)"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems() {
        for (text, shown) in [
            ("here", "here"),
            ("raw", "raw"),
            ("xfs", "xfs"),
            ("ext4:data=writeback", "ext4:data=writeback"),
            ("ext4:noatime+data=writeback", "ext4:noatime+data=writeback"),
            ("ext4:noatime,discard", "ext4:noatime+discard"),
        ] {
            let fs: Fs = text.parse().unwrap();
            assert_eq!(fs.to_string(), shown);
            assert_eq!(shown.parse(), Ok(fs));
        }
        for text in ["", "EXT 4", "ext4:", "ext4:a b", "raw:noatime", "here:noatime", "ext4:$(x)"] {
            assert!(text.parse::<Fs>().is_err(), "{text}");
        }
    }

    #[test]
    fn places() {
        for text in
            ["here", "/ssd", "./here", "/dev/sdb", "throttled:hdd-7200", "throttled:150iops+35MB/s@/data"]
        {
            assert_eq!(text.parse::<Storage>().unwrap().to_string(), text);
        }
        assert_eq!("/dev/sdb".parse(), Ok(Storage::Device("/dev/sdb".into())));
        assert!("ssd".parse::<Storage>().unwrap_err().contains("./ssd"));
        assert!("throttled:slow".parse::<Storage>().unwrap_err().contains("hdd-7200"));
    }
}
