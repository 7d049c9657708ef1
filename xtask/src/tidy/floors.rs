//! Imports point down only; siblings never import each other; some crates are the only ones with a dependency.

use super::{File, Finding};

/// The floor of each crate. The binary is on top; `xtask` stands outside the house.
const FLOORS: &[(&str, u32)] = &[
    ("units", 0),
    ("waits", 1),
    ("stats", 1),
    ("record", 1),
    ("io", 2),
    ("host", 2),
    ("nfs", 3),
    ("engine", 3),
    ("nfslab", 4),
    ("sql", 4),
    ("lab", 5),
    ("report", 5),
    ("watch", 5),
    ("redoubt", 6),
];

/// Dependencies that belong to some crates alone.
const EXCLUSIVE: &[(&str, &[&str])] = &[
    ("rusqlite", &["record", "sql"]),
    ("serde", &["record"]),
    ("serde_json", &["record", "host"]),
    ("anyhow", &["redoubt"]),
    ("clap", &["redoubt"]),
    ("io-uring", &["io"]),
    ("postgres", &["lab"]),
    ("mysql", &["lab"]),
    ("ratatui-core", &["watch", "redoubt"]),
    ("crossterm", &["redoubt"]),
];

pub fn check(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        if let Some(folder) = file.path.strip_prefix("crates/").and_then(|p| p.strip_suffix("/Cargo.toml")) {
            findings.extend(crate_edges(file, folder));
        } else if file.path == "xtask/Cargo.toml" {
            let edges = dependencies(&file.text);
            findings.extend(
                edges
                    .iter()
                    .map(|e| file.finding(e.line, format!("xtask has no dependencies, not even {}", e.name))),
            );
        }
    }
    findings
}

fn crate_edges(file: &File, name: &str) -> Vec<Finding> {
    let floor_of = |name: &str| FLOORS.iter().find(|(n, _)| *n == name).map(|(_, floor)| *floor);
    let Some(floor) = floor_of(name) else {
        return vec![
            file.finding(0, format!("crate {name} has no floor: give it one in xtask/src/tidy/floors.rs")),
        ];
    };
    let mut findings = Vec::new();
    for edge in dependencies(&file.text) {
        match floor_of(&edge.name) {
            Some(below) if below >= floor => findings.push(file.finding(
                edge.line,
                format!(
                    "{name} (floor {floor}) imports {} (floor {below}); imports point down only",
                    edge.name
                ),
            )),
            None if name == "units" && !edge.dev => {
                findings.push(file.finding(edge.line, format!("units uses only std, not {}", edge.name)));
            }
            _ => {}
        }
        if let Some((_, owners)) = EXCLUSIVE.iter().find(|(n, _)| *n == edge.name)
            && !owners.contains(&name)
            && !edge.dev
        {
            findings.push(
                file.finding(edge.line, format!("{} belongs to {} alone", edge.name, owners.join(" and "))),
            );
        }
    }
    findings
}

#[derive(Debug, PartialEq)]
struct Edge {
    name: String,
    line: usize,
    /// For tests and benchmarks only.
    dev: bool,
}

/// What a manifest's dependency tables name. `[dependencies.NAME]` and `NAME = …` under `[dependencies]`, also per target.
fn dependencies(manifest: &str) -> Vec<Edge> {
    let mut edges = Vec::new();
    let mut table: Option<bool> = None;
    for (index, line) in manifest.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            let key = header.find("dependencies").map(|at| {
                let start = header[..at].rfind(['.', '\'']).map_or(0, |dot| dot + 1);
                (&header[start..], header[start..].starts_with("dev-"))
            });
            table = key.map(|(_, dev)| dev);
            if let Some((key, dev)) = key
                && let Some((_, name)) = key.split_once('.')
            {
                edges.push(Edge { name: name.to_owned(), line: index + 1, dev });
                table = None;
            }
        } else if let (Some(dev), Some((name, _))) = (table, line.split_once(['=', '.'])) {
            edges.push(Edge { name: name.trim().to_owned(), line: index + 1, dev });
        }
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_one(path: &str, text: &str) -> Vec<String> {
        check(&[File { path: path.into(), text: text.into() }]).into_iter().map(|f| f.text).collect()
    }

    #[test]
    fn reads_every_kind_of_table() {
        let text = "[package]\nname = \"x\"\n[dependencies]\nunits.workspace = true\nlibc = \"0.2\" # c\n\n[dev-dependencies]\n\
                    tempfile = { version = \"3\" }\n[target.'cfg(unix)'.dependencies]\nnix = \"1\"\n[dependencies.serde]\nversion = \"1\"\n\
                    [lints]\nworkspace = true\n";
        let names: Vec<_> = dependencies(text).into_iter().map(|e| (e.name, e.dev)).collect();
        let expected =
            [("units", false), ("libc", false), ("tempfile", true), ("nix", false), ("serde", false)];
        assert_eq!(names, expected.map(|(n, d)| (n.to_owned(), d)));
    }

    #[test]
    fn down_is_allowed_up_and_sideways_are_not() {
        let imports = |name: &str| format!("[dependencies]\n{name}.workspace = true\n");
        assert!(check_one("crates/lab/Cargo.toml", &imports("io")).is_empty());
        for (path, name, words) in [
            ("crates/io/Cargo.toml", "lab", "down only"),
            ("crates/io/Cargo.toml", "host", "down only"),
            ("crates/report/Cargo.toml", "rusqlite", "belongs to record and sql alone"),
            ("crates/units/Cargo.toml", "libc", "only std"),
            ("crates/new/Cargo.toml", "io", "no floor"),
            ("xtask/Cargo.toml", "libc", "no dependencies"),
        ] {
            let found = check_one(path, &imports(name));
            assert!(found.len() == 1 && found[0].contains(words), "{path} {name}: {found:?}");
        }
    }
}
