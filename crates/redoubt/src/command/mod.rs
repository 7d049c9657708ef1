//! One file per command.

mod advise;
mod calibrate;
mod cases;
mod cleanup;
mod compare;
mod doctor;
mod mix;
mod nfs_lab;
mod oranfstab;
mod profile;
mod report;
mod run;
mod serve;
mod sql;
mod trace;
mod watch;

use crate::cli::oranfstab::Oranfstab;
use crate::cli::{Cli, Command, RunOptions};
use crate::progress::Screen;
use crate::stop;
use anyhow::{Context, Result, bail};
use clap::CommandFactory;
use lab::LabError;
use lab::bench::Finished;
use lab::control::Control;
use lab::export::{Export, is_export};
use lab::target::Target;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Does what was typed.
///
/// # Errors
/// What the user should read.
pub fn run(cli: Cli) -> Result<ExitCode> {
    match cli.command {
        None => {
            anstream::println!("{GUIDE}");
            Ok(ExitCode::SUCCESS)
        }
        Some(Command::Compare(options)) => compare::run(*options),
        Some(Command::Run(options)) => run::run(options),
        Some(Command::Calibrate(options)) => calibrate::run(options),
        Some(Command::Advise(options)) => advise::run(options),
        Some(Command::Trace(options)) => trace::run(options),
        Some(Command::Watch(options)) => watch::run(&options),
        Some(Command::Profile(options)) => profile::run(&options),
        Some(Command::Doctor(options)) => doctor::run(&options),
        Some(Command::Report(options)) => report::run(&options),
        Some(Command::Serve(options)) => serve::run(options),
        Some(Command::NfsLab(options)) => nfs_lab::run(options),
        Some(Command::Sql(options)) => sql::run(&options),
        Some(Command::Cases) => {
            cases::run();
            Ok(ExitCode::SUCCESS)
        }
        Some(Command::Cleanup(options)) => Ok(cleanup::run(&options)),
        Some(Command::Completions { shell }) => {
            clap_complete::generate(shell, &mut Cli::command(), "redoubt", &mut std::io::stdout());
            Ok(ExitCode::SUCCESS)
        }
        Some(Command::Man) => {
            clap_mangen::Man::new(Cli::command()).render(&mut std::io::stdout())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The directory to work in, links resolved; `command` makes files of its own there.
fn directory(command: &str, typed: &Path) -> Result<PathBuf> {
    match Target::resolve(typed, None)? {
        Target::Directory(path) => Ok(path),
        Target::Export(_) => bail!(
            "{command} works on directories of this machine, and {} is an export. On an export work redoubt calibrate, run, compare \
             and sql; for {command}, mount it and give the directory",
            typed.display()
        ),
        Target::File(path) | Target::Device { path, .. } => bail!(
            "{} is not a directory. {command} makes files of its own: give a directory on that storage with --dir. To only read \
             an existing file or device: redoubt calibrate {}",
            typed.display(),
            path.display()
        ),
    }
}

/// A directory to work in, or an export, which is in use as long as the second is kept.
fn place(command: &str, typed: &Path, stated: &Oranfstab) -> Result<(PathBuf, Option<Export>)> {
    if let Some(export) = oranfstab::export(stated, typed)? {
        return Ok((export.path().to_owned(), Some(export)));
    }
    if !is_export(typed) {
        return Ok((directory(command, typed)?, None));
    }
    match Target::resolve(typed, None)? {
        Target::Export(export) => Ok((export.path().to_owned(), Some(export))),
        other => Ok((other.path().to_owned(), None)),
    }
}

const GUIDE: &str = "\
Redoubt tells you which storage set-up your database should run on, and proves it.

Three commands to try, in the directory of your database's storage:

  redoubt doctor       look first: what would spoil a measurement?       10 s
  redoubt compare      which I/O mode should the database use here?   4-5 min
  redoubt calibrate    how much can this storage do, and where is the knee?  3 min

Nothing is overwritten that Redoubt did not create. More: redoubt --help, redoubt cases";

/// The command as it was typed, for the record; without passwords.
fn command_line() -> String {
    lab::server::url::without_password(&std::env::args().collect::<Vec<_>>().join(" "))
}

/// Runs `measure` with progress and Ctrl-C, then shows the result of its record.
fn measured(
    options: &RunOptions,
    measure: impl FnOnce(&mut Control<'_>) -> Result<Finished, LabError>,
) -> Result<ExitCode> {
    let cancel = stop::on_signal()?;
    let mut screen = Screen::new(options.quiet || options.json);
    let result = measure(&mut Control { cancel: &cancel, progress: &mut screen });
    screen.clear();
    let finished = result.inspect_err(tell_what_is_kept)?;
    show(&finished, options.json)?;
    if let Some(left) = &finished.left {
        anstream::eprintln!("Not undone: {left}. Type: redoubt cleanup");
        return Ok(ExitCode::FAILURE);
    }
    Ok(if finished.interrupted { ExitCode::from(stop::INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// Where the record of a run that failed is, when it holds anything to show.
fn tell_what_is_kept(error: &LabError) {
    let LabError::Failed { record, .. } = error else { return };
    let shown = record::Reader::open(record)
        .ok()
        .and_then(|reader| ::report::terminal(&[reader], width(), true).ok());
    if shown.is_some() {
        anstream::eprintln!("What was measured until then is kept: redoubt report {}", record.display());
    }
}

/// The result on the terminal, and the page beside the record.
fn show(finished: &Finished, json: bool) -> Result<()> {
    let reader = [record::Reader::open(&finished.record)?];
    let page = page_beside(&finished.record);
    if finished.interrupted {
        anstream::eprintln!(
            "Stopped on request. What was finished is shown and kept{}.",
            if finished.left.is_none() { "; everything of ours is removed" } else { "" }
        );
    }
    let html = ::report::html(&reader);
    let written = html.map_err(anyhow::Error::from).and_then(|html| write_new(&page, &html));
    if json {
        match ::report::json(&reader) {
            Ok(text) => print(&text),
            Err(error) if finished.interrupted => anstream::eprintln!("{error}"),
            Err(error) => return Err(error.into()),
        }
        return Ok(());
    }
    match ::report::terminal(&reader, width(), true) {
        Ok(text) => print(&text),
        Err(error) if finished.interrupted => anstream::eprintln!("{error}"),
        Err(error) => return Err(error.into()),
    }
    print(&format!("Record: {}", finished.record.display()));
    match written {
        Ok(()) => print(&format!("Report: {}", page.display())),
        Err(error) => anstream::eprintln!("No page: {error:#}"),
    }
    Ok(())
}

/// The page's place: `x.redoubt` → `x.html`, any other name gets `.html` behind it, so that two records never share a page
/// and no page takes a record's name.
fn page_beside(record: &Path) -> PathBuf {
    if record.extension().is_some_and(|e| e == "redoubt") {
        return record.with_extension("html");
    }
    let mut name = record.as_os_str().to_owned();
    name.push(".html");
    PathBuf::from(name)
}

/// Prints a line; a reader that went away (`| head`) is no error.
fn print(text: &str) {
    use std::io::Write;
    let _ = writeln!(anstream::stdout(), "{text}");
}

/// Width to write for: the terminal's, at most 110 columns, 80 when it is not a terminal.
fn width() -> usize {
    terminal_size::terminal_size().map_or(80, |(w, _)| usize::from(w.0).clamp(60, 110))
}

/// Writes `text` to a new file; an existing one is not overwritten.
fn write_new(path: &Path, text: &str) -> Result<()> {
    use std::io::Write;
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).open(path).with_context(|| {
            format!(
                "cannot create {}; an existing file is not overwritten, so give a new name",
                path.display()
            )
        })?;
    file.write_all(text.as_bytes())?;
    Ok(())
}
