//! The cause at one node why a call did not come to its end. It never changes.

use super::code::numbers;
use crate::{Cause, NodeFault, TlsError};

/// `quorumlock_fault`.
#[derive(Debug)]
pub(super) struct FaultObject {
    pub(super) fault: NodeFault,
    pub(super) message: String,
}

/// The alert of TLS that demands a certificate, whether or not the server has sent it.
const CERTIFICATE_REQUIRED: i64 = 116;

numbers! {
    /// `quorumlock_phase`.
    PhaseNumber {
        None = 0,
        Resolve = 1,
        Connect = 2,
        Handshake = 3,
        Reply = 4,
    }
}

numbers! {
    /// `quorumlock_cause`.
    CauseNumber {
        None = 0,
        Auth = 1,
        Backlog = 2,
        Closed = 3,
        ClusterMode = 4,
        Database = 5,
        Duplicate = 6,
        Loading = 7,
        NoPermission = 8,
        NotMaster = 9,
        OutOfMemory = 10,
        Protocol = 11,
        Quarantined = 12,
        ReadOnly = 13,
        Refused = 14,
        Server = 15,
        System = 16,
        TimedOut = 17,
        TooManyClients = 18,
        UnknownHost = 19,
        Unreachable = 20,
        UnexpectedValue = 21,
        NoScripts = 22,
        FenceAhead = 23,
        NoExpiry = 24,
        Certificate = 25,
        NotTls = 26,
        Tls = 27,
        Credentials = 28,
    }
}

numbers! {
    /// `quorumlock_certificate_error`.
    CertificateNumber {
        Other = 1,
        UnknownIssuer = 2,
        Expired = 3,
        NotYetValid = 4,
        WrongName = 5,
        Version1 = 6,
    }
}

impl From<&NodeFault> for FaultObject {
    fn from(fault: &NodeFault) -> FaultObject {
        FaultObject {
            fault: fault.clone(),
            message: fault.to_string(),
        }
    }
}

impl FaultObject {
    /// Each of these, as C reads it.
    pub(super) fn list(faults: &[NodeFault]) -> Vec<FaultObject> {
        faults.iter().map(FaultObject::from).collect()
    }

    pub(super) fn phase(&self) -> PhaseNumber {
        match self.fault.phase() {
            crate::Phase::Resolve => PhaseNumber::Resolve,
            crate::Phase::Connect => PhaseNumber::Connect,
            crate::Phase::Handshake => PhaseNumber::Handshake,
            crate::Phase::Reply => PhaseNumber::Reply,
        }
    }

    /// And the number that belongs to it.
    pub(super) fn cause(&self) -> (CauseNumber, Option<i64>) {
        let cause = match self.fault.cause() {
            Cause::Auth => CauseNumber::Auth,
            Cause::Backlog => CauseNumber::Backlog,
            Cause::Closed => CauseNumber::Closed,
            Cause::ClusterMode => CauseNumber::ClusterMode,
            Cause::Credentials(_) => CauseNumber::Credentials,
            Cause::Database => CauseNumber::Database,
            Cause::Duplicate(node) => return (CauseNumber::Duplicate, i64::try_from(node).ok()),
            Cause::FenceAhead => CauseNumber::FenceAhead,
            Cause::UnexpectedValue => CauseNumber::UnexpectedValue,
            Cause::Loading => CauseNumber::Loading,
            Cause::NoExpiry => CauseNumber::NoExpiry,
            Cause::NoPermission => CauseNumber::NoPermission,
            Cause::NoScripts => CauseNumber::NoScripts,
            Cause::NotMaster => CauseNumber::NotMaster,
            Cause::NotTls => CauseNumber::NotTls,
            Cause::OutOfMemory => CauseNumber::OutOfMemory,
            Cause::Protocol => CauseNumber::Protocol,
            Cause::Quarantined => CauseNumber::Quarantined,
            Cause::ReadOnly => CauseNumber::ReadOnly,
            Cause::Refused => CauseNumber::Refused,
            Cause::Server(_) => CauseNumber::Server,
            Cause::System(number) => return (CauseNumber::System, Some(number.into())),
            Cause::TimedOut => CauseNumber::TimedOut,
            Cause::Tls(error) => return tls_cause(error),
            Cause::TooManyClients => CauseNumber::TooManyClients,
            Cause::UnknownHost => CauseNumber::UnknownHost,
            Cause::Unreachable => CauseNumber::Unreachable,
        };
        (cause, None)
    }
}

/// In C, a certificate that is not accepted is a cause of its own.
fn tls_cause(error: TlsError) -> (CauseNumber, Option<i64>) {
    let certificate = |number: CertificateNumber| (CauseNumber::Certificate, Some(number as i64));
    match error {
        TlsError::Alert(number) => (CauseNumber::Tls, Some(number.into())),
        TlsError::BadCertificate => certificate(CertificateNumber::Other),
        TlsError::CertificateExpired => certificate(CertificateNumber::Expired),
        TlsError::CertificateNotYetValid => certificate(CertificateNumber::NotYetValid),
        TlsError::CertificateVersion1 => certificate(CertificateNumber::Version1),
        TlsError::ClientCertificateRequired => (CauseNumber::Tls, Some(CERTIFICATE_REQUIRED)),
        TlsError::Incompatible | TlsError::Misbehaved | TlsError::Required => {
            (CauseNumber::Tls, None)
        }
        TlsError::UnknownIssuer => certificate(CertificateNumber::UnknownIssuer),
        TlsError::WrongName => certificate(CertificateNumber::WrongName),
    }
}
