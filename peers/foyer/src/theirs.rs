//! The hybrid cache of foyer above a plain file.

use crate::{BLOCK, Levels, Places, Sizes};
use foyer::{
    BlockEngineConfig, DeviceBuilder, FifoConfig, FsDeviceBuilder, HybridCache, HybridCacheBuilder,
    HybridCachePolicy, LfuConfig, LruConfig, PsyncIoEngineConfig, S3FifoConfig, SieveConfig,
};
use io::sim::Disk;
use io::{Access, Buffer, RealStorage, Storage};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::runtime::Runtime;

/// What leaves its memory for flash, and when; in flash it has one order, the oldest first.
pub const POLICIES: [&str; 5] = ["lru", "lfu", "s3-fifo", "sieve", "fifo"];

pub struct Theirs {
    cache: Option<HybridCache<u64, Vec<u8>>>,
    runtime: Runtime,
    sizes: Sizes,
    policy: &'static str,
    folder: PathBuf,
    flash: PathBuf,
    file: Arc<dyn Disk>,
    buffer: Buffer,
    fetched: u64,
}

impl Theirs {
    pub fn make(places: Places<'_>, sizes: Sizes, policy: &'static str) -> Self {
        let (folder, flash) = (places.data.join("theirs"), places.flash.join("theirs"));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("data");
        std::fs::write(&path, vec![7; sizes.data as usize]).expect("its data file");
        let access = Access { read: true, write: false, direct: true, dsync: false };
        let file = RealStorage.open(&path, access).expect("open it");
        let buffer = Buffer::new(BLOCK).expect("memory");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let mut made = Self { cache: None, runtime, sizes, policy, folder, flash, file, buffer, fetched: 0 };
        made.empty();
        made
    }

    fn open(&self) -> HybridCache<u64, Vec<u8>> {
        let memory = HybridCacheBuilder::new()
            .with_policy(HybridCachePolicy::WriteOnEviction)
            .memory(self.sizes.memory as usize);
        // One shard, as a small cache wants it: its sizes are exact then.
        let memory = memory.with_shards(1).with_weighter(|_, block: &Vec<u8>| block.len());
        let memory = match self.policy {
            "lru" => memory.with_eviction_config(LruConfig::default()),
            "lfu" => memory.with_eviction_config(LfuConfig::default()),
            "s3-fifo" => memory.with_eviction_config(S3FifoConfig::default()),
            "sieve" => memory.with_eviction_config(SieveConfig::default()),
            _ => memory.with_eviction_config(FifoConfig::default()),
        };
        self.runtime.block_on(async {
            let device =
                FsDeviceBuilder::new(&self.flash).with_capacity(self.sizes.flash as usize).with_direct(true);
            // It gives up such a part at once: small ones, so that they are many.
            let engine = BlockEngineConfig::new(device.build().expect("its device")).with_block_size(1 << 20);
            let storage =
                memory.storage().with_io_engine_config(PsyncIoEngineConfig::new()).with_engine_config(engine);
            storage.build().await.expect("its cache")
        })
    }
}

impl Levels for Theirs {
    fn empty(&mut self) {
        if let Some(cache) = self.cache.take() {
            self.runtime.block_on(cache.close()).expect("close");
        }
        if self.flash.exists() {
            std::fs::remove_dir_all(&self.flash).expect("remove it");
        }
        self.cache = Some(self.open());
    }

    fn get(&mut self, block: u64) {
        let cache = self.cache.as_ref().expect("it is open");
        let found = self.runtime.block_on(async { cache.get(&block).await }).expect("an answer");
        if found.is_none() {
            let offset = block * BLOCK as u64 % (self.file.bytes() / BLOCK as u64 * BLOCK as u64);
            assert!(self.file.read_at(&mut self.buffer, offset).is_full());
            cache.insert(block, self.buffer.to_vec());
            self.fetched += 1;
        }
    }

    fn fetched(&self) -> u64 {
        self.fetched
    }

    fn settle(&mut self) {
        let cache = self.cache.as_ref().expect("it is open");
        self.runtime.block_on(cache.storage().wait());
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        if let Some(cache) = self.cache.take() {
            self.runtime.block_on(cache.close()).expect("close");
        }
        std::fs::remove_dir_all(&self.folder).expect("remove it");
        std::fs::remove_dir_all(&self.flash).expect("remove it");
    }
}
