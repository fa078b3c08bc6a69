//! What `rediss://` nodes are trusted by, and what this client shows them.

use crate::os::tls::{Roots, TlsSettings};
use std::fmt;
use std::path::PathBuf;

/// TLS for nodes whose URLs begin with `rediss://`: the roots that their certificates are checked against, and a
/// certificate of the client's own for servers that require one. Given to [`Builder::tls`](crate::Builder::tls).
///
/// Certificates are always checked: the chain, the time, and that they are for the host name or IP address of the URL
/// or of [`Node::server_name`](crate::Node::server_name). Nothing switches that off. The [page about
/// TLS](crate::docs::tls) says how to issue certificates and set servers up.
///
/// Without roots, those of the system are used if the feature `tls-native-roots` is on; otherwise building the client
/// fails. Nothing is read or checked before that, nor if no URL begins with `rediss://`.
///
/// ```no_run
/// use quorumlock::{Redlock, Tls};
///
/// let redlock = Redlock::builder()
///     .nodes(["rediss://10.0.0.1", "rediss://10.0.0.2", "rediss://10.0.0.3"])
///     .tls(Tls::new().roots_file("/etc/redis/ca.crt"))
///     .build()?;
/// # Ok::<(), quorumlock::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Tls {
    roots: Vec<RootsFrom>,
    /// A certificate with its chain, and its private key.
    identity: Option<(Vec<u8>, Vec<u8>)>,
}

/// Where roots come from.
#[derive(Clone)]
enum RootsFrom {
    File(PathBuf),
    Pem(Vec<u8>),
}

impl Tls {
    /// Neither roots nor a client certificate.
    pub fn new() -> Tls {
        Tls::default()
    }

    /// Adds roots: certificates in PEM, one or more.
    #[must_use]
    pub fn roots_pem(mut self, pem: impl Into<Vec<u8>>) -> Tls {
        self.roots.push(RootsFrom::Pem(pem.into()));
        self
    }

    /// Adds the roots of a file, in PEM. It is read when the client is built, and not again.
    #[must_use]
    pub fn roots_file(mut self, path: impl Into<PathBuf>) -> Tls {
        self.roots.push(RootsFrom::File(path.into()));
        self
    }

    /// A client certificate, with those that lead from it to a root, and its private key, each in PEM. For servers with
    /// `tls-auth-clients yes`, which is the default of Redis and Valkey. Default: none.
    ///
    /// The key must not be encrypted. Neither appears in any error or `Debug` output.
    #[must_use]
    pub fn identity_pem(mut self, certificate: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Tls {
        self.identity = Some((certificate.into(), key.into()));
        self
    }

    /// What all connections have in common.
    ///
    /// # Errors
    /// Why not, in words.
    pub(crate) fn settings(&self) -> Result<TlsSettings, String> {
        let roots = self.load_roots()?;
        let identity = self.identity.as_ref().map(|(certificate, key)| (certificate.as_slice(), key.as_slice()));
        TlsSettings::new(roots, identity).map_err(|error| format!("tls: identity_pem: {error}"))
    }

    fn load_roots(&self) -> Result<Roots, String> {
        if self.roots.is_empty() {
            return native_roots();
        }
        let mut roots = Roots::new();
        for from in &self.roots {
            match from {
                RootsFrom::File(path) => {
                    roots.add_file(path).map_err(|error| format!("tls: roots_file {}: {error}", path.display()))?;
                }
                RootsFrom::Pem(pem) => roots.add_pem(pem).map_err(|error| format!("tls: roots_pem: {error}"))?,
            }
        }
        Ok(roots)
    }
}

#[cfg(feature = "tls-native-roots")]
fn native_roots() -> Result<Roots, String> {
    Roots::native().map_err(|error| format!("tls: {error}"))
}

#[cfg(not(feature = "tls-native-roots"))]
fn native_roots() -> Result<Roots, String> {
    Err("rediss:// needs root certificates: name them by Builder::tls, as Tls::new().roots_file(path), or use those of \
         the system by the feature tls-native-roots"
        .into())
}

/// Shows no certificate and no key.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("roots", &self.roots.len()).field("identity", &self.identity.is_some()).finish()
    }
}
