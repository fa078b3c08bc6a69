//! What the message of a fault contains in addition to its cause: numbers of ours, and words of
//! ours, never text from a server.
//!
//! Error replies are distinguished by beginnings that servers are known to use. Some of them echo a
//! user's name, so nothing is looked for behind the beginning.

use super::protocol_error::ProtocolError;
use std::net::SocketAddr;
use std::time::Duration;

/// What an operator needs to know in addition to the phase and the cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// The user may not run this command of ours, or not like this; or the server does not know it.
    Command(&'static str),
    /// The user may run this command of ours, and not on this key.
    Key(&'static str),
    /// A quarantine lasts for so long.
    Left(Duration),
    /// The time that was waited, and the setting that limits it, if one did.
    Limit(Duration, Option<&'static str>),
    /// The server names this address: the master is there.
    Master(SocketAddr),
    /// Nothing more is known.
    #[default]
    None,
    /// The server wants a password, and none is given.
    PasswordMissing,
    /// A password is given, and the server has none set.
    PasswordUnset,
    /// The server does not know the user or the password.
    PasswordWrong,
    /// The rule of the protocol that the node's bytes broke.
    Protocol(ProtocolError),
    /// The server's cluster has so many shards that own slots, and so many slots are owned.
    Shards(u64, u64),
    /// A user is given, and the server has passwords only: Redis before 6.
    UsersUnknown,
}
