//! The error replies of servers that have no [cause](super::Cause) of their own.

/// An error reply, by its first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ServerError {
    /// `BUSY`: the server runs a script.
    Busy,
    /// `BUSYKEY`.
    BusyKey,
    /// `CLUSTERDOWN`: the server is in cluster mode, and its cluster serves no keys at present.
    ClusterDown,
    /// `DENIED`: protected mode refuses connections from other machines.
    Denied,
    /// `ERR`: any other error.
    Err,
    /// `EXECABORT`.
    ExecAbort,
    /// `MASTERDOWN`: a replica has lost its master.
    MasterDown,
    /// `MISCONF`: the server cannot write to disk, and refuses writes.
    Misconf,
    /// `NOREPLICAS`: the server has too few replicas, and refuses writes.
    NoReplicas,
    /// `NOSCRIPT`: the server does not know the script of this hash.
    NoScript,
    /// A word that is not known here.
    Unrecognised,
    /// `WRONGTYPE`: the key holds a value of another type.
    WrongType,
}

impl ServerError {
    /// The error with this first word.
    pub(crate) fn of(word: &[u8]) -> Option<ServerError> {
        use ServerError::*;
        let known = [
            Busy,
            BusyKey,
            ClusterDown,
            Denied,
            Err,
            ExecAbort,
            MasterDown,
            Misconf,
            NoReplicas,
            NoScript,
            WrongType,
        ];
        known
            .into_iter()
            .find(|known| known.word().as_bytes() == word)
    }

    /// The first word; `unrecognised` for one that is not known.
    pub const fn word(self) -> &'static str {
        use ServerError::*;
        match self {
            Busy => "BUSY",
            BusyKey => "BUSYKEY",
            ClusterDown => "CLUSTERDOWN",
            Denied => "DENIED",
            Err => "ERR",
            ExecAbort => "EXECABORT",
            MasterDown => "MASTERDOWN",
            Misconf => "MISCONF",
            NoReplicas => "NOREPLICAS",
            NoScript => "NOSCRIPT",
            Unrecognised => "unrecognised",
            WrongType => "WRONGTYPE",
        }
    }
}
