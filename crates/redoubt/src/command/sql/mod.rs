//! `redoubt sql`: a shell for databases of ours and for records of runs.
//!
//! Start with [`run`]. `database` opens what is asked, `shell` does statements and commands one after the other, `sqlplus`
//! understands the commands, `table` shows results, `typing` reads what a user types.

mod database;
mod shell;
mod sqlplus;
mod table;
mod typing;

use crate::cli::Sql;
use anyhow::{Context, Result};
use database::Database;
use shell::{Shell, Typed};
use std::io::{IsTerminal, Read};
use std::process::ExitCode;

pub fn run(options: &Sql) -> Result<ExitCode> {
    let typed = options.file.is_none() && options.command.is_empty() && std::io::stdin().is_terminal();
    let mut shell = Shell::new(Database::open(options)?, typed)?;
    if typed {
        typing::run(&mut shell)?;
    } else if options.command.is_empty() {
        shell.script(&script(options)?, Typed::Script);
    } else {
        for text in &options.command {
            shell.script(text, Typed::Script);
        }
    }
    shell.end()
}

/// The script's text: of the file, or of what is piped in.
fn script(options: &Sql) -> Result<String> {
    match &options.file {
        Some(path) => {
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
        }
        None => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("cannot read what is piped in")?;
            Ok(text)
        }
    }
}
