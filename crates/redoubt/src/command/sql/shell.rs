//! Statements and commands, one after the other; what they print, and how it ends.

use super::database::Database;
use super::sqlplus::{self, Command, HELP, OnError};
use super::table::{Style, Table};
use crate::stop;
use anyhow::{Context, Result, bail};
use engine::Shutdown;
use signal_hook::consts::SIGINT;
use signal_hook::flag;
use signal_hook::iterator::Signals;
use sql::script::{self, Piece, PieceKind};
use sql::{Interrupter, Outcome};
use std::fs::{File, OpenOptions};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use units::{Nanos, clock};

/// Scripts that call scripts.
const DEPTH_MAX: u32 = 16;

/// Where a text comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typed {
    /// A user types it.
    ByHand,
    /// It is a script's.
    Script,
}

/// A shell over a database.
pub struct Shell {
    /// What is asked.
    pub database: Database,
    timing: bool,
    feedback: bool,
    heading: bool,
    echo: bool,
    termout: bool,
    autocommit: bool,
    linesize: Option<usize>,
    on_error: OnError,
    out: Out,
    depth: u32,
    /// The last statement, for `/`.
    last: String,
    errors: u64,
    exit: Option<(u8, bool)>,
    interrupt: Interrupt,
}

/// Where results go.
struct Out {
    screen: bool,
    spool: Option<File>,
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if let Some(spool) = &mut self.spool {
            spool.write_all(bytes)?;
        }
        if self.screen {
            anstream::stdout().write_all(bytes)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        anstream::stdout().flush()
    }
}

/// Ctrl-C: the first stops the statement, the second the program.
struct Interrupt {
    asked: Arc<AtomicBool>,
    running: Arc<Mutex<Option<Interrupter>>>,
}

impl Interrupt {
    fn new() -> Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        let running: Arc<Mutex<Option<Interrupter>>> = Arc::default();
        // The order matters: the shutdown looks at the flag before this same signal raises it.
        flag::register_conditional_shutdown(SIGINT, i32::from(stop::INTERRUPTED), asked.clone())?;
        let mut signals = Signals::new([SIGINT])?;
        let (raised, statement) = (asked.clone(), running.clone());
        let wait = move || {
            for _ in signals.forever() {
                raised.store(true, Ordering::SeqCst);
                if let Some(running) = &*statement.lock().unwrap_or_else(PoisonError::into_inner) {
                    running.interrupt();
                }
            }
        };
        std::thread::Builder::new().name("ctrl-c".into()).spawn(wait).context("cannot start a thread")?;
        Ok(Self { asked, running })
    }

    fn set(&self, interrupter: Option<Interrupter>) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = interrupter;
    }
}

impl Shell {
    /// A shell, for a user or for scripts.
    pub fn new(database: Database, typed: bool) -> Result<Self> {
        Ok(Self {
            database,
            timing: false,
            feedback: true,
            heading: true,
            echo: false,
            termout: true,
            autocommit: false,
            linesize: None,
            on_error: OnError::Continue,
            out: Out { screen: true, spool: None },
            depth: 0,
            last: String::new(),
            errors: 0,
            exit: None,
            interrupt: Interrupt::new()?,
        })
        .inspect(|shell: &Self| {
            if typed {
                shell.greet();
            }
        })
    }

    fn greet(&self) {
        match &self.database {
            Database::Ours(_) => {
                anstream::println!("Statements end with ; and HELP helps. EXIT commits and leaves.")
            }
            Database::Run(_) => {
                anstream::println!("The record of a run, read-only. Statements end with ; and HELP helps.")
            }
        }
    }

    /// Whether somebody has asked for the end.
    pub fn is_over(&self) -> bool {
        self.exit.is_some()
    }

    /// Runs a text to its end; an open statement at its end is done too.
    pub fn script(&mut self, text: &str, typed: Typed) {
        let script = script::split(text);
        let open = script.open.map(|start| Piece {
            kind: PieceKind::Statement,
            text: text[start..].trim_end(),
            start,
        });
        for piece in script.pieces.iter().chain(&open) {
            if self.is_over() {
                return;
            }
            self.piece(piece, typed);
        }
    }

    fn piece(&mut self, piece: &Piece<'_>, typed: Typed) {
        if self.echo && typed == Typed::Script {
            self.say(&format!("SQL> {}", piece.text));
        }
        match piece.kind {
            PieceKind::Statement => {
                self.last = piece.text.to_owned();
                self.statement(piece.text, typed);
            }
            PieceKind::Again if self.last.is_empty() => {
                self.wrong("there is no statement before this", typed)
            }
            PieceKind::Again => {
                let last = self.last.clone();
                self.statement(&last, typed);
            }
            PieceKind::Block => {
                self.wrong("PL/SQL is not known here; write its statements one by one", typed)
            }
            PieceKind::Command => {
                if let Err(error) = self.command(sqlplus::parse(piece.text), typed) {
                    self.wrong(&format!("{error:#}"), typed);
                }
            }
        }
    }

    fn statement(&mut self, text: &str, typed: Typed) {
        let began = clock::now();
        self.out.screen = self.termout || typed == Typed::ByHand;
        let style = Style { heading: self.heading, width: self.width() };
        self.interrupt.asked.store(false, Ordering::SeqCst);
        self.interrupt.set(self.database.interrupter());
        let mut table = Table::new(&mut self.out, style);
        let done = self.database.execute(text, &mut table);
        table.end();
        self.interrupt.set(None);
        match done {
            Ok(outcome) => {
                if self.feedback {
                    self.say(&feedback(outcome));
                }
                if self.autocommit && matches!(outcome, Outcome::Changed(..)) {
                    self.statement_of_ours("COMMIT", typed);
                }
            }
            Err(error) => {
                let interrupted = matches!(error, sql::Error::Interrupted);
                self.wrong(&error.with_caret(text), typed);
                if interrupted && typed == Typed::Script {
                    self.exit = Some((stop::INTERRUPTED, true));
                }
            }
        }
        if self.timing {
            self.say(&elapsed(clock::now() - began));
        }
        self.interrupt.asked.store(false, Ordering::SeqCst);
    }

    /// One that nobody typed: nothing is said of it unless it fails.
    fn statement_of_ours(&mut self, text: &str, typed: Typed) {
        let done = self.database.execute(text, &mut sql::Nowhere);
        if let Err(error) = done {
            self.wrong(&error.to_string(), typed);
        }
    }

    /// Shows a query's result without counting its rows.
    fn show(&mut self, query: &str) -> Result<()> {
        let style = Style { heading: self.heading, width: self.width() };
        let mut table = Table::new(&mut self.out, style);
        let done = self.database.execute(query, &mut table);
        table.end();
        done?;
        Ok(())
    }

    /// For the terminal's width, unless a user has set one or nobody looks.
    fn width(&self) -> Option<usize> {
        let terminal = std::io::stdout().is_terminal().then(terminal_size::terminal_size).flatten();
        self.linesize.or(terminal.map(|(width, _)| usize::from(width.0)))
    }

    fn say(&mut self, line: &str) {
        if !line.is_empty() {
            let _ = writeln!(self.out, "{line}");
        }
    }

    /// Tells what is wrong, on standard error and in the spool, and does what is to be done then.
    fn wrong(&mut self, words: &str, typed: Typed) {
        self.errors += 1;
        anstream::eprintln!("{words}");
        if let Some(spool) = &mut self.out.spool {
            let _ = writeln!(spool, "{words}");
        }
        if let (OnError::Exit { code, rollback }, Typed::Script) = (self.on_error, typed) {
            self.exit = Some((code, rollback));
        }
    }

    fn command(&mut self, command: Command, typed: Typed) -> Result<()> {
        match command {
            Command::Timing(on) => self.timing = on,
            Command::TimingToggle => {
                self.timing = !self.timing;
                self.say(if self.timing { "Timing is on." } else { "Timing is off." });
            }
            Command::Feedback(on) => self.feedback = on,
            Command::Heading(on) => self.heading = on,
            Command::Echo(on) => self.echo = on,
            Command::Termout(on) => self.termout = on,
            Command::Autocommit(on) => self.autocommit = on,
            Command::Linesize(characters) => self.linesize = Some(characters),
            Command::Prompt(text) => {
                let _ = writeln!(self.out, "{text}");
            }
            Command::Describe(name) => self.describe(&name)?,
            Command::Tables => self.tables(),
            Command::ShowParameter(part) => self.show(&parameters_like(&part))?,
            Command::ShowSga => self.show("SELECT name, bytes FROM v$sgastat")?,
            Command::ShowUser => self.say("USER is \"SYS\""),
            Command::Start(path) => self.start(&path)?,
            Command::Spool { path, append } => self.spool(&path, append)?,
            Command::SpoolOff => self.out.spool = None,
            Command::OnError(on_error) => self.on_error = on_error,
            Command::Startup => {
                self.database.startup()?;
                self.say("Database opened.");
            }
            Command::Shutdown { abort } => {
                self.database.shutdown(if abort { Shutdown::Abort } else { Shutdown::Immediate })?;
                self.say("Database shut down.");
            }
            Command::Exit { code, rollback } => self.exit = Some((code, rollback)),
            Command::Help => self.say(HELP),
            Command::Looks => {}
            Command::Not(words) => self.wrong(&words, typed),
        }
        Ok(())
    }

    fn describe(&mut self, name: &str) -> Result<()> {
        let name = name.trim_end_matches(';').rsplit('.').next().unwrap_or(name).trim_matches('"');
        let Some(columns) = self.database.describe(name) else {
            bail!("there is no table or view {name}");
        };
        let widest = columns.iter().map(|column| column.name.chars().count()).max().unwrap_or(0).max(4);
        self.say(&format!("{:<widest$}  Null?     Type", "Name"));
        self.say(&format!("{}  --------  ----", "-".repeat(widest)));
        for column in columns {
            let null = if column.not_null { "NOT NULL" } else { "" };
            self.say(format!("{:<widest$}  {null:<8}  {}", column.name, column.declared).trim_end());
        }
        Ok(())
    }

    fn tables(&mut self) {
        let names = self.database.names();
        let ours = |name: &str| {
            !name.starts_with("v$") && !["dba_", "all_", "user_"].iter().any(|p| name.starts_with(p))
        };
        let mut shown = 0;
        for (name, columns) in names.iter().filter(|(name, _)| ours(name)) {
            self.say(&format!("{name} ({})", columns.join(", ")));
            shown += 1;
        }
        if shown == 0 {
            self.say("no tables yet");
        }
    }

    fn start(&mut self, path: &str) -> Result<()> {
        if self.depth == DEPTH_MAX {
            bail!("scripts call scripts more than {DEPTH_MAX} deep; does {path} call itself?");
        }
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
        self.depth += 1;
        self.script(&text, Typed::Script);
        self.depth -= 1;
        Ok(())
    }

    fn spool(&mut self, path: &str, append: bool) -> Result<()> {
        let mut how = OpenOptions::new();
        if append {
            how.create(true).append(true);
        } else {
            how.write(true).create_new(true);
        }
        let file = how.open(path).with_context(|| {
            format!("cannot spool to {path}; an existing file is not overwritten: take a new name, or type SPOOL {path} APPEND")
        })?;
        self.out.spool = Some(file);
        Ok(())
    }

    /// Commits or rolls back, stops the instance, and says how it went.
    pub fn end(self) -> Result<ExitCode> {
        let (code, rollback) = self.exit.unwrap_or((u8::from(self.errors > 0), false));
        self.database.close(!rollback)?;
        Ok(ExitCode::from(code))
    }
}

fn parameters_like(part: &str) -> String {
    let part = part.replace('\'', "''").replace('_', "\\_");
    let kinds = "decode(type, 1, 'boolean', 2, 'string', 3, 'integer', 'big integer') AS type";
    format!(
        "SELECT name, {kinds}, display_value AS value FROM v$parameter WHERE name LIKE '%{part}%' ESCAPE '\\' ORDER BY name"
    )
}

/// What sqlplus says after a statement.
fn feedback(outcome: Outcome) -> String {
    let rows = |count: u64| format!("{count} row{}", if count == 1 { "" } else { "s" });
    match outcome {
        Outcome::Rows(0) => "no rows selected".into(),
        Outcome::Rows(count) => format!("{} selected.", rows(count)),
        Outcome::Changed(verb, count) => format!("{} {verb}.", rows(count)),
        Outcome::Done(sentence) => sentence.into(),
        Outcome::Nothing(why) => format!("({why})"),
    }
}

fn elapsed(time: Nanos) -> String {
    let micros = time.0 / 1_000;
    let seconds = micros / 1_000_000;
    let (hours, minutes, rest) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("Elapsed: {hours:02}:{minutes:02}:{rest:02}.{:06}", micros % 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_counts_read_well() {
        assert_eq!(elapsed(Nanos(3_723_004_005_999)), "Elapsed: 01:02:03.004005");
        assert_eq!(feedback(Outcome::Rows(1)), "1 row selected.");
        assert_eq!(feedback(Outcome::Changed("deleted", 0)), "0 rows deleted.");
        assert_eq!(feedback(Outcome::Rows(0)), "no rows selected");
    }
}
