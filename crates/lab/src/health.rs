//! What the disks beneath say of their own health (SMART) before, during and after a run.
//!
//! Read when the run begins, between blocks of a comparison (never in a measuring window, and at most once a minute), and at the end. Each reading is an event
//! `smart` with the JSON as smartctl printed it. A counter of errors that rose is an event `disk_errors` with the time between the two readings: trials in
//! it do not decide. Disks that cannot have SMART (virtual ones) are not asked.

use host::facts::{self, Device, DeviceKind, Smart};
use record::json::{self, Value, json};
use record::{RecordError, Writer};
use stats::check::{self, Check, Rise};
use units::{Nanos, clock};

/// A disk that takes longer is in trouble, and is not asked again.
const PATIENCE_SECONDS: u64 = 5;
/// Between blocks, no more often than this.
const EVERY: Nanos = Nanos::millis(60_000);

/// A disk that answers.
struct Patient {
    device: Device,
    errors: Vec<(String, u64)>,
    failing: Vec<String>,
    first_celsius: Option<i64>,
    last_celsius: Option<i64>,
    first_warm_minutes: Option<u64>,
    last_warm_minutes: Option<u64>,
}

/// The disks of a run.
pub(crate) struct Health {
    patients: Vec<Patient>,
    /// Why the others do not tell.
    silent: Vec<String>,
    rises: Vec<Rise>,
    looked: Nanos,
    /// What asks a disk.
    ask: fn(&Device) -> Smart,
}

impl Health {
    /// Asks all of `disks` for the first time.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn begin(disks: &[&Device], writer: &mut Writer) -> Result<Self, RecordError> {
        Self::begin_with(disks, writer, |device| facts::smart_within(device, PATIENCE_SECONDS))
    }

    fn begin_with(
        disks: &[&Device],
        writer: &mut Writer,
        ask: fn(&Device) -> Smart,
    ) -> Result<Self, RecordError> {
        let mut health =
            Self { patients: Vec::new(), silent: Vec::new(), rises: Vec::new(), looked: clock::now(), ask };
        for disk in disks {
            if !disk.may_have_smart() {
                health.silent.push(format!("{} is {}", disk.name, kind(disk.kind)));
                continue;
            }
            match ask(disk) {
                Smart::Unknown { reason } => health.silent.push(format!("{}: {reason}", disk.name)),
                Smart::Known { failing, errors, celsius, too_warm_minutes, raw, .. } => {
                    store(writer, disk, "before", &failing, &errors, &raw)?;
                    health.patients.push(Patient {
                        device: (*disk).clone(),
                        errors,
                        failing,
                        first_celsius: celsius,
                        last_celsius: celsius,
                        first_warm_minutes: too_warm_minutes,
                        last_warm_minutes: too_warm_minutes,
                    });
                }
            }
        }
        Ok(health)
    }

    /// Asks again when the last time was long ago, between two measurements.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn look_between(&mut self, writer: &mut Writer) -> Result<(), RecordError> {
        if clock::now() - self.looked < EVERY { Ok(()) } else { self.look("during", writer) }
    }

    /// Asks all disks that answered, and notes which counters rose since they were asked last.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn look(&mut self, when: &str, writer: &mut Writer) -> Result<(), RecordError> {
        let (since, ask) = (self.looked, self.ask);
        for patient in &mut self.patients {
            let Smart::Known { failing, errors, celsius, too_warm_minutes, raw, .. } = ask(&patient.device)
            else {
                continue;
            };
            store(writer, &patient.device, when, &failing, &errors, &raw)?;
            let rises: Vec<Rise> = risen(&patient.device.name, &patient.errors, &errors);
            if !rises.is_empty() {
                let said: Vec<String> = rises.iter().map(ToString::to_string).collect();
                writer.event(
                    "disk_errors",
                    &json!({ "disk": patient.device.name, "since_ns": since.0, "until_ns": clock::now().0, "what": said.join("; ") }),
                )?;
            }
            self.rises.extend(rises);
            patient.errors = errors;
            patient.failing = failing;
            patient.last_celsius = celsius;
            patient.last_warm_minutes = too_warm_minutes;
        }
        self.looked = clock::now();
        Ok(())
    }

    /// E3 and T1. `apart`: the run has trials that can be left out by themselves.
    pub fn checks(&self, apart: bool) -> Vec<Check> {
        let named = |p: &Patient| {
            let name = p.device.name.clone();
            p.failing.iter().map(move |what| format!("{name}: {what}")).collect::<Vec<_>>()
        };
        let failing: Vec<String> = self.patients.iter().flat_map(named).collect();
        let why = match self.silent.as_slice() {
            [] => "No disk of its own is seen beneath.".to_owned(),
            silent => format!("No disk beneath tells its health: {}.", silent.join("; ")),
        };
        let left_out = apart.then_some("visits between the two readings do not decide");
        let mut checks = vec![check::disk_health(self.patients.len(), &failing, &self.rises, left_out, &why)];
        let change = |p: &Patient| Some((p.last_celsius? - p.first_celsius?) as f64);
        let most = self.patients.iter().filter_map(change).max_by(|a, b| a.abs().total_cmp(&b.abs()));
        let warm = |p: &Patient| Some(p.last_warm_minutes?.saturating_sub(p.first_warm_minutes?) * 60);
        if !self.patients.is_empty() {
            checks.push(check::temperature(most, self.patients.iter().filter_map(warm).max()));
        }
        checks
    }
}

fn kind(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Virtio | DeviceKind::Xen => "a virtual disk, which hides the health of what is under it",
        DeviceKind::Memory => "memory",
        DeviceKind::Network => "on another machine",
        _ => "no disk of its own",
    }
}

fn risen(disk: &str, before: &[(String, u64)], after: &[(String, u64)]) -> Vec<Rise> {
    let pairs = after.iter().filter_map(|(name, now)| {
        let (_, then) = before.iter().find(|(known, _)| known == name)?;
        (now > then).then(|| Rise { disk: disk.into(), counter: name.clone(), before: *then, after: *now })
    });
    pairs.collect()
}

fn store(
    writer: &mut Writer,
    disk: &Device,
    when: &str,
    failing: &[String],
    errors: &[(String, u64)],
    raw: &str,
) -> Result<(), RecordError> {
    let raw: Value = json::from_str(raw).unwrap_or_else(|_| json!(raw));
    let errors: json::Map<String, Value> =
        errors.iter().map(|(name, count)| (name.clone(), json!(count))).collect();
    writer.event(
        "smart",
        &json!({ "disk": disk.name, "when": when, "failing": failing, "errors": errors, "raw": raw }),
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::facts::{Queue, parse_smart};
    use record::{Experiment, Reader};
    use std::sync::atomic::{AtomicU64, Ordering};

    const NVME: &str = include_str!("../../host/testdata/smart-nvme-healthy.json");
    const ATA_FAILED: &str = include_str!("../../host/testdata/smart-ata-failed.json");

    fn disk(name: &str, kind: DeviceKind) -> Device {
        Device {
            name: name.into(),
            number: (8, 0),
            kind,
            size_bytes: 1 << 40,
            queue: Queue::default(),
            slaves: Vec::new(),
            is_leaf: true,
            model: None,
            backing_file: None,
            backing_direct: None,
            wire_bytes_per_second: None,
            alignment_offset: None,
        }
    }

    fn statuses(health: &Health, apart: bool) -> Vec<(&'static str, String)> {
        health.checks(apart).iter().map(|check| (check.id, check.status.to_string())).collect()
    }

    /// What is asked, twice, of `kind` of disk; the events that it left.
    fn asked(kind: DeviceKind, ask: fn(&Device) -> Smart) -> (Health, Vec<(String, Value)>) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("health.redoubt");
        let mut writer = Writer::create(&path, &Experiment::default()).expect("a record");
        let mut health = Health::begin_with(&[&disk("nvme0n1", kind)], &mut writer, ask).expect("asked");
        health.look_between(&mut writer).expect("not yet");
        health.look("after", &mut writer).expect("asked again");
        writer.finish("finished").expect("finished");
        let events = Reader::open(&path).and_then(|reader| reader.events()).expect("events");
        (health, events.into_iter().map(|event| (event.kind, event.json)).collect())
    }

    #[test]
    fn a_healthy_disk_is_asked_before_and_after() {
        let (health, events) = asked(DeviceKind::Nvme, |_| parse_smart(NVME));
        let expected = [("E3", "pass".to_owned()), ("T1", "pass".to_owned())];
        assert_eq!(statuses(&health, true), expected);
        let when: Vec<_> = events.iter().map(|(kind, json)| (kind.as_str(), json["when"].clone())).collect();
        assert_eq!(when, [("smart", json!("before")), ("smart", json!("after"))]);
        assert_eq!(events[0].1["errors"]["media errors"], 0);
        assert_eq!(events[0].1["raw"]["model_name"], "Micron_7300_MTFDHBE1T6TDG", "as smartctl printed it");
    }

    #[test]
    fn errors_that_rise_meanwhile_spoil_what_was_measured() {
        static ASKED: AtomicU64 = AtomicU64::new(0);
        let (health, events) = asked(DeviceKind::Nvme, |_| {
            let errors = 2 * ASKED.fetch_add(1, Ordering::Relaxed);
            parse_smart(&NVME.replace("\"media_errors\":0", &format!("\"media_errors\":{errors}")))
        });
        assert_eq!(statuses(&health, false)[0], ("E3", "fail".to_owned()));
        assert_eq!(statuses(&health, true)[0], ("E3", "warn".to_owned()), "only some visits are left out");
        assert!(health.checks(true)[0].evidence.contains("media errors of nvme0n1 rose from 0 to 2"));
        let (_, spoiled) = events.iter().find(|(kind, _)| kind == "disk_errors").expect("the time of it");
        assert!(spoiled["since_ns"].as_u64() < spoiled["until_ns"].as_u64(), "{spoiled}");
    }

    #[test]
    fn a_failing_disk_decides_nothing() {
        let (health, _) = asked(DeviceKind::Scsi, |_| parse_smart(ATA_FAILED));
        let check = &health.checks(true)[0];
        assert_eq!(check.status.to_string(), "fail");
        assert!(check.evidence.contains("FAILED") && check.withdraws(), "{}", check.evidence);
    }

    #[test]
    fn what_has_no_health_is_not_asked() {
        let (health, events) = asked(DeviceKind::Virtio, |_| panic!("a virtual disk has no SMART"));
        assert_eq!((statuses(&health, true), events.len()), (vec![("E3", "not applicable".to_owned())], 0));
        assert!(health.checks(true)[0].evidence.contains("virtual disk"));
        let (health, events) = asked(DeviceKind::Nvme, |_| Smart::Unknown {
            reason: "smartctl is not installed: apt-get install smartmontools".into(),
        });
        assert_eq!(events.len(), 0);
        assert!(health.checks(true)[0].evidence.contains("install smartmontools"));
    }
}
