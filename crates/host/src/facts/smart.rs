//! The disk's own opinion of its health, by `smartctl -j`.

use super::{Device, DeviceKind};
use crate::command;
use serde_json::Value;

/// What SMART says.
#[derive(Clone, Debug, PartialEq)]
pub enum Smart {
    /// The disk answered.
    Known {
        /// Its overall self-assessment; none when it gives none.
        passed: Option<bool>,
        /// Values worth showing: name and text with unit.
        attributes: Vec<(String, String)>,
        /// What should worry the owner, in words; empty for a healthy disk.
        critical: Vec<String>,
        /// What says that it may fail at any moment, in words: what it says of itself, not what happened once.
        failing: Vec<String>,
        /// Errors since it was made, by name: they only grow. Those that harmless commands raise too are left out.
        errors: Vec<(String, u64)>,
        /// Its temperature, °C.
        celsius: Option<i64>,
        /// Minutes above its own warning limit since it was made.
        too_warm_minutes: Option<u64>,
        /// The JSON as smartctl printed it.
        raw: String,
    },
    /// No answer.
    Unknown {
        /// Why not, with what to type where something helps.
        reason: String,
    },
}

impl Device {
    /// Whether a disk of this kind can have SMART at all: what is virtual, memory or on another machine has none.
    pub fn may_have_smart(&self) -> bool {
        matches!(self.kind, DeviceKind::Nvme | DeviceKind::Scsi | DeviceKind::Other)
    }
}

/// Asks disk `device` (a leaf of [`super::Storage`]); up to 15 s on a disk in trouble. Needs root.
pub fn smart(device: &Device) -> Smart {
    smart_within(device, 15)
}

/// The same with another limit, seconds.
pub fn smart_within(device: &Device, seconds: u64) -> Smart {
    let path = device.path();
    let arguments = ["-j", "-a", &path.to_string_lossy()];
    let output = match command::run("smartctl", &arguments, "smartmontools", seconds) {
        Ok(output) => output,
        Err(error) => return Smart::Unknown { reason: error.to_string() },
    };
    parse(&output.stdout)
}

/// From the JSON of smartctl 7; the exit status repeats what is in it.
pub fn parse(raw: &str) -> Smart {
    let unknown = |reason: String| Smart::Unknown { reason };
    let Ok(json) = serde_json::from_str::<Value>(raw) else {
        return unknown("smartctl printed no JSON; version 7 or newer is needed".into());
    };
    let passed = json.pointer("/smart_status/passed").and_then(Value::as_bool);
    let (mut attributes, mut critical, mut failing) = (Vec::new(), Vec::new(), Vec::new());
    nvme(&json, &mut attributes, &mut critical, &mut failing);
    ata(&json, &mut attributes, &mut critical, &mut failing);
    scsi(&json, &mut attributes, &mut critical);
    let celsius = json.pointer("/temperature/current").and_then(Value::as_i64);
    if let Some(degrees) = celsius {
        attributes.push(("temperature".into(), format!("{degrees} °C")));
    }
    if let Some(hours) = json.pointer("/power_on_time/hours").and_then(Value::as_u64) {
        attributes.push(("power on".into(), format!("{hours} h")));
    }
    if passed == Some(false) {
        failing.insert(0, "the disk's self-assessment is FAILED: it expects to fail soon".into());
    }
    if passed.is_none() && attributes.is_empty() {
        return unknown(message(&json).unwrap_or_else(|| "the device has no SMART".into()));
    }
    // What it says of itself comes first.
    critical.splice(0..0, failing.iter().cloned());
    let minutes = json.pointer("/nvme_smart_health_information_log/warning_temp_time");
    let (errors, too_warm_minutes) = (errors(&json), minutes.and_then(Value::as_u64));
    Smart::Known {
        passed,
        attributes,
        critical,
        failing,
        errors,
        celsius,
        too_warm_minutes,
        raw: raw.to_owned(),
    }
}

/// Attributes of ATA disks that count errors: those that predicted failure in Backblaze's fleet, and 199, bad cables. 188 is left
/// out: its raw value is packed, and it counts harmless time-outs too.
const ATA_ERRORS: [(u64, &str); 5] = [
    (5, "reallocated sectors"),
    (187, "uncorrectable errors"),
    (197, "sectors waiting for reallocation"),
    (198, "sectors that could not be read"),
    (199, "transfers with a wrong checksum (cable)"),
];

/// Counters of errors. An NVMe disk's `num_err_log_entries` is not among them: asking some disks for what they do not have raises it.
fn errors(json: &Value) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    let mut add = |name: String, value: Option<u64>| found.extend(value.map(|value| (name, value)));
    let at = |pointer: &str| json.pointer(pointer).and_then(Value::as_u64);
    add("media errors".into(), at("/nvme_smart_health_information_log/media_errors"));
    let table = json.pointer("/ata_smart_attributes/table").and_then(Value::as_array);
    for row in table.into_iter().flatten() {
        let id = row.get("id").and_then(Value::as_u64);
        if let Some((_, name)) = ATA_ERRORS.iter().find(|(known, _)| Some(*known) == id) {
            add((*name).into(), row.pointer("/raw/value").and_then(Value::as_u64));
        }
    }
    add(
        "errors in its log".into(),
        at("/ata_smart_error_log/summary/count").or_else(|| at("/ata_smart_error_log/extended/count")),
    );
    add("grown defects".into(), at("/scsi_grown_defect_list"));
    for side in ["read", "write", "verify"] {
        let pointer = format!("/scsi_error_counter_log/{side}/total_uncorrected_errors");
        add(format!("uncorrected {side} errors"), at(&pointer));
    }
    found
}

fn message(json: &Value) -> Option<String> {
    let texts = json.pointer("/smartctl/messages")?.as_array()?.iter();
    let all: Vec<&str> = texts.filter_map(|m| m.get("string")?.as_str()).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn nvme(
    json: &Value,
    attributes: &mut Vec<(String, String)>,
    critical: &mut Vec<String>,
    failing: &mut Vec<String>,
) {
    let Some(log) = json.get("nvme_smart_health_information_log") else { return };
    let get = |name: &str| log.get(name).and_then(Value::as_u64);
    for (name, shown, unit) in [
        ("percentage_used", "wear", " %"),
        ("available_spare", "spare left", " %"),
        ("media_errors", "media errors", ""),
        ("num_err_log_entries", "error log entries", ""),
        ("unsafe_shutdowns", "unsafe shutdowns", ""),
        ("warning_temp_time", "time too warm", " min"),
    ] {
        attributes.extend(get(name).map(|value| (shown.to_owned(), format!("{value}{unit}"))));
    }
    let flags = get("critical_warning").unwrap_or(0);
    // NVM Express Base Specification 2.0, figure 207: bits of Critical Warning.
    for (bit, words) in [
        (0, "spare capacity is below its threshold"),
        (1, "temperature is outside its limits"),
        (2, "reliability is degraded by media or internal errors"),
        (3, "the medium is read-only"),
        (4, "the backup of the volatile memory has failed: cached writes are not safe"),
    ] {
        if flags & (1 << bit) != 0 {
            failing.push(words.into());
        }
    }
    if get("media_errors").is_some_and(|n| n > 0) {
        critical.push(format!("{} media errors", get("media_errors").unwrap_or(0)));
    }
    if get("percentage_used").is_some_and(|n| n >= 90) {
        critical.push(format!("{} % of the rated endurance is used", get("percentage_used").unwrap_or(0)));
    }
}

fn ata(
    json: &Value,
    attributes: &mut Vec<(String, String)>,
    critical: &mut Vec<String>,
    failing: &mut Vec<String>,
) {
    let table = json.pointer("/ata_smart_attributes/table").and_then(Value::as_array);
    for row in table.into_iter().flatten() {
        let (Some(id), Some(name)) =
            (row.get("id").and_then(Value::as_u64), row.get("name").and_then(Value::as_str))
        else {
            continue;
        };
        let raw = row.pointer("/raw/value").and_then(Value::as_u64).unwrap_or(0);
        let shown =
            row.pointer("/raw/string").and_then(Value::as_str).map_or_else(|| raw.to_string(), str::to_owned);
        attributes.push((name.to_owned(), shown));
        // The five that predicted failure in Backblaze's fleet (5, 187, 188, 197, 198); 188 counts harmless time-outs too.
        let worry = match id {
            5 => "reallocated sectors",
            187 => "uncorrectable errors reported",
            197 => "sectors waiting for reallocation: reads of them are retried for seconds",
            198 => "sectors that could not be read",
            _ => "",
        };
        if !worry.is_empty() && raw > 0 {
            critical.push(format!("{raw} {worry}"));
        }
        let failed = row.get("when_failed").and_then(Value::as_str).unwrap_or("");
        if failed == "now" {
            failing.push(format!("attribute {name} is below its threshold"));
        }
    }
}

fn scsi(json: &Value, attributes: &mut Vec<(String, String)>, critical: &mut Vec<String>) {
    if let Some(grown) = json.get("scsi_grown_defect_list").and_then(Value::as_u64) {
        attributes.push(("grown defects".into(), grown.to_string()));
    }
    for side in ["read", "write", "verify"] {
        let pointer = format!("/scsi_error_counter_log/{side}/total_uncorrected_errors");
        if let Some(errors) = json.pointer(&pointer).and_then(Value::as_u64) {
            attributes.push((format!("uncorrected {side} errors"), errors.to_string()));
            if errors > 0 {
                critical.push(format!("{errors} uncorrected {side} errors"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn critical(raw: &str) -> Vec<String> {
        match parse(raw) {
            Smart::Known { critical, .. } => critical,
            Smart::Unknown { reason } => panic!("unknown: {reason}"),
        }
    }

    #[test]
    fn a_healthy_nvme_has_nothing_critical() {
        let smart = parse(include_str!("../../testdata/smart-nvme.json"));
        let Smart::Known { passed, attributes, critical, .. } = smart else { panic!("{smart:?}") };
        assert_eq!((passed, critical.len()), (Some(true), 0));
        assert!(
            attributes.contains(&("wear".into(), "3 %".into()))
                && attributes.contains(&("temperature".into(), "36 °C".into()))
        );
    }

    #[test]
    fn a_dying_disk_says_so() {
        let seen = critical(include_str!("../../testdata/smart-ata-failing.json"));
        assert!(seen[0].contains("FAILED"), "{seen:?}");
        assert!(
            seen.iter().any(|c| c == "24 reallocated sectors")
                && seen.iter().any(|c| c.contains("below its threshold")),
            "{seen:?}"
        );
        let worn = r#"{"smart_status":{"passed":true},"nvme_smart_health_information_log":{"critical_warning":16,"media_errors":2,"percentage_used":97}}"#;
        assert_eq!(critical(worn).len(), 3);
    }

    /// What real disks said to smartctl, shortened to what is read here (serial numbers left out): public samples of the projects smartctl_exporter and
    /// scrutiny.
    #[test]
    fn counters_of_errors_and_failure_are_told_apart() {
        let known = |raw: &str| match parse(raw) {
            Smart::Known { failing, errors, celsius, .. } => (failing, errors, celsius),
            Smart::Unknown { reason } => panic!("unknown: {reason}"),
        };
        let named = |errors: &[(String, u64)], name: &str| {
            errors.iter().find(|(known, _)| known.contains(name)).map(|(_, count)| *count)
        };
        let (failing, errors, celsius) = known(include_str!("../../testdata/smart-ata-healthy.json"));
        assert_eq!((failing.len(), errors.len(), celsius), (0, 5, Some(33)));
        assert!(errors.iter().all(|(_, count)| *count == 0), "{errors:?}");

        let (failing, errors, _) = known(include_str!("../../testdata/smart-ata-failed.json"));
        assert!(failing.len() == 2 && failing[0].contains("FAILED"), "{failing:?}");
        assert_eq!(
            (named(&errors, "reallocated"), named(&errors, "waiting"), named(&errors, "log")),
            (Some(1975), Some(8), Some(56))
        );

        let (failing, errors, celsius) = known(include_str!("../../testdata/smart-nvme-healthy.json"));
        assert_eq!((failing, errors, celsius), (vec![], vec![("media errors".to_owned(), 0)], Some(22)));
        let (failing, errors, _) = known(include_str!("../../testdata/smart-nvme-errors.json"));
        assert_eq!(
            (failing, errors),
            (vec![], vec![("media errors".to_owned(), 7)]),
            "it had errors and does not fail"
        );
    }

    #[test]
    fn a_virtual_disk_is_unknown_with_the_reason() {
        let raw = r#"{"smartctl":{"messages":[{"string":"/dev/vda: Unable to detect device type","severity":"error"}],"exit_status":1}}"#;
        assert_eq!(parse(raw), Smart::Unknown { reason: "/dev/vda: Unable to detect device type".into() });
        assert!(matches!(parse("smartctl 6.6\n"), Smart::Unknown { .. }));
    }
}
