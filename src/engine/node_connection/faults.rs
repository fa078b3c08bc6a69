//! Why a link's node gives no answer, said so that an operator can act on it.

use super::NodeConnection;
use crate::algorithm::detail::Detail;
use crate::algorithm::fault::{Cause, Fault, Phase};
use crate::algorithm::time::Timestamp;
use crate::protocol::session::HandshakeState;

impl NodeConnection {
    /// Why the node cannot be asked at present.
    pub(in crate::engine) fn fault(&self) -> Fault {
        match self.session.standing() {
            HandshakeState::Rejected(fault) if !self.is_closed() => fault,
            _ => self.health.fault(),
        }
    }

    /// The node has not come further in its time. When it had less than the node timeout, because the attempt was begun
    /// with less time left, the message says how long it was.
    pub(in crate::engine) fn timed_out(&self, now: Timestamp) -> Fault {
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
        self.most_telling(Fault::new(phase, Cause::TimedOut).with(limit))
    }

    /// The fault to keep: silence or an end in the handshake does not hide that what answered before was no Redis server.
    pub(in crate::engine) fn most_telling(&self, fault: Fault) -> Fault {
        let is_vague = fault.phase == Phase::Handshake && matches!(fault.cause, Cause::Closed | Cause::TimedOut);
        let known = self.health.fault();
        if is_vague && matches!(known.cause, Cause::Protocol(_)) { known } else { fault }
    }
}
