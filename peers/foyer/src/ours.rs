//! The embedded database: its buffer cache and its flash cache.

use crate::{BLOCK, Levels, Places, Sizes};
use engine::{
    Background, Column, ColumnKind, Context, Environment, Instance, InstanceConfig, PageId, Shutdown,
    TableDef, Value,
};
use io::RealStorage;
use std::path::PathBuf;
use std::sync::Arc;
use units::{Nanos, Seed, clock};
use waits::SessionKind;

pub struct Ours {
    instance: Option<Instance>,
    context: Context,
    pages: Vec<PageId>,
    folder: PathBuf,
    flash: PathBuf,
}

impl Ours {
    /// A database with one table of `sizes.data`.
    pub fn make(places: Places<'_>, sizes: Sizes, policy: &str) -> Self {
        let folder = places.data.join("ours");
        std::fs::create_dir_all(&folder).expect("a folder");
        let flash = places.flash.join("ours.dat");
        let environment = Environment {
            storage: Arc::new(RealStorage),
            clock: io::clock(),
            background: Background::Threads,
            seed: Seed(1),
        };
        let mut config = InstanceConfig::new(folder.join("db"))
            .with("db_cache_size", &sizes.memory.to_string())
            .with("filesystemio_options", "setall")
            .with("db_flash_cache_file", &flash.display().to_string())
            .with("db_flash_cache_size", &sizes.flash.to_string())
            .with("db_flash_cache_policy", policy);
        config.data_bytes = sizes.data + (16 << 20);
        let instance = Instance::create(environment, config).expect("a database");
        let pages = fill(&instance, sizes.data);
        let context = instance.core.context(SessionKind::Foreground, "bench").expect("a context");
        Self { instance: Some(instance), context, pages, folder, flash }
    }

    /// Blocks of its table.
    pub fn blocks(&self) -> u64 {
        self.pages.len() as u64
    }

    fn instance(&self) -> &Instance {
        self.instance.as_ref().expect("until it is dropped")
    }
}

impl Levels for Ours {
    fn empty(&mut self) {
        let core = &*self.instance().core;
        core.cache.flush(core, &self.context).expect("empty the buffer cache");
        core.cache.flash().expect("it has one").flush();
    }

    fn get(&mut self, block: u64) {
        let core = &*self.instance().core;
        drop(core.cache.read(core, &self.context, self.pages[block as usize]).expect("a block"));
    }

    fn fetched(&self) -> u64 {
        let rows = self.instance().core.sysstat();
        rows.iter().find(|row| row.name == "physical reads").expect("a statistic").value
    }

    fn settle(&mut self) {
        clock::sleep(Nanos::millis(500));
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        if let Some(instance) = self.instance.take() {
            instance.shutdown(Shutdown::Abort).expect("end");
        }
        std::fs::remove_dir_all(&self.folder).expect("remove it");
        std::fs::remove_file(&self.flash).expect("remove it");
    }
}

fn fill(instance: &Instance, bytes: u64) -> Vec<PageId> {
    let mut session = instance.session("fill").expect("a session");
    let columns = vec![Column::new("id", ColumnKind::Integer), Column::new("text", ColumnKind::Text)];
    let table = session.create_table(&TableDef::new("t", columns)).expect("a table");
    let rows = (bytes / BLOCK as u64 * 4) as i64;
    let row = |n: i64| vec![Value::Integer(n), Value::Text("x".repeat(1_900))];
    for from in (0..rows).step_by(1_000) {
        let some: Vec<_> = (from..rows.min(from + 1_000)).map(row).collect();
        session.insert_many(&table, &mut some.into_iter()).expect("rows");
        session.commit().expect("a commit");
    }
    let mut scan = session.scan(&table).expect("a scan");
    let mut pages = Vec::new();
    while let Some((at, _)) = scan.next(&mut session).expect("a row") {
        pages.push(at.page);
    }
    pages.dedup();
    pages
}
