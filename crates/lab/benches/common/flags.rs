//! What was typed behind `cargo x bench NAME`: `--name value` and bare words. Benchmarks of every crate include this file.
#![allow(dead_code, reason = "each benchmark uses its part")]

use std::str::FromStr;

/// The words of the command line.
pub struct Flags(Vec<String>);

impl Flags {
    pub fn parse() -> Self {
        Self(std::env::args().skip(1).collect())
    }

    /// Whether this is a measurement: `cargo bench` says `--bench`. `cargo test` runs the program without it, as a rehearsal on
    /// tiny sizes, so that a benchmark cannot rot.
    pub fn measured(&self) -> bool {
        self.has("bench")
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|word| word.strip_prefix("--") == Some(name))
    }

    /// The word behind `--name`.
    pub fn text(&self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|word| word.strip_prefix("--") == Some(name))?;
        self.0.get(at + 1).cloned()
    }

    /// Whether a bare word was typed.
    pub fn names(&self, part: &str) -> bool {
        self.0.iter().any(|word| word == part)
    }

    /// # Panics
    /// When the word behind `--name` is no such number.
    pub fn number<N: FromStr>(&self, name: &str, default: N) -> N {
        self.text(name)
            .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("--{name} {text}: type a number")))
    }
}
