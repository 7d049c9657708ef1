//! Slow counters of strain: clock, heat, errors (checks H4, T1 and E1 of `docs/method.md`, section 7). Read once before
//! and once after a visit, not in the sampler: sensors may take milliseconds.

use crate::files;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What heats up or breaks slowly. None, or no entry, is unknown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Strain {
    /// Mean clock of the processors now, MHz.
    pub cpu_mhz: Option<f64>,
    /// Times that a processor was slowed down by heat since boot, summed.
    pub cpu_throttles: Option<u64>,
    /// Temperature of each disk, thousandths of a degree Celsius.
    pub disk_millidegrees: BTreeMap<String, i64>,
    /// Requests that each disk ended with an error since boot.
    pub disk_errors: BTreeMap<String, u64>,
}

/// Reads them for the disks `devices` (whole disks by kernel name). No privilege.
pub fn strain(devices: &[String]) -> Strain {
    strain_in(Path::new("/sys"), devices)
}

fn strain_in(sys: &Path, devices: &[String]) -> Strain {
    let block = |name: &String| sys.join("class/block").join(name.replace('/', "!"));
    let each = |read: fn(&Path) -> Option<i64>| -> BTreeMap<String, i64> {
        devices.iter().filter_map(|name| Some((name.clone(), read(&block(name))?))).collect()
    };
    let errors = each(|disk| hexadecimal(&disk.join("device/ioerr_cnt")));
    Strain {
        cpu_mhz: clock(sys),
        cpu_throttles: sum(sys, "thermal_throttle/core_throttle_count"),
        disk_millidegrees: each(temperature),
        disk_errors: errors
            .into_iter()
            .filter_map(|(name, n)| Some((name, u64::try_from(n).ok()?)))
            .collect(),
    }
}

fn cpus(sys: &Path) -> impl Iterator<Item = PathBuf> {
    let folder = sys.join("devices/system/cpu");
    let number = |n: &String| {
        n.strip_prefix("cpu").is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
    };
    files::names(&folder).into_iter().filter(number).map(move |name| folder.join(name))
}

fn clock(sys: &Path) -> Option<f64> {
    let clocks: Vec<f64> =
        cpus(sys).filter_map(|cpu| files::number(cpu.join("cpufreq/scaling_cur_freq"))).collect();
    (!clocks.is_empty()).then(|| clocks.iter().sum::<f64>() / clocks.len() as f64 / 1e3)
}

fn sum(sys: &Path, file: &str) -> Option<u64> {
    let counts: Vec<u64> = cpus(sys).filter_map(|cpu| files::number(cpu.join(file))).collect();
    (!counts.is_empty()).then(|| counts.iter().sum())
}

/// NVMe has its sensor under the controller, SATA (drivetemp) under the SCSI device, one folder apart.
fn temperature(disk: &Path) -> Option<i64> {
    let places = [disk.join("device/hwmon"), disk.join("device")];
    let sensors = places
        .iter()
        .flat_map(|p| files::names(p).into_iter().filter(|n| n.starts_with("hwmon")).map(|n| p.join(n)));
    sensors.filter_map(|sensor| files::number(sensor.join("temp1_input"))).next()
}

/// SCSI counts in hexadecimal: `0x2a`.
fn hexadecimal(path: &Path) -> Option<i64> {
    i64::from_str_radix(files::text(path)?.trim().strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn put(root: &Path, file: &str, text: &str) {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn reads_clocks_heat_and_errors() {
        let sys = tempfile::tempdir().unwrap();
        let root = sys.path();
        put(root, "devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2000000\n");
        put(root, "devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "3000000\n");
        put(root, "devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "7\n");
        put(root, "devices/system/cpu/cpufreq/boost", "1\n");
        put(root, "class/block/nvme0n1/device/hwmon2/temp1_input", "36850\n");
        put(root, "class/block/sda/device/hwmon/hwmon3/temp1_input", "41000\n");
        put(root, "class/block/sda/device/ioerr_cnt", "0x2a\n");
        let seen = strain_in(root, &["nvme0n1".into(), "sda".into(), "vda".into()]);
        assert_eq!((seen.cpu_mhz, seen.cpu_throttles), (Some(2_500.0), Some(7)));
        assert_eq!(
            seen.disk_millidegrees,
            BTreeMap::from([("nvme0n1".into(), 36_850), ("sda".into(), 41_000)])
        );
        assert_eq!(seen.disk_errors, BTreeMap::from([("sda".into(), 42)]));
    }

    #[test]
    fn nothing_there_is_unknown() {
        let sys = tempfile::tempdir().unwrap();
        assert_eq!(strain_in(sys.path(), &["vda".into()]), Strain::default());
    }
}
