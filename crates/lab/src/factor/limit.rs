//! Caps on a device: a slow disk made of a fast one.

use super::near;
use std::fmt;
use std::str::FromStr;

/// At most this many requests and bytes per second, for reads and for writes each.
///
/// Written `150iops`, `35MB/s` (10⁶), `35MiB/s` (2²⁰), both joined by `+`, or by the name of a device to imitate ([`PRESETS`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Limit {
    /// Requests per second, of reads and of writes each.
    pub iops: Option<u64>,
    /// Bytes per second, of reads and of writes each.
    pub bytes_per_second: Option<u64>,
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
    /// Where the numbers come from.
    pub source: &'static str,
}

const MB: u64 = 1_000_000;
const MIB: u64 = 1 << 20;

/// Devices to imitate.
pub const PRESETS: [Preset; 8] = [
    Preset {
        name: "hdd-7200",
        iops: 80,
        bytes_per_second: 129 * MB,
        source: "one random request each 8.2 ms seek (specification of HGST Ultrastar 7K4000) + 4.17 ms half a turn; middle of 83 to \
                 175 MB/s (product manual of Seagate Constellation ES.3)",
    },
    Preset {
        name: "hdd-15k",
        iops: 185,
        bytes_per_second: 122 * MB,
        source: "one random request each 3.4 ms seek + 2.0 ms half a turn; 122 MB/s: data sheet of Seagate Cheetah 15K.7",
    },
    Preset {
        name: "ssd-sata",
        iops: 88_000,
        bytes_per_second: 530 * MB,
        source: "writes as in the data sheet of Samsung 870 EVO: 88,000 IOPS, 530 MB/s",
    },
    Preset {
        name: "aws-gp3",
        iops: 3000,
        bytes_per_second: 125 * MIB,
        source: "AWS EBS User Guide, gp3 baseline at any size: https://docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html",
    },
    Preset {
        name: "azure-p10",
        iops: 500,
        bytes_per_second: 100 * MB,
        source: "Azure managed disk types, Premium SSD: P10, 128 GiB: https://learn.microsoft.com/azure/virtual-machines/disks-types",
    },
    Preset {
        name: "azure-p30",
        iops: 5000,
        bytes_per_second: 200 * MB,
        source: "Azure managed disk types, Premium SSD: P30, 1 TiB: https://learn.microsoft.com/azure/virtual-machines/disks-types",
    },
    Preset {
        name: "azure-s10",
        iops: 500,
        bytes_per_second: 60 * MB,
        source: "Azure managed disk types, Standard HDD: S10, 128 GiB: https://learn.microsoft.com/azure/virtual-machines/disks-types",
    },
    Preset {
        name: "gcp-pd-ssd-100",
        iops: 9000,
        bytes_per_second: 288 * MIB,
        source: "Google Cloud, performance of SSD persistent disk: 6,000 + 30 per GiB IOPS, 240 + 0.48 per GiB MiB/s, at 100 GiB: https://cloud.google.com/compute/docs/disks/performance",
    },
];

impl Limit {
    /// A preset by its name.
    pub fn preset(name: &str) -> Option<Self> {
        PRESETS.iter().find(|preset| preset.name == name).map(|preset| Self {
            iops: Some(preset.iops),
            bytes_per_second: Some(preset.bytes_per_second),
            preset: Some(preset.name),
        })
    }

    /// As control groups take it.
    pub fn limits(self) -> host::change::Limits {
        host::change::Limits {
            read_iops: self.iops,
            write_iops: self.iops,
            read_bps: self.bytes_per_second,
            write_bps: self.bytes_per_second,
        }
    }

    /// The numbers, also of a preset: `80iops+129MB/s`.
    pub fn numbers(self) -> String {
        let iops = self.iops.map(|iops| format!("{iops}iops"));
        let bytes = self.bytes_per_second.map(|bytes| match bytes {
            bytes if bytes % MIB == 0 && bytes % MB != 0 => format!("{}MiB/s", bytes / MIB),
            bytes if bytes % MB == 0 => format!("{}MB/s", bytes / MB),
            bytes => format!("{}MB/s", bytes as f64 / MB as f64),
        });
        iops.into_iter().chain(bytes).collect::<Vec<_>>().join("+")
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
                "{text:?} is not a limit{}. Type numbers (150iops, 35MB/s, 3000iops+125MiB/s) or a device to imitate: {}",
                near::did_you_mean(text, &names),
                names.join(", ")
            )
        };
        let mut limit = Self { iops: None, bytes_per_second: None, preset: None };
        for part in text.split('+') {
            let part = part.trim();
            let split = part.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
            let number: f64 = part[..split].parse().map_err(|_| wrong())?;
            let (field, unit) = match part[split..].trim().to_ascii_lowercase().as_str() {
                "iops" => (&mut limit.iops, 1),
                "mb/s" => (&mut limit.bytes_per_second, MB),
                "mib/s" => (&mut limit.bytes_per_second, MIB),
                "kib/s" => (&mut limit.bytes_per_second, 1 << 10),
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
        for text in ["", "fast", "0iops", "150", "-1iops", "10iops+20iops", "35MB", "hdd7200"] {
            assert!(text.parse::<Limit>().unwrap_err().contains("150iops"), "{text}");
        }
        assert!("hdd7200".parse::<Limit>().unwrap_err().contains("Did you mean hdd-7200?"));
    }
}
