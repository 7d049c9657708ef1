//! The disk's own opinion of its health, by `smartctl -j`.

use super::Device;
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
        /// The JSON as smartctl printed it.
        raw: String,
    },
    /// No answer.
    Unknown {
        /// Why not, with what to type where something helps.
        reason: String,
    },
}

/// Asks disk `device` (a leaf of [`super::Storage`]); up to 15 s on a disk in trouble. Needs root.
pub fn smart(device: &Device) -> Smart {
    let path = device.path();
    let output = match command::run("smartctl", &["-j", "-a", &path.to_string_lossy()], "smartmontools", 15) {
        Ok(output) => output,
        Err(error) => return Smart::Unknown { reason: error.to_string() },
    };
    parse(&output.stdout)
}

/// From the JSON of smartctl 7; the exit status repeats what is in it.
fn parse(raw: &str) -> Smart {
    let unknown = |reason: String| Smart::Unknown { reason };
    let Ok(json) = serde_json::from_str::<Value>(raw) else {
        return unknown("smartctl printed no JSON; version 7 or newer is needed".into());
    };
    let passed = json.pointer("/smart_status/passed").and_then(Value::as_bool);
    let (mut attributes, mut critical) = (Vec::new(), Vec::new());
    nvme(&json, &mut attributes, &mut critical);
    ata(&json, &mut attributes, &mut critical);
    scsi(&json, &mut attributes, &mut critical);
    if let Some(degrees) = json.pointer("/temperature/current").and_then(Value::as_i64) {
        attributes.push(("temperature".into(), format!("{degrees} °C")));
    }
    if let Some(hours) = json.pointer("/power_on_time/hours").and_then(Value::as_u64) {
        attributes.push(("power on".into(), format!("{hours} h")));
    }
    if passed == Some(false) {
        critical.insert(0, "the disk's self-assessment is FAILED: it expects to fail soon".into());
    }
    if passed.is_none() && attributes.is_empty() {
        return unknown(message(&json).unwrap_or_else(|| "the device has no SMART".into()));
    }
    Smart::Known { passed, attributes, critical, raw: raw.to_owned() }
}

fn message(json: &Value) -> Option<String> {
    let texts = json.pointer("/smartctl/messages")?.as_array()?.iter();
    let all: Vec<&str> = texts.filter_map(|m| m.get("string")?.as_str()).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn nvme(json: &Value, attributes: &mut Vec<(String, String)>, critical: &mut Vec<String>) {
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
            critical.push(words.into());
        }
    }
    if get("media_errors").is_some_and(|n| n > 0) {
        critical.push(format!("{} media errors", get("media_errors").unwrap_or(0)));
    }
    if get("percentage_used").is_some_and(|n| n >= 90) {
        critical.push(format!("{} % of the rated endurance is used", get("percentage_used").unwrap_or(0)));
    }
}

fn ata(json: &Value, attributes: &mut Vec<(String, String)>, critical: &mut Vec<String>) {
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
            critical.push(format!("attribute {name} is below its threshold"));
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

    #[test]
    fn a_virtual_disk_is_unknown_with_the_reason() {
        let raw = r#"{"smartctl":{"messages":[{"string":"/dev/vda: Unable to detect device type","severity":"error"}],"exit_status":1}}"#;
        assert_eq!(parse(raw), Smart::Unknown { reason: "/dev/vda: Unable to detect device type".into() });
        assert!(matches!(parse("smartctl 6.6\n"), Smart::Unknown { .. }));
    }
}
