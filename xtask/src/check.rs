//! `cargo x check`: what can be said about the code without running it.

use crate::Failure;
use crate::shell::{cargo, run as sh};

pub fn run(_: &[String]) -> Result<(), Failure> {
    sh(cargo().args(["fmt", "--all", "--check"]))?;
    sh(cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    sh(cargo()
        .args(["doc", "--workspace", "--no-deps", "--document-private-items"])
        .env("RUSTDOCFLAGS", "-D warnings"))
}
