//! The file's text, taken apart. Words with a colon are names, what follows is the value; a new `server` begins a new block.

use super::{Export, LAYOUT_REFRESH_SECONDS, MOUNT_SECONDS, OranfstabError, PATHS_MAX, PORT, Server, Way};
use crate::client::Version;
use std::str::FromStr;

/// Attributes of Oracle's that mean nothing here: SNMP, RDMA, Windows.
const UNUSED: [&str; 6] = ["management", "community", "rdmaport", "uid", "gid", "readonly"];
/// Attributes with a value.
const VALUED: [&str; 18] = [
    "server",
    "local",
    "path",
    "nfs_version",
    "mnt_timeout",
    "security_default",
    "security",
    "export",
    "mount",
    "port",
    "mountport",
    "channels",
    "layout_refresh",
    "management",
    "community",
    "rdmaport",
    "uid",
    "gid",
];

/// An attribute: its line, its name in small letters, its value.
struct Word<'t> {
    line: usize,
    name: String,
    value: &'t str,
}

/// Reads a file's content.
///
/// # Errors
/// The first line that cannot be right: an attribute that nobody knows, without its value, outside of a block; paths, exports or
/// security that this client cannot do.
pub fn parse(text: &str) -> Result<Vec<Server>, OranfstabError> {
    let words = words(text)?;
    let mut servers = Vec::new();
    for block in words.chunk_by(|_, next| next.name != "server") {
        if block[0].name != "server" {
            return Err(wrong(block[0].line, format!("{} stands before the first server", block[0].name)));
        }
        servers.push(server(block)?);
    }
    Ok(servers)
}

fn wrong(line: usize, text: impl Into<String>) -> OranfstabError {
    OranfstabError { line, text: text.into() }
}

fn words(text: &str) -> Result<Vec<Word<'_>>, OranfstabError> {
    let mut words = Vec::new();
    for (index, content) in text.lines().enumerate() {
        let line = index + 1;
        let content = content.split('#').next().unwrap_or_default();
        let mut pieces = content.split_whitespace();
        while let Some(piece) = pieces.next() {
            // Between two attributes it is a sign, as a value the root of what is exported.
            if piece == "/" {
                continue;
            }
            // An address of version 6 has colons, too: only what stands before the first one is a name.
            let (name, value) =
                piece.split_once(':').map_or((piece, None), |(name, value)| (name, Some(value)));
            let name = name.to_ascii_lowercase();
            let value = match value {
                None if matches!(name.as_str(), "dontroute" | "readonly") => "",
                _ if !VALUED.contains(&name.as_str()) => {
                    return Err(wrong(
                        line,
                        format!(
                            "{piece:?} is no attribute; known are {}, dontroute, readonly",
                            VALUED.join(", ")
                        ),
                    ));
                }
                None => {
                    return Err(wrong(line, format!("behind {name} a colon is missing: `{name}: value`")));
                }
                Some("") => pieces.next().ok_or_else(|| {
                    wrong(line, format!("{name} has no value: write `{name}: value` in one line"))
                })?,
                Some(value) => value,
            };
            words.push(Word { line, name, value });
        }
    }
    Ok(words)
}

fn number<T: FromStr>(word: &Word<'_>) -> Result<T, OranfstabError> {
    let Word { line, name, value } = word;
    value.parse().map_err(|_| {
        wrong(*line, format!("{name} is a number, not {value:?}, and no greater than it can be"))
    })
}

fn server(block: &[Word<'_>]) -> Result<Server, OranfstabError> {
    let mut server = Server {
        name: block[0].value.to_owned(),
        paths: ways(block)?,
        version: Version::V3,
        dont_route: false,
        mount_seconds: MOUNT_SECONDS,
        exports: exports(block)?,
        port: PORT,
        mount_port: None,
        layout_refresh_seconds: LAYOUT_REFRESH_SECONDS,
        channels: None,
        ignored: Vec::new(),
    };
    for word in block {
        let line = word.line;
        match word.name.as_str() {
            "nfs_version" => server.version = version(word)?,
            "dontroute" => server.dont_route = true,
            "mnt_timeout" => server.mount_seconds = number(word)?,
            "port" => server.port = number(word)?,
            "mountport" => server.mount_port = Some(number(word)?),
            "channels" => match number(word)? {
                0 => return Err(wrong(line, "channels is 1 at least: the most connections by each path")),
                most => server.channels = Some(most),
            },
            "layout_refresh" => server.layout_refresh_seconds = number(word)?,
            "security" | "security_default" if !word.value.eq_ignore_ascii_case("sys") => {
                return Err(wrong(
                    line,
                    format!("{} {} is not spoken by this client; only sys is", word.name, word.value),
                ));
            }
            name if UNUSED.contains(&name) => {
                server.ignored.push((line, format!("{name} {}", word.value).trim_end().to_owned()));
            }
            _ => {}
        }
    }
    Ok(server)
}

fn version(word: &Word<'_>) -> Result<Version, OranfstabError> {
    word.value.parse().map_err(|text: String| wrong(word.line, text))
}

fn all<'b, 't>(block: &'b [Word<'t>], name: &str) -> Vec<(usize, &'b Word<'t>)> {
    block.iter().enumerate().filter(|(_, word)| word.name == name).collect()
}

/// As many `local` as `path`: they pair in their order, wherever they stand. Fewer: each with the path behind it, as Oracle pairs.
fn ways(block: &[Word<'_>]) -> Result<Vec<Way>, OranfstabError> {
    let (locals, paths) = (all(block, "local"), all(block, "path"));
    if paths.len() > PATHS_MAX {
        let line = paths[PATHS_MAX].1.line;
        return Err(wrong(
            line,
            format!("a server has at most {PATHS_MAX} paths, this one has {}", paths.len()),
        ));
    }
    let mut ways: Vec<Way> =
        paths.iter().map(|(_, path)| Way { local: None, path: path.value.to_owned() }).collect();
    for (index, (at, local)) in locals.iter().enumerate() {
        let of = if locals.len() == paths.len() {
            Some(index)
        } else {
            paths.iter().position(|(path, _)| path > at)
        };
        let Some(way) = of.map(|of| &mut ways[of]).filter(|way| way.local.is_none()) else {
            return Err(wrong(
                local.line,
                format!("local {} has no path of its own; write one path for each local", local.value),
            ));
        };
        way.local = Some(local.value.to_owned());
    }
    Ok(ways)
}

/// Exports and mounts pair in their order.
fn exports(block: &[Word<'_>]) -> Result<Vec<Export>, OranfstabError> {
    let (exports, mounts) = (all(block, "export"), all(block, "mount"));
    if exports.len() != mounts.len() {
        let line = exports.iter().chain(&mounts).map(|(_, word)| word.line).max().unwrap_or(0);
        let text =
            format!("{} exports and {} mounts; each export has one mount", exports.len(), mounts.len());
        return Err(wrong(line, text));
    }
    let export = |((_, export), (_, mount)): (&(usize, &Word<'_>), &(usize, &Word<'_>))| {
        if !export.value.starts_with('/') || !mount.value.starts_with('/') {
            let text = format!("{} and {} have to begin with /", export.value, mount.value);
            return Err(wrong(export.line, text));
        }
        Ok(Export { export: export.value.to_owned(), mount: mount.value.to_owned() })
    };
    exports.iter().zip(&mounts).map(export).collect()
}
