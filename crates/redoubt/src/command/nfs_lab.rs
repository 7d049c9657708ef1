//! `redoubt nfs-lab`

use crate::cli::nfs_lab::NfsLab;
use anyhow::Result;
use nfslab::{Cluster, ClusterOptions, Command};
use std::process::ExitCode;

pub fn run(options: NfsLab) -> Result<ExitCode> {
    let volume = |name: &str, nodes: Vec<usize>| (name.to_owned(), nodes);
    let last = options.nodes.saturating_sub(1);
    let cluster = Cluster::start(ClusterOptions {
        nodes: options.nodes,
        port: options.port,
        volumes: vec![
            volume("a", vec![0]),
            volume("b", vec![last.min(1)]),
            volume("striped", (0..=last).collect()),
        ],
        bytes_max: options.memory << 20,
        ..ClusterOptions::default()
    })?;
    cluster.command(&format!("layouts {}", options.layouts).parse()?)?;
    let address = cluster.address(0);
    anstream::println!("{}\n\nBy node A, in any of these versions:", cluster.show());
    for version in ["v3", "v4.0", "v4.1", "pnfs"] {
        let port = address.port();
        let mount = if version == "v3" { format!("&mountport={port}") } else { String::new() };
        anstream::println!("  'nfs://{address}/a?version={version}{mount}'");
    }
    anstream::println!(
        "Volumes /a, /b and /striped. Commands from standard input; `help` lists them, its end is the end."
    );
    for line in std::io::stdin().lines() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        match line.parse::<Command>().and_then(|command| cluster.command(&command)) {
            Ok(said) => anstream::println!("{said}"),
            Err(error) => anstream::eprintln!("{error}"),
        }
    }
    Ok(ExitCode::SUCCESS)
}
