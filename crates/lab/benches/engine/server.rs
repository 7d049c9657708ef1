//! What the peers have in common: a private server of the laboratory's, with this benchmark's sizes, and programs that ask it.

use super::{CACHE, NEVER};
use engine::Placement;
use host::journal::Journal;
use io::{Api, IoMode};
use lab::server::{Kind, Server, Settings};
use std::path::Path;
use std::process::Command;
use units::Bytes;

/// A server that runs. Its own timing and instruments are off: the peers are measured as they are delivered.
pub fn start(
    kind: Kind,
    mode: IoMode,
    redo: Bytes,
    quiet: &[(&str, &str)],
    folder: &Path,
    journal: &mut Journal,
) -> Server {
    let parameters = quiet.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let api = if Api::IoUring.available().is_ok() { Api::IoUring } else { Api::Libaio };
    let settings = Settings { cache: CACHE, redo, mode, api, block: None, connections: 100, parameters };
    let server = Server::create(kind, None, (folder, &Placement::default()), &settings, journal, &NEVER);
    let mut server = server.unwrap_or_else(|error| panic!("{error}"));
    server.start(&NEVER).unwrap_or_else(|error| panic!("{error}"));
    server
}

/// Runs it and gives its output.
///
/// # Panics
/// When it fails, with what it said.
pub fn answer(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
