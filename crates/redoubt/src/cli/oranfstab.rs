//! `--oranfstab`.

use clap::Args;
use std::path::PathBuf;

/// Where exports are said to be.
#[derive(Args)]
pub struct Oranfstab {
    /// Oracle's oranfstab: the directory lies below a `mount:` of it, and is reached by our own NFS client as the file says: server, paths, version.
    /// `default`: $ORACLE_HOME/dbs/oranfstab, then /etc/oranfstab. Without this option no such file is read.
    #[arg(long, value_name = "FILE")]
    pub oranfstab: Option<PathBuf>,
}
