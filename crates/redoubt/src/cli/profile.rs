//! Options of `profile`.

use clap::Args;
use std::path::PathBuf;

/// Options of `profile`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    redoubt profile postgres://monitor@db/app                 watch for five minutes, write profile-….json\n  \
    redoubt profile mysql://root@localhost/ --minutes 60 --output day.json\n  \
    redoubt compare --like day.json                           which I/O mode is best for that database?\n\n\
    Nothing is changed there, and nothing is measured: the server's own statistics are read at both ends, over one connection that may\n\
    change nothing. Watch while the application works as it usually does.")]
pub struct Profile {
    /// The server: postgres://user@host/database or mysql://user@host/
    #[arg(value_name = "URL")]
    pub target: String,
    /// How long, minutes.
    #[arg(long, default_value_t = 5.0)]
    pub minutes: f64,
    /// How long, seconds, in place of minutes.
    #[arg(long, conflicts_with = "minutes")]
    pub seconds: Option<f64>,
    /// Where the profile goes; a new file [default: profile-DATE.json here].
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print the profile as JSON, too.
    #[arg(long)]
    pub json: bool,
    /// Show no progress.
    #[arg(long, short)]
    pub quiet: bool,
}
