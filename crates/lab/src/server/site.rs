//! What workloads need of a server, whoever started it: a private one of ours ([`Server`]) or one that was there before ([`super::existing`]).

use super::{Connection, Connector, Kind, Server, ServerError, proof};
use crate::LabError;
use units::Bytes;

/// A server that answers.
pub trait Site {
    /// Which product.
    fn kind(&self) -> Kind;

    /// `15.20`, `10.11.19` ….
    fn version(&self) -> &str;

    /// What opens sessions.
    fn connector(&self) -> Connector;

    /// The same error, with what else is known.
    fn explain(&self, error: ServerError) -> ServerError;

    /// Its block.
    fn block(&self) -> Bytes;

    /// Flags of the files that it has open, as far as they can be seen; see [`proof::open_flags`].
    ///
    /// # Errors
    /// They are not what the I/O mode means.
    fn open_flags(&self) -> Result<String, LabError>;

    /// Ours, to be stopped and started and emptied; none where it is not.
    fn private(&mut self) -> Option<&mut Server>;

    /// A session, named `application` where the server shows such names.
    ///
    /// # Errors
    /// What the server says; that it is gone.
    fn connect(&self, application: &str) -> Result<Box<dyn Connection>, ServerError> {
        self.connector().connect(application).map_err(|e| self.explain(e))
    }
}

impl Site for Server {
    fn kind(&self) -> Kind {
        Server::kind(self)
    }

    fn version(&self) -> &str {
        Server::version(self)
    }

    fn connector(&self) -> Connector {
        Server::connector(self)
    }

    fn explain(&self, error: ServerError) -> ServerError {
        Server::explain(self, error)
    }

    fn block(&self) -> Bytes {
        match Server::kind(self) {
            Kind::Postgres => Bytes::kib(8),
            Kind::Mariadb => self.settings().block.unwrap_or(Bytes::kib(16)),
        }
    }

    fn open_flags(&self) -> Result<String, LabError> {
        proof::open_flags(self)
    }

    fn private(&mut self) -> Option<&mut Server> {
        Some(self)
    }
}
