//! `redoubt report`

use super::mix::given;
use super::{print, width, write_new};
use crate::cli::{Format, Report};
use ::report::Reports;
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
    let given = given(&options.mix)?;
    if matches!(options.format, Format::Raw) && options.html.is_none() {
        for reader in &readers {
            print(&record::export_json(reader)?.to_string());
        }
        return Ok(ExitCode::SUCCESS);
    }
    let given = (!given.is_empty()).then_some(given);
    let reports = Reports::read(&readers, given.as_ref())?;
    if let Some(path) = &options.html {
        write_new(path, &reports.html())?;
        anstream::println!("{}", path.display());
        return Ok(ExitCode::SUCCESS);
    }
    print(&match options.format {
        Format::Json => reports.json(),
        Format::Text | Format::Raw => reports.terminal(width(), true),
    });
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
        let what = [Some(run.kind), run.case].into_iter().flatten().collect::<Vec<_>>().join(" ");
        anstream::println!("{}  {what:<20} {:<12} {}", run.id, run.status, run.target);
    }
    anstream::println!("\nShow one: redoubt report NAME, or redoubt report last");
    Ok(())
}
