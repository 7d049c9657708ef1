//! Three seconds of silence, listened to: who else is at work on this machine?

use super::{Finding, Patient};
use host::counters::{self, CpuShares, DiskRates, PauseDetector, PauseResult, Snapshot};
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Nanos, clock};

const LISTEN: Nanos = Nanos::millis(3_000);
const STEP: Nanos = Nanos::millis(50);

/// What was heard.
struct Heard {
    seconds: f64,
    pauses: PauseResult,
    cpu: Option<CpuShares>,
    /// Some task waited for a CPU, share of the time.
    pressure_cpu: Option<f64>,
    /// Some task waited for I/O, share of the time.
    pressure_io: Option<f64>,
    load: Option<f64>,
    cores: usize,
    disks: Vec<(String, DiskRates)>,
}

pub(super) fn examine(patient: &Patient, cancel: &AtomicBool) -> Vec<Finding> {
    let heard = listen(&patient.storage.watch(), cancel);
    if heard.seconds < 1.0 {
        return Vec::new();
    }
    let mut findings = vec![pauses(&heard)];
    findings.extend(steal(&heard));
    findings.push(background_cpu(&heard));
    findings.extend(background_io(&heard));
    findings
}

fn listen(watch: &counters::Watch, cancel: &AtomicBool) -> Heard {
    let detector = PauseDetector::start();
    let old = counters::snapshot(watch);
    while clock::now() - old.t < LISTEN && !cancel.load(Ordering::Relaxed) {
        clock::sleep(STEP);
    }
    let new = counters::snapshot(watch);
    heard(&old, &new, detector.stop())
}

fn heard(old: &Snapshot, new: &Snapshot, pauses: PauseResult) -> Heard {
    let seconds = (new.t - old.t).as_secs();
    let share = |field: fn(&counters::Psi) -> Option<u64>| {
        let (a, b) = (field(&old.psi?)?, field(&new.psi?)?);
        Some(b.saturating_sub(a) as f64 / 1e6 / seconds)
    };
    let disks = old
        .disks
        .iter()
        .filter_map(|(name, a)| Some((name.clone(), counters::rates(a, new.disks.get(name)?, seconds))));
    Heard {
        seconds,
        pauses,
        cpu: old.cpu.zip(new.cpu).and_then(|(a, b)| counters::cpu_shares(&a, &b)),
        pressure_cpu: share(|p| p.cpu_some_us),
        pressure_io: share(|p| p.io_some_us),
        load: new.load.map(|l| l[0]),
        cores: host::facts::cores_allowed(),
        disks: disks.collect(),
    }
}

/// Check H2 of docs/method.md, section 7: 1 ms is a warning, 10 ms a failure.
fn pauses(heard: &Heard) -> Finding {
    let p = heard.pauses;
    let seen = format!(
        "a thread that sleeps 1 ms woke late by {} (median), {} (1 in 1,000), {} (worst of {})",
        Nanos(p.p50_ns),
        Nanos(p.p999_ns),
        Nanos(p.max_ns),
        p.naps
    );
    let effect = "latencies above the 99th percentile contain pauses of this machine, not of the storage";
    let advice = "stop other work (see: top), pin with taskset, or use a machine of your own";
    match p.p999_ns {
        _ if p.naps == 0 => Finding::unknown("pauses", "no measuring thread could be started"),
        0..1_000_000 => Finding::good("pauses", seen),
        1_000_000..10_000_000 => Finding::warn("pauses", seen).effect(effect).advice(advice),
        _ => Finding::bad("pauses", seen).effect(effect).advice(advice),
    }
}

/// Check H1: 2 % steal is a warning for latencies, 5 % for rates.
fn steal(heard: &Heard) -> Option<Finding> {
    let share = heard.cpu?.steal;
    let seen = format!("the hypervisor took {:.1} % of the CPU time", share * 100.0);
    Some(if share < 0.02 {
        Finding::good("steal", seen)
    } else {
        let level = if share < 0.05 { Finding::warn } else { Finding::bad };
        level("steal", seen)
            .effect("other virtual machines slow this one; a comparison needs more blocks, a single number is not repeatable")
            .advice("measure at another hour or on a dedicated host; watch it with: vmstat 1   (column st)")
    })
}

fn background_cpu(heard: &Heard) -> Finding {
    let Some(cpu) = heard.cpu else {
        return Finding::unknown("other work", "/proc/stat tells nothing about the processors");
    };
    let load =
        heard.load.map_or(String::new(), |l| format!(", load average {l:.1} on {} cores", heard.cores));
    let pressure = heard
        .pressure_cpu
        .map_or(String::new(), |p| format!(", tasks waited for a CPU {:.0} % of the time", p * 100.0));
    let seen = format!("others used {:.0} % of the CPU time{load}{pressure}", cpu.busy * 100.0);
    let waited = heard.pressure_cpu.unwrap_or(0.0);
    if cpu.busy < 0.10 && waited < 0.10 {
        return Finding::good("other work", seen);
    }
    let level = if cpu.busy > 0.5 || waited > 0.5 { Finding::bad } else { Finding::warn };
    level("other work", seen)
        .effect("the load generator shares its processors: the highest rates are the host's limit, not the device's")
        .advice("see who it is: top -o %CPU   then stop it for the time of the measurement")
}

/// Check F3: more than 2 % foreign requests is a warning; here in absolute terms, because nothing of ours runs yet.
fn background_io(heard: &Heard) -> Vec<Finding> {
    let judge = |(name, rates): &(String, DiskRates)| {
        let (requests, kib) = (rates.r_s + rates.w_s, rates.rkb_s + rates.wkb_s);
        let wait = heard
            .pressure_io
            .map_or(String::new(), |p| format!("; tasks waited for I/O {:.0} % of the time", p * 100.0));
        let seen =
            format!("others send {name} {requests:.0} requests/s, {:.1} MB/s{wait}", kib * 1024.0 / 1e6);
        if requests < 20.0 && kib < 1_000.0 {
            return Finding::good("other I/O", seen);
        }
        let level = if rates.aqu_sz > 1.0 || requests > 500.0 || kib > 20_000.0 {
            Finding::bad
        } else {
            Finding::warn
        };
        level("other I/O", seen)
            .effect("their requests queue with ours: latencies rise and the maximum falls by their share")
            .advice("see who it is: sudo iotop -obn1   or   pidstat -d 1")
    };
    heard.disks.iter().map(judge).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    fn quiet() -> Heard {
        Heard {
            seconds: 3.0,
            pauses: PauseResult { naps: 2_800, p50_ns: 60_000, p999_ns: 400_000, max_ns: 900_000 },
            cpu: Some(CpuShares { busy: 0.02, system: 0.01, iowait: 0.0, steal: 0.0 }),
            pressure_cpu: Some(0.01),
            pressure_io: Some(0.0),
            load: Some(0.1),
            cores: 2,
            disks: vec![("vda".into(), DiskRates::default())],
        }
    }

    fn levels(heard: &Heard) -> Vec<Level> {
        let mut all = vec![pauses(heard), background_cpu(heard)];
        all.extend(steal(heard));
        all.extend(background_io(heard));
        all.into_iter().map(|f| f.level).collect()
    }

    #[test]
    fn a_quiet_machine_is_good() {
        assert_eq!(levels(&quiet()), [Level::Good; 4]);
    }

    #[test]
    fn each_noise_is_heard() {
        let stolen =
            Heard { cpu: Some(CpuShares { steal: 0.10, busy: 0.02, ..CpuShares::default() }), ..quiet() };
        assert_eq!(levels(&stolen)[2], Level::Bad);
        let paused = Heard { pauses: PauseResult { p999_ns: 3_000_000, ..quiet().pauses }, ..quiet() };
        assert_eq!(levels(&paused)[0], Level::Warn);
        let busy = Heard { pressure_cpu: Some(0.7), ..quiet() };
        assert_eq!(levels(&busy)[1], Level::Bad);
        let rates = DiskRates { r_s: 60.0, rkb_s: 480.0, ..DiskRates::default() };
        assert_eq!(levels(&Heard { disks: vec![("vda".into(), rates)], ..quiet() })[3], Level::Warn);
    }

    #[test]
    fn what_the_kernel_does_not_tell_is_unknown_and_never_good() {
        let deaf = Heard { cpu: None, pauses: PauseResult::default(), ..quiet() };
        assert_eq!(levels(&deaf)[..2], [Level::Unknown; 2]);
        assert!(steal(&deaf).is_none());
    }
}
