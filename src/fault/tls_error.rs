//! The ways in which TLS with a node can fail.

use std::fmt;

/// Why TLS with a node failed. Nothing of a certificate itself is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TlsError {
    /// The node has sent this alert, by its number in RFC 8446, section 6. 48, for example, means
    /// that the node does not know the issuer of the client certificate.
    Alert(u8),
    /// The node's certificate is damaged, revoked, for another purpose, or has an algorithm that is
    /// not supported.
    BadCertificate,
    /// The node's certificate has expired, or one that it was issued by.
    CertificateExpired,
    /// The node's certificate is not valid yet. The clock of this machine may also be wrong.
    CertificateNotYetValid,
    /// The node's certificate is one of X.509 version 1, which names no hosts. `openssl x509 -req`
    /// issues such certificates without `-extfile`.
    CertificateVersion1,
    /// The node requires a client certificate, and none is given.
    ClientCertificateRequired,
    /// Client and node have no version, cipher suite or group in common.
    Incompatible,
    /// The bytes of the node are not what TLS prescribes.
    Misbehaved,
    /// The node speaks TLS, and its URL does not begin with `rediss://`.
    Required,
    /// No root that this client trusts has issued the node's certificate. One of the same name does
    /// not count.
    UnknownIssuer,
    /// The node's certificate is for other names or addresses than the host of the URL or its
    /// `server_name`.
    WrongName,
}

impl TlsError {
    /// Whether it lasts until the node or the client is changed. A certificate that is not valid
    /// yet becomes valid, and what failed inside the node may pass.
    pub(super) fn is_permanent(self) -> bool {
        match self {
            TlsError::Alert(number) => number != INTERNAL_ERROR && alert(number).is_some(),
            TlsError::CertificateNotYetValid | TlsError::Misbehaved => false,
            _ => true,
        }
    }

    /// Whether the node's certificate is not accepted. Nothing was sent to the node then.
    pub(super) fn is_about_certificate(self) -> bool {
        use TlsError::*;
        matches!(
            self,
            BadCertificate
                | CertificateExpired
                | CertificateNotYetValid
                | CertificateVersion1
                | UnknownIssuer
                | WrongName
        )
    }
}

/// The alert of a server in which something has failed.
const INTERNAL_ERROR: u8 = 80;

/// What an alert means, if that is known here.
fn alert(number: u8) -> Option<&'static str> {
    Some(match number {
        40 => "the server accepts none of the versions, ciphers or certificates offered",
        42 => "the server refuses the client certificate: damaged",
        43 => "the server refuses the client certificate: its kind is not supported",
        44 => "the server refuses the client certificate: revoked",
        45 => "the server refuses the client certificate: expired",
        46 => "the server refuses the client certificate",
        48 => "the server refuses the client certificate: unknown issuer",
        49 => "the server denies access to this client certificate",
        70 => "the server supports no common version of TLS",
        71 => "the server requires ciphers that are stronger",
        INTERNAL_ERROR => "an internal error of the server",
        112 => "the server does not know the name that it was asked for",
        _ => return None,
    })
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use TlsError::*;
        f.write_str(match self {
            Alert(number) => {
                return match alert(*number) {
                    Some(text) => write!(f, "{text} (alert {number})"),
                    None => write!(f, "alert {number} of the server"),
                };
            }
            BadCertificate => "damaged, revoked, or of a kind that is not supported",
            CertificateExpired => "expired",
            CertificateNotYetValid => "not valid yet; or the clock of this machine is wrong",
            CertificateVersion1 => "X.509 version 1; issue one of version 3 with a SAN",
            ClientCertificateRequired => "the server requires a client certificate",
            Incompatible => "no version or cipher in common with the server",
            Misbehaved => "the server violates the protocol",
            Required => "the port speaks TLS only, and the URL does not say rediss://",
            UnknownIssuer => "unknown issuer",
            WrongName => "issued for another name or address",
        })
    }
}

impl std::error::Error for TlsError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_cures_what_is_not_valid_yet_and_what_failed_inside_the_server() {
        for (error, is_permanent) in [
            (TlsError::Alert(48), true),
            (TlsError::Alert(80), false),
            (TlsError::Alert(20), false),
            (TlsError::BadCertificate, true),
            (TlsError::CertificateExpired, true),
            (TlsError::CertificateNotYetValid, false),
            (TlsError::CertificateVersion1, true),
            (TlsError::ClientCertificateRequired, true),
            (TlsError::Incompatible, true),
            (TlsError::Misbehaved, false),
            (TlsError::Required, true),
            (TlsError::UnknownIssuer, true),
            (TlsError::WrongName, true),
        ] {
            assert_eq!(error.is_permanent(), is_permanent, "{error}");
        }
    }

    #[test]
    fn an_alert_is_named_by_its_number() {
        assert_eq!(
            TlsError::Alert(80).to_string(),
            "an internal error of the server (alert 80)"
        );
        assert_eq!(TlsError::Alert(20).to_string(), "alert 20 of the server");
    }
}
