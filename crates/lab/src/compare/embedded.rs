//! The embedded database in a comparison: made once, opened under each configuration.

use super::database::{Filled, Kind, ORDERS, cache};
use super::visit::Workload;
use crate::LabError;
use crate::database::drive::{Performance, Terms};
use crate::database::evidence::Observer;
use crate::database::interval::Moment;
use crate::database::open::OpenDatabase;
use crate::database::order_entry::{self, Think};
use crate::database::random_read::{self, Rows, Shape};
use crate::database::scan::{self, Scanned, Way};
use crate::database::{Database, Flash, Places, Sizes, commit, inconsistent, segment_bytes, source};
use crate::export::{self, Export, is_export};
use crate::factor::Setup;
use crate::server::sampler::Sampler;
use crate::stage::Proof;
use crate::verify::{self, Verification};
use engine::{AlterSystem, EngineError, Instance, Session, Shutdown};
use host::counters::{Thread, Watch};
use io::{Access, File};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Bytes, Nanos, Seed};

/// How often buffers are looked at, where that is wanted: a pass takes a second or two.
const LOOK_EVERY: Nanos = Nanos::millis(50);

/// A database with its tables.
pub struct Embedded {
    database: Database,
    /// The file of USERS.
    data_file: PathBuf,
    /// Whether the table of rows to read is there.
    reads: bool,
    /// The file of the flash cache, where one is to be.
    flash_file: PathBuf,
}

impl Embedded {
    /// Bytes of its files under `setup` for `data` of each table that is read, and as much growth as a comparison plans.
    pub fn sizes(data: Bytes, setup: &Setup) -> Sizes {
        let quarter = Bytes((data.0 / 4).clamp(16 << 20, 64 << 20));
        let first = Bytes(data.0 + data.0 / 2);
        Sizes {
            block: setup.block,
            cache: cache(data, setup),
            data: first,
            undo: quarter,
            redo: setup.redo.unwrap_or(quarter),
            redo_groups: 3,
            flash: setup.flash().map_or(Bytes(0), |_| setup.flash_size.unwrap_or(first)),
        }
    }

    /// Makes the database for `setup` and fills it with what `workloads` need.
    ///
    /// # Errors
    /// What the engine says.
    pub fn create(
        places: Places,
        data: Bytes,
        setup: &Setup,
        workloads: &[Workload],
        verify: bool,
        seed: Seed,
        cancel: &AtomicBool,
    ) -> Result<Filled, LabError> {
        let (data_file, flash_file) = (places.data_file(), places.flash_file());
        let database = Database::create(places, &Self::sizes(data, setup), &[], seed)?.verifying(verify);
        let instance = database.open(&setup.configuration())?;
        let mut session = instance.session("prepare")?;
        let wanted = |of: fn(Workload) -> bool| workloads.iter().any(|w| of(*w));
        if wanted(Workload::reads_rows) {
            random_read::prepare(&mut session, data.0 / setup.block.0, setup.block, seed, cancel)?;
        }
        if workloads.contains(&Workload::Mixed) {
            order_entry::prepare(&mut session, ORDERS, seed, cancel)?;
        }
        let scanned = if wanted(Workload::scans) {
            Some(scan::prepare(&mut session, data.0, cache(data, setup), seed, cancel)?)
        } else if wanted(Workload::passes) {
            Some(scan::prepare_large(&mut session, data.0, seed, cancel)?)
        } else {
            None
        };
        drop(session);
        let seen = verify::shut_down(instance, &mut |_, _| !cancel.load(Ordering::Relaxed))?;
        let reads = wanted(Workload::reads_rows);
        let embedded = Self { database, data_file: data_file.clone(), reads, flash_file };
        let database = Kind::Embedded(embedded);
        Ok(Filled { database, data_file, data_bytes: data.0, scanned, seed, seen })
    }

    /// Opens the database, made for `data` of each table, as `setup` says.
    ///
    /// # Errors
    /// What the engine says.
    pub(super) fn open(&self, data: Bytes, setup: &Setup) -> Result<OpenEmbedded<'_>, LabError> {
        let writers = setup.writers.map(|n| ("db_writer_processes".to_owned(), n.to_string()));
        let cache = setup.cache.map(|bytes| ("db_cache_size".to_owned(), bytes.0.to_string()));
        let own = setup.parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let flash = setup.flash().map(|_| Flash {
            file: self.flash_file.clone(),
            bytes: Self::sizes(data, setup).flash,
            policy: setup.flash_policy,
        });
        let flash_parameters = flash.iter().flat_map(Flash::parameters);
        let parameters: Vec<_> =
            writers.into_iter().chain(cache).chain(flash_parameters).chain(own).collect();
        let mounted = setup.nfs.map(|version| Export::again(&self.data_file, version)).transpose()?;
        let instance = match self.database.open_with(&setup.configuration(), &parameters) {
            Err(LabError::Engine(EngineError::FlashCache(why))) => return Err(LabError::Flash(why)),
            opened => opened?,
        };
        let mut session = instance.session("compare")?;
        // What another configuration left in it is not this one's.
        session.alter_system(&AlterSystem::FlushFlashCache)?;
        let rows = self.reads.then(|| random_read::open(&mut session)).transpose()?;
        Ok(OpenEmbedded { embedded: self, instance, session, rows, flash, _mounted: mounted })
    }
}

/// It is open.
pub struct OpenEmbedded<'v> {
    embedded: &'v Embedded,
    instance: Instance,
    session: Session,
    rows: Option<Rows>,
    /// The flash cache that was asked for.
    flash: Option<Flash>,
    /// The export in the version that was asked for; last, so that it outlives the database.
    _mounted: Option<Export>,
}

impl OpenEmbedded<'_> {
    /// The rows to read; a workload that reads them was announced when the database was made.
    fn table(&self) -> Result<&Rows, LabError> {
        self.rows.as_ref().ok_or_else(|| inconsistent("random-read", "the table was not made".into()))
    }
}

impl OpenDatabase for OpenEmbedded<'_> {
    fn read(&mut self, shape: &Shape, terms: Terms<'_>) -> Result<Performance, LabError> {
        random_read::run(&self.instance, self.table()?, shape, terms)
    }

    fn commit(&mut self, sessions: u32, terms: Terms<'_>) -> Result<Performance, LabError> {
        commit::run(&self.instance, sessions, terms)
    }

    fn order_entry(
        &mut self,
        sessions: u32,
        think: Think,
        audited: bool,
        terms: Terms<'_>,
    ) -> Result<Performance, LabError> {
        order_entry::run(&self.instance, sessions, think, audited, terms)
    }

    fn rows(&self) -> Result<u64, LabError> {
        Ok(self.table()?.count())
    }

    fn touch(&mut self, count: u64) -> Result<(), LabError> {
        let rows = self.table()?.clone();
        (0..count).try_for_each(|id| rows.read(&mut self.session, id))
    }

    fn create_source(
        &mut self,
        table: &str,
        rows: u64,
        seed: Seed,
        cancel: &AtomicBool,
    ) -> Result<(), LabError> {
        source::create(&mut self.session, table, rows, seed, cancel)
    }

    fn double(&mut self, table: &str) -> Result<(), LabError> {
        let table = self.session.table(table)?;
        let mut scan = self.session.scan(&table)?;
        self.session.insert_select(&table, &mut scan)?;
        drop(scan);
        Ok(self.session.commit()?)
    }

    fn count(&mut self, table: &str) -> Result<u64, LabError> {
        let table = self.session.table(table)?;
        Ok(self.session.count(&table)?)
    }

    fn table_bytes(&mut self, table: &str) -> Result<u64, LabError> {
        let table = self.session.table(table)?;
        segment_bytes(&mut self.session, &table)
    }

    fn drop_table(&mut self, table: &str) -> Result<(), LabError> {
        if self.session.tables().iter().any(|known| known.name == table) {
            self.session.drop_table(table)?;
        }
        Ok(())
    }

    fn scan(&mut self, way: Way, rows: scan::Rows, cancel: &AtomicBool) -> Result<Scanned, LabError> {
        scan::run(&mut self.session, way, rows, cancel)
    }

    fn empty_caches(&mut self, _: &AtomicBool) -> Result<(), LabError> {
        self.session.alter_system(&AlterSystem::Checkpoint)?;
        self.session.alter_system(&AlterSystem::FlushBufferCache)?;
        self.session.alter_system(&AlterSystem::FlushFlashCache)?;
        if is_export(&self.embedded.data_file) {
            return Ok(());
        }
        let plain = Access { read: true, write: false, direct: false, dsync: false };
        for file in self.instance.datafile() {
            File::open(&file.name, plain)?.drop_cache()?;
        }
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<(), LabError> {
        self.session.alter_system(&AlterSystem::Checkpoint)?;
        Ok(())
    }

    fn cache(&self) -> (u64, u64) {
        (self.instance.core.cache.frame_count() as u64, self.instance.core.files.block_bytes() as u64)
    }

    fn moment(&mut self, watch: &Watch) -> Moment {
        Moment::of(&self.instance, &[Thread::this()], watch)
    }

    fn observe(&self) -> Option<Observer> {
        Some(Observer::every(&self.instance, LOOK_EVERY))
    }

    fn sample(&self) -> Result<Option<Sampler>, LabError> {
        Ok(None)
    }

    fn flags(&mut self) -> Result<String, LabError> {
        // A flash cache that was switched off meanwhile spoils the trial.
        self.proof()?;
        let name = &self.embedded.data_file;
        if let Some(version) = export::version(name) {
            return Ok(format!(
                "{} by our own client, past every cache of this machine as with O_DIRECT",
                version.title()
            ));
        }
        let open = self.instance.core.files.all().into_iter().find(|file| file.path == *name);
        let file =
            open.and_then(|file| file.disk().ok()?.as_any()).and_then(|any| any.downcast::<File>().ok());
        match file {
            Some(file) => Ok(file.flags_in_force()?.text),
            None => Ok(String::new()),
        }
    }

    /// The flash cache, as the database shows it. Other parameters are ours; what they do is proven by the flags of its files.
    fn proof(&mut self) -> Result<Vec<Proof>, LabError> {
        self.flash.iter().map(|flash| flash.proof(&self.instance)).collect()
    }

    fn shut_down(self: Box<Self>, cancel: &AtomicBool) -> Result<Option<Verification>, LabError> {
        let Self { instance, session, _mounted, .. } = *self;
        drop(session);
        verify::shut_down(instance, &mut |_, _| !cancel.load(Ordering::Relaxed))
    }

    fn abandon(self: Box<Self>) {
        let Self { instance, session, _mounted, .. } = *self;
        session.shutdown_abort();
        drop(session);
        // The error that led here is the one to tell.
        let _ = instance.shutdown(Shutdown::Abort);
    }
}
