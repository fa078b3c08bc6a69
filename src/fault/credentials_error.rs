//! The ways in which a node can be left without credentials.

use std::fmt;
use std::io;

/// Why there is nothing that a connection can log in with: what is wrong with the
/// [provider](crate::Builder::credentials), the [password file](crate::Builder::password_file) or
/// the files of certificates. Nothing of the credentials is kept, nor the text of the provider's
/// error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CredentialsError {
    /// The files of TLS have changed, and cannot be used.
    BadCertificate,
    /// The password is empty.
    Empty,
    /// The provider returned an error.
    Failed,
    /// The password file is not UTF-8.
    NotUtf8,
    /// The provider panicked.
    Panicked,
    /// The provider has not returned in time. It is still running, and is not called again for this
    /// node until it returns.
    TimedOut,
    /// The user or the password is longer than 64 KiB.
    TooLong,
    /// The password file cannot be read.
    Unreadable(io::ErrorKind),
}

impl fmt::Display for CredentialsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use CredentialsError::*;
        f.write_str(match self {
            BadCertificate => "the files of TLS cannot be used",
            Empty => "the password is empty",
            Failed => "the provider returned an error",
            NotUtf8 => "the password file is not UTF-8",
            Panicked => "the provider panicked",
            TimedOut => "the provider has not returned",
            TooLong => "longer than 64 KiB",
            Unreadable(io::ErrorKind::NotFound) => "the password file does not exist",
            Unreadable(kind) => {
                return write!(f, "the password file cannot be read: {kind}");
            }
        })
    }
}

impl std::error::Error for CredentialsError {}
