//! The cause at one node why a call did not come to its end. It never changes.

use crate::Cause::*;
use crate::NodeFault;
use crate::TlsError::*;
use std::ffi::c_int;

/// `quorumlock_fault`.
#[derive(Debug)]
pub(super) struct FaultObject {
    pub(super) fault: NodeFault,
    pub(super) message: String,
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

    /// `quorumlock_cause`. In C, a certificate that is not accepted is a cause of its own. Numbers
    /// are never given to anything else.
    pub(super) fn cause(&self) -> c_int {
        match self.fault.cause() {
            Auth => 1,
            Backlog => 2,
            Closed => 3,
            ClusterMode => 4,
            Database => 5,
            Duplicate(_) => 6,
            Loading => 7,
            NoPermission => 8,
            NotMaster => 9,
            OutOfMemory => 10,
            Protocol => 11,
            Quarantined => 12,
            ReadOnly => 13,
            Refused => 14,
            Server(_) => 15,
            System(_) => 16,
            TimedOut => 17,
            TooManyClients => 18,
            UnknownHost => 19,
            Unreachable => 20,
            UnexpectedValue => 21,
            NoScripts => 22,
            FenceAhead => 23,
            NoExpiry => 24,
            Tls(
                BadCertificate
                | CertificateExpired
                | CertificateNotYetValid
                | CertificateVersion1
                | UnknownIssuer
                | WrongName,
            ) => 25,
            NotTls => 26,
            Tls(Alert(_) | ClientCertificateRequired | Incompatible | Misbehaved | Required) => 27,
            Credentials(_) => 28,
        }
    }

    /// The number that belongs to the cause, or -1: of a certificate,
    /// `quorumlock_certificate_error`.
    pub(super) fn number(&self) -> i64 {
        match self.fault.cause() {
            Duplicate(node) => i64::try_from(node).unwrap_or(-1),
            System(number) => number.into(),
            Tls(error) => match error {
                Alert(number) => number.into(),
                BadCertificate => 1,
                UnknownIssuer => 2,
                CertificateExpired => 3,
                CertificateNotYetValid => 4,
                WrongName => 5,
                CertificateVersion1 => 6,
                // The alert that demands a certificate, whether or not the server has sent it.
                ClientCertificateRequired => 116,
                Incompatible | Misbehaved | Required => -1,
            },
            _ => -1,
        }
    }
}
