//! Exports of NFS servers as places for files, by our own client: no kernel mount, no root.
//!
//! A place there is a path that begins with `nfs://`. As the kernel has a table of what is mounted where, this process has one:
//! [`Export::mount`] enters an export, and whoever meets a path asks [`storage`] whose it is.

mod files;
mod folder;
mod sampler;
mod source;
mod stamped;

pub use files::OpenFiles;
pub use folder::{Folder, remove_left};
pub use sampler::ExportSampler;
pub use source::Source;
pub(crate) use stamped::write_stamped;

use crate::LabError;
use io::{IoError, RealStorage, Storage};
use nfs::{Followed, Mount, MountFacts, Url, UrlError, Version};
use record::FactRow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

static MOUNTED: Mutex<Vec<Mounted>> = Mutex::new(Vec::new());
static NUMBERS: AtomicU32 = AtomicU32::new(0);

/// An entry of the table; the newest of a path is the one in force.
struct Mounted {
    /// Which one of this process.
    number: u32,
    source: Source,
    path: PathBuf,
    storage: Weak<nfs::Storage>,
}

/// Whether `path` is on an export rather than on this machine.
pub fn is_export(path: &Path) -> bool {
    path.to_str().is_some_and(|text| text.starts_with("nfs://"))
}

/// Where the files below `path` are: an export that is mounted, or this machine.
///
/// # Errors
/// [`IoError::NoSuchFile`]: an export that nobody mounted.
pub fn storage(path: &Path) -> Result<Arc<dyn Storage>, IoError> {
    if !is_export(path) {
        return Ok(Arc::new(RealStorage));
    }
    Ok(mounted(path)?)
}

/// As a path from the root of this machine, or of the export.
///
/// # Errors
/// [`LabError::Target`]: this machine does not know where it is.
pub fn absolute(path: &Path) -> Result<PathBuf, LabError> {
    if is_export(path) {
        return Ok(path.to_path_buf());
    }
    std::path::absolute(path).map_err(|error| LabError::Target(format!("{}: {error}", path.display())))
}

/// Bytes that this user can still write in `directory`.
///
/// # Errors
/// What the kernel says, or the server.
pub fn free_space(directory: &Path) -> Result<u64, LabError> {
    if !is_export(directory) {
        return Ok(io::prepare::free_space(directory)?);
    }
    let space = mounted(directory)?.mount().space();
    space.map(|space| space.available).map_err(|error| LabError::Target(error.to_string()))
}

/// The version that is spoken with the export of `path`; none on this machine.
pub fn version(path: &Path) -> Option<Version> {
    is_export(path).then(|| mounted(path).ok()).flatten().map(|storage| storage.mount().facts().version)
}

/// What was found at the export of `path`, for the record; nothing on this machine. `varies`: the version is not the same all the time.
pub fn fact_rows(path: &Path, varies: bool) -> Vec<FactRow> {
    let Some(storage) = is_export(path).then(|| mounted(path).ok()).flatten() else { return Vec::new() };
    let (MountFacts { version, read_max, write_max, .. }, source) =
        (storage.mount().facts(), in_force(path).map(|(source, _)| source));
    let row = |name: &str, value: String, unit: &str| FactRow {
        layer: "filesystem".into(),
        object: path.display().to_string(),
        name: name.into(),
        value: Some(value),
        unit: unit.into(),
        source: "our NFS client".into(),
    };
    let oranfstab = source.as_ref().and_then(Source::oranfstab);
    let oranfstab = oranfstab.map(|lines| row("oranfstab", lines, ""));
    let known = vec![
        row("type", format!("{}, our own client", if varies { "NFS" } else { version.title() }), ""),
        row("read_max", read_max.to_string(), "bytes"),
        row("write_max", write_max.to_string(), "bytes"),
        row(
            "paths",
            storage.mount().target().paths.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
            "",
        ),
    ];
    known.into_iter().chain(oranfstab).collect()
}

/// The times that data below `path` was found elsewhere, oldest first; none on this machine.
pub fn followed(path: &Path) -> Vec<Followed> {
    mounted(path).map(|storage| storage.mount().followed()).unwrap_or_default()
}

/// What has happened between this process and its servers since this was asked last: connections lost and made, what was written again.
pub fn news() -> Vec<String> {
    let all = in_use();
    all.iter().flat_map(|(_, storage)| storage.mount().news()).map(|alert| alert.text).collect()
}

/// Numbers and storages of all that is mounted. Whoever drops the last copy of one ends its mount, so the table must not be locked then.
fn in_use() -> Vec<(u32, Arc<nfs::Storage>)> {
    let mounted = MOUNTED.lock().unwrap_or_else(PoisonError::into_inner);
    mounted.iter().filter_map(|mounted| Some((mounted.number, mounted.storage.upgrade()?))).collect()
}

fn mounted(path: &Path) -> Result<Arc<nfs::Storage>, IoError> {
    Ok(in_force(path).ok_or_else(|| IoError::NoSuchFile { path: path.to_path_buf() })?.1)
}

fn in_force(path: &Path) -> Option<(Source, Arc<nfs::Storage>)> {
    let mounted = MOUNTED.lock().unwrap_or_else(PoisonError::into_inner);
    let below = mounted.iter().rev().filter(|mounted| path.starts_with(&mounted.path));
    below.filter_map(|mounted| Some((mounted.source.clone(), mounted.storage.upgrade()?))).next()
}

/// An export in use, until the last copy of this is dropped.
#[derive(Clone)]
pub struct Export {
    /// Holds the mount.
    storage: Arc<nfs::Storage>,
    source: Source,
    /// In the export, or its root.
    place: PathBuf,
}

impl Export {
    /// Connects to what `url` names, in its version unless another is given.
    ///
    /// # Errors
    /// As [`Export::of`].
    pub fn mount(url: &Url, version: Option<Version>) -> Result<Self, LabError> {
        Self::of(&Source::Url(url.clone()), version)
    }

    /// Connects to the export of a URL, and says which place it names. `is_new`: its last directory may still have to be made.
    ///
    /// # Errors
    /// As [`Export::of`]; [`LabError::Target`]: it is no URL.
    pub fn at(url: &str, is_new: bool) -> Result<(Self, PathBuf), LabError> {
        let url: Url = url.parse().map_err(|error: UrlError| LabError::Target(error.to_string()))?;
        let error = match Self::mount(&url, None) {
            Ok(export) => {
                let place = export.place.clone();
                return Ok((export, place));
            }
            Err(error) => error,
        };
        let Some((above, name)) = url.export.rsplit_once('/').filter(|_| is_new) else { return Err(error) };
        let above = Url { export: if above.is_empty() { "/" } else { above }.to_owned(), ..url.clone() };
        let export = Self::mount(&above, None).map_err(|_| error)?;
        let place = export.place.join(name);
        Ok((export, place))
    }

    /// Connects to what `source` names, in its version unless another is given.
    ///
    /// # Errors
    /// [`LabError::Target`]: no address, not reachable, another version, no such export, not for us.
    pub fn of(source: &Source, version: Option<Version>) -> Result<Self, LabError> {
        let refused = |error: &dyn std::fmt::Display| LabError::Target(error.to_string());
        let source = source.in_version(version);
        let target = source.target().map_err(|error| refused(&error))?;
        let mount = Mount::open(target, source.options()).map_err(|error| refused(&error))?;
        let (path, place) = (source.root(), source.place());
        let storage = Arc::new(nfs::Storage::new(mount, path.clone()));
        let mut mounted = MOUNTED.lock().unwrap_or_else(PoisonError::into_inner);
        mounted.retain(|mounted| mounted.storage.strong_count() > 0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        mounted.push(Mounted { number, source: source.clone(), path, storage: Arc::downgrade(&storage) });
        Ok(Self { storage, source, place })
    }

    /// The export of `path`, which is mounted, once more in `version`: until the result is dropped, files that are opened there are
    /// opened by it.
    ///
    /// # Errors
    /// As [`Export::mount`].
    pub fn again(path: &Path, version: Version) -> Result<Self, LabError> {
        let (source, _) = in_force(path)
            .ok_or_else(|| LabError::Target(format!("{} is on no export that is in use", path.display())))?;
        Self::of(&source, Some(version))
    }

    /// The path of the place that was meant: the export's, or one below.
    pub fn path(&self) -> &Path {
        &self.place
    }

    /// The version in use, the ways to the server, and what it allows: one line.
    pub fn negotiated(&self) -> String {
        let mount = self.storage.mount();
        let (target, (read_max, write_max)) = (mount.target(), mount.transfer_max());
        let paths: Vec<_> = target.paths.iter().map(ToString::to_string).collect();
        format!(
            "{} with {}:{}, by {}; READ up to {}, WRITE up to {}",
            target.version.title(),
            target.server,
            target.export,
            paths.join(", "),
            units::Bytes(read_max.into()),
            units::Bytes(write_max.into())
        )
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        let mounted = MOUNTED.lock().unwrap_or_else(PoisonError::into_inner);
        let ours = mounted.iter().find(|it| std::ptr::eq(it.storage.as_ptr(), Arc::as_ptr(&self.storage)));
        ours.into_iter().for_each(sampler::leave);
    }
}

impl std::fmt::Debug for Export {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.source)
    }
}

impl PartialEq for Export {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for Export {}
