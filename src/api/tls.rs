//! What `rediss://` nodes are trusted by, and what this client shows them.

use crate::os::tls::{Roots, TlsSettings};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{fmt, fs};

/// TLS for nodes whose URLs begin with `rediss://`: the roots that their certificates are checked
/// against, and a certificate of the client's own for servers that require one. Given to
/// [`Builder::tls`](crate::Builder::tls).
///
/// Files are looked at once a second: where one has changed, also by a symbolic link, its content
/// is used from the next handshake on. Files that cannot be used then, or do not belong together,
/// change nothing, and are an [event](crate::event::Event::CredentialsFailed).
///
/// Certificates are always checked: the chain, the time, and that they are for the host name or IP
/// address of the URL or of its parameter [`server_name`](crate::Builder::node). Nothing switches
/// that off. The [page about TLS](crate::docs::tls) describes how to issue certificates and set
/// servers up.
///
/// Without roots, the system's roots are used if the feature `tls-native-roots` is on; otherwise
/// building the client fails. Nothing is read or checked before that, nor if no URL begins with
/// `rediss://`.
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
#[must_use]
pub struct Tls {
    roots: Vec<From>,
    /// The client's, with its chain.
    certificate: Option<From>,
    key: Option<From>,
}

/// Where something in PEM comes from.
#[derive(Clone)]
enum From {
    File(PathBuf),
    Pem(Vec<u8>),
}

impl Tls {
    /// Neither roots nor a client certificate.
    pub fn new() -> Tls {
        Tls::default()
    }

    /// Adds roots: certificates in PEM, one or more.
    pub fn roots_pem(mut self, pem: impl Into<Vec<u8>>) -> Tls {
        self.roots.push(From::Pem(pem.into()));
        self
    }

    /// Adds the roots of a file, in PEM. It is read when the client is built, and when it changes.
    pub fn roots_file(mut self, path: impl Into<PathBuf>) -> Tls {
        self.roots.push(From::File(path.into()));
        self
    }

    /// A client certificate, with those that lead from it to a root, and its private key, each in
    /// PEM. For servers with `tls-auth-clients yes`, which is the default of Redis and Valkey.
    /// Default: none.
    ///
    /// The key must not be encrypted. Neither appears in any error or `Debug` output.
    pub fn identity_pem(mut self, certificate: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Tls {
        self.certificate = Some(From::Pem(certificate.into()));
        self.key = Some(From::Pem(key.into()));
        self
    }

    /// [`identity_pem`](Tls::identity_pem) of two files. They are read when the client is built,
    /// and when one changes.
    pub fn identity_file(self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Tls {
        self.certificate_file(certificate.into())
            .key_file(key.into())
    }

    /// Half of an [`identity_file`](Tls::identity_file).
    pub(crate) fn certificate_file(mut self, path: PathBuf) -> Tls {
        self.certificate = Some(From::File(path));
        self
    }

    /// The other half of it.
    pub(crate) fn key_file(mut self, path: PathBuf) -> Tls {
        self.key = Some(From::File(path));
        self
    }

    /// What shows that a file has changed. None where nothing is in files.
    pub(crate) fn stamp(&self) -> Option<Vec<Option<Stamp>>> {
        let all = self.roots.iter().chain(&self.certificate).chain(&self.key);
        let stamps: Vec<_> = all
            .filter_map(|from| match from {
                From::File(path) => Some(path),
                From::Pem(_) => None,
            })
            .map(|path| {
                let data = fs::metadata(path).ok()?;
                Some(Stamp {
                    written: data.modified().ok()?,
                    length: data.len(),
                    place: place(&data),
                })
            })
            .collect();
        (!stamps.is_empty()).then_some(stamps)
    }

    /// Whether there is a certificate without a key, or a key without a certificate.
    pub(crate) fn has_half_an_identity(&self) -> bool {
        self.certificate.is_some() != self.key.is_some()
    }

    /// What all connections have in common.
    ///
    /// # Errors
    /// Why not, in words.
    pub(crate) fn settings(&self) -> Result<TlsSettings, String> {
        if self.has_half_an_identity() {
            return Err("tls: a certificate and its key are set together or not at all".to_owned());
        }
        let roots = self.load_roots()?;
        let identity = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => Some((certificate.read()?, key.read()?)),
            _ => None,
        };
        let identity = identity
            .as_ref()
            .map(|(certificate, key)| (certificate.as_ref(), key.as_ref()));
        TlsSettings::new(roots, identity).map_err(|error| format!("tls: identity: {error}"))
    }

    fn load_roots(&self) -> Result<Roots, String> {
        if self.roots.is_empty() {
            return native_roots();
        }
        let mut roots = Roots::new();
        for from in &self.roots {
            match from {
                From::File(path) => roots
                    .add_pem(&from.read()?)
                    .map_err(|error| in_file(path, error))?,
                From::Pem(pem) => roots
                    .add_pem(pem)
                    .map_err(|error| format!("tls: roots_pem: {error}"))?,
            }
        }
        Ok(roots)
    }
}

/// What distinguishes a file from the one that was there before.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    written: SystemTime,
    length: u64,
    place: (u64, u64),
}

/// Where the content of a file is: a link may lead to another one of the same time and length.
#[cfg(unix)]
fn place(data: &fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (data.dev(), data.ino())
}

#[cfg(not(unix))]
fn place(_: &fs::Metadata) -> (u64, u64) {
    (0, 0)
}

impl From {
    fn read(&self) -> Result<Cow<'_, [u8]>, String> {
        match self {
            From::File(path) => Ok(fs::read(path).map_err(|error| in_file(path, error))?.into()),
            From::Pem(pem) => Ok(pem.into()),
        }
    }
}

fn in_file(path: &Path, error: impl fmt::Display) -> String {
    format!("tls: {}: {error}", path.display())
}

#[cfg(feature = "tls-native-roots")]
fn native_roots() -> Result<Roots, String> {
    Roots::native().map_err(|error| format!("tls: {error}"))
}

#[cfg(not(feature = "tls-native-roots"))]
fn native_roots() -> Result<Roots, String> {
    Err("rediss:// needs root certificates: name a file of them by Tls::roots_file or the variable CACERT, or use \
         those of the system by the feature tls-native-roots"
        .into())
}

/// Shows no certificate and no key.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("roots", &self.roots.len())
            .field("identity", &self.certificate.is_some())
            .finish()
    }
}
