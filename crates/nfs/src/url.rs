//! Where an export is, as one word: `nfs://server[:port]/export/path`.

use crate::client::{PORT, Path, Target, Version};
use std::fmt;
use std::net::{IpAddr, ToSocketAddrs};
use std::str::FromStr;
use thiserror::Error;

/// An export by URL. Source: RFC 2224, without its characters in %.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Name or address of the server.
    pub server: String,
    /// Port of NFS; none: 2049.
    pub port: Option<u16>,
    /// The exported directory, `/` first.
    pub export: String,
}

/// What cannot be read, or found.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum UrlError {
    /// It is no such URL.
    #[error(
        "{text:?} is no URL of an NFS export: {why}; one looks like nfs://server/export/path or nfs://192.0.2.1:2049/vol/data"
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
        let slash = rest.find('/').ok_or_else(|| wrong("a path follows the server"))?;
        let (place, export) = rest.split_at(slash);
        let (server, port) = match place.strip_prefix('[') {
            Some(bracketed) => {
                let (server, after) = bracketed.split_once(']').ok_or_else(|| wrong("a ] is missing"))?;
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
        Ok(Self { server: server.to_owned(), port, export })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.server.contains(':') {
            write!(f, "nfs://[{}]", self.server)?;
        } else {
            write!(f, "nfs://{}", self.server)?;
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))?;
        f.write_str(&self.export)
    }
}

impl Url {
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
            mount_port: None,
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
        for text in [
            "filer:/vol",
            "nfs://filer",
            "nfs:///vol",
            "nfs://f:x/v",
            "nfs://f:/v",
            "nfs://[fd00::1/v",
            "nfs://[::1]x/v",
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
