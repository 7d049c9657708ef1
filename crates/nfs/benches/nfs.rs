//! What a read over NFS costs the client: NFSv4.0 and 4.1 take at most 10 % more processor time than NFSv3, on the same server.
//!
//! 8 KiB at random places of a file that the server (Ganesha, Debian's) has in its page cache, over loopback in a network namespace; versions take turns. The processor
//! time is that of the client's thread alone, the kernel's work for it included. *in flight* is of one connection.
//!
//! `cargo x bench nfs --rounds 9 --seconds 1`
#![forbid(unsafe_code)]

#[path = "../../lab/benches/common/child.rs"]
#[allow(dead_code, reason = "this benchmark uses its part")]
mod child;
#[path = "../../lab/benches/common/flags.rs"]
mod flags;
#[path = "../../lab/benches/common/goals.rs"]
mod goals;
#[path = "../tests/ganesha/stand.rs"]
mod stand;

use child::cpu_of_self;
use flags::Flags;
use goals::{Aim, Goals};
use io::{Action, Completion, Outcome, Queue as _, Request};
use nfs::{Open, Queue, QueueOptions};
use stand::{Conf, Server, VERSIONS, mount};
use std::process::ExitCode;
use units::{Nanos, Rng, Seed, clock};

const BLOCK: u32 = 8192;
const MORE_MAX: f64 = 1.1;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(mut command) = stand::inside(&arguments) {
        let status = command.status().expect("unshare is in package util-linux");
        return if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let flags = Flags::parse();
    let measured = flags.measured();
    let rounds = flags.number("rounds", if measured { 9 } else { 1 });
    let seconds: f64 = flags.number("seconds", if measured { 1.0 } else { 0.05 });
    let file_bytes: u64 = if measured { 256 << 20 } else { 4 << 20 };

    let server = Server::start(&Conf::default());
    std::fs::write(server.export().join("data"), vec![7; file_bytes as usize]).expect("a file");
    let mut goals = Goals::default();
    for depth in [1, 32] {
        let mut values = [const { (Vec::new(), Vec::new()) }; VERSIONS.len()];
        for round in 0..rounds {
            for (values, version) in values.iter_mut().zip(VERSIONS) {
                let mount = mount(version);
                let file = mount.file("data", Open::Read).expect("the file");
                let mut queue = mount.queue(QueueOptions::new(depth, BLOCK), &[&file]).expect("a queue");
                let (rate, cpu) = read(&mut queue, file_bytes, Nanos::secs(seconds), Seed(round));
                values.0.push(rate);
                values.1.push(cpu);
            }
        }
        for ((rates, cpu), version) in values.iter().zip(VERSIONS) {
            goals.rounds(&format!("{version}, {depth} in flight: reads per second"), rates, Aim::Told);
            goals.rounds(&format!("{version}, {depth} in flight: client's µs of CPU each"), cpu, Aim::Told);
            let ratios: Vec<f64> = cpu.iter().zip(&values[0].1).map(|(own, v3)| own / v3).collect();
            if version != VERSIONS[0] {
                let aim = if depth == 1 { Aim::Told } else { Aim::AtMost(MORE_MAX) };
                goals.rounds(&format!("{version} / v3, {depth} in flight: client's CPU"), &ratios, aim);
            }
        }
    }
    goals.conclude(measured)
}

/// Reads for `span` with all slots in flight; the result is reads per second, and microseconds of processor time for each.
fn read(queue: &mut Queue, file_bytes: u64, span: Nanos, seed: Seed) -> (f64, f64) {
    let mut rng = Rng::new(seed);
    let blocks = file_bytes / u64::from(BLOCK);
    let mut stage = |queue: &mut Queue, slot| {
        let offset = rng.below(blocks) * u64::from(BLOCK);
        queue.stage(slot, Request { file: 0, offset, bytes: BLOCK, action: Action::Read });
    };
    for slot in 0..queue.depth() {
        stage(queue, slot);
    }
    let (begin, cpu) = (clock::now(), cpu_of_self());
    let (mut count, mut done) = (0u64, Vec::new());
    while clock::now() < begin + span {
        queue.submit_and_reap(1, &mut done).expect("a queue that works");
        count += done.len() as u64;
        for Completion { slot, outcome } in done.drain(..) {
            assert_eq!(outcome, Outcome::Full);
            stage(queue, slot);
        }
    }
    let (took, cpu) = ((clock::now() - begin).as_secs(), cpu_of_self() - cpu);
    (count as f64 / took, cpu * 1e6 / count as f64)
}
