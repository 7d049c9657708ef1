//! Options of `nfs-lab`.

use clap::Args;

/// Options of `nfs-lab`.
#[derive(Args)]
#[command(after_help = "Each line of standard input is a command; `help` lists them. Examples:\n  \
    redoubt nfs-lab                      nodes A and B, volumes /a on A, /b on B, /striped on both\n  \
    echo 'move /a B' | redoubt nfs-lab   one command, then it ends")]
pub struct NfsLab {
    /// How many nodes: 127.0.0.1, 127.0.0.2 and on.
    #[arg(long, value_name = "COUNT", default_value_t = 2)]
    pub nodes: usize,
    /// Addresses of each node, 1 to 4: of the first 127.0.0.1, 127.0.1.1, 127.0.2.1, 127.0.3.1.
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    pub paths: usize,
    /// Port of all of them [default: one that is free].
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// Layouts: none, files, dense (files, in dense stripes), flex-v3 or flex-v4.1.
    #[arg(long, default_value = "files")]
    pub layouts: String,
    /// Most memory for data, MiB.
    #[arg(long, value_name = "MIB", default_value_t = 4096)]
    pub memory: u64,
}
