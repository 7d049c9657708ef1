//! A count of bytes: parsed from what people type, printed as people read.

use std::fmt;
use std::str::FromStr;

/// A count of bytes. Prints and parses with binary units (`8KiB`, `1GiB`); `k`, `m`, `g`, `t` alone mean the binary
/// unit too, as DBAs write block sizes (`8k`). MB/s figures, which are 10⁶, are never held in this type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

const UNITS: [(&str, u32); 5] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10), ("B", 0)];

impl Bytes {
    /// `n` × 2¹⁰ bytes.
    pub const fn kib(n: u64) -> Self {
        Self(n << 10)
    }
    /// `n` × 2²⁰ bytes.
    pub const fn mib(n: u64) -> Self {
        Self(n << 20)
    }
    /// `n` × 2³⁰ bytes.
    pub const fn gib(n: u64) -> Self {
        Self(n << 30)
    }
    /// The number alone.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, shift) in UNITS {
            let one = 1u64 << shift;
            if self.0 >= one {
                return if self.0.is_multiple_of(one) {
                    write!(f, "{} {name}", self.0 >> shift)
                } else {
                    write!(f, "{:.1} {name}", self.0 as f64 / one as f64)
                };
            }
        }
        write!(f, "0 B")
    }
}

impl FromStr for Bytes {
    type Err = String;

    /// # Errors
    /// A sentence that says what was seen and what to type.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a size; type a number and a unit, such as 8k, 512MiB or 2g");
        let trimmed = text.trim();
        let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(split);
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let shift = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 0,
            "k" | "kb" | "kib" => 10,
            "m" | "mb" | "mib" => 20,
            "g" | "gb" | "gib" => 30,
            "t" | "tb" | "tib" => 40,
            _ => return Err(wrong()),
        };
        let bytes = number * (1u64 << shift) as f64;
        if !bytes.is_finite() || bytes < 0.0 || bytes >= u64::MAX as f64 {
            return Err(wrong());
        }
        Ok(Self(bytes as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_what_people_type() {
        for (text, bytes) in
            [("8k", 8192), ("8 KiB", 8192), ("1.5g", 3 << 29), ("4096", 4096), ("2TiB", 2 << 40)]
        {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        for text in ["", "k", "8x", "-1", "1e99"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }

    #[test]
    fn prints_what_people_read() {
        for (bytes, text) in
            [(0, "0 B"), (512, "512 B"), (8192, "8 KiB"), (3 << 29, "1.5 GiB"), (1 << 40, "1 TiB")]
        {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
    }
}
