//! What may be measured, and how far: a directory, an existing file, or a block device.
//!
//! The rule: nothing is overwritten that Redoubt did not create. A directory gets files of our own; an existing file is
//! only read; a block device is only read unless the user typed its name again behind `--destroy` and nobody uses it.

use crate::LabError;
use crate::control::Control;
use crate::export::{self, Export, is_export};
use io::{Access, File};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use units::Seed;

/// A target that was looked at and may be used as said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// We make our own files in here, and remove them.
    Directory(PathBuf),
    /// The same on an export of an NFS server, over our own client.
    Export(Export),
    /// Read only.
    File(PathBuf),
    /// Read only, or overwritten when `destroy`.
    Device {
        /// The device node, links resolved.
        path: PathBuf,
        /// The user asked for write figures in full knowledge.
        destroy: bool,
    },
}

impl Target {
    /// The path, links resolved.
    pub fn path(&self) -> &Path {
        match self {
            Self::Directory(path) | Self::File(path) | Self::Device { path, .. } => path,
            Self::Export(export) => export.path(),
        }
    }

    /// Whether writes to it are allowed.
    pub fn writable(&self) -> bool {
        matches!(self, Self::Directory(_) | Self::Export(_) | Self::Device { destroy: true, .. })
    }

    /// Looks at `path`, and at what `--destroy` names.
    ///
    /// # Errors
    /// A sentence with what was seen, why it is refused, and what to type.
    pub fn resolve(path: &Path, destroy: Option<&Path>) -> Result<Self, LabError> {
        let refused = |text: String| Err(LabError::Target(text));
        if is_export(path) {
            if let Some(device) = destroy {
                return refused(format!(
                    "--destroy {} is for block devices, and {} is an export. Leave --destroy away.",
                    device.display(),
                    path.display()
                ));
            }
            let (export, _) = Export::at(&path.to_string_lossy(), false)?;
            return Ok(Self::Export(export));
        }
        let real = match path.canonicalize() {
            Ok(real) => real,
            Err(error) => return refused(format!("{}: {error}. {}", path.display(), hint(&error))),
        };
        let kind =
            real.metadata().map_err(|e| LabError::Target(format!("{}: {e}", real.display())))?.file_type();
        let target = if kind.is_dir() {
            Self::Directory(real)
        } else if kind.is_file() {
            Self::File(real)
        } else if kind.is_block_device() {
            Self::Device { path: real, destroy: false }
        } else {
            return refused(format!(
                "{} is neither a directory, a file nor a block device. Give one of these, for example a directory on the \
                 storage in question: redoubt calibrate /data",
                path.display()
            ));
        };
        match (target, destroy) {
            (target, None) => Ok(target),
            (Self::Device { path: device, .. }, Some(named)) => destroyable(path, &device, named),
            (_, Some(_)) => refused(format!(
                "--destroy is for block devices, and {} is not one. In a directory Redoubt writes only files of its own; \
                 an existing file is only read. Leave --destroy away.",
                path.display()
            )),
        }
    }
}

fn hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::NotFound => "Is the name right? A directory must exist before: mkdir it.",
        std::io::ErrorKind::PermissionDenied => "Run as a user who may enter it, or with sudo.",
        _ => "Give a directory, a file or a block device.",
    }
}

/// A device is overwritten only when it is named twice, letter by letter, and nothing on the machine uses it. What is
/// written on it (a signature, partitions) is what the user gave up by naming it; what is in use is refused all the same.
fn destroyable(typed: &Path, device: &Path, named: &Path) -> Result<Target, LabError> {
    if named != typed && named != device {
        return Err(LabError::Target(format!(
            "--destroy {} does not name the target {}. Overwriting must be confirmed with the device's full name: \
             redoubt calibrate {} --destroy {}",
            named.display(),
            typed.display(),
            device.display(),
            device.display()
        )));
    }
    let in_use = host::facts::in_use(device)?;
    if in_use.is_busy() {
        in_use.must_be_free()?;
    }
    Ok(Target::Device { path: device.to_owned(), destroy: true })
}

/// Makes one file of ours: preallocated, every block written and stamped, synced, out of the page cache.
///
/// `told` hears the bytes done so far.
///
/// # Errors
/// No space, no permission, an existing file of that name, [`LabError::Cancelled`].
pub fn make_file(
    path: &Path,
    bytes: u64,
    block_bytes: u32,
    file_id: u64,
    seed: Seed,
    control: &mut Control<'_>,
    told: &mut dyn FnMut(&mut Control<'_>, u64),
) -> Result<(), LabError> {
    if is_export(path) {
        return export::write_stamped(path, bytes, block_bytes, file_id, seed, &mut |done| {
            told(control, done);
            !control.cancelled()
        });
    }
    let access = Access { read: true, write: true, direct: false, dsync: false };
    let file = File::create_new(path, access)?;
    // Direct where it works: cached writes would all be flushed at the end, and Ctrl-C would wait for that flush.
    let direct = File::open(path, Access { direct: true, ..access })
        .and_then(|file| file.probe_direct().map(|()| file));
    let file = direct.unwrap_or(file);
    let written = io::prepare::write_stamped(&file, bytes, block_bytes, file_id, seed, &mut |done, _| {
        told(control, done);
        !control.cancelled()
    });
    if control.cancelled() {
        return Err(LabError::Cancelled);
    }
    written?;
    file.drop_cache()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_file_and_nonsense() {
        let dir = tempfile::tempdir().expect("tempdir");
        let file = dir.path().join("f");
        std::fs::write(&file, "x").expect("write");
        assert!(matches!(Target::resolve(dir.path(), None), Ok(Target::Directory(_))));
        assert!(matches!(Target::resolve(&file, None), Ok(Target::File(_))));
        assert!(!Target::File(file.clone()).writable());
        for (path, destroy, words) in [
            (dir.path().join("absent"), None, "mkdir"),
            ("/dev/null".into(), None, "neither a directory"),
            (file.clone(), Some(file.as_path()), "--destroy is for block devices"),
        ] {
            let text = Target::resolve(&path, destroy).expect_err("refused").to_string();
            assert!(text.contains(words), "{text}");
        }
    }
}
