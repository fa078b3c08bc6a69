//! Why a call did not come to its end: what the boundary makes a code and an error of.

use super::code::Code;
use super::fault::FaultObject;
use crate::{Error, ErrorKind};
use std::borrow::Cow;

/// Why a call ended early: `quorumlock_error`, which never changes. Its code may also be an answer;
/// then the rest is not read.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) code: Code,
    pub(super) message: Cow<'static, str>,
    pub(super) faults: Vec<FaultObject>,
    pub(super) is_permanent: bool,
}

pub(super) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub(super) fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Failure {
        Failure {
            code,
            message: message.into(),
            faults: Vec::new(),
            is_permanent: code.is_permanent(),
        }
    }

    /// The argument of this name is NULL.
    pub(super) fn null(argument: &str) -> Failure {
        Failure::new(Code::NullPointer, format!("{argument} is NULL"))
    }

    /// A failure that its code describes completely.
    pub(super) fn plain(code: Code) -> Failure {
        Failure::new(code, code.text())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let code = match error.kind() {
            ErrorKind::Cancelled => Code::Cancelled,
            ErrorKind::Config => Code::Config,
            ErrorKind::Entropy => Code::Entropy,
            ErrorKind::Forked => Code::Forked,
            ErrorKind::LeaseLost => Code::LeaseLost,
            ErrorKind::LeaseTooShort => Code::LeaseTooShort,
            ErrorKind::ShutDown => Code::ShutDown,
            ErrorKind::Unavailable => Code::Unavailable,
        };
        Failure {
            code,
            message: error.to_string().into(),
            faults: FaultObject::list(error.causes()),
            is_permanent: error.is_permanent(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_permanent_if_no_retry_helps() {
        for code in [
            Code::Config,
            Code::Forked,
            Code::LeaseLost,
            Code::ShutDown,
            Code::NullPointer,
            Code::Consumed,
            Code::Panic,
        ] {
            assert!(Failure::plain(code).is_permanent, "{code:?}");
        }
        for code in [
            Code::Busy,
            Code::ExtensionFailed,
            Code::Unavailable,
            Code::NotHeld,
        ] {
            assert!(!Failure::plain(code).is_permanent, "{code:?}");
        }
    }
}
