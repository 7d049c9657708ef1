//! Does it hold together? All trials of a configuration, held against the device's counters.

use super::configuration::Configuration;
use super::nodes::Meanwhile;
use super::visit::Workload;
use crate::evidence::{Delta, Observed, little};
use crate::factor::Setup;
use stats::check::{self, Check, Severity, Status};
use stats::histogram::Histogram;

/// Sums over all trials of one configuration under one workload.
#[derive(Clone, Default)]
struct Sums {
    trials: u32,
    ops: u64,
    slice_ops: u64,
    seconds: f64,
    requests: u64,
    request_bytes: u64,
    errors: u64,
    first_error: Option<String>,
    verified: u64,
    wrong: u64,
    histogram: Histogram,
    submit_share: f64,
    completed_at_submit: Option<f64>,
    /// Most kernel workers of any trial.
    kernel_threads: u32,
    /// Requests in the devices of the stage, mean over the trials.
    stage_depth: Option<f64>,
    delta: Delta,
    /// Shares of this machine's processor time, means over the trials: of this program, and stolen.
    own_cpu_share: Option<f64>,
    steal_share: Option<f64>,
}

/// What reads over NFS gave under one configuration; means over its trials.
pub struct NetworkReads {
    /// Index of the configuration.
    pub index: usize,
    /// Which workload.
    pub workload: Workload,
    /// Operations per second.
    pub rate: f64,
    /// Mean latency by our own clock, nanoseconds.
    pub latency_ns: f64,
    /// This program's share of this machine's processor time, 0 to 1.
    pub own_cpu_share: Option<f64>,
    /// Share that the hypervisor took away, 0 to 1.
    pub steal_share: Option<f64>,
}

/// How the requests of one workload were handed over under one configuration; means over its trials.
pub struct Submit {
    /// Index of the configuration.
    pub index: usize,
    /// Which workload.
    pub workload: Workload,
    /// Whether the mode means to be asynchronous.
    pub asynchronous: bool,
    /// Share of the requests that were complete when submit returned, 0 to 1.
    pub completed_at_submit: f64,
    /// Share of the threads' time inside submit, 0 to 1.
    pub submit_share: f64,
    /// Most workers of the kernel in any trial.
    pub kernel_workers: u32,
    /// Requests in the device, mean over time.
    pub device_depth: Option<f64>,
    /// Requests that were kept in flight.
    pub in_flight: u32,
}

/// The evidence so far: `sums[configuration][workload]`.
pub struct Proof {
    configurations: Vec<Configuration>,
    /// Writes in flight in workload `writers`, by configuration.
    writing: Vec<u32>,
    sums: Vec<Vec<Sums>>,
}

impl Proof {
    /// Nothing yet.
    pub fn new<'s>(setups: impl Iterator<Item = &'s Setup>) -> Self {
        let (configurations, writing): (Vec<_>, Vec<_>) =
            setups.map(|setup| (setup.configuration(), setup.writing().1)).unzip();
        let sums = vec![vec![Sums::default(); Workload::ALL.len()]; configurations.len()];
        Self { configurations, writing, sums }
    }

    /// Adds a trial of `workload` under configuration `index`. `depth`: requests in the devices of its own stage, mean over time, where
    /// it has one.
    pub fn add(
        &mut self,
        index: usize,
        workload: Workload,
        observed: Observed,
        depth: Option<f64>,
        meanwhile: &Meanwhile,
    ) {
        let sums = &mut self.sums[index][workload as usize];
        let Observed { trial, delta } = observed;
        sums.ops += trial.ops;
        sums.slice_ops += trial.slices.iter().map(|slice| slice.ops).sum::<u64>();
        sums.seconds += trial.seconds();
        sums.requests += trial.requests;
        sums.request_bytes += trial.request_bytes;
        sums.errors += trial.errors;
        sums.verified += trial.verified;
        sums.wrong += trial.wrong;
        sums.histogram.merge(&trial.histogram);
        sums.first_error = sums.first_error.take().or(trial.first_error);
        let n = f64::from(sums.trials);
        let mean = |old: f64, new: f64| (old * n + new) / (n + 1.0);
        sums.submit_share = mean(sums.submit_share, trial.submit_share.unwrap_or(0.0));
        let own = delta
            .cpu_busy_share
            .zip(delta.others_cpu_share)
            .map(|(busy, others)| (busy - others - meanwhile.own_share()).max(0.0));
        for (sum, new) in [(&mut sums.own_cpu_share, own), (&mut sums.steal_share, delta.steal_share)] {
            *sum = new.map(|new| mean(sum.unwrap_or(0.0), new));
        }
        if let Some(depth) = depth {
            sums.stage_depth = Some(mean(sums.stage_depth.unwrap_or(0.0), depth));
        }
        if let Some(share) = trial.completed_at_submit_share {
            sums.completed_at_submit = Some(mean(sums.completed_at_submit.unwrap_or(0.0), share));
        }
        sums.kernel_threads = sums.kernel_threads.max(trial.kernel_threads.unwrap_or(0));
        if sums.trials == 0 {
            sums.delta = delta;
        } else {
            sums.delta.add(&delta);
        }
        sums.trials += 1;
    }

    /// The checks of each configuration, in its order, with its sessions and its block; `None` instead of a workload: of the configuration as a whole.
    pub fn checks(&self, sessions: &[u32], block_bytes: &[u64]) -> Vec<Vec<(Option<Workload>, Check)>> {
        self.configurations
            .iter()
            .zip(self.sums.iter().zip(&self.writing))
            .zip(sessions.iter().zip(block_bytes))
            .map(|((configuration, (sums, &writing)), (&sessions, &block_bytes))| {
                let mut checks = Vec::new();
                if configuration.mode.asynchronous() {
                    let asked: Vec<Workload> = Workload::ALL
                        .into_iter()
                        .filter(|w| w.batches() && sums[*w as usize].trials > 0)
                        .collect();
                    checks.extend(asked.iter().map(|workload| {
                        let sums = &sums[*workload as usize];
                        (Some(*workload), really_asynchronous(configuration, "requests", sums))
                    }));
                    if asked.is_empty() {
                        let writers = &sums[Workload::Writers as usize];
                        checks.push((None, really_asynchronous(configuration, "batched writes", writers)));
                    }
                }
                for workload in Workload::ALL {
                    let sums = &sums[workload as usize];
                    if sums.trials > 0 {
                        let of_one =
                            workload_checks(configuration, workload, sums, writing, sessions, block_bytes);
                        checks.extend(of_one.into_iter().map(|check| (Some(workload), check)));
                    }
                }
                checks
            })
            .collect()
    }
}

impl Proof {
    /// How requests were handed over, where it was watched: batches of one process, and writers of one file.
    pub fn submits(&self) -> Vec<Submit> {
        let watched: Vec<Workload> = Workload::ALL
            .into_iter()
            .filter(|w| w.batches() || matches!(w, Workload::Writers | Workload::WritersExtend))
            .collect();
        let of = |index: usize, workload: Workload| {
            let (configuration, sums) = (&self.configurations[index], &self.sums[index][workload as usize]);
            let in_flight =
                if workload.batches() { configuration.writer_batch() } else { self.writing[index] };
            Some(Submit {
                index,
                workload,
                asynchronous: configuration.mode.asynchronous(),
                completed_at_submit: sums.completed_at_submit?,
                submit_share: sums.submit_share,
                kernel_workers: sums.kernel_threads,
                device_depth: sums.depth(),
                in_flight,
            })
        };
        (0..self.configurations.len())
            .flat_map(|index| watched.iter().filter_map(move |workload| of(index, *workload)))
            .collect()
    }
}

impl Proof {
    /// What single-block reads gave, by workload and configuration.
    pub fn network_reads(&self) -> Vec<NetworkReads> {
        let of = |index: usize, workload: Workload| {
            let sums = &self.sums[index][workload as usize];
            (sums.trials > 0).then(|| NetworkReads {
                index,
                workload,
                rate: sums.ops as f64 / sums.seconds.max(1e-9),
                latency_ns: sums.histogram.mean(),
                own_cpu_share: sums.own_cpu_share,
                steal_share: sums.steal_share,
            })
        };
        let all = 0..self.configurations.len();
        let workloads = [Workload::ReadColdOne, Workload::ReadCold, Workload::ReadMoved].into_iter();
        workloads.flat_map(|workload| all.clone().filter_map(move |index| of(index, workload))).collect()
    }
}

impl Sums {
    /// Requests in the device that the files lie on, mean over time: the stage's own, else the disk of the directory.
    fn depth(&self) -> Option<f64> {
        if self.stage_depth.is_some() {
            return self.stage_depth;
        }
        let queue_ms = self.delta.device_queue_ms?;
        (self.delta.elapsed.0 > 0).then(|| queue_ms as f64 * 1e6 / self.delta.elapsed.0 as f64)
    }
}

fn workload_checks(
    configuration: &Configuration,
    workload: Workload,
    sums: &Sums,
    writing: u32,
    sessions: u32,
    block_bytes: u64,
) -> Vec<Check> {
    let mut checks = vec![
        check::conservation(sums.histogram.count(), sums.ops, sums.slice_ops, 0),
        check::errors(sums.errors, sums.first_error.as_deref()),
        check::steal(sums.delta.steal_share, None),
    ];
    if sums.verified > 0 {
        checks.push(check::wrong_data(sums.verified, sums.wrong, "the stamp in the block"));
    }
    let rate = sums.ops as f64 / sums.seconds.max(1e-9);
    let in_flight = match workload {
        Workload::ReadColdOne => Some(1),
        Workload::ReadCold | Workload::ReadCached | Workload::ReadMoved => Some(sessions),
        Workload::Writers => Some(writing),
        _ => None,
    };
    if let Some(in_flight) = in_flight {
        let window = sums.seconds / f64::from(sums.trials);
        checks.extend(little(rate, sums.histogram.mean(), in_flight, window));
    }
    // A page cache may serve a cached mode where the workload is about the page cache; anywhere else each byte must be
    // seen by the device. Bulk requests are split and merged on the way, so bytes are counted, not requests.
    // A pass reads from two devices, of which the caches of the database spare it some: each device is told by itself.
    if workload.passes() {
        return checks;
    }
    if workload.reads_only() && (configuration.mode.direct() || !workload.cache_intended()) {
        let single = !workload.bulk();
        let exact = single && (configuration.mode.direct() || block_bytes == 4096);
        checks.push(if exact {
            check::funnel_ops(sums.requests, sums.delta.device_reads, 1.0)
        } else {
            check::funnel_bytes(sums.request_bytes, sums.delta.device_read_bytes)
        });
    }
    if !workload.reads_only() && workload != Workload::Mixed {
        // The file system's journal writes more than we ask; only fewer bytes than we ask would be a lie.
        let device = sums.delta.device_write_bytes.map(|bytes| bytes.min(sums.request_bytes));
        checks.push(check::funnel_bytes(sums.request_bytes, device));
    }
    checks
}

/// The author's open question in case `syscalls`: is it really asynchronous without O_DIRECT?
fn really_asynchronous(configuration: &Configuration, what: &str, writers: &Sums) -> Check {
    let name = configuration.name();
    let base = Check {
        id: "X1",
        title: "really asynchronous",
        severity: Severity::Context,
        status: Status::NotApplicable,
        value: writers.completed_at_submit,
        threshold: "at most 50 % of the requests complete inside submit",
        evidence: format!("{name}: this run did not observe its submit calls"),
    };
    let Some(share) = writers.completed_at_submit else { return base };
    let (share_percent, submit_percent) = (share * 100.0, writers.submit_share * 100.0);
    let kernel = match writers.kernel_threads {
        0 => "no kernel worker was needed".to_owned(),
        1 => "one kernel worker did it instead".to_owned(),
        n => format!("{n} kernel workers did it instead"),
    };
    let depth = writers
        .depth()
        .map_or_else(String::new, |depth| format!("; on average {depth:.1} requests were in the device"));
    let inside = format!("{kernel}{depth}");
    if share > 0.5 {
        Check {
            status: Status::Warn,
            evidence: format!(
                "{name} is asynchronous in name only: {share_percent:.0} % of the {what} were already done when submit returned, \
                 and {submit_percent:.0} % of the time was spent inside that call; {inside}"
            ),
            ..base
        }
    } else {
        Check {
            status: Status::Pass,
            evidence: format!(
                "{name}: {share_percent:.0} % of the {what} were already done when submit returned; {submit_percent:.0} % of the \
                 time was spent inside submit; {inside}"
            ),
            ..base
        }
    }
}
