//! `cargo x bench`: the benchmarks are the files of `crates/*/benches` and the programs in `peers`; their first line says what they show.

use crate::shell::{cargo, run as sh};
use crate::{Failure, packages, root};
use std::path::Path;

/// A benchmark.
struct Bench {
    name: String,
    of: Of,
    about: String,
}

/// Whose.
enum Of {
    /// Of this crate.
    Package(String),
    /// Beside a peer that is a crate, in a workspace of its own.
    Peer,
}

pub fn run(arguments: &[String]) -> Result<(), Failure> {
    let benches = all(&root());
    let Some(name) = arguments.first() else {
        println!("cargo x bench NAME [ARGS]\n");
        for bench in benches {
            println!("  {:<12} {}", bench.name, bench.about);
        }
        return Ok(());
    };
    let Some(bench) = benches.iter().find(|b| b.name == *name) else {
        return Err(format!("there is no benchmark {name:?}. Type `cargo x bench` for the list."));
    };
    packages::ensure(packages::BENCH)?;
    let rest = arguments[1..].iter().filter(|a| *a != "--");
    let mut command = cargo();
    match &bench.of {
        Of::Package(package) => {
            command.args(["bench", "--quiet", "--package", package, "--bench", &bench.name, "--"]);
        }
        Of::Peer => {
            command.args(["run", "--quiet", "--release", "--locked", "--manifest-path"]);
            command.arg(root().join("peers").join(&bench.name).join("Cargo.toml"));
            command.args(["--", "--bench"]);
        }
    }
    sh(command.args(rest))
}

fn all(root: &Path) -> Vec<Bench> {
    let mut benches = Vec::new();
    for package in folder(&root.join("crates")) {
        for file in folder(&root.join("crates").join(&package).join("benches")) {
            let path = root.join("crates").join(&package).join("benches").join(&file);
            let (stem, source) = match file.strip_suffix(".rs") {
                Some(stem) => (stem.to_owned(), path),
                None => (file.clone(), path.join("main.rs")),
            };
            let Some(about) = about(&source) else { continue };
            benches.push(Bench { name: stem, of: Of::Package(package.clone()), about });
        }
    }
    for name in folder(&root.join("peers")) {
        let Some(about) = about(&root.join("peers").join(&name).join("src/main.rs")) else { continue };
        benches.push(Bench { name, of: Of::Peer, about });
    }
    benches
}

/// The first line of a program; none when there is no such file.
fn about(source: &Path) -> Option<String> {
    let text = std::fs::read_to_string(source).ok()?;
    Some(text.lines().next().unwrap_or_default().trim_start_matches("//!").trim().to_owned())
}

/// Names in a folder, sorted; none when it does not exist.
fn folder(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
