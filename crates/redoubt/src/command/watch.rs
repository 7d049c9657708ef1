//! `redoubt watch`

use crate::cli::Watch;
use crate::watch::record::Recorded;
use crate::watch::server::Live;
use crate::watch::{Source, terminal, web};
use ::watch::history::{Bounds, History};
use ::watch::view::View;
use anyhow::{Result, ensure};
use lab::server::url::{Address, is_url};
use std::process::ExitCode;
use units::Nanos;

/// Looks that follow each other faster cost the server more than they tell.
const EVERY: std::ops::RangeInclusive<f64> = 0.1..=60.0;

pub fn run(options: &Watch) -> Result<ExitCode> {
    ensure!(EVERY.contains(&options.every), "--every is from 0.1 to 60 seconds, not {}", options.every);
    if !is_url(&options.what) {
        let mut recorded = Recorded::open(&options.what)?;
        let history = recorded.history()?;
        let view = View::of_length(recorded.length());
        return show(options, recorded, history, view);
    }
    let address = Address::parse(&options.what)?;
    let live = Live::start(&address, Nanos::secs(options.every), options.cpus)?;
    show(options, live, History::new(Bounds::default()), View::default())
}

fn show(options: &Watch, source: impl Source, history: History, view: View) -> Result<ExitCode> {
    if options.web {
        return web::run(source, history, &view);
    }
    terminal::check()?;
    terminal::run(source, history, view)
}
