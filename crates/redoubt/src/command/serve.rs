//! `redoubt serve`

use crate::cli::Serve;
use crate::loopback::{self, Asked, Door};
use crate::stop;
use anyhow::{Result, ensure};
use record::{Reader, runs};
use std::io;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use units::{Nanos, clock};

/// How often somebody is let in.
const LOOK_EVERY: Nanos = Nanos::millis(50);
/// Most runs side by side: more are no comparison.
const SIDES_MAX: usize = 8;

pub fn run(options: Serve) -> Result<ExitCode> {
    if let Some(typed) = &options.folder {
        ensure!(
            typed.is_dir(),
            "{} is no folder. To show one run: redoubt report RUN --html FILE",
            typed.display()
        );
    }
    let folder = options.folder.unwrap_or_else(runs::directory);
    let stop = stop::on_signal()?;
    let door = Door::open()?;
    let Door { port, token, .. } = &door;
    anstream::println!(
        "Runs in {}\nOpen http://127.0.0.1:{port}/{token}/\nOnly from this machine; from another one: ssh -L {port}:127.0.0.1:{port} HOST. Ctrl-C ends \
         it.",
        folder.display()
    );
    while !stop.load(Ordering::Relaxed) {
        let folder = folder.clone();
        door.answer(move |stream, asked| answer(stream, &asked, &folder));
        clock::sleep(LOOK_EVERY);
    }
    Ok(ExitCode::SUCCESS)
}

fn answer(stream: &mut TcpStream, asked: &Asked, folder: &Path) -> io::Result<()> {
    if asked.path == "/" {
        let all = runs::list_in(folder);
        return loopback::page(stream, &::report::runs_html(&folder.display().to_string(), &all));
    }
    // Of all those only what was chosen is opened.
    let Some(chosen) = chosen(asked, runs::files(folder)) else {
        return loopback::refuse(stream, loopback::NOT_HERE);
    };
    if chosen.is_empty() || chosen.len() > SIDES_MAX {
        let words = "choose two to eight runs on the page before, and press the button again\n";
        return loopback::refuse(stream, ("400 Bad Request", words));
    }
    match read(&chosen) {
        Ok(html) => loopback::page(stream, &html),
        Err(error) => loopback::refuse(stream, ("500 Internal Server Error", &format!("{error:#}\n"))),
    }
}

/// The records that are asked for, the oldest first; none for a page that is not there. Only names of the list count: no path gets in.
fn chosen(asked: &Asked, all: Vec<(String, PathBuf)>) -> Option<Vec<PathBuf>> {
    let names: Vec<String> = match asked.path.strip_prefix("/run/") {
        Some(id) => vec![decoded(id)],
        None if asked.path == "/compare" => {
            let chosen = asked.query.split('&').filter_map(|pair| pair.strip_prefix("run="));
            // A form writes spaces so.
            chosen.map(|id| decoded(&id.replace('+', " "))).collect()
        }
        None => return None,
    };
    let known = |name: &String| all.iter().any(|(id, _)| id == name);
    if !names.iter().all(known) {
        return None;
    }
    let mut chosen: Vec<_> = all.into_iter().filter(|(id, _)| names.contains(id)).collect();
    chosen.sort();
    Some(chosen.into_iter().map(|(_, path)| path).collect())
}

/// With `%20` and the like as what they stand for; all else stays as it is.
fn decoded(word: &str) -> String {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|two| *first == b'%' && two.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|two| std::str::from_utf8(two).ok());
        let byte = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn read(chosen: &[PathBuf]) -> Result<String> {
    let readers: Vec<Reader> = chosen.iter().map(|path| Reader::open(path)).collect::<Result<_, _>>()?;
    let html = ::report::html(&readers)?;
    let back = if chosen.len() == 1 { "../" } else { "./" };
    // A single run's page is one folder deeper.
    Ok(html.replacen("<body>\n", &format!("<body>\n<nav><a href=\"{back}\">All runs</a></nav>\n"), 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_runs_are_opened() {
        let all = || ["b", "a", "é 5%"].map(|id| (id.to_owned(), PathBuf::from(id))).to_vec();
        let ids = |path: &str, query: &str| {
            let asked = Asked { path: path.into(), query: query.into() };
            chosen(&asked, all())
                .map(|runs| runs.iter().map(|run| run.display().to_string()).collect::<String>())
        };
        assert_eq!(ids("/run/a", "").as_deref(), Some("a"));
        assert_eq!(ids("/compare", "run=b&run=a").as_deref(), Some("ab"), "the older one first");
        assert_eq!(ids("/compare", "").as_deref(), Some(""));
        assert_eq!(ids("/run/%C3%A9%205%25", "").as_deref(), Some("é 5%"));
        assert_eq!(ids("/compare", "run=a&run=%C3%A9+5%25").as_deref(), Some("aé 5%"));
        for (path, query) in [
            ("/run/../a", ""),
            ("/run/..%2fa", ""),
            ("/run/%", ""),
            ("/run/%+1", ""),
            ("/run/%ff", ""),
            ("/run/c", ""),
            ("/compare", "run=/etc/passwd"),
            ("/compare", "run=%2e%2e%2fa"),
            ("/x", ""),
        ] {
            assert_eq!(ids(path, query), None, "{path} {query}");
        }
    }
}
