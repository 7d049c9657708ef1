//! A session with PostgreSQL over its wire protocol: one blocking socket, one write and one read for a statement.
//!
//! The protocol's messages and logins are those of the crate `postgres-protocol`. The driver above it (`postgres`) runs each session on an
//! asynchronous runtime of its own, and took half as much processor time again as pgbench for the same transactions: a load must not be
//! limited by who makes it. `cargo x bench clients` holds this one against pgbench.

use super::{Kind, secure};
use crate::server::ServerError;
use crate::server::connection::{Connection, Parameter, StatementId};
use crate::server::lifeline;
use crate::server::url::{NO_TLS, Tls, TlsMode};
use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::IsNull;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::backend::{DataRowBody, ErrorResponseBody, Message};
use postgres_protocol::message::frontend;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use units::Nanos;

/// What is read at once.
const CHUNK: usize = 16 << 10;

/// A stream of bytes to the server.
enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
    Secure(Box<secure::Stream>),
}

impl Socket {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.write_all(bytes),
            Self::Tcp(stream) => stream.write_all(bytes),
            Self::Secure(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }

    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(bytes),
            Self::Tcp(stream) => stream.read(bytes),
            Self::Secure(stream) => stream.read(bytes),
        }
    }

    fn second(&self) -> io::Result<OwnedFd> {
        match self {
            Self::Unix(stream) => ::io::descriptor::second(stream),
            Self::Tcp(stream) => ::io::descriptor::second(stream),
            Self::Secure(stream) => ::io::descriptor::second(&stream.sock),
        }
    }
}

/// Who we are there.
pub(super) struct Login<'a> {
    pub(super) user: &'a str,
    pub(super) password: Option<&'a str>,
    pub(super) database: &'a str,
    pub(super) application: &'a str,
}

/// Why there is no session.
pub(super) enum Refusal {
    /// Nobody answers, or not as PostgreSQL does.
    Io(io::Error),
    /// The server's words.
    Said(ServerError),
    /// It asks for a password, and there is none.
    NoPassword,
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A session.
pub(super) struct Session {
    socket: Socket,
    /// What is sent next.
    out: BytesMut,
    /// What came and was not looked at yet.
    come: BytesMut,
    chunk: Box<[u8; CHUNK]>,
    /// Names of prepared statements, by number.
    statements: Vec<String>,
}

/// A session over the socket at `path`.
pub(super) fn over_socket(path: &Path, patience: Nanos, login: &Login<'_>) -> Result<Session, Refusal> {
    log_in(Socket::Unix(UnixStream::connect(path)?), login, patience)
}

/// A session over the network, encrypted as `tls` says. Who only prefers it goes on without where it does not come about.
pub(super) fn over_network(
    place: (&str, u16),
    tls: &Tls,
    patience: Nanos,
    login: &Login<'_>,
) -> Result<Session, Refusal> {
    let plain = |stream| log_in(Socket::Tcp(stream), login, patience);
    if tls.mode == TlsMode::Disable {
        return plain(connect(place, patience)?);
    }
    let may_do_without = tls.mode == TlsMode::Prefer;
    let stream = connect(place, patience)?;
    lifeline::set_patience(::io::descriptor::second(&stream)?, Some(patience))?;
    match secure::ask(stream, place.0, tls) {
        Ok(secure::Answer::Plain(stream)) if may_do_without => plain(stream),
        Ok(secure::Answer::Plain(_)) => Err(Refusal::Io(io::Error::new(io::ErrorKind::Unsupported, NO_TLS))),
        Ok(secure::Answer::Secure(stream)) => match log_in(Socket::Secure(stream), login, patience) {
            // Its rules may let this host in without TLS only.
            Err(Refusal::Said(ServerError::Refused { code, .. })) if may_do_without && code == "28000" => {
                plain(connect(place, patience)?)
            }
            session => session,
        },
        Err(error) if may_do_without && error.kind() == io::ErrorKind::InvalidData => {
            plain(connect(place, patience)?)
        }
        Err(error) => Err(error.into()),
    }
}

fn connect(place: (&str, u16), patience: Nanos) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "failed to lookup address");
    for address in place.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, patience.duration()) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn log_in(socket: Socket, login: &Login<'_>, patience: Nanos) -> Result<Session, Refusal> {
    lifeline::set_patience(socket.second()?, Some(patience))?;
    let (out, come, chunk) = (BytesMut::new(), BytesMut::new(), Box::new([0; CHUNK]));
    let mut session = Session { socket, out, come, chunk, statements: Vec::new() };
    let parameters = [
        ("client_encoding", "UTF8"),
        ("user", login.user),
        ("database", login.database),
        ("application_name", login.application),
    ];
    frontend::startup_message(parameters, &mut session.out)?;
    session.send()?;
    let mut scram: Option<ScramSha256> = None;
    let password = || login.password.ok_or(Refusal::NoPassword);
    loop {
        match session.next()? {
            Message::AuthenticationCleartextPassword => {
                frontend::password_message(password()?.as_bytes(), &mut session.out)?;
                session.send()?;
            }
            Message::AuthenticationMd5Password(body) => {
                let hash = md5_hash(login.user.as_bytes(), password()?.as_bytes(), body.salt());
                frontend::password_message(hash.as_bytes(), &mut session.out)?;
                session.send()?;
            }
            Message::AuthenticationSasl(_) => {
                let begun = ScramSha256::new(password()?.as_bytes(), ChannelBinding::unsupported());
                frontend::sasl_initial_response(SCRAM_SHA_256, begun.message(), &mut session.out)?;
                session.send()?;
                scram = Some(begun);
            }
            Message::AuthenticationSaslContinue(body) => {
                let Some(scram) = &mut scram else { return Err(unexpected().into()) };
                scram.update(body.data())?;
                frontend::sasl_response(scram.message(), &mut session.out)?;
                session.send()?;
            }
            Message::AuthenticationSaslFinal(body) => {
                let Some(scram) = &mut scram else { return Err(unexpected().into()) };
                scram.finish(body.data())?;
            }
            Message::ErrorResponse(body) => return Err(Refusal::Said(said(&body))),
            Message::ReadyForQuery(_) => {
                lifeline::set_patience(session.socket.second()?, None)?;
                return Ok(session);
            }
            Message::AuthenticationOk
            | Message::BackendKeyData(_)
            | Message::ParameterStatus(_)
            | Message::NoticeResponse(_) => {}
            _ => return Err(unexpected().into()),
        }
    }
}

fn unexpected() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "it asks for a way to log in that is not known here, or is no PostgreSQL",
    )
}

/// A connection that was lost.
fn lost(error: &io::Error) -> ServerError {
    let said = match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "no answer in time".to_owned(),
        _ => error.to_string(),
    };
    ServerError::said(Kind::Postgres, "08006", &said)
}

/// The server's words.
fn said(body: &ErrorResponseBody) -> ServerError {
    let (mut code, mut message, mut detail) = (String::new(), String::new(), String::new());
    let mut fields = body.fields();
    while let Ok(Some(field)) = fields.next() {
        let text = String::from_utf8_lossy(field.value_bytes()).into_owned();
        match field.type_() {
            b'C' => code = text,
            b'M' => message = text,
            b'D' => detail = format!(" ({text})"),
            _ => {}
        }
    }
    ServerError::said(Kind::Postgres, &code, &format!("{message}{detail}"))
}

/// The values of a row, as text.
fn values(body: &DataRowBody) -> io::Result<Vec<Option<String>>> {
    let buffer = body.buffer();
    body.ranges().map(|range| Ok(range.map(|at| String::from_utf8_lossy(&buffer[at]).into_owned()))).collect()
}

/// The number in the first column, if there is one.
fn number(body: &DataRowBody) -> io::Result<Option<i64>> {
    let first = body.ranges().next()?.flatten();
    Ok(first.and_then(|at| std::str::from_utf8(&body.buffer()[at]).ok()?.parse().ok()))
}

impl Session {
    fn send(&mut self) -> io::Result<()> {
        let sent = self.socket.write_all(&self.out);
        self.out.clear();
        sent
    }

    fn next(&mut self) -> io::Result<Message> {
        loop {
            if let Some(message) = Message::parse(&mut self.come)? {
                return Ok(message);
            }
            match self.socket.read(&mut *self.chunk) {
                Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "connection closed")),
                Ok(count) => self.come.extend_from_slice(&self.chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends what is prepared and reads all answers; `each` has the rows. The first error is told when the server is ready again.
    fn round(&mut self, each: &mut dyn FnMut(&DataRowBody) -> io::Result<()>) -> Result<(), ServerError> {
        if let Err(error) = self.send() {
            // A server that was stopped has said so before it closed.
            return Err(match self.next() {
                Ok(Message::ErrorResponse(body)) => said(&body),
                _ => lost(&error),
            });
        }
        let mut failed = None;
        loop {
            match self.next() {
                Ok(Message::DataRow(body)) => each(&body).map_err(|e| lost(&e))?,
                Ok(Message::ErrorResponse(body)) => {
                    let error = said(&body);
                    if matches!(error, ServerError::Gone { .. }) {
                        return Err(error);
                    }
                    failed = failed.or(Some(error));
                }
                Ok(Message::ReadyForQuery(_)) => return failed.map_or(Ok(()), Err),
                Ok(_) => {}
                // What it said before it went tells more.
                Err(error) => return Err(failed.unwrap_or_else(|| lost(&error))),
            }
        }
    }

    /// Something that cannot be put into a message: a NUL in a text.
    fn unsendable(&mut self, error: &dyn std::fmt::Display) -> ServerError {
        self.out.clear();
        ServerError::said(Kind::Postgres, "08P01", &error.to_string())
    }
}

impl Connection for Session {
    fn execute(&mut self, sql: &str) -> Result<(), ServerError> {
        frontend::query(sql, &mut self.out).map_err(|e| self.unsendable(&e))?;
        self.round(&mut |_| Ok(()))
    }

    fn rows(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, ServerError> {
        frontend::query(sql, &mut self.out).map_err(|e| self.unsendable(&e))?;
        let mut rows = Vec::new();
        self.round(&mut |body| {
            rows.push(values(body)?);
            Ok(())
        })?;
        Ok(rows)
    }

    fn prepare(&mut self, sql: &str) -> Result<StatementId, ServerError> {
        let name = format!("s{}", self.statements.len());
        frontend::parse(&name, sql, [], &mut self.out).map_err(|e| self.unsendable(&e))?;
        frontend::sync(&mut self.out);
        self.round(&mut |_| Ok(()))?;
        self.statements.push(name);
        Ok(StatementId(self.statements.len() - 1))
    }

    /// Values go and come as text: the server reads them as whatever type it expects.
    fn call(
        &mut self,
        statement: StatementId,
        parameters: &[Parameter<'_>],
    ) -> Result<Option<i64>, ServerError> {
        let name = &self.statements[statement.0];
        let bound = frontend::bind(
            "",
            name,
            [],
            parameters,
            |parameter, out| {
                match parameter {
                    Parameter::Integer(n) => out.extend_from_slice(n.to_string().as_bytes()),
                    Parameter::Text(text) => out.extend_from_slice(text.as_bytes()),
                }
                Ok(IsNull::No)
            },
            [],
            &mut self.out,
        );
        if bound.is_err() {
            return Err(self.unsendable(&"a value is too long for the protocol"));
        }
        frontend::execute("", 0, &mut self.out).map_err(|e| self.unsendable(&e))?;
        frontend::sync(&mut self.out);
        let mut first = None;
        let mut is_first = true;
        self.round(&mut |body| {
            if std::mem::take(&mut is_first) {
                first = number(body)?;
            }
            Ok(())
        })?;
        Ok(first)
    }

    fn socket(&self) -> io::Result<OwnedFd> {
        self.socket.second()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // One that does not hear it sees that the socket is closed.
        self.out.clear();
        frontend::terminate(&mut self.out);
        let _ = self.send();
    }
}
