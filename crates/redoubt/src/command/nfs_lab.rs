//! `redoubt nfs-lab`

use crate::cli::nfs_lab::NfsLab;
use crate::stop;
use anyhow::Result;
use nfslab::{Cluster, ClusterOptions, Command};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use units::Nanos;

/// How often it is looked whether the end was asked for.
const LOOK: Nanos = Nanos::millis(50);

pub fn run(options: NfsLab) -> Result<ExitCode> {
    let stop = stop::on_signal()?;
    let volume = |name: &str, nodes: Vec<usize>| (name.to_owned(), nodes);
    let last = options.nodes.saturating_sub(1);
    let cluster = Cluster::start(ClusterOptions {
        nodes: options.nodes,
        paths: options.paths,
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
        "Volumes /a, /b and /striped. Commands from standard input; `help` lists them; its end, or Ctrl-C, is the end."
    );
    let lines = lines();
    while !stop.load(Ordering::Relaxed) {
        match lines.recv_timeout(LOOK.duration()) {
            Ok(line) => obey(&cluster, &line?),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    anstream::println!("The nodes end.\n{}", cluster.show());
    Ok(ExitCode::SUCCESS)
}

/// Lines of standard input, read by a thread that may wait for the next one for ever, even when everything else ends.
fn lines() -> Receiver<std::io::Result<String>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || std::io::stdin().lines().try_for_each(|line| sender.send(line)));
    receiver
}

fn obey(cluster: &Cluster, line: &str) {
    if line.trim().is_empty() {
        return;
    }
    match line.parse::<Command>().and_then(|command| cluster.command(&command)) {
        Ok(said) => anstream::println!("{said}"),
        Err(error) => anstream::eprintln!("{error}"),
    }
}
