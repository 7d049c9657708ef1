//! How fast is the wire to a disk? A figure above it was not carried by it (check P1, `docs/method.md` section 7).

use crate::files;
use std::path::Path;

/// Bytes per second that the link to the disk in sysfs directory `disk` can carry, encoding taken off: PCIe of an NVMe
/// disk, SATA. None for virtual disks and where the kernel does not tell.
pub(super) fn bytes_per_second(disk: &Path) -> Option<u64> {
    pcie(disk).or_else(|| sata(disk, Path::new("/sys/class/ata_link")))
}

/// The namespace's controller (`device`) sits on a PCI function (`device/device`) that knows its link.
fn pcie(disk: &Path) -> Option<u64> {
    let function = disk.join("device/device");
    let speed = files::text(function.join("current_link_speed"))?;
    let width: u64 = files::number(function.join("current_link_width"))?;
    Some(pcie_lane(&speed)? * width)
}

/// `8.0 GT/s PCIe`: 8b/10b up to 5 GT/s, 128b/130b above; from 64 GT/s on, frames of 242 useful bytes in 256.
///
/// Source: PCI Express Base Specification 6.0, sections 4.2.1, 4.2.2 and 4.2.3.
fn pcie_lane(text: &str) -> Option<u64> {
    let transfers: f64 = text.split_whitespace().next()?.parse().ok()?;
    let useful = match transfers {
        t if t <= 5.0 => 8.0 / 10.0,
        t if t < 64.0 => 128.0 / 130.0,
        _ => 242.0 / 256.0,
    };
    (transfers > 0.0).then_some((transfers * 1e9 * useful / 8.0) as u64)
}

/// The path of a SATA disk goes through `ataN`, whose link tells its speed.
fn sata(disk: &Path, links: &Path) -> Option<u64> {
    let port =
        disk.components().find_map(|c| c.as_os_str().to_str()?.strip_prefix("ata")?.parse::<u32>().ok())?;
    sata_speed(&files::text(links.join(format!("link{port}/sata_spd")))?)
}

/// `6.0 Gbps`, 8b/10b encoded: 600 MB/s.
fn sata_speed(text: &str) -> Option<u64> {
    let gigabits: f64 = text.split_whitespace().next()?.parse().ok()?;
    (gigabits > 0.0).then_some((gigabits * 1e8) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn an_nvme_disk_on_four_lanes() {
        let folder = tempfile::tempdir().unwrap();
        let function = folder.path().join("device/device");
        fs::create_dir_all(&function).unwrap();
        fs::write(function.join("current_link_speed"), "8.0 GT/s PCIe\n").unwrap();
        fs::write(function.join("current_link_width"), "4\n").unwrap();
        let speed = bytes_per_second(folder.path()).unwrap();
        assert!((3_930_000_000..3_940_000_000).contains(&speed), "{speed}");
        assert_eq!(pcie_lane("2.5 GT/s PCIe"), Some(250_000_000));
        assert_eq!(pcie_lane("Unknown"), None);
    }

    #[test]
    fn a_sata_disk_behind_its_port() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("link3")).unwrap();
        fs::write(folder.path().join("link3/sata_spd"), "6.0 Gbps\n").unwrap();
        let disk = Path::new("/sys/devices/pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0/block/sda");
        assert_eq!(sata(disk, folder.path()), Some(600_000_000));
        assert_eq!(sata(Path::new("/sys/devices/virtual/block/loop0"), folder.path()), None);
        assert_eq!(sata_speed("<unknown>"), None);
    }
}
