//! Why a node gives no answer, in terms that an operator can act on.

use super::{BACKLOG_HARD_LIMIT, CONNECT_LIMIT, NodeConnection, SILENCE_LIMIT, UNSENT_HARD_LIMIT};
use crate::algorithm::detail::Detail;
use crate::algorithm::fault::{Cause, Fault, Phase};
use crate::algorithm::protocol_error::ProtocolError;
use crate::algorithm::time::Timestamp;
use crate::algorithm::tls_error::TlsError;
use crate::engine::socket_state::SocketState;
use crate::protocol::session::HandshakeState;
use std::time::Duration;

impl NodeConnection {
    /// Why the node cannot be asked at present.
    pub(in crate::engine) fn fault(&self) -> Fault {
        match self.session.standing() {
            HandshakeState::Rejected(fault) if !self.is_closed() => fault,
            _ => self.health.fault(),
        }
    }

    /// Why the connection must be closed, if it exceeded a limit.
    pub(in crate::engine) fn exceeded_limit(&self, now: Timestamp) -> Option<Fault> {
        let session = &self.session;
        let waiting = session.waiting_since().map_or(Duration::ZERO, |since| now.since(since));
        let cause = match self.socket {
            SocketState::Closed => return None,
            SocketState::Resolving | SocketState::Connecting(_) if now.since(self.opened_at) >= CONNECT_LIMIT => {
                Cause::TimedOut
            }
            SocketState::Open(_) if waiting > SILENCE_LIMIT.max(self.node_timeout * 2) => Cause::TimedOut,
            _ if session.backlog() > BACKLOG_HARD_LIMIT => Cause::Backlog,
            _ if session.traffic.unsent().len() > UNSENT_HARD_LIMIT => Cause::Backlog,
            _ => return None,
        };
        let limit = match self.socket {
            SocketState::Open(_) => SILENCE_LIMIT.max(self.node_timeout * 2),
            _ => CONNECT_LIMIT,
        };
        Some(self.most_specific(Fault::new(self.phase(), cause).with(Detail::Limit(limit, None))))
    }

    /// The node has not come further in its time. When it had less than the node timeout, because the attempt was begun
    /// with less time left, the message says how long it was.
    pub(in crate::engine) fn timed_out(&self, now: Timestamp) -> Fault {
        if let Some((fault, _)) = self.ended {
            return self.most_specific(fault);
        }
        let phase = self.phase();
        let since = match phase {
            Phase::Resolve | Phase::Connect => self.opened_at,
            _ => self.session.waiting_since().unwrap_or(Timestamp::ORIGIN),
        };
        let waited = now.since(since);
        let limit = match waited < self.node_timeout {
            true => Detail::Limit(waited, None),
            false => Detail::Limit(self.node_timeout, Some("node_timeout")),
        };
        self.most_specific(Fault::new(phase, Cause::TimedOut).with(limit))
    }

    /// The node's vote in a round whose deadline has come.
    pub(in crate::engine) fn fault_at_deadline(&self, now: Timestamp) -> Fault {
        if self.is_closed() || self.is_duplicate() { self.fault() } else { self.timed_out(now) }
    }

    /// Whether this fault would end a connection that works and has nothing to answer: servers close idle connections.
    pub(in crate::engine) fn is_idle_end(&self, fault: Fault) -> bool {
        fault.cause == Cause::Closed && self.is_in_use() && self.session.backlog() == 0
    }

    /// The fault to keep: silence or an end in the handshake does not hide that what answered before was no Redis
    /// server, or none that TLS is possible with.
    pub(in crate::engine) fn most_specific(&self, fault: Fault) -> Fault {
        let may_be_tls = matches!(fault.cause, Cause::Closed | Cause::Protocol(ProtocolError::UnknownType));
        if fault.phase == Phase::Handshake && may_be_tls && self.speaks_tls() {
            return Fault::new(Phase::Handshake, Cause::Tls(TlsError::Required));
        }
        let is_vague = fault.phase == Phase::Handshake && matches!(fault.cause, Cause::Closed | Cause::TimedOut);
        let known = self.health.fault();
        let is_telling =
            |cause| matches!(cause, Cause::Certificate(_) | Cause::NotTls | Cause::Protocol(_) | Cause::Tls(_));
        if is_vague && is_telling(known.cause) { known } else { fault }
    }

    /// Keeps what the node has reported of itself on this connection.
    pub(in crate::engine) fn learn_server_info(&mut self) {
        self.server_info = self.session.identity().clone();
    }
}
