//! What an error is made of: a code, a message, and each node's own cause. It never changes.

use super::code::Code;
use super::failure::Failure;
use crate::{Cause, NodeFault, TlsError};
use std::borrow::Cow;

/// `quorumlock_error`.
pub(super) struct ErrorObject {
    pub(super) code: Code,
    pub(super) message: Cow<'static, str>,
    pub(super) faults: Vec<FaultObject>,
    pub(super) is_permanent: bool,
}

/// `quorumlock_fault`.
pub(super) struct FaultObject {
    pub(super) fault: NodeFault,
    pub(super) message: String,
}

/// The alert of TLS that demands a certificate, whether or not the server has sent it.
const CERTIFICATE_REQUIRED: i64 = 116;

/// `quorumlock_phase`. Numbers are never given to anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(super) enum PhaseNumber {
    None = 0,
    Resolve = 1,
    Connect = 2,
    Handshake = 3,
    Reply = 4,
}

/// `quorumlock_cause`. Numbers are never given to anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(super) enum CauseNumber {
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

/// `quorumlock_certificate_error`. Numbers are never given to anything else.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) enum CertificateNumber {
    Other = 1,
    UnknownIssuer = 2,
    Expired = 3,
    NotYetValid = 4,
    WrongName = 5,
    Version1 = 6,
}

impl ErrorObject {
    pub(super) fn new(failure: Failure) -> ErrorObject {
        let Failure {
            code,
            message,
            causes,
            is_permanent,
        } = failure;
        ErrorObject {
            code,
            message,
            faults: faults(&causes),
            is_permanent,
        }
    }

    #[cfg(test)]
    pub(super) fn take_back(report: *const ErrorObject) -> ErrorObject {
        std::sync::Arc::into_inner(super::handle::Returned::of(report).take().unwrap()).unwrap()
    }
}

pub(super) fn faults(causes: &[NodeFault]) -> Vec<FaultObject> {
    causes.iter().map(FaultObject::new).collect()
}

impl FaultObject {
    pub(super) fn new(fault: &NodeFault) -> FaultObject {
        FaultObject {
            fault: fault.clone(),
            message: fault.to_string(),
        }
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

/// One of these faults, for C to look at. NULL when there is none.
pub(super) fn show(faults: &[FaultObject], index: usize) -> *const FaultObject {
    faults.get(index).map_or(std::ptr::null(), |fault| fault)
}
