//! The user's own mix, as `compare` and `report` take it.

use crate::cli::MixOptions;
use ::report::Given;
use anyhow::{Context, Error, Result, anyhow};
use record::Reader;
use std::path::Path;

/// What is typed goes before what a file or a run says; empty when nothing was given.
///
/// # Errors
/// What is out of range, or cannot be read, or says no mix.
pub(super) fn given(options: &MixOptions) -> Result<Given> {
    let mut given =
        Given::typed(options.read_share, options.hit_ratio, options.commits_per_tx).map_err(Error::msg)?;
    if let Some(path) = &options.awr {
        given = given.or(Given::awr(&text(path)?).map_err(Error::msg)?);
    }
    if let Some(path) = &options.like {
        let read = Given::profile(&text(path)?).map_err(|why| anyhow!("{}: {why}", path.display()))?;
        given = given.or(read);
    }
    if let Some(run) = &options.mix_from {
        given = given.or(Given::of_run(&Reader::open(&record::runs::find(run)?)?)?);
    }
    Ok(given)
}

fn text(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path)
        .with_context(|| format!("{} cannot be read; is the name right?", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
