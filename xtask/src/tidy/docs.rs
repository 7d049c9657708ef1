//! What the documentation promises: its links lead somewhere, the paths that it names exist, every printed column is explained.

use super::{File, Finding};

/// Folders of this repository; a word in backticks that starts with one of them is a path.
const FOLDERS: [&str; 5] = ["crates/", "docs/", "xtask/", ".ci/", ".cargo/"];
const COLUMNS_DOC: &str = "docs/results.md";

/// `exists`: whether a path from the root exists.
pub fn check(files: &[File], exists: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        let markdown = file.path.ends_with(".md");
        if !markdown && !file.path.ends_with(".rs") {
            continue;
        }
        for (index, line) in file.text.lines().enumerate() {
            let comment = line.trim_start().starts_with("//");
            if markdown {
                for link in links(line) {
                    if !exists(&from_root(&file.path, link)) {
                        findings
                            .push(file.finding(index + 1, format!("links to {link}, which does not exist")));
                    }
                }
            }
            if markdown || comment {
                for path in paths(line) {
                    if !exists(path) {
                        findings.push(file.finding(index + 1, format!("names {path}, which does not exist")));
                    }
                }
            }
        }
    }
    findings.extend(columns(files));
    findings
}

/// Targets of Markdown links to files; addresses and anchors inside the page left out.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| {
        let target = rest.split([')', ' ', '#']).next()?;
        (!target.is_empty() && !target.contains("://") && !target.starts_with("mailto:")).then_some(target)
    })
}

/// `target`, relative to the folder of `file`, as a path from the root.
fn from_root(file: &str, target: &str) -> String {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    if target.starts_with('/') {
        parts.clear();
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Paths in backticks. A pattern (`crates/*/src`, `crates/NAME`) is no path, and behind the name of a foreign repository
/// (owner/name) stands a path of theirs.
fn paths(line: &str) -> Vec<&str> {
    let pieces: Vec<&str> = line.split('`').collect();
    let place_holder = |part: &str| part.len() > 1 && part.chars().all(|c| c.is_ascii_uppercase());
    let mut paths = Vec::new();
    for pair in pieces.chunks_exact(2) {
        let foreign = pair[0].split_whitespace().next_back().is_some_and(|word| word.contains('/'));
        let path = pair[1].split([':', '#', ' ']).next().unwrap_or_default().trim_end_matches('/');
        let pattern = path.contains(['*', '{', '<', '…']) || path.split('/').any(place_holder);
        if !foreign && !pattern && FOLDERS.iter().any(|f| path.starts_with(f)) {
            paths.push(path);
        }
    }
    paths
}

/// Every column that crate report prints is explained in [`COLUMNS_DOC`], in backticks or bold.
fn columns(files: &[File]) -> Vec<Finding> {
    let Some((source, line, columns)) =
        files.iter().filter(|f| f.path.starts_with("crates/report/src/")).find_map(printed)
    else {
        return vec![Finding {
            file: "crates/report/src/lib.rs".into(),
            line: 0,
            text:
                "no `pub const COLUMNS: &[&str]`: the list of printed columns that docs/results.md explains"
                    .into(),
        }];
    };
    let Some(doc) = files.iter().find(|f| f.path == COLUMNS_DOC) else {
        return vec![
            source.finding(line, format!("{COLUMNS_DOC} is missing: it explains every printed column")),
        ];
    };
    let explained =
        |column: &str| ["`", "**"].iter().any(|mark| doc.text.contains(&format!("{mark}{column}{mark}")));
    let missing = columns.into_iter().filter(|column| !explained(column));
    missing
        .map(|column| source.finding(line, format!("column {column:?} is not explained in {COLUMNS_DOC}")))
        .collect()
}

/// File, line and content of the list of printed columns.
fn printed(file: &File) -> Option<(&File, usize, Vec<String>)> {
    let start = file.text.find("pub const COLUMNS: &[&str]")?;
    let line = file.text[..start].lines().count() + 1;
    let list = file.text[start..].split_once("= &[")?.1.split_once("];")?.0;
    Some((file, line, list.split('"').skip(1).step_by(2).map(ToOwned::to_owned).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.into(), text: text.into() }
    }

    const REPORT: &str = "pub const COLUMNS: &[&str] = &[\n    \"rate\",\n    \"in flight\",\n];";

    #[test]
    fn dead_links_and_paths_are_found() {
        let text = "[a](b.md) [c](../d.md#x) [e](https://e.org) [f](#g) `crates/gone/src` `crates/lab` `crates/NAME` `crates/*/x` their/repo `docs/x`\n";
        let files = [
            file("docs/a.md", text),
            file("crates/report/src/lib.rs", REPORT),
            file("docs/results.md", "`rate` and **in flight**"),
        ];
        let found = check(&files, &|path| ["docs/b.md", "crates/lab"].contains(&path));
        let texts: Vec<_> = found.iter().map(|f| f.text.as_str()).collect();
        assert_eq!(
            texts,
            ["links to ../d.md, which does not exist", "names crates/gone/src, which does not exist"]
        );
    }

    #[test]
    fn code_comments_name_only_what_exists() {
        let files = [
            file("crates/report/src/lib.rs", &format!("/// See `docs/gone.md`.\n{REPORT}")),
            file("docs/results.md", "`rate`, `in flight`"),
        ];
        assert_eq!(check(&files, &|_| false).len(), 1);
    }

    #[test]
    fn every_printed_column_is_explained() {
        let report = || file("crates/report/src/lib.rs", REPORT);
        let yes = |_: &str| true;
        assert!(check(&[report(), file("docs/results.md", "`rate`: … **in flight**: …")], &yes).is_empty());
        let found = check(&[report(), file("docs/results.md", "`rate` only")], &yes);
        assert!(found.len() == 1 && found[0].text.contains("in flight"), "{found:?}");
        assert_eq!(check(&[report()], &yes).len(), 1);
        assert_eq!(check(&[], &yes).len(), 1);
    }
}
