//! `oranfstab`: which servers a database reaches by Direct NFS, by which paths. As Oracle writes it, in any order of attributes, with
//! a few of our own: `port`, `mountport`, `channels`, `layout_refresh`. Source: Oracle Database Installation Guide, "Creating an
//! oranfstab file for Direct NFS".
//!
//! Everything is read without a look at the network; [`Server::target`] finds addresses. What was understood can be printed: it reads as
//! the file itself, so that it can be compared.

mod parse;

pub use parse::parse;

use crate::client::{MountOptions, PORT, Path, Target, Version};
use crate::url::{UrlError, address};
use std::fmt;
use thiserror::Error;
use units::Nanos;

/// Most paths to one server.
pub(crate) const PATHS_MAX: usize = 4;
/// How long Oracle tries to mount, unless the file says something else, seconds.
pub(crate) const MOUNT_SECONDS: u32 = 600;
/// How often a layout is compared with the server's, unless the file says something else, seconds.
pub(crate) const LAYOUT_REFRESH_SECONDS: u32 = 30;

/// A line that cannot be right.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("oranfstab, line {line}: {text}")]
pub struct OranfstabError {
    /// Which line, 1 first; 0: none in particular.
    pub line: usize,
    /// What was seen, and what to write.
    pub text: String,
}

/// One block of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Its name; an address for the network only where there is no `path`.
    pub name: String,
    /// The ways to it, up to 4.
    pub paths: Vec<Way>,
    /// The version to speak.
    pub version: Version,
    /// Whether packets leave by the interface of `local` whatever the routes say.
    pub dont_route: bool,
    /// How long to try to mount, seconds.
    pub mount_seconds: u32,
    /// What it exports, and where the database sees it.
    pub exports: Vec<Export>,
    /// Port of NFS (ours).
    pub port: u16,
    /// Port of MOUNT (ours).
    pub mount_port: Option<u16>,
    /// How often a layout is compared with the server's, seconds (ours); 0: never.
    pub layout_refresh_seconds: u32,
    /// Most connections by each path that sessions share for plain calls of files (ours); none: one for each that is at work.
    pub channels: Option<u32>,
    /// What was read and means nothing to this client, with its line.
    pub ignored: Vec<(usize, String)>,
}

/// A `path`, with its `local`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// Our address; none: the system chooses.
    pub local: Option<String>,
    /// The server's.
    pub path: String,
}

/// An `export` and its `mount`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The directory as the server has it.
    pub export: String,
    /// The directory under which the database knows it.
    pub mount: String,
}

impl Server {
    /// How to mount its exports: for how long to try, and how often layouts are looked at; the rest as it is by default.
    pub fn options(&self) -> MountOptions {
        let seconds = |seconds: u32| Nanos::millis(u64::from(seconds) * 1000);
        MountOptions {
            limit: seconds(self.mount_seconds),
            layout_refresh: seconds(self.layout_refresh_seconds),
            dont_route: self.dont_route,
            channels: self.channels,
            ..MountOptions::default()
        }
    }

    /// What to connect to for `export`.
    ///
    /// # Errors
    /// [`UrlError::Name`]: a name of a path leads to no address.
    pub fn target(&self, export: &Export) -> Result<Target, UrlError> {
        let local = |local: &Option<String>| local.as_deref().map(address).transpose();
        let mut paths = Vec::new();
        for way in &self.paths {
            paths.push(Path { remote: address(&way.path)?, local: local(&way.local)? });
        }
        if paths.is_empty() {
            paths.push(Path { remote: address(&self.name)?, local: None });
        }
        Ok(Target {
            server: self.name.clone(),
            paths,
            port: self.port,
            mount_port: self.mount_port,
            export: export.export.clone(),
            version: self.version,
        })
    }
}

/// What stands for a file name: the export it lies in, and its path below that. The longest `mount` that fits wins.
pub fn find<'s>(servers: &'s [Server], file: &str) -> Option<(&'s Server, &'s Export, String)> {
    let below = |export: &Export| {
        let rest = file.strip_prefix(export.mount.trim_end_matches('/'))?;
        Some(rest.strip_prefix('/')?.to_owned())
    };
    servers
        .iter()
        .flat_map(|server| server.exports.iter().map(move |export| (server, export)))
        .filter_map(|(server, export)| Some((server, export, below(export)?)))
        // Of two that are the same length, the first in the file, as Oracle does.
        .rev_max_by_key(|(_, export, _)| export.mount.len())
}

/// The first of the greatest.
trait RevMaxByKey: Iterator + Sized {
    fn rev_max_by_key<K: Ord>(self, key: impl Fn(&Self::Item) -> K) -> Option<Self::Item> {
        self.fold(None, |best, item| match best {
            Some(best) if key(&best) >= key(&item) => Some(best),
            _ => Some(item),
        })
    }
}

impl<I: Iterator> RevMaxByKey for I {}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "server: {}", self.name)?;
        for way in &self.paths {
            if let Some(local) = &way.local {
                writeln!(f, "local: {local}")?;
            }
            writeln!(f, "path: {}", way.path)?;
        }
        writeln!(f, "nfs_version: nfs{}", self.version)?;
        if self.dont_route {
            writeln!(f, "dontroute")?;
        }
        writeln!(f, "mnt_timeout: {}", self.mount_seconds)?;
        writeln!(f, "port: {}", self.port)?;
        if let Some(port) = self.mount_port {
            writeln!(f, "mountport: {port}")?;
        }
        if let Some(channels) = self.channels {
            writeln!(f, "channels: {channels}")?;
        }
        writeln!(f, "layout_refresh: {}", self.layout_refresh_seconds)?;
        for Export { export, mount } in &self.exports {
            writeln!(f, "export: {export} mount: {mount}")?;
        }
        self.ignored.iter().try_for_each(|(line, what)| writeln!(f, "# line {line} is not used: {what}"))
    }
}

#[cfg(test)]
mod tests;
