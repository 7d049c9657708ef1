//! The file under test: made once, every block written, removed at the end.

use io::{Access, File};
use std::path::{Path, PathBuf};
use units::Seed;

/// Stamp of the file, as the load generator verifies it.
pub const FILE_ID: u64 = 1;

/// A file of our own in the build folder, which lies on the disk that the repository lies on.
pub struct TestFile {
    pub path: PathBuf,
    pub bytes: u64,
}

impl TestFile {
    /// # Panics
    /// When it cannot be written.
    pub fn make(name: &str, bytes: u64, block_bytes: u32) -> Self {
        Self::make_with(name, bytes, block_bytes, FILE_ID)
    }

    /// With another stamp.
    ///
    /// # Panics
    /// As [`TestFile::make`].
    pub fn make_with(name: &str, bytes: u64, block_bytes: u32, file_id: u64) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.dbf", std::process::id()));
        let made = Self { path, bytes };
        let access = Access { read: true, write: true, direct: false, dsync: false };
        let file = File::create_new(&made.path, access).expect("create the file under test");
        io::prepare::write_stamped(&file, bytes, block_bytes, file_id, Seed(1), &mut |_, _| true)
            .expect("write the file under test");
        made
    }

    /// Reads all of it through the page cache, and makes sure that it stays there.
    ///
    /// # Panics
    /// When the memory is too small for it.
    pub fn warm(&self) {
        let mut source = std::fs::File::open(&self.path).expect("the file was made");
        std::io::copy(&mut source, &mut std::io::sink()).expect("read the file");
        let access = Access { read: true, write: false, direct: false, dsync: false };
        let residency =
            File::open(&self.path, access).and_then(|f| f.residency()).expect("ask for residency");
        assert!(
            residency.share() > 0.999,
            "only {:.1} % of the file fits the page cache",
            residency.share() * 100.0
        );
    }

    /// Out of the page cache.
    ///
    /// # Panics
    /// When it cannot be opened.
    pub fn drop_cache(&self) {
        let access = Access { read: true, write: true, direct: false, dsync: false };
        File::open(&self.path, access).and_then(|f| f.drop_cache()).expect("drop the cache");
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        // Whoever comes next overwrites nothing: names carry the process id.
        let _ = std::fs::remove_file(&self.path);
    }
}
