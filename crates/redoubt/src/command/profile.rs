//! `redoubt profile`

use super::{print, width, write_new};
use crate::cli::profile::Profile as Options;
use crate::progress::Screen;
use crate::stop;
use anyhow::{Context, Result, bail, ensure};
use lab::control::Control;
use lab::server::profile::{self, Figure, Profile};
use lab::server::url::{Address, is_url};
use std::path::PathBuf;
use std::process::ExitCode;
use units::{Bytes, clock};

pub fn run(options: &Options) -> Result<ExitCode> {
    if !is_url(&options.target) {
        bail!(
            "profile watches a server that is there: type its URL, such as postgres://user@host/database or mysql://user@host/. The mix of a run \
             of ours: redoubt compare --mix-from RUN"
        );
    }
    let seconds = options.seconds.unwrap_or(options.minutes * 60.0);
    ensure!(
        (2.0..=86_400.0).contains(&seconds),
        "{seconds} seconds are out of range; watch from 2 seconds to a day"
    );
    let address = Address::parse(&options.target)?;
    let path = options.output.clone().unwrap_or_else(usual_name);
    // Not after five minutes.
    ensure!(
        !path.exists(),
        "{} exists, and is not overwritten; give a new name: --output FILE",
        path.display()
    );
    let cancel = stop::on_signal()?;
    let mut screen = Screen::new(options.quiet || options.json);
    let result = profile::watch(&address, seconds, &mut Control { cancel: &cancel, progress: &mut screen });
    screen.clear();
    let profile = result?;
    let text =
        record::json::to_string_pretty(&profile.json()).context("the profile has a number that is none")?;
    write_new(&path, &format!("{text}\n"))?;
    print(&if options.json { text } else { shown(&profile) });
    let block = match profile.block {
        Bytes(8192) => String::new(),
        block => format!(" --block {}k", block.0 >> 10),
    };
    let line =
        format!("Profile: {}\nNow type: redoubt compare --like {}{block}", path.display(), path.display());
    if options.json {
        anstream::eprintln!("{line}");
    } else {
        print(&line);
    }
    Ok(ExitCode::SUCCESS)
}

/// `profile-20261122-1712.json`
fn usual_name() -> PathBuf {
    let digits: String = clock::utc().chars().filter(char::is_ascii_digit).take(12).collect();
    PathBuf::from(format!("profile-{}-{}.json", &digits[..8], &digits[8..]))
}

/// The table, what was hot, what was assumed.
fn shown(profile: &Profile) -> String {
    let mut text = format!(
        "{} {} at {}, watched for {:.0} s\n\n{:<21}{:>14}  {:<12} from\n",
        profile.kind, profile.version, profile.address, profile.seconds, "figure", "value", "grade"
    );
    for figure in &profile.figures {
        let line = format!(
            "{:<21}{:>14}  {:<12} {}\n",
            figure.name,
            value(figure),
            figure.grade.name(),
            figure.source
        );
        text.push_str(&line);
    }
    if !profile.hot.is_empty() {
        let what = match profile.kind {
            lab::server::Kind::Postgres => "Hot tables, blocks got (with their indexes)",
            lab::server::Kind::Mariadb => "Hot files, bytes read and written",
        };
        text.push_str(&format!("\n{what}\n"));
        for hot in &profile.hot {
            text.push_str(&format!(
                "{:>6.1} %  {:>12}/s  {}\n",
                hot.share * 100.0,
                amount(hot.per_second),
                hot.name.replace(char::is_control, "?")
            ));
        }
    }
    text.push('\n');
    for sentence in &profile.assumed {
        text.push_str(&wrapped(sentence, width()));
    }
    text
}

fn value(figure: &Figure) -> String {
    match figure.unit {
        "share" => format!("{:.1} %", figure.value * 100.0),
        "/s" => format!("{}/s", amount(figure.value)),
        "bytes/s" => format!("{:.2} MB/s", figure.value / 1e6),
        "bytes" => format!("{} B", amount(figure.value)),
        _ => amount(figure.value),
    }
}

/// Four digits, or the whole number with its thousands apart.
fn amount(value: f64) -> String {
    if value.abs() < 100.0 {
        return format!("{value:.2}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn wrapped(sentence: &str, width: usize) -> String {
    let (mut text, mut line) = (String::new(), String::from("·"));
    for word in sentence.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > width {
            text.push_str(&line);
            text.push('\n');
            line = " ".into();
        }
        line.push(' ');
        line.push_str(word);
    }
    text.push_str(&line);
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(amount(0.4), "0.40");
        assert_eq!(amount(1234.6), "1,235");
        assert_eq!(amount(7_654_321.0), "7,654,321");
    }

    #[test]
    fn sentences_stay_within_the_width() {
        let text = wrapped("one two three four", 10);
        assert_eq!(text, "· one two\n  three\n  four\n");
    }
}
