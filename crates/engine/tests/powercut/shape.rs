//! The shapes of databases that are tried: I/O mode, protection against torn blocks, sizes of blocks, cache, redo; flash cache.

use crate::machine::{MIB, environment};
use engine::{Instance, InstanceConfig, Shutdown};
use io::Storage;
use io::sim::{Promises, SimStorage};
use std::path::Path;
use units::Seed;

/// A kind of database, made once; each run works on a copy.
pub struct Shape {
    pub words: String,
    /// Whether it has a flash cache.
    pub flash: bool,
    empty: SimStorage,
}

impl Shape {
    /// A storage of its own with the database, which is shut down.
    pub fn storage(&self) -> SimStorage {
        self.empty.fork()
    }
}

/// The devices: what becomes of writes that are not durable.
const ANY_SECTOR: Promises = Promises { sector_bytes: 512, whole_writes: false, in_order: false };
const IN_ORDER: Promises = Promises { in_order: true, ..ANY_SECTOR };
const WHOLE_WRITES: Promises = Promises { whole_writes: true, ..ANY_SECTOR };

pub fn all() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for (n, mode) in ["none", "asynch", "directio", "setall"].into_iter().enumerate() {
        for (m, (protection, promises)) in [
            ("redo", ANY_SECTOR),
            ("doublewrite", ANY_SECTOR),
            ("redo", IN_ORDER),
            // Needs no protection: the device tears nothing.
            ("off", WHOLE_WRITES),
        ]
        .into_iter()
        .enumerate()
        {
            // Sizes vary with the rest, so that not every pair is tried, but every size with every mode and protection.
            let (a, b) = ((n + m) % 4, (n + 2 * m) % 3);
            let block = ["2k", "4k", "2k", "8k"][a];
            let cache = ["512k", "1m", "640k"][b];
            let groups = [(2, 1), (3, 1), (2, 2), (4, 1)][a];
            let log_block = ["512", "4k"][(n + m) % 2];
            // Half of them with a flash cache, smaller than what leaves the buffer cache, under both policies.
            let flash = [None, Some("classic"), None, Some("scan_resistant")][(n + 2 * m + m / 2) % 4];
            shapes.push(make(promises, [mode, protection, block, cache, log_block], groups, flash));
        }
    }
    shapes
}

fn make(promises: Promises, values: [&str; 5], (groups, mib): (u32, u64), flash: Option<&str>) -> Shape {
    let names =
        ["filesystemio_options", "torn_page_protection", "db_block_size", "db_cache_size", "log_block_size"];
    let storage = SimStorage::new(promises, Seed(1));
    storage.create_directory(Path::new("/db")).expect("a directory");
    let mut config = InstanceConfig::new("/db").with("log_buffer", "256k").with("sessions", "24");
    for (name, value) in names.into_iter().zip(values) {
        config = config.with(name, value);
    }
    if let Some(policy) = flash {
        config = config.with("db_flash_cache_file", "flash.dat").with("db_flash_cache_size", "600k");
        config = config.with("db_flash_cache_policy", policy);
    }
    (config.data_bytes, config.undo_bytes, config.temp_bytes) = (MIB, MIB, MIB);
    (config.redo_bytes, config.redo_groups) = (mib * MIB, groups);
    let instance = Instance::create(environment(&storage, 7), config).expect("a database");
    instance.shutdown(Shutdown::Immediate).expect("a shutdown");
    let words = format!(
        "{}, {groups} redo groups of {mib} MiB, flash cache {}, {promises:?}",
        values.join(" "),
        flash.unwrap_or("none")
    );
    Shape { words, flash: flash.is_some(), empty: storage }
}
