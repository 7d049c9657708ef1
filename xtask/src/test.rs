//! `cargo x test`: one command from a fresh machine to the result.
//!
//! The house rules ([`crate::tidy`]) are a test of this package, so `cargo test` runs them too, and its output is the last
//! thing on the screen.

use crate::Failure;
use crate::packages;
use crate::shell::{cargo, run as sh};

pub fn run(arguments: &[String]) -> Result<(), Failure> {
    packages::ensure(packages::TEST)?;
    // All suites run even if one fails: whoever reads the end wants to know everything that is broken.
    sh(cargo().args(["test", "--workspace", "--no-fail-fast"]).args(arguments))
}
