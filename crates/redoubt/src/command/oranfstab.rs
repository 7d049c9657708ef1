//! The export that a directory stands for, by `oranfstab`.

use crate::cli::oranfstab::Oranfstab;
use anyhow::{Context, Result, anyhow, bail};
use lab::export::{Export, Source, is_export};
use std::path::{Path, PathBuf};

/// Where Oracle looks, in order.
fn usual() -> Vec<PathBuf> {
    let home = std::env::var_os("ORACLE_HOME").map(|home| PathBuf::from(home).join("dbs/oranfstab"));
    home.into_iter().chain([PathBuf::from("/etc/oranfstab")]).collect()
}

fn file(typed: &Path) -> Result<PathBuf> {
    if typed != Path::new("default") {
        return Ok(typed.to_owned());
    }
    let all = usual();
    let said: Vec<_> = all.iter().map(|path| path.display().to_string()).collect();
    all.into_iter().find(|path| path.is_file()).with_context(|| {
        format!(
            "--oranfstab default: none of these is there: {}. Give its path: --oranfstab FILE",
            said.join(", ")
        )
    })
}

/// Mounts the export that `directory` stands for, where the option was typed, and says what was understood.
pub fn export(options: &Oranfstab, directory: &Path) -> Result<Option<Export>> {
    let Some(typed) = &options.oranfstab else { return Ok(None) };
    let path = file(typed)?;
    if is_export(directory) {
        bail!(
            "--oranfstab says where a directory is, and {} says it itself. Give the directory below a mount of the file, or leave --oranfstab away",
            directory.display()
        );
    }
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("--oranfstab {} cannot be read; is the name right?", path.display()))?;
    let directory = std::path::absolute(directory)?;
    let source = Source::find(&text, &directory.to_string_lossy())
        .map_err(|error| anyhow!("--oranfstab {}: {error}", path.display()))?;
    let Source::Oranfstab { server, .. } = &source else { return Ok(None) };
    anstream::eprintln!("{} as understood:", path.display());
    for line in server.to_string().lines() {
        anstream::eprintln!("  {line}");
    }
    let export = Export::of(&source, None)?;
    anstream::eprintln!("{} is {}: {}.", directory.display(), export.path().display(), export.negotiated());
    Ok(Some(export))
}
