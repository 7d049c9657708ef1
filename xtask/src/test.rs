//! `cargo x test`: one command from a fresh machine to the result.
//!
//! The house rules ([`crate::tidy`]) are a test of this package, so `cargo test` runs them too, and its output is the last
//! thing on the screen.

use crate::Failure;
use crate::packages;
use crate::shell::{cargo, is_root, run as sh};
use std::path::Path;
use std::process::Command;

/// Where the kernel's tracer is; small machines do not mount it by themselves.
const TRACER: &str = "/sys/kernel/tracing";

pub fn run(arguments: &[String]) -> Result<(), Failure> {
    packages::ensure(packages::TEST)?;
    mount_tracer();
    // All suites run even if one fails: whoever reads the end wants to know everything that is broken.
    sh(cargo().args(["test", "--workspace", "--no-fail-fast"]).args(arguments))
}

/// Mounts the kernel's tracer where it is not: what this machine does not allow, the tests of tracing say.
fn mount_tracer() {
    if is_root() && !Path::new(TRACER).join("instances").is_dir() {
        let _ = sh(Command::new("mount").args(["-t", "tracefs", "nodev", TRACER]));
    }
}
