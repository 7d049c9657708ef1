//! A place that was typed where none is taken, and the reverse: with what to type instead.

use super::Cli;
use clap::CommandFactory;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::path::Path;

/// The same error, with the place where it belongs. `command`: the word behind `redoubt`.
pub fn told(mut error: clap::Error, command: &str) -> clap::Error {
    if let Some(tip) = tip(&error, command) {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    }
    error
}

fn tip(error: &clap::Error, command: &str) -> Option<String> {
    let kind = match error.kind() {
        ErrorKind::UnknownArgument => ContextKind::InvalidArg,
        ErrorKind::ValueValidation => ContextKind::InvalidValue,
        _ => return None,
    };
    let Some(ContextValue::String(word)) = error.get(kind) else { return None };
    let all = Cli::command();
    let known = all.find_subcommand(command)?;
    let takes_dir = known.get_arguments().any(|argument| argument.get_long() == Some("dir"));
    let is_place = word.contains('/') || Path::new(word).is_dir();
    match (takes_dir, word.as_str()) {
        (true, _) if is_place => {
            Some(format!("a place is typed behind --dir: redoubt {command} … --dir {word}"))
        }
        (false, "--dir") => Some(format!("type the place without --dir: redoubt {command} PLACE")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn places_are_led_to_where_they_belong() {
        let said = |words: &[&str]| {
            let typed = ["redoubt"].iter().chain(words);
            let error = Cli::try_parse_from(typed).err().expect("refused");
            told(error, words[0]).to_string()
        };
        let dir = "--dir /no/such";
        for words in
            [&["compare", "/no/such"][..], &["compare", "growth", "/no/such"], &["run", "commit", "/no/such"]]
        {
            assert!(said(words).contains(dir), "{}", said(words));
        }
        assert!(said(&["calibrate", "--dir", "/data"]).contains("redoubt calibrate PLACE"));
        assert!(!said(&["compare", "frobnicate"]).contains("--dir"));
    }
}
