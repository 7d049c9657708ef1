//! Opens sessions with a server, private or not; all of them hang on one [`Lifeline`].

use super::lifeline::Lifeline;
use super::{Connection, Kind, ServerError, existing, mariadb, postgres, url};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Opens sessions with a server.
#[derive(Clone, Debug)]
pub struct Connector {
    kind: Kind,
    way: Way,
    lifeline: Arc<Lifeline>,
}

#[derive(Clone, Debug)]
enum Way {
    /// The folder of a private server.
    Private(PathBuf),
    /// A server that was there before, and our schema in it.
    Existing(Arc<url::Address>, String),
}

impl Connector {
    /// To a private server in `folder`.
    pub(super) fn private(kind: Kind, folder: &Path, lifeline: &Arc<Lifeline>) -> Self {
        Self { kind, way: Way::Private(folder.to_owned()), lifeline: lifeline.clone() }
    }

    /// To a server that was there before; sessions are in `schema`.
    pub(super) fn existing(address: Arc<url::Address>, schema: String, lifeline: &Arc<Lifeline>) -> Self {
        Self { kind: address.kind, way: Way::Existing(address, schema), lifeline: lifeline.clone() }
    }

    /// Whose.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// A session, named `application` where the server shows such names.
    ///
    /// # Errors
    /// What the server says; that it is gone.
    pub fn connect(&self, application: &str) -> Result<Box<dyn Connection>, ServerError> {
        if self.lifeline.hang().is_some() {
            return Err(ServerError::gone(self.kind, "it answers nobody"));
        }
        let patience = self.lifeline.patience();
        let session = match (&self.way, self.kind) {
            (Way::Existing(address, schema), _) => existing::connect(address, schema, application),
            (Way::Private(folder), Kind::Postgres) => postgres::connect(folder, application, patience),
            (Way::Private(_), Kind::Mariadb) => mariadb::connect(&self.socket(), patience),
        };
        Ok(self.lifeline.hold(session?))
    }

    /// Where a private one listens; nothing for one that was there before.
    pub fn socket(&self) -> PathBuf {
        match (&self.way, self.kind) {
            (Way::Existing(..), _) => PathBuf::new(),
            (Way::Private(folder), Kind::Postgres) => folder.join(".s.PGSQL.5432"),
            (Way::Private(folder), Kind::Mariadb) => folder.join(mariadb::SOCKET),
        }
    }
}
