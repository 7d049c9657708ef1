//! Where an export is said to be: a URL, or a block of `oranfstab`.

use nfs::oranfstab::{Export, Server};
use nfs::{MountOptions, Target, Url, UrlError, Version};
use std::path::PathBuf;

/// What is spoken where a URL does not say: it needs one port, and no port mapper.
const VERSION_DEFAULT: Version = Version::V41;

/// A server and an export of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// As one word.
    Url(Url),
    /// As Oracle's Direct NFS has it.
    Oranfstab {
        /// The server's block.
        server: Box<Server>,
        /// Which of its exports.
        export: Export,
        /// The place in it, without a `/` in front.
        below: String,
    },
}

impl Source {
    /// The same in `version`; where none is given, in the one that it says.
    pub(super) fn in_version(&self, version: Option<Version>) -> Self {
        let mut source = self.clone();
        match &mut source {
            Self::Url(url) => url.version = version.or(url.version).or(Some(VERSION_DEFAULT)),
            Self::Oranfstab { server, .. } => server.version = version.unwrap_or(server.version),
        }
        source
    }

    pub(super) fn target(&self) -> Result<Target, UrlError> {
        match self {
            Self::Url(url) => url.target(url.version.unwrap_or(VERSION_DEFAULT)),
            Self::Oranfstab { server, export, .. } => server.target(export),
        }
    }

    pub(super) fn options(&self) -> MountOptions {
        match self {
            Self::Url(url) => url.options(),
            Self::Oranfstab { server, .. } => server.options(),
        }
    }

    /// What the export's root is called in paths.
    pub(super) fn root(&self) -> PathBuf {
        match self {
            Self::Url(url) => url.place().into(),
            Self::Oranfstab { server, export, .. } => {
                format!("nfs://{}{}", server.name, export.export.trim_end_matches('/')).into()
            }
        }
    }

    /// What the place that was meant is called.
    pub(super) fn place(&self) -> PathBuf {
        match self {
            Self::Oranfstab { below, .. } if !below.is_empty() => self.root().join(below),
            _ => self.root(),
        }
    }

    /// The block that it is from, with the export in question alone, as it was understood: one line.
    pub(super) fn oranfstab(&self) -> Option<String> {
        let Self::Oranfstab { .. } = self else { return None };
        let text = self.words();
        let lines: Vec<&str> = text.lines().collect();
        Some(lines.join("; "))
    }

    /// As text that [`Source::read`] reads: the URL, or the block with the export in question alone.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Url(url) => url.to_string(),
            Self::Oranfstab { server, export, .. } => {
                Server { exports: vec![export.clone()], ..(**server).clone() }.to_string()
            }
        }
    }

    /// The reverse of [`Source::words`], but for the place below the export.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn read(words: &str) -> Result<Self, String> {
        if words.starts_with("nfs://") {
            return words.parse().map(Self::Url).map_err(|error: UrlError| error.to_string());
        }
        let servers = nfs::oranfstab::parse(words).map_err(|error| error.to_string())?;
        let server = servers.into_iter().next().ok_or("it names no server")?;
        let export = server.exports.first().cloned().ok_or("it names no export")?;
        Ok(Self::Oranfstab { server: Box::new(server), export, below: String::new() })
    }

    /// The one that `directory` lies in, of those that a file's content names.
    ///
    /// # Errors
    /// What is wrong with the content; which mounts it has, where `directory` is below none of them.
    pub fn find(content: &str, directory: &str) -> Result<Self, String> {
        let servers = nfs::oranfstab::parse(content).map_err(|error| error.to_string())?;
        // Of the mount itself, what is below is nothing.
        let found = nfs::oranfstab::find(&servers, &format!("{}/", directory.trim_end_matches('/')));
        if let Some((server, export, below)) = found {
            let below = below.trim_end_matches('/').to_owned();
            return Ok(Self::Oranfstab { server: Box::new(server.clone()), export: export.clone(), below });
        }
        let mounts = servers.iter().flat_map(|server| {
            server.exports.iter().map(move |it| format!("{} ({}:{})", it.mount, server.name, it.export))
        });
        let mounts: Vec<String> = mounts.collect();
        Err(match mounts.is_empty() {
            true => format!(
                "{directory} lies below no mount: the file has none; write `export: /vol/data mount: {directory}` into a server's block"
            ),
            false => format!("{directory} lies below no mount of it; it has {}", mounts.join(", ")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "server: filer path: 192.0.2.1 path: 192.0.2.2 nfs_version: nfsv4.1 channels: 2 \
        export: /vol/one mount: /mnt/one export: /vol/two mount: /mnt/one/two\n\
        server: other nfs_version: pnfs port: 20 export: / mount: /mnt/other";

    #[test]
    fn the_place_below_a_mount_is_one_of_its_export() {
        for (directory, place) in [
            ("/mnt/one", "nfs://filer/vol/one"),
            ("/mnt/one/db/", "nfs://filer/vol/one/db"),
            ("/mnt/one/two/x/y", "nfs://filer/vol/two/x/y"),
            ("/mnt/other", "nfs://other"),
            ("/mnt/other/x", "nfs://other/x"),
        ] {
            let source = Source::find(TWO, directory).expect(directory);
            assert_eq!(source.place(), PathBuf::from(place));
            assert!(source.place().starts_with(source.root()));
        }
        let source = Source::find(TWO, "/mnt/one").expect("it is there");
        let target = source.target().expect("addresses");
        assert_eq!(
            (target.paths.len(), target.version, target.export.as_str()),
            (2, Version::V41, "/vol/one")
        );
        assert_eq!(source.options().channels, Some(2));
        let text = source.oranfstab().expect("a block");
        assert!(text.starts_with("server: filer; path: 192.0.2.1; ") && !text.contains("two"), "{text}");
        let v3 = source.in_version(Some(Version::V3));
        assert_eq!(v3.target().expect("addresses").version, Version::V3);
        assert_eq!(source.in_version(None), source);
        assert_eq!(Source::read(&source.words()).map(|read| read.words()), Ok(source.words()));
        let url = "nfs://filer:2050/vol?version=pnfs&mountport=20048";
        assert_eq!(Source::read(url).map(|read| read.words()), Ok(url.to_owned()));
        assert!(Source::read("path: 192.0.2.1").is_err());
    }

    #[test]
    fn who_is_below_no_mount_is_told_which_there_are() {
        for directory in ["/mnt", "/mnt/onex", "/data"] {
            let error = Source::find(TWO, directory).expect_err(directory);
            assert!(
                error.contains(
                    "/mnt/one (filer:/vol/one), /mnt/one/two (filer:/vol/two), /mnt/other (other:/)"
                ),
                "{error}"
            );
        }
        assert!(
            Source::find("server: a", "/x").expect_err("no mount").contains("export: /vol/data mount: /x")
        );
        assert!(Source::find("path: x", "/x").expect_err("no server").contains("line 1"));
    }
}
