//! Options of what runs on a database server.

use anyhow::{Result, bail};
use clap::Args;
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
    /// The longest that a server may say nothing before the run gives it up.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    pub patience: f64,
}

impl ServerOptions {
    /// The longest silence.
    ///
    /// # Errors
    /// What was typed is out of range.
    pub fn patience(&self) -> Result<Nanos> {
        if !(1.0..=86_400.0).contains(&self.patience) {
            bail!("--patience {} is out of range; type 1 to 86400 seconds", self.patience);
        }
        Ok(Nanos::secs(self.patience))
    }
}
