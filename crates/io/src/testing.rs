//! What the tests of this crate share: folders, loop devices and mounts that clean up after themselves.
//!
//! Loop devices and mounts need root; a test that cannot have them fails with what to do.

use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A folder of our own on a disk, not in memory.
pub(crate) fn folder() -> TempDir {
    let mut parent = std::env::temp_dir();
    if crate::prepare::file_system(&parent).unwrap() == "tmpfs" {
        parent = "/var/tmp".into();
    }
    tempfile::Builder::new().prefix("redoubt-io-").tempdir_in(parent).unwrap()
}

pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|e| panic!("{program}: {e}; install util-linux and e2fsprogs"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {error}; this test needs root");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A loop device over a file.
pub(crate) struct Loop(pub(crate) PathBuf);

impl Loop {
    pub(crate) fn over(file: &Path, options: &[&str]) -> Self {
        let mut arguments = vec!["--find", "--show"];
        arguments.extend_from_slice(options);
        arguments.push(file.to_str().unwrap());
        Self(run("losetup", &arguments).into())
    }

    pub(crate) fn text(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.0).status();
    }
}

/// A mounted file system.
pub(crate) struct Mount(pub(crate) PathBuf);

impl Mount {
    pub(crate) fn new(kind: &str, source: &str, options: &str, point: &Path) -> Self {
        std::fs::create_dir_all(point).unwrap();
        run("mount", &["-t", kind, "-o", options, source, point.to_str().unwrap()]);
        Self(point.to_path_buf())
    }

    pub(crate) fn tmpfs(options: &str, point: &Path) -> Self {
        Self::new("tmpfs", "none", options, point)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}
