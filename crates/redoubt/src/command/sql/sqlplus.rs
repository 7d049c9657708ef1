//! Commands of sqlplus, and ours with a backslash. Text in, [`Command`] out.

use sql::script::command_name;

/// What a command asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// `SET TIMING ON`.
    Timing(bool),
    /// `\timing`: the other way round.
    TimingToggle,
    /// `SET FEEDBACK OFF`.
    Feedback(bool),
    /// `SET HEADING OFF`.
    Heading(bool),
    /// `SET ECHO ON`: statements of scripts are shown.
    Echo(bool),
    /// `SET TERMOUT OFF`: results of scripts are not shown.
    Termout(bool),
    /// `SET AUTOCOMMIT ON`.
    Autocommit(bool),
    /// `SET LINESIZE 120`.
    Linesize(usize),
    /// `PROMPT text`.
    Prompt(String),
    /// `DESCRIBE t`, `\d t`.
    Describe(String),
    /// `\d`: tables.
    Tables,
    /// `SHOW PARAMETER name`.
    ShowParameter(String),
    /// `SHOW SGA`.
    ShowSga,
    /// `SHOW USER`.
    ShowUser,
    /// `@file`, `START file`, `\i file`.
    Start(String),
    /// `SPOOL file`; `append` goes on at its end.
    Spool {
        /// The file.
        path: String,
        /// `APPEND`.
        append: bool,
    },
    /// `SPOOL OFF`.
    SpoolOff,
    /// `WHENEVER SQLERROR EXIT`, or `CONTINUE`.
    OnError(OnError),
    /// `STARTUP`.
    Startup,
    /// `SHUTDOWN [IMMEDIATE | ABORT …]`.
    Shutdown {
        /// ABORT.
        abort: bool,
    },
    /// `EXIT [code] [ROLLBACK]`.
    Exit {
        /// For the caller.
        code: u8,
        /// Not committed.
        rollback: bool,
    },
    /// `HELP`, `\?`.
    Help,
    /// Of no effect here, and harmless: it is about looks.
    Looks,
    /// Not here; a sentence.
    Not(String),
}

/// What follows an error in a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// The next statement.
    Continue,
    /// The end.
    Exit {
        /// For the caller.
        code: u8,
        /// Not committed.
        rollback: bool,
    },
}

/// Understands a command line.
pub fn parse(line: &str) -> Command {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix("@@").or_else(|| line.strip_prefix('@')) {
        return Command::Start(script_name(rest));
    }
    if line.starts_with('!') {
        return Command::Not("no shell from here; open another terminal".into());
    }
    let mut words = line.split_whitespace();
    let first = words.next().unwrap_or_default();
    let rest = line[first.len()..].trim();
    if let Some(name) = first.strip_prefix('\\') {
        return backslash(name, rest);
    }
    if first.eq_ignore_ascii_case("set") {
        return set(rest);
    }
    let upper = rest.to_ascii_uppercase();
    let upper: Vec<&str> = upper.split_whitespace().collect();
    match command_name(first) {
        Some("PROMPT") => Command::Prompt(rest.to_owned()),
        Some("REMARK") => Command::Looks,
        Some("DESCRIBE") => Command::Describe(rest.to_owned()),
        Some("SHOW") => show(&upper, rest),
        Some("START") => Command::Start(script_name(rest)),
        Some("SPOOL") => spool(rest),
        Some("WHENEVER") => whenever(&upper),
        Some("EXIT" | "QUIT") => {
            let (code, rollback) = exit(&upper);
            Command::Exit { code, rollback }
        }
        Some("STARTUP") => Command::Startup,
        Some("SHUTDOWN") => Command::Shutdown { abort: upper.first() == Some(&"ABORT") },
        Some("HELP") => Command::Help,
        Some("TIMING") => Command::Not("for each statement's time: SET TIMING ON".into()),
        Some(
            "BREAK" | "BTITLE" | "CLEAR" | "COLUMN" | "COMPUTE" | "PAUSE" | "REPFOOTER" | "REPHEADER"
            | "TTITLE",
        ) => Command::Looks,
        Some(name) => Command::Not(format!("{name} is not known here; type HELP")),
        None => Command::Not(format!("{first} is not known here; type HELP")),
    }
}

fn backslash(name: &str, rest: &str) -> Command {
    match name {
        "timing" => on_off(rest).map_or(Command::TimingToggle, Command::Timing),
        "d" if rest.is_empty() => Command::Tables,
        "dt" => Command::Tables,
        "d" => Command::Describe(rest.to_owned()),
        "i" => Command::Start(script_name(rest)),
        "q" => Command::Exit { code: 0, rollback: false },
        "?" | "h" | "help" => Command::Help,
        _ => Command::Not(format!("\\{name} is not known here; type \\?")),
    }
}

fn set(rest: &str) -> Command {
    let mut words = rest.split_whitespace();
    let (Some(name), value) = (words.next(), words.next().unwrap_or_default()) else {
        return Command::Not("write SET TIMING ON, SET FEEDBACK OFF …".into());
    };
    let is = |full: &str, shortest: usize| {
        let upper = name.to_ascii_uppercase();
        upper.len() >= shortest && full.starts_with(&upper)
    };
    let switch = |command: fn(bool) -> Command| {
        on_off(value).map_or_else(|| Command::Not(format!("write SET {name} ON or OFF")), command)
    };
    if is("TIMING", 4) {
        switch(Command::Timing)
    } else if is("FEEDBACK", 4) {
        // SET FEEDBACK 6: from six rows on; what matters is whether it is off.
        value.parse::<u32>().map_or_else(|_| switch(Command::Feedback), |rows| Command::Feedback(rows > 0))
    } else if is("HEADING", 3) {
        switch(Command::Heading)
    } else if is("ECHO", 4) {
        switch(Command::Echo)
    } else if is("TERMOUT", 4) {
        switch(Command::Termout)
    } else if is("AUTOCOMMIT", 4) {
        switch(Command::Autocommit)
    } else if is("LINESIZE", 3) {
        match value.parse() {
            Ok(characters) if characters > 0 => Command::Linesize(characters),
            _ => Command::Not("write SET LINESIZE 120".into()),
        }
    } else {
        // PAGESIZE, TRIMSPOOL, COLSEP …: how sqlplus lays results out.
        Command::Looks
    }
}

fn on_off(word: &str) -> Option<bool> {
    match word.to_ascii_uppercase().as_str() {
        "ON" => Some(true),
        "OFF" => Some(false),
        _ => None,
    }
}

fn show(upper: &[&str], rest: &str) -> Command {
    let first = upper.first().copied().unwrap_or_default();
    let behind = rest.split_whitespace().nth(1).unwrap_or_default();
    match first {
        "PARAMETER" | "PARAMETERS" => Command::ShowParameter(behind.to_ascii_lowercase()),
        "SGA" => Command::ShowSga,
        "USER" => Command::ShowUser,
        _ => Command::Not("there are SHOW PARAMETER [name], SHOW SGA and SHOW USER".into()),
    }
}

fn spool(rest: &str) -> Command {
    let mut words = rest.split_whitespace();
    let Some(path) = words.next() else { return Command::Not("write SPOOL file, or SPOOL OFF".into()) };
    if path.eq_ignore_ascii_case("off") || path.eq_ignore_ascii_case("out") {
        return Command::SpoolOff;
    }
    let append = words.next().is_some_and(|word| word.to_ascii_uppercase().starts_with("APP"));
    let path = if path.contains('.') { path.to_owned() } else { format!("{path}.lst") };
    Command::Spool { path, append }
}

fn whenever(upper: &[&str]) -> Command {
    match upper {
        ["OSERROR", ..] => Command::Looks,
        ["SQLERROR", "CONTINUE", ..] => Command::OnError(OnError::Continue),
        ["SQLERROR", "EXIT", rest @ ..] => {
            let (code, rollback) = exit(rest);
            // EXIT alone ends well in sqlplus; a script that failed should not.
            let code = if rest.is_empty() || matches!(rest[0], "ROLLBACK" | "COMMIT") { 1 } else { code };
            Command::OnError(OnError::Exit { code, rollback })
        }
        _ => Command::Not("write WHENEVER SQLERROR EXIT, or WHENEVER SQLERROR CONTINUE".into()),
    }
}

/// `[SUCCESS | FAILURE | WARNING | number | SQL.SQLCODE] [COMMIT | ROLLBACK]`
fn exit(upper: &[&str]) -> (u8, bool) {
    let code = match upper.first() {
        Some(&"FAILURE" | &"WARNING" | &"SQL.SQLCODE") => 1,
        Some(number) => number.parse().unwrap_or(0),
        None => 0,
    };
    (code, upper.contains(&"ROLLBACK"))
}

fn script_name(text: &str) -> String {
    let name = text.trim().trim_end_matches(';').trim_end().trim_matches(['"', '\'']);
    let file = name.rsplit('/').next().unwrap_or(name);
    if file.contains('.') { name.to_owned() } else { format!("{name}.sql") }
}

/// What `HELP` shows.
pub const HELP: &str = "\
Statements end with ; or a line with only /. They are SQL as Oracle and SQLite spell it, and
  ALTER SYSTEM FLUSH BUFFER_CACHE | SWITCH LOGFILE | CHECKPOINT | SET parameter = value
  ALTER DATABASE ADD LOGFILE GROUP 4 ('/ssd/redo04.log') SIZE 100M | DROP LOGFILE GROUP 1
  CREATE [UNDO | TEMPORARY] TABLESPACE name DATAFILE '/ssd/x.dbf' SIZE 1G

  DESCRIBE t, \\d t          columns of a table or view        \\d            tables
  SHOW PARAMETER cache      parameters by a part of the name  SHOW SGA      memory
  SET TIMING ON, \\timing    how long each statement takes     SET HEADING OFF, SET FEEDBACK OFF
  @file, \\i file            run a script                      SPOOL file, SPOOL OFF
  WHENEVER SQLERROR EXIT    end a script at its first error   PROMPT text
  SHUTDOWN, STARTUP         stop and start the instance       EXIT, \\q      commit and leave

Views: v$session, v$system_event, v$active_session_history, v$iostat_file, v$sysstat, v$log, v$bh,
v$parameter, dba_segments, dba_data_files, dba_tables …: type the begin of a name and Tab.";

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Command) {
        assert_eq!(parse(line), expected, "{line}");
    }

    #[test]
    fn settings() {
        check("SET TIMING ON", Command::Timing(true));
        check("set timi off", Command::Timing(false));
        check("\\timing", Command::TimingToggle);
        check("\\timing off", Command::Timing(false));
        check("set feed 6", Command::Feedback(true));
        check("set feedback 0", Command::Feedback(false));
        check("set hea off", Command::Heading(false));
        check("set lin 200", Command::Linesize(200));
        check("set pagesize 0", Command::Looks);
        check("col name format a30", Command::Looks);
        assert!(matches!(parse("set timing maybe"), Command::Not(_)));
    }

    #[test]
    fn scripts_and_spools() {
        check("@growth", Command::Start("growth.sql".into()));
        check("start /tmp/x.y/growth.txt;", Command::Start("/tmp/x.y/growth.txt".into()));
        check("spool result", Command::Spool { path: "result.lst".into(), append: false });
        check("spool out.txt append", Command::Spool { path: "out.txt".into(), append: true });
        check("SPOOL OFF", Command::SpoolOff);
    }

    #[test]
    fn ends() {
        check("exit", Command::Exit { code: 0, rollback: false });
        check("quit 3 rollback", Command::Exit { code: 3, rollback: true });
        check("whenever sqlerror exit", Command::OnError(OnError::Exit { code: 1, rollback: false }));
        check(
            "whenever sqlerror exit 7 rollback",
            Command::OnError(OnError::Exit { code: 7, rollback: true }),
        );
        check(
            "WHENEVER SQLERROR EXIT SQL.SQLCODE",
            Command::OnError(OnError::Exit { code: 1, rollback: false }),
        );
        check("whenever sqlerror continue", Command::OnError(OnError::Continue));
        check("shutdown abort", Command::Shutdown { abort: true });
        check("shutdown immediate", Command::Shutdown { abort: false });
    }

    #[test]
    fn looking() {
        check("desc t", Command::Describe("t".into()));
        check("\\d", Command::Tables);
        check("show parameter CACHE", Command::ShowParameter("cache".into()));
        check("show parameters", Command::ShowParameter(String::new()));
        check("prompt it's on", Command::Prompt("it's on".into()));
        assert!(matches!(parse("exec dbms_stats.x"), Command::Not(_)));
        assert!(matches!(parse("!ls"), Command::Not(_)));
    }
}
