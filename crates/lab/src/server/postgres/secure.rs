//! A session's encryption: PostgreSQL is asked for TLS, and its certificate is held against what the user believes.

use crate::server::url::{Tls, TlsMode};
use postgres_protocol::message::frontend;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme, StreamOwned,
};
use std::fmt::Display;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

/// An encrypted stream of bytes.
pub(super) type Stream = StreamOwned<ClientConnection, TcpStream>;

/// What came of asking for it.
pub(super) enum Answer {
    /// It is there.
    Secure(Box<Stream>),
    /// The server has none, and goes on without.
    Plain(TcpStream),
}

/// Asks the server behind `stream`, named `host`, for TLS, and shakes hands.
///
/// # Errors
/// A lost connection; a certificate that is not believed; a file of ours that cannot be read.
pub(super) fn ask(mut stream: TcpStream, host: &str, tls: &Tls) -> io::Result<Answer> {
    let config = config(tls)?;
    let mut request = bytes::BytesMut::new();
    frontend::ssl_request(&mut request);
    stream.write_all(&request)?;
    let mut answer = [0];
    stream.read_exact(&mut answer)?;
    if answer != *b"S" {
        return Ok(Answer::Plain(stream));
    }
    let name = ServerName::try_from(host.to_owned()).map_err(invalid)?;
    let connection = ClientConnection::new(Arc::new(config), name).map_err(invalid)?;
    let mut secure = StreamOwned::new(connection, stream);
    while secure.conn.is_handshaking() {
        secure.conn.complete_io(&mut secure.sock)?;
    }
    Ok(Answer::Secure(Box::new(secure)))
}

fn invalid(error: impl Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

fn config(tls: &Tls) -> io::Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let trust = Arc::new(Trust::new(tls, Arc::clone(&provider))?);
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(invalid)?
        .dangerous()
        .with_custom_certificate_verifier(trust);
    let Some((certificate, key)) = &tls.identity else { return Ok(builder.with_no_client_auth()) };
    let key_der = PrivateKeyDer::from_pem_file(key).map_err(|error| unread(key, &error))?;
    builder.with_client_auth_cert(certificates(certificate)?, key_der).map_err(invalid)
}

/// All certificates in a file.
fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let read = || CertificateDer::pem_file_iter(path)?.collect::<Result<Vec<_>, pem::Error>>();
    match read() {
        Ok(all) if all.is_empty() => Err(unread(path, &"there is no certificate in it (PEM)")),
        Ok(all) => Ok(all),
        Err(error) => Err(unread(path, &error)),
    }
}

fn unread(path: &Path, why: &dyn Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{} was not read: {why}", path.display()))
}

/// Whom we believe to be the server.
#[derive(Debug)]
struct Trust {
    provider: Arc<CryptoProvider>,
    /// Those who sign; none: whoever answers is believed.
    authorities: Option<Arc<WebPkiServerVerifier>>,
    /// The certificates that were named themselves: what `openssl req -x509` makes signs itself, and is server and authority in one.
    named: Vec<CertificateDer<'static>>,
    checks_name: bool,
}

impl Trust {
    fn new(tls: &Tls, provider: Arc<CryptoProvider>) -> io::Result<Self> {
        let checks_name = tls.mode == TlsMode::VerifyFull;
        let Some(path) = tls.checked_root() else {
            return Ok(Self { provider, authorities: None, named: Vec::new(), checks_name });
        };
        let named = certificates(path)?;
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(named.iter().cloned());
        let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let authorities = authorities.build().map_err(|error| unread(path, &error))?;
        Ok(Self { provider, authorities: Some(authorities), named, checks_name })
    }
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(authorities) = &self.authorities else { return Ok(ServerCertVerified::assertion()) };
        if self.named.contains(end_entity) {
            if self.checks_name {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
            }
            return Ok(ServerCertVerified::assertion());
        }
        match authorities.verify_server_cert(end_entity, intermediates, server_name, ocsp, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.checks_name => Ok(ServerCertVerified::assertion()),
            result => result,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
