//! What to connect to: server, paths, export, version.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A version of the protocol. The one that is asked for is the one that is used: there is no falling back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// NFSv3.
    V3,
    /// NFSv4.0.
    V40,
    /// NFSv4.1.
    V41,
    /// NFSv4.1 with layouts: parts of files are read and written where they are.
    Pnfs,
}

impl Version {
    /// As people call it: `NFSv4.1`, `pNFS`.
    pub const fn title(self) -> &'static str {
        match self {
            Self::V3 => "NFSv3",
            Self::V40 => "NFSv4.0",
            Self::V41 => "NFSv4.1",
            Self::Pnfs => "pNFS",
        }
    }

    /// Whether calls are made in sessions.
    pub(crate) const fn has_sessions(self) -> bool {
        matches!(self, Self::V41 | Self::Pnfs)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V3 => "v3",
            Self::V40 => "v4.0",
            Self::V41 => "v4.1",
            Self::Pnfs => "pnfs",
        })
    }
}

impl FromStr for Version {
    type Err = String;

    /// Reads `v3`, `v4.0`, `v4.1`, `pnfs`, and as Oracle writes them: `nfsv3`, `nfsv4`, `nfsv4.1`, in any case.
    ///
    /// # Errors
    /// What was seen, and what can be written.
    fn from_str(text: &str) -> Result<Self, String> {
        let lower = text.to_ascii_lowercase();
        if lower == "pnfs" {
            return Ok(Self::Pnfs);
        }
        match lower.trim_start_matches("nfs").trim_start_matches('v') {
            "3" => Ok(Self::V3),
            "4" | "4.0" => Ok(Self::V40),
            "4.1" => Ok(Self::V41),
            _ => Err(format!(
                "{text:?} is no version of NFS that this client speaks; write v3, v4.0, v4.1 or pnfs"
            )),
        }
    }
}

/// One way to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// The server's address on it.
    pub remote: IpAddr,
    /// Our own, where the system is not to choose.
    pub local: Option<IpAddr>,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.remote)?;
        self.local.map_or(Ok(()), |local| write!(f, " from {local}"))
    }
}

/// An export of a server, and how to get there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// What the server is called in messages.
    pub server: String,
    /// The ways to it, 1 to 4, tried in this order; workers are spread over them.
    pub paths: Vec<Path>,
    /// Port of NFS.
    pub port: u16,
    /// Port of MOUNT (v3); none: the port mapper is asked.
    pub mount_port: Option<u16>,
    /// The exported directory, `/` first.
    pub export: String,
    /// The version to speak.
    pub version: Version,
}

/// Where NFS listens unless something else is said.
pub const PORT: u16 = 2049;

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} of {} by NFS{}", self.server, self.export, self.port, self.version)
    }
}
