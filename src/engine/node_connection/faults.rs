//! Why a node does not answer, in terms that an operator can act on.

use super::probe::ALERT;
use super::{CONNECT_LIMIT, NodeConnection};
use crate::algorithm::time::Timestamp;
use crate::engine::socket_state::SocketState;
use crate::fault::credentials_error::CredentialsError;
use crate::fault::detail::Detail;
use crate::fault::protocol_error::ProtocolError;
use crate::fault::tls_error::TlsError;
use crate::fault::{Cause, Fault, Phase};
use crate::os::transport::TransportConfig;
use crate::protocol::session::HandshakeState;
use std::time::Duration;

/// How long an answer may be overdue before the connection is closed. Long, because that does not
/// cancel what was sent.
const SILENCE_LIMIT: Duration = Duration::from_secs(30);

impl NodeConnection {
    /// Why the connection must be closed, if it exceeded a limit.
    pub(in crate::engine) fn exceeded_limit(&self, now: Timestamp) -> Option<Fault> {
        let backlog = self.backlog();
        let silence_limit = SILENCE_LIMIT.max(self.node_timeout * 2);
        let (is_late, limit) = match self.link.socket {
            SocketState::Closed => return None,
            SocketState::Open(_) => (backlog.is_overdue(silence_limit, now), silence_limit),
            SocketState::Resolving | SocketState::Connecting(_) => (
                now.since(self.link.opened_at) >= CONNECT_LIMIT,
                CONNECT_LIMIT,
            ),
        };
        let cause = match (is_late, backlog.is_too_long()) {
            (true, _) => Cause::TimedOut,
            (false, true) => Cause::Backlog,
            (false, false) => return None,
        };
        let fault = Fault::new(self.phase(), cause).with(Detail::Limit(limit, None));
        Some(
            self.without_credentials()
                .unwrap_or_else(|| self.most_specific(fault)),
        )
    }

    /// The node has not come further in its time. When it had less than the node timeout, because
    /// the attempt was begun with less time left, the message contains that time.
    pub(in crate::engine) fn timed_out(&self, now: Timestamp) -> Fault {
        if let Some((fault, _)) = self.probing.ended {
            return self.most_specific(fault);
        }
        if let Some(fault) = self.without_credentials() {
            return fault;
        }
        let phase = self.phase();
        let since = match phase {
            Phase::Resolve | Phase::Connect => self.link.opened_at,
            _ => self.backlog().oldest.unwrap_or(Timestamp::ORIGIN),
        };
        let waited = now.since(since);
        let limit = match waited < self.node_timeout {
            true => Detail::Limit(waited, None),
            false => Detail::Limit(self.node_timeout, Some("node_timeout")),
        };
        self.most_specific(Fault::new(phase, Cause::TimedOut).with(limit))
    }

    /// Why the connection is not made, if that waits for credentials.
    fn without_credentials(&self) -> Option<Fault> {
        let late = Cause::Credentials(CredentialsError::TimedOut);
        self.link
            .awaits_credentials()
            .then(|| Fault::new(Phase::Handshake, late))
    }

    /// The node's vote in a round whose deadline has come.
    pub(in crate::engine) fn fault_at_deadline(&self, now: Timestamp) -> Fault {
        if self.is_closed() || self.session.standing().is_duplicate() {
            self.health.fault()
        } else {
            self.timed_out(now)
        }
    }

    /// Whether this fault would end a connection that works and has nothing to answer: servers
    /// close idle connections.
    pub(in crate::engine) fn is_idle_end(&self, fault: Fault) -> bool {
        fault.cause == Cause::Closed && self.is_in_use() && self.backlog().requests == 0
    }

    /// The fault to keep: silence or an end in the handshake does not hide that what answered
    /// before was no Redis server, or none that TLS is possible with.
    pub(in crate::engine) fn most_specific(&self, fault: Fault) -> Fault {
        let is_no_reply = fault.detail == Detail::Protocol(ProtocolError::UnknownType);
        let may_be_tls = fault.cause == Cause::Closed || is_no_reply;
        if fault.phase == Phase::Handshake && may_be_tls && self.speaks_tls() {
            return Fault::new(Phase::Handshake, Cause::Tls(TlsError::Required));
        }
        let is_vague = fault.phase == Phase::Handshake
            && matches!(fault.cause, Cause::Closed | Cause::TimedOut);
        let known = self.health.fault();
        let is_telling = |cause| matches!(cause, Cause::NotTls | Cause::Protocol | Cause::Tls(_));
        if is_vague && is_telling(known.cause) {
            known
        } else {
            fault
        }
    }

    /// When a silent server is asked whether it speaks TLS.
    pub(super) fn probed_at(&self) -> Timestamp {
        self.backlog()
            .oldest
            .unwrap_or(self.link.opened_at)
            .after(self.node_timeout / 2)
    }

    /// Whether a connection that has ended so stays for a moment: the node is asked first whether
    /// it speaks TLS.
    pub(in crate::engine) fn asks_for_tls(&mut self, fault: Fault, now: Timestamp) -> bool {
        let may_be_asked = self.probing.ended.is_some() || self.may_be_tls(fault);
        may_be_asked
            && self
                .probing
                .holds(&self.link, fault, self.node_timeout / 2, now)
    }

    /// Whether a connection without TLS has ended in the handshake, as one does where the port
    /// speaks TLS. That may be known from an earlier time.
    pub(super) fn may_be_tls(&self, fault: Fault) -> bool {
        let is_pending = self.is_open() && self.session.standing() == HandshakeState::Pending;
        let is_plain = matches!(self.link.transport, TransportConfig::Plain);
        cfg!(feature = "tls")
            && is_plain
            && is_pending
            && matches!(fault.cause, Cause::Closed | Cause::Tls(_))
    }

    /// Whether a node speaks TLS whose URL is not `rediss://`: a probe was answered so, or the node
    /// has sent an alert.
    fn speaks_tls(&self) -> bool {
        let has_alerted = || self.session.incoming.unparsed().starts_with(&[ALERT, 3]);
        matches!(self.link.transport, TransportConfig::Plain)
            && (self.probing.has_found_tls() || has_alerted())
    }
}
