//! Why a node returned no usable answer.
//!
//! A fault is where it happened ([`Phase`]) and what it was ([`Cause`]). Neither ever carries text
//! from a server: error replies echo what they were sent, owner tokens and passwords included, so
//! they are classified by their first word against a list of words we know, and then forgotten.

pub mod counts;
pub mod credentials_error;
pub mod detail;
pub mod protocol_error;
pub mod server_error;
pub mod tls_error;

use credentials_error::CredentialsError;
use detail::Detail;
use protocol_error::ProtocolError;
use server_error::ServerError;
use std::fmt;
use tls_error::TlsError;

/// What kept one node from giving a usable answer. Two faults are equal when phase and cause are.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// How far the node had come.
    pub phase: Phase,
    /// What went wrong there.
    pub cause: Cause,
    /// What its message contains in addition.
    pub detail: Detail,
}

impl PartialEq for Fault {
    fn eq(&self, other: &Fault) -> bool {
        (self.phase, self.cause) == (other.phase, other.cause)
    }
}

impl Eq for Fault {}

impl Fault {
    /// A fault of this cause in this phase.
    pub const fn new(phase: Phase, cause: Cause) -> Fault {
        Fault {
            phase,
            cause,
            detail: Detail::None,
        }
    }

    /// The node's bytes broke this rule of the protocol.
    pub const fn protocol(phase: Phase, error: ProtocolError) -> Fault {
        Fault::new(phase, Cause::Protocol).with(Detail::Protocol(error))
    }

    /// The same fault, with a detail.
    #[must_use]
    pub const fn with(self, detail: Detail) -> Fault {
        Fault { detail, ..self }
    }
}

/// How far a node had come when it failed.
// C has the same numbers: they never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Looking up its host name.
    Resolve = 1,
    /// Opening the connection.
    Connect = 2,
    /// Logging in and learning what kind of server it is.
    Handshake = 3,
    /// Waiting for the answer to a command.
    Reply = 4,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Phase::Resolve => "resolve",
            Phase::Connect => "connect",
            Phase::Handshake => "handshake",
            Phase::Reply => "reply",
        })
    }
}

/// What went wrong with one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// The user or the password was refused, or one is needed and none was given.
    Auth,
    /// Too many of our commands are waiting for this node already; it gets no more until it catches
    /// up.
    Backlog,
    /// The node closed or reset the connection.
    Closed,
    /// The node is in cluster mode, and its cluster is not one shard that owns all slots. The
    /// shards of a cluster have no copies of each other's keys: each key is on one of them, so they
    /// are no quorum. Name one-shard clusters, or masters without cluster mode.
    ClusterMode,
    /// There is nothing to log in with: the provider or the password file of the client fails.
    Credentials(CredentialsError),
    /// The database number of the URL does not exist on the node.
    Database,
    /// This URL leads to the same server as another one, which already has its vote: the node with
    /// this index.
    Duplicate(usize),
    /// The number that this node keeps of a lock is more than a day ahead of the node's clock or of
    /// this machine's clock. The node does not count for this lock. If one node reports this, its
    /// value is damaged, or was written with a wrong clock: set the clocks right, and delete the
    /// key on this node only where no writer uses its fence. If all nodes report it, check the
    /// clock of this machine.
    FenceAhead,
    /// The value of the key was not written by a lock of its kind: a fenced or read-write one, or
    /// the queue of a fair one. The value is not changed.
    UnexpectedValue,
    /// The node is loading its data set.
    Loading,
    /// The lock is held by a key that has no expiry, so that it is never freed by itself: another
    /// program set it without one, or stopped between setting it and giving it one.
    NoExpiry,
    /// The user may not run the command or touch the key (ACL).
    NoPermission,
    /// The node runs no scripts, or none for this user. Without them, a plain lock can be taken,
    /// and is neither extended nor released.
    NoScripts,
    /// The node is a replica, or another server of its shard holds its keys.
    NotMaster,
    /// The URL begins with `rediss://`, and what listens there does not speak TLS.
    NotTls,
    /// The node is out of memory and evicts nothing.
    OutOfMemory,
    /// The node's bytes are not what a Redis server replies. The line of the fault names the rule
    /// that they break.
    Protocol,
    /// The node was restarted, or was a replica for a while, and may have forgotten locks: its
    /// votes do not count until `max_ttl` has passed since that was found out, unless it is
    /// declared durable. See [`RestartPolicy`](crate::RestartPolicy).
    Quarantined,
    /// The node does not take writes.
    ReadOnly,
    /// Nothing listens at the address.
    Refused,
    /// Another error reply.
    Server(ServerError),
    /// The operating system failed a call on the connection, by its error number.
    System(i32),
    /// No answer in time. Never a "no": the command may still run later.
    TimedOut,
    /// TLS failed, the node's certificate is not accepted, or the URL does not ask for TLS where it
    /// must.
    Tls(TlsError),
    /// The node has reached its limit of clients.
    TooManyClients,
    /// The host name has no address.
    UnknownHost,
    /// No route leads to the address.
    Unreachable,
}

impl Cause {
    /// Whether time does not cure it: the configuration of the node or of the client, or the data
    /// on the node, must be changed first. A replica counts, because it takes a fail-over to make a
    /// master of it. A certificate counts, because it must be replaced, unless it is not valid yet.
    ///
    /// ```
    /// use quorumlock::Cause;
    ///
    /// assert!(Cause::Auth.is_permanent() && Cause::NotMaster.is_permanent());
    /// assert!(!Cause::TimedOut.is_permanent() && !Cause::OutOfMemory.is_permanent());
    /// ```
    pub fn is_permanent(self) -> bool {
        use Cause::*;
        match self {
            Auth
            | ClusterMode
            | Database
            | Duplicate(_)
            | NoExpiry
            | NoPermission
            | NoScripts
            | NotMaster
            | NotTls
            | ReadOnly
            | Server(ServerError::MasterDown) => true,
            Tls(error) => error.is_permanent(),
            _ => false,
        }
    }

    /// Whether an error reply of this cause to a release means that the node did not run it. That
    /// holds for every error but those that report another value under the key: such a release has
    /// nothing to delete.
    pub(crate) fn is_not_run(self) -> bool {
        !matches!(
            self,
            Cause::FenceAhead | Cause::Server(ServerError::WrongType) | Cause::UnexpectedValue
        )
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Cause::*;
        f.write_str(match self {
            Auth => "login refused",
            Backlog => "too many commands wait for an answer",
            Closed => "connection closed",
            ClusterMode => "not a cluster of one shard that owns all slots",
            Credentials(error @ CredentialsError::BadCertificate) => {
                return write!(f, "{error}");
            }
            Credentials(error) => return write!(f, "no credentials: {error}"),
            Database => "no such database on this server",
            Duplicate(other) => return write!(f, "same server as node {other}"),
            FenceAhead => {
                "fence more than a day ahead, check the clocks of this machine and the node"
            }
            UnexpectedValue => "the key holds something that no lock of its kind writes",
            Loading => "loading its data",
            NoExpiry => "the key has no expiry",
            NoPermission => "permission denied",
            NoScripts => "runs no scripts, or none for this user, and a lock needs them",
            NotMaster => "not a master",
            NotTls => "does not speak TLS",
            OutOfMemory => "out of memory (maxmemory)",
            Protocol => "protocol error",
            Quarantined => "may have forgotten locks, does not vote yet",
            ReadOnly => "read-only",
            Refused => "connection refused",
            Server(ServerError::Busy) => "busy with a script (BUSY)",
            Server(ServerError::ClusterDown) => {
                "its cluster serves no keys at present (CLUSTERDOWN)"
            }
            Server(ServerError::Denied) => {
                "protected mode: connections from other machines are refused (DENIED)"
            }
            Server(ServerError::MasterDown) => "a replica without its master (MASTERDOWN)",
            Server(ServerError::Misconf) => "cannot write to disk, and refuses writes (MISCONF)",
            Server(ServerError::NoReplicas) => "too few replicas, and refuses writes (NOREPLICAS)",
            Server(error) => return write!(f, "error reply {}", error.word()),
            System(number) => return write!(f, "system error {number}"),
            TimedOut => "timed out",
            Tls(error) if error.is_about_certificate() => {
                return write!(f, "the server's certificate is not accepted: {error}");
            }
            Tls(error) => return write!(f, "TLS failed: {error}"),
            TooManyClients => "too many clients (maxclients)",
            UnknownHost => "unknown host name",
            Unreachable => "unreachable",
        })
    }
}

impl std::error::Error for Cause {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_and_phases_read_as_clauses() {
        let shown = |phase: Phase, cause: Cause| format!("{cause} ({phase})");
        assert_eq!(shown(Phase::Reply, Cause::TimedOut), "timed out (reply)");
        assert_eq!(
            shown(Phase::Handshake, Cause::Duplicate(2)),
            "same server as node 2 (handshake)"
        );
    }
}
