//! How the certificate of a node is verified: by webpki, and once more for a session that is
//! resumed.
//!
//! A resumed session shows no certificate: rustls keeps the certificate of the first handshake, and
//! does not look at it again. So it is verified here, at the time of the connection.

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::sync::Arc;

/// Verifies by the roots of a client.
#[derive(Debug)]
pub(super) struct Verifier {
    webpki: Arc<WebPkiServerVerifier>,
    roots: Arc<RootCertStore>,
}

impl Verifier {
    /// None without roots.
    pub(super) fn new(roots: RootCertStore, provider: Arc<CryptoProvider>) -> Option<Verifier> {
        let roots = Arc::new(roots);
        let webpki = WebPkiServerVerifier::builder_with_provider(Arc::clone(&roots), provider)
            .build()
            .ok()?;
        Some(Verifier { webpki, roots })
    }

    /// Whether a certificate has issued itself, and is none of the roots. webpki looks for no
    /// issuer of a certificate that may issue others, as `openssl req -x509` makes them.
    fn is_unknown_root(&self, certificate: &CertificateDer<'_>) -> bool {
        let mut itself = RootCertStore::empty();
        if itself.add(certificate.clone().into_owned()).is_err() {
            return false;
        }
        itself.roots.iter().all(|itself| {
            let subject = itself.subject.as_ref();
            let der = certificate.as_ref();
            // The names of the subject and the issuer are the same: it is there twice.
            let is_its_own = !subject.is_empty()
                && der
                    .windows(subject.len())
                    .filter(|&part| part == subject)
                    .count()
                    > 1;
            is_its_own && !self.roots.roots.contains(itself)
        })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self
            .webpki
            .verify_server_cert(certificate, intermediates, name, ocsp, now);
        verified.map_err(|error| match &error {
            // It has no variant of its own, and its type belongs to another crate.
            Error::InvalidCertificate(CertificateError::Other(other))
                if format!("{other:?}").contains("CaUsedAsEndEntity")
                    && self.is_unknown_root(certificate) =>
            {
                CertificateError::UnknownIssuer.into()
            }
            _ => error,
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.webpki
            .verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.webpki
            .verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.webpki.supported_verify_schemes()
    }
}
