//! `redoubt serve`

use crate::loopback::{self, Asked, Door};
use crate::stop;
use anyhow::Result;
use record::Reader;
use record::runs::{self, RunSummary};
use std::io;
use std::net::TcpStream;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use units::{Nanos, clock};

/// How often somebody is let in.
const LOOK_EVERY: Nanos = Nanos::millis(50);
/// Most runs side by side: more are no comparison.
const SIDES_MAX: usize = 8;

pub fn run() -> Result<ExitCode> {
    let stop = stop::on_signal()?;
    let door = Door::open()?;
    let Door { port, token, .. } = &door;
    anstream::println!(
        "Runs in {}\nOpen http://127.0.0.1:{port}/{token}/\nOnly from this machine; from another one: ssh -L {port}:127.0.0.1:{port} HOST. Ctrl-C ends \
         it.",
        runs::directory().display()
    );
    while !stop.load(Ordering::Relaxed) {
        door.answer(answer);
        clock::sleep(LOOK_EVERY);
    }
    Ok(ExitCode::SUCCESS)
}

fn answer(stream: &mut TcpStream, asked: Asked) -> io::Result<()> {
    let all = runs::list();
    if asked.path == "/" {
        return loopback::page(stream, &::report::runs_html(&runs::directory().display().to_string(), &all));
    }
    let Some(chosen) = chosen(&asked, &all) else { return loopback::refuse(stream, loopback::NOT_HERE) };
    if chosen.is_empty() || chosen.len() > SIDES_MAX {
        let words = "choose two to eight runs on the page before, and press the button again\n";
        return loopback::refuse(stream, ("400 Bad Request", words));
    }
    match read(&chosen) {
        Ok(html) => loopback::page(stream, &html),
        Err(error) => loopback::refuse(stream, ("500 Internal Server Error", &format!("{error:#}\n"))),
    }
}

/// The runs that are asked for, the oldest first; none for a page that is not there. Only names of the list count: no path gets in.
fn chosen<'a>(asked: &Asked, all: &'a [RunSummary]) -> Option<Vec<&'a RunSummary>> {
    let named = |id: &str| all.iter().find(|run| run.id == id);
    if let Some(id) = asked.path.strip_prefix("/run/") {
        return named(id).map(|run| vec![run]);
    }
    if asked.path != "/compare" {
        return None;
    }
    let names = asked.query.split('&').filter_map(|pair| pair.strip_prefix("run="));
    let mut chosen: Vec<_> = names.map(named).collect::<Option<_>>()?;
    chosen.sort_by(|a, b| a.id.cmp(&b.id));
    Some(chosen)
}

fn read(chosen: &[&RunSummary]) -> Result<String> {
    let readers: Vec<Reader> = chosen.iter().map(|run| Reader::open(&run.path)).collect::<Result<_, _>>()?;
    let html = ::report::html(&readers)?;
    let back = if chosen.len() == 1 { "../" } else { "./" };
    // A single run's page is one folder deeper.
    Ok(html.replacen("<body>\n", &format!("<body>\n<nav><a href=\"{back}\">All runs</a></nav>\n"), 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Bytes;

    #[test]
    fn only_listed_runs_are_opened() {
        let run = |id: &str| RunSummary {
            id: id.into(),
            path: id.into(),
            kind: String::new(),
            target: String::new(),
            started_utc: String::new(),
            status: String::new(),
            size: Bytes(0),
        };
        let all = [run("b"), run("a")];
        let ids = |path: &str, query: &str| {
            let asked = Asked { path: path.into(), query: query.into() };
            chosen(&asked, &all).map(|runs| runs.iter().map(|run| run.id.as_str()).collect::<String>())
        };
        assert_eq!(ids("/run/a", "").as_deref(), Some("a"));
        assert_eq!(ids("/compare", "run=b&run=a").as_deref(), Some("ab"), "the older one first");
        assert_eq!(ids("/compare", "").as_deref(), Some(""));
        for (path, query) in [("/run/../a", ""), ("/run/c", ""), ("/compare", "run=/etc/passwd"), ("/x", "")]
        {
            assert_eq!(ids(path, query), None, "{path} {query}");
        }
    }
}
