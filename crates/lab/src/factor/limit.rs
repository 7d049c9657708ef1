//! Caps on a device: a slow disk made of a fast one.

use super::near;
use std::fmt;
use std::str::FromStr;

/// At most this many requests and bytes per second, for reads and for writes each.
///
/// Written `150iops`, `35MB/s` (10⁶), `35MiB/s` (2²⁰), both joined by `+`, with `write:` before what holds for writes alone
/// (`250MB/s+write:70MB/s`: flash is written slower than it is read), or by the name of a device to imitate ([`PRESETS`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Limit {
    /// Requests per second, of reads and of writes each.
    pub iops: Option<u64>,
    /// Bytes per second, of reads and of writes each.
    pub bytes_per_second: Option<u64>,
    /// Requests per second of writes, where they have a limit of their own.
    pub write_iops: Option<u64>,
    /// Bytes per second of writes, where they have a limit of their own.
    pub write_bytes_per_second: Option<u64>,
    /// The preset that it came from.
    pub preset: Option<&'static str>,
}

/// A device to imitate. A cap imitates its rates, not its latency when nobody queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// As it is typed.
    pub name: &'static str,
    /// Requests per second.
    pub iops: u64,
    /// Bytes per second.
    pub bytes_per_second: u64,
    /// Requests and bytes per second of writes, where they are slower than reads.
    pub write: Option<(u64, u64)>,
    /// Where the numbers come from.
    pub source: &'static str,
}

const MB: u64 = 1_000_000;
const MIB: u64 = 1 << 20;

/// Devices to imitate.
pub const PRESETS: [Preset; 9] = [
    Preset {
        name: "hdd-7200",
        iops: 80,
        bytes_per_second: 129 * MB,
        write: None,
        source: "one random request each 8.2 ms seek (specification of HGST Ultrastar 7K4000) + 4.17 ms half a turn; middle of 83 to \
                 175 MB/s (product manual of Seagate Constellation ES.3)",
    },
    Preset {
        name: "hdd-15k",
        iops: 185,
        bytes_per_second: 122 * MB,
        write: None,
        source: "one random request each 3.4 ms seek + 2.0 ms half a turn; 122 MB/s: data sheet of Seagate Cheetah 15K.7",
    },
    Preset {
        name: "ssd-sata",
        iops: 88_000,
        bytes_per_second: 530 * MB,
        write: None,
        source: "writes as in the data sheet of Samsung 870 EVO: 88,000 IOPS, 530 MB/s",
    },
    Preset {
        name: "ssd-2009",
        iops: 35_000,
        bytes_per_second: 250 * MB,
        write: Some((6_600, 70 * MB)),
        source: "a first flash cache: data sheet of Intel X25-M, 34 nm, 80 GB: 35,000 reads and 6,600 writes per second, 250 MB/s read, 70 MB/s written",
    },
    Preset {
        name: "aws-gp3",
        iops: 3000,
        bytes_per_second: 125 * MIB,
        write: None,
        source: "AWS EBS User Guide, gp3 baseline at any size: https://docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html",
    },
    Preset {
        name: "azure-p10",
        iops: 500,
        bytes_per_second: 100 * MB,
        write: None,
        source: "Azure managed disk types, Premium SSD: P10, 128 GiB: https://learn.microsoft.com/azure/virtual-machines/disks-types",
    },
    Preset {
        name: "azure-p30",
        iops: 5000,
        bytes_per_second: 200 * MB,
        write: None,
        source: "Azure managed disk types, Premium SSD: P30, 1 TiB: https://learn.microsoft.com/azure/virtual-machines/disks-types",
    },
    Preset {
        name: "azure-s10",
        iops: 500,
        bytes_per_second: 60 * MB,
        write: None,
        source: "Azure managed disk types, Standard HDD: S10, 128 GiB: https://learn.microsoft.com/azure/virtual-machines/disks-types",
    },
    Preset {
        name: "gcp-pd-ssd-100",
        iops: 9000,
        bytes_per_second: 288 * MIB,
        write: None,
        source: "Google Cloud, performance of SSD persistent disk: 6,000 + 30 per GiB IOPS, 240 + 0.48 per GiB MiB/s, at 100 GiB: https://cloud.google.com/compute/docs/disks/performance",
    },
];

impl Limit {
    /// A preset by its name.
    pub fn preset(name: &str) -> Option<Self> {
        PRESETS.iter().find(|preset| preset.name == name).map(|preset| Self {
            iops: Some(preset.iops),
            bytes_per_second: Some(preset.bytes_per_second),
            write_iops: preset.write.map(|(iops, _)| iops),
            write_bytes_per_second: preset.write.map(|(_, bytes)| bytes),
            preset: Some(preset.name),
        })
    }

    /// As control groups take it.
    pub fn limits(self) -> host::change::Limits {
        host::change::Limits {
            read_iops: self.iops,
            write_iops: self.write_iops.or(self.iops),
            read_bps: self.bytes_per_second,
            write_bps: self.write_bytes_per_second.or(self.bytes_per_second),
        }
    }

    /// The numbers, also of a preset: `80iops+129MB/s`.
    pub fn numbers(self) -> String {
        let iops = |iops: Option<u64>| iops.map(|iops| format!("{iops}iops"));
        let bytes = |bytes: Option<u64>| {
            bytes.map(|bytes| match bytes {
                bytes if bytes % MIB == 0 && bytes % MB != 0 => format!("{}MiB/s", bytes / MIB),
                bytes if bytes % MB == 0 => format!("{}MB/s", bytes / MB),
                bytes => format!("{}MB/s", bytes as f64 / MB as f64),
            })
        };
        let both = [iops(self.iops), bytes(self.bytes_per_second)].into_iter().flatten();
        let writes = [iops(self.write_iops), bytes(self.write_bytes_per_second)].into_iter().flatten();
        both.chain(writes.map(|text| format!("write:{text}"))).collect::<Vec<_>>().join("+")
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.preset {
            Some(name) => f.pad(name),
            None => f.pad(&self.numbers()),
        }
    }
}

impl FromStr for Limit {
    type Err = String;

    /// # Errors
    /// A sentence that says what was seen and what to type.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Some(limit) = Self::preset(text) {
            return Ok(limit);
        }
        let names = PRESETS.map(|preset| preset.name);
        let wrong = || {
            format!(
                "{text:?} is not a limit{}. Type numbers (150iops, 35MB/s, 3000iops+125MiB/s, 250MB/s+write:70MB/s) or a device to imitate: {}",
                near::did_you_mean(text, &names),
                names.join(", ")
            )
        };
        let mut limit = Self {
            iops: None,
            bytes_per_second: None,
            write_iops: None,
            write_bytes_per_second: None,
            preset: None,
        };
        for part in text.split('+') {
            let part = part.trim();
            let (part, (iops, bytes)) = match part.strip_prefix("write:") {
                Some(part) => (part.trim(), (&mut limit.write_iops, &mut limit.write_bytes_per_second)),
                None => (part, (&mut limit.iops, &mut limit.bytes_per_second)),
            };
            let split = part.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
            let number: f64 = part[..split].parse().map_err(|_| wrong())?;
            let (field, unit) = match part[split..].trim().to_ascii_lowercase().as_str() {
                "iops" => (iops, 1),
                "mb/s" => (bytes, MB),
                "mib/s" => (bytes, MIB),
                "kib/s" => (bytes, 1 << 10),
                _ => return Err(wrong()),
            };
            let value = (number * unit as f64).round();
            if !(1.0..1e15).contains(&value) || field.replace(value as u64).is_some() {
                return Err(wrong());
            }
        }
        Ok(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_presets() {
        for (text, iops, bytes, shown) in [
            ("150iops", Some(150), None, "150iops"),
            ("35MB/s", None, Some(35_000_000), "35MB/s"),
            ("35.63 MB/s", None, Some(35_630_000), "35.63MB/s"),
            ("3000iops+125MiB/s", Some(3000), Some(125 << 20), "3000iops+125MiB/s"),
            ("aws-gp3", Some(3000), Some(125 << 20), "aws-gp3"),
            ("hdd-7200", Some(80), Some(129_000_000), "hdd-7200"),
        ] {
            let limit: Limit = text.parse().unwrap();
            assert_eq!(
                (limit.iops, limit.bytes_per_second, limit.to_string().as_str()),
                (iops, bytes, shown)
            );
            assert_eq!(limit.to_string().parse(), Ok(limit));
        }
        let flash: Limit = "250MB/s+write:70MB/s+write:6600iops".parse().unwrap();
        assert_eq!(flash.to_string(), "250MB/s+write:6600iops+write:70MB/s");
        assert_eq!(
            (flash.limits().read_bps, flash.limits().write_bps),
            (Some(250_000_000), Some(70_000_000))
        );
        assert_eq!((flash.limits().read_iops, flash.limits().write_iops), (None, Some(6_600)));
        assert_eq!(Limit::preset("ssd-2009").map(|limit| limit.limits().write_bps), Some(Some(70_000_000)));
        for text in [
            "",
            "fast",
            "write:",
            "write:fast",
            "write:1iops+write:2iops",
            "0iops",
            "150",
            "-1iops",
            "10iops+20iops",
            "35MB",
            "hdd7200",
        ] {
            assert!(text.parse::<Limit>().unwrap_err().contains("150iops"), "{text}");
        }
        assert!("hdd7200".parse::<Limit>().unwrap_err().contains("Did you mean hdd-7200?"));
    }
}
