//! The storage nodes in a comparison: data is brought to the node that a configuration names, and moved under a load; what each node used
//! is read beside every trial.

use super::case::Case;
use super::stay::Stay;
use super::visit::Workload;
use super::{Comparison, stop_if_cancelled};
use crate::LabError;
use crate::control::Control;
use crate::export;
use crate::factor::Setup;
use crate::nodes::{COUNT, OwnCluster, Use};
use crate::workload::Trial;
use record::Writer;
use record::json::json;
use std::sync::mpsc::{RecvTimeoutError, channel};
use units::{Nanos, Seed, clock};

/// Moves during one trial of [`Workload::ReadMoved`], evenly over its window: an even number, so that the data ends where it was.
const MOVES: usize = 4;

/// What went on at the nodes during a trial.
#[derive(Default)]
pub struct Meanwhile {
    /// What each node used and did, from before the load until after it; empty when nobody could be asked.
    pub nodes: Vec<Use>,
    /// Whether the nodes are threads of this process: what they used looks like ours.
    pub in_process: bool,
    /// The moves that were made on purpose.
    pub moves: Option<Moves>,
}

/// Moves of data under a load.
pub struct Moves {
    /// How often the data went to the other node, with time left to follow it.
    pub made: u32,
    /// How often our client sent its requests there afterwards.
    pub followed: u32,
    /// Longest that its requests waited for that.
    pub stall_max: Nanos,
}

impl Meanwhile {
    /// Writes it beside `phase`, in which `requests` went to storage, those before and after the window too.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn store(
        &self,
        phase: i64,
        requests: u64,
        processors: &str,
        writer: &mut Writer,
    ) -> Result<(), LabError> {
        if self.nodes.is_empty() {
            return Ok(());
        }
        let node = |node: &Use| {
            json!({ "name": node.name, "cpu_seconds": node.cpu_seconds, "processor_seconds": node.processor_seconds,
                    "seconds": node.seconds, "sent_bytes": node.sent, "received_bytes": node.received,
                    "transfers": node.transfers.map(|(all, _)| all),
                    "forwarded": node.transfers.map(|(_, passed)| passed) })
        };
        let moves = self.moves.as_ref().map(|moves| {
            json!({ "made": moves.made, "followed": moves.followed, "stall_max_ns": moves.stall_max.0 })
        });
        let nodes: Vec<_> = self.nodes.iter().map(node).collect();
        writer.event(
            "nodes",
            &json!({ "phase": phase, "requests": requests, "processors": processors, "nodes": nodes, "moves": moves }),
        )?;
        Ok(())
    }

    /// Share of this machine's processor time that nodes in this process used, 0 to 1.
    pub fn own_share(&self) -> f64 {
        if !self.in_process {
            return 0.0;
        }
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as f64;
        self.nodes.iter().map(|node| node.cpu_seconds / node.seconds.max(1e-9) / processors).sum()
    }
}

impl Comparison<'_> {
    /// Brings the data to node A, by which the export is mounted: where a database is opened, whatever the configuration.
    pub(super) fn bring_home(&self) -> Result<(), LabError> {
        self.options.nodes.own().map_or(Ok(()), |cluster| cluster.move_to(0).map(drop))
    }

    /// Brings the data to the node that `setup` names, under the open database, as a storage administrator does.
    pub(super) fn bring_data(&self, setup: &Setup) -> Result<(), LabError> {
        let asked = self.options.nodes.own().zip(setup.node);
        asked.map_or(Ok(()), |(cluster, node)| cluster.move_to(node).map(drop))
    }

    /// Reads once as it will be measured, and drops what comes of it: caches on the way are then filled for every configuration.
    pub(super) fn first_run(&self, stay: &mut Stay<'_>, control: &Control<'_>) -> Result<(), LabError> {
        if self.options.case != Case::Dnfs || !self.design.workloads.contains(&Workload::ReadCold) {
            return Ok(());
        }
        const FIRST: Seed = Seed(0xf125);
        stay.prepare(Workload::ReadCold, FIRST)?;
        stay.run(Workload::ReadCold, FIRST)?;
        stop_if_cancelled(control)
    }

    /// Runs `workload`, with what the nodes did meanwhile.
    pub(super) fn run_watched(
        &self,
        stay: &mut Stay<'_>,
        workload: Workload,
        seed: Seed,
    ) -> Result<(Trial, Meanwhile), LabError> {
        let nodes = &self.options.nodes;
        let before = nodes.read()?;
        let (trial, moves) = match nodes.own().filter(|_| workload == Workload::ReadMoved) {
            Some(cluster) => {
                let (trial, moves) = self.run_moved(cluster, stay, workload, seed)?;
                (trial, Some(moves))
            }
            None => (stay.run(workload, seed)?, None),
        };
        Ok((
            trial,
            Meanwhile { nodes: nodes.since(before.as_ref())?, in_process: nodes.own().is_some(), moves },
        ))
    }

    /// Runs `workload` while the data goes from node to node.
    fn run_moved(
        &self,
        cluster: &OwnCluster,
        stay: &mut Stay<'_>,
        workload: Workload,
        seed: Seed,
    ) -> Result<(Trial, Moves), LabError> {
        let phases = *stay.phases();
        let window = phases.of(workload).unwrap_or_default();
        let between = Nanos(window.0 / (MOVES as u64 + 1));
        let (since, home) = (clock::now(), cluster.holder());
        let (over, ended) = channel::<()>();
        let (trial, made) = std::thread::scope(|scope| {
            let mover = scope.spawn(move || {
                let mut made = Vec::with_capacity(MOVES);
                let mut wait = phases.settle + between;
                while made.len() < MOVES
                    && ended.recv_timeout(wait.duration()) == Err(RecvTimeoutError::Timeout)
                {
                    cluster.move_to((home + 1 + made.len()) % COUNT)?;
                    made.push(clock::now());
                    wait = between;
                }
                Ok::<_, LabError>(made)
            });
            let trial = stay.run(workload, seed);
            drop(over);
            (trial, mover.join().expect("whoever moves data does not panic"))
        });
        // Also when it was cut short.
        cluster.move_to(home)?;
        let (trial, made) = (trial?, made?);
        // Who no longer reads follows nothing: half of the usual time between moves has to be left.
        let counts = |at: Nanos| at + Nanos(between.0 / 2) <= trial.window.end;
        let made = made.into_iter().filter(|at| counts(*at)).count();
        let followed = export::followed(&self.options.directory);
        let followed: Vec<_> = followed.into_iter().filter(|it| it.at >= since).collect();
        // Each file of the database follows by itself; a move is followed when any of them did.
        let stall_max = followed.iter().map(|followed| followed.stall).max().unwrap_or_default();
        let times = |path: &str| followed.iter().filter(|it| it.path == path).count();
        let most = followed.iter().map(|it| times(&it.path)).max().unwrap_or(0).min(made);
        Ok((trial, Moves { made: made as u32, followed: most as u32, stall_max }))
    }
}
