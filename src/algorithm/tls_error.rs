//! The ways in which TLS with a node can fail.

use std::fmt;

/// Why a node's certificate is not accepted. Nothing of the certificate itself is kept.
///
/// A certificate that is not valid yet becomes valid by itself. Every other one must be replaced, or the client be
/// given other roots or another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CertificateError {
    /// The certificate has expired, or one that it was issued by.
    Expired,
    /// The certificate is not valid yet. The clock of this machine may also be wrong.
    NotYetValid,
    /// Another reason: damaged, revoked, for another purpose, or with an algorithm that is not supported.
    Other,
    /// No root that this client trusts has issued it. One of the same name does not count.
    UnknownIssuer,
    /// The certificate is one of X.509 version 1, which names no hosts. `openssl x509 -req` issues such certificates
    /// without `-extfile`.
    Version1,
    /// The certificate is for other names or addresses than the one in the URL or in `Node::server_name`.
    WrongName,
}

/// Why TLS with a node failed, apart from its certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TlsError {
    /// The node has sent this alert, by its number in RFC 8446, section 6. 48, for example, says that the node does not
    /// know the issuer of the client certificate.
    Alert(u8),
    /// The node requires a client certificate, and none is given.
    ClientCertificateRequired,
    /// Client and node have no version, cipher suite or group in common.
    Incompatible,
    /// What the node has sent is not what TLS prescribes.
    Misbehaved,
    /// The node speaks TLS, and its URL does not begin with `rediss://`.
    Required,
}

impl CertificateError {
    /// Whether time does not cure it.
    pub(super) fn is_permanent(self) -> bool {
        self != CertificateError::NotYetValid
    }
}

impl TlsError {
    /// Whether time does not cure it: not where the node says that something failed inside of it.
    pub(super) fn is_permanent(self) -> bool {
        match self {
            TlsError::Alert(number) => alert(number).is_some_and(|(_, is_permanent)| is_permanent),
            TlsError::ClientCertificateRequired | TlsError::Incompatible | TlsError::Required => true,
            TlsError::Misbehaved => false,
        }
    }
}

/// What an alert says, and whether it says it again until client or node are configured anew.
fn alert(number: u8) -> Option<(&'static str, bool)> {
    Some(match number {
        40 => ("the server accepts none of the versions, ciphers or certificates offered", true),
        42 => ("the server refuses the client certificate: damaged", true),
        43 => ("the server refuses the client certificate: its kind is not supported", true),
        44 => ("the server refuses the client certificate: revoked", true),
        45 => ("the server refuses the client certificate: expired", true),
        46 => ("the server refuses the client certificate", true),
        48 => ("the server refuses the client certificate: unknown issuer", true),
        49 => ("the server denies access to this client certificate", true),
        70 => ("the server supports no common version of TLS", true),
        71 => ("the server requires ciphers that are stronger", true),
        80 => ("an internal error of the server", false),
        112 => ("the server does not know the name that it was asked for", true),
        _ => return None,
    })
}

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CertificateError::Expired => "expired",
            CertificateError::NotYetValid => "not valid yet; or the clock of this machine is wrong",
            CertificateError::Other => "damaged, revoked, or of a kind that is not supported",
            CertificateError::UnknownIssuer => "unknown issuer",
            CertificateError::Version1 => "X.509 version 1; issue one of version 3 with a SAN",
            CertificateError::WrongName => "issued for another name or address",
        })
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsError::Alert(number) => match alert(*number) {
                Some((text, _)) => write!(f, "{text} (alert {number})"),
                None => write!(f, "alert {number} of the server"),
            },
            TlsError::ClientCertificateRequired => f.write_str("the server requires a client certificate"),
            TlsError::Incompatible => f.write_str("no version or cipher in common with the server"),
            TlsError::Misbehaved => f.write_str("the server violates the protocol"),
            TlsError::Required => f.write_str("the port speaks TLS only, and the URL does not say rediss://"),
        }
    }
}

impl std::error::Error for CertificateError {}
impl std::error::Error for TlsError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_cures_what_is_not_valid_yet_and_what_failed_inside_the_server() {
        use CertificateError::*;
        let permanent = [Expired, Other, UnknownIssuer, Version1, WrongName];
        assert!(permanent.into_iter().all(CertificateError::is_permanent) && !NotYetValid.is_permanent());
        for (error, is_permanent) in [
            (TlsError::Alert(48), true),
            (TlsError::Alert(80), false),
            (TlsError::Alert(20), false),
            (TlsError::ClientCertificateRequired, true),
            (TlsError::Incompatible, true),
            (TlsError::Misbehaved, false),
            (TlsError::Required, true),
        ] {
            assert_eq!(error.is_permanent(), is_permanent, "{error}");
        }
    }

    #[test]
    fn an_alert_is_named_by_its_number() {
        assert_eq!(TlsError::Alert(80).to_string(), "an internal error of the server (alert 80)");
        assert_eq!(TlsError::Alert(20).to_string(), "alert 20 of the server");
    }
}
