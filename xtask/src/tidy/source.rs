//! What Rust files may contain, and where.

use super::{File, Finding, code};

const LINES_MAX: usize = 800;

/// Words that put off work. Built at compile time so that this file does not contain them.
const PUT_OFF: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("#[ig", "nore")];
const CLOCKS: [&str; 4] = ["Instant::now", "SystemTime::now", "UNIX_EPOCH", "RandomState"];
const PRINTS: [&str; 5] = ["println!", "print!", "eprintln!", "eprint!", "dbg!"];

pub fn check(files: &[File]) -> Vec<Finding> {
    files.iter().filter(|f| f.path.ends_with(".rs")).flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let place = Place::of(&file.path);
    if !file.text.starts_with("//!") {
        findings.push(file.finding(1, "opens without `//!`: say what is here, what is not, where to start"));
    }
    if file.text.lines().count() > LINES_MAX {
        findings.push(file.finding(0, format!("longer than {LINES_MAX} lines: split it along journeys")));
    }
    if place.crate_root && place.package != "io" && !file.text.contains("\n#![forbid(unsafe_code)]\n") {
        findings.push(file.finding(0, "a crate root without #![forbid(unsafe_code)]"));
    }
    for (index, line) in file.text.lines().enumerate() {
        if let Some(word) = PUT_OFF.iter().find(|w| line.contains(*w)) {
            findings.push(file.finding(index + 1, format!("{word}: do it now, or open an issue")));
        }
    }
    let code = code::only(&file.text);
    for (index, line) in shipped(&code, place).lines().enumerate() {
        if let Some(call) = CLOCKS.iter().find(|c| line.contains(*c))
            && !["units", "xtask"].contains(&place.package)
        {
            findings.push(
                file.finding(index + 1, format!("{call}: only crate units reads a clock or draws a seed")),
            );
        }
        if let Some(call) = PRINTS.iter().find(|c| calls(line, c))
            && !["redoubt", "xtask"].contains(&place.package)
        {
            findings.push(file.finding(index + 1, format!("{call}: only crate redoubt prints")));
        }
    }
    if place.package != "io" {
        for (index, line) in code.lines().enumerate() {
            if line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe") {
                findings.push(file.finding(index + 1, "unsafe outside crate io"));
            }
        }
    }
    findings
}

/// Where a file stands in the house.
#[derive(Clone, Copy)]
struct Place<'a> {
    package: &'a str,
    /// `src/lib.rs` or `src/main.rs`.
    crate_root: bool,
    /// Under `src` and not a file of tests.
    shipped: bool,
}

impl<'a> Place<'a> {
    fn of(path: &'a str) -> Self {
        let inside = path.strip_prefix("crates/").unwrap_or(path);
        let (package, rest) = inside.split_once('/').unwrap_or((inside, ""));
        let tests = rest.ends_with("/tests.rs") || rest.contains("/tests/");
        Self {
            package,
            crate_root: rest == "src/lib.rs" || rest == "src/main.rs",
            shipped: rest.starts_with("src/") && !tests,
        }
    }
}

/// The part of a file that is shipped: tests come last in a file, and are cut off.
fn shipped<'c>(code: &'c str, place: Place<'_>) -> &'c str {
    if !place.shipped {
        return "";
    }
    code.find("#[cfg(test)]\nmod tests {").map_or(code, |at| &code[..at])
}

/// Whether `line` calls the macro itself, and not one whose name ends alike, such as `anstream::println!` of redoubt.
fn calls(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str, expected: &[&str]) {
        let found = super::check(&[File { path: path.into(), text: text.into() }]);
        let texts: Vec<_> = found.iter().map(|f| f.text.as_str()).collect();
        assert_eq!(texts.len(), expected.len(), "{path}: {texts:?}");
        for (text, words) in texts.iter().zip(expected) {
            assert!(text.contains(words), "{text}");
        }
    }

    #[test]
    fn a_file_opens_with_its_purpose_and_stays_short() {
        check("crates/lab/src/a.rs", "//! What is here.\nfn f() {}\n", &[]);
        check("crates/lab/src/a.rs", "use std;\n", &["opens without"]);
        check("crates/lab/src/a.rs", &format!("//! x\n{}", "\n".repeat(800)), &["longer than"]);
    }

    #[test]
    fn a_crate_root_forbids_unsafe() {
        check("crates/lab/src/lib.rs", "//! x\n#![forbid(unsafe_code)]\n", &[]);
        check("crates/lab/src/lib.rs", "//! x\n", &["crate root"]);
        check("crates/io/src/lib.rs", "//! x\nunsafe fn f() {}\n", &[]);
        check("crates/lab/tests/a.rs", "//! x\nfn f() { unsafe { g() } }\n", &["unsafe outside"]);
    }

    #[test]
    fn clocks_and_printing_have_their_crate() {
        let clock = "//! x\nfn f() { Instant::now(); }\n";
        check("crates/units/src/clock.rs", clock, &[]);
        check("crates/lab/src/a.rs", clock, &["only crate units"]);
        check("crates/lab/benches/a.rs", clock, &[]);
        let print = "//! x\nfn f() { println!(\"x\"); }\n";
        check("crates/redoubt/src/a.rs", print, &[]);
        check("crates/lab/src/a.rs", print, &["only crate redoubt"]);
        check("crates/lab/src/a/tests.rs", print, &[]);
        check("crates/lab/src/a.rs", "//! x\n#[cfg(test)]\nmod tests {\n println!();\n}\n", &[]);
        check("crates/lab/src/a.rs", "//! x\n// Instant::now and println! are only words here\n", &[]);
    }

    #[test]
    fn nothing_is_put_off() {
        for word in PUT_OFF {
            check("crates/lab/src/a.rs", &format!("//! x\n// {word} later\n"), &["do it now"]);
        }
    }
}
