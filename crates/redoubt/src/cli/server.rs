//! Options of what runs on a database server.

use anyhow::{Result, bail};
use clap::Args;
use lab::server::lifeline::PATIENCE;
use std::path::PathBuf;
use units::Nanos;

/// Options of a run on a server.
#[derive(Args)]
pub struct ServerOptions {
    /// Folder of PostgreSQL's programs [default: found along PATH and in the usual folders].
    #[arg(long, value_name = "DIR")]
    pub pg_bin: Option<PathBuf>,
    /// Folder of MariaDB's programs [default: found along PATH and in the usual folders].
    #[arg(long, value_name = "DIR")]
    pub mariadb_bin: Option<PathBuf>,
    /// The longest that a server may say nothing, or a device beneath it not answer, before the run gives it up [default: 60].
    #[arg(long, value_name = "SECONDS")]
    pub patience: Option<f64>,
}

/// The longest silence, of what was typed in seconds.
///
/// # Errors
/// It is out of range.
pub fn patience(typed: Option<f64>) -> Result<Nanos> {
    match typed {
        None => Ok(PATIENCE),
        Some(seconds) if (1.0..=86_400.0).contains(&seconds) => Ok(Nanos::secs(seconds)),
        Some(seconds) => bail!("--patience {seconds} is out of range; type 1 to 86400 seconds"),
    }
}
