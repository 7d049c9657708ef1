//! The house rules, as a test.
//!
//! One file per kind of rule: [`floors`] (who may import whom), [`source`] (what Rust files may contain), [`docs`] (what
//! the documentation promises), [`events`] (the catalogue of waits is true). Each rule is a function from text to findings, so that each is tested on a bad example.

mod code;
mod docs;
mod events;
mod floors;
mod source;

use crate::{Failure, root};
use std::fmt;
use std::path::Path;

/// A broken rule: where, and what to do.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    file: String,
    /// Starts at 1; 0 when the rule is about the whole file.
    line: usize,
    text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.text),
            line => write!(f, "{}:{line}: {}", self.file, self.text),
        }
    }
}

/// A text file of the repository.
struct File {
    /// From the root, with `/`.
    path: String,
    text: String,
}

impl File {
    fn finding(&self, line: usize, text: impl Into<String>) -> Finding {
        Finding { file: self.path.clone(), line, text: text.into() }
    }
}

pub fn run(_: &[String]) -> Result<(), Failure> {
    let findings = all();
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => {
            println!("tidy");
            Ok(())
        }
        n => Err(format!("{n} house rules are broken (listed above)")),
    }
}

fn all() -> Vec<Finding> {
    let root = root();
    let mut files = Vec::new();
    collect(&root, &root, &mut files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let mut findings = floors::check(&files);
    findings.extend(source::check(&files));
    findings.extend(events::check(&files));
    findings.extend(docs::check(&files, &|path| root.join(path).exists()));
    findings.sort();
    findings
}

/// Rust, Markdown, TOML files and catalogues below `folder`; build output and hidden folders left out, `.cargo` and `.ci` aside.
fn collect(root: &Path, folder: &Path, files: &mut Vec<File>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() {
            if name != "target" && (!name.starts_with('.') || name == ".cargo") {
                collect(root, &path, files);
            }
        } else if [".rs", ".md", ".toml", "events.txt"].iter().any(|end| name.ends_with(end))
            && let (Ok(text), Ok(path)) = (std::fs::read_to_string(&path), path.strip_prefix(root))
        {
            files.push(File { path: path.to_string_lossy().into_owned(), text });
        }
    }
}

#[cfg(test)]
mod tests {
    /// The test that `cargo x test` runs: this very repository obeys.
    #[test]
    fn the_house_is_tidy() {
        let findings = super::all();
        let text: Vec<_> = findings.iter().map(ToString::to_string).collect();
        assert!(findings.is_empty(), "{} house rules are broken:\n{}", findings.len(), text.join("\n"));
    }
}
