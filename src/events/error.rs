//! Errors: a kind for the program, a line for the log, and the cause at each node.
//!
//! A lock that another client holds is not an error: it is `Ok(None)`. An error means that the
//! state of the lock could not be determined, or that no attempt was possible or permitted. No
//! error contains text from a server, a password, a token or a URL.

use crate::algorithm::time::Human;
use crate::fault::detail::Detail;
use crate::fault::server_error::ServerError;
use crate::fault::{Cause, Fault, Phase};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

/// The result of each call that can fail. With a second parameter it is the `Result` of the
/// standard library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation failed.
///
/// `Display` writes one line that names every node that failed:
///
/// ```text
/// cannot lock "orders/42": 2 of 3 nodes failed, 2 must answer [10.0.0.1:6379: connection refused; 10.0.0.2:6379: …]
/// ```
///
/// [All messages](crate::docs::messages) are on a page of their own.
pub struct Error(Box<Content>);

struct Content {
    kind: ErrorKind,
    message: Cow<'static, str>,
    causes: Vec<NodeFault>,
    is_permanent: bool,
    /// The other nodes, with their states.
    others: Vec<String>,
}

/// What a caller can do about an error. `Display` writes one phrase for a log.
///
/// ```
/// assert_eq!(quorumlock::ErrorKind::Cancelled.to_string(), "wait cancelled");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The wait was cancelled from another thread. Nothing is held.
    Cancelled,
    /// A setting, a node's URL, a resource name or a time to live cannot be used. Correct the
    /// program or its configuration.
    Config,
    /// The operating system returned no random bytes, so no owner token could be drawn. Nothing was
    /// sent.
    Entropy,
    /// The client, guard or cancel handle was made before a `fork`, and this process is the child.
    /// They belong to the parent, and nothing was changed. Build a client in the child; the parent
    /// still holds its locks.
    Forked,
    /// The [`Lease`](crate::Lease) to be attached has ended, or the lock of a guard is lost.
    /// Nothing was sent. Another client may hold the lock: stop the protected work and acquire the
    /// lock again.
    LeaseLost,
    /// The lock is held, and ends before the time that [`ensure`](crate::MutexGuard::ensure)
    /// requires. Nothing was sent. [Extend](crate::MutexGuard::extend) it, or do the step that
    /// takes so long under a new lock.
    LeaseTooShort,
    /// The client is [shut down](crate::Redlock::shutdown), and grants no lock any more. Nothing is
    /// held.
    ShutDown,
    /// Fewer than a quorum of nodes could answer, or answered too late for so short a time to live.
    /// Whether the lock is held is unknown; a later attempt may succeed, unless the error [is
    /// permanent](Error::is_permanent). [`Error::causes`] lists what failed at each node. A wait
    /// also fails with this kind when the lock is held by a key that has no expiry
    /// ([`Cause::NoExpiry`](crate::Cause::NoExpiry)).
    Unavailable,
}

/// One node without a usable reply, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFault {
    address: Arc<str>,
    fault: Fault,
}

impl Error {
    /// The kind, which shows what a caller can do.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Whether a further attempt fails as well until the program, its configuration or a node is
    /// changed.
    ///
    /// True for [`Config`](ErrorKind::Config), [`Forked`](ErrorKind::Forked),
    /// [`LeaseLost`](ErrorKind::LeaseLost) and [`ShutDown`](ErrorKind::ShutDown); and for
    /// [`Unavailable`](ErrorKind::Unavailable) where so many [causes](Error::causes) are
    /// [permanent](crate::Cause::is_permanent) that the other nodes are no quorum.
    ///
    /// ```
    /// use quorumlock::{Cause, Redlock};
    ///
    /// # let node = quorumlock::embedded::EmbeddedNode::start()?;
    /// // The embedded node has no such database.
    /// let redlock = Redlock::builder().node(format!("{}/9999", node.url())).build()?;
    /// let error = redlock.mutex("orders/42").try_lock().unwrap_err();
    /// assert_eq!(error.causes()[0].cause(), Cause::Database);
    /// assert!(error.is_permanent());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_permanent(&self) -> bool {
        self.0.is_permanent
    }

    /// Each node without a usable reply, and why, in the order of the configuration. Empty if
    /// nothing was sent.
    pub fn causes(&self) -> &[NodeFault] {
        &self.0.causes
    }

    pub(crate) fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Error {
        let is_permanent = matches!(
            kind,
            ErrorKind::Config | ErrorKind::Forked | ErrorKind::LeaseLost | ErrorKind::ShutDown
        );
        Error(Box::new(Content {
            kind,
            message: message.into(),
            causes: Vec::new(),
            is_permanent,
            others: Vec::new(),
        }))
    }

    /// Too few of the nodes answered, so `what` failed; `others` are the nodes without a cause.
    pub(crate) fn unavailable(
        what: &str,
        nodes: usize,
        max_ttl: Duration,
        causes: Vec<NodeFault>,
        others: Vec<String>,
    ) -> Error {
        let failed = causes.len();
        let quorum = nodes / 2 + 1;
        let mut message = match failed {
            0 => format!("cannot {what}: no attempt has ended yet"),
            _ => format!("cannot {what}: {failed} of {nodes} nodes failed, {quorum} must answer"),
        };
        if causes.iter().any(|node| node.cause() == Cause::Quarantined) {
            let max_ttl = Human(max_ttl);
            message += &format!(
                "; a restarted node votes after max_ttl ({max_ttl}), or at once if it is declared durable"
            );
        }
        let mut error = Error::new(ErrorKind::Unavailable, message).with_causes_of(nodes, causes);
        if failed > 0 {
            error.0.others = others;
        }
        error
    }

    /// A system call failed.
    pub(crate) fn system(what: &str, error: &io::Error) -> Error {
        Error::new(ErrorKind::Unavailable, format!("cannot {what}: {error}"))
    }

    /// The operating system returned no random bytes.
    pub(crate) fn entropy() -> Error {
        Error::new(
            ErrorKind::Entropy,
            "the operating system gave no random bytes for an owner token",
        )
    }

    /// A quorum granted the lock, and its time to live had passed already.
    pub(crate) fn too_late(resource: &str, ttl: Duration) -> Error {
        let message = format!(
            "cannot lock {resource:?}: a quorum answered, but only after the lease had ended; the time to live of {} \
             is too short",
            Human(ttl)
        );
        Error::new(ErrorKind::Unavailable, message)
    }

    /// The lease of a lock that was acquired has ended before the call could return.
    pub(crate) fn ended_meanwhile(resource: &str, ttl: Duration) -> Error {
        let message = format!(
            "cannot lock {resource:?}: it was acquired, and its lease ended before the call returned; the time to \
             live of {} is too short for an observer that is so slow",
            Human(ttl)
        );
        Error::new(ErrorKind::Unavailable, message)
    }

    /// The lock is lost.
    pub(crate) fn lease_lost(resource: &str) -> Error {
        Error::new(
            ErrorKind::LeaseLost,
            format!("the lock of {resource:?} is lost"),
        )
    }

    /// The client is shut down. `action` names what could not be done.
    pub(crate) fn shut_down(action: &str, resource: &str) -> Error {
        Error::new(
            ErrorKind::ShutDown,
            format!("cannot {action} {resource:?}: the client is shut down"),
        )
    }

    /// The lock ends too early.
    pub(crate) fn lease_too_short(resource: &str, left: Duration, needed: Duration) -> Error {
        // Rounded to fewer digits, the two could look alike.
        let [left, needed] = [left, needed].map(|time| time.as_millis());
        let message =
            format!("the lock of {resource:?} lasts for {left} ms, and {needed} ms are needed");
        Error::new(ErrorKind::LeaseTooShort, message)
    }

    /// With these causes, of this many nodes in all. The causes decide whether the error is
    /// permanent.
    pub(crate) fn with_causes_of(mut self, nodes: usize, causes: Vec<NodeFault>) -> Error {
        let permanent = causes
            .iter()
            .filter(|node| node.cause().is_permanent())
            .count();
        self.0.is_permanent = nodes - permanent < nodes / 2 + 1;
        self.0.causes = causes;
        self
    }
}

/// The error of what cannot be used, or not so.
pub(crate) fn config_error(message: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::Config, message)
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        let causes = self.0.causes.iter().map(NodeFault::to_string);
        in_brackets(causes.chain(self.0.others.iter().cloned()), f)
    }
}

words! { ErrorKind:
    Cancelled => "wait cancelled",
    Config => "invalid configuration",
    Entropy => "no entropy from the operating system",
    Forked => "handle belongs to the parent process",
    LeaseLost => "lease ended",
    LeaseTooShort => "lease too short",
    ShutDown => "client shut down",
    Unavailable => "too few nodes available",
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl std::error::Error for Error {}

impl NodeFault {
    pub(crate) fn new(address: impl Into<Arc<str>>, fault: Fault) -> NodeFault {
        NodeFault {
            address: address.into(),
            fault,
        }
    }

    /// Appends all causes to a line, in brackets; nothing if there are none.
    pub(crate) fn list(causes: &[NodeFault], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        in_brackets(causes.iter().map(NodeFault::to_string), f)
    }

    /// The node's address: `host:port`, or `unix:` and a path. Never its password.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The phase in which it failed.
    pub fn phase(&self) -> Phase {
        self.fault.phase
    }

    /// Why it failed.
    pub fn cause(&self) -> Cause {
        self.fault.cause
    }

    /// The cause in words, without the address.
    pub(crate) fn explained(&self) -> Explained {
        Explained(self.fault)
    }
}

/// Writes these with brackets around them, if there are any.
fn in_brackets(parts: impl Iterator<Item = String>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match parts.collect::<Vec<_>>().as_slice() {
        [] => Ok(()),
        parts => write!(f, " [{}]", parts.join("; ")),
    }
}

impl fmt::Display for NodeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.address, self.explained())
    }
}

/// A fault in words for an operator. Only the text of a system error comes from the operating
/// system.
pub(crate) struct Explained(pub(crate) Fault);

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Cause::*;
        let Fault {
            phase,
            cause,
            detail,
        } = self.0;
        let text = match (cause, phase, detail) {
            (Auth, _, Detail::PasswordMissing) => {
                "the server requires a password, and the URL has none"
            }
            (Auth, _, Detail::PasswordUnset) => {
                "the URL has a password, and the server has none set"
            }
            (Auth, _, Detail::PasswordWrong) => "wrong password, or unknown or disabled user",
            (Auth, _, Detail::UsersUnknown) => {
                "the URL has a user, and the server supports passwords only (Redis before 6)"
            }
            (Closed, Phase::Connect, _) => "connection closed while it was made",
            (Closed, Phase::Handshake, _) => {
                "connection closed in the handshake; perhaps a TLS port, or a proxy that does not know INFO"
            }
            (ClusterMode, _, Detail::Shards(shards @ 2.., _)) => {
                return write!(
                    f,
                    "one of {shards} shards of a cluster, which hold different keys and are no quorum; name \
                     clusters of one shard, or masters without cluster mode"
                );
            }
            (ClusterMode, _, Detail::Shards(_, slots)) => {
                return write!(
                    f,
                    "in cluster mode, and its shard owns {slots} of 16384 slots; assign all"
                );
            }
            (NoPermission, _, Detail::Command(command)) => {
                return write!(f, "the user may not run {command}");
            }
            (Server(ServerError::Err), _, Detail::Command(command)) => {
                return write!(
                    f,
                    "the server does not know {command}; it may be renamed or too old"
                );
            }
            (NotMaster, _, Detail::Master(master)) => {
                return write!(f, "not a master; it names {master}");
            }
            (NoPermission, _, Detail::Key(command)) => {
                return write!(f, "the user may not use this key ({command})");
            }
            (Protocol, Phase::Handshake, Detail::Protocol(error)) => {
                return write!(
                    f,
                    "{error} in the handshake; perhaps no Redis server, or a TLS port"
                );
            }
            (Protocol, _, Detail::Protocol(error)) => {
                return write!(f, "protocol error: {error}");
            }
            (Quarantined, _, Detail::Left(left)) => {
                return write!(
                    f,
                    "may have forgotten locks, does not vote for another {}",
                    Human(left)
                );
            }
            (System(number), ..) if number != 0 => {
                return io::Error::from_raw_os_error(number).fmt(f);
            }
            (TimedOut, ..) => return timed_out(phase, detail, f),
            _ => return cause.fmt(f),
        };
        f.write_str(text)
    }
}

/// Which step took too long, its limit, and the setting of that limit.
fn timed_out(phase: Phase, detail: Detail, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(match phase {
        Phase::Resolve => "host name not resolved",
        Phase::Connect => "no connection",
        Phase::Handshake => "no answer to the handshake",
        _ => "no reply",
    })?;
    match detail {
        Detail::Limit(time, Some(setting)) => write!(f, " within {} ({setting})", Human(time)),
        Detail::Limit(time, None) => write!(f, " within {}", Human(time)),
        _ => f.write_str(" in time"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_readable_line() {
        let causes = vec![
            NodeFault::new("a:1", Fault::new(Phase::Reply, Cause::TimedOut)),
            NodeFault::new("b:2", Fault::new(Phase::Connect, Cause::Refused)),
        ];
        let error = Error::unavailable(
            "lock \"x\"",
            3,
            Duration::ZERO,
            causes,
            vec!["c:3: healthy, not asked".into()],
        );
        assert_eq!(
            error.to_string(),
            "cannot lock \"x\": 2 of 3 nodes failed, 2 must answer \
             [a:1: no reply in time; b:2: connection refused; c:3: healthy, not asked]"
        );
        assert!(format!("{error:?}").starts_with("Unavailable: cannot lock"));
        assert_eq!(
            Error::new(ErrorKind::Cancelled, "cancelled").to_string(),
            "cancelled"
        );
    }

    #[test]
    fn each_kind_is_a_phrase_of_its_own() {
        let kinds = [
            ErrorKind::Cancelled,
            ErrorKind::Config,
            ErrorKind::Entropy,
            ErrorKind::Forked,
            ErrorKind::LeaseLost,
            ErrorKind::LeaseTooShort,
            ErrorKind::ShutDown,
            ErrorKind::Unavailable,
        ];
        let phrases: std::collections::BTreeSet<String> =
            kinds.iter().map(ErrorKind::to_string).collect();
        assert_eq!(phrases.len(), kinds.len());
        assert!(
            phrases
                .iter()
                .all(|phrase| phrase.len() > 5 && !phrase.ends_with('.'))
        );
        assert_eq!(format!("{:>16}", ErrorKind::LeaseLost), "     lease ended");
    }
}
