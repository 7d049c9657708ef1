//! Where an export is, as one word: `nfs://server[:port]/export/path[?version=v4.1&mountport=20048&layout_refresh=30]`.

use crate::client::{MountOptions, PORT, Path, Target, Version};
use std::fmt;
use std::net::{IpAddr, ToSocketAddrs};
use std::str::FromStr;
use thiserror::Error;
use units::Nanos;

/// An export by URL. Source: RFC 2224, without its characters in %.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Name or address of the server.
    pub server: String,
    /// Port of NFS; none: 2049.
    pub port: Option<u16>,
    /// The exported directory, or one below it, `/` first.
    pub export: String,
    /// The version to speak, where it is said.
    pub version: Option<Version>,
    /// Port of MOUNT (v3), where the port mapper is not to be asked.
    pub mount_port: Option<u16>,
    /// How often layouts are looked at again though nothing was said, seconds; 0: never.
    pub layout_refresh_seconds: Option<u32>,
}

/// What cannot be read, or found.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum UrlError {
    /// It is no such URL.
    #[error(
        "{text:?} is no URL of an NFS export: {why}; one looks like nfs://server/export/path or nfs://192.0.2.1:2049/vol/data?version=v4.1"
    )]
    Text {
        /// What was given.
        text: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The name is not known.
    #[error(
        "the name {server} leads to no address ({error}); check it with `getent hosts {server}`, or give an address"
    )]
    Name {
        /// Which name.
        server: String,
        /// What the system said.
        error: String,
    },
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let wrong = |why| UrlError::Text { text: text.to_owned(), why };
        let rest = text.strip_prefix("nfs://").ok_or_else(|| wrong("it begins with nfs://"))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let slash = rest.find('/').ok_or_else(|| wrong("a path follows the server"))?;
        let (place, export) = rest.split_at(slash);
        let (server, port) = match place.strip_prefix('[') {
            Some(bracketed) => {
                let (server, after) = bracketed.split_once(']').ok_or_else(|| wrong("a ] is missing"))?;
                if !server.contains(':') || server.starts_with('[') {
                    return Err(wrong("in brackets stands an IPv6 address"));
                }
                (server, after.strip_prefix(':').or(after.is_empty().then_some("")))
            }
            None => place.split_once(':').map_or((place, Some("")), |(server, port)| (server, Some(port))),
        };
        let port = match port {
            Some("") if !place.ends_with(':') => None,
            Some(port) => Some(port.parse().map_err(|_| wrong("the port is a number up to 65535"))?),
            None => return Err(wrong("after the ] comes a colon or a path")),
        };
        if server.is_empty() {
            return Err(wrong("the server has no name"));
        }
        let export = export.trim_end_matches('/');
        let export = if export.is_empty() { "/" } else { export }.to_owned();
        let (mut version, mut mount_port, mut layout_refresh_seconds) = (None, None, None);
        for option in query.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("version", value)) => {
                    let read = value.parse().map_err(|_| wrong("the version is v3, v4.0, v4.1 or pnfs"))?;
                    version = Some(read);
                }
                Some(("mountport", value)) => {
                    let read =
                        value.parse().map_err(|_| wrong("the port of MOUNT is a number up to 65535"))?;
                    mount_port = Some(read);
                }
                Some(("layout_refresh", value)) => {
                    let read = value.parse().map_err(|_| wrong("layout_refresh is a number of seconds"))?;
                    layout_refresh_seconds = Some(read);
                }
                _ => return Err(wrong("behind the ? stand version=…, mountport=… and layout_refresh=…")),
            }
        }
        Ok(Self { server: server.to_owned(), port, export, version, mount_port, layout_refresh_seconds })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place())?;
        let version = self.version.map(|version| format!("version={version}"));
        let mount_port = self.mount_port.map(|port| format!("mountport={port}"));
        let refresh = self.layout_refresh_seconds.map(|seconds| format!("layout_refresh={seconds}"));
        let options = version.into_iter().chain(mount_port).chain(refresh);
        for (mark, option) in ['?', '&', '&'].into_iter().zip(options) {
            write!(f, "{mark}{option}")?;
        }
        Ok(())
    }
}

impl Url {
    /// Which directory of which server, without how it is asked: the beginning of the names of everything there.
    pub fn place(&self) -> String {
        let bracketed = self.server.contains(':');
        let server = if bracketed { format!("[{}]", self.server) } else { self.server.clone() };
        let port = self.port.map_or_else(String::new, |port| format!(":{port}"));
        format!("nfs://{server}{port}{}", self.export)
    }

    /// How to mount it: as by default, but for what it says.
    pub fn options(&self) -> MountOptions {
        let options = MountOptions::default();
        let refresh = self.layout_refresh_seconds.map(|seconds| Nanos::millis(u64::from(seconds) * 1000));
        MountOptions { layout_refresh: refresh.unwrap_or(options.layout_refresh), ..options }
    }

    /// What to connect to with `version`; a name of several addresses is taken at its first.
    ///
    /// # Errors
    /// [`UrlError::Name`].
    pub fn target(&self, version: Version) -> Result<Target, UrlError> {
        let path = Path { remote: address(&self.server)?, local: None };
        Ok(Target {
            server: self.server.clone(),
            paths: vec![path],
            port: self.port.unwrap_or(PORT),
            mount_port: self.mount_port,
            export: self.export.clone(),
            version,
        })
    }
}

/// The first address of a name; an address is its own.
pub(crate) fn address(server: &str) -> Result<IpAddr, UrlError> {
    if let Ok(address) = server.parse() {
        return Ok(address);
    }
    let failed = |error: String| UrlError::Name { server: server.to_owned(), error };
    let mut found = (server, 0).to_socket_addrs().map_err(|error| failed(error.to_string()))?;
    found.next().map(|found| found.ip()).ok_or_else(|| failed("no address".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_say_where() {
        for (text, server, port, export) in [
            ("nfs://filer/vol/data", "filer", None, "/vol/data"),
            ("nfs://192.0.2.1:12049/vol/", "192.0.2.1", Some(12_049), "/vol"),
            ("nfs://[fd00::1]:20/v", "fd00::1", Some(20), "/v"),
            ("nfs://[fd00::1]/v", "fd00::1", None, "/v"),
            ("nfs://filer/", "filer", None, "/"),
        ] {
            let url: Url = text.parse().expect(text);
            assert_eq!(
                (url.server.as_str(), url.port, url.export.as_str()),
                (server, port, export),
                "{text}"
            );
            assert_eq!(url.to_string().parse(), Ok(url), "it can be typed again");
        }
        let pnfs: Url = "nfs://filer/v?version=pnfs".parse().expect("a URL");
        assert_eq!(pnfs.to_string().parse(), Ok(pnfs), "it can be typed again");
        let url: Url = "nfs://filer:20/v?mountport=7&version=nfsv3".parse().expect("a URL");
        assert_eq!((url.version, url.mount_port, url.export.as_str()), (Some(Version::V3), Some(7), "/v"));
        assert_eq!(
            (url.to_string(), url.place()),
            ("nfs://filer:20/v?version=v3&mountport=7".into(), "nfs://filer:20/v".into())
        );
        let all: Url = "nfs://f/v?layout_refresh=5&version=pnfs&mountport=7".parse().expect("a URL");
        assert_eq!(all.options().layout_refresh, Nanos::millis(5_000));
        assert_eq!(all.to_string(), "nfs://f/v?version=pnfs&mountport=7&layout_refresh=5");
        for text in [
            "nfs://f/v?layout_refresh=often",
            "filer:/vol",
            "nfs://filer",
            "nfs:///vol",
            "nfs://f:x/v",
            "nfs://f:/v",
            "nfs://[fd00::1/v",
            "nfs://[::1]x/v",
            "nfs://[[::1]/v",
            "nfs://[filer]/v",
            "nfs://f/v?version=5",
            "nfs://f/v?mountport=x",
            "nfs://f/v?nolock",
        ] {
            let error = text.parse::<Url>().expect_err(text);
            assert!(error.to_string().contains("nfs://server/export"), "{error}");
        }
    }

    #[test]
    fn a_url_becomes_a_target() {
        let url: Url = "nfs://127.0.0.1/vol".parse().expect("a URL");
        let target = url.target(Version::V41).expect("an address");
        assert_eq!((target.port, target.paths.len(), target.export.as_str()), (2049, 1, "/vol"));
        let nowhere: Url = "nfs://no-such-name.invalid/vol".parse().expect("a URL");
        assert!(nowhere.target(Version::V3).expect_err("no such name").to_string().contains("getent hosts"));
    }
}
