//! A real server in a comparison: made once in its places, started under each configuration.

use super::database::{Filled, Kind, ORDERS, cache};
use super::embedded::Embedded;
use super::ground::Contents;
use super::visit::Workload;
use crate::LabError;
use crate::bench::Bench;
use crate::control::Control;
use crate::database::scan::Rows;
use crate::database::{Places, Sizes};
use crate::factor::Setup;
use crate::server::cases::{order_entry, random_read, scan};
use crate::server::open::OpenServer;
use crate::server::{self, Server, Settings};
use std::cell::{RefCell, RefMut};
use std::sync::atomic::AtomicBool;
use units::Bytes;

/// What a server has on disk before anybody fills it: its catalog, first redo, undo.
const SYSTEM_BYTES: u64 = 160 << 20;
/// PostgreSQL's limit of redo is soft, and MariaDB counts by its whole size.
const REDO_GROUPS: u32 = 4;

/// A server with its tables, stopped.
pub struct Served {
    server: RefCell<Server>,
    /// Rows of the table of rows to read; none where it was not made.
    rows: Option<u64>,
}

impl Served {
    /// Bytes of its files under `setup` for `data` of each table that is read.
    pub fn sizes(data: Bytes, setup: &Setup) -> Sizes {
        let sizes = Embedded::sizes(data, setup);
        Sizes { undo: Bytes(sizes.undo.0 + SYSTEM_BYTES), redo_groups: REDO_GROUPS, ..sizes }
    }

    /// Makes the server for `setup` and fills it with what `workloads` need.
    ///
    /// # Errors
    /// What the server says.
    pub fn create(
        kind: server::Kind,
        contents: &Contents<'_>,
        places: &Places,
        setup: &Setup,
        bench: &mut Bench,
        control: &Control<'_>,
    ) -> Result<Filled, LabError> {
        let (data, cancel, named) = (contents.data, control.cancel, contents.programs.of(kind));
        let settings = Settings::of(kind, setup, &Self::sizes(data, setup));
        let at = (places.directory.as_path(), &places.placement);
        let mut server = Server::create(kind, named, at, &settings, bench.journal(), cancel)?;
        server.set_patience(contents.patience);
        let seed = bench.seed.part(3);
        let filled = Self::fill(&mut server, contents, setup, cancel);
        match filled {
            Ok((rows, scanned)) => {
                let data_file = server.data();
                let served = Self { server: RefCell::new(server), rows };
                let database = Kind::Served(served);
                Ok(Filled { database, data_file, data_bytes: data.0, scanned, seed, seen: None })
            }
            Err(error) => {
                let error = match error {
                    LabError::Server(error) => server.explain(error).into(),
                    other => other,
                };
                // Before the stage that it stands on is struck. The error that led here is the one to tell.
                let _ = server.remove(bench.journal());
                Err(error)
            }
        }
    }

    fn fill(
        server: &mut Server,
        contents: &Contents<'_>,
        setup: &Setup,
        cancel: &AtomicBool,
    ) -> Result<(Option<u64>, Option<Rows>), LabError> {
        let (data, workloads) = (contents.data, contents.workloads);
        server.start(cancel)?;
        let wanted = |of: fn(Workload) -> bool| workloads.iter().any(|w| of(*w));
        let rows = wanted(Workload::reads_rows).then(|| random_read::prepare(server, data.0)).transpose()?;
        if workloads.contains(&Workload::Mixed) {
            order_entry::prepare(server, ORDERS, cancel)?;
        }
        let scanned =
            wanted(Workload::scans).then(|| scan::prepare(server, data.0, cache(data, setup))).transpose()?;
        server.stop()?;
        Ok((rows, scanned))
    }

    /// Starts it as `setup` says.
    ///
    /// # Errors
    /// What the server says.
    pub(super) fn open(
        &self,
        setup: &Setup,
        data_bytes: u64,
        cancel: &AtomicBool,
    ) -> Result<OpenServer<RefMut<'_, Server>>, LabError> {
        let mut server = self.server.borrow_mut();
        let settings = Settings::of(server.kind(), setup, &Self::sizes(Bytes(data_bytes), setup));
        server.restart(&settings, cancel)?;
        OpenServer::new(server, self.rows, ORDERS)
    }

    /// Ends it and removes its files, so that what it stands on can be taken down.
    ///
    /// # Errors
    /// What could not be undone; it stays in the journal.
    pub fn remove(self, bench: &mut Bench) -> Result<(), LabError> {
        self.server.into_inner().remove(bench.journal())
    }
}
