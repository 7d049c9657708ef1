//! `cargo x bench`: the benchmarks are the files of `crates/*/benches`; their first line says what they show.

use crate::shell::{cargo, run as sh};
use crate::{Failure, packages, root};
use std::path::Path;

/// A benchmark of a crate.
struct Bench {
    name: String,
    package: String,
    about: String,
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
    sh(cargo()
        .args(["bench", "--quiet", "--package", &bench.package, "--bench", &bench.name, "--"])
        .args(rest))
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
            let Ok(text) = std::fs::read_to_string(source) else { continue };
            let about = text.lines().next().unwrap_or_default().trim_start_matches("//!").trim().to_owned();
            benches.push(Bench { name: stem, package: package.clone(), about });
        }
    }
    benches
}

/// Names in a folder, sorted; none when it does not exist.
fn folder(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
