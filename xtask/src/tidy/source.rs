//! What Rust files may contain, and where.

use super::{File, Finding, code};

const LINES_MAX: usize = 800;

/// Words that put off work. Built at compile time so that this file does not contain them.
const PUT_OFF: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("#[ig", "nore")];
const CLOCKS: [&str; 4] = ["Instant::now", "SystemTime::now", "UNIX_EPOCH", "RandomState"];
const PRINTS: [&str; 5] = ["println!", "print!", "eprintln!", "eprint!", "dbg!"];

/// Files outside crate `io` that may hold `unsafe`, because a trait of somebody else's is unsafe to implement. Their crate roots
/// deny it for all others. Each has its decision in `docs/decisions/`.
const UNSAFE_FILES: [&str; 1] = ["crates/sql/src/virtual_table/adapter.rs"];

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
    if place.crate_root && place.package != "io" {
        let lock = place.unsafe_lock();
        if !file.text.contains(&format!("\n{lock}\n")) {
            findings.push(file.finding(0, format!("a crate root without {lock}")));
        }
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
    if place.package != "io" && !UNSAFE_FILES.contains(&file.path.as_str()) {
        for (index, line) in code.lines().enumerate() {
            let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
            if words.clone().any(|word| word == "unsafe") {
                findings.push(file.finding(index + 1, "unsafe outside crate io"));
            }
            if words.any(|word| word == "unsafe_code") && !is_lock(&code, index, place) {
                findings
                    .push(file.finding(index + 1, "unsafe_code is allowed for a file that may not have it"));
            }
        }
    }
    findings
}

/// Where a file stands in the house.
#[derive(Clone, Copy)]
struct Place<'a> {
    path: &'a str,
    package: &'a str,
    /// `src/lib.rs` or `src/main.rs`.
    crate_root: bool,
    /// Under `src` and not a file of tests.
    shipped: bool,
}

/// Whether the line about `unsafe_code` forbids it, or lets it into a module whose file is listed.
fn is_lock(code: &str, index: usize, place: Place<'_>) -> bool {
    let mut lines = code.lines().skip(index).map(str::trim);
    let line = lines.next().unwrap_or_default();
    if line == "#![forbid(unsafe_code)]" || (place.crate_root && line == place.unsafe_lock()) {
        return true;
    }
    let module = lines.next().and_then(|next| next.strip_prefix("mod ")?.strip_suffix(';'));
    let listed = |module: &str| {
        let folder = place.path.strip_suffix("mod.rs").unwrap_or_default();
        UNSAFE_FILES.contains(&format!("{folder}{module}.rs").as_str())
    };
    line == "#[allow(unsafe_code)]" && module.is_some_and(listed)
}

impl<'a> Place<'a> {
    fn of(path: &'a str) -> Self {
        let inside = path.strip_prefix("crates/").unwrap_or(path);
        let (package, rest) = inside.split_once('/').unwrap_or((inside, ""));
        let tests = rest.ends_with("/tests.rs") || rest.contains("/tests/");
        Self {
            path,
            package,
            crate_root: rest == "src/lib.rs" || rest == "src/main.rs",
            shipped: rest.starts_with("src/") && !tests,
        }
    }

    /// What its crate's root must say: `forbid` cannot be lifted for one module, `deny` can.
    fn unsafe_lock(self) -> &'static str {
        let inside = |file: &&str| {
            file.strip_prefix("crates/").is_some_and(|f| f.split('/').next() == Some(self.package))
        };
        if UNSAFE_FILES.iter().any(inside) { "#![deny(unsafe_code)]" } else { "#![forbid(unsafe_code)]" }
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
    fn one_file_of_sql_may_be_unsafe() {
        let block = "//! x\nfn f() { unsafe { g() } }\n";
        check("crates/sql/src/virtual_table/adapter.rs", block, &[]);
        check("crates/sql/src/virtual_table/rows.rs", block, &["unsafe outside"]);
        check("crates/lab/src/virtual_table/adapter.rs", block, &["unsafe outside"]);
        check("crates/sql/src/lib.rs", "//! x\n#![deny(unsafe_code)]\n", &[]);
        check("crates/sql/src/lib.rs", "//! x\n", &["without #![deny(unsafe_code)]"]);
        check(
            "crates/lab/src/lib.rs",
            "//! x\n#![deny(unsafe_code)]\n",
            &["without #![forbid", "is allowed"],
        );
        let module = "//! x\n#[allow(unsafe_code)]\nmod adapter;\n";
        check("crates/sql/src/virtual_table/mod.rs", module, &[]);
        check("crates/sql/src/view/mod.rs", module, &["is allowed"]);
        check("crates/sql/src/virtual_table/mod.rs", &module.replace("adapter", "rows"), &["is allowed"]);
        check("crates/sql/src/plan.rs", "//! x\n#![allow(unsafe_code)]\n", &["is allowed"]);
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
