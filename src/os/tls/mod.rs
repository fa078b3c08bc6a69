//! TLS, by rustls: the settings of a client, and the session of each connection. No other file
//! names rustls but those of the embedded node, which is a server.
//!
//! A session calls no socket by itself: it is given the stream to read from and to write to, and
//! goes as far as that goes without waiting. It drops without a word, as a plain connection does: a
//! copy in a child made by `fork` must not send an end (`close_notify`) that the parent did not
//! mean.
//!
//! No early data (0-RTT) is ever sent: a network could replay it, and a replayed `SET` is a lock
//! without a holder.

mod verifier;

use crate::fault::Cause;
use crate::fault::tls_error::TlsError;
use crate::os::stream::{Stream, would_block};
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{
    ClientConnection, ClientSessionMemoryCache, ClientSessionStore, ResolvesClientCert, Resumption,
};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::CertifiedKey;
use rustls::{
    AlertDescription, ClientConfig, HandshakeKind, InvalidMessage, RootCertStore, SignatureScheme,
};
use std::borrow::Cow;
use std::fmt;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use verifier::Verifier;

/// How often one call reads from the stream. The rest stays in the kernel, where poll sees it.
const MAX_READS: usize = 16;
/// Sessions that are kept of a node. A server issues one or two tickets, and each resumes one
/// connection.
const SESSIONS: usize = 8;

/// Why TLS cannot be set up with what was given. Never shows a key, nor the text of a certificate.
type Unusable = Cow<'static, str>;

/// The certificates that may have issued the nodes' certificates.
pub(crate) struct Roots(RootCertStore);

impl Roots {
    /// None yet.
    pub(crate) fn new() -> Roots {
        Roots(RootCertStore::empty())
    }

    /// Adds the certificates of a text in PEM.
    ///
    /// # Errors
    /// There are none, or one is malformed.
    pub(crate) fn add_pem(&mut self, pem: &[u8]) -> Result<(), Unusable> {
        for certificate in certificates(pem)? {
            self.0
                .add(certificate)
                .map_err(|_| "a certificate is malformed")?;
        }
        Ok(())
    }

    /// The system's roots.
    ///
    /// # Errors
    /// The system has none.
    #[cfg(feature = "tls-native-roots")]
    pub(crate) fn native() -> Result<Roots, Unusable> {
        let mut roots = RootCertStore::empty();
        // Among a system's certificates there may be some that nothing supports any more.
        let (usable, _) =
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        match usable {
            0 => {
                Err("the system has no root certificates (package ca-certificates); name others by Builder::tls".into())
            }
            _ => Ok(Roots(roots)),
        }
    }
}

/// What all connections of a client have in common.
pub(crate) struct TlsSettings {
    config: ClientConfig,
    verifier: Arc<Verifier>,
    identity: Option<Arc<CertifiedKey>>,
}

impl TlsSettings {
    /// With these roots and, for servers that require one, a client certificate and its private
    /// key, each in PEM.
    ///
    /// # Errors
    /// The certificate and the key cannot be used.
    pub(crate) fn new(
        roots: Roots,
        identity: Option<(&[u8], &[u8])>,
    ) -> Result<TlsSettings, Unusable> {
        // The provider that the program has installed, if any. None is installed here: that is the
        // program's to decide.
        let provider = CryptoProvider::get_default()
            .cloned()
            .unwrap_or_else(|| Arc::new(ring::default_provider()));
        let identity = match identity {
            None => None,
            Some((certificate, key)) => {
                let key = PrivateKeyDer::from_pem_slice(key).map_err(
                    |_| "no private key in PEM; decrypt an encrypted one first, by openssl pkey",
                )?;
                let identity = CertifiedKey::from_der(certificates(certificate)?, key, &provider)
                    .map_err(|error| match error {
                    rustls::Error::InconsistentKeys(_) => {
                        "the private key is not that of the certificate"
                    }
                    rustls::Error::InvalidCertificate(_) => "the certificate is malformed",
                    _ => "the private key is malformed, or of a kind that is not supported",
                })?;
                Some(Arc::new(identity))
            }
        };
        let verifier = Verifier::new(roots.0, Arc::clone(&provider))
            .map(Arc::new)
            .ok_or("no root certificate")?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(
                |_| "the installed CryptoProvider of rustls has no cipher suite for TLS 1.2 or 1.3",
            )?
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&verifier) as Arc<dyn ServerCertVerifier>)
            .with_no_client_auth();
        Ok(TlsSettings {
            config,
            verifier,
            identity,
        })
    }

    /// The settings for one node, whose certificate must be for this name or address.
    ///
    /// # Errors
    /// It is neither.
    pub(crate) fn target(&self, name: &str) -> Result<TlsTarget, Unusable> {
        let name = ServerName::try_from(name.to_owned())
            .map_err(|_| "a server name must be a host name or an IP address")?;
        let identity = Arc::new(Identity {
            key: self.identity.clone(),
            is_missed: AtomicBool::new(false),
        });
        let mut config = self.config.clone();
        config.client_auth_cert_resolver = Arc::clone(&identity) as Arc<dyn ResolvesClientCert>;
        // Of its own: nodes that differ by their ports alone have the same name, and no use for
        // each other's tickets.
        let sessions = Arc::new(ClientSessionMemoryCache::new(SESSIONS));
        config.resumption = Resumption::store(Arc::clone(&sessions) as Arc<dyn ClientSessionStore>);
        let verifier = Arc::clone(&self.verifier);
        Ok(TlsTarget {
            config: Arc::new(config),
            verifier,
            sessions,
            identity,
            name,
        })
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Unusable> {
    let certificates = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let certificates = certificates.map_err(|_| "malformed PEM")?;
    if certificates.is_empty() {
        return Err("no certificate in PEM (-----BEGIN CERTIFICATE-----)".into());
    }
    Ok(certificates)
}

/// One node: what its connections, for commands and for subscriptions, have in common.
#[derive(Clone)]
pub(crate) struct TlsTarget {
    config: Arc<ClientConfig>,
    verifier: Arc<Verifier>,
    sessions: Arc<ClientSessionMemoryCache>,
    identity: Arc<Identity>,
    name: ServerName<'static>,
}

impl TlsTarget {
    /// The same for a server whose certificate must be for this name or address. A text that is
    /// neither changes nothing.
    pub(crate) fn named(&self, name: &str) -> TlsTarget {
        let name = ServerName::try_from(name.to_owned());
        TlsTarget {
            name: name.unwrap_or_else(|_| self.name.clone()),
            ..self.clone()
        }
    }

    /// Begins a session. Its first flight waits to be sent.
    ///
    /// # Errors
    /// There are no random bytes.
    pub(crate) fn begin(self: &Arc<TlsTarget>) -> io::Result<TlsSession> {
        self.identity.is_missed.store(false, Ordering::Relaxed);
        let connection = ClientConnection::new(Arc::clone(&self.config), self.name.clone())
            .map_err(io::Error::other)?;
        let target = Arc::clone(self);
        Ok(TlsSession {
            connection,
            target,
            is_answered: false,
            is_verified: false,
            failure: None,
        })
    }

    /// Verifies the certificate that a resumed session began with. If it is not valid any more, no
    /// session is resumed: the node may have another one.
    fn verify_again(
        &self,
        certificates: Option<&[CertificateDer<'_>]>,
    ) -> Result<(), rustls::Error> {
        let [certificate, intermediates @ ..] = certificates.unwrap_or_default() else {
            return Err(rustls::Error::NoCertificatesPresented);
        };
        let now = self
            .config
            .time_provider
            .current_time()
            .ok_or(rustls::Error::FailedToGetCurrentTime)?;
        let verified =
            self.verifier
                .verify_server_cert(certificate, intermediates, &self.name, &[], now);
        if verified.is_err() {
            while self.sessions.take_tls13_ticket(&self.name).is_some() {}
            self.sessions.remove_tls12_session(&self.name);
        }
        verified.map(drop)
    }
}

/// The client certificate, and whether a server has asked in vain for one.
struct Identity {
    key: Option<Arc<CertifiedKey>>,
    is_missed: AtomicBool,
}

impl ResolvesClientCert for Identity {
    fn resolve(
        &self,
        _issuers: &[&[u8]],
        _schemes: &[SignatureScheme],
    ) -> Option<Arc<CertifiedKey>> {
        self.is_missed.store(self.key.is_none(), Ordering::Relaxed);
        self.key.clone()
    }

    fn has_certs(&self) -> bool {
        self.key.is_some()
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// TLS on one connection.
pub(crate) struct TlsSession {
    connection: ClientConnection,
    target: Arc<TlsTarget>,
    /// Whether the other side has sent anything.
    is_answered: bool,
    /// Whether the handshake is over, and the certificate has been verified if the session was
    /// resumed.
    is_verified: bool,
    /// What has ended the session. It shows when all that came before was read.
    failure: Option<Cause>,
}

impl TlsSession {
    /// Reads what is there; 0 bytes mean that the other side has ended the session.
    pub(crate) fn read(&mut self, stream: &Stream, buffer: &mut [u8]) -> io::Result<usize> {
        for _ in 0..MAX_READS {
            match (self.connection.reader().read(buffer), self.failure) {
                (Err(error), Some(cause)) if would_block(&error) => {
                    return Err(io::Error::other(cause));
                }
                (Err(error), None) if would_block(&error) => {}
                (read, _) => return read,
            }
            self.is_answered |= self.connection.read_tls(&mut Wire(stream))? > 0;
            let processed = self.connection.process_new_packets();
            let verified = processed.and_then(|_| self.verify_resumed());
            self.failure = verified.err().map(|error| self.cause_of(&error));
            // A flight of the handshake, or the alert that belongs to a failure. An error shows at
            // the next read.
            let _ = self.flush(stream);
        }
        Err(ErrorKind::WouldBlock.into())
    }

    /// Takes bytes, and sends what the socket takes. Takes nothing before the handshake is over,
    /// nor while earlier bytes are held back.
    pub(crate) fn write(&mut self, stream: &Stream, bytes: &[u8]) -> io::Result<usize> {
        self.flush(stream)?;
        if self.has_unsent() || !self.takes_bytes() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let taken = self.connection.writer().write(bytes)?;
        // What was taken counts as written, whatever becomes of it. An error shows at the next
        // flush or read.
        let _ = self.flush(stream);
        Ok(taken)
    }

    /// Sends what is held back, as far as the socket takes it.
    pub(crate) fn flush(&mut self, stream: &Stream) -> io::Result<()> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut Wire(stream)) {
                Err(error) if would_block(&error) => break,
                sent => sent?,
            };
        }
        Ok(())
    }

    /// Whether bytes are held back that the socket has not taken.
    pub(crate) fn has_unsent(&self) -> bool {
        self.connection.wants_write()
    }

    /// Whether there is something to be read that the socket does not show: bytes, the end or a
    /// failure.
    pub(crate) fn has_unread(&self) -> bool {
        // After the handshake, it wants nothing while there are bytes or the end to be read.
        let is_unread = !self.connection.is_handshaking() && !self.connection.wants_read();
        is_unread || self.failure.is_some()
    }

    /// Whether the other side has sent nothing yet.
    pub(crate) fn awaits_first_byte(&self) -> bool {
        !self.is_answered
    }

    /// Whether the handshake is over, and nothing has failed.
    pub(crate) fn takes_bytes(&self) -> bool {
        !self.connection.is_handshaking() && self.failure.is_none()
    }

    /// Verifies the certificate of a resumed session, before anything is sent.
    fn verify_resumed(&mut self) -> Result<(), rustls::Error> {
        if self.is_verified || self.connection.is_handshaking() {
            return Ok(());
        }
        self.is_verified = true;
        match self.connection.handshake_kind() {
            Some(HandshakeKind::Resumed) => self
                .target
                .verify_again(self.connection.peer_certificates()),
            _ => Ok(()),
        }
    }

    fn cause_of(&self, error: &rustls::Error) -> Cause {
        let is_missed = self.target.identity.is_missed.load(Ordering::Relaxed);
        match error {
            rustls::Error::InvalidCertificate(error) => Cause::Tls(certificate_error(error)),
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)
                if self.connection.is_handshaking() =>
            {
                Cause::NotTls
            }
            rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => {
                Cause::Tls(TlsError::ClientCertificateRequired)
            }
            // Before TLS 1.3 there is no alert of its own for it.
            rustls::Error::AlertReceived(AlertDescription::HandshakeFailure) if is_missed => {
                Cause::Tls(TlsError::ClientCertificateRequired)
            }
            rustls::Error::AlertReceived(alert) => Cause::Tls(TlsError::Alert(u8::from(*alert))),
            rustls::Error::PeerIncompatible(_) => Cause::Tls(TlsError::Incompatible),
            _ => Cause::Tls(TlsError::Misbehaved),
        }
    }
}

fn certificate_error(error: &rustls::CertificateError) -> TlsError {
    use rustls::CertificateError as Error;
    match error {
        Error::Expired | Error::ExpiredContext { .. } => TlsError::CertificateExpired,
        Error::NotValidYet | Error::NotValidYetContext { .. } => TlsError::CertificateNotYetValid,
        // A CA that was made anew often has its old name, and the signature of neither suits the
        // other.
        Error::BadSignature | Error::UnknownIssuer => TlsError::UnknownIssuer,
        Error::NotValidForName | Error::NotValidForNameContext { .. } => TlsError::WrongName,
        // It has no variant of its own, and its type belongs to another crate.
        Error::Other(other) if format!("{other:?}").contains("UnsupportedCertVersion") => {
            TlsError::CertificateVersion1
        }
        _ => TlsError::BadCertificate,
    }
}

/// A stream as rustls reads from it and writes to it.
struct Wire<'s>(&'s Stream);

impl Read for Wire<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Wire<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match pieces {
            [piece] => self.0.write(piece),
            pieces => self.0.write_vectored(pieces),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(all(test, feature = "embedded-tls"))]
mod tests;
