//! `redoubt report`

use super::{print, width, write_new};
use crate::cli::{Format, Report};
use anyhow::{Result, ensure};
use record::Reader;
use std::process::ExitCode;

pub fn run(options: &Report) -> Result<ExitCode> {
    if options.runs.is_empty() {
        list()?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut readers = Vec::new();
    for run in &options.runs {
        readers.push(Reader::open(&record::runs::find(run)?)?);
    }
    if let Some(directory) = &options.csv {
        ensure!(readers.len() == 1, "--csv writes the tables of one run; name one");
        for path in record::export_csv(&readers[0], directory)? {
            anstream::println!("{}", path.display());
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(path) = &options.html {
        write_new(path, &::report::html(&readers)?)?;
        anstream::println!("{}", path.display());
        return Ok(ExitCode::SUCCESS);
    }
    match options.format {
        Format::Text => print(&::report::terminal(&readers, width(), true)?),
        Format::Json => print(&::report::json(&readers)?),
        Format::Raw => {
            for reader in &readers {
                print(&record::export_json(reader)?.to_string());
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list() -> Result<()> {
    let runs = record::runs::list();
    if runs.is_empty() {
        anstream::println!(
            "No runs yet in {}. Make one: redoubt compare",
            record::runs::directory().display()
        );
        return Ok(());
    }
    for run in runs {
        anstream::println!("{}  {:<10} {:<12} {}", run.id, run.kind, run.status, run.target);
    }
    anstream::println!("\nShow one: redoubt report NAME, or redoubt report last");
    Ok(())
}
