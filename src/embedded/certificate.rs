//! The certificate of a node, and the CA that has issued it: made when the node is started, and
//! kept nowhere else.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ServerConfig, ServerConnection};
use std::error::Error;
use std::io;
use std::sync::Arc;

/// What a node shows to its clients, and what they know it by.
pub(super) struct Identity {
    config: Arc<ServerConfig>,
    /// The certificate of the CA.
    pub(super) root_pem: String,
}

impl Identity {
    /// A new CA, and a certificate for 127.0.0.1 and `localhost`.
    ///
    /// # Errors
    /// There are no random bytes.
    pub(super) fn make() -> Result<Identity, Box<dyn Error + Send + Sync>> {
        let mut root = CertificateParams::new(Vec::new())?;
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        root.distinguished_name
            .push(DnType::CommonName, "CA of an embedded node");
        let root_key = KeyPair::generate()?;
        let root_pem = root.self_signed(&root_key)?.pem();
        let key = KeyPair::generate()?;
        let names = ["127.0.0.1", "localhost"].map(str::to_owned);
        let certificate =
            CertificateParams::new(names)?.signed_by(&key, &Issuer::new(root, root_key))?;
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key.into())?;
        Ok(Identity {
            config: Arc::new(config),
            root_pem,
        })
    }

    /// Begins a session.
    pub(super) fn begin(&self) -> io::Result<ServerConnection> {
        ServerConnection::new(Arc::clone(&self.config)).map_err(io::Error::other)
    }
}
