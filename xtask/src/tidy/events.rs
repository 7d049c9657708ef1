//! The catalogue of waits is true: somebody waits for each event, or it says for whom it is kept.

use super::{File, Finding, code};

const CATALOGUE: &str = "crates/waits/events.txt";
/// Who waits: the database, its SQL, its load; and a session that has nothing to do.
const WAITERS: [&str; 4] =
    ["crates/engine/src/", "crates/sql/src/", "crates/lab/src/", "crates/waits/src/slot.rs"];

pub fn check(files: &[File]) -> Vec<Finding> {
    let Some(catalogue) = files.iter().find(|file| file.path == CATALOGUE) else { return Vec::new() };
    let waiters = files.iter().filter(|f| f.path.ends_with(".rs") && is_waiter(&f.path));
    let code: Vec<String> = waiters.map(|file| code::only(&file.text)).collect();
    let waited_for = |event: &Entry| {
        let name = format!("Event::{}", identifier(&event.name));
        code.iter().any(|code| code.match_indices(&name).any(|(at, _)| ends_there(code, at + name.len())))
    };
    let finding = |event: &Entry| {
        let text = match (event.reserved, waited_for(event)) {
            (false, false) => {
                "nobody waits for it: enter it where the wait is, or say `reserved:` and for whom"
            }
            (true, true) => "is waited for: `reserved:` is no longer true",
            _ => return None,
        };
        Some(catalogue.finding(event.line, format!("{:?} {text}", event.name)))
    };
    entries(&catalogue.text).iter().filter_map(finding).collect()
}

/// Tests that lie beside the code wait for anything.
fn is_waiter(path: &str) -> bool {
    WAITERS.iter().any(|place| path.starts_with(place)) && !path.contains("/tests")
}

fn ends_there(code: &str, at: usize) -> bool {
    !code[at..].starts_with(|c: char| c.is_ascii_alphanumeric())
}

struct Entry {
    name: String,
    line: usize,
    reserved: bool,
}

fn entries(text: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let entry = line.starts_with(|c: char| !c.is_whitespace() && c != '#' && c != '[');
        if entry {
            entries.push(Entry { name: line.trim_end().to_owned(), line: index + 1, reserved: false });
        } else if line.trim_start().starts_with("reserved:")
            && let Some(last) = entries.last_mut()
        {
            last.reserved = true;
        }
    }
    entries
}

/// As `build.rs` of crate `waits` makes names of variants.
fn identifier(name: &str) -> String {
    let joined = name.replace("I/O", "Io").replace("PL/SQL", "Plsql");
    let words = joined.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| word[..1].to_ascii_uppercase() + &word[1..].to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(entry: &str, code: &str, expected: &[&str]) {
        let file = |path: &str, text: &str| File { path: path.into(), text: text.into() };
        let catalogue = format!("# how to read it\n\n[Commit]\n\n{entry}");
        let files = [file(CATALOGUE, &catalogue), file("crates/engine/src/redo.rs", code)];
        let found: Vec<_> = super::check(&files).into_iter().map(|f| f.text).collect();
        assert_eq!(found.len(), expected.len(), "{entry:?}, {code:?}: {found:?}");
        assert!(found.iter().zip(expected).all(|(text, word)| text.contains(word)), "{found:?}");
    }

    #[test]
    fn an_event_is_waited_for_or_reserved() {
        let plain = "log file sync\n  means:    A commit waits.\n";
        let kept = "log file sync\n  means:    A commit waits.\n  reserved: servers\n";
        check(plain, "slot.enter(Event::LogFileSync, 0, 0, 0)", &[]);
        check(plain, "// Event::LogFileSync", &["nobody waits"]);
        check(plain, "Event::LogFileSyncOther", &["nobody waits"]);
        check(kept, "", &[]);
        check(kept, "Event::LogFileSync", &["no longer"]);
    }
}
