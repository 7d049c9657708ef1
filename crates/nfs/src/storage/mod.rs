//! Files of an export as an [`io::Storage`]: what the engine needs of a file system, by this client alone.
//!
//! What a name is: `prefix/path/below/the/export`, where the prefix is whatever the caller calls the export, usually its URL, so that
//! messages name what was typed. The server keeps directories and sizes durable by itself (RFC 1813, 3.3; RFC 8881, 3.3): there is
//! nothing to sync but data. Nothing is cached here, so every transfer is a direct one, whatever its [`Access`] says.

mod disk;
mod lock;

use self::disk::{Callers, NfsDisk};
use crate::client::{Mount, NfsError, Open, QueueOptions};
use crate::transfer::Stability;
use crate::{Status, client::File};
use io::sim::Disk;
use io::{Access, Action, Api, Completion, IoError, Outcome, Queue as _, Request, StorageLock};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Permissions of new files and directories.
const FILE_MODE: u32 = 0o640;
const DIRECTORY_MODE: u32 = 0o750;
/// Bytes of one write of zeroes, and how many are on their way at once.
const ZEROES_BYTES: u32 = 1 << 20;
const ZEROES_DEPTH: u32 = 8;
/// Longest content that [`io::Storage::read`] brings.
const SMALL_BYTES_MAX: u64 = 64 << 20;

/// [`io::Storage`] on an export. Threads share it.
pub struct Storage {
    mount: Mount,
    prefix: PathBuf,
    callers: Arc<Callers>,
    /// One line at a time: lines of two threads must not get the same place.
    lines: Mutex<()>,
}

impl Storage {
    /// The files of `mount`, whose root is called `prefix`.
    pub fn new(mount: Mount, prefix: impl Into<PathBuf>) -> Self {
        let callers = Arc::new(Callers::new(mount.clone()));
        Self { mount, prefix: prefix.into(), callers, lines: Mutex::default() }
    }

    /// The export itself.
    pub fn mount(&self) -> &Mount {
        &self.mount
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// What the server says.
    pub fn remove_directory(&self, path: &Path) -> Result<(), IoError> {
        let removed = self.mount.remove_directory(self.below(path)?);
        removed.map_err(|error| refused(path, "rmdir", &error))
    }

    /// What the server calls `path`.
    fn below<'p>(&self, path: &'p Path) -> Result<&'p str, IoError> {
        let below = path.strip_prefix(&self.prefix).ok().and_then(Path::to_str);
        below.ok_or_else(|| {
            refused(
                path,
                "find",
                &NfsError::Name(format!("{} below {}", path.display(), self.prefix.display())),
            )
        })
    }

    fn file(&self, path: &Path, call: &'static str, how: Open) -> Result<File, IoError> {
        self.mount.file(self.below(path)?, how).map_err(|error| refused(path, call, &error))
    }

    fn disk(&self, path: &Path, file: File, access: Access) -> Arc<NfsDisk> {
        Arc::new(NfsDisk::new(path, file, access, self.callers.clone()))
    }

    /// Zeroes in `from..to` of `file`, durable when this returns.
    fn write_zeroes(&self, path: &Path, file: &File, from: u64, to: u64) -> Result<(), IoError> {
        let bytes = ZEROES_BYTES.min(to.saturating_sub(from).try_into().unwrap_or(u32::MAX)).max(1);
        let depth = ZEROES_DEPTH.min((to.saturating_sub(from)).div_ceil(u64::from(bytes)).max(1) as u32);
        let queue = self.mount.queue(QueueOptions::new(depth, bytes), &[file]);
        let mut queue = queue.map_err(|error| refused(path, "write", &error))?;
        let mut free: Vec<u32> = (0..depth).collect();
        let (mut next, mut done) = (from, Vec::new());
        let mut sizes = vec![(0, 0); depth as usize];
        let mut result = Ok(());
        while (next < to && result.is_ok()) || queue.in_flight() > 0 {
            while next < to
                && result.is_ok()
                && let Some(slot) = free.pop()
            {
                let length = u64::from(bytes).min(to - next) as u32;
                queue.stage(slot, Request { file: 0, offset: next, bytes: length, action: Action::Write });
                sizes[slot as usize] = (next, length);
                next += u64::from(length);
            }
            queue.submit_and_reap(1, &mut done)?;
            for Completion { slot, outcome } in done.drain(..) {
                let (offset, length) = sizes[slot as usize];
                let ended = disk::check(path, "write", offset, length, outcome, queue.trouble());
                result = result.and(ended);
                free.push(slot);
            }
        }
        result?;
        queue.stage(0, Request { file: 0, offset: 0, bytes: 0, action: Action::Sync });
        queue.submit_and_reap(1, &mut done)?;
        let outcome = done.pop().map_or(Outcome::Errno(5), |completion| completion.outcome);
        disk::check(path, "commit", 0, 0, outcome, queue.trouble())
    }

    fn write_whole(&self, path: &Path, content: &[u8]) -> Result<(), IoError> {
        let file = self.file(path, "create", Open::Create { mode: FILE_MODE })?;
        self.mount.set_size(&file, 0).map_err(|error| refused(path, "truncate", &error))?;
        let disk = self.disk(path, file, WRITING);
        disk.checked("write", 0, content.len(), disk.write_at_dsync(content, 0))
    }
}

const WRITING: Access = Access { read: true, write: true, direct: true, dsync: false };

impl io::Storage for Storage {
    /// 1. the name, which must be new. 2. zeroes everywhere, so that no later write needs space. 3. commit. What fails is removed again.
    fn create(&self, path: &Path, bytes: u64, access: Access) -> Result<Arc<dyn Disk>, IoError> {
        let file = self.file(path, "create", Open::New { mode: FILE_MODE })?;
        if let Err(error) = self.write_zeroes(path, &file, 0, bytes) {
            drop(file);
            let _ = self.remove(path);
            return Err(error);
        }
        Ok(self.disk(path, file, access))
    }

    fn open(&self, path: &Path, access: Access) -> Result<Arc<dyn Disk>, IoError> {
        let file = self.file(path, "open", if access.write { Open::Write } else { Open::Read })?;
        Ok(self.disk(path, file, access))
    }

    fn extend(&self, path: &Path, from: u64, to: u64) -> Result<(), IoError> {
        let file = self.file(path, "open", Open::Write)?;
        let result = self.write_zeroes(path, &file, from, to);
        if result.is_err() {
            let _ = self.mount.set_size(&file, from);
        }
        result
    }

    fn remove(&self, path: &Path) -> Result<(), IoError> {
        self.mount.remove(self.below(path)?).map_err(|error| refused(path, "remove", &error))
    }

    /// 1. the content under another name, durable: before 2, or the name could get an empty file. 2. renamed over it.
    fn replace(&self, path: &Path, content: &[u8]) -> Result<(), IoError> {
        let mut name = std::ffi::OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(".new");
        let draft = path.with_file_name(name);
        let result = self.write_whole(&draft, content).and_then(|()| {
            let renamed = self.mount.rename(self.below(&draft)?, self.below(path)?);
            renamed.map_err(|error| refused(path, "rename", &error))
        });
        if result.is_err() {
            let _ = self.remove(&draft);
        }
        result
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, IoError> {
        let file = self.file(path, "open", Open::Read)?;
        let size = self.mount.attributes(&file).map_err(|error| refused(path, "getattr", &error))?.size;
        if size > SMALL_BYTES_MAX {
            return Err(IoError::from_errno(path, "read", 0, EFBIG));
        }
        let disk = self.disk(path, file, Access { write: false, ..WRITING });
        let mut content = vec![0; size as usize];
        disk.checked("read", 0, content.len(), disk.read_at(&mut content, 0))?;
        Ok(content)
    }

    fn append_line(&self, path: &Path, line: &str) {
        let _one = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(file) = self.file(path, "open", Open::Create { mode: FILE_MODE }) else { return };
        let Ok(attributes) = self.mount.attributes(&file) else { return };
        let _ =
            self.disk(path, file, WRITING).write_at_dsync(format!("{line}\n").as_bytes(), attributes.size);
    }

    fn exists(&self, path: &Path) -> bool {
        self.below(path).is_ok_and(|below| self.mount.exists(below).unwrap_or(false))
    }

    /// What an export calls a device belongs to another machine.
    fn is_device(&self, _path: &Path) -> bool {
        false
    }

    fn lock(&self, path: &Path) -> Result<StorageLock, IoError> {
        lock::take(&self.mount, path, self.below(path)?, &self.callers)
    }

    /// From the top down.
    fn create_directory(&self, path: &Path) -> Result<(), IoError> {
        let below = self.below(path)?;
        for (end, _) in below.match_indices('/').chain([(below.len(), "")]).filter(|(end, _)| *end > 0) {
            let part = &below[..end];
            match self.mount.make_directory(part, DIRECTORY_MODE) {
                Err(error) if error.status() == Some(Status::EXIST) => {}
                // Where we may not make it, it may be there.
                Err(_) if self.mount.exists(part).unwrap_or(false) => {}
                made => made.map_err(|error| refused(path, "mkdir", &error))?,
            }
        }
        Ok(())
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>, IoError> {
        let names = self.mount.list(self.below(directory)?);
        let names = names.map_err(|error| refused(directory, "readdir", &error))?;
        let mut paths: Vec<PathBuf> = names.into_iter().map(|name| directory.join(name)).collect();
        paths.sort();
        Ok(paths)
    }

    /// The API is the kernel's way to its files; here there is one, a connection of this queue's own.
    fn open_queue(
        &self,
        _api: Api,
        depth: u32,
        buffer_bytes: u32,
        files: &[Arc<dyn Disk>],
    ) -> Result<Box<dyn io::Queue>, IoError> {
        let ours = |disk: &Arc<dyn Disk>| {
            let disk = disk.clone().as_any().and_then(|any| any.downcast::<NfsDisk>().ok());
            disk.expect("a file of this storage")
        };
        let disks: Vec<Arc<NfsDisk>> = files.iter().map(ours).collect();
        let stability = disks.iter().map(|disk| disk.stability()).max().unwrap_or(Stability::Unstable);
        let path = self.callers.next_path();
        let options = QueueOptions { stability, path, ..QueueOptions::new(depth, buffer_bytes) };
        let files: Vec<&File> = disks.iter().map(|disk| disk.file()).collect();
        let queue = self.mount.queue(options, &files);
        queue.map(|queue| Box::new(queue) as _).map_err(|error| refused(&self.prefix, "connect", &error))
    }
}

const EFBIG: i32 = 27;

/// What callers tell apart as they know it; the rest with what this client says of it.
fn refused(path: &Path, call: &'static str, error: &NfsError) -> IoError {
    let errno = error.errno();
    let known = matches!(
        error.status(),
        Some(Status::NOENT | Status::EXIST | Status::NOSPC | Status::DQUOT | Status::FBIG)
    );
    match (known, error) {
        (true, NfsError::Refused { .. }) => IoError::from_errno(path, call, 0, errno),
        _ => IoError::Elsewhere { path: path.to_path_buf(), call, errno, said: error.to_string() },
    }
}
