//! Debian packages: the programs that tests and benchmarks call, installed only when missing.

use crate::Failure;
use crate::shell::{is_root, run as sh};
use std::path::Path;
use std::process::Command;

/// A program and the package that holds it.
type Need = (&'static str, &'static str);

/// What the tests call.
pub const TEST: &[Need] = &[
    ("losetup", "mount"),
    ("mount", "mount"),
    ("blkid", "util-linux"),
    ("setpriv", "util-linux"),
    ("taskset", "util-linux"),
    ("sfdisk", "fdisk"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mkfs.xfs", "xfsprogs"),
    ("mkfs.btrfs", "btrfs-progs"),
    ("fusermount3", "fuse3"),
    ("smartctl", "smartmontools"),
    ("chromium", "chromium"),
    ("pdfinfo", "poppler-utils"),
    // The benchmarks rehearse in the tests.
    ("fio", "fio"),
    ("kill", "procps"),
    ("unshare", "util-linux"),
    ("ipcrm", "util-linux"),
    ("/usr/lib/postgresql/15/bin/postgres", "postgresql-15"),
    ("mariadbd", "mariadb-server"),
    ("tmux", "tmux"),
    ("ganesha.nfsd", "nfs-ganesha"),
    ("/usr/lib/x86_64-linux-gnu/ganesha/libfsalvfs.so", "nfs-ganesha-vfs"),
    ("rpcbind", "rpcbind"),
    ("ip", "iproute2"),
    ("/usr/include/nfsc/libnfs.h", "libnfs-dev"),
    ("openssl", "openssl"),
    ("tshark", "tshark"),
    ("prometheus-node-exporter", "prometheus-node-exporter"),
];

/// What the benchmarks call.
pub const BENCH: &[Need] = &[
    ("fio", "fio"),
    ("taskset", "util-linux"),
    ("losetup", "mount"),
    ("/usr/lib/postgresql/15/bin/postgres", "postgresql-15"),
    ("mariadbd", "mariadb-server"),
    ("mariadb", "mariadb-client"),
    ("sysbench", "sysbench"),
    ("ganesha.nfsd", "nfs-ganesha"),
    ("/usr/lib/x86_64-linux-gnu/ganesha/libfsalvfs.so", "nfs-ganesha-vfs"),
    ("rpcbind", "rpcbind"),
    ("ip", "iproute2"),
    ("/usr/include/nfsc/libnfs.h", "libnfs-dev"),
    ("unshare", "util-linux"),
];

/// Installs what is missing of `needs`.
///
/// # Errors
/// Not root, or the installation failed: with the command to type.
pub fn ensure(needs: &[Need]) -> Result<(), Failure> {
    let missing = missing(needs, installed);
    if missing.is_empty() {
        return Ok(());
    }
    let install =
        format!("apt-get update && apt-get install --yes --no-install-recommends {}", missing.join(" "));
    if !is_root() {
        return Err(format!(
            "packages are missing, and only root can install them. Type:\n  sudo sh -c '{install}'"
        ));
    }
    println!("Installing {}", missing.join(" "));
    let apt = |arguments: &[&str]| {
        sh(Command::new("apt-get").env("DEBIAN_FRONTEND", "noninteractive").args(arguments))
    };
    apt(&["update", "-qq"])
        .and_then(|()| apt(&[&["install", "-qq", "--yes", "--no-install-recommends"], &missing[..]].concat()))
        .map_err(|e| {
            format!(
                "{e}\nInstall them another way, or on another distribution by their names there:\n  {install}"
            )
        })
}

/// Packages of the programs that `has` does not find, each once, in order.
fn missing(needs: &[Need], has: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let mut packages = Vec::new();
    for &(program, package) in needs {
        if !has(program) && !packages.contains(&package) {
            packages.push(package);
        }
    }
    packages
}

/// Looks where administrators' programs are, too: an ordinary user's PATH leaves `/sbin` out.
fn installed(program: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':').chain(["/usr/sbin", "/sbin"]).any(|folder| Path::new(folder).join(program).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_each_missing_package_once() {
        assert_eq!(missing(&[("a", "x"), ("b", "x"), ("c", "y"), ("d", "z")], |p| p == "c"), ["x", "z"]);
        assert!(missing(TEST, |_| true).is_empty());
    }
}
